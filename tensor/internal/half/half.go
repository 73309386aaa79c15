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
// There is a generic form, which is the specification, and one for AVX2 with
// F16C that gives the same bits; the build tag noasm and the environment
// variable SHARDTOOL_SIMD=off leave the generic one.
package half

//go:generate go -C ../../../asm run . -kernel half -out ../tensor/internal/half/half_amd64.s -stubs ../tensor/internal/half/half_amd64.go -pkg half

import (
	"math"
	"os"
)

// fast is whether the assembly is used. Tests change it.
var fast = supported() && allowed(os.Getenv("SHARDTOOL_SIMD"))

func allowed(value string) bool { return value != "off" && value != "generic" && value != "0" }

// batch is how many numbers an instruction of the assembly converts; the rest
// is left to the generic form.
const batch = 8

// ToFloat16 writes src to the beginning of dst, as the bits of binary16.
func ToFloat16(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	if n := len(src) &^ (batch - 1); fast && n > 0 {
		toFloat16AVX2(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	toFloat16Generic(dst, src)
}

// FromFloat16 writes src, the bits of binary16, to the beginning of dst.
func FromFloat16(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	if n := len(src) &^ (batch - 1); fast && n > 0 {
		fromFloat16AVX2(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	fromFloat16Generic(dst, src)
}

// ToBFloat16 writes src to the beginning of dst, as the bits of bfloat16.
func ToBFloat16(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	if n := len(src) &^ (batch - 1); fast && n > 0 {
		toBFloat16AVX2(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	toBFloat16Generic(dst, src)
}

// FromBFloat16 writes src, the bits of bfloat16, to the beginning of dst.
func FromBFloat16(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	if n := len(src) &^ (batch - 1); fast && n > 0 {
		fromBFloat16AVX2(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	fromBFloat16Generic(dst, src)
}

func toFloat16Generic(dst []uint16, src []float32) {
	for i, v := range src {
		dst[i] = float16(math.Float32bits(v))
	}
}

// float16 rounds the binary32 whose bits are given.
func float16(b uint32) uint16 {
	sign, exp, frac := uint16(b>>16&0x8000), int(b>>23&0xFF)-(127-15), b&0x7FFFFF
	switch {
	case exp == 0xFF-(127-15) && frac != 0:
		return sign | 0x7E00 | uint16(frac>>13)
	case exp >= 31:
		return sign | 0x7C00
	case exp > 0:
		return sign | uint16(roundEven(uint32(exp)<<23|frac, 13)) // a carry goes on into the exponent, up to infinity
	case exp >= -10: // subnormal, or 2^-25, which is half of the least
		return sign | uint16(roundEven(1<<23|frac, uint(14-exp)))
	}
	return sign
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
		b := math.Float32bits(v)
		if b&0x7FFFFFFF > 0x7F800000 {
			dst[i] = uint16(b>>16) | 0x40
			continue
		}
		dst[i] = uint16(roundEven(b, 16))
	}
}

func fromBFloat16Generic(dst []float32, src []uint16) {
	for i, h := range src {
		dst[i] = math.Float32frombits(uint32(h) << 16)
	}
}
