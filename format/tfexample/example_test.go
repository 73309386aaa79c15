package tfexample_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/format/tfexample"
)

// photo is an Example as image datasets have it.
func photo(b *tfexample.Builder, size int) []byte {
	b.Reset()
	b.AddBytes("image/encoded", make([]byte, size))
	b.AddInt64("image/class/label", 417)
	b.AddBytes("image/format", []byte("jpeg"))
	b.AddInt64("image/height", 375)
	b.AddInt64("image/width", 500)
	b.AddFloat("image/object/bbox/xmin", 0.1, 0.2)
	b.AddBytes("image/filename", []byte("n01440764_10026.JPEG"))
	return b.AppendTo(nil)
}

func TestAppendFields(t *testing.T) {
	var b tfexample.Builder
	payload := photo(&b, 1000)
	var e tfexample.Example
	if err := e.Parse(payload); err != nil {
		t.Fatal(err)
	}
	const base = 5000
	fields := e.AppendFields(nil, base)
	want := []struct {
		name string
		kind format.Kind
	}{
		{"image/encoded", format.Bytes}, {"image/class/label", format.Int64List}, {"image/format", format.Bytes}, {"image/height", format.Int64List},
		{"image/width", format.Int64List}, {"image/object/bbox/xmin", format.FloatList}, {"image/filename", format.Bytes},
	}
	if len(fields) != len(want) {
		t.Fatalf("%d fields, want %d", len(fields), len(want))
	}
	for i, f := range fields {
		if f.Name != want[i].name || f.Kind != want[i].kind {
			t.Errorf("field %d is %s of kind %s, want %s of %s", i, f.Name, f.Kind, want[i].name, want[i].kind)
		}
		at := int(f.Offset - base)
		if !bytes.Equal(payload[at:at+len(f.Data)], f.Data) {
			t.Errorf("field %s is not at its offset %d", f.Name, f.Offset)
		}
	}
	if string(fields[2].Data) != "jpeg" || len(fields[0].Data) != 1000 {
		t.Errorf("fields hold %q and %d bytes", fields[2].Data, len(fields[0].Data))
	}
}

func TestNoAllocations(t *testing.T) {
	var b tfexample.Builder
	payloads := [][]byte{photo(&b, 1000), photo(&b, 20)}
	b.Reset()
	b.AddInt64("image/width", 1)
	b.AddBytes("image/format", []byte("png"), []byte("x"))
	payloads = append(payloads, b.AppendTo(nil)) // other features, in another order
	var e tfexample.Example
	var fields []format.Field
	var ints []int64
	var floats []float32
	specs := []tfexample.Spec{
		{Name: "image/width", Type: format.Int64List},
		{Name: "image/object/bbox/xmin", Type: format.FloatList, VarLen: true},
	}
	var values []tfexample.Value
	pass := func() {
		for _, p := range payloads {
			if err := e.Parse(p); err != nil {
				t.Fatal(err)
			}
			fields = e.AppendFields(fields[:0], 0)
			f, _ := e.Lookup("image/width")
			ints, _ = f.AppendInt64(ints[:0])
			if f, ok := e.Lookup("image/object/bbox/xmin"); ok {
				floats, _ = f.AppendFloat(floats[:0])
			}
			if tfexample.Classify(p) != tfexample.ExampleType {
				t.Fatal("not an Example")
			}
			var err error
			if values, err = e.Values(specs, values[:0]); err != nil {
				t.Fatal(err)
			}
		}
	}
	pass()
	if n := testing.AllocsPerRun(100, pass); n != 0 && !raceDetector {
		t.Errorf("parsing allocates %v times", n)
	}
	var out []byte
	build := func() {
		b.Reset()
		for _, f := range fields {
			b.AddField(f)
		}
		b.AddInt64("n", 1, 2, 3)
		out = b.AppendTo(out[:0])
	}
	build()
	if n := testing.AllocsPerRun(100, build); n != 0 {
		t.Errorf("building allocates %v times", n)
	}
}

