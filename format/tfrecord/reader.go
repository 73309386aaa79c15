package tfrecord

import (
	"encoding/binary"
	"io"
	"iter"
	"math"

	"shardtool/format"
)

// Options says how a shard is read. Nil and the zero value work.
type Options struct {
	Shard      string            // name of the shard, for errors
	Limits     *format.Limits    // Record is used
	OnError    format.OnError    // see the package comment
	OnLoss     func(format.Loss) // called for each loss under Skip and Resync; may be nil
	BufferSize int               // bytes read at a time; 0 is DefaultBuffer

	// Base and First are for a stream that is the rest of a shard, from the
	// beginning of a record on: the offset at which it begins, and the number
	// of its first record. Offsets and numbers are then those in the shard.
	Base, First int64
}

// DefaultBuffer is large enough for calls to read to cost little, and for the
// record that straddles its end, which is moved to its front, to be a small
// part of it; what is larger gains little more (BenchmarkReader).
const DefaultBuffer = 1 << 20

// Reader reads the records of a stream in order. It is for one goroutine.
type Reader struct {
	r   io.Reader
	buf []byte
	pos int // what is unread is buf[pos:end]
	end int
	// base is where in the stream buf[0] stands.
	base    int64
	readErr error // what ended the stream: io.EOF at its end

	fast   uint64 // payloads that Next may take without a closer look
	most   uint64 // Limits.Record
	offset int64  // of the record last returned
	next   int64  // number of the next record
	spent  int64  // bytes hashed for frames that did not hold
	err    error  // returned from now on
	beyond uint64 // length of the record that err is about, if the framing holds behind it
	intact bool   // beyond is such a length

	shard   string
	onError format.OnError
	onLoss  func(format.Loss)
}

// NewReader returns a Reader of r. It reads nothing yet.
func NewReader(r io.Reader, o *Options) *Reader {
	t := new(Reader)
	t.Reset(r, o)
	return t
}

// Reset makes t as NewReader returns it, and keeps its memory.
func (t *Reader) Reset(r io.Reader, o *Options) {
	if o == nil {
		o = new(Options)
	}
	size := o.BufferSize
	if size <= 0 {
		size = DefaultBuffer
	}
	buf := t.buf
	if len(buf) < size || len(buf) > 16*size {
		buf = make([]byte, max(size, 2*Overhead))
	}
	l := o.Limits.OrDefault()
	most := uint64(min(l.Record, math.MaxInt-Overhead-headerSize))
	*t = Reader{
		r: r, buf: buf, base: o.Base, next: o.First, fast: most, most: most, offset: format.Unknown,
		shard: o.Shard, onError: o.OnError, onLoss: o.OnLoss,
	}
}

// Next returns the payload of the next record, lent until the next call. At a
// clean end the error is io.EOF; other errors are an *format.Error, or that of
// a context that ended. An error is returned again by every later call.
func (t *Reader) Next() ([]byte, error) {
	if w := t.buf[t.pos:t.end]; len(w) >= Overhead && t.err == nil {
		n := binary.LittleEndian.Uint64(w)
		if n <= uint64(len(w)-Overhead) && n <= t.fast && lengthSum(n) == binary.LittleEndian.Uint32(w[8:]) {
			end := headerSize + int(n)
			p := w[headerSize:end:end]
			if payloadSum(p) == binary.LittleEndian.Uint32(w[end:]) {
				t.offset = t.base + int64(t.pos)
				t.pos += end + footerSize
				t.next++
				return p, nil
			}
		}
	}
	return t.slow()
}

// Records returns the records that are left, each lent until the next one. An
// error is the last element.
func (t *Reader) Records() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for {
			p, err := t.Next()
			if err == io.EOF || !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// Offset returns where in the stream the record last returned begins, in
// bytes: at its length. It is format.Unknown before the first.
func (t *Reader) Offset() int64 { return t.offset }

// Index returns the number of the record last returned, from 0, and -1 before
// the first. Records that were left out have their numbers; a loss of which
// nobody knows how many records it was takes one.
func (t *Reader) Index() int64 { return t.next - 1 }

// End returns how many bytes of the stream were used up: where the next record
// begins.
func (t *Reader) End() int64 { return t.base + int64(t.pos) }

// Resume leaves the record behind that Next returned an error about, where the
// framing still says where the next one begins, and reports whether Next goes
// on there: what Skip does by itself, for who wants to see each error under
// Stop. It may read over a record that is too long to be held.
func (t *Reader) Resume() bool {
	if t.err == nil || !t.intact {
		return t.err == nil
	}
	t.intact = false
	err := t.err
	t.err = nil
	if !t.pass(t.beyond, err) {
		t.err = err
	}
	return t.err == nil
}

// slow takes the next record where Next could not: it is not in the buffer as
// a whole, or something is wrong with it.
func (t *Reader) slow() ([]byte, error) {
	for {
		if t.err != nil {
			return nil, t.err
		}
		if !t.fill(headerSize) {
			t.tail()
			continue
		}
		n, ok := header(t.window())
		switch {
		case !ok:
			t.broken()
		case n > t.most:
			t.over(n)
		case !t.fill(int(n) + Overhead):
			t.cut(int(n))
		case !t.holds(int(n)):
			t.damaged(int(n))
		default:
			w := t.window()
			t.offset = t.End()
			t.pos += int(n) + Overhead
			t.next++
			return w[headerSize : headerSize+n : headerSize+n], nil
		}
	}
}

// window returns what is read and not used up.
func (t *Reader) window() []byte { return t.buf[t.pos:t.end] }

// holds reports whether the payload of n bytes that the window begins with has
// its checksum. A hostile stream can claim a long payload every few bytes: the
// work spent on claims that do not hold is kept in proportion to the stream,
// and a claim beyond that is not believed.
func (t *Reader) holds(n int) bool {
	credit := int64(t.most) + 64<<20 + 4*t.End() - t.spent
	t.fast = t.most
	if credit < int64(n) {
		t.fast = 0
		return false
	}
	w := t.window()
	if payloadSum(w[headerSize:headerSize+n]) == binary.LittleEndian.Uint32(w[headerSize+n:]) {
		return true
	}
	t.spent += int64(n)
	return false
}
