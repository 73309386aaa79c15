package codec_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/format/codec"
	"shardtool/format/tfexample"
	"shardtool/tensor"
)

func list(name string, f tfexample.Feature) *format.Field {
	return &format.Field{Name: name, Kind: f.Kind(), Data: f.Encoded(), Offset: format.Unknown}
}

func npyOf(dtype tensor.DType, shape tensor.Shape, elements []byte) []byte {
	d := newDense(dtype, shape)
	copy(d.Bytes(), elements)
	var b bytes.Buffer
	if err := tensor.WriteNPY(&b, d); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func native(v any) []byte {
	b, err := binary.Append(nil, binary.NativeEndian, v)
	if err != nil {
		panic(err)
	}
	return b
}

func little(v any) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		panic(err)
	}
	return b
}

var (
	ints   = tfexample.Int64Of
	floats = tfexample.FloatOf
	texts  = tfexample.BytesOf
	steps  = tfexample.ListOf
)

// TestFill: err is a part of the message of an ErrSchema, or want the elements.
func TestFill(t *testing.T) {
	i4 := func(shape ...int) *format.Field {
		n := tensor.Shape(shape).Elems()
		v := make([]int32, n)
		for i := range v {
			v[i] = int32(i)
		}
		return field("npy", npyOf(tensor.Int32, shape, native(v)))
	}
	f4 := func(v ...float32) *format.Field {
		return field("npy", npyOf(tensor.Float32, tensor.Shape{len(v)}, native(v)))
	}
	f8 := func(v ...float64) *format.Field {
		return field("npy", npyOf(tensor.Float64, tensor.Shape{len(v)}, native(v)))
	}
	i8 := func(v ...int64) *format.Field {
		return field("npy", npyOf(tensor.Int64, tensor.Shape{len(v)}, native(v)))
	}
	u8 := func(v ...uint64) *format.Field {
		return field("npy", npyOf(tensor.Uint64, tensor.Shape{len(v)}, native(v)))
	}
	b1 := func(v ...bool) *format.Field {
		return field("npy", npyOf(tensor.Bool, tensor.Shape{len(v)}, native(v)))
	}
	js := func(text string) *format.Field { return field("box.json", []byte(text)) }
	type shape = tensor.Shape
	for _, tt := range []struct {
		what  string
		f     *format.Field
		dtype tensor.DType
		shape tensor.Shape
		want  any
		err   string
	}{
		{"one of a list", list("cls", ints(7)), tensor.Int64, nil, []int64{7}, ""},
		{"a list of three", list("cls", floats(1, 2, 3)), tensor.Int64, nil, nil, `(field "cls"): schema: found float list of 3 values, want one int64`},
		{"three for one", list("cls", ints(1, 2, 3)), tensor.Int64, nil, nil, `found int64 list of 3 values, want one int64`},
		{"none for one", list("cls", ints()), tensor.Int64, nil, nil, `found int64 list of 0 values, want one int64`},
		{"none for none", list("cls", ints()), tensor.Int64, shape{0}, []int64{}, ""},
		{"a list in any shape", list("v", ints(1, 2, 3, 4, 5, 6)), tensor.Int64, shape{2, 3}, []int64{1, 2, 3, 4, 5, 6}, ""},
		{"too few", list("v", ints(1, 2, 3)), tensor.Int64, shape{2, 3}, nil, `found int64 list of 3 values, want int64 of shape [2 3]`},
		{"too many", list("v", ints(1, 2, 3)), tensor.Int64, shape{2}, nil, `found int64 list of 3 values, want int64 of shape [2]`},
		{"narrow", list("v", ints(-1<<31, 1<<31-1)), tensor.Int32, shape{2}, []int32{-1 << 31, 1<<31 - 1}, ""},
		{"beyond", list("v", ints(0, 1<<31)), tensor.Int32, shape{2}, nil, `found 2147483648, number 1 of the values, which is no int32`},
		{"int64 as float64", list("v", ints(1<<53, -1<<63)), tensor.Float64, shape{2}, []float64{1 << 53, -1 << 63}, ""},
		{"int64 not a float64", list("v", ints(1<<53+1)), tensor.Float64, nil, nil, `found 9007199254740993, number 0`},
		{"largest int64 not a float64", list("v", ints(math.MaxInt64)), tensor.Float64, nil, nil, `no float64`},
		{"int64 as float32", list("v", ints(1<<24, 1<<25)), tensor.Float32, shape{2}, []float32{1 << 24, 1 << 25}, ""},
		{"int64 not a float32", list("v", ints(1<<24+1)), tensor.Float32, nil, nil, `no float32`},
		{"int64 as float16", list("v", ints(2048, -2050)), tensor.Float16, shape{2}, []uint16{0x6800, 0xe801}, ""},
		{"int64 not a float16", list("v", ints(2049)), tensor.Float16, nil, nil, `no float16`},
		{"int64 too large for float16", list("v", ints(65520)), tensor.Float16, nil, nil, `no float16`},
		{"int64 as bfloat16", list("v", ints(256)), tensor.BFloat16, nil, []uint16{0x4380}, ""},
		{"int64 not a bfloat16", list("v", ints(257)), tensor.BFloat16, nil, nil, `no bfloat16`},
		{"int64 as bool", list("v", ints(0, 1)), tensor.Bool, shape{2}, []bool{false, true}, ""},
		{"int64 not a bool", list("v", ints(2)), tensor.Bool, nil, nil, `no bool`},
		{"int64 as uint8", list("v", ints(255)), tensor.Uint8, nil, []uint8{255}, ""},
		{"negative as unsigned", list("v", ints(-1)), tensor.Uint64, nil, nil, `found -1, number 0 of the values, which is no uint64`},
		{"floats", list("v", floats(1, 2)), tensor.Float32, shape{2}, []float32{1, 2}, ""},
		{"floats as float64", list("v", floats(0.1)), tensor.Float64, nil, []float64{float64(float32(0.1))}, ""},
		{"floats as float16", list("v", floats(1, 65519)), tensor.Float16, shape{2}, []uint16{0x3c00, 0x7bff}, ""},
		{"floats too large", list("v", floats(1, 65520)), tensor.Float16, shape{2}, nil, `found 65520, number 1 of the values, which is no float16`},
		{"floats as ints", list("v", floats(1)), tensor.Int32, nil, nil, `found float list of 1 value, want one int32`},
		{"a NaN stays one", f8(math.Inf(1), math.Inf(-1)), tensor.Float32, shape{2}, []float32{float32(math.Inf(1)), float32(math.Inf(-1))}, ""},

		{"npy", i4(2, 3), tensor.Int32, shape{2, 3}, []int32{0, 1, 2, 3, 4, 5}, ""},
		{"npy of another shape", i4(2, 3), tensor.Int32, shape{3, 2}, nil, `found an array of int32 of shape [2 3], want int32 of shape [3 2]`},
		{"npy with an axis more", i4(1, 6), tensor.Int32, shape{6}, nil, `shape [1 6]`},
		{"npy of one value", i4(1, 1), tensor.Int64, nil, []int64{0}, ""},
		{"npy of no axis", field("npy", npyOf(tensor.Int32, nil, native([]int32{9}))), tensor.Int64, shape{1}, []int64{9}, ""},
		{"npy wider", i4(3), tensor.Float32, shape{3}, []float32{0, 1, 2}, ""},
		{"npy rounded", f8(0.1, 1e-50), tensor.Float32, shape{2}, []float32{0.1, 0}, ""},
		{"npy beyond", f8(0.1, 1e300), tensor.Float32, shape{2}, nil, `found 1e+300, number 1 of the values, which is no float32`},
		{"npy float as int", f4(1), tensor.Int64, shape{1}, nil, `found an array of float32 of shape [1], want int64 of shape [1]`},
		{"npy int8 and so on", i8(-128, 127), tensor.Int8, shape{2}, []int8{-128, 127}, ""},
		{"npy not int8", i8(-129), tensor.Int8, nil, nil, `no int8`},
		{"npy int16", i8(-32768, 32767), tensor.Int16, shape{2}, []int16{-32768, 32767}, ""},
		{"npy not int16", i8(32768), tensor.Int16, nil, nil, `no int16`},
		{"npy uint16", i8(0, 65535), tensor.Uint16, shape{2}, []uint16{0, 65535}, ""},
		{"npy not uint16", i8(65536), tensor.Uint16, nil, nil, `no uint16`},
		{"npy uint32", i8(0, 1<<32-1), tensor.Uint32, shape{2}, []uint32{0, 1<<32 - 1}, ""},
		{"npy not uint32", i8(1 << 32), tensor.Uint32, nil, nil, `no uint32`},
		{"npy uint64", u8(math.MaxUint64), tensor.Uint64, nil, []uint64{math.MaxUint64}, ""},
		{"npy uint64 as int64", u8(math.MaxInt64), tensor.Int64, nil, []int64{math.MaxInt64}, ""},
		{"npy uint64 beyond", u8(5, 1<<63), tensor.Int64, shape{2}, nil, `found 9223372036854775808, number 1`},
		{"npy bool", b1(true, false), tensor.Float32, shape{2}, []float32{1, 0}, ""},

		{"json", js("[[1, 2.5], [-3e0, 4]]"), tensor.Float32, shape{2, 2}, []float32{1, 2.5, -3, 4}, ""},
		{"json of another shape", js("[[1, 2], [3, 4]]"), tensor.Float32, shape{4}, nil, `found lists of JSON of shape [2 2], want float32 of shape [4]`},
		{"json ragged", js("[[1, 2], [3]]"), tensor.Float32, shape{2, 2}, nil, `found lists of JSON that differ in length, want float32 of shape [2 2]`},
		{"json number", js(" 5 "), tensor.Int32, nil, []int32{5}, ""},
		{"json exact", js("[9007199254740993]"), tensor.Int64, nil, []int64{9007199254740993}, ""},
		{"json uint64", js("[18446744073709551615]"), tensor.Uint64, nil, []uint64{math.MaxUint64}, ""},
		{"json beyond uint64", js("[18446744073709551616]"), tensor.Uint64, nil, nil, `found 18446744073709551616, number 0 of the values, which is no uint64`},
		{"json float as int", js("[1.0]"), tensor.Int64, nil, nil, `found 1.0, number 0 of the values, which is no int64`},
		{"json rounded once", js("[1.00000005960464477540]"), tensor.Float32, nil, []float32{1.0000001}, ""}, // by way of a float64 it would be 1
		{"json not a float32", js("[16777217]"), tensor.Float32, nil, nil, `no float32`},
		{"json beyond", js("[1e39]"), tensor.Float32, nil, nil, `found 1e39`},
		{"json infinite", js("[Infinity, -Infinity]"), tensor.Float64, shape{2}, []float64{math.Inf(1), math.Inf(-1)}, ""},
		{"json truth", js("[true, false]"), tensor.Bool, shape{2}, []bool{true, false}, ""},
		{"json null", js("[1, null]"), tensor.Float32, shape{2}, nil, `(field "box.json"): schema: found null in JSON, at byte 4, want numbers`},
		{"json string", js(`["1"]`), tensor.Float32, shape{1}, nil, `found a string in JSON, at byte 1`},
		{"json object", js(`{"a": 1}`), tensor.Float32, shape{1}, nil, `found an object in JSON`},
		{"json mixed", js(`[1, [2]]`), tensor.Float32, shape{2}, nil, `found a list beside numbers in JSON, at byte 4`},
		{"json mixed the other way", js(`[[1], 2]`), tensor.Float32, shape{2}, nil, `found a number beside lists in JSON, at byte 6`},
		{"json empty deeper", js(`[[1], [[]]]`), tensor.Float32, shape{2}, nil, `found a list beside numbers`},
		{"json none", js(`[]`), tensor.Float32, shape{0, 4}, []float32{}, ""},
		{"json none of two axes", js(`[[], []]`), tensor.Float32, shape{2, 0}, []float32{}, ""},
		{"json none, wrongly", js(`[]`), tensor.Float32, shape{1}, nil, `found lists of JSON of shape [0]`},

		{"cls", field("cls", []byte("5\n")), tensor.Int64, nil, []int64{5}, ""},
		{"cls as float", field("cls", []byte("5")), tensor.Float32, shape{1}, []float32{5}, ""},
		{"txt as float", field("score.txt", []byte(" 0.75 ")), tensor.Float32, nil, []float32{0.75}, ""},
		{"txt as int", field("txt", []byte("0.75")), tensor.Int64, nil, nil, `found "0.75", number 0 of the values, which is no int64`},
		{"txt of words", field("txt", []byte("a dog")), tensor.Float32, nil, nil, `found "a dog"`},
		{"txt in hexadecimal", field("txt", []byte("0x1p3")), tensor.Float32, nil, nil, `found "0x1p3"`},
		{"txt empty", field("txt", []byte(" ")), tensor.Float32, nil, nil, `found ""`},
		{"txt for several", field("cls", []byte("5")), tensor.Int64, shape{2}, nil, `found the text "5", want int64 of shape [2]`},

		{"raw", field("bin", little([]int16{1, -2, 3, -4})), tensor.Int16, shape{2, 2}, []int16{1, -2, 3, -4}, ""},
		{"raw of no suffix", field("pixels", []byte{1, 2}), tensor.Uint8, shape{2}, []uint8{1, 2}, ""},
		{"raw of bools", field("bin", []byte{0, 1, 2}), tensor.Bool, shape{3}, []bool{false, true, true}, ""},
		{"raw of another length", field("bin", []byte{1, 2, 3}), tensor.Int16, shape{2}, nil, `found 3 bytes, want int16 of shape [2]`},
		{"raw too long", field("bin", []byte{1, 2, 3, 4, 5, 6}), tensor.Int16, shape{2}, nil, `found 6 bytes`},
		{"an image", field("jpg", []byte{1, 2, 3}), tensor.Uint8, shape{3}, nil, `found an encoded image, want uint8 of shape [3]`},
		{"an archive", field("npz", []byte{1, 2, 3}), tensor.Uint8, shape{3}, nil, `found an archive of arrays`},
		{"a pickle", field("pkl", []byte{1, 2, 3}), tensor.Uint8, shape{3}, nil, `found a pickle`},

		{"strings", list("raw", texts([]byte{1, 2}, []byte{3, 4}, []byte{5, 6})), tensor.Uint8, shape{3, 2}, []uint8{1, 2, 3, 4, 5, 6}, ""},
		{"one string as a list", list("raw", texts([]byte{1, 2})), tensor.Uint8, shape{2}, []uint8{1, 2}, ""},
		{"strings of another length", list("raw", texts([]byte{1, 2}, []byte{3})), tensor.Uint8, shape{2, 2}, nil, `part 1: found 1 byte, want uint8 of shape [2]`},
		{"strings of another number", list("raw", texts([]byte{1, 2}, []byte{3, 4})), tensor.Uint8, shape{3, 2}, nil, `found a list of 2 byte strings, want uint8 of shape [3 2]`},
		{"strings of numbers", list("a.cls", texts([]byte("1"), []byte("22"))), tensor.Int64, shape{2}, []int64{1, 22}, ""},
		{"steps", list("v", steps(ints(1, 2), ints(3, 4))), tensor.Int32, shape{2, 2}, []int32{1, 2, 3, 4}, ""},
		{"steps of one", list("v", steps(ints(1), ints(3))), tensor.Int32, shape{2}, []int32{1, 3}, ""},
		{"steps of two kinds", list("v", steps(ints(1), floats(3))), tensor.Float32, shape{2}, []float32{1, 3}, ""},
		{"steps of another kind", list("v", steps(ints(1), floats(3))), tensor.Int32, shape{2}, nil, `part 1: found float list of 1 value, want one int32`},
		{"steps that differ", list("v", steps(ints(1), ints(3, 4))), tensor.Int64, shape{2}, nil, `part 1: found int64 list of 2 values, want one int64`},
		{"a step of none", list("v", steps(ints(1), tfexample.FeatureOf(format.NoKind, nil))), tensor.Int64, shape{2}, nil, `part 1: found no value, want one int64`},
		{"steps of another number", list("v", steps(ints(1), ints(3))), tensor.Int64, shape{3}, nil, `found 2 steps, want int64 of shape [3]`},
		{"no steps", list("v", steps()), tensor.Int64, shape{3}, nil, `found 0 steps`},
		{"steps beyond", list("v", steps(ints(1), ints(300))), tensor.Uint8, shape{2}, nil, `part 1: found 300`},
		{"one step for one value", list("v", steps(ints(7))), tensor.Int64, nil, []int64{7}, ""},
		{"steps of strings", list("v", steps(texts([]byte{1, 2}), texts([]byte{3, 4}))), tensor.Uint8, shape{2, 2}, []uint8{1, 2, 3, 4}, ""},
		{"steps of lists of strings", list("v", steps(texts([]byte{1}, []byte{2}), texts([]byte{3}, []byte{4}))), tensor.Uint8, shape{2, 2, 1}, []uint8{1, 2, 3, 4}, ""},
	} {
		slot := newDense(tt.dtype, tt.shape)
		err := codec.Fill(slot, tt.f)
		if tt.err != "" {
			if format.Sentinel(err) != format.ErrSchema || !strings.Contains(err.Error(), tt.err) || format.AsError(err).Field != tt.f.Name {
				t.Errorf("%s: error %v, want %s", tt.what, err, tt.err)
			}
			continue
		}
		if err != nil || !bytes.Equal(slot.Bytes(), native(tt.want)) {
			t.Errorf("%s: % x, %v; want % x", tt.what, slot.Bytes(), err, native(tt.want))
		}
	}
}