func TestErrors(t *testing.T) {
	var b tfexample.Builder
	b.AddInt64("label", 7)
	sound := b.AppendTo(nil)
	for name, tt := range map[string]struct {
		in   []byte
		want string
	}{
		"cut":            {sound[:len(sound)-3], "corrupt: a message ends after the record does, at byte 0 of the record"},
		"stray byte":     {append(bytes.Clone(sound), 0x80), "corrupt: no field begins here, at byte 18 of the record"},
		"bad int64 list": {append(sound[:len(sound)-1:len(sound)-1], 0x80), `(field "label"): corrupt: a list of int64 values is not sound, at byte 15 of the record`},
		"huge length":    {[]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, "corrupt: a message ends after the record does, at byte 0 of the record"},
		"name":           {[]byte("\x0a\x05\x0a\x03\x0a\x01\xff"), "corrupt: a name is not UTF-8, at byte 6 of the record"},
		"first of names": {[]byte("\x0a\x08\x0a\x06\x0a\x01\xff\x0a\x01a"), "corrupt: a name is not UTF-8, at byte 6 of the record"},
	} {
		var e tfexample.Example
		var s tfexample.SequenceExample
		for _, err := range []error{e.Parse(tt.in), s.Parse(tt.in)} {
			if err == nil || err.Error() != tt.want {
				t.Errorf("%s: %v\nwant %s", name, err, tt.want)
			}
		}
	}
}

// TestHostile parses messages that are large in what is counted, and not in
// what is stored.
func TestHostile(t *testing.T) {
	many := func(n int) []byte {
		entries := bytes.Repeat([]byte{0x0a, 0x00}, n)
		return append(appendLength([]byte{0x0a}, len(entries)), entries...)
	}
	for name, tt := range map[string]struct {
		in     []byte
		limits *format.Limits
		want   error
	}{
		"as many features as allowed": {many(1000), &format.Limits{Fields: 1000}, nil},
		"more features than allowed":  {many(1001), &format.Limits{Fields: 1000}, format.ErrLimit},
		"a million features":          {many(1 << 20), nil, format.ErrLimit},
		"deep groups":                 {bytes.Repeat([]byte{0x1b}, 1<<20), nil, format.ErrCorrupt},
		"a list in pieces":            {pieces(100_000), nil, nil},
	} {
		e := tfexample.Example{Limits: tt.limits}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := e.Parse(tt.in)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("%s: allocated %d bytes for %d", name, n, len(tt.in))
		}
		if name == "a list in pieces" {
			f, _ := e.Lookup("")
			if vs, err := f.AppendInt64(nil); len(vs) != 100_000 || err != nil || f.Len() != 100_000 {
				t.Errorf("%s: %d values, %v", name, len(vs), err)
			}
		}
	}
}

// pieces is an Example whose one feature has its list in n messages of one
// value.
func pieces(n int) []byte {
	feature := bytes.Repeat([]byte{0x1a, 0x02, 0x08, 0x05}, n)
	entry := append(appendLength([]byte{0x12}, len(feature)), feature...)
	features := append(appendLength([]byte{0x0a}, len(entry)), entry...)
	return append(appendLength([]byte{0x0a}, len(features)), features...)
}

func appendLength(b []byte, n int) []byte {
	for n >= 0x80 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(b, byte(n))
}

