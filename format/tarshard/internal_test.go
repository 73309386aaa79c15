package tarshard

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"shardtool/format"
)

func TestParseNumber(t *testing.T) {
	// POSIX pax, "ustar Interchange Format", and the GNU tar manual, "Extensions
	// to the archive format" for base 256.
	for _, tt := range []struct {
		in    string
		want  int64
		fault numberFault
	}{
		{"00000000644\x00", 420, numberOK},
		{"0000644 ", 420, numberOK},
		{"   644 \x00", 420, numberOK},
		{"\x00\x00\x00644", 420, numberOK},
		{"644\x00junk", 420, numberOK},
		{"77777777777\x00", 8589934591, numberOK},
		{"777777777777", 68719476735, numberOK},
		{"\x00\x00\x00\x00\x00\x00\x00\x00", 0, numberOK},
		{"        ", 0, numberOK},
		{"00000000648\x00", 0, numberJunk},
		{"-0000000644\x00", 0, numberJunk},
		{"644 12\x00", 0, numberJunk},
		{"0x000000644\x00", 0, numberJunk},
		{"\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00", 256, numberOK},
		{"\x80\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff", math.MaxInt64, numberOK},
		{"\x80\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00", 0, numberHuge},
		{"\xbf\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 0, numberHuge},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", -1, numberOK},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xae\x80", -86400, numberOK},
		{"\xff\xff\xff\xff\x80\x00\x00\x00\x00\x00\x00\x00", math.MinInt64, numberOK},
		{"\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff", 0, numberHuge},
		{"\xc0\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", 0, numberHuge},
		{"\x80\x00\x00\x00\x00\x00\x00\x01", 1, numberOK},
	} {
		if got, fault := parseNumber([]byte(tt.in)); got != tt.want || fault != tt.fault {
			t.Errorf("parseNumber(%q) = %d, %d; want %d, %d", tt.in, got, fault, tt.want, tt.fault)
		}
	}
}

