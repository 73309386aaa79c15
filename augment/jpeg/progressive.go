package jpeg

import "math/bits"

// The scans of progressive files (T.81, annex G). Each function takes adjacent
// blocks of a component, and keeps the reader's state in variables meanwhile.

// bitReader is a cursor's state at hand.
type bitReader struct {
	data []byte
	buf  uint64
	bits uint64
	pos  int
	bad  uint64
}

func (q *bufferedScan) reader() bitReader {
	return bitReader{data: q.scan.data, buf: q.cur.buf, bits: q.cur.bits, pos: q.cur.pos}
}

// leave puts the state back.
func (q *bufferedScan) leave(r *bitReader) {
	q.cur.buf, q.cur.bits, q.cur.bad = r.buf, r.bits, q.cur.bad|r.bad
	q.cur.pos = min(r.pos, q.cur.end)
}

// fill makes at least 56 bits valid.
func (r *bitReader) fill() {
	r.buf |= load(r.data, r.pos) >> (r.bits & 63)
	r.pos += int((63 - r.bits) >> 3)
	r.bits |= 56
}

func (r *bitReader) drop(n uint64) {
	r.buf <<= n & 63
	r.bits -= n
}

// code returns the entry of the next code, with at least 56 bits valid. The
// bits of both stay where they are.
func (r *bitReader) code(t *table) entry {
	r.fill()
	e := t.look[r.buf>>(64-lookBits)]
	if e == 0 {
		e = r.long(t)
	}
	return e
}

func (r *bitReader) long(t *table) entry {
	e, ok := t.long(r.buf)
	if !ok {
		r.bad |= noCode
	}
	return e
}

// endRun reads how many blocks end here: 2^run and the number in run bits.
func (r *bitReader) endRun(run int) int {
	n := 1 << run
	if run > 0 {
		r.fill()
		n += int(r.buf >> (64 - run))
		r.drop(uint64(run))
	}
	return n
}

func (q *bufferedScan) dcFirst(p, comp int, coefs []int16) {
	r, t, pred := q.reader(), q.scan.dc[p], q.cur.pred[comp]
	for ; len(coefs) >= 64; coefs = coefs[64:] {
		e := r.code(t)
		if e>>16&63 != 0 {
			pred += int32(value(r.buf, e))
		}
		r.drop(uint64(e & 63))
		coefs[0] = int16(pred << q.sh.low)
		r.pos = min(r.pos, q.cur.end)
	}
	q.cur.pred[comp] = pred
	q.leave(&r)
}

func (q *bufferedScan) dcRefine(coefs []int16) {
	r := q.reader()
	for ; len(coefs) >= 64; coefs = coefs[64:] {
		r.fill()
		coefs[0] |= int16(r.buf>>63) << q.sh.low
		r.drop(1)
		r.pos = min(r.pos, q.cur.end)
	}
	q.leave(&r)
}

func (q *bufferedScan) acFirst(coefs []int16, known []uint64) {
	r, t, to, low := q.reader(), q.scan.ac[0], q.sh.to, q.sh.low
	for len(known) > 0 {
		if q.eobrun > 0 {
			n := min(q.eobrun, len(known))
			q.eobrun -= n
			coefs, known = coefs[64*n:], known[n:]
			continue
		}
		out, mark := (*[64]int16)(coefs), &known[0]
		coefs, known = coefs[64:], known[1:]
		for k := q.sh.from; k <= to; k++ {
			e := r.code(t)
			run := int(e >> 24)
			if e>>16&63 != 0 {
				k += run
				if k > to {
					r.bad |= beyondLast
				}
				v := int16(value(r.buf, e) << low)
				out[natural[k]&63] = v
				if v != 0 { // of a damaged file, it may overflow
					*mark |= 1 << min(k, 63)
				}
				r.drop(uint64(e & 63))
				continue
			}
			r.drop(uint64(e & 63))
			if run != 15 {
				q.eobrun = r.endRun(run) - 1
				break
			}
			k += 15
		}
		r.pos = min(r.pos, q.cur.end)
	}
	q.leave(&r)
}

// acRefine adds a bit to the coefficients that are known, and reads those that
// become known by it (T.81, G.1.2.3). Those between are found by their marks:
// to go through the block place by place would take three times as long.
func (q *bufferedScan) acRefine(coefs []int16, known []uint64) {
	r, t, from, to := q.reader(), q.scan.ac[0], uint(q.sh.from), uint(q.sh.to)
	plus := int16(1) << q.sh.low
	upTo := ^uint64(0) >> (63 - to)
	for i := range known {
		out, mark := (*[64]int16)(coefs[64*i:]), &known[i]
		k := from
		for q.eobrun == 0 && k <= to {
			e := r.code(t)
			run := int(e >> 24)
			var fresh int16
			if size := e >> 16 & 63; size != 0 {
				if size != 63 { // a new coefficient has one bit
					r.bad |= noCode
				}
				length := uint64(e >> 8 & 63)
				fresh = -plus
				if r.buf<<length>>63 != 0 {
					fresh = plus
				}
				r.drop(length + 1)
			} else {
				r.drop(uint64(e & 63))
				if run != 15 {
					q.eobrun = r.endRun(run)
					break
				}
			}
			// The next place is the one after run unknown ones.
			unknown := ^*mark & upTo >> k << k
			for ; run > 0; run-- {
				unknown &= unknown - 1
			}
			next := to + 1
			if unknown != 0 {
				next = uint(bits.TrailingZeros64(unknown))
			}
			r.refine(out, *mark&^(^uint64(0)<<next)>>k<<k, plus)
			if fresh != 0 {
				if next > to {
					r.bad |= beyondLast
				}
				out[natural[next]&63] = fresh
				*mark |= 1 << min(next, 63)
			}
			k = next + 1
		}
		if q.eobrun > 0 {
			if k <= to {
				r.refine(out, *mark&upTo>>k<<k, plus)
			}
			q.eobrun--
		}
		r.pos = min(r.pos, q.cur.end)
	}
	q.leave(&r)
}

// refine reads a bit for each coefficient of which marks has a bit, and adds
// plus, away from zero, where it is 1 and that bit of the number is not set.
func (r *bitReader) refine(out *[64]int16, marks uint64, plus int16) {
	buf, have := r.buf, r.bits
	for ; marks != 0; marks &= marks - 1 {
		if have == 0 {
			r.buf, r.bits = buf, have
			r.fill()
			buf, have = r.buf, r.bits
		}
		c := &out[natural[bits.TrailingZeros64(marks)&63]&63]
		v := *c
		add := plus & int16(int64(buf)>>63) &^ v
		sign := v >> 15
		*c = v + (add ^ sign) - sign
		buf <<= 1
		have--
	}
	r.buf, r.bits = buf, have
}
