// Package half converts between float32 and the two formats of 16 bits:
//
//	binary16 (float16)   s eeeee mmmmmmmmmm    IEEE 754, bias 15
//	bfloat16             s eeeeeeee mmmmmmm    the upper half of a binary32
//
// Rounding is to the nearest, ties to the even one; what is too large becomes
// an infinity, subnormal numbers are exact. A NaN stays a NaN with the upper
// bits of its payload, and becomes a quiet one, except from bfloat16 to
// float32, where bits are only moved.
//
// There is a generic form, which is the specification, and one in assembly that
// gives the same bits; see package simd for which runs.
package half

//go:generate go -C ../../asm run . -kernel half -out ../internal/half/half_amd64.s -stubs ../internal/half/half_amd64.go -pkg half

import (
	"math"

	"shardtool/internal/simd"
)

// batch is how many numbers an instruction of the assembly converts; the rest
// is left to the generic form.
const batch = 8

// ToFloat16 writes src to the beginning of dst, as the bits of binary16.
func ToFloat16(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	if n := len(src) &^ (batch - 1); n > 0 && simd.Active() >= simd.AVX2 {
		toFloat16AVX2(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	toFloat16Generic(dst, src)
}

// FromFloat16 writes src, the bits of binary16, to the beginning of dst.
func FromFloat16(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	if n := len(src) &^ (batch - 1); n > 0 && simd.Active() >= simd.AVX2 {
		fromFloat16AVX2(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	fromFloat16Generic(dst, src)
}

// ToBFloat16 writes src to the beginning of dst, as the bits of bfloat16.
func ToBFloat16(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	if n := len(src) &^ (batch - 1); n > 0 && simd.Active() >= simd.AVX2 {
		toBFloat16AVX2(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	toBFloat16Generic(dst, src)
}

// FromBFloat16 writes src, the bits of bfloat16, to the beginning of dst.
func FromBFloat16(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	if n := len(src) &^ (batch - 1); n > 0 && simd.Active() >= simd.AVX2 {
		fromBFloat16AVX2(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	fromBFloat16Generic(dst, src)
}

func toFloat16Generic(dst []uint16, src []float32) {
	for i, v := range src {
		dst[i] = Float16(v)
	}
}

// Float16 returns the bits of v rounded to binary16.
func Float16(v float32) uint16 {
	b := math.Float32bits(v)
	sign, b := uint16(b>>16&0x8000), b&(1<<31-1)
	switch {
	case b > 0x7F800000: // NaN
		return sign | 0x7E00 | uint16(b>>13&0x3FF)
	case b >= 0x47800000: // 65536 and more
		return sign | 0x7C00
	case b >= 0x38800000: // normal: 2^-14 and more; a carry goes on into the exponent, up to infinity
		return sign | uint16(roundEven(b-0x38000000, 13))
	case b < 0x33000000: // less than half of the least
		return sign
	}
	// Subnormal: the significand moves down until its unit is 2^-24.
	return sign | uint16(roundEven(b&(1<<23-1)|1<<23, uint(126-b>>23)))
}

// BFloat16 returns the bits of v rounded to bfloat16.
func BFloat16(v float32) uint16 {
	b := math.Float32bits(v)
	if b&(1<<31-1) > 0x7F800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16(roundEven(b, 16))
}

// roundEven divides by 2^shift.
func roundEven(v uint32, shift uint) uint32 {
	q := v >> shift
	return (v + 1<<(shift-1) - 1 + q&1) >> shift
}

func fromFloat16Generic(dst []float32, src []uint16) {
	for i, h := range src {
		sign, exp, frac := uint32(h)&0x8000<<16, uint32(h)>>10&0x1F, uint32(h)&0x3FF
		bits := exp<<23 + (127-15)<<23 | frac<<13
		switch {
		case exp == 0:
			bits = math.Float32bits(float32(frac) * (1.0 / (1 << 24)))
		case exp == 31 && frac != 0:
			bits = 0x7FC00000 | frac<<13
		case exp == 31:
			bits = 0x7F800000
		}
		dst[i] = math.Float32frombits(sign | bits)
	}
}

func toBFloat16Generic(dst []uint16, src []float32) {
	for i, v := range src {
		dst[i] = BFloat16(v)
	}
}

func fromBFloat16Generic(dst []float32, src []uint16) {
	for i, h := range src {
		dst[i] = math.Float32frombits(uint32(h) << 16)
	}
}
