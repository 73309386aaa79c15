package column

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"shardtool/augment"
	"shardtool/format"
	"shardtool/internal/simd"
	"shardtool/tensor"
)

// Fields, encoded by hand.

func ints(name string, values ...int64) *format.Field {
	var list []byte
	for _, v := range values {
		list = protowire.AppendVarint(list, uint64(v))
	}
	return &format.Field{Name: name, Kind: format.Int64List, Data: protowire.AppendBytes([]byte{0x0a}, list)}
}

func floats(name string, values ...float32) *format.Field {
	var list []byte
	for _, v := range values {
		list = protowire.AppendFixed32(list, math.Float32bits(v))
	}
	return &format.Field{Name: name, Kind: format.FloatList, Data: protowire.AppendBytes([]byte{0x0a}, list)}
}

func text(name, value string) *format.Field { return &format.Field{Name: name, Data: []byte(value)} }

// steps is a list of steps that are int64 lists.
func steps(name string, lists ...*format.Field) *format.Field {
	var data []byte
	for _, l := range lists {
		data = protowire.AppendBytes(append(data, 0x0a), protowire.AppendBytes([]byte{0x1a}, l.Data))
	}
	return &format.Field{Name: name, Kind: format.FeatureList, Data: data}
}

// bytesOf is the memory of numbers.
func bytesOf(numbers any) []byte {
	b, err := binary.Append(nil, binary.NativeEndian, numbers)
	if err != nil {
		panic(err)
	}
	return b
}

// slotOf is a slot for a column, full of what was left there, and an arena that
// holds something already.
func slotOf(k Kind, arena []byte) *Slot {
	s := &Slot{Length: -1}
	switch k.Form() {
	case FormDense, FormPadded:
		s.Dense, _ = tensor.New(new(tensor.Pool), k.DType(), k.Shape())
		for i := range s.Dense.Bytes() {
			s.Dense.Bytes()[i] = 0xEE
		}
	case FormRagged, FormBinary:
		s.Arena = append(make([]byte, 0, 64), arena...)
	}
	return s
}

// made is what a filler adds.
func (s *Slot) made(before int) []byte {
	if b := s.Dense.Bytes(); b != nil {
		return b
	}
	return s.Arena[before:]
}

