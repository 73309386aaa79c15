//go:build cuda

package main

import (
	"context"
	"strconv"

	"shardtool/device"
	"shardtool/device/cuda"
)

func init() { devices["cuda"] = openCUDA }

// openCUDA opens an accelerator by its number, the first for none.
func openCUDA(ctx context.Context, arg string) (device.Device, error) {
	n, err := strconv.Atoi(arg)
	if arg == "" {
		n, err = 0, nil
	}
	if err != nil || n < 0 {
		return nil, usageError("--device cuda:%s: the number of a device, from 0 on", arg)
	}
	count, err := cuda.Count(nil)
	switch {
	case err != nil:
		return nil, err
	case n >= count:
		return nil, usageError("--device cuda:%d: there are %d devices, from 0 on", n, count)
	}
	return cuda.Open(ctx, n, nil)
}
