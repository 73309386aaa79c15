package tfexample

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strings"

	"shardtool/format"
)

// entries are the encoded entries of a map of names, in the order in which
// they were added.
type entries struct {
	buf    []byte
	spans  []span
	places map[string]int // of names in spans
	at     int            // the span that is being written
}

// span is an entry in buf.
type span struct {
	name   string
	lo, hi int
}

func (e *entries) reset() {
	e.buf, e.spans = e.buf[:0], e.spans[:0]
	clear(e.places)
}

// begin writes what stands before the encoded list, of size bytes, of a
// feature.
func (e *entries) begin(name string, kind format.Kind, size int) {
	if kind == format.NoKind {
		e.entry(name, 0)
		return
	}
	e.entry(name, stringSize(size))
	e.buf = appendTag(e.buf, fieldOfKind[kind], size)
}

// entry writes what stands before the value, of size bytes, of an entry.
func (e *entries) entry(name string, size int) {
	if e.places == nil {
		e.places = make(map[string]int)
	}
	at, again := e.places[name]
	if !again {
		at = len(e.spans)
		e.spans = append(e.spans, span{})
		e.places[name] = at
	}
	e.at = at
	e.spans[at] = span{name: name, lo: len(e.buf)}
	e.buf = appendTag(e.buf, 1, stringSize(len(name))+stringSize(size))
	e.buf = append(appendTag(e.buf, 1, len(name)), name...)
	e.buf = appendTag(e.buf, 2, size)
}

// end ends the entry begun last.
func (e *entries) end() { e.spans[e.at].hi = len(e.buf) }

// appendTo appends the entries, in a message that is field num of another. It
// is written without entries too, so that a reader can tell what the other
// message is.
func (e *entries) appendTo(dst []byte, num int, sorted bool) []byte {
	if sorted {
		slices.SortFunc(e.spans, func(x, y span) int { return strings.Compare(x.name, y.name) })
		for i, s := range e.spans {
			e.places[s.name] = i
		}
	}
	size := 0
	for _, s := range e.spans {
		size += s.hi - s.lo
	}
	dst = appendTag(dst, num, size)
	for _, s := range e.spans {
		dst = append(dst, e.buf[s.lo:s.hi]...)
	}
	return dst
}

var fieldOfKind = [...]int{format.BytesList: 1, format.FloatList: 2, format.Int64List: 3}

// listSize returns the size of the encoded list.
func (f Feature) listSize() int {
	if f.kind == format.Bytes {
		return stringSize(len(f.data))
	}
	return len(f.data)
}

func (f Feature) appendList(dst []byte) []byte {
	if f.kind == format.Bytes {
		return appendString(dst, f.data)
	}
	return append(dst, f.data...)
}

// size returns the size of the encoded Feature.
func (f Feature) size() int {
	if f.kind == format.NoKind {
		return 0
	}
	return stringSize(f.listSize())
}

// append appends the encoded Feature.
func (f Feature) append(dst []byte) []byte {
	if f.kind == format.NoKind {
		return dst
	}
	return f.appendList(appendTag(dst, fieldOfKind[f.Kind()], f.listSize()))
}

func stepsSize(steps []Feature) int {
	size := 0
	for _, s := range steps {
		size += stringSize(s.size())
	}
	return size
}

func appendSteps(dst []byte, steps []Feature) []byte {
	for _, s := range steps {
		dst = s.append(appendTag(dst, 1, s.size()))
	}
	return dst
}

// appendTag appends the tag of a field of bytes and its length.
func appendTag(dst []byte, num, size int) []byte {
	return binary.AppendUvarint(append(dst, byte(num<<3|int(wireBytes))), uint64(size))
}

func appendString(dst, v []byte) []byte { return append(appendTag(dst, 1, len(v)), v...) }

func appendStrings(dst []byte, values [][]byte) []byte {
	for _, v := range values {
		dst = appendString(dst, v)
	}
	return dst
}

func appendFloatList(dst []byte, values []float32) []byte {
	if len(values) == 0 {
		return dst
	}
	dst = appendTag(dst, 1, 4*len(values))
	for _, v := range values {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	return dst
}

func appendInt64List(dst []byte, values []int64) []byte {
	if len(values) == 0 {
		return dst
	}
	dst = appendTag(dst, 1, varintsSize(values))
	for _, v := range values {
		dst = binary.AppendUvarint(dst, uint64(v))
	}
	return dst
}

// stringSize returns the size of a field of n bytes, with its tag and length.
func stringSize(n int) int { return 1 + varintSize(uint64(n)) + n }

func stringsSize(values [][]byte) int {
	size := 0
	for _, v := range values {
		size += stringSize(len(v))
	}
	return size
}

// packedSize returns the size of a list whose packed values take n bytes.
func packedSize(n int) int {
	if n == 0 {
		return 0
	}
	return stringSize(n)
}

func varintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

func varintsSize(values []int64) int {
	size := 0
	for _, v := range values {
		size += varintSize(uint64(v))
	}
	return size
}