func TestFill(t *testing.T) {
	pad := func(v float64) *PadOptions { return &PadOptions{Value: v} }
	cut := &PadOptions{Truncate: true}
	npy := append([]byte("\x93NUMPY\x01\x00\x46\x00{'descr': '<i4', 'fortran_order': False, 'shape': (2, 2), }"+strings.Repeat(" ", 10)+"\n"), bytesOf([]int32{1, 2, 3, 4})...)
	for _, tt := range []struct {
		name   string
		column Column
		field  *format.Field
		want   any // numbers
		length int64
		err    string
	}{
		{"label as text", Int64("cls"), text("cls", " 7\n"), []int64{7}, -1, ""},
		{"label as a feature", Int64("cls"), ints("cls", -7), []int64{-7}, -1, ""},
		{"label as a feature, not packed", Int64("cls"), &format.Field{Name: "cls", Kind: format.Int64List, Data: []byte{0x08, 0xac, 0x02}}, []int64{300}, -1, ""},
		{"two labels", Int64("cls"), ints("cls", 1, 2), nil, -1, `(field "cls"): schema: found int64 list of 2 values, want one int64`},
		{"no label", Int64("cls"), ints("cls"), nil, -1, `(field "cls"): schema: found int64 list of 0 values, want one int64`},
		{"a float as a label", Int64("cls"), floats("cls", 1), nil, -1, `(field "cls"): schema: found float list of 1 value, want one int64`},
		{"a damaged label", Int64("cls"), &format.Field{Name: "cls", Kind: format.Int64List, Data: []byte{0x0a, 2, 1, 0x80}}, nil, -1, `(field "cls"): corrupt: `},
		{"a word", Int64("cls"), text("cls", "cat"), nil, -1, `(field "cls"): schema: found `},
		{"float", Float32("score"), floats("score", 0.5), []float32{0.5}, -1, ""},
		{"float of a whole number", Float32("score"), ints("score", 3), []float32{3}, -1, ""},
		{"dense", Dense("box", tensor.Float32, 2, 2), floats("box", 1, 2, 3, 4), []float32{1, 2, 3, 4}, -1, ""},
		{"dense of another type", Dense("box", tensor.Uint8, 3), ints("box", 1, 2, 255), []uint8{1, 2, 255}, -1, ""},
		{"dense beyond its type", Dense("box", tensor.Uint8, 3), ints("box", 1, 2, 256), nil, -1, `(field "box"): schema: found 256`},
		{"dense int32", Dense("box", tensor.Int32, 2), ints("box", math.MaxInt32, math.MinInt32), []int32{math.MaxInt32, math.MinInt32}, -1, ""},
		{"dense int32 beyond it", Dense("box", tensor.Int32, 2), ints("box", math.MaxInt32+1, 0), nil, -1, `(field "box"): schema: found 2147483648`},
		{"dense too long", Dense("box", tensor.Float32, 2, 2), floats("box", 1, 2, 3, 4, 5), nil, -1, `(field "box"): schema: found float list of 5 values, want float32 of shape [2 2]`},
		{"npy", Dense("box.npy", tensor.Int64, 2, 2), &format.Field{Name: "box.npy", Data: npy}, []int64{1, 2, 3, 4}, -1, ""},
		{"npy of another shape", Dense("box.npy", tensor.Int64, 4), &format.Field{Name: "box.npy", Data: npy}, nil, -1, `(field "box.npy"): schema: found an array of int32 of shape [2 2], want int64 of shape [4]`},

		{"padded", Padded("ids", tensor.Int64, 5, pad(-100)), ints("ids", 1, 50256, 3), []int64{1, 50256, 3, -100, -100}, 3, ""},
		{"padded with zero", Padded("ids", tensor.Int64, 4, nil), ints("ids", 9), []int64{9, 0, 0, 0}, 1, ""},
		{"padded, empty", Padded("ids", tensor.Int64, 2, pad(7)), ints("ids"), []int64{7, 7}, 0, ""},
		{"padded, full", Padded("ids", tensor.Int64, 2, pad(7)), ints("ids", 1, 2), []int64{1, 2}, 2, ""},
		{"padded, too long", Padded("ids", tensor.Int64, 2, pad(7)), ints("ids", 1, 2, 3), nil, -1, `(field "ids"): schema: found 3 values, want at most 2`},
		{"padded, cut", Padded("ids", tensor.Int64, 2, cut), ints("ids", 1, 2, 3), []int64{1, 2}, 2, ""},
		{"padded int32", Padded("ids", tensor.Int32, 3, pad(-1)), ints("ids", 50256), []int32{50256, -1, -1}, 1, ""},
		{"padded uint16", Padded("ids", tensor.Uint16, 3, pad(65535)), ints("ids", 50256), []uint16{50256, 65535, 65535}, 1, ""},
		{"padded floats", Padded("x", tensor.Float32, 3, pad(0.1)), floats("x", 2), []float32{2, 0.1, 0.1}, 1, ""},
		{"padded boxes", Padded("b", tensor.Float32, 2, &PadOptions{Value: -1, Inner: []int{2}}), floats("b", 1, 2), []float32{1, 2, -1, -1}, 1, ""},
		{"padded boxes, cut", Padded("b", tensor.Float32, 1, &PadOptions{Truncate: true, Inner: []int{2}}), floats("b", 1, 2, 3, 4), []float32{1, 2}, 1, ""},
		{"padded boxes, too long", Padded("b", tensor.Float32, 1, &PadOptions{Inner: []int{2}}), floats("b", 1, 2, 3, 4), nil, -1, `(field "b"): schema: found 2 rows of shape [2], want at most 1`},
		{"padded boxes, a half", Padded("b", tensor.Float32, 2, &PadOptions{Inner: []int{2}}), floats("b", 1, 2, 3), nil, -1, `(field "b"): schema: found float list of 3 values, want rows of float32 of shape [2]`},
		{"padded json", Padded("j.json", tensor.Int64, 3, nil), text("j.json", "[4, 5]"), []int64{4, 5, 0}, 2, ""},
		{"padded steps", Padded("s", tensor.Int64, 3, &PadOptions{Value: -1, Inner: []int{2}}), steps("s", ints("", 1, 2), ints("", 3, 4)), []int64{1, 2, 3, 4, -1, -1}, 2, ""},

		{"ragged", Ragged("ids", tensor.Int64), ints("ids", 1, -2, 3), []int64{1, -2, 3}, 3, ""},
		{"ragged, empty", Ragged("ids", tensor.Int64), ints("ids"), []int64{}, 0, ""},
		{"ragged boxes", Ragged("b", tensor.Float32, 2), floats("b", 1, 2, 3, 4), []float32{1, 2, 3, 4}, 2, ""},
		{"ragged boxes, a half", Ragged("b", tensor.Float32, 2), floats("b", 1, 2, 3), nil, -1, `(field "b"): schema: found float list of 3 values, want rows of float32 of shape [2]`},
		{"ragged of another type", Ragged("ids", tensor.Float64), ints("ids", 1, 2), []float64{1, 2}, 2, ""},
		{"ragged, damaged", Ragged("ids", tensor.Int64), &format.Field{Name: "ids", Kind: format.Int64List, Data: []byte{0x0a, 2, 1, 0x80}}, nil, -1, `(field "ids"): corrupt: `},
		{"ragged steps", Ragged("s", tensor.Int64, 2), steps("s", ints("", 1, 2), ints("", 3, 4)), []int64{1, 2, 3, 4}, 2, ""},

		{"bytes", Bytes("x"), text("x", "abc"), []byte("abc"), -1, ""},
		{"bytes, empty", Bytes("x"), text("x", ""), []byte{}, -1, ""},
		{"no bytes", Bytes("x"), ints("x", 1, 2), nil, -1, `(field "x"): schema: found a list of kind int64 with 2 values, want one byte string`},
		{"key", Key(), nil, []byte("the key"), -1, ""},
		{"no image", Image("png", augment.ImageNetEval(8)), ints("png", 1), nil, -1, `(field "png"): schema: found a list of kind int64 with 1 values, want one encoded image`},
		{"image of no format", Image("png", augment.ImageNetEval(8)), text("png", "no picture"), nil, -1, `(field "png"): `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.column.Check(); err != nil {
				t.Fatal(err)
			}
			before := bytes.Repeat([]byte{0xAA}, 24)
			out := slotOf(tt.column.Kind, before)
			s := &format.Sample{Key: []byte("the key")}
			err := tt.column.Kind.NewFiller(nil).Fill(out, s, tt.field, 0, new(Meter))
			if tt.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.err) {
					t.Fatalf("error %v, want %s", err, tt.err)
				}
				if out.Arena != nil && !bytes.Equal(out.Arena, before) {
					t.Error("the arena is not as it was")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, want := out.made(len(before)), bytesOf(tt.want); !bytes.Equal(got, want) || out.Length != tt.length {
				t.Errorf("% x of length %d, want % x of %d", got, out.Length, want, tt.length)
			}
			if out.Arena != nil && !bytes.HasPrefix(out.Arena, before) {
				t.Error("what the arena held was overwritten")
			}
		})
	}
}