// TestNames parses records of ever new names: what is kept is bounded, and
// names outlive their record.
func TestNames(t *testing.T) {
	var e tfexample.Example
	var b tfexample.Builder
	var kept []string
	for i := range 20_000 {
		b.Reset()
		b.AddInt64(fmt.Sprint("name-", i), int64(i))
		b.AddInt64("same", 1)
		if err := e.Parse(b.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
		name, f := e.At(0)
		if vs, _ := f.AppendInt64(nil); vs[0] != int64(i) || e.Len() != 2 {
			t.Fatalf("record %d has value %v", i, vs)
		}
		if _, ok := e.Lookup(fmt.Sprint("name-", i-1)); ok {
			t.Fatalf("record %d has the name of the one before", i)
		}
		kept = append(kept, name)
	}
	for i, name := range kept {
		if name != fmt.Sprint("name-", i) {
			t.Fatalf("name %d is %q now", i, name)
		}
	}
}

func TestBuilder(t *testing.T) {
	var b tfexample.Builder
	b.AddInt64("b", 1)
	b.AddInt64("a", 2)
	b.AddInt64("b", 3)
	order := func() (names []string, values []int64) {
		var e tfexample.Example
		if err := e.Parse(b.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
		for i := range e.Len() {
			name, f := e.At(i)
			names = append(names, name)
			values, _ = f.AppendInt64(values)
		}
		return names, values
	}
	if names, values := order(); !slices.Equal(names, []string{"b", "a"}) || !slices.Equal(values, []int64{3, 2}) || b.Len() != 2 {
		t.Errorf("%v, %v", names, values)
	}
	b.Sorted = true
	if names, values := order(); !slices.Equal(names, []string{"a", "b"}) || !slices.Equal(values, []int64{2, 3}) {
		t.Errorf("sorted: %v, %v", names, values)
	}
	b.AddInt64("b", 4)
	if names, values := order(); !slices.Equal(names, []string{"a", "b"}) || !slices.Equal(values, []int64{2, 4}) {
		t.Errorf("added again: %v, %v", names, values)
	}
}

func TestFeatureOf(t *testing.T) {
	one := tfexample.FeatureOf(format.Bytes, []byte("value"))
	if one.Kind() != format.BytesList || one.Len() != 1 || string(one.At(0)) != "value" {
		t.Errorf("of Bytes: %s of %d", one.Kind(), one.Len())
	}
	if vs, err := tfexample.FeatureOf(one.Kind(), one.Encoded()).AppendBytes(nil); err != nil || len(vs) != 1 || string(vs[0]) != "value" {
		t.Errorf("encoded: %q, %v", vs, err)
	}
	if _, err := one.AppendInt64(nil); !errors.Is(err, format.ErrSchema) {
		t.Errorf("as int64: %v", err)
	}
	if _, err := one.AppendFloat(nil); !errors.Is(err, format.ErrSchema) {
		t.Errorf("as float: %v", err)
	}
	if _, err := tfexample.FeatureOf(format.NoKind, nil).AppendBytes(nil); !errors.Is(err, format.ErrSchema) {
		t.Errorf("of no kind: %v", err)
	}
	bad := []byte{0x0a, 0x05, 0x80, 0x80}
	for _, k := range []format.Kind{format.BytesList, format.FloatList, format.Int64List, format.FeatureList} {
		f := tfexample.FeatureOf(k, bad)
		_, errB := f.AppendBytes(nil)
		_, errF := f.AppendFloat(nil)
		_, errI := f.AppendInt64(nil)
		if errB == nil || errF == nil || errI == nil || f.Len() != 0 {
			t.Errorf("of a bad %s: %v, %v, %v, %d values", k, errB, errF, errI, f.Len())
		}
		for range f.Bytes() {
			t.Errorf("a bad %s has a byte string", k)
		}
		for range f.Steps() {
			t.Errorf("a bad %s has a step", k)
		}
	}
	list := tfexample.ListOf(tfexample.Int64Of(1, 2), tfexample.FloatOf(0.5), tfexample.BytesOf([]byte("x")), tfexample.FeatureOf(format.NoKind, nil))
	var kinds []format.Kind
	for _, s := range tfexample.FeatureOf(format.FeatureList, list.Encoded()).Steps() {
		kinds = append(kinds, s.Kind())
	}
	if !slices.Equal(kinds, []format.Kind{format.Int64List, format.FloatList, format.BytesList, format.NoKind}) {
		t.Errorf("a list of %v", kinds)
	}
}

func TestSpecs(t *testing.T) {
	var b tfexample.Builder
	b.AddInt64("six", 1, 2, 3, 4, 5, 6)
	b.AddInt64("none")
	b.AddFloat("half", 0.5)
	b.AddBytes("word", []byte("w"))
	b.AddFeature("void", tfexample.FeatureOf(format.NoKind, nil))
	var e tfexample.Example
	if err := e.Parse(b.AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
	two := &tfexample.Value{Kind: format.Int64List, Int64: []int64{8, 9}}
	for _, tt := range []struct {
		spec  tfexample.Spec
		n     int
		class string
		hint  string
	}{
		{tfexample.Spec{Name: "six", Type: format.Int64List, Shape: []int{6}}, 6, "", ""},
		{tfexample.Spec{Name: "six", Type: format.Int64List, Shape: []int{2, 3}}, 6, "", ""},
		{tfexample.Spec{Name: "six", Type: format.Int64List, Shape: []int{-1, 3}}, 6, "", ""},
		{tfexample.Spec{Name: "six", Type: format.Int64List, Shape: []int{-1, 4}}, 0, "schema", "6 values, which is not of shape [-1 4]"},
		{tfexample.Spec{Name: "six", Type: format.Int64List, Shape: []int{2, -1}}, 0, "usage", "first dimension"},
		{tfexample.Spec{Name: "six", Type: format.Int64List}, 0, "schema", ""},
		{tfexample.Spec{Name: "six", Type: format.Int64List, VarLen: true}, 6, "", ""},
		{tfexample.Spec{Name: "six", Type: format.BytesList, VarLen: true}, 0, "schema", "is of kind int64, not bytes_list"},
		{tfexample.Spec{Name: "half", Type: format.FloatList}, 1, "", ""},
		{tfexample.Spec{Name: "word", Type: format.BytesList}, 1, "", ""},
		{tfexample.Spec{Name: "none", Type: format.Int64List, Shape: []int{-1, 3}}, 0, "", ""},
		{tfexample.Spec{Name: "none", Type: format.Int64List, Shape: []int{0}}, 0, "", ""},
		{tfexample.Spec{Name: "none", Type: format.Int64List, Shape: []int{2}, Default: two}, 0, "schema", ""},
		{tfexample.Spec{Name: "none", Type: format.Int64List, Shape: []int{2}, Default: two, Empty: tfexample.EmptyIsDefault}, 2, "", ""},
		{tfexample.Spec{Name: "void", Type: format.Int64List, Shape: []int{2}, Default: two}, 2, "", ""},
		{tfexample.Spec{Name: "void", Type: format.Int64List}, 0, "missing", ""},
		{tfexample.Spec{Name: "gone", Type: format.Int64List, Shape: []int{2}, Default: two}, 2, "", ""},
		{tfexample.Spec{Name: "gone", Type: format.Int64List, Shape: []int{3}, Default: two}, 0, "usage", "default"},
		{tfexample.Spec{Name: "gone", Type: format.FloatList, Shape: []int{2}, Default: two}, 0, "usage", "default"},
		{tfexample.Spec{Name: "gone", Type: format.FloatList, VarLen: true}, 0, "", ""},
		{tfexample.Spec{Name: "gone", Type: format.FloatList}, 0, "missing", `"six", "none", "half", "word", "void"`},
	} {
		values, err := e.Values([]tfexample.Spec{tt.spec}, nil)
		var fault *format.Error
		if format.Class(err) != tt.class || err != nil && (!errors.As(err, &fault) || fault.Field != tt.spec.Name || !strings.Contains(fault.Detail, tt.hint)) {
			t.Errorf("%+v: error %v, want %s", tt.spec, err, tt.class)
		}
		if err == nil && (values[0].Len() != tt.n || values[0].Kind != tt.spec.Type) {
			t.Errorf("%+v: %+v, want %d values", tt.spec, values[0], tt.n)
		}
	}
}

// TestPropertyRoundTrip builds what is drawn, parses it and finds it again.
func TestPropertyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b tfexample.Builder
		want := make(map[string]any)
		for range rapid.IntRange(0, 30).Draw(t, "features") {
			name := rapid.StringN(0, 5, -1).Draw(t, "name")
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				vs := rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 0, 5).Draw(t, "bytes")
				b.AddBytes(name, vs...)
				want[name] = vs
			case 1:
				vs := rapid.SliceOf(rapid.Float32()).Draw(t, "floats")
				b.AddFloat(name, vs...)
				want[name] = vs
			default:
				vs := rapid.SliceOf(rapid.Int64()).Draw(t, "ints")
				b.AddInt64(name, vs...)
				want[name] = vs
			}
		}
		var e tfexample.Example
		if err := e.Parse(b.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
		if e.Len() != len(want) {
			t.Fatalf("%d features, want %d", e.Len(), len(want))
		}
		for name, v := range want {
			f, ok := e.Lookup(name)
			same := ok
			switch v := v.(type) {
			case [][]byte:
				got, err := f.AppendBytes(nil)
				same = same && err == nil && slices.EqualFunc(got, v, bytes.Equal)
			case []float32:
				got, err := f.AppendFloat(nil)
				same = same && err == nil && slices.EqualFunc(got, v, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
			case []int64:
				got, err := f.AppendInt64(nil)
				same = same && err == nil && slices.Equal(got, v)
			}
			if !same {
				t.Fatalf("%q is not %v", name, v)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	var w tfexample.Builder
	payload := photo(&w, 100_000)
	var e tfexample.Example
	b.Run("photo", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := e.Parse(payload); err != nil {
				b.Fatal(err)
			}
		}
	})
	w.Reset()
	tokens := make([]int64, 2048)
	for i := range tokens {
		tokens[i] = int64(i*7919) % 50257
	}
	w.AddInt64("tokens", tokens...)
	payload = w.AppendTo(nil)
	b.Run("2048 tokens", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := e.Parse(payload); err != nil {
				b.Fatal(err)
			}
			f, _ := e.Lookup("tokens")
			tokens, _ = f.AppendInt64(tokens[:0])
		}
	})
}
