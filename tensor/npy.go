package tensor

import (
	"fmt"
	"io"
	"strings"
)

// npyTypes are NumPy's names, less the byte order, of the element types.
var npyTypes = [...]string{
	Float32: "f4", Float16: "f2", BFloat16: "u2", Uint8: "u1", Int32: "i4", Int64: "i8", Float64: "f8",
	Int8: "i1", Int16: "i2", Uint16: "u2", Uint32: "u4", Uint64: "u8", Bool: "b1",
}

// WriteNPY writes d as a .npy file of version 1.0 (NEP 1):
//
//	93 "NUMPY" 01 00 | length uint16 LE | {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } spaces \n | elements
//
// with the elements from a multiple of 64 bytes on, in the byte order of the
// machine. NumPy has no bfloat16: such an array is written as the uint16 that
// hold its bits. It fails where w does, and on the zero Dense.
func WriteNPY(w io.Writer, d Dense) error {
	if n, err := Bytes(d.dtype, d.shape); err != nil || n != int64(len(d.bytes)) {
		return fmt.Errorf("tensor: no array to write")
	}
	header, err := npyHeader(d.dtype, d.shape)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	_, err = w.Write(d.bytes)
	return err
}

func npyHeader(dtype DType, shape Shape) ([]byte, error) {
	order := "<"
	switch {
	case dtype.Size() == 1:
		order = "|"
	case bigEndian:
		order = ">"
	}
	var axes strings.Builder // a tuple of one ends in a comma, too
	for _, n := range shape {
		fmt.Fprintf(&axes, "%d, ", n)
	}
	tuple := axes.String()
	if len(shape) > 1 {
		tuple = strings.TrimSuffix(tuple, ", ")
	} else {
		tuple = strings.TrimSuffix(tuple, " ")
	}
	dict := fmt.Sprintf("{'descr': '%s%s', 'fortran_order': False, 'shape': (%s), }", order, npyTypes[dtype], tuple)
	const prefix = len("\x93NUMPY\x01\x00") + 2
	n := (prefix+len(dict)+1+63)&^63 - prefix
	if n > 0xFFFF {
		return nil, fmt.Errorf("tensor: a shape of %d axes does not fit the header of a .npy file", len(shape))
	}
	b := append([]byte("\x93NUMPY\x01\x00"), byte(n), byte(n>>8))
	b = append(b, dict...)
	for len(b) < prefix+n-1 {
		b = append(b, ' ')
	}
	return append(b, '\n'), nil
}
