//go:build linux && (amd64 || arm64)

package cuda_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"shardtool/device"
	"shardtool/device/cuda"
	"shardtool/tensor"
)

var (
	_ device.Device    = (*cuda.Device)(nil)
	_ device.Registrar = (*cuda.Device)(nil)
	_ device.Buffer    = (*cuda.Buffer)(nil)
)

// open opens a device of the stub. The test's end closes it.
func open(t *testing.T, n int, o cuda.Options) *cuda.Device {
	t.Helper()
	o.Library = stub.path
	d, err := cuda.Open(t.Context(), n, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}

func put(t *testing.T, d device.Device, arrays ...tensor.Dense) *cuda.Buffer {
	t.Helper()
	b, err := d.Put(t.Context(), arrays)
	if err != nil {
		t.Fatal(err)
	}
	return b.(*cuda.Buffer)
}

// arrive waits for a batch and compares it with what it must hold.
func arrive(t *testing.T, b *cuda.Buffer, want ...[]byte) {
	t.Helper()
	if err := b.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		got := make([]byte, len(w))
		if err := b.Read(t.Context(), i, got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, w) {
			t.Fatalf("array %d differs", i)
		}
	}
}

// pages returns memory of n bytes that begins at the beginning of a page.
func pages(n int) []byte {
	page := os.Getpagesize()
	mem := make([]byte, n+page)
	off := -int(uintptr(unsafe.Pointer(&mem[0]))) & (page - 1)
	return mem[off : off+n : off+n]
}

func fill(mem []byte, seed int) []byte {
	for i := range mem {
		mem[i] = byte(i*7 + i>>8*13 + seed*31)
	}
	return mem
}

func uint8s(mem []byte) tensor.Dense { return tensor.View(tensor.Uint8, tensor.Shape{len(mem)}, mem) }

func TestBatchArrives(t *testing.T) {
	withStub(t)
	if n, err := cuda.Count(&cuda.Options{Library: stub.path}); n != 2 || err != nil {
		t.Errorf("%d devices, %v", n, err)
	}
	d := open(t, 1, cuda.Options{})
	if d.Name() != "Stub 1" || d.Memory() != 2<<30 || d.Context() == 0 || d.Stream() == 0 {
		t.Errorf("%q, %d bytes, context %#x, stream %#x", d.Name(), d.Memory(), d.Context(), d.Stream())
	}
	var pool tensor.Pool
	images, _ := tensor.New(&pool, tensor.Float32, tensor.Shape{4, 3, 50, 50})
	none, _ := tensor.New(&pool, tensor.Int32, tensor.Shape{0, 5})
	labels, _ := tensor.New(&pool, tensor.Int64, tensor.Shape{4})
	one, _ := tensor.New(&pool, tensor.Uint8, nil)
	arrays := []tensor.Dense{images, none, labels, one}
	for i, a := range arrays {
		fill(a.Bytes(), i)
	}
	b := put(t, d, arrays...)
	arrive(t, b, images.Bytes(), nil, labels.Bytes(), one.Bytes())

	got := b.Arrays()
	base := got[0].Ptr
	for i, want := range []cuda.Array{
		{Ptr: base, DType: tensor.Float32, Shape: tensor.Shape{4, 3, 50, 50}},
		{Ptr: 0, DType: tensor.Int32, Shape: tensor.Shape{0, 5}},
		{Ptr: base + 120064, DType: tensor.Int64, Shape: tensor.Shape{4}}, // 120000, up to a multiple of 256
		{Ptr: base + 120320, DType: tensor.Uint8},
	} {
		if got[i].Ptr != want.Ptr || got[i].DType != want.DType || !slices.Equal(got[i].Shape, want.Shape) {
			t.Errorf("array %d is %+v, want %+v", i, got[i], want)
		}
	}
	if base == 0 || base%256 != 0 || b.Event() == 0 {
		t.Errorf("pointer %#x, event %#x", base, b.Event())
	}
	if st := d.Stats(); st != (cuda.Stats{Batches: 1, Bytes: 120000 + 32 + 1, DeviceBytes: 128 << 10}) {
		t.Errorf("stats %+v", st)
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{b.Read(t.Context(), 4, nil), "no array 4 in a batch of 4"},
		{b.Read(t.Context(), -1, nil), "no array -1"},
		{b.Read(t.Context(), 2, make([]byte, 31)), "array 2 has 32 bytes, not 31"},
	} {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%v, want %q", tt.err, tt.want)
		}
	}
	b.Release()
}

