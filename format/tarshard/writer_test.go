package tarshard_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/format/tarshard"
)

func sampleOf(key string, fields ...string) *format.Sample {
	s := &format.Sample{Key: []byte(key)}
	for i := 0; i < len(fields); i += 2 {
		s.Fields = append(s.Fields, format.Field{Name: fields[i], Data: []byte(fields[i+1])})
	}
	return s
}

// TestWriterRoundTrip: archive/tar and Reader read what was written.
func TestWriterRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`([a-zé画 _-]{1,60}(\.v1)?/){0,6}[a-z0-9é画]{1,120}`)
		field := rapid.StringMatching(`[A-Za-z0-9é]{1,8}(\.[a-z]{1,100}){0,2}`)
		var buf bytes.Buffer
		w := tarshard.NewWriter(&buf, nil)
		var all []*format.Sample
		for i := range rapid.IntRange(0, 6).Draw(t, "samples") {
			s := sampleOf(key.Draw(t, "key") + fmt.Sprint(i))
			seen := map[string]bool{}
			for range rapid.IntRange(1, 4).Draw(t, "fields") {
				name := field.Draw(t, "field")
				if !seen[strings.ToLower(name)] && !seen[name] {
					seen[strings.ToLower(name)], seen[name] = true, true
					s.Fields = append(s.Fields, format.Field{Name: name, Data: rapid.SliceOfN(rapid.Byte(), 0, 1500).Draw(t, "data")})
				}
			}
			before := w.Offset()
			if err := w.WriteSample(s); err != nil {
				t.Fatal(err)
			}
			if n := w.Offset() - before; n != tarshard.SampleSize(s) {
				t.Fatalf("SampleSize %d, written %d", tarshard.SampleSize(s), n)
			}
			all = append(all, s)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if buf.Len()%10240 != 0 {
			t.Fatalf("%d bytes", buf.Len())
		}
		readByOracle(t, buf.Bytes(), all)
		res := readAll(bytes.NewReader(buf.Bytes()), tarshard.Options{})
		if res.err != nil || len(res.warnings) > 0 || len(res.skipped) > 0 || spell(res.samples) != spell(all) {
			t.Fatalf("Reader: %v %v %v\n%s\nwant\n%s", res.err, res.warnings, res.skipped, spell(res.samples), spell(all))
		}
	})
}

