package tensor

import "shardtool/internal/half"

// ToFloat16 rounds src to IEEE 754 binary16, the nearest, ties to the even one,
// and writes the bits to the beginning of dst. Numbers of 65520 and more become
// an infinity, subnormal numbers are exact, a NaN stays one and becomes quiet.
// dst must be as long as src and must not overlap it; this holds for the other
// conversions, too.
func ToFloat16(dst []uint16, src []float32) { half.ToFloat16(dst, src) }

// FromFloat16 writes what the bits of binary16 in src stand for, exactly.
func FromFloat16(dst []float32, src []uint16) { half.FromFloat16(dst, src) }

// ToBFloat16 rounds src to bfloat16, the upper half of a binary32, as ToFloat16
// does to binary16.
func ToBFloat16(dst []uint16, src []float32) { half.ToBFloat16(dst, src) }

// FromBFloat16 writes what the bits of bfloat16 in src stand for, exactly.
func FromBFloat16(dst []float32, src []uint16) { half.FromBFloat16(dst, src) }
