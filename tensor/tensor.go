// Package tensor holds the arrays that a batch is made of: element types,
// shapes, and views over memory that is aligned, pooled and counted.
//
//	Pool ──Get──▶ Buffer: n bytes at a 64-byte boundary, a count of holders
//	               │
//	               ├─ Dense float32 [64 3 224 224]   ┐ views: a type and a shape
//	               └─ Dense int64   [64]             ┘ over a part of the bytes
//
// Values of which each sample has another number are a [Ragged], row after row
// with the places where rows end, or a [Padded], rows of one length; byte
// strings are a [Binary]. A [Stored] is an array as a file holds it.
//
// A view is a value without a count of its own: it is good for as long as
// somebody holds its Buffer. Memory that comes back from a pool holds what was
// left in it. Arrays are contiguous, the last axis fastest, in the byte order
// of the machine.
//
// Built with -tags debugpool, a pool fills what is released with 0xDB, notices
// who wrote to it afterwards, and [Pool.Leaks] names where each buffer that is
// still held was taken.
//
// This package imports nothing of the project but internal packages.
package tensor

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unsafe"
)

// DType is the type of an element.
type DType uint8

const (
	Float32  DType = iota // IEEE 754 binary32
	Float16               // IEEE 754 binary16, held as uint16
	BFloat16              // the upper half of a binary32, held as uint16
	Uint8
	Int32
	Int64
	Float64
	Int8
	Int16
	Uint16
	Uint32
	Uint64
	Bool // a byte, 0 or 1
)

var dtypes = [...]struct {
	name string
	size int
}{
	{"float32", 4}, {"float16", 2}, {"bfloat16", 2}, {"uint8", 1}, {"int32", 4}, {"int64", 8}, {"float64", 8},
	{"int8", 1}, {"int16", 2}, {"uint16", 2}, {"uint32", 4}, {"uint64", 8}, {"bool", 1},
}

// Size returns the size of an element in bytes.
func (d DType) Size() int { return dtypes[d].size }

// String returns the name that NumPy and PyTorch use, such as "float32".
func (d DType) String() string { return dtypes[d].name }

// Shape is the length of each axis, the slowest first. The empty shape is that
// of a single element.
type Shape []int

// String returns the shape as in "[64 3 224 224]".
func (s Shape) String() string {
	words := make([]string, len(s))
	for i, n := range s {
		words[i] = strconv.Itoa(n)
	}
	return "[" + strings.Join(words, " ") + "]"
}

// Elems returns the number of elements. The shape must be one that Bytes
// accepts.
func (s Shape) Elems() int {
	n := 1
	for _, axis := range s {
		n *= axis
	}
	return n
}

// Strides returns by how many elements places along each axis are apart: the
// last axis is contiguous. It is what DLPack and similar interfaces ask for.
func (s Shape) Strides() []int {
	strides := make([]int, len(s))
	n := 1
	for i := len(s) - 1; i >= 0; i-- {
		strides[i] = n
		n *= s[i]
	}
	return strides
}

var errTooLarge = errors.New("is larger than memory can be addressed")

// Bytes returns the size in bytes of an array of that type and shape. A
// negative axis, or a size beyond 2^62 bytes, is an error.
func Bytes(dtype DType, shape Shape) (int64, error) {
	n := int64(dtype.Size())
	empty := false
	for _, axis := range shape {
		switch {
		case axis < 0:
			return 0, fmt.Errorf("shape %s: an axis is negative", shape.String())
		case axis == 0:
			empty = true
		case n > (1<<62)/int64(axis):
			return 0, fmt.Errorf("shape %s of %v: %w", shape.String(), dtype, errTooLarge)
		default:
			n *= int64(axis)
		}
	}
	if empty {
		return 0, nil
	}
	if n > math.MaxInt {
		return 0, fmt.Errorf("shape %s of %v: %w", shape.String(), dtype, errTooLarge)
	}
	return n, nil
}

// Dense is a view of memory as an array: contiguous, the last axis fastest. It
// is a value; copies see the same elements. It does not keep its memory alive
// in a pool: see the package comment. The zero value is no array.
type Dense struct {
	dtype DType
	shape Shape
	bytes []byte
}

