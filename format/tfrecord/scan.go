package tfrecord

import (
	"encoding/binary"
	"io"
	"iter"

	"shardtool/format"
)

// Span is where a record stands in its shard, framing included.
type Span struct {
	Offset int64 // of its length, in bytes
	Size   int64 // payload and Overhead, in bytes
}

// The window of Scan: how much it reads where it needs one header. A call
// takes as long as copying some 8 KiB (BenchmarkScan), so that shorter records
// are read through.
const (
	scanLeast   = 512
	scanMost    = 256 << 10
	scanThrough = 8 << 10
)

// Scan lists the records of an uncompressed shard of size bytes. It reads
// headers and passes over payloads, so that its time goes with the number of
// records where they are large and with the bytes where they are small, and it
// checks the lengths and their checksums and nothing else. At a fault it ends
// with an error, as a Reader under Stop does; Options.OnError, OnLoss and
// BufferSize are not used.
func Scan(r io.ReaderAt, size int64, o *Options) iter.Seq2[Span, error] {
	if o == nil {
		o = new(Options)
	}
	return func(yield func(Span, error) bool) {
		s := scan{r: r, size: size, shard: o.Shard, most: uint64(o.Limits.OrDefault().Record), window: scanLeast}
		for {
			span, err := s.next()
			if err == io.EOF || !yield(span, err) || err != nil {
				return
			}
		}
	}
}

type scan struct {
	r      io.ReaderAt
	size   int64
	shard  string
	most   uint64
	off    int64 // of the next record
	record int64
	buf    []byte
	start  int64 // of buf in the stream
	window int   // how much to read at a time
	last   int64 // size of the record before
}

func (s *scan) next() (Span, error) {
	at := format.Location{Shard: s.shard, Offset: s.off, Record: s.record}
	if s.off == s.size {
		return Span{}, io.EOF
	}
	h, err := s.header()
	if len(h) < headerSize {
		return Span{}, short(err, at, "the stream ends inside the header of a record, at %d", s.off+int64(len(h)))
	}
	n, ok := header(h)
	if !ok {
		if what := format.LooksLike(h); s.off == 0 && what != "" {
			return Span{}, format.Errorf(format.ErrWrongFormat, at, "not a TFRecord shard: it looks like %s", what)
		}
		return Span{}, format.Errorf(format.ErrCorrupt, at, "length %d has checksum %08x, should have %08x", n, le32(h[8:]), lengthSum(n))
	}
	if n > s.most {
		return Span{}, format.Errorf(format.ErrLimit, at, "record of %d bytes is over the limit of %d", n, s.most)
	}
	if left := uint64(s.size - s.off); n > left || n+Overhead > left {
		return Span{}, format.Errorf(format.ErrTruncated, at, "the stream ends %d bytes before the record does, at %d", n+Overhead-left, s.size)
	}
	span := Span{s.off, int64(n) + Overhead}
	s.off, s.last = s.off+span.Size, span.Size
	s.record++
	return span, nil
}

// header returns what there is of the header of the next record, and of what
// stands behind it. The window grows while records are short, and shrinks
// while they are long.
func (s *scan) header() ([]byte, error) {
	if i := s.off - s.start; i >= 0 && i+headerSize <= int64(len(s.buf)) {
		return s.buf[i:], nil
	}
	switch {
	case s.last > scanThrough:
		s.window = max(s.window/2, scanLeast)
	case s.last > 0:
		s.window = min(2*s.window, scanMost)
	}
	if cap(s.buf) < s.window {
		s.buf = make([]byte, s.window)
	}
	s.buf = s.buf[:min(int64(s.window), s.size-s.off)]
	s.start = s.off
	m, err := s.r.ReadAt(s.buf, s.off)
	if m == len(s.buf) {
		err = nil
	}
	s.buf = s.buf[:m]
	return s.buf, err
}

func le32(p []byte) uint32 { return binary.LittleEndian.Uint32(p) }
