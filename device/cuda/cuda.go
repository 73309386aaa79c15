// Package cuda is the device of NVIDIA's accelerators, over the CUDA driver
// API. It is written in Go alone: the driver's library, libcuda.so.1, is opened
// when a device is, and a program that imports this package needs no C compiler
// and no CUDA toolkit to be built. It works on Linux, on amd64 and arm64; on
// other systems, and where there is no driver, Open fails with ErrUnsupported.
//
//	host memory of a batch           memory of the device, one block a batch
//	┌───────┬─────┬────────┐  copies on  ┌───────┬──┬─────┬──┬────────┐
//	│ array │array│ array  │ ══════════▶ │ array │··│array│··│ array  │
//	└───────┴─────┴────────┘  a stream   └───────┴──┴─────┴──┴────────┘
//	  └ pinned once, by whole pages        └ each at a multiple of 256 bytes
//
// A Device copies on one stream of its own, so batches arrive in the order in
// which they were put, and an event tells that one has. Blocks and events are
// used again.
//
// # Threads
//
// The driver keeps a current context for each thread. A Device has two
// goroutines, each locked to its thread, on which the context of the device is
// current: one makes all calls, and one sleeps in the driver until the next
// batch has arrived. No other thread of the program has its context changed.
// The context is the primary one of the device, which CUDA's runtime API and
// libraries over it use, too: their kernels can use the pointers of a Buffer.
//
// # Pinned memory
//
// From memory that is pinned (page-locked) the device copies by itself, at the
// speed of the bus; from other memory the driver copies first to memory of its
// own. Register pins memory, and Put pins by itself what it sees again, up to
// Options.Pin. The driver copies from memory that is pinned, or not, but not
// from a range that is both, and refuses to pin a page twice: only whole pages
// are pinned, those that lie wholly in the memory; a copy is made in pieces of
// one kind each. Pinned memory is kept reachable, and is pinned until the last
// Device that copies from it is closed, or told to forget it by Unregister. Where the system refuses to pin (ulimit
// -l, or too much), batches are copied all the same, Stats.Refused says so, and
// the log does once.
//
// # The calls
//
// Signatures are those of cuda.h. CUdevice and CUresult are int, CUcontext,
// CUstream, CUevent and CUdeviceptr of the size of a pointer. The oldest
// driver that has them all is that of CUDA 11.0.
//
//	cuInit(unsigned flags)                        cuDeviceGetCount(int *count)
//	cuDeviceGet(CUdevice *device, int ordinal)
//	cuDeviceGetName(char *name, int len, CUdevice)
//	cuDeviceTotalMem_v2(size_t *bytes, CUdevice)
//	cuDevicePrimaryCtxRetain(CUcontext *, CUdevice)
//	cuDevicePrimaryCtxRelease_v2(CUdevice)        cuCtxSetCurrent(CUcontext)
//	cuMemHostRegister_v2(void *, size_t bytes, unsigned flags)
//	cuMemHostUnregister(void *)
//	cuMemAlloc_v2(CUdeviceptr *, size_t bytes)    cuMemFree_v2(CUdeviceptr)
//	cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream)
//	cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream)
//	cuStreamCreate(CUstream *, unsigned flags)    cuStreamDestroy_v2(CUstream)
//	cuStreamSynchronize(CUstream)
//	cuStreamWaitEvent(CUstream, CUevent, unsigned flags)
//	cuEventCreate(CUevent *, unsigned flags)      cuEventDestroy_v2(CUevent)
//	cuEventRecord(CUevent, CUstream)              cuEventSynchronize(CUevent)
//	cuGetErrorName(CUresult, const char **)       cuGetErrorString(CUresult, const char **)
package cuda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"shardtool/device"
	"shardtool/tensor"
)

// ErrUnsupported says that there is no driver, or that it is too old.
var ErrUnsupported = errors.New("cuda: no driver to use")

// Options are those of Open. Nil, and the zero value, are the defaults.
type Options struct {
	Library string       // the driver's library; "" stands for libcuda.so.1
	Room    int          // batches on the device at once; 0 stands for 4
	Pin     int64        // bytes that Put may pin by itself; 0 stands for 1 GiB; less: none
	Log     *slog.Logger // nil: nothing is logged
}

const (
	defaultRoom = 4
	defaultPin  = 1 << 30
)

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Library == "" {
		d.Library = "libcuda.so.1"
	}
	if d.Room <= 0 {
		d.Room = defaultRoom
	}
	if d.Pin == 0 {
		d.Pin = defaultPin
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	return d
}

// Count returns how many devices there are.
func Count(o *Options) (int, error) {
	drv, err := load(o.withDefaults().Library)
	if err != nil {
		return 0, err
	}
	return drv.count()
}

