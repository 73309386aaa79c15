package half

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"shardtool/internal/asmtest"
	"shardtool/internal/simd"
)

func TestAssembly(t *testing.T) { asmtest.Check(t) }

// forms runs a test with and without the assembly.
func forms(t *testing.T, f func(t *testing.T)) {
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

// filled converts one number in each place of a batch and after it, so that
// both forms meet it.
func filled[T any](v T) []T { return slices.Repeat([]T{v}, batch+1) }

func to16(f func([]uint16, []float32), v float32) (assembly, rest uint16) {
	dst := make([]uint16, batch+1)
	f(dst, filled(v))
	return dst[batch/2], dst[batch]
}

var inf = float32(math.Inf(1))

// TestKnownValues: the values are those of IEEE 754-2019, table 3.5, and of
// calculation by hand.
func TestKnownValues(t *testing.T) {
	bits := math.Float32frombits
	forms(t, func(t *testing.T) {
		for _, tt := range []struct {
			v      float32
			f16    uint16
			bf16   uint16
			reason string
		}{
			{0, 0, 0, "zero"},
			{bits(1 << 31), 0x8000, 0x8000, "minus zero"},
			{1, 0x3C00, 0x3F80, "one"},
			{-2, 0xC000, 0xC000, "minus two"},
			{1.0 / 3, 0x3555, 0x3EAB, "a third"},
			{65504, 0x7BFF, 0x4780, "the largest of binary16"},
			{65519.996, 0x7BFF, 0x4780, "just below the middle to infinity"},
			{65520, 0x7C00, 0x4780, "the middle to infinity"},
			{0x1p-14, 0x0400, 0x3880, "the least normal of binary16"},
			{0x1p-24, 0x0001, 0x3380, "the least subnormal"},
			{0x1p-25, 0x0000, 0x3300, "half of it: a tie, to even"},
			{0x1.000002p-25, 0x0001, 0x3300, "more than half of it"},
			{0x1.8p-24, 0x0002, 0x33C0, "a tie of 1 and 2, to even"},
			{1 + 0x1p-11, 0x3C00, 0x3F80, "a tie down"},
			{1 + 0x3p-11, 0x3C02, 0x3F80, "a tie up"},
			{1 + 0x1p-8, 0x3C04, 0x3F80, "bfloat16: a tie down"},
			{1 + 0x3p-8, 0x3C0C, 0x3F82, "bfloat16: a tie up"},
			{bits(1), 0, 0, "the least of binary32"},
			{bits(0x7F7FFFFF), 0x7C00, 0x7F80, "the largest of binary32: infinity in both"},
			{inf, 0x7C00, 0x7F80, "infinity"},
			{-inf, 0xFC00, 0xFF80, "minus infinity"},
			{bits(0x7FC00000), 0x7E00, 0x7FC0, "NaN"},
			{bits(0xFFA02001), 0xFF01, 0xFFE0, "a signalling NaN becomes quiet and keeps its upper bits"},
			{bits(0x7F800001), 0x7E00, 0x7FC0, "a NaN by its lowest bit stays one"},
		} {
			if a, b := to16(ToFloat16, tt.v); a != tt.f16 || b != tt.f16 {
				t.Errorf("float16 of %v: %#04x and %#04x, want %#04x (%s)", tt.v, a, b, tt.f16, tt.reason)
			}
			if a, b := to16(ToBFloat16, tt.v); a != tt.bf16 || b != tt.bf16 {
				t.Errorf("bfloat16 of %v: %#04x and %#04x, want %#04x (%s)", tt.v, a, b, tt.bf16, tt.reason)
			}
		}
	})
}

// value is what the bits of a format stand for, in float64.
func value(h uint16, expBits, bias int) float64 {
	fracBits := 15 - expBits
	exp, frac := int(h>>fracBits)&(1<<expBits-1), float64(int(h)&(1<<fracBits-1))
	v := 0.0
	switch {
	case exp == 1<<expBits-1 && frac != 0:
		return math.NaN()
	case exp == 1<<expBits-1:
		v = math.Inf(1)
	case exp == 0:
		v = math.Ldexp(frac, 1-bias-fracBits)
	default:
		v = math.Ldexp(frac+math.Ldexp(1, fracBits), exp-bias-fracBits)
	}
	if h>>15 == 1 {
		return math.Copysign(v, -1)
	}
	return v
}

var formats = []struct {
	name          string
	expBits, bias int
	quiet         uint16
	to            func([]uint16, []float32)
	from          func([]float32, []uint16)
}{
	{"float16", 5, 15, 0x200, ToFloat16, FromFloat16},
	{"bfloat16", 8, 127, 0x40, ToBFloat16, FromBFloat16},
}

func all() []uint16 {
	h := make([]uint16, 1<<16)
	for i := range h {
		h[i] = uint16(i)
	}
	return h
}

// TestThereAndBack: every value of 16 bits, against its definition.
func TestThereAndBack(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, f := range formats {
			wide, back := make([]float32, 1<<16), make([]uint16, 1<<16)
			f.from(wide, all())
			f.to(back, wide)
			for i, v := range wide {
				want := value(uint16(i), f.expBits, f.bias)
				if float64(v) != want && !(math.IsNaN(float64(v)) && math.IsNaN(want)) || math.Signbit(float64(v)) != (i>>15 == 1) {
					t.Fatalf("%s %#04x is %v, want %v", f.name, i, v, want)
				}
				same := uint16(i)
				if math.IsNaN(want) {
					same |= f.quiet
				}
				if back[i] != same {
					t.Fatalf("%s %#04x comes back as %#04x", f.name, i, back[i])
				}
			}
		}
	})
}

