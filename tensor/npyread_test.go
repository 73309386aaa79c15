package tensor_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"shardtool/tensor"
)

// TestReadNPY reads what WriteNPY writes; format/codec compares with NumPy.
func TestReadNPY(t *testing.T) {
	for _, tt := range npyArrays() {
		var b bytes.Buffer
		if err := tensor.WriteNPY(&b, tt.array); err != nil {
			t.Fatal(err)
		}
		got, err := tensor.ReadNPY(b.Bytes())
		want := tt.array.DType()
		if want == tensor.BFloat16 {
			want = tensor.Uint16
		}
		if err != nil || got.DType() != want || !slices.Equal(got.Shape(), tt.array.Shape()) || !bytes.Equal(got.Bytes(), tt.array.Bytes()) {
			t.Errorf("%s: %v %v % x, %v", tt.name, got.DType(), got.Shape(), got.Bytes(), err)
		}
	}
}

// npy makes a file of a header's text and elements.
func npy(dict, elements string) string {
	return "\x93NUMPY\x01\x00" + string([]byte{byte(len(dict)), byte(len(dict) >> 8)}) + dict + elements
}

func dict(descr, order, shape string) string {
	return fmt.Sprintf("{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n", descr, order, shape)
}

// TestNPYHeaders: want is a shape, or nil where err is the fault.
func TestNPYHeaders(t *testing.T) {
	plain := dict("'<i2'", "False", "(2,)")
	for _, tt := range []struct {
		what, file string
		want       tensor.Shape
		err        error
	}{
		{"plain", npy(plain, "abcd"), tensor.Shape{2}, nil},
		{"no comma at the end", npy("{'descr':'<i2','fortran_order':False,'shape':(2,)}", "abcd"), tensor.Shape{2}, nil},
		{"another order, other quotes", npy(`{"shape": (2,), "descr": "<i2", "fortran_order": False}`, "abcd"), tensor.Shape{2}, nil},
		{"no axis", npy(dict("'<i2'", "False", "()"), "ab"), tensor.Shape{}, nil},
		{"an L behind numbers", npy(dict("'<i2'", "True", "(1L, 2L)"), "abcd"), tensor.Shape{1, 2}, nil},
		{"the machine's order of bytes", npy(dict("'=i2'", "False", "(2,)"), "abcd"), tensor.Shape{2}, nil},
		{"no order of bytes", npy(dict("'i2'", "False", "(2,)"), "abcd"), tensor.Shape{2}, nil},
		{"version 2", "\x93NUMPY\x02\x00" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(plain)))) + plain + "abcd", tensor.Shape{2}, nil},
		{"no bytes of a huge shape", npy(dict("'<i2'", "False", "(0, 1000000000)"), ""), tensor.Shape{0, 1000000000}, nil},

		{"empty", "", nil, tensor.ErrNPYTruncated},
		{"text", "text", nil, tensor.ErrNotNPY},
		{"magic alone", "\x93NUMPY", nil, tensor.ErrNPYTruncated},
		{"no length", "\x93NUMPY\x01\x00\x05", nil, tensor.ErrNPYTruncated},
		{"no header", "\x93NUMPY\x01\x00\x05\x00", nil, tensor.ErrNPYTruncated},
		{"a header of 4 GiB", "\x93NUMPY\x02\x00\xff\xff\xff\xff{}", nil, tensor.ErrNPYTruncated},
		{"version 4", "\x93NUMPY\x04\x00\x00\x00\x00\x00", nil, tensor.ErrNPYUnsupported},
		{"version 1.1", "\x93NUMPY\x01\x01\x00\x00", nil, tensor.ErrNPYUnsupported},
		{"a byte short", npy(plain, "abc"), nil, tensor.ErrNPYTruncated},
		{"a byte too many", npy(plain, "abcde"), nil, tensor.ErrNPYCorrupt},
		{"an empty header", npy("", ""), nil, tensor.ErrNPYCorrupt},
		{"an empty dictionary", npy("{}", ""), nil, tensor.ErrNPYCorrupt},
		{"a name missing", npy("{'descr': '<i2', 'shape': (2,), }", "abcd"), nil, tensor.ErrNPYCorrupt},
		{"a name too many", npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), 'x': 1, }", "abcd"), nil, tensor.ErrNPYCorrupt},
		{"a name twice", npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), 'shape': (2,), }", "abcd"), nil, tensor.ErrNPYCorrupt},
		{"no end", npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), ", "abcd"), nil, tensor.ErrNPYCorrupt},
		{"more behind", npy(plain+"import os", "abcd"), nil, tensor.ErrNPYCorrupt},
		{"no commas", npy("{'descr': '<i2' 'fortran_order': False 'shape': (2,)}", "abcd"), nil, tensor.ErrNPYCorrupt},
		{"a string that does not end", npy("{'descr", ""), nil, tensor.ErrNPYCorrupt},
		{"an escape", npy(dict(`'\x3ci2'`, "False", "(2,)"), "abcd"), nil, tensor.ErrNPYCorrupt},
		{"a number for a type", npy(dict("2", "False", "(2,)"), "abcd"), nil, tensor.ErrNPYCorrupt},
		{"a number for truth", npy(dict("'<i2'", "0", "(2,)"), "abcd"), nil, tensor.ErrNPYCorrupt},
		{"parentheses", npy(dict("'<i2'", "False", "(2)"), "abcd"), nil, tensor.ErrNPYCorrupt},
		{"a list", npy(dict("'<i2'", "False", "[2]"), "abcd"), nil, tensor.ErrNPYCorrupt},
		{"a comma alone", npy(dict("'<i2'", "False", "(,)"), "ab"), nil, tensor.ErrNPYCorrupt},
		{"two commas", npy(dict("'<i2'", "False", "(2,,)"), "abcd"), nil, tensor.ErrNPYCorrupt},
		{"no comma between", npy(dict("'<i2'", "False", "(2 1)"), "abcd"), nil, tensor.ErrNPYCorrupt},
		{"negative", npy(dict("'<i2'", "False", "(-2,)"), "abcd"), nil, tensor.ErrNPYCorrupt},
		{"a fraction", npy(dict("'<i2'", "False", "(2.0,)"), "abcd"), nil, tensor.ErrNPYCorrupt},
		{"a number beyond 64 bits", npy(dict("'<i2'", "False", "(99999999999999999999999,)"), "abcd"), nil, tensor.ErrNPYCorrupt},
		{"a product beyond 64 bits", npy(dict("'<i2'", "False", "(4294967296, 4294967296)"), "abcd"), nil, tensor.ErrNPYCorrupt},
		{"a claim", npy(dict("'<i2'", "False", "(1000000000000,)"), "abcd"), nil, tensor.ErrNPYTruncated},
		{"65 axes", npy(dict("'<i2'", "False", "("+strings.Repeat("1, ", 65)+")"), "ab"), nil, tensor.ErrNPYCorrupt},
		{"objects", npy(dict("'|O'", "False", "(2,)"), "abcd"), nil, tensor.ErrNPYUnsupported},
		{"records", npy(dict("[('a', '<i2')]", "False", "(2,)"), "abcd"), nil, tensor.ErrNPYUnsupported},
		{"complex numbers", npy(dict("'<c8'", "False", "(2,)"), "abcd"), nil, tensor.ErrNPYUnsupported},
		{"long doubles", npy(dict("'<f16'", "False", "(2,)"), "abcd"), nil, tensor.ErrNPYUnsupported},
		{"no type", npy(dict("''", "False", "(2,)"), "abcd"), nil, tensor.ErrNPYUnsupported},
	} {
		got, err := tensor.ReadNPY([]byte(tt.file))
		var e *tensor.NPYError
		if !errors.Is(err, tt.err) || err != nil && (!errors.As(err, &e) || e.Detail == "") {
			t.Errorf("%s: error %v, want %v", tt.what, err, tt.err)
		} else if err == nil && !slices.Equal(got.Shape(), tt.want) {
			t.Errorf("%s: shape %v, want %v", tt.what, got.Shape(), tt.want)
		}
	}
}

