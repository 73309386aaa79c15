package tfrecord

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"shardtool/format"
)

func (t *Reader) at() format.Location {
	return format.Location{Shard: t.shard, Offset: t.End(), Record: t.next}
}

// lose reports a loss that begins at start and ends where the Reader stands,
// and gives its records their numbers.
func (t *Reader) lose(start, records int64, err error) {
	t.next += max(records, 1)
	if t.onLoss != nil {
		t.onLoss(format.Loss{Offset: start, Bytes: t.End() - start, Records: records, Err: err})
	}
}

// tail ends reading where the stream has ended with less than a header left.
func (t *Reader) tail() {
	have := len(t.window())
	if have == 0 && t.readErr == io.EOF {
		t.err = io.EOF
		return
	}
	if have > 0 && t.first() && t.wrongFormat() {
		return
	}
	if have == 0 {
		t.toEnd(0, t.ended("between two records"))
	} else {
		t.toEnd(1, t.ended("inside the header of a record"))
	}
}

// toEnd gives up what is left of the stream, for it has ended before its
// structure did.
func (t *Reader) toEnd(records int64, err error) {
	if t.onError == format.Stop || !survivable(err) {
		t.err = err
		return
	}
	start := t.End()
	t.pos = t.end
	t.lose(start, records, err)
	t.err = err
	if t.onError == format.Resync {
		t.err = io.EOF
	}
}

// survivable reports whether an error is a fault of the data, and not of
// reading it or of what was asked.
func survivable(err error) bool {
	return errors.Is(err, format.ErrTruncated) || errors.Is(err, format.ErrCorrupt)
}

// ended returns the error of a stream that has ended inside the record at
// hand, or between two of them, as detail says.
func (t *Reader) ended(detail string, args ...any) error {
	args = append(args, t.base+int64(t.end))
	detail = "the stream ends " + detail + ", at %d"
	if t.readErr == io.EOF {
		return format.Errorf(format.ErrTruncated, t.at(), detail, args...)
	}
	var e *format.Error
	if errors.As(t.readErr, &e) && survivable(e) {
		return format.Errorf(e.Err, t.at(), detail+": %w", append(args, t.readErr)...)
	}
	return format.ReadError(t.readErr, t.at())
}

// cut deals with a stream that ends inside the payload of n bytes.
func (t *Reader) cut(n int) {
	err := t.ended("%d bytes before the record does", n+Overhead-len(t.window()))
	if t.onError != format.Resync || !survivable(err) {
		t.toEnd(1, err)
		return
	}
	t.readErr = io.EOF // how it ended is told with this loss
	t.search(1, err)
}

// over deals with a length beyond the limit.
func (t *Reader) over(n uint64) {
	err := format.Errorf(format.ErrLimit, t.at(), "record of %d bytes is over the limit of %d", n, t.most)
	switch t.onError {
	case format.Skip:
		if !t.pass(n, err) {
			t.err = err
		}
	case format.Resync:
		t.search(format.Unknown, err)
	default:
		t.err, t.beyond, t.intact = err, n, true
	}
}

// pass reads over a record that is not wanted, and reports whether the stream
// has its end.
func (t *Reader) pass(n uint64, err error) bool {
	const beyond = 1 << 62
	if n > beyond {
		return false
	}
	start := t.End()
	left := n + Overhead
	for left > 0 {
		if !t.fill(1) {
			t.lose(start, 1, err)
			return false
		}
		step := min(left, uint64(len(t.window())))
		t.pos += int(step)
		left -= step
	}
	t.lose(start, 1, err)
	return true
}

// broken deals with a length that does not have its checksum.
func (t *Reader) broken() {
	first := t.first()
	if first && t.wrongFormat() {
		return
	}
	at, w := t.at(), t.window()
	n := binary.LittleEndian.Uint64(w)
	err := format.Errorf(format.ErrCorrupt, at, "length %d has checksum %08x, should have %08x", n, binary.LittleEndian.Uint32(w[8:]), lengthSum(n))
	switch {
	case t.onError != format.Resync:
		t.err = err
	case !t.search(format.Unknown, err) && first:
		t.err = format.Errorf(format.ErrWrongFormat, at, "not a TFRecord shard: there is no record in its %d bytes", t.End())
	}
}

// damaged deals with a payload of n bytes that does not have its checksum.
func (t *Reader) damaged(n int) {
	err := format.Errorf(format.ErrCorrupt, t.at(), "payload of %d bytes does not have its checksum", n)
	switch {
	case t.onError == format.Stop:
		t.err, t.beyond, t.intact = err, uint64(n), true
	case t.onError == format.Skip || t.meets(n+Overhead):
		start := t.End()
		t.pos += n + Overhead
		t.lose(start, 1, err)
	default:
		t.search(format.Unknown, err)
	}
}

// meets reports whether another record, or the end of the stream, is size
// bytes ahead.
func (t *Reader) meets(size int) bool {
	if !t.fill(size + headerSize) {
		return true
	}
	_, ok := header(t.window()[size:])
	return ok
}

func (t *Reader) first() bool { return t.next == 0 && t.End() == 0 }

// wrongFormat sets the error of a stream that is not TFRecord, and reports
// whether it is none. The stream does not begin with a sound header. What its
// first bytes look like decides, unless they might be a length (which has NUL
// bytes, while text has none) and a sound frame follows. Without a frame in a
// buffer's worth of bytes it is taken to be something else, except that under
// Resync all of it is searched.
func (t *Reader) wrongFormat() bool {
	t.fill(max(len(t.buf), 64<<10))
	w := t.window()
	what := format.LooksLike(w)
	found := t.frameAhead()
	mayBeLength := len(w) == 1 || bytes.IndexByte(w[:min(8, len(w))], 0) >= 0
	switch {
	case what != "" && !(mayBeLength && (found || len(w) < headerSize)):
		t.err = format.Errorf(format.ErrWrongFormat, t.at(), "not a TFRecord shard: it looks like %s", what)
	case len(w) < headerSize || found || t.onError == format.Resync:
		return false
	default:
		t.err = format.Errorf(format.ErrWrongFormat, t.at(), "not a TFRecord shard: it does not begin with a record, nor is there one in the first %d bytes", len(w))
	}
	return true
}

// frameAhead reports whether a sound frame is somewhere in the window after
// its first byte.
func (t *Reader) frameAhead() bool {
	pos := t.pos
	defer func() { t.pos = pos }()
	for t.pos++; t.candidate(); t.pos++ {
		n := binary.LittleEndian.Uint64(t.window())
		if n <= uint64(len(t.window())-Overhead) && t.holds(int(n)) {
			return true
		}
	}
	return false
}
