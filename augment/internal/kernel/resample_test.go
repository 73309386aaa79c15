package kernel

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"shardtool/internal/asmtest"
	"shardtool/internal/simd"
)

// both runs f in generic Go and in assembly, on memory that f gets from room:
// n bytes beside a wall, filled alike. What f returns must be the same bits.
func both(t *testing.T, seed uint64, f func(r *rand.Rand, room func(n int) []byte) [][]byte) {
	t.Helper()
	var got [2][][]byte
	for i, l := range []simd.Level{simd.Generic, simd.AVX2} {
		r := rand.New(rand.NewPCG(seed, 1))
		undo := simd.SetLevel(l)
		got[i] = f(r, func(n int) []byte {
			b := asmtest.Walled(t, n, r.IntN(2) == 0)
			for k := range b {
				b[k] = byte(r.Uint32())
			}
			return b
		})
		undo()
	}
	for k := range got[0] {
		if !bytes.Equal(got[0][k], got[1][k]) {
			t.Fatalf("seed %d: result %d of generic Go and of assembly differ", seed, k)
		}
	}
}

func as8[T any](v []T) []byte {
	return slices.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0]))))
}

// fillTaps draws weights of any size for outputs whose samples run one way.
func fillTaps(r *rand.Rand, w *Weights, outputs, held int) {
	n := 1 + r.IntN(min(held, 40))
	w.Reset(outputs, n)
	for o := range w.First {
		w.First[o] = int32(r.IntN(held - n + 1))
		if r.IntN(4) > 0 { // neighbours, as in a resize
			w.First[o] = int32(o * (held - n) / outputs)
		}
		for k := range n {
			w.W[k*w.Stride+o] = int32(r.IntN(1<<15) - 1<<14)
			if r.IntN(8) == 0 {
				w.W[k*w.Stride+o] = AcrossOne
			}
		}
	}
	for k := range n {
		clear(w.W[k*w.Stride+outputs : (k+1)*w.Stride])
	}
	slices.Sort(w.First)
	if r.IntN(2) == 0 {
		slices.Reverse(w.First)
	}
}

func TestAcrossSIMD(t *testing.T) {
	for seed := range uint64(2000) {
		both(t, seed, func(r *rand.Rand, room func(n int) []byte) [][]byte {
			outputs, held, rows := 1+r.IntN(70), 1+r.IntN(90), 1+r.IntN(9)
			if r.IntN(2) == 0 {
				outputs = max(outputs, held*2/3)
			}
			var a Across
			fillTaps(r, &a.Weights, outputs, held)
			a.Pack(held)
			stride := held + r.IntN(3)
			src := room((rows-1)*stride + held)
			width := (outputs + RowUnit - 1) &^ (RowUnit - 1)
			dst := words(room(2 * ((rows-1)*width + (outputs+7)&^7)))
			a.Run(dst, width, src, stride, rows)
			var out [][]byte
			for y := range rows {
				out = append(out, as8(dst[y*width:][:outputs]))
			}
			return out
		})
	}
}

func TestDownSIMD(t *testing.T) {
	for seed := range uint64(1000) {
		both(t, seed, func(r *rand.Rand, room func(n int) []byte) [][]byte {
			outputs, held, width := 1+r.IntN(20), 1+r.IntN(40), RowUnit*(1+r.IntN(3))
			var d Down
			fillTaps(r, &d.Weights, outputs, held)
			base := r.IntN(int(slices.Min(d.First)) + 1)
			src := words(room(2 * width * (held - base + d.N%2)))
			for i := range src { // as Across leaves them
				src[i] = int16(uint16(src[i]) % (acrossLimit + 1))
			}
			from := r.IntN(outputs)
			rows := 1 + r.IntN(outputs-from)
			dst := words(room(2 * width * rows))
			d.Run(dst, width, src, width, base, from, rows, width)
			return [][]byte{as8(dst)}
		})
	}
}

