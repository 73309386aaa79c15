package jpeg

import (
	"strconv"

	"shardtool/format"
)

// sequential is the Source of a frame whose only scan has all components
// (T.81, F.2): nothing is kept but the MCUs that are asked for.
type sequential struct {
	place
	f     *Frame
	quant *[4]*[64]int16
	next  int // MCU that comes next, counted row by row
	steps []step
	coefs []int16
}

// scan is the entropy-coded data of one scan, and what decodes it.
type scan struct {
	data     []byte // without stuffing
	segs     []segment
	file     []byte
	interval int // MCUs from restart to restart; 0: none
	tolerant bool
	dc, ac   [4]*table // by component of the frame
}

func (q *sequential) start(f *Frame, quant *[4]*[64]int16, s *scan) {
	q.f, q.quant, q.next = f, quant, 0
	q.steps = q.steps[:0]
	for i := range f.Count {
		for range f.Comps[i].H * f.Comps[i].V {
			q.steps = append(q.steps, step{dc: s.dc[i], ac: s.ac[i], comp: i})
		}
	}
	q.begin(s)
}

func (q *sequential) Frame() *Frame             { return q.f }
func (q *sequential) Quant(comp int) *[64]int16 { return q.quant[comp] }

func (q *sequential) Row(y, x0, x1 int) (Strip, error) {
	var s Strip
	n := 0
	for i := range q.f.Count {
		c := &q.f.Comps[i]
		s.Stride[i] = 64 * c.H * (x1 - x0)
		n += c.V * s.Stride[i]
	}
	if cap(q.coefs) < n {
		q.coefs = make([]int16, n+n/2)
	}
	coefs := q.coefs[:n]
	clear(coefs)
	if err := q.skipTo(y*q.f.Cols + x0); err != nil {
		return s, err
	}
	at, k := 0, 0
	for i := range q.f.Count {
		c := &q.f.Comps[i]
		for v := range c.V {
			for h := range c.H {
				q.steps[k].out = at + v*s.Stride[i] + 64*h
				q.steps[k].advance = 64 * c.H
				k++
			}
		}
		s.Coefs[i] = coefs[at : at+c.V*s.Stride[i]]
		at += c.V * s.Stride[i]
	}
	return s, q.run(x1-x0, coefs)
}

// skipTo passes over MCUs up to number to. Whole restart intervals are passed
// over unread where the markers of the scan are as they should be.
func (q *sequential) skipTo(to int) error {
	if to < q.next {
		return fault(format.ErrUsage, "MCU %d was asked for after MCU %d", to, q.next-1)
	}
	if q.scan.interval > 0 && !q.scan.tolerant {
		if seg := to / q.scan.interval; seg > q.seg {
			if err := q.jump(seg); err != nil {
				return err
			}
		}
	}
	if to == q.next {
		return nil
	}
	return q.run(to-q.next, nil)
}

// jump goes to the beginning of a restart interval.
func (q *sequential) jump(seg int) error {
	for i := q.seg; i < seg; i++ {
		if want, ok := q.wanted(i); !ok {
			next := q.rows((i + 1) * q.scan.interval)
			at, all := q.endOf(i)
			if all {
				return truncated(at, "it ends before %s", next)
			}
			return corrupt(at, "no restart marker FF%02X, which is due before %s", want, next)
		}
	}
	q.enter(seg)
	q.next = seg * q.scan.interval
	return nil
}

// run decodes n MCUs into coefs, or passes over them if that is nil.
func (q *sequential) run(n int, coefs []int16) error {
	for i := range q.steps {
		if s := &q.steps[i]; coefs == nil && s.skip == nil {
			s.skip = s.ac.skipTable()
		}
	}
	for n > 0 {
		if q.left == 0 {
			if err := q.restart(); err != nil {
				return err
			}
		}
		m := min(n, q.left, q.f.Cols-q.next%q.f.Cols) // an error names the row
		if q.scan.tolerant {
			q.tolerate(m, coefs)
		} else {
			q.blocks(m, coefs)
			if q.faulty() {
				return q.fault(q.rows(q.next+m-1), "a block of more than 64 coefficients")
			}
		}
		n -= m
		q.left -= m
		q.next += m
	}
	return nil
}

func (q *sequential) blocks(n int, coefs []int16) {
	if coefs != nil {
		decodeBlocks(&q.cur, q.scan.data, q.steps, coefs, n)
	} else {
		skipBlocks(&q.cur, q.scan.data, q.steps, n)
	}
}

// restart goes on after a restart marker. Strictly, it must be the next one.
func (q *sequential) restart() error {
	if !q.scan.tolerant {
		return q.jump(q.seg + 1)
	}
	q.resync()
	return nil
}

// rows names the pixel rows that an MCU is in.
func (q *sequential) rows(mcu int) string {
	y := min(mcu/q.f.Cols, q.f.Rows-1)
	first, last := y*8*q.f.VMax, min((y+1)*8*q.f.VMax, q.f.Height)-1
	return "rows " + strconv.Itoa(first) + " to " + strconv.Itoa(last) + " of " + strconv.Itoa(q.f.Height)
}

// tolerate decodes n MCUs as libjpeg does with what is damaged (jdhuff.c): the
// MCU in which the data of a segment runs out goes on with zero bits, and
// those after it stay zero, up to the next restart. A code that does not exist
// is the symbol 0.
func (q *sequential) tolerate(n int, coefs []int16) {
	for range n {
		if q.empty {
			if coefs != nil {
				for i := range q.steps {
					q.steps[i].out += q.steps[i].advance
				}
			}
			continue
		}
		q.blocks(1, coefs)
		q.damage()
	}
}