func TestFillFails(t *testing.T) {
	slot := newDense(tensor.Int64, tensor.Shape{2})
	for _, tt := range []struct {
		what string
		f    *format.Field
		want error
	}{
		{"not there", field("cls", nil), format.ErrMissing},
		{"no kind", &format.Field{Name: "v", Kind: format.NoKind}, format.ErrMissing},
		{"cut", field("npy", npyOf(tensor.Int64, tensor.Shape{2}, nil)[:70]), format.ErrTruncated},
		{"not JSON", field("json", []byte("[1 2]")), format.ErrCorrupt},
		{"JSON that ends early", field("json", []byte("[1, 2")), format.ErrTruncated},
		{"JSON with more", field("json", []byte("[1, 2]]")), format.ErrCorrupt},
		{"a broken list", &format.Field{Name: "v", Kind: format.Int64List, Data: []byte{0x0a, 2, 0x80, 0x80}}, format.ErrCorrupt},
		{"a broken list of steps", &format.Field{Name: "v", Kind: format.FeatureList, Data: []byte{0x0a, 9, 1}}, format.ErrCorrupt},
		{"a broken gzip", field("npy.gz", []byte("\x1f\x8b\x08")), format.ErrTruncated},
		{"several arrays", field("ten", slices.Concat(tenOf(1), tenOf(1))), format.ErrSchema},
		{"no array", field("ten", []byte{}), format.ErrSchema},
		{"deep JSON", field("json", bytes.Repeat([]byte("["), 100)), format.ErrLimit},
	} {
		for _, err := range everyWay(slot, tt.f) {
			if strings.HasPrefix(err.what, "append") && tt.want == format.ErrSchema && err.error == nil {
				continue
			}
			if format.Sentinel(err.error) != tt.want || format.AsError(err.error).Field != tt.f.Name {
				t.Errorf("%s: %s: %v, want %v", tt.what, err.what, err.error, tt.want)
			}
		}
	}
	if err := codec.Fill(tensor.Dense{}, field("cls", []byte("1"))); format.Sentinel(err) != format.ErrUsage {
		t.Errorf("the zero Dense: %v", err)
	}
	if _, err := codec.FillRows(newDense(tensor.Int64, nil), field("cls", []byte("1"))); format.Sentinel(err) != format.ErrUsage {
		t.Errorf("no rows: %v", err)
	}
	if _, err := codec.FillRows(newDense(tensor.Int64, tensor.Shape{2, 0}), field("cls", []byte("1"))); format.Sentinel(err) != format.ErrUsage {
		t.Errorf("rows of no values: %v", err)
	}
	if _, _, err := codec.AppendRows(nil, tensor.Int64, tensor.Shape{0}, field("cls", []byte("1"))); format.Sentinel(err) != format.ErrUsage {
		t.Errorf("rows of no values: %v", err)
	}
}

