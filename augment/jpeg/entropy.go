package jpeg

import "encoding/binary"

// cursor is where the decoding of entropy-coded data stands. The assembly
// knows its fields.
type cursor struct {
	buf  uint64   // the next bits, from the top
	bits uint64   // how many of them are valid, 0 to 63; below, buf may hold further ones
	pos  int      // of the next byte to load
	end  int      // pos is held back to it after each block
	pred [4]int32 // DC of the component's last block
	bad  uint64   // noCode, beyondLast
}

// What cursor.bad can say.
const (
	noCode     = 1 << iota // bits that begin no code
	beyondLast             // more than 64 coefficients in a block
)

// reset begins at a segment.
func (c *cursor) reset(s *segment) {
	c.buf, c.bits, c.pos, c.end = 0, 0, s.from, s.to+8
	c.pred = [4]int32{}
}

// overrun reports whether more bits were taken than the segment has.
func (c *cursor) overrun(s *segment) bool { return 8*c.pos-int(c.bits) > 8*s.to }

// step is one block of an MCU. The assembly knows its fields.
type step struct {
	dc, ac  *table
	skip    *skipTable
	out     int // where the block's coefficients begin in the strip
	advance int // added to out after each MCU
	comp    int // whose DC prediction it uses
}

// decodeBlocksGeneric decodes n MCUs, each of one block for each step, into
// coefs, which must be zero there, in natural order.
//
// All that a code and its value may take, 31 bits, is loaded while the code is
// looked up: the look-up takes the bits that are left of the last load, which
// are at least 56-31 and so enough for a code of 16. That takes the load off
// the longest chain of dependent instructions. Look-up and refill stand here
// four times, for a function that holds the loop's state is not inlined.
func decodeBlocksGeneric(c *cursor, data []byte, steps []step, coefs []int16, n int) {
	buf, bits, pos, end := c.buf, c.bits, c.pos, c.end
	bad := c.bad
	if bits < 16 { // a new segment
		buf |= load(data, pos) >> (bits & 63)
		pos += int((63 - bits) >> 3)
		bits |= 56
	}
	for range n {
		for i := range steps {
			s := &steps[i]
			out := (*[64]int16)(coefs[s.out : s.out+64])
			s.out += s.advance
			t := s.dc
			e := t.look[buf>>(64-lookBits)]
			buf |= load(data, pos) >> (bits & 63)
			pos += int((63 - bits) >> 3)
			bits |= 56
			if e == 0 {
				var ok bool
				if e, ok = t.long(buf); !ok {
					bad |= noCode
				}
			}
			if e>>16&63 != 0 {
				c.pred[s.comp&3] += int32(value(buf, e))
			}
			out[0] = int16(c.pred[s.comp&3])
			buf <<= e & 63
			bits -= uint64(e & 63)

			t = s.ac
			k := uint32(1)
			for k < 64 {
				e := t.look[buf>>(64-lookBits)]
				buf |= load(data, pos) >> (bits & 63)
				pos += int((63 - bits) >> 3)
				bits |= 56
				if e == 0 {
					var ok bool
					if e, ok = t.long(buf); !ok {
						bad |= noCode
					}
				}
				k += uint32(e >> 24)
				if e>>16&63 == 0 {
					buf <<= e & 63
					bits -= uint64(e & 63)
					if e>>24 != 15 {
						k = 64
						break
					}
					k++
					continue
				}
				out[natural[k]&63] = int16(value(buf, e))
				buf <<= e & 63
				bits -= uint64(e & 63)
				k++
			}
			if k > 64 {
				bad |= beyondLast
			}
			if pos > end {
				pos = end
			}
		}
	}
	c.buf, c.bits, c.pos, c.bad = buf, bits, pos, bad
}

// value reads the value after a code: size bits, of which the first says
// whether they are the number itself, or the number less 2^size-1 (T.81, F.2.2.1,
// EXTEND).
func value(buf uint64, e entry) int64 {
	x := buf << (e >> 8 & 63)
	negative := ^(int64(x) >> 63) // all ones, or 0
	return int64((x^uint64(negative))>>(e>>16&63)) ^ negative - negative
}

func load(data []byte, pos int) uint64 { return binary.BigEndian.Uint64(data[pos:]) }

// skipBlocksGeneric passes over n MCUs. Only the DC predictions come of it.
func skipBlocksGeneric(c *cursor, data []byte, steps []step, n int) {
	buf, bits, pos, end := c.buf, c.bits, c.pos, c.end
	bad := c.bad
	if bits < 16 {
		buf |= load(data, pos) >> (bits & 63)
		pos += int((63 - bits) >> 3)
		bits |= 56
	}
	for range n {
		for i := range steps {
			s := &steps[i]
			t := s.dc
			e := t.look[buf>>(64-lookBits)]
			buf |= load(data, pos) >> (bits & 63)
			pos += int((63 - bits) >> 3)
			bits |= 56
			if e == 0 {
				var ok bool
				if e, ok = t.long(buf); !ok {
					bad |= noCode
				}
			}
			if e>>16&63 != 0 {
				c.pred[s.comp&3] += int32(value(buf, e))
			}
			buf <<= e & 63
			bits -= uint64(e & 63)

			k := uint32(1)
			for k < 64 {
				w := uint32(s.skip[buf>>(64-skipBits)])
				buf |= load(data, pos) >> (bits & 63)
				pos += int((63 - bits) >> 3)
				bits |= 56
				// A step that would pass the last place is taken code by code: the
				// block may end within it.
				if w == 0 || k+w>>8 > 64 {
					e := s.ac.look[buf>>(64-lookBits)]
					if e == 0 {
						var ok bool
						if e, ok = s.ac.long(buf); !ok {
							bad |= noCode
						}
					}
					w = uint32(e&63) | uint32(e>>24+1)<<8
					if e>>16&63 == 0 && e>>24 != 15 {
						w = uint32(e&63) | 1<<6 | 1<<8
					}
				}
				buf <<= w & 63
				bits -= uint64(w & 63)
				k += w >> 8
				if w&(1<<6) != 0 {
					break
				}
			}
			if k > 64 {
				bad |= beyondLast
			}
			if pos > end {
				pos = end
			}
		}
	}
	c.buf, c.bits, c.pos, c.bad = buf, bits, pos, bad
}
