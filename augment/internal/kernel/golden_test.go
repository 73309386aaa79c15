package kernel

import (
	"hash/crc32"
	"testing"

	"shardtool/internal/simd"
)

// The sums that testdata/libjpeg.c prints: what libjpeg-turbo 2.1.5 makes of
// the same inputs.

// lcg draws the same numbers as draw in testdata/libjpeg.c.
type lcg uint32

func (s *lcg) draw() int {
	*s = *s*1664525 + 1013904223
	return int(*s >> 16)
}

// The kinds of blocks that golden makes.
const (
	ordinary = iota // what an encoder may write
	hostile         // anything
	flat            // anything in the first row, and half the time one coefficient more
)

func (s *lcg) block(kind int) (coefs, quant [64]int16) {
	for k := range quant {
		quant[k] = int16(s.draw())
		if kind == ordinary {
			quant[k] = 1 + int16(int(uint16(quant[k]))%(2+k))
		}
	}
	switch kind {
	case ordinary:
		coefs[0] = int16((s.draw()%2048 - 1024) / int(quant[0]))
		for range s.draw() % 20 {
			k := 1 + s.draw()%63
			coefs[k] = int16((s.draw()%401 - 200) / int(quant[k]))
		}
	case hostile:
		for k := range coefs {
			coefs[k] = int16(s.draw())
		}
	case flat:
		for k := range 8 {
			coefs[k] = int16(s.draw())
		}
		if s.draw()%2 == 1 {
			k := 8 + s.draw()%56
			coefs[k] = int16(s.draw())
		}
	}
	return coefs, quant
}

// levels runs a test at each level that this CPU has and that this package
// tells apart.
func levels(t *testing.T, f func(t *testing.T)) {
	for _, l := range []simd.Level{simd.Generic, simd.AVX2} {
		t.Run(l.String(), func(t *testing.T) {
			defer simd.SetLevel(l)()
			if simd.Active() != l {
				t.Skip("not on this CPU")
			}
			f(t)
		})
	}
}

func TestTransformsAreLibjpegs(t *testing.T) {
	levels(t, func(t *testing.T) {
		for _, tt := range []struct {
			name string
			size int
			f    func([]byte, int, []int16, *[64]int16, int)
			want [3]uint32
		}{
			{"IDCT", 8, IDCT, [3]uint32{0x0678ea17, 0xc9708447, 0xbb8c2d89}},
			{"IDCT4", 4, IDCT4, [3]uint32{0x3036e026, 0xc669dee5, 0x661a0970}},
			{"IDCT2", 2, IDCT2, [3]uint32{0x60a642db, 0x858fdce4, 0x2807fade}},
			{"IDCT1", 1, IDCT1, [3]uint32{0x621f2cdd, 0xabb139ef, 0x2d210ca3}},
		} {
			for kind, want := range tt.want {
				sum, s := crc32.NewIEEE(), lcg(1)
				for range 20000 {
					coefs, quant := s.block(kind)
					dst := make([]byte, tt.size*tt.size)
					tt.f(dst, tt.size, coefs[:], &quant, 1)
					sum.Write(dst)
				}
				if got := sum.Sum32(); got != want {
					t.Errorf("%s, blocks of kind %d: %08x, want %08x", tt.name, kind, got, want)
				}
			}
		}
	})
}

func TestUpsamplingIsLibjpegs(t *testing.T) {
	h2v1, h2v2, s := crc32.NewIEEE(), crc32.NewIEEE(), lcg(1)
	for w := 3; w <= 200; w++ {
		var in [3][]byte
		for i := range in {
			in[i] = make([]byte, w)
			for j := range in[i] {
				in[i][j] = byte(s.draw())
			}
		}
		dst := make([]byte, 2*w)
		FancyH2(dst, in[1], 0)
		h2v1.Write(dst)
		for _, far := range [][]byte{in[0], in[2]} {
			FancyH2V2(dst, in[1], far, 0)
			h2v2.Write(dst)
		}
	}
	if got := h2v1.Sum32(); got != 0x610faf3a {
		t.Errorf("FancyH2: %08x", got)
	}
	if got := h2v2.Sum32(); got != 0x6b8191b7 {
		t.Errorf("FancyH2V2: %08x", got)
	}
}
