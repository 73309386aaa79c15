package device

import (
	"context"

	"shardtool/tensor"
)

// Host is the device of a program that trains on the host: a batch is where
// it should be already, and nothing is copied. It has no state: Close does not
// end it.
type Host struct{}

// Put returns a buffer that is ready.
func (Host) Put(ctx context.Context, _ []tensor.Dense) (Buffer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return here{}, nil
}

// Step does nothing: the step is what the caller does next.
func (Host) Step(ctx context.Context, _ Buffer) error { return ctx.Err() }

// Close does nothing.
func (Host) Close() error { return nil }

type here struct{}

func (here) Wait(context.Context) error { return nil }
func (here) Release()                   {}