func TestBatchesWithoutBytes(t *testing.T) {
	withStub(t)
	d := open(t, 0, cuda.Options{Room: 1})
	for _, arrays := range [][]tensor.Dense{nil, {uint8s(nil)}} {
		b := put(t, d, arrays...)
		arrive(t, b)
		if err := b.ReleaseAfter(d.Stream()); err != nil {
			t.Error(err)
		}
	}
	if n := stub.calls("cuMemAlloc_v2"); n != 0 {
		t.Errorf("%d allocations", n)
	}
}

// What is put is read late: who changes it before Wait returns changes the
// batch, and afterwards does not. That shows that the other tests would notice a
// Wait that does not wait.
func TestStubIsLate(t *testing.T) {
	withStub(t)
	d := open(t, 0, cuda.Options{})
	mem := fill(make([]byte, 1000), 1)
	stub.hold(1)
	b := put(t, d, uint8s(mem))
	fill(mem, 2)
	stub.hold(0)
	arrive(t, b, fill(make([]byte, 1000), 2))

	stub.delay(3000)
	b = put(t, d, uint8s(fill(mem, 3)))
	if err := b.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	fill(mem, 4)
	arrive(t, b, fill(make([]byte, 1000), 3))
}

// Batches from a few places in memory, as those of a pool, on a device with
// room for three: each is written over as soon as Wait returns.
func TestHundredBatches(t *testing.T) {
	withStub(t)
	stub.delay(50)
	d := open(t, 0, cuda.Options{Room: 3})
	const places, size = 2, 200<<10 + 77
	memory := [places][]byte{pages(size), make([]byte, size)}
	var waiting []*cuda.Buffer
	next := func(i int) {
		b := waiting[0]
		waiting = waiting[1:]
		if err := b.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		fill(memory[i%places], -1)
		arrive(t, b, fill(make([]byte, size), i))
		b.Release()
	}
	for i := range 100 {
		if i >= places {
			next(i - places)
		}
		waiting = append(waiting, put(t, d, uint8s(fill(memory[i%places], i))))
	}
	next(98)
	next(99)
	st := d.Stats()
	if st.Batches != 100 || st.Bytes != 100*size || st.Refused != nil {
		t.Errorf("stats %+v", st)
	}
	if n := stub.calls("cuMemHostRegister_v2"); n != places {
		t.Errorf("memory was pinned %d times, for %d places", n, places)
	}
	// Pinned at the second time; each time up to a page at either end is not.
	page := int64(os.Getpagesize())
	if least := 98 * (size - 2*page); st.Pinned < least || st.Pinned > 98*size || st.Registered > places*size {
		t.Errorf("stats %+v", st)
	}
	if n := stub.calls("cuMemAlloc_v2"); n > 3 {
		t.Errorf("%d blocks", n)
	}
	if n := stub.calls("cuEventCreate"); n > 3 {
		t.Errorf("%d events", n)
	}
}

func TestPutPinsWithinItsBound(t *testing.T) {
	const size = 100 << 10
	for _, tt := range []struct {
		name string
		pin  int64
		size int
		want int32
	}{
		{"default", 0, size, 3},
		{"none", -1, size, 0},
		{"for two", 2*size + size/2, size, 2},
		{"small memory", 0, 64<<10 - 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withStub(t)
			d := open(t, 0, cuda.Options{Pin: tt.pin})
			memory := [3][]byte{pages(tt.size), pages(tt.size), pages(tt.size)}
			for round := range 4 {
				for i, mem := range memory {
					b := put(t, d, uint8s(fill(mem, i)))
					arrive(t, b, mem)
					b.Release()
				}
				want := tt.want
				if round == 0 {
					want = 0
				}
				if n := stub.calls("cuMemHostRegister_v2"); n != want {
					t.Errorf("round %d: memory was pinned %d times, want %d", round, n, want)
				}
			}
		})
	}
}

