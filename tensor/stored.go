package tensor

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unsafe"
)

var bigEndian = binary.NativeEndian.Uint16([]byte{1, 0}) != 1

// Stored is an array as a file holds it: in the file's order of bytes and axes.
type Stored struct {
	DType     DType
	Shape     Shape
	BigEndian bool   // of the bytes of an element, the highest comes first
	Fortran   bool   // the first axis is the fastest, not the last
	Data      []byte // exactly the elements
}

// Dense returns the array: a view of s.Data where that is the array, in memory
// of its own where it has to be turned into one, or does not start at an address
// that suits the element. The array keeps s.Shape.
func (s *Stored) Dense() Dense {
	aligned := len(s.Data) == 0 || uintptr(unsafe.Pointer(&s.Data[0]))%uintptr(s.DType.Size()) == 0
	if aligned && s.plain() && (s.DType != Bool || allBool(s.Data)) {
		return View(s.DType, s.Shape, s.Data)
	}
	own := make([]byte, len(s.Data)) // Go aligns it to 8 bytes where its size is a multiple of 8, and to the element always
	s.CopyTo(own)
	return View(s.DType, s.Shape, own)
}

// CopyTo writes the elements as a Dense has them to dst, which must have the
// length of s.Data and may not overlap it. Bytes of a Bool other than 0 become
// 1. It allocates nothing.
func (s *Stored) CopyTo(dst []byte) {
	if len(dst) != len(s.Data) {
		panic(fmt.Sprintf("tensor: %d bytes of elements for %d", len(s.Data), len(dst)))
	}
	if s.transposed() {
		transpose(dst, s.Data, s.Shape, s.DType.Size())
	} else {
		copy(dst, s.Data)
	}
	switch {
	case s.swapped():
		swapBytes(dst, s.DType.Size())
	case s.DType == Bool:
		for i, b := range dst {
			if b != 0 {
				dst[i] = 1
			}
		}
	}
}

func (s *Stored) plain() bool { return !s.swapped() && !s.transposed() }

func (s *Stored) swapped() bool { return s.DType.Size() > 1 && s.BigEndian != bigEndian }

// transposed tells whether the order of the axes makes a difference.
func (s *Stored) transposed() bool {
	long := 0
	for _, n := range s.Shape {
		if n != 1 {
			long++
		}
	}
	return s.Fortran && long > 1
}

func allBool(b []byte) bool {
	for _, v := range b {
		if v > 1 {
			return false
		}
	}
	return true
}

func swapBytes(b []byte, size int) {
	order := binary.NativeEndian
	switch size {
	case 2:
		for ; len(b) >= 2; b = b[2:] {
			order.PutUint16(b, bits.ReverseBytes16(order.Uint16(b)))
		}
	case 4:
		for ; len(b) >= 4; b = b[4:] {
			order.PutUint32(b, bits.ReverseBytes32(order.Uint32(b)))
		}
	case 8:
		for ; len(b) >= 8; b = b[8:] {
			order.PutUint64(b, bits.ReverseBytes64(order.Uint64(b)))
		}
	}
}

// transpose writes src, whose first axis is the fastest, with the last axis the
// fastest. Of the shape there are at most maxAxes axes that are not 1.
func transpose(dst, src []byte, shape Shape, size int) {
	var lens, strides, at [maxAxes]int // of axes that are not 1
	axes, stride := 0, size
	for _, n := range shape {
		if n != 1 {
			lens[axes], strides[axes] = n, stride
			axes++
		}
		stride *= n
	}
	from := 0
	for to := 0; to < len(dst); to += size {
		copy(dst[to:to+size], src[from:from+size])
		for k := axes - 1; k >= 0; k-- {
			from += strides[k]
			if at[k]++; at[k] < lens[k] {
				break
			}
			from -= strides[k] * lens[k]
			at[k] = 0
		}
	}
}
