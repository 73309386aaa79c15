package kernel

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"shardtool/internal/asmtest"
	"shardtool/internal/simd"
)

// TestIDCTByHand: a block of one mean, 8 times which is its first coefficient.
func TestIDCTByHand(t *testing.T) {
	one := [64]int16{}
	for k := range one {
		one[k] = 1
	}
	for _, tt := range []struct {
		name  string
		coefs map[int]int16
		want  byte // everywhere
	}{
		{"nothing is mid-gray", nil, 128},
		{"a mean of -128", map[int]int16{0: -1024}, 0},
		{"a mean of 127", map[int]int16{0: 1016}, 255},
		{"beyond black", map[int]int16{0: -2000}, 0},
		{"beyond white", map[int]int16{0: 2000}, 255},
		{"halves go up", map[int]int16{0: 4}, 129},
		{"less than halves go down", map[int]int16{0: 3}, 128},
		{"14 bits, flat: wraps to 2000", map[int]int16{0: 2000 + 1<<14}, 255},
		{"14 bits, flat: wraps to -2000", map[int]int16{0: -2000 + 1<<14}, 0},
	} {
		var coefs [64]int16
		for k, v := range tt.coefs {
			coefs[k] = v
		}
		levels(t, func(t *testing.T) {
			for size, f := range map[int]func([]byte, int, []int16, *[64]int16, int){8: IDCT, 4: IDCT4, 2: IDCT2, 1: IDCT1} {
				if size < 4 && tt.coefs[0] >= 1<<13 {
					continue // those do not wrap so
				}
				dst := make([]byte, size*size)
				f(dst, size, coefs[:], &one, 1)
				if !bytes.Equal(dst, bytes.Repeat([]byte{tt.want}, size*size)) {
					t.Errorf("%s, size %d: %d, want %d", tt.name, size, dst, tt.want)
				}
			}
		})
	}
}

// TestIDCTIsAccurate compares with the definition (ITU-T T.81, A.3.3) in
// float64, within the bounds that IEEE 1180-1990 sets.
func TestIDCTIsAccurate(t *testing.T) {
	var basis [8][8]float64
	for x := range 8 {
		for u := range 8 {
			basis[x][u] = math.Cos(float64(2*x+1)*float64(u)*math.Pi/16) / 2
			if u == 0 {
				basis[x][u] /= math.Sqrt2
			}
		}
	}
	s, sum, squares := lcg(1), 0.0, 0.0
	const blocks = 5000
	for range blocks {
		coefs, quant := s.block(ordinary)
		var dst [64]byte
		idctGeneric(dst[:], 8, coefs[:], &quant, 1)
		for y := range 8 {
			for x := range 8 {
				v := 0.0
				for k := range coefs {
					v += float64(coefs[k]) * float64(quant[k]) * basis[y][k/8] * basis[x][k%8]
				}
				v = max(0, min(255, math.Floor(v+128.5)))
				diff := float64(dst[8*y+x]) - v
				if math.Abs(diff) > 1 {
					t.Fatalf("sample %d,%d is %d, want %v", x, y, dst[8*y+x], v)
				}
				sum += diff
				squares += diff * diff
			}
		}
	}
	if mean, square := sum/(64*blocks), squares/(64*blocks); math.Abs(mean) > 0.0015 || square > 0.02 {
		t.Errorf("mean error %v, mean square error %v", mean, square)
	}
}

// words views bytes as words.
func words(b []byte) []int16 {
	return unsafe.Slice((*int16)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/2)
}

const canary = 0xA5

// transforms are those that have an assembly form.
var transforms = []struct {
	name         string
	size         int
	any, generic func([]byte, int, []int16, *[64]int16, int)
}{
	{"IDCT", 8, IDCT, idctGeneric},
	{"IDCT4", 4, IDCT4, idct4Generic},
}