func tenOf(v int64) []byte {
	chunk := func(b []byte) []byte {
		return slices.Concat([]byte("~TenBin~"), little(int64(len(b))), b, make([]byte, (64-len(b)%64)%64))
	}
	return slices.Concat(chunk(slices.Concat([]byte("i8\x00\x00\x00\x00\x00\x00"), little([]int64{0, 1, 1}))), chunk(little(v)))
}

type way struct {
	what  string
	error error
}

// everyWay reads a field in every way that there is.
func everyWay(slot tensor.Dense, f *format.Field) []way {
	fill := codec.Fill(slot, f)
	_, fillRows := codec.FillRows(slot, f)
	_, _, appendRows := codec.AppendRows(nil, slot.DType(), slot.Shape()[1:], f)
	_, int64s := codec.AppendInt64(nil, f)
	_, float32s := codec.AppendFloat32(nil, f)
	_, float64s := codec.AppendFloat64(nil, f)
	_, _, ragged := codec.AppendRagged([]int64(nil), nil, f)
	return []way{{"fill", fill}, {"fill rows", fillRows}, {"append rows", appendRows}, {"append int64", int64s}, {"append float32", float32s}, {"append float64", float64s}, {"append ragged", ragged}}
}

func TestRows(t *testing.T) {
	type shape = tensor.Shape
	for _, tt := range []struct {
		what  string
		f     *format.Field
		inner tensor.Shape
		want  []int32
		err   string
	}{
		{"a list", list("v", ints(1, 2, 3)), nil, []int32{1, 2, 3}, ""},
		{"none", list("v", ints()), nil, []int32{}, ""},
		{"pairs", list("v", ints(1, 2, 3, 4)), shape{2}, []int32{1, 2, 3, 4}, ""},
		{"no pairs", list("v", ints(1, 2, 3)), shape{2}, nil, "found int64 list of 3 values, want rows of int32 of shape [2]"},
		{"npy", field("npy", npyOf(tensor.Int64, shape{2, 2}, native([]int64{1, 2, 3, 4}))), shape{2}, []int32{1, 2, 3, 4}, ""},
		{"npy of another shape", field("npy", npyOf(tensor.Int64, shape{2, 2}, native([]int64{1, 2, 3, 4}))), nil, nil, "found an array of int64 of shape [2 2], want a list of int32"},
		{"npy of one value", field("npy", npyOf(tensor.Int64, nil, native(int64(1)))), nil, []int32{1}, ""},
		{"json", field("json", []byte("[[1,2],[3,4],[5,6]]")), shape{2}, []int32{1, 2, 3, 4, 5, 6}, ""},
		{"json none", field("json", []byte("[]")), shape{2}, []int32{}, ""},
		{"json ragged", field("json", []byte("[[1,2],[3]]")), shape{2}, nil, "differ in length"},
		{"json of another shape", field("json", []byte("[1,2]")), shape{2}, nil, "shape [2]"},
		{"text", field("cls", []byte("7")), nil, []int32{7}, ""},
		{"raw", field("bin", little([]int32{1, 2, 3})), nil, []int32{1, 2, 3}, ""},
		{"steps", list("v", steps(ints(1, 2), ints(3, 4))), shape{2}, []int32{1, 2, 3, 4}, ""},
		{"steps of another length", list("v", steps(ints(1, 2), ints(3))), shape{2}, nil, "part 1"},
		{"too large", list("v", ints(1, 1<<40)), nil, nil, "found 1099511627776, number 1"},
	} {
		got, n, err := codec.AppendRows([]byte("with"), tensor.Int32, tt.inner, tt.f)
		row := tt.inner.Elems()
		if tt.err != "" {
			if format.Sentinel(err) != format.ErrSchema || !strings.Contains(err.Error(), tt.err) || string(got) != "with" || n != 0 {
				t.Errorf("%s: %q, %d, error %v, want %s", tt.what, got, n, err, tt.err)
			}
			continue
		}
		if err != nil || !bytes.Equal(got, append([]byte("with"), native(tt.want)...)) || n != len(tt.want)/row {
			t.Errorf("%s: % x, %d rows, %v", tt.what, got, n, err)
		}
		for room := range 4 {
			slot := newDense(tensor.Int32, append(shape{room}, tt.inner...))
			for i := range slot.Bytes() {
				slot.Bytes()[i] = 0xee
			}
			n, err := codec.FillRows(slot, tt.f)
			fits := min(len(tt.want), room*row)
			if err != nil || n != len(tt.want)/row || !slices.Equal(slot.Int32()[:fits], tt.want[:fits]) {
				t.Errorf("%s in %d rows: %v, %d, %v", tt.what, room, slot.Int32(), n, err)
			}
			if rest := slot.Bytes()[fits*4:]; len(bytes.Trim(rest, "\xee")) > 0 {
				t.Errorf("%s in %d rows: % x behind", tt.what, room, rest)
			}
		}
	}
}

