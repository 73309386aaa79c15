package kernel

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"shardtool/internal/asmtest"
	"shardtool/internal/simd"
)

// TestColorOfEveryTriple compares all 2^24 with the definition, in integers of
// 2^-16, and with the sum that testdata/libjpeg.c prints.
func TestColorOfEveryTriple(t *testing.T) {
	saturated := func(v int) byte { return byte(max(0, min(255, v))) }
	levels(t, func(t *testing.T) {
		var y, cb, cr [256]byte
		var got, want [768]byte
		sum := crc32.NewIEEE()
		for i := range y {
			y[i] = byte(i)
		}
		for u := range 256 {
			for v := range 256 {
				for i := range cb {
					cb[i], cr[i] = byte(u), byte(v)
				}
				YCbCrToRGB(got[:], y[:], cb[:], cr[:], 256)
				// 1.402, 0.34414, 0.71414 and 1.772 times 2^16, rounded.
				r := (91881*(v-128) + 32768) >> 16
				g := (-22554*(u-128) - 46802*(v-128) + 32768) >> 16
				b := (116130*(u-128) + 32768) >> 16
				for i := range 256 {
					want[3*i], want[3*i+1], want[3*i+2] = saturated(i+r), saturated(i+g), saturated(i+b)
				}
				if got != want {
					t.Fatalf("chroma %d, %d: differ", u, v)
				}
				sum.Write(got[:])
			}
		}
		if got := sum.Sum32(); got != 0x41ded1d2 {
			t.Errorf("the sum is %08x", got)
		}
	})
}

func TestColorByHand(t *testing.T) {
	for _, tt := range []struct{ ycc, rgb [3]byte }{
		{[3]byte{0, 128, 128}, [3]byte{0, 0, 0}},
		{[3]byte{255, 128, 128}, [3]byte{255, 255, 255}},
		{[3]byte{76, 85, 255}, [3]byte{254, 0, 0}},     // 76+178.054; 76+14.8-90.7; 76-76.196
		{[3]byte{29, 255, 107}, [3]byte{0, 0, 254}},    // 29-29.442; 29-43.7+15.0; 29+225.044
		{[3]byte{100, 100, 100}, [3]byte{61, 130, 50}}, // 100-39.256; 100+9.636+19.996; 100-49.616
	} {
		var got [3]byte
		YCbCrToRGB(got[:], tt.ycc[:1], tt.ycc[1:2], tt.ycc[2:3], 1)
		if got != tt.rgb {
			t.Errorf("%v gives %v, want %v", tt.ycc, got, tt.rgb)
		}
		YCbCrToPlanes(got[:1], got[1:2], got[2:], tt.ycc[:1], tt.ycc[1:2], tt.ycc[2:], 1)
		if got != tt.rgb {
			t.Errorf("%v gives planes %v, want %v", tt.ycc, got, tt.rgb)
		}
	}
}

func random(s *lcg, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(s.draw() >> 3)
	}
	return b
}

func TestColorSIMD(t *testing.T) {
	defer simd.SetLevel(simd.AVX2)()
	s := lcg(5)
	for n := range 71 {
		for range 16 {
			y, cb, cr := random(&s, n+64)[s.draw()%64:][:n], random(&s, n+64)[s.draw()%64:][:n], random(&s, n+64)[s.draw()%64:][:n]
			align := s.draw() % 64
			got := bytes.Repeat([]byte{canary}, 3*n+128)
			want := slices.Clone(got)
			YCbCrToRGB(got[align:], y, cb, cr, n)
			ycbcrGeneric(want[align:], y, cb, cr)
			if !bytes.Equal(got, want) {
				t.Fatalf("%d pixels at %d: differ", n, align)
			}
		}
	}
}

func TestColorStaysInside(t *testing.T) {
	defer simd.SetLevel(simd.AVX2)()
	s := lcg(9)
	for _, after := range []bool{true, false} {
		for _, n := range []int{1, 31, 32, 33, 63, 64, 65, 97} {
			var in [3][]byte
			for i := range in {
				in[i] = asmtest.Walled(t, n, after)
				copy(in[i], random(&s, n))
			}
			dst, want := asmtest.Walled(t, 3*n, after), make([]byte, 3*n)
			YCbCrToRGB(dst, in[0], in[1], in[2], n)
			ycbcrGeneric(want, in[0], in[1], in[2])
			if !bytes.Equal(dst, want) {
				t.Errorf("%d pixels: differ", n)
			}
		}
	}
}

