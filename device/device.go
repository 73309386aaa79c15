// Package device is the binding to an accelerator: how batches get to where
// the training runs.
//
//	loader ─▶ Put(arrays) ─▶ Buffer ··· copying ··· Wait ─▶ Step ─▶ Release
//	          the host's arrays belong to the device │ and are free again here
//
// A batch is put without waiting. Until its [Buffer] is ready, the arrays on the
// host belong to the device; from Release on, the memory on the device does
// not belong to the batch. Batches become ready in the order in which they were
// put.
//
// [Host] is the device of a program that trains on the host, [Simulated] plays
// an accelerator of a given speed, and device/cuda is one of NVIDIA's. What a
// device can do beyond taking batches, it says by implementing [Registrar] or
// [Stepper].
package device

import (
	"context"
	"errors"

	"shardtool/tensor"
)

// Device takes batches. It is for one goroutine; its Buffers may be used by
// others.
type Device interface {
	// Put begins to move the arrays of one batch, without waiting for the
	// copy. Until the returned Buffer is ready the arrays must neither change
	// nor be released; after an error they are free. Put blocks, until ctx ends,
	// only while the device has no room for another batch: a Release makes room.
	Put(ctx context.Context, arrays []tensor.Dense) (Buffer, error)
	// Close waits for what was put, in order, and releases the device with all
	// its buffers. From then on Put, Wait and Step fail with ErrClosed, and
	// Release and Close do nothing.
	Close() error
}

// Buffer is a batch on the device, or on its way.
type Buffer interface {
	// Wait returns when the batch is on the device and the arrays of the host
	// are free, or when ctx ends; the copy then goes on. A copy that failed is
	// its error, and the arrays are free then, too. After Release it fails with
	// ErrReleased.
	Wait(ctx context.Context) error
	// Release gives the memory of the batch back to the device: when the copy
	// and the steps that were begun on it have ended. It does not wait.
	// Batches are released in any order; a second Release does nothing.
	Release()
}

// Registrar is a Device that wants to know memory of the host before batches
// are put from it: registered once, copies from it are fast ever after.
type Registrar interface {
	// Register makes mem known, and keeps it reachable, until Unregister or
	// Close. Memory may be registered again, in whole or in part. That memory
	// cannot be made fast is no error.
	Register(mem []byte) error
	// Unregister waits for the copies that were begun, and forgets what was
	// registered within mem: as for a loader that is closed before the device.
	Unregister(mem []byte) error
}

// Stepper is a Device that runs a training step on a batch, or plays one.
type Stepper interface {
	// Step begins a step on the batch, behind those that were begun before,
	// and returns when the step before it has ended: so one step runs while
	// the next batch is made ready. When ctx ends first, or at any other error,
	// the step has not been begun.
	Step(ctx context.Context, b Buffer) error
}

// Errors of buffers and devices that are used too late.
var (
	ErrClosed   = errors.New("device: it is closed")
	ErrReleased = errors.New("device: the buffer was released")
)
