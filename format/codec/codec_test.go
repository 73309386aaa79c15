package codec_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/format/codec"
	"shardtool/tensor"
)

func TestSuffixes(t *testing.T) {
	for _, tt := range []struct {
		name string
		want codec.Kind
	}{
		{"cls", codec.Int64}, {"CLS", codec.Int64}, {"left.Cls2", codec.Int64}, {".index", codec.Int64}, {"a.b.inx", codec.Int64}, {"id", codec.Int64},
		{"txt", codec.Text}, {"Text", codec.Text}, {"TRANSCRIPT", codec.Text}, {"json", codec.JSON}, {"jsn", codec.JSON},
		{"jpg", codec.Image}, {"seg.PNG", codec.Image}, {"jpeg", codec.Image}, {"webp", codec.Image}, {"gif", codec.Image},
		{"bin", codec.Bytes}, {"bytes", codec.Bytes}, {"", codec.Bytes}, {".", codec.Bytes}, {"cls.x", codec.Bytes}, {"class", codec.Bytes}, {"image/cls", codec.Bytes},
		{"transcripts", codec.Bytes}, {"jpg ", codec.Bytes},
	} {
		v, err := codec.Decode(tt.name, []byte("7"), nil)
		if err != nil || v.Kind() != tt.want {
			t.Errorf("%q: %v, %v; want %v", tt.name, v.Kind(), err, tt.want)
		}
	}
	for _, name := range []string{"pkl", "pickle", "pyd", "pth", "mp", "msg", "cbor", "a.PKL"} {
		if _, err := codec.Decode(name, []byte("7"), nil); format.Sentinel(err) != format.ErrUnsupported {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCodecsOfTheCaller(t *testing.T) {
	is := func(word string) codec.Codec {
		return func(data []byte, _ *codec.Options) (codec.Value, error) {
			return codec.OfOther(word + ":" + string(data)), nil
		}
	}
	broken := errors.New("broken")
	o := &codec.Options{Codecs: map[string]codec.Codec{
		"msg": is("msg"), "seg.png": is("seg"), "cls": is("cls"), "x.gz": is("gz"),
		"bad":       func([]byte, *codec.Options) (codec.Value, error) { return codec.Value{}, broken },
		"cancelled": func([]byte, *codec.Options) (codec.Value, error) { return codec.Value{}, context.Canceled },
	}}
	for _, tt := range []struct{ name, want string }{
		{"msg", "msg:7"}, {"a.MSG", "msg:7"}, {"seg.png", "seg:7"}, {"left.Seg.png", "seg:7"}, {"cls", "cls:7"}, {"x.gz", "gz:7"},
	} {
		v, err := codec.Decode(tt.name, []byte("7"), o)
		if err != nil || v.Other() != tt.want {
			t.Errorf("%s: %v, %v", tt.name, v, err)
		}
	}
	if v, err := codec.Decode("noseg.png", []byte("7"), o); err != nil || v.Kind() != codec.Image {
		t.Errorf("noseg.png: %v, %v", v.Kind(), err)
	}
	if v, err := codec.Decode("msg.gz", gzipped("8"), o); err != nil || v.Other() != "msg:8" {
		t.Errorf("msg.gz: %v, %v", v, err)
	}
	_, err := codec.Decode("a.bad", nil, o)
	if e := format.AsError(err); e == nil || e.Err != format.ErrSchema || e.Field != "a.bad" || !errors.Is(err, broken) {
		t.Errorf("a codec that fails: %v", err)
	}
	if _, err := codec.Decode("cancelled", nil, o); err != context.Canceled {
		t.Errorf("a cancelled codec: %v", err)
	}
}

func gzipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.Bytes()
}

func TestErrorsSayWhere(t *testing.T) {
	for _, tt := range []struct{ name, data, want string }{
		{"a.cls", "seven", `(field "a.cls"): schema: "seven" is no whole number in decimal`},
		{"cls", "9223372036854775808", `(field "cls"): schema: "9223372036854775808" is beyond an int64`},
		{"cls", strings.Repeat("7", 100), `(field "cls"): schema: "` + strings.Repeat("7", 64) + `"… is beyond an int64`},
		{"txt", "ab\xffcd", `(field "txt"): schema: byte 2, 0xff, is no UTF-8; take the field as bytes`},
		{"json", `{"a": [1, 2}`, `(field "json"): corrupt: JSON: no comma at byte 11, "}"`},
		{"json", `{"a": [1, 2`, `(field "json"): truncated: JSON: it ends at byte 11, within a value`},
		{"npy", "\x93NUMPY\x01\x00\x02\x00{}", `(field "npy"): corrupt: a .npy: byte 2 of the header's "{}"`},
		{"npz", "PK\x03\x04", `(field "npz"): truncated: a .npz: zip: not a valid zip file`},
		{"npz", "\x93NUMPY", `(field "npz"): wrong-format: a .npz: zip: not a valid zip file`},
		{"txt.gz", "text", `(field "txt.gz"): wrong-format: the name says gzip, the field begins with "text"`},
		{"ten", "~TenBin~\xff\xff\xff\xff\xff\xff\xff\xff", `(field "ten"): corrupt: a tenbin has a chunk of -1 bytes, at byte 0`},
		{"ten", "~TenBin~\xff\xff\xff\xff\xff\xff\xff\x7f", `(field "ten"): truncated: a tenbin ends 9223372036854775807 bytes early, in the chunk at byte 0`},
	} {
		if _, err := codec.Decode(tt.name, []byte(tt.data), nil); err == nil || err.Error() != tt.want {
			t.Errorf("%s %q:\n got %v\nwant %s", tt.name, tt.data, err, tt.want)
		}
	}
}

func TestValues(t *testing.T) {
	for name, v := range map[string]codec.Value{
		"bytes": codec.OfBytes(nil), "int64": codec.OfInt64(1), "text": codec.OfText(nil), "json": codec.OfJSON(nil), "array": codec.OfDense(tensor.Dense{}),
		"arrays": codec.OfNamed(nil), "list": codec.OfDenses(nil), "image": codec.OfImage(nil), "other": codec.OfOther(nil),
	} {
		if v.Kind().String() != name {
			t.Errorf("%v is not %s", v.Kind(), name)
		}
		panics := 0
		for _, f := range []func(){
			func() { v.Int64() }, func() { v.Text() }, func() { v.JSON() }, func() { v.Dense() }, func() { v.Named() }, func() { v.Denses() }, func() { v.Other() },
			func() { v.Encoding() }, func() { v.Bytes() },
		} {
			func() {
				defer func() {
					if recover() != nil {
						panics++
					}
				}()
				f()
			}()
		}
		want := 8
		if name == "text" || name == "image" {
			want = 7
		}
		if panics != want {
			t.Errorf("%s: %d of the methods panic, want %d", name, panics, want)
		}
	}
	if codec.Kind(99).String() != "unknown" {
		t.Error("a kind that there is not has a name")
	}
}

func TestEncoding(t *testing.T) {
	for data, want := range map[string]string{
		"\xff\xd8\xff\xe0": "jpeg", "\x89PNG\r\n\x1a\n....": "png", "GIF89a": "gif", "GIF87a": "gif", "RIFF....WEBPVP8 ": "webp", "RIFF....WAVE": "", "": "", "BM": "",
	} {
		if got := codec.OfImage([]byte(data)).Encoding(); got != want {
			t.Errorf("%q: %q, want %q", data, got, want)
		}
	}
}

func TestDecodeAllocatesNothing(t *testing.T) {
	for name, data := range map[string]string{"cls": "12", "bin": "abc", "A.TXT": "text", "jpg": "\xff\xd8"} {
		bytes := []byte(data)
		if n := testing.AllocsPerRun(100, func() { codec.Decode(name, bytes, nil) }); n > 1 { // the options
			t.Errorf("%s allocates %v times", name, n)
		}
		o := new(codec.Options)
		if n := testing.AllocsPerRun(100, func() { codec.Decode(name, bytes, o) }); n != 0 {
			t.Errorf("%s with options allocates %v times", name, n)
		}
	}
}

// TestBombs: what little input inflates to is bounded, and so is what it claims.
func TestBombs(t *testing.T) {
	limits := &format.Limits{Record: 1 << 20, Fields: 10}
	zeros := npyOf(tensor.Uint8, tensor.Shape{3 << 20}, nil)
	small := npyOf(tensor.Uint8, tensor.Shape{400 << 10}, nil)
	claim := npyOf(tensor.Uint8, tensor.Shape{1}, nil)
	claim = bytes.Replace(claim, []byte("(1,), }            "), []byte("(9000000000000,), }"), 1)
	many := map[string][]byte{}
	for i := range 11 {
		many[fmt.Sprint(i)] = claim
	}
	for _, tt := range []struct {
		what, name string
		data       []byte
		want       error
	}{
		{"gzip", "npy.gz", gzipped(string(zeros)), format.ErrLimit},
		{"one array", "npz", zipOf(t, map[string][]byte{"a.npy": zeros}), format.ErrLimit},
		{"three arrays", "npz", zipOf(t, map[string][]byte{"a.npy": small, "b.npy": small, "c.npy": small}), format.ErrLimit},
		{"two arrays", "npz", zipOf(t, map[string][]byte{"a.npy": small, "b.npy": small}), nil},
		{"arrays", "npz", zipOf(t, many), format.ErrLimit},
		{"a claim", "npy", claim, format.ErrTruncated},
		{"a claim in an archive", "npz", zipOf(t, map[string][]byte{"a.npy": claim}), format.ErrTruncated},
		{"no array in an archive", "npz", zipOf(t, map[string][]byte{"a.npy": []byte("text")}), format.ErrWrongFormat},
		{"nested JSON", "json", bytes.Repeat([]byte("["), 1<<20), format.ErrLimit},
		{"nested JSON of objects", "json", bytes.Repeat([]byte(`{"a":`), 1<<20), format.ErrLimit},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := codec.Decode(tt.name, tt.data, &codec.Options{Limits: limits})
		runtime.ReadMemStats(&after)
		if format.Sentinel(err) != tt.want {
			t.Errorf("%s: %v, want %v", tt.what, err, tt.want)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 {
			t.Errorf("%s: %d bytes were allocated", tt.what, got)
		}
	}
}

func TestTenbin(t *testing.T) {
	chunk := func(b ...[]byte) []byte {
		all := bytes.Join(b, nil)
		return bytes.Join([][]byte{[]byte("~TenBin~"), little(int64(len(all))), all, make([]byte, (64-len(all)%64)%64)}, nil)
	}
	header := func(dtype string, rest ...int64) []byte { return chunk([]byte(dtype), little(rest)) }
	i2, two := "i2\x00\x00\x00\x00\x00\x00", chunk([]byte{1, 0, 2, 0})
	for _, tt := range []struct {
		what string
		data [][]byte
		want error
	}{
		{"one", [][]byte{header(i2, 0, 1, 2), two}, nil},
		{"without its padding", [][]byte{header(i2, 0, 1, 2), two[:20]}, nil},
		{"with more in its header", [][]byte{header(i2, 0, 1, 2, 5), two}, nil},
		{"of webdataset's uint32", [][]byte{header("u4\x00\x00\x00\x00\x00\x00", 0, 1, 1), two}, nil},
		{"no data", [][]byte{header(i2, 0, 1, 2)}, format.ErrTruncated},
		{"a head alone", [][]byte{header(i2, 0, 1, 2), []byte("~TenBin~\x00")}, format.ErrTruncated},
		{"no head", [][]byte{header(i2, 0, 1, 2), []byte("~Ten")}, format.ErrTruncated},
		{"garbage behind", [][]byte{header(i2, 0, 1, 2), two, []byte("x")}, format.ErrCorrupt},
		{"a header of 16 bytes", [][]byte{header(i2, 0), two}, format.ErrCorrupt},
		{"a header of 25 bytes", [][]byte{chunk([]byte(i2), make([]byte, 17)), two}, format.ErrCorrupt},
		{"more axes than there are", [][]byte{header(i2, 0, 2, 2), two}, format.ErrCorrupt},
		{"2^62 axes", [][]byte{header(i2, 0, 1<<62, 2), two}, format.ErrCorrupt},
		{"less data", [][]byte{header(i2, 0, 1, 3), two}, format.ErrCorrupt},
		{"more data", [][]byte{header(i2, 0, 1, 1), two}, format.ErrCorrupt},
		{"a negative axis", [][]byte{header(i2, 0, 1, -2), two}, format.ErrCorrupt},
		{"a huge shape", [][]byte{header(i2, 0, 2, 1<<40, 1<<40), two}, format.ErrCorrupt},
		{"no type", [][]byte{header("\x00\x00\x00\x00\x00\x00\x00\x00", 0, 1, 2), two}, format.ErrUnsupported},
	} {
		if _, err := codec.Decode("ten", bytes.Join(tt.data, nil), nil); format.Sentinel(err) != tt.want {
			t.Errorf("%s: %v, want %v", tt.what, err, tt.want)
		}
	}
}

func TestNPZOfAnotherMethod(t *testing.T) {
	data := zipOf(t, map[string][]byte{"a.npy": npyOf(tensor.Uint8, nil, nil)})
	local, central := bytes.Index(data, []byte("PK\x03\x04")), bytes.Index(data, []byte("PK\x01\x02"))
	data[local+8], data[central+10] = 14, 14 // LZMA
	if _, err := codec.Decode("npz", data, nil); format.Sentinel(err) != format.ErrUnsupported {
		t.Error(err)
	}
}

func zipOf(t testing.TB, files map[string][]byte) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, data := range files {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(data)
	}
	z.Close()
	return b.Bytes()
}

func TestNPZDuplicate(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for range 2 {
		w, _ := z.Create("a.npy")
		w.Write(npyOf(tensor.Uint8, nil, nil))
	}
	z.Close()
	if _, err := codec.Decode("npz", b.Bytes(), nil); format.Sentinel(err) != format.ErrDuplicate {
		t.Error(err)
	}
}

// TestJSONIsGos compares with encoding/json what it reads.
func TestJSONIsGos(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(anyJSON(4).Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		sameAsGo(t, text)
	})
}

func anyJSON(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.Just(any(nil)), rapid.Bool().AsAny(), rapid.Float64().AsAny(), rapid.Int64().AsAny(), rapid.String().AsAny(),
	}
	if depth > 0 {
		leaves = append(leaves,
			rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return anyJSON(depth - 1) }), 0, 4).AsAny(),
			rapid.MapOfN(rapid.String(), rapid.Deferred(func() *rapid.Generator[any] { return anyJSON(depth - 1) }), 0, 4).AsAny())
	}
	return rapid.OneOf(leaves...)
}

type fataler interface{ Fatalf(string, ...any) }

// sameAsGo reports where a text is read otherwise than encoding/json reads it,
// except what Python reads besides.
func sameAsGo(t fataler, text []byte) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var want any
	wantErr := d.Decode(&want)
	if wantErr == nil {
		if _, err := d.Token(); err != io.EOF {
			wantErr = errors.New("more follows")
		}
	}
	got, err := codec.Decode("json", text, nil)
	switch {
	case wantErr == nil && err == nil && !reflect.DeepEqual(got.JSON(), want):
		t.Fatalf("%q: %v, want %v", text, got.JSON(), want)
	case wantErr == nil && err != nil && !strings.Contains(err.Error(), "UTF-8"):
		t.Fatalf("%q: %v", text, err)
	case wantErr != nil && err == nil && !bytes.Contains(text, []byte("NaN")) && !bytes.Contains(text, []byte("Infinity")) && !bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		t.Fatalf("%q: %v, encoding/json says %v", text, got.JSON(), wantErr)
	}
}