// View returns an array over b, which must have exactly the size of the array
// and start at an address that suits the element; View panics otherwise. The
// array keeps shape, which must not change.
func View(dtype DType, shape Shape, b []byte) Dense {
	n, err := Bytes(dtype, shape)
	if err != nil {
		panic("tensor: " + err.Error())
	}
	if int64(len(b)) != n {
		panic(fmt.Sprintf("tensor: %v of shape %v has %d bytes, not %d", dtype, shape, n, len(b)))
	}
	if n > 0 && uintptr(unsafe.Pointer(&b[0]))%uintptr(dtype.Size()) != 0 {
		panic(fmt.Sprintf("tensor: memory is not aligned for %v", dtype))
	}
	return Dense{dtype: dtype, shape: shape, bytes: b[:n:n]}
}

// New returns an array in memory of its own from pool, aligned to Alignment, and
// the buffer to release. What its elements are is not defined. It panics where
// Bytes fails.
func New(pool *Pool, dtype DType, shape Shape) (Dense, *Buffer) {
	n, err := Bytes(dtype, shape)
	if err != nil {
		panic("tensor: " + err.Error())
	}
	b := pool.Get(int(n))
	return View(dtype, shape, b.Bytes()), b
}

// DType returns the type of an element.
func (d Dense) DType() DType { return d.dtype }

// Shape returns the length of each axis. It must not be changed.
func (d Dense) Shape() Shape { return d.shape }

// Bytes returns the memory of the array.
func (d Dense) Bytes() []byte { return d.bytes }

// At returns the part of the array at place i of its first axis, an array of
// one axis less over the same memory. It allocates nothing, and panics where
// there is no such place.
func (d Dense) At(i int) Dense {
	if i < 0 || i >= d.shape[0] {
		panic(fmt.Sprintf("tensor: place %d of an axis of %d", i, d.shape[0]))
	}
	n := len(d.bytes) / d.shape[0]
	return Dense{dtype: d.dtype, shape: d.shape[1:], bytes: d.bytes[i*n : (i+1)*n : (i+1)*n]}
}

// Float32 returns the elements of a Float32 array. This method and those below
// panic where the array is of another type; the slice is the array's memory.
func (d Dense) Float32() []float32 { return elements[float32](d, Float32) }

// Half returns the elements of a Float16 or BFloat16 array as their bits.
func (d Dense) Half() []uint16 {
	if d.dtype == BFloat16 {
		return elements[uint16](d, BFloat16)
	}
	return elements[uint16](d, Float16)
}

// Uint8 returns the elements of a Uint8 array.
func (d Dense) Uint8() []uint8 { return elements[uint8](d, Uint8) }

// Int32 returns the elements of an Int32 array.
func (d Dense) Int32() []int32 { return elements[int32](d, Int32) }

// Int64 returns the elements of an Int64 array.
func (d Dense) Int64() []int64 { return elements[int64](d, Int64) }

// Float64 returns the elements of a Float64 array.
func (d Dense) Float64() []float64 { return elements[float64](d, Float64) }

// Int8 returns the elements of an Int8 array.
func (d Dense) Int8() []int8 { return elements[int8](d, Int8) }

// Int16 returns the elements of an Int16 array.
func (d Dense) Int16() []int16 { return elements[int16](d, Int16) }

// Uint16 returns the elements of a Uint16 array.
func (d Dense) Uint16() []uint16 { return elements[uint16](d, Uint16) }

// Uint32 returns the elements of a Uint32 array.
func (d Dense) Uint32() []uint32 { return elements[uint32](d, Uint32) }

// Uint64 returns the elements of a Uint64 array.
func (d Dense) Uint64() []uint64 { return elements[uint64](d, Uint64) }

// Bool returns the elements of a Bool array, whose bytes must all be 0 or 1.
func (d Dense) Bool() []bool { return elements[bool](d, Bool) }

func elements[T any](d Dense, want DType) []T {
	if d.dtype != want {
		panic(fmt.Sprintf("tensor: the array is of %v, not of %v", d.dtype, want))
	}
	if len(d.bytes) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&d.bytes[0])), len(d.bytes)/want.Size())
}
