package device_test

import (
	"context"
	"errors"
	"testing"

	"shardtool/device"
	"shardtool/tensor"
)

func TestHost(t *testing.T) {
	var d device.Device = device.Host{}
	arrays := []tensor.Dense{tensor.View(tensor.Int64, tensor.Shape{1}, make([]byte, 8))}
	ctx, cancel := context.WithCancel(t.Context())
	e, err := d.Put(ctx, arrays)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Wait(ctx); err != nil {
		t.Error(err)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = d.Put(ctx, arrays) }); n != 0 {
		t.Errorf("Put allocates %v times", n)
	}
	cancel()
	if _, err := d.Put(ctx, arrays); !errors.Is(err, context.Canceled) {
		t.Errorf("Put after the end: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