// TestNPYOrders: the elements 0 to 5 of [2 3], in every order.
func TestNPYOrders(t *testing.T) {
	want := []int16{0, 1, 2, 3, 4, 5}
	for _, tt := range []struct{ descr, order, elements string }{
		{"'<i2'", "False", "\x00\x00\x01\x00\x02\x00\x03\x00\x04\x00\x05\x00"},
		{"'>i2'", "False", "\x00\x00\x00\x01\x00\x02\x00\x03\x00\x04\x00\x05"},
		{"'<i2'", "True", "\x00\x00\x03\x00\x01\x00\x04\x00\x02\x00\x05\x00"},
		{"'>i2'", "True", "\x00\x00\x00\x03\x00\x01\x00\x04\x00\x02\x00\x05"},
	} {
		for shift := range 2 { // of the address
			file := append(make([]byte, shift, 200), npy(dict(tt.descr, tt.order, "(2, 3)"), tt.elements)...)
			got, err := tensor.ReadNPY(file[shift:])
			if err != nil || !slices.Equal(got.Int16(), want) {
				t.Errorf("%s %s: %v, %v", tt.descr, tt.order, got.Int16(), err)
			}
		}
	}
}

func TestReadNPYIsAView(t *testing.T) {
	var b bytes.Buffer
	if err := tensor.WriteNPY(&b, ofInt64(1, 2)); err != nil {
		t.Fatal(err)
	}
	file := new(tensor.Pool).Get(b.Len()).Bytes()
	copy(file, b.Bytes())
	d, err := tensor.ReadNPY(file)
	if err != nil || unsafe.SliceData(d.Bytes()) != &file[len(file)-16] {
		t.Errorf("a copy, %v", err)
	}
	shape := make(tensor.Shape, 0, 4)
	into := make([]byte, 16)
	if n := testing.AllocsPerRun(100, func() {
		s, err := tensor.ParseNPY(file, shape)
		if err != nil {
			panic(err)
		}
		s.CopyTo(into)
	}); n != 0 {
		t.Errorf("ParseNPY and CopyTo allocate %v times", n)
	}
}