func TestAppend(t *testing.T) {
	for _, tt := range []struct {
		what string
		f    *format.Field
		want []float64
	}{
		{"ints", list("v", ints(1, 2, 3)), []float64{1, 2, 3}},
		{"steps", list("v", steps(ints(1, 2), ints(), ints(3))), []float64{1, 2, 3}},
		{"json ragged", field("json", []byte("[[1],[2,3]]")), []float64{1, 2, 3}},
		{"raw", field("cls", []byte("4")), []float64{4}},
		{"npy", field("npy", npyOf(tensor.Uint8, tensor.Shape{2, 2}, []byte{1, 2, 3, 4})), []float64{1, 2, 3, 4}},
	} {
		i, err1 := codec.AppendInt64([]int64{9}, tt.f)
		f, err2 := codec.AppendFloat32([]float32{9}, tt.f)
		d, err3 := codec.AppendFloat64([]float64{9}, tt.f)
		if err1 != nil || err2 != nil || err3 != nil {
			t.Errorf("%s: %v, %v, %v", tt.what, err1, err2, err3)
			continue
		}
		want := append([]float64{9}, tt.want...)
		for k, w := range want {
			if len(i) != len(want) || float64(i[k]) != w || len(f) != len(want) || float64(f[k]) != w || len(d) != len(want) || d[k] != w {
				t.Errorf("%s: %v, %v, %v; want %v", tt.what, i, f, d, want)
				break
			}
		}
	}
	if got, err := codec.AppendInt64([]int64{9}, list("v", floats(1))); format.Sentinel(err) != format.ErrSchema || len(got) != 1 ||
		!strings.Contains(err.Error(), "found float list of 1 value, want a list of int64") {
		t.Errorf("floats as ints: %v, %v", got, err)
	}
}

