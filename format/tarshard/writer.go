package tarshard

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"shardtool/format"
)

// WriterOptions says how a shard is written. The zero value and nil are good
// defaults: the same samples give the same bytes.
type WriterOptions struct {
	Shard   string    // name of the shard, for errors
	ModTime time.Time // of all members, in whole seconds; the zero Time stands for 1970
	Mode    int64     // permission bits; 0 stands for 0644
	LastDot bool      // keys hold all dots but the last, as readers with Options.LastDot give them

	// Record is what the whole archive is padded to a multiple of; 0 stands
	// for 10240, the record of 20 blocks that POSIX names as the default and
	// that GNU tar, Python's tarfile and so webdataset write. 512 pads to
	// nothing but the end marker.
	Record int64

	// GlobalRecords are those of a pax header that stands first in the
	// archive, such as a "comment".
	GlobalRecords map[string]string
}

// Writer writes a shard: ustar headers, with a pax header before them for a
// name that is longer than they take or is not ASCII, and for a payload of 8
// GiB or more. User and group are 0 and nameless. It is for one goroutine and
// allocates nothing per member.
type Writer struct {
	w      io.Writer
	opts   WriterOptions
	buf    []byte // not written yet
	offset int64  // what buf ends at
	pax    []byte // scratch
	name   []byte // scratch
	err    error  // sticky
}

// writerBuffer is how much is gathered before it is written; larger payloads
// are written without being copied.
const writerBuffer = 256 << 10

// NewWriter returns a Writer to w. o may be nil.
func NewWriter(w io.Writer, o *WriterOptions) *Writer {
	t := &Writer{w: w, buf: make([]byte, 0, writerBuffer)}
	if o != nil {
		t.opts = *o
	}
	if t.opts.Mode == 0 {
		t.opts.Mode = 0o644
	}
	if t.opts.Record <= 0 {
		t.opts.Record = 20 * blockSize
	}
	t.opts.Record = padded(t.opts.Record)
	t.global()
	return t
}

// global writes the pax header that holds for all members.
func (t *Writer) global() {
	if len(t.opts.GlobalRecords) == 0 {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(t.opts.GlobalRecords)) {
		v := t.opts.GlobalRecords[k]
		if k == "" || strings.Contains(k, "=") {
			t.err = t.usage("", "%q cannot be the name of a pax record", k)
			return
		}
		t.pax = appendRecord(t.pax, k, v)
	}
	t.records('g')
}

// WriteSample writes a member for each field: the key, a dot and the name of
// the field. A sample that a Reader would not give back as it is (its name is
// split elsewhere, or skipped, or a field is there twice) is ErrUsage or
// ErrDuplicate, and nothing of it is written.
func (t *Writer) WriteSample(s *format.Sample) error {
	if t.err != nil {
		return t.err
	}
	if err := t.check(s); err != nil {
		return err
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		if err := t.member(t.join(s.Key, f.Name), int64(len(f.Data))); err != nil {
			return err
		}
		t.payload(f.Data)
		t.zeros(padded(int64(len(f.Data))) - int64(len(f.Data)))
	}
	return t.err
}

func (t *Writer) join(key []byte, field string) []byte {
	t.name = append(t.name[:0], key...)
	t.name = append(t.name, '.')
	t.name = append(t.name, field...)
	return t.name
}

func (t *Writer) check(s *format.Sample) error {
	for i := range s.Fields {
		f := &s.Fields[i]
		name := t.join(s.Key, f.Name)
		key, field, why := split(name, t.opts.LastDot)
		switch {
		case bytes.IndexByte(name, 0) >= 0:
			return t.usage(string(s.Key), "the name %q holds a NUL", clip(name))
		case why != kept:
			return t.usage(string(s.Key), "a member %q belongs to no sample: readers skip it (%s)", clip(name), reasonNames[why])
		case !bytes.Equal(key, s.Key) || string(field) != f.Name:
			return t.usage(string(s.Key), "a member %q is read as key %q and field %q: a key has no dot in its last element, a field no slash",
				clip(name), clip(key), clip(field))
		}
	}
	return t.checkTwice(s)
}