func spell(samples []*format.Sample) string {
	var b strings.Builder
	for _, s := range samples {
		fmt.Fprintf(&b, "%q", s.Key)
		for _, f := range s.Fields {
			fmt.Fprintf(&b, " %q=%x", f.Name, f.Data)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func readByOracle(t *rapid.T, data []byte, all []*format.Sample) {
	r := tar.NewReader(bytes.NewReader(data))
	for _, s := range all {
		for _, f := range s.Fields {
			h, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			have, err := io.ReadAll(r)
			if err != nil || h.Name != string(s.Key)+"."+f.Name || !bytes.Equal(have, f.Data) {
				t.Fatalf("archive/tar: %q %v", h.Name, err)
			}
			if h.Mode != 0o644 || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.ModTime.Unix() != 0 || h.Typeflag != tar.TypeReg {
				t.Fatalf("archive/tar: %+v", h)
			}
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Fatalf("archive/tar at the end: %v", err)
	}
}

// TestWriterHeaders: ustar where it fits, pax where it must.
func TestWriterHeaders(t *testing.T) {
	d := func(n int) string { return strings.Repeat("d", n) }
	for _, tt := range []struct {
		name string
		pax  bool
	}{
		{d(99) + ".", false},
		{d(100), false},
		{d(101), true},
		{d(155) + "/" + d(100), false},
		{d(156) + "/" + d(100), true},
		{d(155) + "/" + d(101), true},
		{d(50) + "/" + d(50) + "/" + d(60), false},
		{"/" + d(100), true}, // a prefix of no bytes
		{d(100) + "/", true}, // a name of no bytes
		{"é", true},
	} {
		var buf bytes.Buffer
		w := tarshard.NewWriter(&buf, &tarshard.WriterOptions{Record: 512})
		if err := w.WriteMember(tt.name, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want := 512 + 512 + 1024
		if tt.pax {
			want += 1024
		}
		if buf.Len() != want {
			t.Errorf("%q: %d bytes, want %d", tt.name, buf.Len(), want)
		}
		h, err := tar.NewReader(&buf).Next()
		if err != nil || h.Name != tt.name {
			t.Errorf("archive/tar reads %q, %v", h.Name, err)
		}
	}
}

// TestWriterBytes compares with an archive made by hand.
func TestWriterBytes(t *testing.T) {
	var want bytes.Buffer
	want.Write(header("././@PaxHeader", 'g', 11))
	want.Write(append([]byte("11 a=hello\n"), make([]byte, 501)...))
	want.Write(header("k.jpg", '0', 3))
	want.Write(append([]byte("abc"), make([]byte, 509)...))
	want.Write(make([]byte, 10240-want.Len()))
	for range 2 {
		var have bytes.Buffer
		w := tarshard.NewWriter(&have, &tarshard.WriterOptions{GlobalRecords: map[string]string{"a": "hello"}})
		if err := errors.Join(w.WriteSample(sampleOf("k", "jpg", "abc")), w.Close(), w.Close()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have.Bytes(), want.Bytes()) {
			t.Errorf("have %q", bytes.TrimRight(have.Bytes(), "\x00"))
		}
		if err := w.WriteMember("x.y", nil); !errors.Is(err, format.ErrUsage) {
			t.Errorf("after Close: %v", err)
		}
	}
}

func TestWriterOptions(t *testing.T) {
	var buf bytes.Buffer
	w := tarshard.NewWriter(&buf, &tarshard.WriterOptions{ModTime: time.Unix(1514764800, 7), Mode: 0o600, LastDot: true, Record: 1000})
	if err := errors.Join(w.WriteSample(sampleOf("a.b", "jpg", "abc")), w.Close()); err != nil {
		t.Fatal(err)
	}
	if buf.Len()%1024 != 0 {
		t.Errorf("%d bytes, want a multiple of 1000 in whole blocks", buf.Len())
	}
	h, err := tar.NewReader(&buf).Next()
	if err != nil || h.Mode != 0o600 || h.ModTime.Unix() != 1514764800 {
		t.Errorf("%+v, %v", h, err)
	}
}

// TestWriterRefuses what would be read back as something else, and writes
// nothing of it.
func TestWriterRefuses(t *testing.T) {
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprint("f", i), "")
	}
	for _, tt := range []struct {
		sample   *format.Sample
		sentinel error
	}{
		{sampleOf("", "jpg", ""), format.ErrUsage},
		{sampleOf("dir/", "jpg", ""), format.ErrUsage},
		{sampleOf(".a", "jpg", ""), format.ErrUsage},
		{sampleOf("a.b", "jpg", ""), format.ErrUsage},
		{sampleOf("a", "", ""), format.ErrUsage},
		{sampleOf("a", "jpg", "", "x/y", ""), format.ErrUsage},
		{sampleOf("a\x00b", "jpg", ""), format.ErrUsage},
		{sampleOf("__x__", "jpg", ""), format.ErrUsage},
		{sampleOf("._a", "jpg", ""), format.ErrUsage},
		{sampleOf("a", "jpg", "", "JPG", ""), format.ErrDuplicate},
		{sampleOf("a", append(many, "F7", "")...), format.ErrDuplicate},
	} {
		w := tarshard.NewWriter(io.Discard, &tarshard.WriterOptions{Shard: "s.tar"})
		err := w.WriteSample(tt.sample)
		if !errors.Is(err, tt.sentinel) || w.Offset() != 0 || !strings.HasPrefix(err.Error(), "s.tar") {
			t.Errorf("key %q: %v, %d bytes", tt.sample.Key, err, w.Offset())
		}
		if err := w.WriteSample(sampleOf("a", many...)); err != nil {
			t.Errorf("after a refusal: %v", err)
		}
	}
	w := tarshard.NewWriter(io.Discard, nil)
	for _, err := range []error{w.WriteMember("", nil), w.WriteMember("a\x00", nil), w.WriteFrom("a.b", -1, nil),
		tarshard.NewWriter(io.Discard, &tarshard.WriterOptions{GlobalRecords: map[string]string{"a=b": ""}}).Close()} {
		if !errors.Is(err, format.ErrUsage) {
			t.Errorf("%v", err)
		}
	}
}

func TestWriteFrom(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 60_000) // larger than the buffer
	var a, b bytes.Buffer
	wa, wb := tarshard.NewWriter(&a, nil), tarshard.NewWriter(&b, nil)
	for range 3 {
		if err := errors.Join(wa.WriteMember("k.bin", data), wb.WriteFrom("k.bin", int64(len(data)), plain{bytes.NewReader(data)})); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(wa.Close(), wb.Close()); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Errorf("WriteFrom and WriteMember differ: %v", err)
	}
	w := tarshard.NewWriter(io.Discard, nil)
	if err := w.WriteFrom("k.bin", 10, strings.NewReader("123")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a short source: %v", err)
	}
	if err := w.Close(); err == nil {
		t.Error("Close after a failure says nothing")
	}
}

// full fails once n bytes are written.
type full struct{ n int }

var errFull = errors.New("disk full")

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.n {
		return f.n, errFull
	}
	f.n -= len(p)
	return len(p), nil
}

func TestWriterFails(t *testing.T) {
	for _, n := range []int{0, 1000, 300_000} {
		w := tarshard.NewWriter(&full{n}, nil)
		var err error
		for i := 0; err == nil && i < 1000; i++ {
			err = w.WriteSample(sampleOf(fmt.Sprint(i), "jpg", strings.Repeat("x", 2000)))
		}
		if !errors.Is(err, format.ErrIO) || !errors.Is(err, errFull) {
			t.Errorf("room for %d: %v", n, err)
		}
		if e := w.Close(); !errors.Is(e, errFull) {
			t.Errorf("Close: %v", e)
		}
	}
}

func TestWriterAllocates(t *testing.T) {
	s := sampleOf("dir/000001", "jpg", strings.Repeat("x", 700), "cls", "7")
	long := sampleOf(strings.Repeat("long/", 40)+"größe", "jpg", "x")
	w := tarshard.NewWriter(io.Discard, nil)
	if n := testing.AllocsPerRun(1000, func() {
		if err := errors.Join(w.WriteSample(s), w.WriteSample(long)); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations for a sample", n)
	}
}