func TestImage(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 2, 1))
	img.Set(0, 0, color.RGBA{255, 0, 255, 255})
	img.Set(1, 0, color.RGBA{0, 255, 0, 255})
	var file bytes.Buffer
	if err := png.Encode(&file, img); err != nil {
		t.Fatal(err)
	}
	tr, err := augment.Compile(augment.Resize{Height: 1, Width: 2}, augment.ToTensor{})
	if err != nil {
		t.Fatal(err)
	}
	c := Image("jpg;png", tr)
	s := &format.Sample{Fields: []format.Field{{Name: "cls"}, {Name: "PNG", Data: file.Bytes()}}}
	out, m := slotOf(c.Kind, nil), Meter{}
	if err := c.Kind.NewFiller(nil).Fill(out, s, c.Find(s), 0, &m); err != nil {
		t.Fatal(err)
	}
	want := []float32{1, 0, 0, 1, 1, 0}
	if got := out.Dense.Float32(); !slices.Equal(got, want) || m.Images != 1 || m.Pixels != 2 {
		t.Errorf("%v, %+v, want %v", got, m, want)
	}
}

func TestFunc(t *testing.T) {
	c := Func("fields", tensor.Int64, tensor.Shape{2}, func(dst tensor.Dense, s *format.Sample, draws augment.Draws) error {
		if s.Index == 3 {
			return errors.New("not this one")
		}
		if s.Index == 4 {
			return format.Errorf(format.ErrCorrupt, format.Nowhere, "damaged")
		}
		dst.Int64()[0] = int64(len(s.Fields)) + int64(draws)
		return nil
	})
	out := slotOf(c.Kind, nil)
	if err := c.Kind.NewFiller(nil).Fill(out, &format.Sample{Fields: make([]format.Field, 3)}, nil, 100, nil); err != nil {
		t.Fatal(err)
	}
	if got := out.Dense.Int64(); !slices.Equal(got, []int64{103, 0}) {
		t.Errorf("%v", got)
	}
	for i, want := range map[int64]string{3: `schema: column "fields": not this one`, 4: "corrupt: damaged"} {
		if err := c.Kind.NewFiller(nil).Fill(out, &format.Sample{Index: i}, nil, 0, nil); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if c.Reads() != ReadsSample || Key().Kind.Reads() != ReadsPlace || Location().Kind.Form() != FormPlaces {
		t.Error("what columns read")
	}
}

func TestDefaults(t *testing.T) {
	for _, tt := range []struct {
		name   string
		column Column
		want   any
		length int64
	}{
		{"label", Int64("cls").Or(-1), []int64{-1}, 0},
		{"floats", Dense("x", tensor.Float32, 2, 2).Or(0.1), []float32{0.1, 0.1, 0.1, 0.1}, 0},
		{"floats of a whole number", Dense("x", tensor.Float16, 2).Or(2), []uint16{0x4000, 0x4000}, 0},
		{"each value", Dense("x", tensor.Int32, 3).Or([]int{1, 2, 3}), []int32{1, 2, 3}, 0},
		{"the largest", Dense("x", tensor.Uint64).Or(uint64(math.MaxUint64)), []uint64{math.MaxUint64}, 0},
		{"any of a list", Dense("x", tensor.Int64, 2).Or([]any{1, int8(2)}), []int64{1, 2}, 0},
		{"image", Image("png", augment.ImageNetEval(2)).Or(0.5), slices.Repeat([]float32{0.5}, 12), 0},
		{"infinity", Float32("x").Or(math.Inf(-1)), []float32{float32(math.Inf(-1))}, 0},
		{"padded", Padded("x", tensor.Int64, 3, &PadOptions{Value: -1}).Or([]int64{5}), []int64{5, -1, -1}, 1},
		{"padded, none", Padded("x", tensor.Int64, 3, &PadOptions{Value: -1}).Or([]int{}), []int64{-1, -1, -1}, 0},
		{"ragged", Ragged("x", tensor.Float32, 2).Or([]float64{1, 2, 3, 4}), []float32{1, 2, 3, 4}, 2},
		{"ragged, none", Ragged("x", tensor.Float32, 2).Or([]float64{}), []float32{}, 0},
		{"bytes", Bytes("x").Or("none"), []byte("none"), 0},
		{"no bytes", Bytes("x").Or([]byte{}), []byte{}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.column.Check(); err != nil || tt.column.Missing.Policy != Default {
				t.Fatal(err)
			}
			out := slotOf(tt.column.Kind, make([]byte, 16))
			tt.column.Missing.FillDefault(out)
			if got, want := out.made(16), bytesOf(tt.want); !bytes.Equal(got, want) || out.Length != tt.length {
				t.Errorf("% x of length %d, want % x of %d", got, out.Length, want, tt.length)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		column Column
		want   string
	}{
		"no kind":                     {Column{Field: "x"}, "no kind"},
		"no field":                    {Int64(""), "without a field"},
		"no alternatives":             {Int64(";"), "without a field"},
		"no transform":                {Image("x", nil), "without a transform"},
		"no function":                 {Func("x", tensor.Int64, nil, nil), "without its function"},
		"no name":                     {Func("", tensor.Int64, nil, nil), "without a name"},
		"no type":                     {Dense("x", 99), "no element type 99"},
		"padded of no type":           {Padded("x", 99, 4, nil), "no element type 99"},
		"a negative axis":             {Dense("x", tensor.Int64, 2, -1), "negative"},
		"an empty axis":               {Dense("x", tensor.Int64, 2, 0), "no elements"},
		"a huge axis":                 {Dense("x", tensor.Int64, 1<<40, 1<<40), "larger than"},
		"a length of 0":               {Padded("x", tensor.Int64, 0, nil), "no elements"},
		"padding of a fraction":       {Padded("x", tensor.Int64, 4, &PadOptions{Value: 0.5}), "0.5 is no int64"},
		"padding beyond":              {Padded("x", tensor.Uint8, 4, &PadOptions{Value: -1}), "-1 is no uint8"},
		"a bucket too long":           {Padded("x", tensor.Int64, 4, &PadOptions{Buckets: []int{2, 5}}), "buckets [2 5]"},
		"buckets out of order":        {Padded("x", tensor.Int64, 4, &PadOptions{Buckets: []int{2, 2}}), "buckets [2 2]"},
		"a default of a word":         {Int64("x").Or("7"), "7 is no int64"},
		"a default of nothing":        {Int64("x").Or(nil), "is no int64"},
		"a default beyond":            {Dense("x", tensor.Int8).Or(128), "128 is no int8"},
		"a default too short":         {Dense("x", tensor.Int8, 2).Or([]int{1}), "shape [2] has 1 values"},
		"a default of half a row":     {Ragged("x", tensor.Int8, 2).Or([]int{1}), "shape [2] has 1 values"},
		"a default too long":          {Padded("x", tensor.Int8, 2, nil).Or([]int{1, 2, 3}), "shape [2] has 3 values"},
		"a number for a list":         {Padded("x", tensor.Int8, 2, nil).Or(1), "is a list, not 1"},
		"a number for bytes":          {Bytes("x").Or(1), "a string or bytes, not 1"},
		"a default for what is there": {Key().Or("x"), "needs none: key"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tt.column.Check()
			if !errors.Is(err, format.ErrUsage) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

// TestDescribe: columns that make other tensors have another line, and a column
// made again has the same.
func TestDescribe(t *testing.T) {
	resize := func(size int) *augment.Transform {
		tr, err := augment.Compile(augment.Resize{Height: size, Width: size}, augment.ToTensor{})
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	f := func(tensor.Dense, *format.Sample, augment.Draws) error { return nil }
	all := func() []Column {
		return []Column{
			Int64("a"), Int64("b"), Float32("a"), Dense("a", tensor.Int64, 1), Dense("a", tensor.Int64, 2), Int64("a").OrHole(), Int64("a").Or(0), Int64("a").Or(1),
			Ragged("a", tensor.Int64), Ragged("a", tensor.Int64, 2), Ragged("a", tensor.Int64).Or([]int{}), Ragged("a", tensor.Int64).Or([]int{0}),
			Padded("a", tensor.Int64, 4, nil), Padded("a", tensor.Int64, 5, nil), Padded("a", tensor.Int64, 4, &PadOptions{Value: 1}),
			Padded("a", tensor.Int64, 4, &PadOptions{Truncate: true}), Padded("a", tensor.Int64, 4, &PadOptions{Buckets: []int{2}}), Padded("a", tensor.Int64, 4, &PadOptions{Inner: []int{2}}),
			Bytes("a"), Bytes("a").Or(""), Bytes("a").Or("x"), Key(), Location(),
			Image("a", resize(2)), Image("a", resize(3)), Image("a", augment.ImageNetTrain(2)), Image("a", augment.ImageNetTrain(2).WithoutRandom()),
			Image("a", augment.ImageNetTrain(2).WithShrink()), Image("a", augment.ImageNetTrain(2).WithDecoder(augment.Decoding{}.New)),
			Func("f", tensor.Int64, nil, f), Func("g", tensor.Int64, nil, f), Func("f", tensor.Int64, tensor.Shape{1}, f),
		}
	}
	seen := map[string]int{}
	for i, c := range all() {
		line := c.Describe()
		if j, ok := seen[line]; ok {
			t.Errorf("columns %d and %d are both %q", j, i, line)
		}
		seen[line] = i
		if strings.Contains(line, "\n") {
			t.Errorf("%q is not one line", line)
		}
	}
	for i, c := range all() {
		if j, ok := seen[c.Describe()]; !ok || j != i {
			t.Errorf("column %d is another the second time: %q", i, c.Describe())
		}
	}
}

func TestBucket(t *testing.T) {
	c := Padded("x", tensor.Int64, 512, &PadOptions{Buckets: []int{128, 256}})
	for longest, want := range map[int64]int{0: 128, 1: 128, 128: 128, 129: 256, 256: 256, 257: 512, 512: 512} {
		if got := Bucket(c.Kind, longest); got != want {
			t.Errorf("a longest list of %d: %d, want %d", longest, got, want)
		}
	}
	if got := Bucket(Padded("x", tensor.Int64, 512, nil).Kind, 1); got != 512 {
		t.Errorf("without buckets: %d", got)
	}
	if got := Bucket(Int64("x").Kind, 1); got != 0 {
		t.Errorf("not padded: %d", got)
	}
}

// TestPropertyLists: padded and ragged columns of lists of any numbers are what
// was put in, with and without assembly, whatever was in the memory before.
func TestPropertyLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		defer simd.SetLevel(rapid.SampledFrom([]simd.Level{simd.Generic, simd.AVX2}).Draw(t, "level"))()
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		most := rapid.SampledFrom([]int64{100, 50257, 1 << 20, math.MaxInt32}).Draw(t, "numbers below")
		values := make([]int64, rapid.IntRange(0, 600).Draw(t, "values"))
		for i := range values {
			values[i] = r.Int64N(most) - r.Int64N(2)*r.Int64N(2)
		}
		f := ints("ids", values...)
		length := rapid.IntRange(1, 600).Draw(t, "length")
		truncate := rapid.Bool().Draw(t, "truncate")
		pad := int64(r.Int64N(1000) - 500)
		want := slices.Concat(values, slices.Repeat([]int64{pad}, 600))[:length]
		for _, dtype := range []tensor.DType{tensor.Int64, tensor.Int32} {
			c := Padded("ids", dtype, length, &PadOptions{Value: float64(pad), Truncate: truncate})
			out := slotOf(c.Kind, nil)
			err := c.Kind.NewFiller(nil).Fill(out, nil, f, 0, nil)
			if tooLong := len(values) > length && !truncate; tooLong != (err != nil) || tooLong && !errors.Is(err, format.ErrSchema) {
				t.Fatalf("%d values into %d: %v", len(values), length, err)
			} else if tooLong {
				continue
			}
			if out.Length != int64(min(len(values), length)) || !slices.Equal(numbersOf(out.Dense), want) {
				t.Fatalf("%d values into %d of %v: %d, %v", len(values), length, dtype, out.Length, numbersOf(out.Dense))
			}
			r := Ragged("ids", dtype)
			out = slotOf(r.Kind, make([]byte, 16))
			if err := r.Kind.NewFiller(nil).Fill(out, nil, f, 0, nil); err != nil {
				t.Fatal(err)
			}
			got := numbersOf(tensor.View(dtype, tensor.Shape{(len(out.Arena) - 16) / dtype.Size()}, out.Arena[16:]))
			if out.Length != int64(len(values)) || !slices.Equal(got, values) {
				t.Fatalf("ragged %v: %d, %v, want %v", dtype, out.Length, got, values)
			}
		}
	})
}

func numbersOf(d tensor.Dense) (values []int64) {
	if d.DType() == tensor.Int64 {
		return slices.Clone(d.Int64())
	}
	for _, v := range d.Int32() {
		values = append(values, int64(v))
	}
	return values
}

// tokens is a field of n numbers uniform below 50257.
func tokens(n int, seed uint64) *format.Field {
	r := rand.New(rand.NewPCG(seed, 1))
	values := make([]int64, n)
	for i := range values {
		values[i] = r.Int64N(50257)
	}
	return ints("tokens", values...)
}

func TestNoAllocations(t *testing.T) {
	list := tokens(375, 1)
	for _, tt := range []struct {
		name   string
		column Column
		field  *format.Field
	}{
		{"label", Int64("x"), ints("x", 7)},
		{"label as text", Int64("cls"), text("cls", "7")},
		{"float", Float32("x"), floats("x", 7)},
		{"dense", Dense("x", tensor.Int64, 375), list},
		{"padded", Padded("x", tensor.Int64, 512, nil), list},
		{"padded int32", Padded("x", tensor.Int32, 512, &PadOptions{Value: -1}), list},
		{"padded, cut", Padded("x", tensor.Int64, 100, &PadOptions{Truncate: true}), list},
		{"ragged", Ragged("x", tensor.Int64), list},
		{"ragged floats", Ragged("x", tensor.Float32, 2), floats("x", 1, 2, 3, 4)},
		{"bytes", Bytes("x"), text("x", "abc")},
		{"key", Key(), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, out, s, m := tt.column.Kind.NewFiller(nil), slotOf(tt.column.Kind, nil), &format.Sample{Key: []byte("k")}, Meter{}
			fill := func() {
				out.Arena = out.Arena[:0]
				if err := f.Fill(out, s, tt.field, 0, &m); err != nil {
					t.Fatal(err)
				}
			}
			fill()
			if n := testing.AllocsPerRun(100, fill); n != 0 {
				t.Errorf("filling allocates %v times", n)
			}
		})
	}
}

// BenchmarkTokens is of lists of 375 tokens, 1 KB each.
func BenchmarkTokens(b *testing.B) {
	var fields [64]*format.Field
	for i := range fields {
		fields[i] = tokens(375, uint64(i))
	}
	for _, tt := range []struct {
		name   string
		column Column
	}{
		{"padded to 512", Padded("tokens", tensor.Int64, 512, &PadOptions{Value: -100})},
		{"padded to 512 int32", Padded("tokens", tensor.Int32, 512, nil)},
		{"ragged", Ragged("tokens", tensor.Int64)},
		{"dense", Dense("tokens", tensor.Int64, 375)},
	} {
		for _, l := range []simd.Level{simd.Generic, simd.AVX2} {
			b.Run(tt.name+"/"+l.String(), func(b *testing.B) {
				defer simd.SetLevel(l)()
				f, out := tt.column.Kind.NewFiller(nil), slotOf(tt.column.Kind, nil)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					out.Arena = out.Arena[:0]
					if err := f.Fill(out, nil, fields[i%len(fields)], 0, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
