package device_test

import (
	"context"
	"errors"
	"testing"

	"shardtool/device"
	"shardtool/tensor"
)

var (
	_ device.Device  = device.Host{}
	_ device.Stepper = device.Host{}
	_ device.Device  = (*device.Simulated)(nil)
	_ device.Stepper = (*device.Simulated)(nil)
)

// batch returns one array of n bytes.
func batch(n int) []tensor.Dense {
	return []tensor.Dense{tensor.View(tensor.Uint8, tensor.Shape{n}, make([]byte, n))}
}

func TestHost(t *testing.T) {
	var d device.Host
	arrays := batch(8)
	ctx, cancel := context.WithCancel(t.Context())
	b, err := d.Put(ctx, arrays)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Wait(ctx); err != nil {
		t.Error(err)
	}
	if err := d.Step(ctx, b); err != nil {
		t.Error(err)
	}
	b.Release()
	b.Release()
	if n := testing.AllocsPerRun(100, func() {
		b, _ := d.Put(ctx, arrays)
		_ = b.Wait(ctx)
		_ = d.Step(ctx, b)
		b.Release()
	}); n != 0 {
		t.Errorf("a batch allocates %v times", n)
	}
	cancel()
	if _, err := d.Put(ctx, arrays); !errors.Is(err, context.Canceled) {
		t.Errorf("Put after the end: %v", err)
	}
	if err := d.Step(ctx, b); !errors.Is(err, context.Canceled) {
		t.Errorf("Step after the end: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