// few is up to how many fields are compared with one another; more are put
// into a map.
const few = 32

func (t *Writer) checkTwice(s *format.Sample) error {
	if len(s.Fields) > few {
		seen := make(map[string]bool, len(s.Fields))
		for i := range s.Fields {
			low := lower(s.Fields[i].Name)
			if seen[low] {
				return t.twice(s, i)
			}
			seen[low] = true
		}
		return nil
	}
	for i := range s.Fields {
		for j := range i {
			if format.EqualName(s.Fields[i].Name, s.Fields[j].Name) {
				return t.twice(s, i)
			}
		}
	}
	return nil
}

func (t *Writer) twice(s *format.Sample, i int) error {
	at := format.Location{Shard: t.opts.Shard, Offset: format.Unknown, Record: format.Unknown, Key: string(s.Key), Field: s.Fields[i].Name}
	return format.Errorf(format.ErrDuplicate, at, "the sample has the field twice")
}

func (t *Writer) usage(key, msg string, args ...any) error {
	at := format.Location{Shard: t.opts.Shard, Offset: format.Unknown, Record: format.Unknown, Key: key}
	return format.Errorf(format.ErrUsage, at, msg, args...)
}

// WriteMember writes one member under any name.
func (t *Writer) WriteMember(name string, data []byte) error {
	t.name = append(t.name[:0], name...)
	if err := t.member(t.name, int64(len(data))); err != nil {
		return err
	}
	t.payload(data)
	t.zeros(padded(int64(len(data))) - int64(len(data)))
	return t.err
}

// WriteFrom writes one member of size bytes, which it reads from r. Where r has
// fewer, the archive is spoilt and the Writer stays at that error.
func (t *Writer) WriteFrom(name string, size int64, r io.Reader) error {
	if size < 0 {
		return t.usage("", "a member of %d bytes", size)
	}
	t.name = append(t.name[:0], name...)
	if err := t.member(t.name, size); err != nil {
		return err
	}
	for left := size; left > 0 && t.err == nil; {
		if len(t.buf) == cap(t.buf) {
			t.flush()
			continue
		}
		room := t.buf[len(t.buf):cap(t.buf)]
		n, err := r.Read(room[:min(left, int64(len(room)))])
		t.buf = t.buf[:len(t.buf)+n]
		t.offset += int64(n)
		left -= int64(n)
		if left > 0 && err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			t.fail(err)
		}
	}
	t.zeros(padded(size) - size)
	return t.err
}

// Offset returns how many bytes the archive has so far: where the next member
// begins.
func (t *Writer) Offset() int64 { return t.offset }

// SampleSize returns how many bytes WriteSample adds for s.
func SampleSize(s *format.Sample) int64 {
	var n int64
	for i := range s.Fields {
		f := &s.Fields[i]
		size := int64(len(f.Data))
		n += blockSize + padded(size)
		length := len(s.Key) + 1 + len(f.Name)
		if !isPlain(s.Key) || !isPlain(f.Name) || length > 100 && !cutFits(s.Key, length) {
			n += blockSize + padded(int64(recordSize("path", length)))
		}
	}
	return n
}

// SizeWith returns how many bytes the archive has if s is written now and the
// Writer closed.
func (t *Writer) SizeWith(s *format.Sample) int64 { return t.closed(t.offset + SampleSize(s)) }

// closed returns how long the archive is if its members end at end: with the
// end marker, and padded.
func (t *Writer) closed(end int64) int64 {
	end += 2 * blockSize
	return end + (t.opts.Record-end%t.opts.Record)%t.opts.Record
}

// Flush writes what is buffered.
func (t *Writer) Flush() error {
	t.flush()
	return t.err
}

// Close writes the end marker and what is buffered. It does not close the
// writer beneath. A Writer that failed stays at its error.
func (t *Writer) Close() error {
	if t.err == errClosed {
		return nil
	}
	t.zeros(t.closed(t.offset) - t.offset)
	t.flush()
	if t.err != nil {
		return t.err
	}
	t.err = errClosed
	return nil
}