// Device is one accelerator. It is a device.Device and a device.Registrar; each
// of its methods, and those of its Buffers, may be called by any goroutine,
// though Puts of several have no order. Of one accelerator several may be open.
type Device struct {
	drv    *driver
	o      Options
	handle int32 // CUdevice
	ctx    uintptr
	stream uintptr
	name   string
	total  uint64

	calls  chan func()   // made by own
	flight chan *Buffer  // to the goroutine that waits, in order
	joined chan struct{} // closed when that one has ended
	room   chan struct{} // holds one for each batch on the device
	quit   chan struct{} // closed when own has ended

	// Of the goroutine that makes the calls.
	done   bool
	seen   map[uintptr]int // memory that was put: its length by its address, negative once pinned
	pieces []piece

	mu      sync.Mutex
	blocks  []*block // all
	idle    []*block // those of no batch
	events  []uintptr
	spare   []uintptr // events in no use
	stats   Stats
	closing bool
	err     error // of closing
}

// Stats are counts since Open.
type Stats struct {
	Batches int64 // put
	Bytes   int64 // put
	Pinned  int64 // of these, bytes from pinned memory

	Registered  int64 // bytes of the host that are pinned, and that this device uses
	DeviceBytes int64 // of its own memory that it holds for batches
	Refused     error // why memory could not be pinned; nil if none was refused
}

// Open opens the device of that number, from 0 on. Close it. Opening may take
// the driver a second or more, and is not interrupted.
func Open(ctx context.Context, n int, o *Options) (*Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	opts := o.withDefaults()
	drv, err := load(opts.Library)
	if err != nil {
		return nil, err
	}
	d := &Device{
		drv: drv, o: opts, seen: make(map[uintptr]int),
		calls:  make(chan func()),
		flight: make(chan *Buffer, opts.Room),
		joined: make(chan struct{}),
		room:   make(chan struct{}, opts.Room),
		quit:   make(chan struct{}),
	}
	started := make(chan error)
	go d.own(n, started)
	if err := <-started; err != nil {
		<-d.quit
		return nil, err
	}
	return d, nil
}

// own makes the calls. It ends with its thread, for it never unlocks it.
func (d *Device) own(n int, started chan<- error) {
	runtime.LockOSThread()
	defer close(d.quit)
	err := d.begin(n)
	if err != nil {
		err = errors.Join(err, d.end())
	}
	started <- err
	if err != nil {
		return
	}
	for !d.done {
		(<-d.calls)()
	}
}

func (d *Device) begin(n int) error {
	count, err := d.drv.count()
	if err != nil {
		close(d.joined)
		return err
	}
	if n < 0 || n >= count {
		close(d.joined)
		return fmt.Errorf("cuda: there is no device %d: %d are known, from 0 on", n, count)
	}
	if err := d.retain(n); err != nil {
		close(d.joined)
		return err
	}
	ready := make(chan error)
	go d.await(ready)
	return <-ready
}

// retain gets the context and what is asked and made in it.
func (d *Device) retain(n int) error {
	name := make([]byte, 256)
	if err := d.drv.do(cuDeviceGet, uintptr(unsafe.Pointer(&d.handle)), uintptr(n)); err != nil {
		return err
	}
	if err := d.drv.do(cuDeviceGetName, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)), uintptr(d.handle)); err != nil {
		return err
	}
	d.name, _, _ = strings.Cut(string(name), "\x00")
	if err := d.drv.do(cuDeviceTotalMem, uintptr(unsafe.Pointer(&d.total)), uintptr(d.handle)); err != nil {
		return err
	}
	ctx, err := d.drv.retain(d.handle)
	if err != nil {
		return err
	}
	d.ctx = ctx
	if err := d.drv.do(cuCtxSetCurrent, ctx); err != nil {
		return err
	}
	return d.drv.do(cuStreamCreate, uintptr(unsafe.Pointer(&d.stream)), streamNonBlocking)
}

// await waits for one batch after the other, asleep in the driver.
func (d *Device) await(ready chan<- error) {
	runtime.LockOSThread()
	defer close(d.joined)
	err := d.drv.do(cuCtxSetCurrent, d.ctx)
	ready <- err
	if err != nil {
		return
	}
	for b := range d.flight {
		b.arrived(d.drv.do(cuEventSynchronize, b.event))
	}
}

// on runs f on the goroutine that makes the calls, and returns its error.
func (d *Device) on(f func() error) error {
	var err error
	did := make(chan struct{})
	select {
	case d.calls <- func() { defer close(did); err = f() }:
		<-did
		return err
	case <-d.quit:
		return device.ErrClosed
	}
}

// Name returns the name of the accelerator.
func (d *Device) Name() string { return d.name }

// Memory returns the bytes of memory that the accelerator has.
func (d *Device) Memory() int64 { return int64(d.total) }

// Context returns the CUcontext of the device, its primary one.
func (d *Device) Context() uintptr { return d.ctx }

