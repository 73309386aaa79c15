package tfexample

import (
	"google.golang.org/protobuf/encoding/protowire"

	"shardtool/format"
	"shardtool/internal/varint"
)

const (
	wireVarint = uint64(protowire.VarintType)
	wireBytes  = uint64(protowire.BytesType)
	wireGroup  = uint64(protowire.StartGroupType)
	wireEnd    = uint64(protowire.EndGroupType)
	wire32     = uint64(protowire.Fixed32Type)
)

// maxDepth bounds groups within groups, which only unknown fields can hold; it
// is the bound of other readers of protocol buffers.
const maxDepth = 100

// cursor goes through b[i:end], a message or a part of one. Its methods return
// false where the bytes are no sound encoding, and then i is where.
type cursor struct {
	b   []byte
	i   int
	end int
}

func (c *cursor) more() bool { return c.i < c.end }

// varint reads a number of at most ten bytes. What the tenth holds beyond 64
// bits is dropped, as the C++ reader does. Most tags, lengths and values are
// of one byte, for which the call is inlined.
func (c *cursor) varint() (uint64, bool) {
	if i := c.i; i < c.end && c.b[i] < 0x80 {
		c.i = i + 1
		return uint64(c.b[i]), true
	}
	return c.longVarint()
}

//go:noinline
func (c *cursor) longVarint() (uint64, bool) {
	v, n := decodeVarint(c.b[c.i:c.end])
	c.i += n
	return v, n > 0
}

// decodeVarint returns the number that p begins with and how many bytes it
// takes, 0 if p does not begin with one.
func decodeVarint(p []byte) (v uint64, n int) {
	for k, b := range p[:min(len(p), varint.MaxLen)] {
		v |= uint64(b&0x7f) << (7 * k)
		if b < 0x80 {
			return v, k + 1
		}
	}
	return 0, 0
}

// tag reads the number and the wire type of a field.
func (c *cursor) tag() (num, typ uint64, ok bool) {
	at := c.i
	v, ok := c.varint()
	num, typ = v>>3, v&7
	if !ok || num == 0 || num > uint64(protowire.MaxValidNumber) || typ > wire32 {
		c.i = at
		return 0, 0, false
	}
	return num, typ, true
}

// bytes reads a length and passes over as many bytes, which are b[lo:hi]. It
// does not return a cursor through them, for copying one stalls on its own
// stores and takes longer than all the rest (BenchmarkParse).
func (c *cursor) bytes() (lo, hi int, ok bool) {
	at := c.i
	n, ok := c.varint()
	if !ok || n > uint64(c.end-c.i) {
		c.i = at
		return 0, 0, false
	}
	lo = c.i
	c.i += int(n)
	return lo, c.i, true
}

// skip passes over the value of a field.
func (c *cursor) skip(num, typ uint64) bool {
	var open [maxDepth]uint64
	depth := 0
	for {
		switch typ {
		case wireGroup:
			if depth == maxDepth {
				return false
			}
			open[depth] = num
			depth++
		case wireEnd:
			if depth == 0 || open[depth-1] != num {
				return false
			}
			depth--
		default:
			if !c.skipPlain(typ) {
				return false
			}
		}
		if depth == 0 {
			return true
		}
		var ok bool
		if num, typ, ok = c.tag(); !ok {
			return false
		}
	}
}

func (c *cursor) skipPlain(typ uint64) bool {
	size := 8
	switch typ {
	case wireVarint:
		_, ok := c.varint()
		return ok
	case wireBytes:
		_, _, ok := c.bytes()
		return ok
	case wire32:
		size = 4
	}
	if c.end-c.i < size {
		return false
	}
	c.i += size
	return true
}

// rest returns the bytes that are left, with no capacity behind them.
func (c *cursor) rest() []byte { return c.b[c.i:c.end:c.end] }

// corrupt returns the error of a fault at byte i of the record.
func corrupt(i int, detail string) error {
	return format.Errorf(format.ErrCorrupt, format.Nowhere, "%s, at byte %d of the record", detail, i)
}