func TestRagged(t *testing.T) {
	for _, tt := range []struct {
		what   string
		f      *format.Field
		want   []int64
		splits []int64
		err    string
	}{
		{"steps", list("v", steps(ints(1, 2), ints(), ints(3))), []int64{1, 2, 3}, []int64{2, 2, 3}, ""},
		{"a step of no kind", list("v", steps(ints(1), tfexample.FeatureOf(format.NoKind, nil))), []int64{1}, []int64{1, 1}, ""},
		{"no steps", list("v", steps()), nil, nil, ""},
		{"strings", list("bin", texts(little([]int64{5}), nil, little([]int64{6, 7}))), []int64{5, 6, 7}, []int64{1, 1, 3}, ""},
		{"a list", list("v", ints(4, 5)), []int64{4, 5}, []int64{2}, ""},
		{"an empty list", list("v", ints()), nil, []int64{0}, ""},
		{"json", field("json", []byte("[[1], [], [2, 3]]")), []int64{1, 2, 3}, []int64{1, 1, 3}, ""},
		{"json of a shape", field("json", []byte("[[1,2],[3,4]]")), []int64{1, 2, 3, 4}, []int64{2, 4}, ""},
		{"json of three axes", field("json", []byte("[[[1],[2]],[[3],[4]]]")), []int64{1, 2, 3, 4}, []int64{2, 4}, ""},
		{"json of empty lists", field("json", []byte("[[],[]]")), nil, []int64{0, 0}, ""},
		{"json of one axis", field("json", []byte("[1,2]")), []int64{1, 2}, []int64{2}, ""},
		{"json ragged deeper", field("json", []byte("[[[1],[2,3]],[[4],[5]]]")), nil, nil, "3 deep, want one list of lists"},
		{"json not ints", field("json", []byte("[[1],[2,2.5]]")), nil, nil, "found 2.5, number 2"},
		{"npy", field("npy", npyOf(tensor.Uint8, tensor.Shape{2, 3}, []byte{1, 2, 3, 4, 5, 6})), []int64{1, 2, 3, 4, 5, 6}, []int64{3, 6}, ""},
		{"npy of no rows", field("npy", npyOf(tensor.Uint8, tensor.Shape{0, 3}, nil)), nil, nil, ""},
		{"npy of one axis", field("npy", npyOf(tensor.Uint8, tensor.Shape{2}, []byte{1, 2})), []int64{1, 2}, []int64{2}, ""},
		{"floats", list("v", steps(ints(1), floats(2))), nil, nil, "part 1: found float list of 1 value, want a list of int64"},
	} {
		for _, had := range []int64{0, 5} { // appended to nothing, and to what is there
			values, splits := slices.Repeat([]int64{9}, int(had)), []int64(nil)
			wantValues, wantSplits := slices.Concat(values, tt.want), []int64{had}
			if had > 0 {
				splits = []int64{0, had}
				wantSplits = []int64{0, had}
			}
			for _, s := range tt.splits {
				wantSplits = append(wantSplits, had+s)
			}
			v, s, err := codec.AppendRagged(values, splits, tt.f)
			if tt.err != "" {
				if format.Sentinel(err) != format.ErrSchema || !strings.Contains(err.Error(), tt.err) || len(v) != len(values) || len(s) != len(splits) {
					t.Errorf("%s: %v, %v, error %v, want %s", tt.what, v, s, err, tt.err)
				}
				continue
			}
			if err != nil || !slices.Equal(v, wantValues) || !slices.Equal(s, wantSplits) {
				t.Errorf("%s: %v, %v, %v; want %v, %v", tt.what, v, s, err, wantValues, wantSplits)
			}
			r := tensor.Ragged{Values: tensor.View(tensor.Int64, tensor.Shape{len(v)}, native(v)), Splits: s}
			if len(v) > 0 && r.Len() > 0 && len(r.At(0).Int64()) != int(s[1]) {
				t.Errorf("%s: row 0 is %v", tt.what, r.At(0).Int64())
			}
		}
	}
}

