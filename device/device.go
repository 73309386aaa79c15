// Package device is the binding to an accelerator: how batches get to where
// the training runs.
//
//	Put(arrays) ─▶ Event ··· the copy runs ··· Wait ─▶ arrays may be reused
//
// A batch is put without waiting; its memory belongs to the device until the
// event is ready. Batches become ready in the order in which they were put.
package device

import (
	"context"

	"shardtool/tensor"
)

// Device takes the arrays of batches. It is for one goroutine.
type Device interface {
	// Put begins to move the arrays of one batch. Until the event is ready
	// they must neither change nor be released.
	Put(ctx context.Context, arrays []tensor.Dense) (Event, error)
	// Close waits for what was put, in order, and releases the device.
	Close() error
}

// Event says when a batch has arrived.
type Event interface {
	// Wait returns when the batch is where it should be, or when ctx ends.
	Wait(ctx context.Context) error
}

// Host is the device of a program that trains on the host: a batch is where
// it should be already, and nothing is copied.
type Host struct{}

// Put returns an event that is ready.
func (Host) Put(ctx context.Context, _ []tensor.Dense) (Event, error) { return ready{}, ctx.Err() }

// Close does nothing.
func (Host) Close() error { return nil }

type ready struct{}

func (ready) Wait(context.Context) error { return nil }