func TestWaitAndPutEndWithTheirContext(t *testing.T) {
	withStub(t)
	d := open(t, 0, cuda.Options{Room: 2})
	mem := fill(make([]byte, 100), 1)
	stub.hold(1)
	a, b := put(t, d, uint8s(mem)), put(t, d, uint8s(mem))
	for name, f := range map[string]func(ctx context.Context) error{
		"Wait":             a.Wait,
		"Read":             func(ctx context.Context) error { return a.Read(ctx, 0, make([]byte, 100)) },
		"Put without room": func(ctx context.Context) error { return second(d.Put(ctx, []tensor.Dense{uint8s(mem)})) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error)
		go func() { got <- f(ctx) }()
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if err := f(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, begun too late: %v", name, err)
		}
	}
	if _, err := cuda.Open(ended(), 0, &cuda.Options{Library: stub.path}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open: %v", err)
	}
	stub.hold(0)
	arrive(t, a, mem)
	arrive(t, b, mem)
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// late is a context that has ended, and does not say so when first asked.
type late struct {
	context.Context
	asked bool
}

func (l *late) Err() error {
	if !l.asked {
		l.asked = true
		return nil
	}
	return l.Context.Err()
}

func second[T any](_ T, err error) error { return err }

// A batch that is released on its way gives room when it has arrived.
func TestReleaseMakesRoom(t *testing.T) {
	withStub(t)
	d := open(t, 0, cuda.Options{Room: 2})
	x, y, z := fill(make([]byte, 3000), 1), fill(make([]byte, 3000), 2), fill(make([]byte, 3000), 3)
	stub.hold(1)
	a, b := put(t, d, uint8s(x)), put(t, d, uint8s(y))
	b.Release()
	b.Release()
	if err := b.Wait(t.Context()); !errors.Is(err, device.ErrReleased) {
		t.Errorf("Wait: %v", err)
	}
	for range 20 { // the context has ended when Put looks for room: it finds either
		if _, err := d.Put(&late{Context: ended()}, []tensor.Dense{uint8s(z)}); !errors.Is(err, context.Canceled) {
			t.Fatalf("a batch was put where two are on the device: %v", err)
		}
	}
	got := make(chan *cuda.Buffer)
	go func() { got <- put(t, d, uint8s(z)) }()
	stub.hold(0)
	c := <-got
	arrive(t, a, x)
	arrive(t, c, z)
	if n := stub.calls("cuMemAlloc_v2"); n != 2 {
		t.Errorf("%d blocks", n)
	}
	for name, err := range map[string]error{
		"WaitOn": b.WaitOn(d.Stream()), "ReleaseAfter": b.ReleaseAfter(d.Stream()), "Read": b.Read(t.Context(), 0, make([]byte, 3000)),
	} {
		if !errors.Is(err, device.ErrReleased) {
			t.Errorf("%s after Release: %v", name, err)
		}
	}
}

// Blocks of one size are used again; of another, they make way.
func TestBlocks(t *testing.T) {
	withStub(t)
	d := open(t, 0, cuda.Options{Room: 2})
	for i, tt := range []struct {
		bytes  int
		allocs int32
		held   int32
		memory int64
	}{
		{1000, 1, 1, 1024},
		{1, 1, 1, 1024},
		{1025, 2, 2, 1024 + 1280},
		{1200, 2, 2, 1024 + 1280},
		{900, 2, 2, 1024 + 1280},
		{5000, 3, 2, 5120 + 1280}, // 5000 up to a quarter of 4096 and a multiple
		{6000, 4, 2, 5120 + 6144},
	} {
		mem := fill(make([]byte, tt.bytes), i)
		b := put(t, d, uint8s(mem))
		arrive(t, b, mem)
		b.Release()
		allocs, held, memory := stub.calls("cuMemAlloc_v2"), stub.held('m'), d.Stats().DeviceBytes
		if allocs != tt.allocs || held != tt.held || i < 5 && memory != tt.memory {
			t.Errorf("%d bytes: %d allocations, %d blocks of %d bytes; want %+v", tt.bytes, allocs, held, memory, tt)
		}
	}
}

func TestOutOfMemory(t *testing.T) {
	withStub(t)
	stub.limit(10<<10, 0)
	d := open(t, 0, cuda.Options{})
	small, large := fill(make([]byte, 4<<10), 1), fill(make([]byte, 8<<10), 2)
	a, b := put(t, d, uint8s(small)), put(t, d, uint8s(small))
	_, err := d.Put(t.Context(), []tensor.Dense{uint8s(large)})
	var e *cuda.Error
	if !errors.As(err, &e) || e.Code != 2 || e.Call != "cuMemAlloc_v2" ||
		err.Error() != "cuda: cuMemAlloc_v2: out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2)" {
		t.Errorf("%v", err)
	}
	arrive(t, a, small)
	arrive(t, b, small)
	a.Release()
	b.Release()
	arrive(t, put(t, d, uint8s(large)), large) // idle blocks make way
	if got := d.Stats().DeviceBytes; got != 8<<10 {
		t.Errorf("%d bytes of the device are held", got)
	}
}

func TestRegister(t *testing.T) {
	page := os.Getpagesize()
	for _, tt := range []struct {
		name     string
		register [][2]int // from and to, in tenths of a page
		calls    int32
		pinned   int64 // pages
	}{
		{"all", [][2]int{{0, 100}}, 1, 10},
		{"twice", [][2]int{{0, 100}, {0, 100}}, 1, 10},
		{"a part again", [][2]int{{0, 100}, {20, 50}, {55, 100}}, 1, 10},
		{"whole pages only", [][2]int{{5, 38}}, 1, 2},
		{"less than a page", [][2]int{{5, 14}, {11, 19}}, 0, 0},
		{"nothing", [][2]int{{7, 7}}, 0, 0},
		{"overlap", [][2]int{{0, 55}, {30, 100}}, 2, 10},
		{"neighbours in one page", [][2]int{{0, 34}, {34, 100}}, 2, 9},
		{"a gap filled", [][2]int{{20, 30}, {60, 70}, {0, 100}}, 5, 10},
		{"in front", [][2]int{{50, 100}, {0, 60}}, 2, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withStub(t)
			d := open(t, 0, cuda.Options{})
			mem := fill(pages(10*page), 1)
			for _, r := range tt.register {
				if err := d.Register(mem[r[0]*page/10 : r[1]*page/10]); err != nil {
					t.Fatal(err)
				}
			}
			st := d.Stats()
			if n := stub.calls("cuMemHostRegister_v2"); n != tt.calls || st.Registered != tt.pinned*int64(page) || st.Refused != nil {
				t.Errorf("pinned %d times, %+v; want %d times, %d pages", n, st, tt.calls, tt.pinned)
			}
			arrive(t, put(t, d, uint8s(mem)), mem)
			if got := d.Stats().Pinned; got != tt.pinned*int64(page) {
				t.Errorf("%d bytes from pinned memory, want %d pages", got, tt.pinned)
			}
		})
	}
}

