package shard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/format/tarshard"
	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
	"shardtool/reader"
)

// nasty draws names with the characters that mean something in a path.
var nasty = rapid.OneOf(
	rapid.StringMatching(`[a-zA-Z0-9./%_~ -]{0,12}`),
	rapid.SampledFrom([]string{"", "%", "%25", "%2F", "__key__", "._x", "../..", "a/b.c", "/abs", "./x", "x/", "x.int64.json", "x.none", "%none", "%25none", "Label", "label", "é", "a\x01b"}),
	rapid.Custom(func(t *rapid.T) string {
		return strings.ReplaceAll(string(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "bytes")), "\x00", "\x01")
	}),
)

// TestKeysSurviveInTar writes a sample under an encoded key and reads it as
// WebDataset reads names: the key that comes back, decoded, is the one that
// went in.
func TestKeysSurviveInTar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := nasty.Draw(t, "key")
		encoded := encodeKey(key)
		if got := decodeKey(encoded); got != key {
			t.Fatalf("decodeKey(%q) = %q, want %q", encoded, got, key)
		}
		s := roundTrip(t, &format.Sample{Key: []byte(encoded), Fields: []format.Field{{Name: "jpg", Data: []byte("x")}}})
		if got := decodeKey(string(s.Key)); got != key || s.Fields[0].Name != "jpg" {
			t.Fatalf("%q came back as %q with the field %q", key, got, s.Fields[0].Name)
		}
	})
}

func TestNamesOfKeysAndFields(t *testing.T) {
	for key, want := range map[string]string{
		"n01440764_10026": "n01440764_10026",
		"a/b":             "a/b",
		"dir.v1/0001":     "dir.v1/0001",
		"img.v2":          "img%2Ev2",
		"":                "%",
		"%":               "%25",
		"50%":             "50%",
		"a%2Fb":           "a%2Fb", // nothing is written so: it means itself
		"img%2Ev2":        "img%252Ev2",
		"/abs":            "%2Fabs",
		"../up":           "%2E./up",
		"__x__/1":         "%5F_x__/1",
		"x/":              "x%2F",
	} {
		if got := encodeKey(key); got != want {
			t.Errorf("encodeKey(%q) = %q, want %q", key, got, want)
		}
	}
	list := tfexample.Int64Of(7).Encoded()
	for _, tt := range []struct {
		f    format.Field
		want string
	}{
		{format.Field{Name: "jpg", Data: []byte("x")}, "jpg"},
		{format.Field{Name: "image/encoded", Data: []byte("x")}, "image%2Fencoded"},
		{format.Field{Name: "label", Kind: format.Int64List, Data: list}, "label.int64.json"},
		{format.Field{Name: "y", Kind: format.NoKind}, "y.none"},
		{format.Field{Name: "__key__", Data: []byte("x")}, "%5F_key__"},
		{format.Field{Name: "x.int64.json", Data: []byte("[7]")}, "x%2Eint64.json"}, // would pass for the list
		{format.Field{Name: "x.int64.json", Data: []byte("[ 7]")}, "x.int64.json"},  // would not
	} {
		got := encodeField(tt.f)
		if got != tt.want {
			t.Errorf("encodeField(%q, %v) = %q, want %q", tt.f.Name, tt.f.Kind, got, tt.want)
		}
	}
}

// feature draws a feature of any kind; one byte string alone is format.Bytes,
// as Example.AppendFields gives it.
func feature(t *rapid.T, name string) format.Field {
	f := format.Field{Name: name}
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		f.Data = rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes")
		if rapid.Bool().Draw(t, "looks like a list") {
			f.Data = []byte(rapid.SampledFrom([]string{"[7]", "[]", "[0.5]", `["eA==","eQ=="]`, `["eA=="]`, "", "[ 7]"}).Draw(t, "text"))
		}
	case 1:
		f.Kind, f.Data = format.Int64List, tfexample.Int64Of(rapid.SliceOf(rapid.Int64()).Draw(t, "ints")...).Encoded()
	case 2:
		bits := rapid.SliceOf(rapid.Uint32()).Draw(t, "bits")
		vs := make([]float32, len(bits))
		for i := range bits {
			vs[i] = math.Float32frombits(bits[i])
		}
		f.Kind, f.Data = format.FloatList, tfexample.FloatOf(vs...).Encoded()
	case 3:
		vs := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 4)).Filter(func(vs [][]byte) bool { return len(vs) != 1 }).Draw(t, "strings")
		f.Kind, f.Data = format.BytesList, tfexample.BytesOf(vs...).Encoded()
	case 4:
		f.Kind = format.NoKind
	}
	return f
}

// TestFeaturesSurviveTar maps features of any names and kinds to a tar sample,
// writes and reads it, and maps it back.
func TestFeaturesSurviveTar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := &format.Sample{Key: []byte("k")}
		names := rapid.SliceOfNDistinct(nasty, 0, 4, rapid.ID).Draw(t, "names")
		for _, name := range names {
			want.Fields = append(want.Fields, feature(t, name))
		}
		m := &mapper{explicitKeys: true}
		mapped, err := m.toTar(want)
		if errors.Is(err, format.ErrDuplicate) {
			t.Skip("two names that differ in case alone")
		}
		if err != nil {
			t.Fatal(err)
		}
		back, err := (&mapper{explicitKeys: true}).toRecord(roundTrip(t, mapped))
		if err != nil {
			t.Fatal(err)
		}
		if len(back.Fields) != len(want.Fields) {
			t.Fatalf("%d fields came back, want %d", len(back.Fields), len(want.Fields))
		}
		for i, f := range back.Fields {
			w := want.Fields[i]
			if f.Name != w.Name || f.Kind != w.Kind || !bytes.Equal(f.Data, w.Data) {
				t.Fatalf("%q %v %q came back as %q %v %q", w.Name, w.Kind, w.Data, f.Name, f.Kind, f.Data)
			}
		}
	})
}

