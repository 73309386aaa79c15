package tensor_test

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"shardtool/tensor"
)

func TestBytes(t *testing.T) {
	for _, tt := range []struct {
		dtype tensor.DType
		shape tensor.Shape
		want  int64
		fails bool
	}{
		{tensor.Float32, tensor.Shape{64, 3, 224, 224}, 64 * 3 * 224 * 224 * 4, false},
		{tensor.Int64, nil, 8, false},
		{tensor.Uint8, tensor.Shape{0, 7}, 0, false},
		{tensor.Uint8, tensor.Shape{0, math.MaxInt}, 0, true},
		{tensor.Uint8, tensor.Shape{math.MaxInt, 0}, 0, true},
		{tensor.Float32, tensor.Shape{math.MaxInt, math.MaxInt}, 0, true},
		{tensor.Float32, tensor.Shape{-1}, 0, true},
		{tensor.Float32, tensor.Shape{0, -1}, 0, true},
	} {
		got, err := tensor.Bytes(tt.dtype, tt.shape)
		if got != tt.want || (err != nil) != tt.fails {
			t.Errorf("Bytes(%v, %v) = %d, %v; want %d, error %v", tt.dtype, tt.shape, got, err, tt.want, tt.fails)
		}
	}
}

func TestBuffersAreAligned(t *testing.T) {
	var p tensor.Pool
	for _, n := range []int{0, 1, 63, 64, 65, 255, 256, 257, 1000, 4096, 1<<20 - 1, 1 << 20, 1<<20 + 1} {
		b := p.Get(n)
		if len(b.Bytes()) != n || cap(b.Bytes()) != n {
			t.Errorf("Get(%d) has %d bytes and room for %d", n, len(b.Bytes()), cap(b.Bytes()))
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(b.Bytes()))); at%tensor.Alignment != 0 {
			t.Errorf("Get(%d) starts at %#x", n, at)
		}
		if size := b.Size(); size < n || size%tensor.Alignment != 0 || n > 256 && size > n+n/4 {
			t.Errorf("Get(%d) takes up %d", n, size)
		}
		b.Release()
	}
}

func TestViews(t *testing.T) {
	var p tensor.Pool
	b := p.Get(2 * 3 * 4)
	defer b.Release()
	d := tensor.View(tensor.Float32, tensor.Shape{2, 3}, b.Bytes())
	for i := range 6 {
		d.Float32()[i] = float32(i)
	}
	row := d.At(1)
	if !slices.Equal(row.Float32(), []float32{3, 4, 5}) || row.Shape().String() != "[3]" || row.DType().String() != "float32" {
		t.Errorf("row 1 is %v, %v of %v", row.Float32(), row.Shape(), row.DType())
	}
	if got := row.At(2); got.Float32()[0] != 5 || got.Shape().Elems() != 1 {
		t.Errorf("element 1, 2 is %v", got.Float32())
	}
	if n := testing.AllocsPerRun(100, func() { d.At(1).At(2).Float32()[0]++ }); n != 0 {
		t.Errorf("a view allocates %v times", n)
	}
	for what, f := range map[string]func(){
		"wrong type":  func() { d.Int64() },
		"beyond":      func() { d.At(2) },
		"before":      func() { d.At(-1) },
		"wrong size":  func() { tensor.View(tensor.Float32, tensor.Shape{5}, b.Bytes()) },
		"misaligned":  func() { tensor.View(tensor.Float32, tensor.Shape{1}, b.Bytes()[1:5]) },
		"not a shape": func() { tensor.View(tensor.Float32, tensor.Shape{-6}, b.Bytes()) },
	} {
		if panicOf(f) == "" {
			t.Errorf("%s did not panic", what)
		}
	}
	empty := tensor.View(tensor.Int64, tensor.Shape{0, 7}, nil)
	if len(empty.Int64()) != 0 {
		t.Error("an empty array has elements")
	}
}

func TestCountOfHolders(t *testing.T) {
	var p tensor.Pool
	b := p.Get(100)
	b.Retain()
	b.Release()
	b.Bytes()[0] = 1 // still held
	b.Release()
	if got := panicOf(b.Release); !strings.Contains(got, "released") {
		t.Errorf("one Release too many: %q", got)
	}
}

func TestMaxIdle(t *testing.T) {
	p := tensor.Pool{MaxIdle: 4096}
	big, small := p.Get(8192), p.Get(4096)
	small.Bytes()[0], big.Bytes()[0] = 1, 1
	first := unsafe.SliceData(small.Bytes())
	small.Release()
	big.Release()
	if again := p.Get(4000); unsafe.SliceData(again.Bytes()) != first {
		t.Error("memory within the bound was not reused")
	}
}

func TestPoolIsSafeForSeveral(t *testing.T) {
	var p tensor.Pool
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				b := p.Get(100 + i%3*1000)
				mark := byte(g)
				for j := range b.Bytes() {
					b.Bytes()[j] = mark
				}
				b.Retain()
				b.Release()
				for _, v := range b.Bytes() {
					if v != mark {
						t.Error("two hold one buffer")
						return
					}
				}
				b.Release()
			}
		})
	}
	wg.Wait()
}

func panicOf(f func()) (message string) {
	defer func() {
		if r := recover(); r != nil {
			message, _ = r.(string)
		}
	}()
	f()
	return ""
}

func TestStrides(t *testing.T) {
	for _, tt := range []struct {
		shape tensor.Shape
		want  []int
	}{{nil, []int{}}, {tensor.Shape{7}, []int{1}}, {tensor.Shape{64, 3, 224, 224}, []int{150528, 50176, 224, 1}}} {
		if got := tt.shape.Strides(); !slices.Equal(got, tt.want) {
			t.Errorf("%v: %v, want %v", tt.shape, got, tt.want)
		}
	}
}

func TestNew(t *testing.T) {
	var pool tensor.Pool
	d, buf := tensor.New(&pool, tensor.Float16, tensor.Shape{3, 5})
	if d.DType() != tensor.Float16 || len(d.Bytes()) != 30 || &d.Bytes()[0] != &buf.Bytes()[0] {
		t.Errorf("%v %v of %d bytes", d.DType(), d.Shape(), len(d.Bytes()))
	}
	buf.Release()
	defer func() {
		if recover() == nil {
			t.Error("a negative axis is accepted")
		}
	}()
	tensor.New(&pool, tensor.Uint8, tensor.Shape{-1})
}
