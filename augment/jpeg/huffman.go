package jpeg

import (
	"bytes"
	"slices"
)

// lookBits is how many bits the first look-up of a Huffman code takes: of the
// photographs in fixtures, one code of 500 is longer, and two tables of 8 KiB
// for AC coefficients leave room in a first-level cache of 32 KiB.
const lookBits = 11

// An entry says what begins with certain bits:
//
//	bits 0..7    length of the code and of the value after it
//	bits 8..15   length of the code
//	bits 16..23  64 - length of the value; 0 if there is no value
//	bits 24..31  zeros before the coefficient (AC)
//
// The counts may be used as they are where a shift takes its count modulo 64.
type entry uint32

func makeEntry(length int, symbol byte) entry {
	size := int(symbol & 15)
	return entry(length + size | length<<8 | (64-size)&63<<16 | int(symbol>>4)<<24)
}

// badCode is what no code begins with: libjpeg reads 17 bits and takes the
// symbol 0.
const badCode entry = 17 | 17<<8

// table decodes one Huffman code. The assembly knows where look stands.
type table struct {
	look   [1 << lookBits]entry // 0: the code is longer, or there is none
	limit  [18]uint32           // by length: the first 16 bits that are beyond the codes of the length, left-aligned; for lookBits+1 to 16
	first  [17]int32            // by length: index of its first symbol less its first code
	symbol [256]byte
	skip   skipTable // of an AC code, made when it is wanted
	skips  bool      // whether it was
	key    []byte    // counts and symbols, as in the file
	over   bool      // there are more codes of a length than there is room for
	large  bool      // not a DC code: a value is longer than 15 bits
}

// usable tells why a scan cannot use the table, if it cannot. A table that no
// scan uses may be wrong.
func (t *table) usable(dc bool, number, at int) error {
	name := "AC"
	if dc {
		name = "DC"
	}
	switch {
	case t == nil:
		return corrupt(at, "the scan uses %s table %d, which is not there", name, number)
	case t.over:
		return corrupt(at, "%s table %d has more codes of a length than there are", name, number)
	case dc && t.large:
		return corrupt(at, "DC table %d has a difference of more than 15 bits", number)
	}
	return nil
}

// build takes counts by length (16) and symbols, as DHT has them (T.81, B.2.4.2
// and annex C).
func (t *table) build(def []byte) {
	t.key = append(t.key[:0], def...)
	t.skips, t.over, t.large = false, false, false
	clear(t.look[:])
	symbols := def[16:]
	copy(t.symbol[:], symbols)
	code, k := 0, 0
	for length := 1; length <= 16; length++ {
		n := int(def[length-1])
		t.first[length] = int32(k - code)
		if length <= lookBits {
			at := code << (lookBits - length)
			for i := range n {
				if code+i >= 1<<length {
					t.over = true
					return
				}
				e := makeEntry(length, symbols[k+i])
				run := t.look[at : at+1<<(lookBits-length)]
				for j := range run {
					run[j] = e
				}
				at += len(run)
			}
		}
		code += n
		k += n
		if code > 1<<length {
			t.over = true
			return
		}
		t.limit[length] = uint32(code) << (16 - length)
		code <<= 1
	}
	t.limit[17] = 1 << 16
	for _, s := range symbols {
		t.large = t.large || s > 15
	}
}

// long decodes a code longer than lookBits at the top of buf.
func (t *table) long(buf uint64) (e entry, ok bool) {
	top := uint32(buf >> 48)
	for length := lookBits + 1; length <= 16; length++ {
		if top < t.limit[length] {
			s := t.symbol[uint8(int32(top>>(16-length))+t.first[length])]
			return makeEntry(length, s), true
		}
	}
	return badCode, false
}

// skipBits is how many bits a look-up takes that passes over AC coefficients.
const skipBits = 11

// skipTable passes over as many AC coefficients as show in skipBits bits:
//
//	bits 0..5   length of their codes and values
//	bit  6      the block ends
//	bits 8..15  places passed, the end counted as one
//
// 0: not even the first code shows.
type skipTable [1 << skipBits]uint16

// mostSkipped bounds the bits of an entry, so that a refill of at least 56
// leaves what the next look-up and a long code need.
const mostSkipped = 40

func (t *table) skipTable() *skipTable {
	s := &t.skip
	if t.skips {
		return s
	}
	t.skips = true
	clear(s[:])
	for w := range s {
		n, places := 0, 0
		for n < skipBits {
			e := t.look[w<<n&(1<<skipBits-1)<<(lookBits-skipBits)]
			length, total := int(e>>8&63), int(e&63)
			if e == 0 || n+length > skipBits || n > 0 && n+total > mostSkipped {
				break
			}
			n += total
			run := int(e >> 24)
			if total == length && run != 15 {
				s[w] = uint16(n | 1<<6 | (places+1)<<8)
				break
			}
			places += run + 1
			s[w] = uint16(n | places<<8)
		}
	}
	return s
}

// tableCache keeps the tables of the last files: many files share theirs, most
// of all those of annex K.
type tableCache struct {
	tables []*table // the one used last first
}

const mostTables = 16

// get returns a table made of def. Tables that are in use are not made into
// others.
func (c *tableCache) get(def []byte, used ...*[4]*table) *table {
	for i, t := range c.tables {
		if bytes.Equal(t.key, def) {
			copy(c.tables[1:i+1], c.tables[:i])
			c.tables[0] = t
			return t
		}
	}
	t := c.room(used)
	t.build(def)
	c.tables = append(c.tables, nil)
	copy(c.tables[1:], c.tables)
	c.tables[0] = t
	return t
}

// room returns a table to build, which is not among the tables any more.
func (c *tableCache) room(used []*[4]*table) *table {
	if len(c.tables) >= mostTables {
		for i, t := range slices.Backward(c.tables) {
			if !slices.ContainsFunc(used, func(u *[4]*table) bool { return slices.Contains(u[:], t) }) {
				c.tables = slices.Delete(c.tables, i, i+1)
				return t
			}
		}
	}
	return new(table)
}