func TestUnregister(t *testing.T) {
	withStub(t)
	page := os.Getpagesize()
	d, other := open(t, 0, cuda.Options{Pin: -1}), open(t, 1, cuda.Options{Pin: -1})
	stub.delay(200)
	mem := fill(pages(100*page), 1)
	for _, f := range []struct {
		name   string
		do     func() error
		ranges int32 // that are pinned
		used   int   // pages of these, by the first device
	}{
		{"register", func() error { return d.Register(mem[:10*page]) }, 1, 10},
		{"and more", func() error { return d.Register(mem[:20*page]) }, 2, 20},
		{"a part of a range", func() error { return d.Unregister(mem[:9*page]) }, 2, 20},
		{"one range", func() error { return d.Unregister(mem[5*page : 25*page]) }, 1, 10},
		{"what another pinned", func() error { return other.Register(mem[30*page : 40*page]) }, 2, 10},
		{"what another pinned, and was used", func() error { return d.Unregister(mem) }, 1, 0},
		{"its memory used", func() error { return d.Register(mem[25*page : 35*page]) }, 2, 15},
		{"left by who pinned it", func() error { return other.Unregister(mem) }, 2, 15},
		{"left by the last", func() error { return d.Unregister(mem) }, 0, 0},
		{"twice", func() error { return d.Unregister(mem) }, 0, 0},
		{"nothing", func() error { return d.Unregister(nil) }, 0, 0},
	} {
		b := put(t, d, uint8s(mem[:50*page]))
		if err := f.do(); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
		arrive(t, b, mem[:50*page])
		b.Release()
		if n, used := stub.held('p'), d.Stats().Registered/int64(page); n != f.ranges || used != int64(f.used) {
			t.Errorf("%s: %d ranges, %d pages of which are used; want %d, %d", f.name, n, used, f.ranges, f.used)
		}
	}
}

