package cuda

import (
	"errors"
	"math/bits"
	"unsafe"
)

// block is a piece of the device's memory. It belongs to one batch, or is idle.
type block struct {
	ptr   uintptr
	size  int64
	after uintptr // event, in no other use, after which it may be written; or 0
}

// address is 0 for no block, that of a batch without bytes.
func (b *block) address() uintptr {
	if b == nil {
		return 0
	}
	return b.ptr
}

// sizeClass rounds up to a quarter of a power of two, so that batches of nearby
// sizes use the same blocks.
func sizeClass(n int64) int64 {
	if n <= 4*align {
		return 4 * align
	}
	step := int64(1) << (bits.Len64(uint64(n-1)) - 3)
	return (n + step - 1) &^ (step - 1)
}

// take returns an idle block of at least n bytes, or a new one; nil for 0 bytes.
// There are at most Room of them: one of another size goes where a new one
// would be too many.
func (d *Device) take(n int64) (*block, error) {
	if n == 0 {
		return nil, nil
	}
	class := sizeClass(n)
	d.mu.Lock()
	var other *block
	for i := len(d.idle) - 1; i >= 0; i-- {
		b := d.idle[i]
		if b.size == class {
			d.idle = remove(d.idle, b)
			d.mu.Unlock()
			return b, nil
		}
		other = b
	}
	full := len(d.blocks) >= d.o.Room
	d.mu.Unlock()
	if full && other != nil {
		if err := d.drop(other); err != nil {
			return nil, err
		}
	}
	return d.alloc(class)
}

// alloc makes a block. Where there is no memory, idle blocks make some.
func (d *Device) alloc(class int64) (*block, error) {
	b := &block{size: class}
	for {
		err := d.drv.do(cuMemAlloc, uintptr(unsafe.Pointer(&b.ptr)), uintptr(class))
		if err == nil {
			break
		}
		d.mu.Lock()
		var other *block
		if len(d.idle) > 0 {
			other = d.idle[0]
		}
		d.mu.Unlock()
		var e *Error
		if other == nil || !errors.As(err, &e) || e.Code != codeOutOfMemory {
			return nil, err
		}
		if err := d.drop(other); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.blocks = append(d.blocks, b)
	d.stats.DeviceBytes += class
	return b, nil
}

// drop frees an idle block.
func (d *Device) drop(b *block) error {
	d.mu.Lock()
	d.idle, d.blocks = remove(d.idle, b), remove(d.blocks, b)
	d.stats.DeviceBytes -= b.size
	d.mu.Unlock()
	var err error
	if b.after != 0 {
		err = d.drv.do(cuEventSynchronize, b.after)
		d.mu.Lock()
		d.spare = append(d.spare, b.after)
		d.mu.Unlock()
	}
	return errors.Join(err, d.drv.do(cuMemFree, b.ptr))
}

// awaitBlock makes the stream wait until a block may be written.
func (d *Device) awaitBlock(b *block) error {
	if b == nil || b.after == 0 {
		return nil
	}
	if err := d.drv.do(cuStreamWaitEvent, d.stream, b.after, 0); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spare = append(d.spare, b.after) // the stream waits for what was recorded by now
	b.after = 0
	return nil
}

// takeEvent returns an event in no use. It is made to be waited for asleep.
func (d *Device) takeEvent() (uintptr, error) {
	d.mu.Lock()
	if n := len(d.spare); n > 0 {
		e := d.spare[n-1]
		d.spare = d.spare[:n-1]
		d.mu.Unlock()
		return e, nil
	}
	d.mu.Unlock()
	var e uintptr
	if err := d.drv.do(cuEventCreate, uintptr(unsafe.Pointer(&e)), eventBlockingSync|eventDisableTiming); err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
	return e, nil
}

// giveBack takes the block, if any, and the event of a batch that is over. d.mu
// is held.
func (d *Device) giveBack(b *block, event uintptr) {
	if b != nil {
		d.idle = append(d.idle, b)
	}
	d.spare = append(d.spare, event)
}
