package format_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"shardtool/format"
)

func TestErrorReadsWhatAndWhere(t *testing.T) {
	tests := []struct {
		err  *format.Error
		want string
	}{
		{
			format.Errorf(format.ErrTruncated, format.Location{Shard: "train-000003.tar", Offset: 1049088, Record: 412, Key: "n01440764_10026"},
				"member ends %d bytes early", 3071),
			`train-000003.tar @ 1049088 (sample 412 "n01440764_10026"): truncated: member ends 3071 bytes early`,
		},
		{format.Errorf(format.ErrCorrupt, format.Nowhere, "x"), "corrupt: x"},
		{format.Errorf(format.ErrMissing, format.Location{Shard: "a", Offset: -1, Record: -1, Field: "jpg"}, ""), `a (field "jpg"): missing`},
		{format.Errorf(format.ErrDuplicate, format.Location{Offset: 0, Record: 0, Field: "jpg"}, "y"), `@ 0 (sample 0, field "jpg"): duplicate: y`},
		{format.Errorf(format.ErrCorrupt, format.Location{Offset: -1, Record: -1, Key: strings.Repeat("é", 300)}, "z"),
			`(sample "` + strings.Repeat("é", 128) + `…"): corrupt: z`},
	}
	for _, tt := range tests {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestErrorWrapsItsSentinelAndCause(t *testing.T) {
	cause := errors.New("disk on fire")
	var err error = format.Errorf(format.ErrIO, format.Nowhere, "reading: %w", cause)
	err = fmt.Errorf("outer: %w", err)
	if !errors.Is(err, format.ErrIO) || !errors.Is(err, cause) || errors.Is(err, format.ErrCorrupt) {
		t.Errorf("%v wraps the wrong errors", err)
	}
	for err, want := range map[error]string{
		err:                                     "io",
		nil:                                     "",
		errors.New("other"):                     "io",
		fmt.Errorf("bare: %w", format.ErrStale): "stale",
	} {
		if got := format.Class(err); got != want {
			t.Errorf("Class(%v) = %q, want %q", err, got, want)
		}
	}
}

func TestReadError(t *testing.T) {
	at := format.Location{Shard: "s", Offset: 7, Record: format.Unknown}
	corrupt := format.Errorf(format.ErrCorrupt, format.Location{Offset: 3, Record: format.Unknown}, "x")
	for _, tt := range []struct {
		in       error
		sentinel error
		want     string
	}{
		{fs.ErrNotExist, format.ErrNotFound, "s @ 7: not-found: file does not exist"},
		{fs.ErrPermission, format.ErrDenied, "s @ 7: denied: permission denied"},
		{errors.New("bad sector"), format.ErrIO, "s @ 7: io: bad sector"},
		{corrupt, format.ErrCorrupt, "s @ 3: corrupt: x"},
		{context.Canceled, context.Canceled, "context canceled"},
	} {
		got := format.ReadError(tt.in, at)
		if !errors.Is(got, tt.sentinel) || got.Error() != tt.want {
			t.Errorf("ReadError(%v) = %v, want %s", tt.in, got, tt.want)
		}
	}
	if format.ReadError(nil, at) != nil {
		t.Error("ReadError(nil) is not nil")
	}
}

func TestSampleField(t *testing.T) {
	s := &format.Sample{Fields: []format.Field{{Name: "PNG", Data: []byte("p")}, {Name: "cls", Data: []byte("3")}}}
	for name, want := range map[string]string{
		"png": "p", "jpg;jpeg;png": "p", "CLS": "3", "cls;png": "3", "jpg": "", "": "", ";": "", "pn": "",
	} {
		got := ""
		if f := s.Field(name); f != nil {
			got = string(f.Data)
		}
		if got != want {
			t.Errorf("Field(%q) = %q, want %q", name, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { s.Field("jpg;jpeg;png") }); n != 0 {
		t.Errorf("Field allocates %v times", n)
	}
}

func TestClone(t *testing.T) {
	s := &format.Sample{Shard: "s", Key: []byte("k"), Fields: []format.Field{{Name: "a", Data: []byte("data")}}}
	c := s.Clone()
	s.Key[0], s.Fields[0].Data[0], s.Fields[0].Name = 'x', 'x', "x"
	if string(c.Key) != "k" || string(c.Fields[0].Data) != "data" || c.Fields[0].Name != "a" || c.Bytes() != 4 {
		t.Errorf("clone changed with its source: %+v", c)
	}
}

func TestLimitsDefaults(t *testing.T) {
	var none *format.Limits
	d := none.OrDefault()
	if d.Record != 1<<30 || d.Header != 1<<20 || d.Window != 128<<20 || d.Fields != 65536 {
		t.Errorf("defaults are %+v", d)
	}
	if got := (&format.Limits{Record: 5}).OrDefault(); got.Record != 5 || got.Header != d.Header {
		t.Errorf("a set limit did not hold: %+v", got)
	}
}

func TestLooksLike(t *testing.T) {
	tar := make([]byte, 512)
	copy(tar[257:], "ustar")
	for _, tt := range []struct{ in, want string }{
		{"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"},
		{"\xef\xbb\xbf <?XML version", "XML"},
		{" <!DOCTYPE html>", "HTML"},
		{string(tar), "tar archive"},
		{"\x1f\x8b\x08", "gzip"},
		{"PAR1", "Parquet"},
	} {
		if got := format.LooksLike([]byte(tt.in)); !strings.Contains(got, tt.want) {
			t.Errorf("LooksLike(%.20q) = %q, want %s", tt.in, got, tt.want)
		}
	}
	for _, in := range []string{"", "\x03\x00\x00\x00\x00\x00\x00\x00", "hello"} {
		if got := format.LooksLike([]byte(in)); got != "" {
			t.Errorf("LooksLike(%q) = %q, want nothing", in, got)
		}
	}
}