func TestParseTime(t *testing.T) {
	for _, tt := range []struct {
		in   string
		sec  int64
		nsec int32
		ok   bool
	}{
		{"0", 0, 0, true},
		{"1350244992.023960108", 1350244992, 23960108, true},
		{"1350244992.02396010899", 1350244992, 23960108, true},
		{"1350244992.0239601", 1350244992, 23960100, true},
		{"1.", 1, 0, true},
		{"-1", -1, 0, true},
		{"-1.5", -2, 500000000, true},
		{"-0.1", -1, 900000000, true},
		{"9223372036854775800", 0, 0, false},
		{"", 0, 0, false}, {".5", 0, 0, false}, {"1.x", 0, 0, false}, {"1e3", 0, 0, false}, {"--1", 0, 0, false}, {"1.-5", 0, 0, false},
	} {
		if sec, nsec, ok := parseTime([]byte(tt.in)); ok != tt.ok || ok && (sec != tt.sec || nsec != tt.nsec) {
			t.Errorf("parseTime(%q) = %d, %d, %v; want %d, %d, %v", tt.in, sec, nsec, ok, tt.sec, tt.nsec, tt.ok)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		in, key, field string
		why            reason
	}{
		// As WebDataset's pattern ^((?:.*/|)[^.]+)[.]([^/]*)$ does.
		{"a.jpg", "a", "jpg", kept},
		{"a.seg.png", "a", "seg.png", kept},
		{"dir.v1/a.jpg", "dir.v1/a", "jpg", kept},
		{"./a.jpg", "./a", "jpg", kept},
		{"a..jpg", "a", ".jpg", kept},
		{"__x__y.jpg", "__x__y", "jpg", kept},
		{"dir/__x__.jpg", "dir/__x__", "jpg", kept},
		{"___.jpg", "___", "jpg", kept},
		{"pax_global_header.x", "pax_global_header", "x", kept},
		{"a", "", "", noKey},
		{"dir.v1/a", "", "", noKey},
		{"dir/", "", "", noKey},
		{"", "", "", noKey},
		{".hidden", "", "", noKey},
		{".a.jpg", "", "", noKey},
		// Not so there, by policy: the key "dir/", an empty field, "__x__".
		{"dir/.a.jpg", "", "", noKey},
		{"a.", "", "", noField},
		{"__x__.jpg", "", "", meta},
		{"__x__", "", "", meta},
		{"./__x__/a.jpg", "", "", meta},
		{"____", "", "", meta},
		{"._a.jpg", "", "", appleDouble},
		{"dir/._a.jpg", "", "", appleDouble},
		{"__MACOSX/a.jpg", "", "", appleDouble},
		{"pax_global_header", "", "", globalHeader},
	} {
		key, field, why := split([]byte(tt.in), false)
		if string(key) != tt.key || string(field) != tt.field || why != tt.why {
			t.Errorf("split(%q) = %q, %q, %s; want %q, %q, %s", tt.in, key, field, reasonNames[why], tt.key, tt.field, reasonNames[tt.why])
		}
	}
	for in, want := range map[string]string{"a.b.c": "a.b|c", "x.y/a.b": "x.y/a|b", ".a.b": "|", "a.": "|", "a.b.": "|"} {
		key, field, _ := split([]byte(in), true)
		if got := string(key) + "|" + string(field); got != want {
			t.Errorf("split(%q) at the last dot = %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{".//./a": "a", "/a": "a", "../a": "../a", ".a": ".a", "a/./b": "a/./b", "./": ""} {
		if got := clean([]byte(in)); string(got) != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestChecksum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var b block
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if r.IntN(4) == 0 {
			b = block(bytes.Repeat([]byte{0xff}, blockSize))
		}
		var unsigned, signed int64
		for i, c := range b {
			if i >= 148 && i < 156 {
				c = ' '
			}
			unsigned += int64(c)
			signed += int64(int8(c))
		}
		if got := b.sum(); got != unsigned {
			t.Fatalf("sum %d, want %d", got, unsigned)
		}
		copy(b[148:], fmt.Sprintf("%06o\x00 ", unsigned))
		if !b.sound() {
			t.Fatal("a right sum is refused")
		}
		if signed >= 0 {
			copy(b[148:], fmt.Sprintf("%06o\x00 ", signed))
			if !b.sound() {
				t.Fatal("a right sum of signed bytes is refused")
			}
		}
		copy(b[148:], fmt.Sprintf("%06o\x00 ", unsigned+1))
		if b.sound() {
			t.Fatal("a wrong sum is taken")
		}
	}
	if (&block{}).sound() {
		t.Error("a block of NUL is taken for a header")
	}
}

// TestKeySet: every key is found again, and none costs more than 16 bytes.
func TestKeySet(t *testing.T) {
	for _, n := range []int{2_000, 60_000, 300_000} {
		var s keySet
		s.reset(1 << 30)
		for i := range n {
			if s.add(fmt.Appendf(nil, "key-%09d", i)) {
				t.Fatalf("key %d is known before it was added", i)
			}
			if i >= 1000 && s.have > int64(i+1)*16 {
				t.Fatalf("%d bytes for %d keys", s.have, i+1)
			}
		}
		for i := range n {
			if !s.add(fmt.Appendf(nil, "key-%09d", i)) {
				t.Fatalf("key %d is not found", i)
			}
		}
	}
}

func TestKeySetStops(t *testing.T) {
	var s keySet
	s.reset(10_000)
	for i := range 5000 {
		s.add(fmt.Append(nil, i))
	}
	if !s.stopped || s.have > 10_000 {
		t.Errorf("stopped %v with %d bytes", s.stopped, s.have)
	}
	if !s.add([]byte("0")) {
		t.Error("the first key is forgotten")
	}
	if s.add([]byte("4999")) {
		t.Error("a key past the limit is remembered")
	}
	s.reset(1000) // less than it has
	if s.stopped || s.have != 0 || s.add([]byte("0")) {
		t.Error("reset kept something")
	}
}

// TestHugeHeader: a payload that eleven octal digits cannot count stands in a
// pax record, and its neighbours in size do not.
func TestHugeHeader(t *testing.T) {
	for _, size := range []int64{1<<33 - 1, 1 << 33, 9 << 30, 1 << 50} {
		var buf bytes.Buffer
		w := NewWriter(&buf, nil)
		if err := w.member([]byte("big.bin"), size); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		wantBlocks := 1
		if size >= 1<<33 {
			wantBlocks = 3
		}
		if buf.Len() != wantBlocks*blockSize {
			t.Errorf("%d bytes of headers for a size of %d", buf.Len(), size)
		}
		h, err := tar.NewReader(bytes.NewReader(buf.Bytes())).Next()
		if err != nil || h.Size != size || h.Name != "big.bin" {
			t.Errorf("archive/tar reads %+v, %v", h, err)
		}
		m, err := NewWalker(bytes.NewReader(buf.Bytes()), nil).Next()
		if err != nil || m.Size != size || m.Offset != 0 || m.DataOffset != int64(buf.Len()) {
			t.Errorf("Walker reads %+v, %v", m, err)
		}
	}
}

// TestWindowIsBounded: what is passed over between the fields of one sample is
// not kept with it.
func TestWindowIsBounded(t *testing.T) {
	var buf bytes.Buffer
	w := NewWriter(&buf, nil)
	for i := range 4000 {
		if err := w.WriteMember(fmt.Sprintf("k.%05d", i), []byte("x")); err != nil {
			t.Fatal(err)
		}
		for j := range 3 {
			if err := w.WriteMember(fmt.Sprintf("nothing%d", j), make([]byte, 900)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := NewReader(struct{ io.Reader }{&buf}, nil)
	s, err := r.Next()
	if err != nil || len(s.Fields) != 4000 {
		t.Fatal(err)
	}
	for i, f := range s.Fields {
		if f.Name != fmt.Sprintf("%05d", i) || string(f.Data) != "x" {
			t.Fatalf("field %d is %s: %q", i, f.Name, f.Data)
		}
	}
	if n := len(r.g.w.win.buf); n > 4<<20 {
		t.Errorf("a buffer of %d bytes for a sample of 4000", n)
	}
}

// TestFieldTableIsBounded: names of fields that never come back are forgotten.
func TestFieldTableIsBounded(t *testing.T) {
	var buf bytes.Buffer
	w := NewWriter(&buf, nil)
	const n = 3 * mostNames
	for i := range n {
		if err := w.WriteMember(fmt.Sprintf("%d.field%d", i, i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := NewReader(&buf, nil)
	for i := range n {
		s, err := r.Next()
		if err != nil || s.Fields[0].Name != fmt.Sprintf("field%d", i) {
			t.Fatalf("sample %d: %v, %v", i, s, err)
		}
		if len(r.g.table.names) > mostNames+2 {
			t.Fatalf("%d names are kept", len(r.g.table.names))
		}
	}
}

func TestReasonsHaveNames(t *testing.T) {
	for r := kept + 1; r < reasons; r++ {
		if reasonNames[r] == "" {
			t.Errorf("reason %d has no name", r)
		}
	}
	if s := strings.Join(reasonNames[1:], " "); strings.Contains(s, "  ") {
		t.Error(s)
	}
	if format.MissingFill.String() != "fill" || format.MissingError.String() != "error" || format.MissingSkip.String() != "skip" {
		t.Error("OnMissing")
	}
	if format.DuplicateError.String() != "error" {
		t.Error("OnDuplicate")
	}
}