func TestBinary(t *testing.T) {
	for _, tt := range []struct {
		f    *format.Field
		want []string
		err  error
	}{
		{field("jpg", []byte("abc")), []string{"abc"}, nil},
		{field("jpg", []byte{}), []string{""}, nil},
		{field("jpg", nil), nil, format.ErrMissing},
		{list("v", texts([]byte("a"), nil, []byte("bc"))), []string{"a", "", "bc"}, nil},
		{list("v", texts()), nil, nil},
		{list("v", steps(texts([]byte("a")), texts([]byte("bc")))), []string{"a", "bc"}, nil},
		{list("v", steps(texts([]byte("a"), []byte("b")))), nil, format.ErrSchema},
		{list("v", steps(ints(1))), nil, format.ErrSchema},
		{list("v", ints(1)), nil, format.ErrSchema},
		{&format.Field{Kind: format.NoKind}, nil, format.ErrSchema},
		{&format.Field{Kind: format.BytesList, Data: []byte{0x0a, 5}}, nil, format.ErrCorrupt},
	} {
		data, splits, err := codec.AppendBinary([]byte("x"), []int64{0, 1}, tt.f)
		b := tensor.Binary{Data: data, Splits: splits}
		got := []string{}
		for i := 1; i < b.Len(); i++ {
			got = append(got, string(b.At(i)))
		}
		if format.Sentinel(err) != tt.err || !slices.Equal(got, tt.want) || string(b.At(0)) != "x" {
			t.Errorf("%v %q: %q, %v; want %q, %v", tt.f.Kind, tt.f.Data, got, err, tt.want, tt.err)
		}
	}
	if _, splits, err := codec.AppendBinary(nil, nil, field("txt", []byte("ab"))); err != nil || !slices.Equal(splits, []int64{0, 2}) {
		t.Errorf("from nothing: %v, %v", splits, err)
	}
}