// TestFortranOrder: an element is found at the place that the strides of its
// order say.
func TestFortranOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := tensor.Shape(rapid.SliceOfN(rapid.IntRange(0, 4), 0, 5).Draw(t, "shape"))
		src := make([]byte, shape.Elems())
		for i := range src {
			src[i] = byte(i)
		}
		s := tensor.Stored{DType: tensor.Uint8, Shape: shape, Fortran: true, Data: src}
		got := s.Dense()
		for i, v := range got.Uint8() {
			place, stride := 0, 1
			rest := i
			at := make([]int, len(shape))
			for k := len(shape) - 1; k >= 0; k-- {
				at[k], rest = rest%shape[k], rest/shape[k]
			}
			for k, n := range shape {
				place += at[k] * stride
				stride *= n
			}
			if v != src[place] {
				t.Fatalf("%v: element %v is %d, want %d", shape, at, v, src[place])
			}
		}
	})
}

func TestCopyToOfAnotherLength(t *testing.T) {
	s := tensor.Stored{DType: tensor.Uint8, Shape: tensor.Shape{2}, Data: []byte{1, 2}}
	if !panics(func() { s.CopyTo(make([]byte, 3)) }) {
		t.Error("no panic")
	}
}

func FuzzReadNPY(f *testing.F) {
	for _, tt := range npyArrays() {
		var b bytes.Buffer
		if err := tensor.WriteNPY(&b, tt.array); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte(npy(dict("'>f4'", "True", "(2, 3)"), strings.Repeat("abcd", 6))))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := tensor.ReadNPY(data)
		var e *tensor.NPYError
		if err != nil {
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			return
		}
		if len(d.Bytes()) != d.Shape().Elems()*d.DType().Size() || len(d.Bytes()) > len(data) {
			t.Fatalf("%v of %v in %d bytes", d.DType(), d.Shape(), len(d.Bytes()))
		}
		var b bytes.Buffer
		if err := tensor.WriteNPY(&b, d); err != nil {
			return // more axes than a header holds
		}
		again, err := tensor.ReadNPY(b.Bytes())
		if err != nil || !bytes.Equal(again.Bytes(), d.Bytes()) {
			t.Fatalf("%v, %v after it was written", again.Bytes(), err)
		}
	})
}
