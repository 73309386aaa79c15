package tensor_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shardtool/tensor"
)

// npyArrays are the arrays that are written, each with the first two parts of
// its header; .ci/interop/checks.py reads them with NumPy.
func npyArrays() []npyArray {
	seq := func(dtype tensor.DType, shape ...int) tensor.Dense {
		n, err := tensor.Bytes(dtype, shape)
		if err != nil {
			panic(err)
		}
		b := new(tensor.Pool).Get(int(n)).Bytes()
		d := tensor.View(dtype, shape, b)
		for i := range int(n) / dtype.Size() {
			switch dtype {
			case tensor.Float32:
				d.Float32()[i] = float32(i) / 2
			case tensor.Float16:
				tensor.ToFloat16(d.Half()[i:], []float32{float32(i) / 2})
			case tensor.BFloat16:
				tensor.ToBFloat16(d.Half()[i:], []float32{float32(i) / 2})
			case tensor.Uint8:
				d.Uint8()[i] = uint8(i)
			case tensor.Int32:
				d.Int32()[i] = int32(-i)
			case tensor.Int64:
				d.Int64()[i] = int64(i) << 33
			case tensor.Float64:
				d.Float64()[i] = float64(i) / 3
			case tensor.Int8:
				d.Int8()[i] = int8(-i)
			case tensor.Int16:
				d.Int16()[i] = int16(-i) << 8
			case tensor.Uint16:
				d.Uint16()[i] = ^uint16(i)
			case tensor.Uint32:
				d.Uint32()[i] = ^uint32(i)
			case tensor.Uint64:
				d.Uint64()[i] = ^uint64(i)
			case tensor.Bool:
				d.Bool()[i] = i%2 == 0
			}
		}
		return d
	}
	return []npyArray{
		{"f4", seq(tensor.Float32, 2, 3, 4, 5), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 4, 5), }"},
		{"f2", seq(tensor.Float16, 3, 5), "{'descr': '<f2', 'fortran_order': False, 'shape': (3, 5), }"},
		{"bf16", seq(tensor.BFloat16, 3, 5), "{'descr': '<u2', 'fortran_order': False, 'shape': (3, 5), }"},
		{"u1", seq(tensor.Uint8, 7), "{'descr': '|u1', 'fortran_order': False, 'shape': (7,), }"},
		{"i4", seq(tensor.Int32, 1, 9), "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 9), }"},
		{"i8", seq(tensor.Int64), "{'descr': '<i8', 'fortran_order': False, 'shape': (), }"},
		{"f8", seq(tensor.Float64, 4, 0), "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 0), }"},
		{"i1", seq(tensor.Int8, 5), "{'descr': '|i1', 'fortran_order': False, 'shape': (5,), }"},
		{"i2", seq(tensor.Int16, 5), "{'descr': '<i2', 'fortran_order': False, 'shape': (5,), }"},
		{"u2", seq(tensor.Uint16, 5), "{'descr': '<u2', 'fortran_order': False, 'shape': (5,), }"},
		{"u4", seq(tensor.Uint32, 5), "{'descr': '<u4', 'fortran_order': False, 'shape': (5,), }"},
		{"u8", seq(tensor.Uint64, 5), "{'descr': '<u8', 'fortran_order': False, 'shape': (5,), }"},
		{"b1", seq(tensor.Bool, 5), "{'descr': '|b1', 'fortran_order': False, 'shape': (5,), }"},
		{"long", seq(tensor.Uint8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2),
			"{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2), }"},
	}
}

type npyArray struct {
	name  string
	array tensor.Dense
	dict  string
}

func TestWriteNPY(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("expected values are those of little-endian machines")
	}
	for _, tt := range npyArrays() {
		var got bytes.Buffer
		if err := tensor.WriteNPY(&got, tt.array); err != nil {
			t.Fatal(err)
		}
		// 10 bytes, the dictionary, spaces and a newline to a multiple of 64.
		size := 128
		if tt.name == "long" {
			size = 192
		}
		want := "\x93NUMPY\x01\x00" + string([]byte{byte(size - 10), 0}) + tt.dict + strings.Repeat(" ", size-10-len(tt.dict)-1) + "\n" + string(tt.array.Bytes())
		if got.String() != want {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got.String(), want)
		}
	}
}

func TestWriteNPYFails(t *testing.T) {
	if err := tensor.WriteNPY(new(bytes.Buffer), tensor.Dense{}); err == nil {
		t.Error("the zero Dense was written")
	}
	if err := tensor.WriteNPY(new(bytes.Buffer), tensor.View(tensor.Uint8, make(tensor.Shape, 30000), nil)); err == nil {
		t.Error("a header beyond 65535 bytes was written")
	}
	broken := errors.New("broken")
	array := npyArrays()[0].array
	for after := range 2 {
		if err := tensor.WriteNPY(&failing{after, broken}, array); !errors.Is(err, broken) {
			t.Errorf("after %d writes: %v", after, err)
		}
	}
}

// failing takes a number of writes.
type failing struct {
	good int
	err  error
}

func (f *failing) Write(b []byte) (int, error) {
	if f.good == 0 {
		return 0, f.err
	}
	f.good--
	return len(b), nil
}

// TestNPYForPeers writes the arrays where NPY_DIR says.
func TestNPYForPeers(t *testing.T) {
	dir := os.Getenv("NPY_DIR")
	if dir == "" {
		t.Skip("NPY_DIR is not set")
	}
	for _, tt := range npyArrays() {
		var b bytes.Buffer
		if err := tensor.WriteNPY(&b, tt.array); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, tt.name+".npy"), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHalves(t *testing.T) {
	src := []float32{0, 1, -2, 0.5, 65504, 1e9, 3, 4, 5, 6}
	var h [10]uint16
	var back [10]float32
	tensor.ToFloat16(h[:], src)
	if h[1] != 0x3C00 || h[2] != 0xC000 || h[4] != 0x7BFF || h[5] != 0x7C00 {
		t.Errorf("float16: %#04x", h)
	}
	tensor.FromFloat16(back[:], h[:])
	if back[3] != 0.5 || back[9] != 6 {
		t.Errorf("from float16: %v", back)
	}
	tensor.ToBFloat16(h[:], src)
	if h[1] != 0x3F80 || h[9] != 0x40C0 {
		t.Errorf("bfloat16: %#04x", h)
	}
	tensor.FromBFloat16(back[:], h[:])
	if back[2] != -2 || back[8] != 5 {
		t.Errorf("from bfloat16: %v", back)
	}
}