// TestConversions compares every conversion of whole numbers with what Go does:
// a number fits if it comes back.
func TestConversions(t *testing.T) {
	types := []struct {
		dtype tensor.DType
		of    any
	}{
		{tensor.Int8, int8(0)}, {tensor.Int16, int16(0)}, {tensor.Int32, int32(0)}, {tensor.Int64, int64(0)},
		{tensor.Uint8, uint8(0)}, {tensor.Uint16, uint16(0)}, {tensor.Uint32, uint32(0)}, {tensor.Uint64, uint64(0)},
		{tensor.Float32, float32(0)}, {tensor.Float64, float64(0)},
	}
	rapid.Check(t, func(t *rapid.T) {
		from := types[rapid.IntRange(0, 7).Draw(t, "from")]
		to := types[rapid.IntRange(0, len(types)-1).Draw(t, "to")]
		v := reflect.ValueOf(rapid.Int64().Draw(t, "value") >> rapid.IntRange(0, 63).Draw(t, "shift")).Convert(reflect.TypeOf(from.of))
		if v.CanUint() && v.Uint() > math.MaxInt64 && to.dtype != tensor.Uint64 {
			v = reflect.ValueOf(uint64(math.MaxInt64))
		}
		w := v.Convert(reflect.TypeOf(to.of))
		fits := exactly(v, w)
		n := rapid.IntRange(1, 600).Draw(t, "count") // over several chunks
		elements := bytes.Repeat(native(v.Interface()), n)
		slot := newDense(to.dtype, tensor.Shape{n})
		err := codec.Fill(slot, field("npy", npyOf(from.dtype, tensor.Shape{n}, elements)))
		if (err == nil) != fits {
			t.Fatalf("%v %v as %v: fits %v, error %v", from.dtype, v, to.dtype, fits, err)
		}
		if fits && !bytes.Equal(slot.Bytes(), bytes.Repeat(native(w.Interface()), n)) {
			t.Fatalf("%v %v as %v: % x", from.dtype, v, to.dtype, slot.Bytes())
		}
	})
}

// TestHalves rounds to the significant bits of a type, once.
func TestHalves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(1, 2).Draw(t, "value")
		if cut := rapid.IntRange(0, 52).Draw(t, "cut"); cut > 0 { // near the middle of two
			v = math.Float64frombits(math.Float64bits(v)&^(1<<cut-1) | uint64(rapid.IntRange(0, 1).Draw(t, "low")))
		}
		v = math.Copysign(math.Ldexp(v, rapid.IntRange(-14, 14).Draw(t, "exponent")), float64(rapid.IntRange(-1, 1).Draw(t, "sign")))
		for dtype, bits := range map[tensor.DType]uint{tensor.Float16: 11, tensor.BFloat16: 8} {
			want, _ := new(big.Float).SetMode(big.ToNearestEven).SetPrec(bits).SetFloat64(v).Float32()
			slot, got := newDense(dtype, nil), [1]float32{}
			if err := codec.Fill(slot, field("npy", npyOf(tensor.Float64, nil, native(v)))); err != nil {
				t.Fatal(err)
			}
			if dtype == tensor.Float16 {
				tensor.FromFloat16(got[:], slot.Half())
			} else {
				tensor.FromBFloat16(got[:], slot.Half())
			}
			if got[0] != want {
				t.Fatalf("%v as %v: %v, want %v", v, dtype, got[0], want)
			}
		}
	})
}

// exactly compares by the decimal digits.
func exactly(v, w reflect.Value) bool {
	if w.CanFloat() {
		return fmt.Sprintf("%.0f", w.Float()) == fmt.Sprint(v.Interface())
	}
	return fmt.Sprint(v.Interface()) == fmt.Sprint(w.Interface())
}

// TestJSONIsTheArray: lists of JSON hold what an array of the same values does.
func TestJSONIsTheArray(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := tensor.Shape(rapid.SliceOfN(rapid.IntRange(1, 4), 0, 4).Draw(t, "shape"))
		values := rapid.SliceOfN(rapid.Float64(), shape.Elems(), shape.Elems()).Draw(t, "values")
		text, rest := nest(shape, values)
		if len(rest) > 0 {
			t.Fatal("values are left")
		}
		slot := newDense(tensor.Float64, shape)
		if err := codec.Fill(slot, field("json", []byte(text))); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i, v := range slot.Float64() {
			if v != values[i] {
				t.Fatalf("%s: %v", text, slot.Float64())
			}
		}
	})
}

func nest(shape tensor.Shape, values []float64) (string, []float64) {
	if len(shape) == 0 {
		b, _ := json.Marshal(values[0])
		if !strings.ContainsAny(string(b), ".e") {
			b = append(b, ".0"...)
		}
		return string(b), values[1:]
	}
	parts := make([]string, shape[0])
	for i := range parts {
		parts[i], values = nest(shape[1:], values)
	}
	return "[" + strings.Join(parts, ", ") + "]", values
}