// TestRoundingBetweenNeighbours: at the middle of every two neighbours and
// next to it, where float64 tells on which side a number lies.
func TestRoundingBetweenNeighbours(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, f := range formats {
			infinity := uint16(1<<f.expBits-1) << (15 - f.expBits)
			for h := range infinity {
				low, high := value(h, f.expBits, f.bias), value(h+1, f.expBits, f.bias)
				middle := float32((low + high) / 2)
				if h+1 == infinity {
					middle = float32(low + (low-value(h-1, f.expBits, f.bias))/2)
				}
				even := h + h&1
				below, above := math.Nextafter32(middle, 0), math.Nextafter32(middle, inf)
				src := []float32{below, middle, above, float32(low), -below, -middle, -above, -float32(low), below, middle, above}
				want := []uint16{h, even, h + 1, h, 1<<15 | h, 1<<15 | even, 1<<15 | (h + 1), 1<<15 | h, h, even, h + 1}
				got := make([]uint16, len(src))
				f.to(got, src)
				if !slices.Equal(got, want) {
					t.Fatalf("%s around %#04x and the next: %v give %#04x, want %#04x", f.name, h, src, got, want)
				}
			}
		}
	})
}

// TestFormsAgree: numbers all over the range of binary32, every length up to
// 70, and nothing written beyond.
func TestFormsAgree(t *testing.T) {
	defer simd.SetLevel(simd.AVX2)()
	if simd.Active() < simd.AVX2 {
		t.Skip("not on this CPU")
	}
	const canary = 0xA5A5
	src, got, want := make([]float32, 70), make([]uint16, 80), make([]uint16, 80)
	at := uint32(0)
	for round := range 1 << 13 {
		n, off := round%71, round%7
		for i := range n {
			src[i] = math.Float32frombits(at)
			at += 16411 // all exponents and signs many times over
		}
		for name, pair := range map[string][2]func([]uint16, []float32){"float16": {ToFloat16, toFloat16Generic}, "bfloat16": {ToBFloat16, toBFloat16Generic}} {
			for i := range got {
				got[i], want[i] = canary, canary
			}
			pair[0](got[off:], src[:n])
			pair[1](want[off:], src[:n])
			if !slices.Equal(got, want) {
				t.Fatalf("%s of %v: differ", name, src[:n])
			}
		}
	}
	wide, wideWant := make([]float32, 1<<16), make([]float32, 1<<16)
	for name, pair := range map[string][2]func([]float32, []uint16){"float16": {FromFloat16, fromFloat16Generic}, "bfloat16": {FromBFloat16, fromBFloat16Generic}} {
		pair[0](wide, all())
		pair[1](wideWant, all())
		for i := range wide {
			if math.Float32bits(wide[i]) != math.Float32bits(wideWant[i]) {
				t.Fatalf("from %s %#04x: %#08x, want %#08x", name, i, math.Float32bits(wide[i]), math.Float32bits(wideWant[i]))
			}
		}
	}
}

func TestShortDestinationPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	ToFloat16(make([]uint16, 8), make([]float32, 9))
}

func BenchmarkTo(b *testing.B) {
	src, dst := make([]float32, 4096), make([]uint16, 4096)
	for i := range src {
		src[i] = float32(i-2048) / 777
	}
	for _, f := range formats {
		for _, l := range []simd.Level{simd.Generic, simd.AVX2} {
			b.Run(fmt.Sprintf("%s/%v", f.name, l), func(b *testing.B) {
				defer simd.SetLevel(l)()
				b.SetBytes(4 * 4096)
				b.ReportAllocs()
				for b.Loop() {
					f.to(dst, src)
				}
			})
		}
	}
}