func TestTriangleSIMD(t *testing.T) {
	for seed := range uint64(3000) {
		both(t, seed, func(r *rand.Rand, _ func(n int) []byte) [][]byte {
			count, size := 1+r.IntN(1000), 1+r.IntN(300)
			scale := float64(count) / float64(size)
			tr := Triangle{
				From: float64(r.IntN(size)), Step: 1, Scale: scale, Support: max(1, scale),
				One: AcrossOne, Sign: 1, Count: int32(count), Start: int32(r.IntN(9)), Base: int32(r.IntN(5)),
			}
			tr.Inverse = float32(1 / tr.Support)
			outputs := size - int(tr.From)
			if r.IntN(2) == 0 {
				tr.Step, outputs, tr.One, tr.Sign = -1, int(tr.From)+1, 1<<15, -1
			}
			if r.IntN(4) == 0 {
				tr.Offset, tr.Scale = 0.25, (float64(count)-0.4)/float64(size)
			}
			halved := r.IntN(2) == 0
			n := int(math.Ceil(2 * tr.Support))
			if halved {
				n = n/2 + 2
			}
			var w Weights
			w.Reset(outputs, n)
			tr.Fill(&w, halved)
			for o := range w.First {
				sum := int32(0)
				for k := range n {
					sum += w.W[k*w.Stride+o]
				}
				if sum != int32(tr.One)*tr.Sign {
					t.Fatalf("seed %d: the weights of output %d sum to %d", seed, o, sum)
				}
			}
			return [][]byte{as8(w.First), as8(w.W)}
		})
	}
}

func TestColorWordsSIMD(t *testing.T) {
	for seed := range uint64(200) {
		both(t, seed, func(r *rand.Rand, room func(n int) []byte) [][]byte {
			n := RowUnit * (1 + r.IntN(5))
			bits := 6 + r.IntN(2)
			// What Down leaves is within 1.5 times 0..255 at 6 bits.
			draw := func() []int16 {
				v := words(room(2 * n))
				for i := range v {
					v[i] = int16(uint16(v[i])%(300<<6)) - 22<<6
					if bits == 7 {
						v[i] = int16(uint16(v[i]) % (acrossLimit + 1))
					}
				}
				return v
			}
			a, b, c := draw(), draw(), draw()
			switch r.IntN(3) {
			case 0:
				Color(a, b, c, bits)
			case 1:
				Luma(a, b, c)
			case 2:
				Limit(a, bits)
			}
			dst := words(room(2 * 3 * n))
			Interleave(dst, a, b, c)
			return [][]byte{as8(a), as8(b), as8(c), as8(dst)}
		})
	}
}

func TestStoreSIMD(t *testing.T) {
	for seed := range uint64(1000) {
		both(t, seed, func(r *rand.Rand, room func(n int) []byte) [][]byte {
			rect := Rect{Rows: 1 + r.IntN(4), Columns: 1 + r.IntN(100), Stream: r.IntN(2) == 0}
			if rect.Stream {
				rect.Columns = (rect.Columns + 15) &^ 15
			}
			rect.SrcStride = (rect.Columns + RowUnit - 1) &^ (RowUnit - 1)
			src := func() []int16 { return words(room(2 * ((rect.Rows-1)*rect.SrcStride + rect.Columns))) }
			var l Lines
			bits := 6 + r.IntN(2)
			l.Set(bits, []float32{0.0171, 3, -0.2}, []float32{-2.1, 70000, 1e-7})
			kind := r.IntN(5)
			size := [5]int{4, 2, 2, 1, 3}[kind]
			rect.Stride = size*rect.Columns + r.IntN(3)*r.IntN(2)
			dst := room((rect.Rows-1)*rect.Stride + size*rect.Columns)
			rect.Dst = dst
			if r.IntN(2) == 0 {
				rect.Offset, rect.Stride = (rect.Rows-1)*rect.Stride, -rect.Stride
			}
			switch kind {
			case 0:
				StoreFloat32(&rect, src(), &l)
			case 1:
				StoreFloat16(&rect, src(), &l)
			case 2:
				StoreBFloat16(&rect, src(), &l)
			case 3:
				StoreBytes(&rect, src(), bits)
			case 4:
				StorePixels(&rect, [3][]int16{src(), src(), src()}, bits)
			}
			Streamed()
			return [][]byte{bytes.Clone(dst)}
		})
	}
}