// inTwoSteps is what RGB420 and RGB422 are defined as.
func inTwoSteps(dst, y []byte, chroma [4][]byte, off int, vertical bool) {
	cb, cr := make([]byte, len(y)), make([]byte, len(y))
	if vertical {
		FancyH2V2(cb, chroma[0], chroma[1], off)
		FancyH2V2(cr, chroma[2], chroma[3], off)
	} else {
		FancyH2(cb, chroma[0], off)
		FancyH2(cr, chroma[2], off)
	}
	ycbcrGeneric(dst, y, cb, cr)
}

func (s *Sums) either(dst, y []byte, chroma [4][]byte, off int, vertical bool) {
	if vertical {
		s.RGB420(dst, y, chroma[0], chroma[1], chroma[2], chroma[3], off)
	} else {
		s.RGB422(dst, y, chroma[0], chroma[2], off)
	}
}

// TestRowsOfEveryWindow: every part of rows of up to 35 samples.
func TestRowsOfEveryWindow(t *testing.T) {
	levels(t, func(t *testing.T) {
		s := lcg(11)
		var sums Sums
		for w := 1; w <= 35; w++ {
			var chroma [4][]byte
			for i := range chroma {
				chroma[i] = random(&s, w)
			}
			for off := range 2 * w {
				for n := range 2*w - off + 1 {
					y := random(&s, n)
					got := bytes.Repeat([]byte{canary}, 3*n+64)
					want := slices.Clone(got)
					vertical := s.draw()%2 == 0
					sums.either(got[16:], y, chroma, off, vertical)
					inTwoSteps(want[16:], y, chroma, off, vertical)
					if !bytes.Equal(got, want) {
						t.Fatalf("%d pixels from %d of %d samples: differ", n, off, w)
					}
				}
			}
		}
	})
}

func TestRowsOfAnyWindow(t *testing.T) {
	levels(t, func(t *testing.T) {
		var sums Sums
		rapid.Check(t, func(t *rapid.T) {
			w := rapid.IntRange(1, 700).Draw(t, "samples")
			off := rapid.IntRange(0, 2*w-1).Draw(t, "off")
			n := rapid.IntRange(0, 2*w-off).Draw(t, "pixels")
			s := lcg(rapid.Uint32().Draw(t, "seed"))
			var chroma [4][]byte
			for i := range chroma {
				chroma[i] = random(&s, w)
			}
			y, got, want := random(&s, n), make([]byte, 3*n), make([]byte, 3*n)
			vertical := s.draw()%2 == 0
			sums.either(got, y, chroma, off, vertical)
			inTwoSteps(want, y, chroma, off, vertical)
			if !bytes.Equal(got, want) {
				t.Fatal("differ")
			}
		})
	})
}

func TestRowsStayInside(t *testing.T) {
	levels(t, func(t *testing.T) {
		s := lcg(13)
		for _, after := range []bool{true, false} {
			for _, w := range []int{1, 15, 16, 17, 40} {
				var chroma [4][]byte
				for i := range chroma {
					chroma[i] = asmtest.Walled(t, w, after)
					copy(chroma[i], random(&s, w))
				}
				for _, off := range []int{0, 1} {
					n := 2*w - off
					y := asmtest.Walled(t, n, after)
					copy(y, random(&s, n))
					got, want := asmtest.Walled(t, 3*n, after), make([]byte, 3*n)
					new(Sums).either(got, y, chroma, off, true)
					inTwoSteps(want, y, chroma, off, true)
					if !bytes.Equal(got, want) {
						t.Errorf("%d pixels: differ", n)
					}
				}
			}
		}
	})
}

func TestRowsAllocateNothing(t *testing.T) {
	levels(t, func(t *testing.T) {
		var sums Sums
		c, y, dst := make([]byte, 300), make([]byte, 600), make([]byte, 1800)
		if n := testing.AllocsPerRun(20, func() { sums.RGB420(dst, y, c, c, c, c, 0) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func BenchmarkRGB(b *testing.B) {
	const w = 500
	s := lcg(1)
	y, cb, cr, dst := random(&s, w), random(&s, w), random(&s, w), make([]byte, 3*w)
	var sums Sums
	for _, tt := range []struct {
		name string
		f    func()
	}{
		{"444", func() { YCbCrToRGB(dst, y, cb, cr, w) }},
		{"422", func() { sums.RGB422(dst, y, cb[:w/2], cr[:w/2], 0) }},
		{"420", func() { sums.RGB420(dst, y, cb[:w/2], cb[w/2:], cr[:w/2], cr[w/2:], 0) }},
	} {
		for _, l := range []simd.Level{simd.Generic, simd.AVX2} {
			b.Run(fmt.Sprintf("%s/%v", tt.name, l), func(b *testing.B) {
				defer simd.SetLevel(l)()
				b.ReportAllocs()
				for b.Loop() {
					tt.f()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*w), "ns/pixel")
			})
		}
	}
}
