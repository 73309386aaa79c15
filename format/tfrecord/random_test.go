package tfrecord_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"shardtool/format"
	"shardtool/format/tfrecord"
)

func TestReadAt(t *testing.T) {
	stream, offsets, payloads := shard(sizes)
	src := bytes.NewReader(stream)
	head := []byte("head")
	for i, off := range offsets {
		got, err := tfrecord.ReadAt(src, off, head, nil)
		if err != nil || string(got[:4]) != "head" || !bytes.Equal(got[4:], payloads[i]) {
			t.Errorf("record %d: %d bytes, %v", i, len(got), err)
		}
	}
	for _, tt := range []struct {
		name  string
		r     io.ReaderAt
		off   int64
		class string
	}{
		{"not a record", src, 1, "corrupt"},
		{"the end", src, int64(len(stream)), "truncated"},
		{"past the end", src, 1 << 40, "truncated"},
		{"negative", src, -1, "usage"},
		{"cut in the header", bytes.NewReader(stream[:5]), 0, "truncated"},
		{"cut in the payload", bytes.NewReader(stream[:offsets[7]+5000]), offsets[7], "truncated"},
		{"cut in the checksum", bytes.NewReader(stream[:15]), 0, "truncated"},
		{"payload", bytes.NewReader(flip(stream, int(offsets[3])+50)), offsets[3], "corrupt"},
		{"2^64-1", bytes.NewReader(header(1<<64 - 1)), 0, "limit"},
		{"1 TiB", bytes.NewReader(header(1 << 40)), 0, "limit"},
		{"failing", failing{}, 7, "io"},
	} {
		got, err := tfrecord.ReadAt(tt.r, tt.off, head, &tfrecord.Options{Shard: "s"})
		var e *format.Error
		if !errors.As(err, &e) || format.Class(err) != tt.class || e.Offset != tt.off || e.Shard != "s" || string(got) != "head" {
			t.Errorf("%s: %q, %v, want %s at %d", tt.name, got, err, tt.class, tt.off)
		}
	}
}

type failing struct{}

func (failing) ReadAt([]byte, int64) (int, error) { return 0, errors.New("bad sector") }

func TestScan(t *testing.T) {
	small := make([]int, 5000)
	large := []int{200_000, 3, 200_000, 200_000, 1, 200_000}
	mixed := append(append(append([]int{}, large...), small...), large...)
	for name, sizes := range map[string][]int{"small": small, "large": large, "mixed": mixed, "none": nil, "sizes": sizes} {
		stream, offsets, _ := shard(sizes)
		i := 0
		for span, err := range tfrecord.Scan(bytes.NewReader(stream), int64(len(stream)), nil) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if want := (tfrecord.Span{Offset: offsets[i], Size: int64(sizes[i]) + tfrecord.Overhead}); span != want {
				t.Fatalf("%s: record %d is %+v, want %+v", name, i, span, want)
			}
			i++
		}
		if i != len(sizes) {
			t.Errorf("%s: %d records, want %d", name, i, len(sizes))
		}
	}
}

func TestScanErrors(t *testing.T) {
	stream, _, _ := shard([]int{5, 6, 7})
	for _, tt := range []struct {
		name   string
		r      io.ReaderAt
		size   int
		class  string
		record int64
		offset int64
	}{
		{"length", bytes.NewReader(flip(stream, 21)), len(stream), "corrupt", 1, 21},
		{"cut in the payload", bytes.NewReader(stream), len(stream) - 5, "truncated", 2, 43},
		{"cut in the checksum", bytes.NewReader(stream), len(stream) - 1, "truncated", 2, 43},
		{"cut in the header", bytes.NewReader(stream), 50, "truncated", 2, 43},
		{"shorter than it should be", bytes.NewReader(stream[:43]), len(stream), "truncated", 2, 43},
		{"1 TiB", bytes.NewReader(cat(stream, header(1<<40))), len(stream) + 12, "limit", 3, 66},
		{"2^64-1", bytes.NewReader(header(1<<64 - 1)), 12, "limit", 0, 0},
		{"gzip", bytes.NewReader([]byte("\x1f\x8b\x08 and so on...")), 17, "wrong-format", 0, 0},
		{"failing", failing{}, 100, "io", 0, 0},
	} {
		n := int64(0)
		var err error
		for _, e := range tfrecord.Scan(tt.r, int64(tt.size), nil) {
			if err = e; e == nil {
				n++
			}
		}
		var e *format.Error
		if !errors.As(err, &e) || format.Class(err) != tt.class || e.Record != tt.record || e.Offset != tt.offset || n != tt.record {
			t.Errorf("%s: %v after %d records, want %s of record %d at %d", tt.name, err, n, tt.class, tt.record, tt.offset)
		}
	}
}

// TestScanReadsHeaders counts what is read of a shard of large records.
func TestScanReadsHeaders(t *testing.T) {
	stream, _, _ := shard([]int{1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6})
	src := &counting{r: bytes.NewReader(stream)}
	for _, err := range tfrecord.Scan(src, int64(len(stream)), nil) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if src.bytes > 8*512 || src.calls > 8 {
		t.Errorf("read %d bytes in %d calls for 8 headers", src.bytes, src.calls)
	}
	stream, _, _ = shard(make([]int, 100_000))
	src = &counting{r: bytes.NewReader(stream)}
	for _, err := range tfrecord.Scan(src, int64(len(stream)), nil) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if src.calls > 30 {
		t.Errorf("%d calls for %d bytes of small records", src.calls, len(stream))
	}
}

type counting struct {
	r            io.ReaderAt
	calls, bytes int
}

func (c *counting) ReadAt(p []byte, off int64) (int, error) {
	c.calls++
	c.bytes += len(p)
	return c.r.ReadAt(p, off)
}

func TestWriterErrors(t *testing.T) {
	full := errors.New("disk full")
	w := tfrecord.NewWriter(&limited{n: 100, err: full})
	var err error
	for range 3 {
		err = w.Write(make([]byte, 50_000))
	}
	if !errors.Is(err, full) || !errors.Is(w.Write(nil), full) || !errors.Is(w.Flush(), full) {
		t.Errorf("the error of the stream is %v, then %v and %v", err, w.Write(nil), w.Flush())
	}
	var out bytes.Buffer
	w.Reset(&out)
	if err := w.Write(make([]byte, 200_000)); err != nil || w.Flush() != nil || out.Len() != 200_016 {
		t.Errorf("after Reset: %v, %d bytes", err, out.Len())
	}
	r := tfrecord.NewReader(iotest.DataErrReader(&out), nil)
	if p, err := r.Next(); len(p) != 200_000 || err != nil {
		t.Errorf("read back %d bytes, %v", len(p), err)
	}
}

type limited struct {
	n   int
	err error
}

func (l *limited) Write(p []byte) (int, error) {
	if l.n -= len(p); l.n < 0 {
		return 0, l.err
	}
	return len(p), nil
}