// Stream returns the CUstream on which batches are copied. Work that is put
// on it runs behind the copies of batches that were put before, and ahead of
// those put later.
func (d *Device) Stream() uintptr { return d.stream }

// Stats returns counts up to now.
func (d *Device) Stats() Stats {
	registered, _ := d.drv.pinned.used(d)
	d.mu.Lock()
	defer d.mu.Unlock()
	st := d.stats
	st.Registered = registered
	return st
}

// Put begins the copy of the arrays into a block of the device's memory. The
// Buffer is a *Buffer. Once a call of the driver has begun, Put waits for it
// though ctx ends.
func (d *Device) Put(ctx context.Context, arrays []tensor.Dense) (device.Buffer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case d.room <- struct{}{}:
	case <-d.quit:
		return nil, device.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	b := newBuffer(d, arrays)
	if err := d.on(b.send); err != nil {
		<-d.room
		return nil, err
	}
	return b, nil
}

// Register pins the whole pages of mem, now, those that are not pinned yet.
// What the system refuses to pin is no error: see Stats.Refused.
func (d *Device) Register(mem []byte) error {
	return d.on(func() error {
		d.pin(mem, false)
		return nil
	})
}

// Unregister waits for the copies that were begun, and unpins what was pinned of
// mem, by Register or by Put, unless another Device copies from it, too. What
// was pinned as a part of more than mem stays.
func (d *Device) Unregister(mem []byte) error {
	return d.on(func() error {
		if err := d.drv.do(cuStreamSynchronize, d.stream); err != nil {
			return err
		}
		from, to := address(mem), address(mem)+uintptr(len(mem))
		for at := range d.seen {
			if from <= at && at < to {
				delete(d.seen, at)
			}
		}
		return errors.Join(d.drv.pinned.leave(d, from, to), d.drv.do(cuCtxSetCurrent, d.ctx))
	})
}

// Close waits for the batches on their way, in the order in which they were
// put, frees the device's memory, those of batches not released included, and
// unpins the host's. It is an error of the driver's, if any.
func (d *Device) Close() error {
	d.mu.Lock()
	first := !d.closing
	d.closing = true
	d.mu.Unlock()
	if !first {
		<-d.quit
		return nil
	}
	_ = d.on(func() error {
		d.done = true
		d.err = d.end()
		return nil
	})
	<-d.quit
	return d.err
}

// end undoes what begin and the batches have done, as far as it was.
func (d *Device) end() error {
	close(d.flight)
	<-d.joined
	var errs []error
	try := func(c call, handle uintptr) {
		if handle != 0 {
			errs = append(errs, d.drv.do(c, handle))
		}
	}
	try(cuStreamSynchronize, d.stream)
	d.mu.Lock()
	d.closing = true
	blocks, events := d.blocks, d.events
	d.blocks, d.idle, d.events, d.spare = nil, nil, nil, nil
	d.mu.Unlock()
	for _, b := range blocks {
		try(cuEventSynchronize, b.after)
		try(cuMemFree, b.ptr)
	}
	for _, e := range events {
		try(cuEventDestroy, e)
	}
	try(cuStreamDestroy, d.stream)
	errs = append(errs, d.drv.pinned.leave(d, 0, math.MaxUint))
	if d.ctx != 0 {
		errs = append(errs, d.drv.do(cuCtxSetCurrent, 0), d.drv.do(cuDevicePrimaryCtxRelease, uintptr(d.handle)))
	}
	return errors.Join(errs...)
}

// pin pins what can be, and notes what cannot.
func (d *Device) pin(mem []byte, auto bool) {
	err := d.drv.pinned.join(d, mem, auto)
	d.mu.Lock()
	first := err != nil && d.stats.Refused == nil
	if first {
		d.stats.Refused = err
	}
	d.mu.Unlock()
	if first {
		d.o.Log.Warn("cuda: host memory cannot be pinned, so copies to the device are slower", "bytes", len(mem), "error", err)
	}
}

// pinLeast is the least that Put pins by itself: smaller copies take longer to
// begin than to make.
const pinLeast = 64 << 10

// pinAgain pins memory that has been put before: it is in a pool, and pinning
// it pays.
func (d *Device) pinAgain(mem []byte) {
	if len(mem) < pinLeast || d.o.Pin < 0 {
		return
	}
	at := address(mem)
	switch before := d.seen[at]; {
	case before <= -len(mem): // it was pinned
	case before < len(mem):
		const many = 4096 // memory that is always another is not remembered for ever
		if len(d.seen) >= many {
			clear(d.seen)
		}
		d.seen[at] = len(mem)
	default:
		d.seen[at] = -len(mem)
		if _, auto := d.drv.pinned.used(d); auto+int64(len(mem)) <= d.o.Pin && d.Stats().Refused == nil {
			d.pin(mem, true)
		}
	}
}

// remove takes one element out of a list in which it may be.
func remove[T comparable](list []T, v T) []T {
	if i := slices.Index(list, v); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
