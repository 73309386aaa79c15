// Package varint decodes packed lists of numbers of protocol buffers:
//
//	0xxxxxxx                        7 bits in 1 byte
//	1xxxxxxx 0xxxxxxx               14 in 2, the lower ones first
//	1xxxxxxx ... 1xxxxxxx 0xxxxxxx  64 bits in 10; what the tenth holds beyond them is dropped
//
// A number may be longer than it needs to be, up to 10 bytes. One that has more,
// or that the list ends within, is a fault.
//
// There is a generic form, which is the specification, and one in assembly that
// gives the same results; see package simd for which runs. The assembly is for
// lists in which most numbers have 1 to 3 bytes, as tokens have, labels and
// lengths, and takes up what Masked VByte does (Plaisance, Kurz, Lemire:
// Vectorized VByte Decoding, arXiv 1503.07387). BenchmarkDecode compares.
package varint

//go:generate go -C ../../asm run . -kernel varint -out ../internal/varint/varint_amd64.s -stubs ../internal/varint/varint_amd64.go -pkg varint

import (
	"errors"
	"slices"

	"shardtool/internal/simd"
)

// The faults.
var (
	ErrTruncated = errors.New("the list ends within a number")
	ErrLong      = errors.New("a number of more than 10 bytes")
	ErrRange     = errors.New("a number is beyond 32 bits")
)

// MaxLen is the most bytes of a number.
const MaxLen = 10

// Int is what numbers are decoded to. Those beyond int32 are ErrRange there.
type Int interface{ int32 | int64 }

// Decode writes the numbers that src is made of to the beginning of dst, as many
// as it has room for. It returns how many they are and how many bytes of src:
// fewer than all where dst is full, or where there is an error, whose number
// begins there. What dst holds behind them is not defined. Nothing is read
// behind src or written behind dst, and nothing is allocated.
func Decode[T Int](dst []T, src []byte) (n, used int, err error) {
	end := len(src)
	for end > 0 && src[end-1] >= 0x80 {
		end--
	}
	n, used, err = decodeWhole(dst, src[:end])
	if err == nil && used == end && end < len(src) {
		err = ended(src[end:])
	}
	return n, used, err
}

// ended is the fault of a list whose last bytes are those of no number.
func ended(rest []byte) error {
	if len(rest) >= MaxLen {
		return ErrLong
	}
	return ErrTruncated
}

// decodeWhole is Decode of a src whose last number ends.
func decodeWhole[T Int](dst []T, src []byte) (n, used int, err error) {
	if simd.Active() < simd.AVX2 {
		return decodeGeneric(dst, src)
	}
	for part := leastPart; n < len(dst) && used < len(src); part *= 2 {
		k, u := decodeFast(dst[n:], src[used:])
		if n, used = n+k, used+u; k > 0 {
			part = leastPart
		}
		// What is left undone is near an end, or a long number is in the way:
		// the more of them come, the more is left to the generic form.
		k, u, err = decodeGeneric(dst[n:], src[used:min(len(src), used+part)])
		if n, used = n+k, used+u; err != nil && err != ErrTruncated { // the number at the cut is not
			return n, used, err
		}
	}
	return n, used, nil
}

// leastPart is enough for the generic form to look at 64 bytes at once.
const leastPart = 64 + 8 + MaxLen

// Append appends the numbers that src is made of to dst, and returns how many
// bytes of src they are, fewer than all where there is an error.
func Append[T Int](dst []T, src []byte) (_ []T, used int, err error) {
	at := len(dst)
	count, ok := Count(src)
	if !ok {
		count++ // room for Decode to see the fault in
	}
	dst = slices.Grow(dst, count)[:at+count]
	n, used, err := Decode(dst[at:], src)
	return dst[:at+n], used, err
}

// Count returns how many numbers end in src, and whether it is made of numbers
// and nothing else.
func Count(src []byte) (n int, ok bool) {
	at := 0
	if len(src) >= countReach && simd.Active() >= simd.AVX2 {
		count, long := countAVX2(&src[0], len(src))
		if long != 0 {
			return countGeneric(src, 0)
		}
		at = ((len(src)-countReach)/countStride + 1) * countStride
		n = count
	}
	rest, ok := countGeneric(src, at)
	return n + rest, ok
}