// TestTarSurvivesRecords maps tar samples to records and back.
func TestTarSurvivesRecords(t *testing.T) {
	field := rapid.OneOf(
		rapid.StringMatching(`[a-zA-Z0-9.%_-]{1,10}`).Filter(func(s string) bool { return !strings.HasSuffix(s, ".") }),
		rapid.SampledFrom([]string{"jpg", "JPG", "cls", "x.int64.json", "x.none", "y.bytes_list.json", "a%2Fb", "%5F_key__", "50%"}),
	)
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(
			rapid.Map(nasty, encodeKey),
			rapid.StringMatching(`[a-zA-Z0-9%_ \n\x1b-]{1,10}`).Filter(func(s string) bool { return !strings.HasPrefix(s, "__") }),
		).Draw(t, "key")
		want := &format.Sample{Key: []byte(key)}
		for _, name := range rapid.SliceOfNDistinct(field, 1, 4, strings.ToLower).Draw(t, "fields") {
			data := []byte(rapid.SampledFrom([]string{"x", "[7]", "[ 7]", "[]", "", `["eA=="]`, `["eA==","eQ=="]`}).Draw(t, "data"))
			want.Fields = append(want.Fields, format.Field{Name: name, Data: data})
		}
		rec, err := new(mapper).toRecord(want)
		if errors.Is(err, format.ErrDuplicate) {
			t.Skip("two fields with one name as features")
		}
		if err != nil {
			t.Fatal(err)
		}
		var b tfexample.Builder
		for _, f := range rec.Fields {
			b.AddField(f)
		}
		var e tfexample.Example
		if err := e.Parse(b.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
		read := &format.Sample{Fields: e.AppendFields(nil, 0)}
		read.Key = read.Field(reader.KeyFeature).Data // as the reader finds it
		back, err := new(mapper).toTar(read)
		if err != nil {
			t.Fatal(err)
		}
		if string(back.Key) != string(want.Key) || len(back.Fields) != len(want.Fields) {
			t.Fatalf("key %q with %d fields came back as %q with %d", want.Key, len(want.Fields), back.Key, len(back.Fields))
		}
		for i, f := range back.Fields {
			w := want.Fields[i]
			if f.Name != w.Name || f.Kind != format.Bytes || !bytes.Equal(f.Data, w.Data) {
				t.Fatalf("%q %q came back as %q %q", w.Name, w.Data, f.Name, f.Data)
			}
		}
	})
}

// roundTrip writes a sample to a tar shard and reads it back.
func roundTrip(t *rapid.T, s *format.Sample) *format.Sample {
	var buf bytes.Buffer
	w := tarshard.NewWriter(&buf, nil)
	if err := w.WriteSample(s); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := tarshard.NewReader(&buf, nil)
	got, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	got = got.Clone()
	if _, err := r.Next(); err != io.EOF {
		t.Fatalf("after the sample: %v", err)
	}
	return got
}

// TestMixedKeysSurviveTar converts records of which some begin with __key__,
// some have it later, some not at all, and some have nothing else, in any order.
func TestMixedKeysSurviveTar(t *testing.T) {
	key := func(k string) format.Field { return format.Field{Name: "__key__", Data: []byte(k)} }
	a := format.Field{Name: "a", Data: []byte("x")}
	kinds := func(i int) [][]format.Field {
		k := key(fmt.Sprint("k", i))
		return [][]format.Field{{k, a}, {a, k}, {a}, {}, {k}, {{Name: "%nokey", Data: []byte{}}}, {k, {Name: "%none", Data: []byte{}}}}
	}
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "keys")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		var want []byte
		for i := range rapid.IntRange(1, 6).Draw(t, "records") {
			var b tfexample.Builder
			all := kinds(i)
			for _, f := range all[rapid.IntRange(0, len(all)-1).Draw(t, "kind")] {
				b.AddField(f)
			}
			want = tfrecord.AppendFrame(want, b.AppendTo(nil))
		}
		in, tar, back := dir+"/in.tfrecord", dir+"/there.tar", dir+"/back.tfrecord"
		if err := os.WriteFile(in, want, 0o666); err != nil {
			t.Fatal(err)
		}
		o := &ConvertOptions{Options: Options{Read: reader.Options{Type: reader.Example}}}
		if _, err := Convert(context.Background(), []string{in}, tar, o); err != nil {
			t.Fatal(err)
		}
		if _, err := Convert(context.Background(), []string{tar}, back, nil); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(back); !bytes.Equal(got, want) {
			t.Fatalf("came back as\n%q\nwant\n%q", got, want)
		}
	})
}

// TestContextAndListOfOneName: the two maps of a SequenceExample are apart.
func TestContextAndListOfOneName(t *testing.T) {
	var b tfexample.SequenceBuilder
	b.Context.AddInt64("x", 1)
	b.AddList("x", tfexample.Int64Of(2), tfexample.Int64Of(3))
	want := tfrecord.AppendFrame(nil, b.AppendTo(nil))
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/in.tfrecord", want, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, step := range [][2]string{{"/in.tfrecord", "/there.tar"}, {"/there.tar", "/back.tfrecord"}} {
		if _, err := Convert(t.Context(), []string{dir + step[0]}, dir+step[1], nil); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := os.ReadFile(dir + "/back.tfrecord"); !bytes.Equal(got, want) {
		t.Errorf("came back as %q, want %q", got, want)
	}
}
