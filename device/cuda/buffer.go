package cuda

import (
	"context"
	"fmt"
	"slices"

	"shardtool/device"
	"shardtool/tensor"
)

// Buffer is a batch on the device, in one block of its memory.
type Buffer struct {
	d      *Device
	host   []tensor.Dense // reachable while they are copied
	arrays []Array
	size   int64 // of the block that is needed
	block  *block
	event  uintptr
	done   chan struct{} // closed when it has arrived

	// Of d.mu.
	ready    bool
	released bool
	err      error // of the copy
}

// Array is an array in the memory of the device.
type Array struct {
	Ptr   uintptr // a CUdeviceptr, a multiple of 256; 0 if the array is empty
	DType tensor.DType
	Shape tensor.Shape // must not be changed
}

// align is that of arrays in a block: that of cuMemAlloc.
const align = 256

func newBuffer(d *Device, arrays []tensor.Dense) *Buffer {
	b := &Buffer{d: d, host: slices.Clone(arrays), arrays: make([]Array, len(arrays)), done: make(chan struct{})}
	for i, a := range arrays {
		b.arrays[i] = Array{DType: a.DType(), Shape: a.Shape()}
		b.size += (int64(len(a.Bytes())) + align - 1) &^ (align - 1)
	}
	return b
}

// send begins the copies. It is called on the goroutine of the calls, as are
// the other functions that make calls.
func (b *Buffer) send() (err error) {
	d := b.d
	if b.event, err = d.takeEvent(); err != nil {
		return err
	}
	if b.block, err = d.take(b.size); err == nil {
		if err = b.enqueue(); err != nil {
			// Some of the copies may run, and the arrays are the caller's again.
			_ = d.drv.do(cuStreamSynchronize, d.stream)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.giveBack(b.block, b.event)
		return err
	}
	d.flight <- b // has room, for each batch in it holds one of d.room
	return nil
}

func (b *Buffer) enqueue() error {
	d := b.d
	if err := d.awaitBlock(b.block); err != nil {
		return err
	}
	var bytes, pinned int64
	to := b.block.address()
	for i, a := range b.host {
		mem := a.Bytes()
		if len(mem) == 0 {
			continue
		}
		b.arrays[i].Ptr = to
		d.pinAgain(mem)
		d.pieces = d.drv.pinned.split(d, mem, d.pieces[:0])
		for _, p := range d.pieces {
			if err := d.drv.do(cuMemcpyHtoDAsync, to+uintptr(p.off), address(mem[p.off:]), uintptr(p.n), d.stream); err != nil {
				return err
			}
			if p.pinned {
				pinned += int64(p.n)
			}
		}
		bytes += int64(len(mem))
		to += (uintptr(len(mem)) + align - 1) &^ (align - 1)
	}
	if err := d.drv.do(cuEventRecord, b.event, d.stream); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stats.Batches++
	d.stats.Bytes += bytes
	d.stats.Pinned += pinned
	return nil
}

// arrived is called when the copies have ended.
func (b *Buffer) arrived(err error) {
	d := b.d
	d.mu.Lock()
	defer d.mu.Unlock()
	b.ready, b.err, b.host = true, err, nil
	close(b.done)
	if b.released {
		b.leave()
	}
}

// leave gives back what a batch holds that has arrived and is released. d.mu
// is held.
func (b *Buffer) leave() {
	b.d.giveBack(b.block, b.event)
	<-b.d.room
}

// usable returns why the buffer is of no use any more. d.mu is held.
func (b *Buffer) usable() error {
	switch {
	case b.d.closing:
		return device.ErrClosed
	case b.released:
		return device.ErrReleased
	}
	return nil
}

// Wait returns when the batch has arrived. It makes no call of the driver.
func (b *Buffer) Wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.d.mu.Lock()
	err := b.usable()
	b.d.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-b.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if err := b.usable(); err != nil {
		return err
	}
	return b.err
}

// Arrays returns where the arrays are, in the order in which they were put.
// They are there when Wait has returned, or for work on a stream behind WaitOn
// or Stream, and until Release.
func (b *Buffer) Arrays() []Array { return b.arrays }

// Event returns the CUevent of the batch's arrival. It is that until Release.
func (b *Buffer) Event() uintptr { return b.event }

// WaitOn makes work that is put from now on on a CUstream wait for the batch;
// the host does not wait.
func (b *Buffer) WaitOn(stream uintptr) error {
	d := b.d
	return d.on(func() error {
		d.mu.Lock()
		err := b.usable()
		d.mu.Unlock()
		if err != nil {
			return err
		}
		return d.drv.do(cuStreamWaitEvent, stream, b.event, 0)
	})
}

// Release gives the block back. The device must be through with the batch: what
// the caller has put on streams of its own is not waited for, see ReleaseAfter.
func (b *Buffer) Release() {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	b.release()
}

func (b *Buffer) release() {
	if b.released || b.d.closing {
		return
	}
	b.released = true
	if b.ready {
		b.leave()
	}
}

// ReleaseAfter gives the block back when the work that has been put on a
// CUstream of this device's context has ended; the host does not wait, the next
// batch in that block does. After an error the buffer is not released.
func (b *Buffer) ReleaseAfter(stream uintptr) error {
	d := b.d
	return d.on(func() error {
		event, err := d.takeEvent()
		if err != nil {
			return err
		}
		err = d.drv.do(cuEventRecord, event, stream)
		d.mu.Lock()
		defer d.mu.Unlock()
		if err == nil {
			err = b.usable()
		}
		if err != nil || b.block == nil {
			d.spare = append(d.spare, event)
		} else {
			b.block.after = event
		}
		if err == nil {
			b.release()
		}
		return err
	})
}

// Read copies the array at place i back into dst, which must have its length in
// bytes. Once the copy has begun it is waited for though ctx ends.
func (b *Buffer) Read(ctx context.Context, i int, dst []byte) error {
	if err := b.Wait(ctx); err != nil {
		return err
	}
	if i < 0 || i >= len(b.arrays) {
		return fmt.Errorf("cuda: there is no array %d in a batch of %d", i, len(b.arrays))
	}
	a := b.arrays[i]
	if n, err := tensor.Bytes(a.DType, a.Shape); err != nil || n != int64(len(dst)) {
		return fmt.Errorf("cuda: array %d has %d bytes, not %d", i, n, len(dst))
	}
	d := b.d
	return d.on(func() error {
		d.mu.Lock()
		err := b.usable()
		d.mu.Unlock()
		if err != nil {
			return err
		}
		d.pieces = d.drv.pinned.split(d, dst, d.pieces[:0])
		for _, p := range d.pieces {
			if err = d.drv.do(cuMemcpyDtoHAsync, address(dst[p.off:]), a.Ptr+uintptr(p.off), uintptr(p.n), d.stream); err != nil {
				break
			}
		}
		if e := d.drv.do(cuStreamSynchronize, d.stream); err == nil {
			err = e
		}
		return err
	})
}