// What Put pinned by itself is forgotten, too, and pinned again when it comes
// again.
func TestUnregisterWhatPutPinned(t *testing.T) {
	withStub(t)
	d := open(t, 0, cuda.Options{})
	mem := fill(pages(100<<10), 1)
	for i, want := range []int32{0, 1, 1, 1, 2, 2} {
		if i == 3 {
			if err := d.Unregister(mem); err != nil {
				t.Error(err)
			}
			if n := d.Stats().Registered; n != 0 {
				t.Errorf("%d bytes are pinned", n)
			}
		}
		b := put(t, d, uint8s(mem))
		arrive(t, b, mem)
		b.Release()
		if n := stub.calls("cuMemHostRegister_v2"); n != want {
			t.Errorf("batch %d: pinned %d times, want %d", i, n, want)
		}
	}
}

func TestPinningRefused(t *testing.T) {
	withStub(t)
	page := os.Getpagesize()
	stub.limit(0, uint64(4*page))
	var log bytes.Buffer
	d := open(t, 0, cuda.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	mem, more := fill(pages(4*page), 1), fill(pages(40*page), 2)
	for range 3 {
		for _, m := range [][]byte{mem, more} {
			if err := d.Register(m); err != nil {
				t.Errorf("Register: %v", err)
			}
		}
	}
	for range 3 { // Put does not try again
		b := put(t, d, uint8s(mem), uint8s(more))
		arrive(t, b, mem, more)
		b.Release()
	}
	if n := stub.calls("cuMemHostRegister_v2"); n != 1+3 {
		t.Errorf("%d tries to pin", n)
	}
	st := d.Stats()
	var e *cuda.Error
	if !errors.As(st.Refused, &e) || e.Call != "cuMemHostRegister_v2" || e.Code != 2 {
		t.Errorf("refused: %v", st.Refused)
	}
	if st.Registered != int64(4*page) || st.Pinned != 3*int64(4*page) {
		t.Errorf("stats %+v", st)
	}
	if n := strings.Count(log.String(), "cannot be pinned"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
}

// Memory that two devices use is pinned once, until the last of them is closed,
// whichever pinned it.
func TestTwoDevices(t *testing.T) {
	withStub(t)
	stub.delay(20)
	page := os.Getpagesize()
	mem := pages(64 * page)
	first, other := open(t, 0, cuda.Options{}), open(t, 1, cuda.Options{})
	if first.Name() == other.Name() || first.Context() == other.Context() {
		t.Error("the devices are one")
	}
	if err := first.Register(mem[:32*page]); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		fill(mem, i)
		a, b := put(t, first, uint8s(mem)), put(t, other, uint8s(mem))
		arrive(t, a, mem)
		arrive(t, b, mem)
		a.Release()
		b.Release()
	}
	if n, m := first.Stats().Registered, other.Stats().Registered; n != int64(64*page) || m != n {
		t.Errorf("%d and %d bytes pinned", n, m)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if n := stub.calls("cuMemHostUnregister"); n != 0 {
		t.Errorf("%d ranges were unpinned that are in use", n)
	}
	arrive(t, put(t, other, uint8s(fill(mem, 99))), mem)
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if n := stub.held('p'); n != 0 {
		t.Errorf("%d ranges are left", n)
	}
	again := open(t, 0, cuda.Options{})
	arrive(t, put(t, again, uint8s(mem)), mem)
}

// WaitOn and ReleaseAfter order a stream of the trainer's with that of the
// device. Here it is the stream of a second Device on the same accelerator.
func TestStreamsOfOthers(t *testing.T) {
	withStub(t)
	stub.delay(20)
	d, trainer := open(t, 0, cuda.Options{Room: 1}), open(t, 0, cuda.Options{})
	if d.Context() != trainer.Context() || d.Stream() == trainer.Stream() {
		t.Fatal("a context of its own, or one stream")
	}
	for i := range 10 {
		mem := fill(make([]byte, 500+1000*(i/5)), i) // of a size that takes another block, in the end
		b := put(t, d, uint8s(mem))
		if err := b.WaitOn(trainer.Stream()); err != nil {
			t.Fatal(err)
		}
		arrive(t, b, mem)
		if err := b.ReleaseAfter(trainer.Stream()); err != nil {
			t.Fatal(err)
		}
	}
	// Each batch is waited for once, and but for the first and that which took a
	// new block, each waits for the one before it.
	if n := stub.calls("cuStreamWaitEvent"); n != 10+8 {
		t.Errorf("streams waited %d times", n)
	}
	// The block that made way was waited for, as was each batch.
	if n := stub.calls("cuEventSynchronize"); n != 10+1 {
		t.Errorf("events were waited for %d times", n)
	}
	b := put(t, d, uint8s(make([]byte, 1500)))
	arrive(t, b)
	if err := b.ReleaseAfter(12345); err == nil {
		t.Error("released behind a stream that is not there")
	}
	arrive(t, b) // still there
	text := make([]byte, 1000)
	if stub.report(&text[0], 1000) != 1 || !strings.HasPrefix(string(text), "a stream that is not there") {
		t.Errorf("%q", text)
	}
	for _, d := range []*cuda.Device{d, trainer} {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	stub.reset() // that fault was meant
}

// A device that copies from what another has pinned keeps it pinned.
func TestCloseOfWhoPinned(t *testing.T) {
	withStub(t)
	mem := fill(pages(20<<10), 1)
	first, other := open(t, 0, cuda.Options{}), open(t, 1, cuda.Options{})
	if err := first.Register(mem); err != nil {
		t.Fatal(err)
	}
	stub.hold(1)
	b := put(t, other, uint8s(mem))
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if n := stub.held('p'); n != 1 {
		t.Errorf("%d ranges are pinned", n)
	}
	stub.hold(0)
	arrive(t, b, mem)
}

// When Put fails, the arrays are the caller's: no copy of them runs on.
func TestPutThatFailsHalfway(t *testing.T) {
	withStub(t)
	d := open(t, 0, cuda.Options{Room: 1})
	stub.delay(2000)
	for name, nth := range map[string]int32{"cuMemcpyHtoDAsync_v2": 2, "cuEventRecord": 1} {
		stub.fail(name, nth, 1)
		arrays := []tensor.Dense{uint8s(make([]byte, 100)), uint8s(make([]byte, 200))}
		if _, err := d.Put(t.Context(), arrays); err == nil {
			t.Errorf("no error of %s", name)
		}
		if n := stub.held('q'); n != 0 {
			t.Errorf("%d copies run", n)
		}
	}
	mem := fill(make([]byte, 300), 1)
	arrive(t, put(t, d, uint8s(mem)), mem) // there is room
}

func TestCloseWaitsForWhatWasPut(t *testing.T) {
	withStub(t)
	d := open(t, 0, cuda.Options{Room: 3})
	mem := fill(pages(100<<10), 1)
	if err := d.Register(mem); err != nil {
		t.Fatal(err)
	}
	stub.hold(1)
	a, b, c := put(t, d, uint8s(mem)), put(t, d, uint8s(mem)), put(t, d, uint8s(mem))
	b.Release()
	waiting := make(chan error)
	go func() { waiting <- second(d.Put(t.Context(), []tensor.Dense{uint8s(mem)})) }()
	closing := make(chan error)
	for range 2 {
		go func() { closing <- d.Close() }()
	}
	select {
	case err := <-closing:
		t.Errorf("closed with batches on their way: %v", err)
	default:
	}
	stub.hold(0)
	for range 2 {
		if err := <-closing; err != nil {
			t.Error(err)
		}
	}
	if err := <-waiting; err != nil && !errors.Is(err, device.ErrClosed) { // or it came before the Close
		t.Errorf("Put that waited for room: %v", err)
	}
	for name, err := range map[string]error{
		"Put": second(d.Put(t.Context(), nil)), "Register": d.Register(mem),
		"Wait": a.Wait(t.Context()), "Wait of one released": b.Wait(t.Context()),
		"Unregister": d.Unregister(mem), "WaitOn": c.WaitOn(1), "ReleaseAfter": c.ReleaseAfter(1), "Read": c.Read(t.Context(), 0, nil),
	} {
		if !errors.Is(err, device.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	a.Release()
	c.Release()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// A copy that fails on the device is an error of its Wait, and of Close.
func TestCopiesFail(t *testing.T) {
	withStub(t)
	o := cuda.Options{Library: stub.path}
	d, err := cuda.Open(t.Context(), 0, &o)
	if err != nil {
		t.Fatal(err)
	}
	stub.broken(1)
	b := put(t, d, uint8s(make([]byte, 10)))
	var e *cuda.Error
	if err := b.Wait(t.Context()); !errors.As(err, &e) || e.Name != "CUDA_ERROR_LAUNCH_FAILED" {
		t.Errorf("Wait: %v", err)
	}
	b.Release()
	if err := d.Close(); !errors.As(err, &e) {
		t.Errorf("Close: %v", err)
	}
}

// scenario makes every call there is at least once.
func scenario(ctx context.Context) (refused, err error) {
	d, err := cuda.Open(ctx, 1, &cuda.Options{Library: stub.path, Room: 1})
	if err != nil {
		return nil, err
	}
	var errs []error
	mem := fill(pages(80<<10), 1)
	errs = append(errs, d.Register(mem[:20<<10]))
	for _, size := range []int{80 << 10, 80 << 10, 10 << 10} {
		b, err := d.Put(ctx, []tensor.Dense{uint8s(mem[:size]), uint8s(mem[:100])})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, b.Wait(ctx))
		got := make([]byte, size)
		err = b.(*cuda.Buffer).Read(ctx, 0, got)
		if err == nil && !bytes.Equal(got, mem[:size]) {
			err = fmt.Errorf("a batch of %d bytes differs", size)
		}
		errs = append(errs, err, b.(*cuda.Buffer).ReleaseAfter(d.Stream()))
		b.Release()
	}
	errs = append(errs, d.Unregister(mem[:20<<10]))
	refused = d.Stats().Refused
	return refused, errors.Join(append(errs, d.Close())...)
}

// Each call fails once, wherever it is made: that is an error which names it, or
// memory that is not pinned; nothing else goes wrong, and nothing is left.
func TestEveryCallMayFail(t *testing.T) {
	withStub(t)
	if refused, err := scenario(t.Context()); refused != nil || err != nil {
		t.Fatal(refused, err)
	}
	for name, least := range map[string]int{
		"cuInit": 1, "cuDeviceGetCount": 1, "cuDeviceGet": 1, "cuDeviceGetName": 1, "cuDeviceTotalMem_v2": 1,
		"cuDevicePrimaryCtxRetain": 3, "cuDevicePrimaryCtxRelease_v2": 3, "cuCtxSetCurrent": 4,
		"cuMemHostRegister_v2": 2, "cuMemHostUnregister": 2, "cuMemAlloc_v2": 2, "cuMemFree_v2": 2,
		"cuMemcpyHtoDAsync_v2": 6, "cuMemcpyDtoHAsync_v2": 3,
		"cuStreamCreate": 1, "cuStreamDestroy_v2": 1, "cuStreamSynchronize": 4, "cuStreamWaitEvent": 1,
		"cuEventCreate": 2, "cuEventDestroy_v2": 2, "cuEventRecord": 6, "cuEventSynchronize": 4,
	} {
		nth := 1
		for ; ; nth++ {
			stub.reset()
			stub.fail(name, int32(nth), 719)
			refused, err := scenario(t.Context())
			if int(stub.calls(name)) < nth {
				break
			}
			var e *cuda.Error
			if !errors.As(errors.Join(err, refused), &e) || e.Call != name || e.Code != 719 || e.Name != "CUDA_ERROR_LAUNCH_FAILED" || e.Text == "" {
				t.Errorf("call %d of %s: %v, refused %v", nth, name, err, refused)
			}
			checkStub(t)
		}
		if nth-1 < least {
			t.Errorf("%s was called %d times", name, nth-1)
		}
	}
}

func TestErrorsWithoutWords(t *testing.T) {
	for _, tt := range []struct {
		fail string
		code int32
		want string
	}{
		{"cuGetErrorName", 719, "cuda: cuStreamCreate: error 719"},
		{"cuGetErrorString", 719, "cuda: cuStreamCreate: CUDA_ERROR_LAUNCH_FAILED (719)"},
		{"", 719, "cuda: cuStreamCreate: unspecified launch failure (CUDA_ERROR_LAUNCH_FAILED, 719)"},
		{"", 98765, "cuda: cuStreamCreate: error 98765"},
	} {
		withStub(t)
		stub.fail("cuStreamCreate", 1, tt.code)
		if tt.fail != "" {
			stub.fail(tt.fail, 1, 1)
		}
		if _, err := cuda.Open(t.Context(), 0, &cuda.Options{Library: stub.path}); err == nil || err.Error() != tt.want {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

func TestOpenFails(t *testing.T) {
	withStub(t)
	for _, tt := range []struct {
		library     string
		n           int
		unsupported bool
		want        string
	}{
		{"/nowhere/libcuda.so.1", 0, true, "/nowhere/libcuda.so.1"},
		{"libc.so.6", 0, true, "cuInit"},
		{stub.path, 2, false, "there is no device 2: 2 are known"},
		{stub.path, -1, false, "there is no device -1"},
	} {
		_, err := cuda.Open(t.Context(), tt.n, &cuda.Options{Library: tt.library})
		if err == nil || errors.Is(err, cuda.ErrUnsupported) != tt.unsupported || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("device %d of %s: %v", tt.n, tt.library, err)
		}
	}
	if _, err := cuda.Count(&cuda.Options{Library: "/nowhere/libcuda.so.1"}); !errors.Is(err, cuda.ErrUnsupported) {
		t.Errorf("Count: %v", err)
	}
}

// Calls come from one thread that is the device's; others have no context.
func TestThreadsOfTheProgramHaveNoContext(t *testing.T) {
	withStub(t)
	d := open(t, 0, cuda.Options{Room: 8})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			mem := fill(make([]byte, 70<<10), i)
			for range 10 {
				b, err := d.Put(t.Context(), []tensor.Dense{uint8s(mem)})
				if err != nil {
					t.Error(err)
					return
				}
				got := make([]byte, len(mem))
				if err := b.(*cuda.Buffer).Read(t.Context(), 0, got); err != nil || !bytes.Equal(got, mem) {
					t.Errorf("%v, or other bytes", err)
				}
				b.Release()
				if c := stub.now(); c != 0 {
					t.Errorf("context %d on a thread of the program", c)
				}
			}
		})
	}
	all.Wait()
}

// However memory is pinned and batches lie in it, they arrive.
func TestPinnedAndNot(t *testing.T) {
	withStub(t)
	page := os.Getpagesize()
	rapid.Check(t, func(rt *rapid.T) {
		mem := fill(pages(12*page), 3)
		part := func(label string) []byte {
			lo := rapid.IntRange(0, len(mem)).Draw(rt, label+" from")
			return mem[lo:rapid.IntRange(lo, len(mem)).Draw(rt, label+" to")]
		}
		o := cuda.Options{Library: stub.path}
		d, err := cuda.Open(t.Context(), 0, &o)
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			m := part("part")
			if rapid.Bool().Draw(rt, "register") {
				if err := d.Register(m); err != nil {
					rt.Fatal(err)
				}
				continue
			}
			b, err := d.Put(t.Context(), []tensor.Dense{uint8s(m)})
			if err != nil {
				rt.Fatal(err)
			}
			got := make([]byte, len(m))
			if err := b.(*cuda.Buffer).Read(t.Context(), 0, got); err != nil || !bytes.Equal(got, m) {
				rt.Fatalf("%v, or other bytes", err)
			}
			b.Release()
		}
		if err := d.Close(); err != nil {
			rt.Fatal(err)
		}
		if st := d.Stats(); st.Registered > int64(len(mem)) || st.Refused != nil {
			rt.Fatalf("%+v", st)
		}
	})
}