// TestIDCTSIMD: the same samples as the generic form for every number of
// blocks, alignment and kind of input, and nothing written outside of them.
func TestIDCTSIMD(t *testing.T) {
	defer simd.SetLevel(simd.AVX2)()
	s := lcg(7)
	memory := make([]int16, 64*71)
	got, want := make([]byte, 64+8*(8*71+64)), make([]byte, 64+8*(8*71+64))
	for _, tt := range transforms {
		for n := range 71 {
			for _, kind := range []int{ordinary, hostile, flat} {
				var quant [64]int16
				coefs := memory[s.draw()%32:][:64*n]
				for i := range n {
					var block [64]int16
					block, quant = s.block([]int{kind, kind, flat}[s.draw()%3])
					copy(coefs[64*i:], block[:])
				}
				align, stride := s.draw()%64, tt.size*n+s.draw()%33
				for _, b := range [][]byte{got, want} {
					for i := range b {
						b[i] = canary
					}
				}
				tt.any(got[align:], stride, coefs, &quant, n)
				tt.generic(want[align:], stride, coefs, &quant, n)
				if !bytes.Equal(got, want) {
					t.Fatalf("%s: %d blocks of kind %d at %d, stride %d: differ", tt.name, n, kind, align, stride)
				}
			}
		}
	}
}

// TestIDCTStaysInside: nothing beyond the ends of the slices is touched.
func TestIDCTStaysInside(t *testing.T) {
	levels(t, func(t *testing.T) {
		s := lcg(3)
		for _, after := range []bool{true, false} {
			quant := (*[64]int16)(words(asmtest.Walled(t, 128, after)))
			for _, n := range []int{1, 2, 3, 6, 7} {
				coefs := words(asmtest.Walled(t, 128*n, after))
				for i := range n {
					block, q := s.block([]int{ordinary, flat}[i%2])
					copy(coefs[64*i:], block[:])
					*quant = q
				}
				for _, tt := range transforms {
					for _, stride := range []int{tt.size * n, tt.size*n + 5} {
						dst := asmtest.Walled(t, (tt.size-1)*stride+tt.size*n, after)
						tt.any(dst, stride, coefs, quant, n)
						want := make([]byte, len(dst))
						tt.generic(want, stride, coefs, quant, n)
						if !bytes.Equal(dst, want) {
							t.Errorf("%s, %d blocks: differ", tt.name, n)
						}
					}
				}
			}
		}
	})
}

func TestIDCTRefusesShortSlices(t *testing.T) {
	var quant [64]int16
	for name, f := range map[string]func(){
		"dst":   func() { IDCT(make([]byte, 7*16+15), 16, make([]int16, 128), &quant, 2) },
		"coefs": func() { IDCT(make([]byte, 128), 16, make([]int16, 127), &quant, 2) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s too short: no panic", name)
				}
			}()
			f()
		}()
	}
}

// photo makes n blocks like those of a photo at high quality.
func photo(n int) (coefs []int16, quant [64]int16) {
	r := rand.New(rand.NewPCG(1, 2))
	coefs = make([]int16, 64*n)
	for k := range quant {
		quant[k] = int16(3 + k/4)
	}
	for i := range n {
		coefs[64*i] = int16(r.IntN(600) - 300)
		for range 12 {
			coefs[64*i+r.IntN(40)] = int16(r.IntN(21) - 10)
		}
	}
	return coefs, quant
}

func BenchmarkIDCT(b *testing.B) {
	for _, n := range []int{1, 2, 50} {
		for _, l := range []simd.Level{simd.Generic, simd.AVX2} {
			b.Run(fmt.Sprintf("blocks=%d/%v", n, l), func(b *testing.B) {
				defer simd.SetLevel(l)()
				coefs, quant := photo(n)
				dst := make([]byte, 64*n)
				for b.Loop() {
					IDCT(dst, 8*n, coefs, &quant, n)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/block")
			})
		}
	}
}

func BenchmarkReducedIDCT(b *testing.B) {
	coefs, quant := photo(50)
	dst := make([]byte, 64*50)
	for _, tt := range []struct {
		size  int
		level simd.Level
		f     func([]byte, int, []int16, *[64]int16, int)
	}{{4, simd.Generic, IDCT4}, {4, simd.AVX2, IDCT4}, {2, simd.Generic, IDCT2}, {1, simd.Generic, IDCT1}} {
		b.Run(fmt.Sprintf("size=%d/%v", tt.size, tt.level), func(b *testing.B) {
			defer simd.SetLevel(tt.level)()
			for b.Loop() {
				tt.f(dst, tt.size*50, coefs, &quant, 50)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*50), "ns/block")
		})
	}
}