var errClosed error = format.Errorf(format.ErrUsage, format.Nowhere, "the shard is closed")

// member writes the headers of a member.
func (t *Writer) member(name []byte, size int64) error {
	switch {
	case t.err != nil:
		return t.err
	case len(name) == 0 || bytes.IndexByte(name, 0) >= 0:
		return t.usage("", "%q cannot be the name of a member", clip(name))
	case size > maxSize:
		return t.usage("", "a member of %d bytes", size)
	}
	if t.extend(name, size) {
		t.records('x')
	}
	b := t.block()
	if !putName(b, name) {
		putPlain(b, name)
	}
	if size > maxOctal {
		size = 0 // the pax header has it
	}
	t.finish(b, '0', size)
	return t.err
}

// maxOctal is the largest number of eleven octal digits.
const maxOctal = 1<<33 - 1

// extend makes the pax records that a member needs, and reports whether it
// needs any.
func (t *Writer) extend(name []byte, size int64) bool {
	t.pax = t.pax[:0]
	if !fitsPlain(name) {
		t.pax = appendRecord(t.pax, "path", name)
	}
	if size > maxOctal {
		t.pax = appendRecord(t.pax, "size", strconv.FormatInt(size, 10))
	}
	return len(t.pax) > 0
}

// records writes an extension header with the records in t.pax.
func (t *Writer) records(kind byte) {
	b := t.block()
	copy(b[:], "././@PaxHeader")
	t.finish(b, kind, int64(len(t.pax)))
	t.payload(t.pax)
	t.zeros(padded(int64(len(t.pax))) - int64(len(t.pax)))
}

// block returns an empty block at the end of the buffer.
func (t *Writer) block() *block {
	if cap(t.buf)-len(t.buf) < blockSize {
		t.flush()
	}
	n := len(t.buf)
	t.buf = t.buf[:n+blockSize]
	t.offset += blockSize
	b := (*block)(t.buf[n:])
	clear(b[:])
	return b
}

// finish fills what all headers have.
func (t *Writer) finish(b *block, kind byte, size int64) {
	putOctal(b[100:108], t.opts.Mode&0o7777)
	putOctal(b[108:116], 0)
	putOctal(b[116:124], 0)
	putOctal(b[124:136], size)
	var seconds int64
	if !t.opts.ModTime.IsZero() {
		seconds = min(max(t.opts.ModTime.Unix(), 0), maxOctal)
	}
	putOctal(b[136:148], seconds)
	b[156] = kind
	copy(b[257:], "ustar\x0000")
	putOctal(b[148:155], b.sum())
	b[155] = ' '
}

// payload appends bytes, or writes them past the buffer where they are many.
func (t *Writer) payload(p []byte) {
	t.offset += int64(len(p))
	if len(p) > cap(t.buf)-len(t.buf) {
		t.flush()
	}
	if len(p) <= cap(t.buf)-len(t.buf) {
		t.buf = append(t.buf, p...)
		return
	}
	t.write(p)
}

func (t *Writer) zeros(n int64) {
	t.offset += n
	for n > 0 {
		if len(t.buf) == cap(t.buf) {
			t.flush()
		}
		at := len(t.buf)
		m := min(n, int64(cap(t.buf)-at))
		t.buf = t.buf[:at+int(m)]
		clear(t.buf[at:])
		n -= m
	}
}

// flush empties the buffer. After a failure, what comes is thrown away.
func (t *Writer) flush() {
	t.write(t.buf)
	t.buf = t.buf[:0]
}

func (t *Writer) write(p []byte) {
	if t.err != nil || len(p) == 0 {
		return
	}
	n, err := t.w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		t.fail(err)
	}
}

func (t *Writer) fail(err error) {
	t.err = format.ReadError(err, format.Location{Shard: t.opts.Shard, Offset: t.offset, Record: format.Unknown})
}