// TestFillAllocatesNothing holds for whatever is written into memory that is
// there.
func TestFillAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("with the race detector, pools forget")
	}
	many := make([]int64, 300)
	for i := range many {
		many[i] = int64(i * 100)
	}
	big := npyOf(tensor.Float64, tensor.Shape{3, 100}, make([]byte, 2400))
	fortran := bytes.Replace(big, []byte("False"), []byte("True "), 1)
	shape := tensor.Shape{3, 100}
	ofInt64, ofInt32, ofFloat32, ofFloat16 := newDense(tensor.Int64, shape), newDense(tensor.Int32, shape), newDense(tensor.Float32, shape), newDense(tensor.Float16, shape)
	step := ints(many[:100]...)
	json300 := []byte("[" + strings.Repeat("["+strings.Repeat("1.5,", 99)+"2.5],", 2) + "[" + strings.Repeat("1.5,", 99) + "2.5]]")
	strs := texts(make([]byte, 400), make([]byte, 400), make([]byte, 400))
	ten := field("ten", slices.Concat(tenOf(5)))
	one := newDense(tensor.Int64, nil)
	values, splits := make([]int64, 0, 1000), make([]int64, 0, 1000)
	floatValues := make([]float32, 0, 1000)
	arena := make([]byte, 0, 10_000)
	for _, tt := range []struct {
		what string
		f    *format.Field
		do   func(f *format.Field) error
	}{
		{"ints", list("v", ints(many...)), func(f *format.Field) error { return codec.Fill(ofInt64, f) }},
		{"ints as int32", list("v", ints(many...)), func(f *format.Field) error { return codec.Fill(ofInt32, f) }},
		{"ints as float16", list("v", ints(make([]int64, 300)...)), func(f *format.Field) error { return codec.Fill(ofFloat16, f) }},
		{"floats", list("v", floats(make([]float32, 300)...)), func(f *format.Field) error { return codec.Fill(ofFloat32, f) }},
		{"floats as float16", list("v", floats(make([]float32, 300)...)), func(f *format.Field) error { return codec.Fill(ofFloat16, f) }},
		{"npy", field("npy", big), func(f *format.Field) error { return codec.Fill(ofFloat32, f) }},
		{"npy in another order", field("npy", fortran), func(f *format.Field) error { return codec.Fill(ofFloat32, f) }},
		{"json", field("json", json300), func(f *format.Field) error { return codec.Fill(ofFloat32, f) }},
		{"ten", ten, func(f *format.Field) error { return codec.Fill(one, f) }},
		{"text", field("cls", []byte("77\n")), func(f *format.Field) error { return codec.Fill(one, f) }},
		{"raw", field("bin", make([]byte, 1200)), func(f *format.Field) error { return codec.Fill(ofInt32, f) }},
		{"strings", list("v", strs), func(f *format.Field) error { return codec.Fill(ofFloat32, f) }},
		{"steps", list("v", steps(step, step, step)), func(f *format.Field) error { return codec.Fill(ofInt64, f) }},
		{"steps as int32", list("v", steps(step, step, step)), func(f *format.Field) error { return codec.Fill(ofInt32, f) }},
		{"rows", list("v", ints(many...)), func(f *format.Field) error { _, err := codec.FillRows(ofInt64, f); return err }},
		{"arena", list("v", ints(many...)), func(f *format.Field) (err error) {
			arena, _, err = codec.AppendRows(arena[:0], tensor.Int32, nil, f)
			return
		}},
		{"append", list("v", ints(many...)), func(f *format.Field) (err error) { values, err = codec.AppendInt64(values[:0], f); return }},
		{"append floats", list("v", ints(1, 2)), func(f *format.Field) (err error) { floatValues, err = codec.AppendFloat32(floatValues[:0], f); return }},
		{"ragged", list("v", steps(step, step, step)), func(f *format.Field) (err error) {
			values, splits, err = codec.AppendRagged(values[:0], splits[:0], f)
			return
		}},
		{"binary", list("v", strs), func(f *format.Field) (err error) {
			arena, splits, err = codec.AppendBinary(arena[:0], splits[:0], f)
			return
		}},
	} {
		if err := tt.do(tt.f); err != nil {
			t.Errorf("%s: %v", tt.what, err)
			continue
		}
		if n := testing.AllocsPerRun(100, func() {
			if tt.do(tt.f) != nil {
				panic(tt.what)
			}
		}); n != 0 {
			t.Errorf("%s allocates %v times", tt.what, n)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	tokens := make([]int64, 375)
	for i := range tokens {
		tokens[i] = int64(i*7919) % 50257
	}
	vector := npyOf(tensor.Float32, tensor.Shape{768}, make([]byte, 4*768))
	half := npyOf(tensor.Float16, tensor.Shape{768}, make([]byte, 2*768))
	boxes := []byte("[" + strings.TrimSuffix(strings.Repeat("[12.5,7.25,310.125,99.0],", 20), ",") + "]")
	for _, tt := range []struct {
		what  string
		f     *format.Field
		dtype tensor.DType
		shape tensor.Shape
	}{
		{"cls", field("cls", []byte("417\n")), tensor.Int64, nil},
		{"tokens", list("tokens", ints(tokens...)), tensor.Int64, tensor.Shape{375}},
		{"tokens as int32", list("tokens", ints(tokens...)), tensor.Int32, tensor.Shape{375}},
		{"npy of 768 float32", field("npy", vector), tensor.Float32, tensor.Shape{768}},
		{"npy of 768 float16 as float32", field("npy", half), tensor.Float32, tensor.Shape{768}},
		{"json of 20 boxes", field("json", boxes), tensor.Float32, tensor.Shape{20, 4}},
	} {
		b.Run(tt.what, func(b *testing.B) {
			slot := newDense(tt.dtype, tt.shape)
			b.ReportAllocs()
			b.SetBytes(int64(len(tt.f.Data)))
			for b.Loop() {
				if err := codec.Fill(slot, tt.f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
