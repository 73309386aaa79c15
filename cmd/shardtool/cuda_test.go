//go:build cuda

package main

import (
	"errors"
	"testing"

	"shardtool/device/cuda"
)

func TestOpenCUDA(t *testing.T) {
	for _, arg := range []string{"x", "-1", "0x", "1:2"} {
		if _, err := devices["cuda"](t.Context(), arg); exitCode(err) != exitUsage {
			t.Errorf("cuda:%s: %v", arg, err)
		}
	}
	count, err := cuda.Count(nil)
	if err != nil {
		if _, err := devices["cuda"](t.Context(), ""); !errors.Is(err, cuda.ErrUnsupported) || exitCode(err) != exitIO {
			t.Errorf("without a driver: %v", err)
		}
		return
	}
	d, err := devices["cuda"](t.Context(), "0")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := devices["cuda"](t.Context(), "999"); exitCode(err) != exitUsage {
		t.Errorf("cuda:999, of %d: %v", count, err)
	}
}
