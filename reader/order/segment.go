package order

import (
	"math/bits"
	"sort"
)

// Where factors change within an epoch, its length is known only from how far
// each lane was when they did. That follows from the plan alone, for the lanes
// of other ranks too: after k emissions a lane with room W has taken just
// enough items for W + k - 1 copies, or all that it has.
//
//	factor        1.5          │         3           │ ...
//	step     0 ────────────── 40 ────────────────── 80
//	lane 0   items 27, copies 40, rest 0.5 ─▶ 41, 82, 0.5    one tally for each lane (Sample),
//	lane 1   items 27, copies 41, rest 0   ─▶ ...            or for the batches of all (Batch)

// tally is how far an accumulator is.
type tally struct {
	items  int64
	copies int64 // of all of them
	last   int32 // copies of the last item
	acc    accumulator
}

// add counts n more items.
func (t *tally) add(n int64, f Factor) {
	if n <= 0 {
		return
	}
	all := f.copies(n, t.acc.rest)
	t.last = int32(all - f.copies(n-1, t.acc.rest))
	t.items += n
	t.copies += all
	t.acc.rest = (t.acc.rest + Factor(n)*f) & fraction
}

// until counts items until they have so many copies in all, or there are most
// of them, if that is not Unknown.
func (t *tally) until(copies, most int64, f Factor) {
	lack := copies - t.copies
	if lack <= 0 {
		return
	}
	// The least n of which rest + n f is lack or more.
	lo, borrow := bits.Sub64(uint64(lack)<<32, uint64(t.acc.rest), 0)
	n, part := bits.Div64(uint64(lack)>>32-borrow, lo, uint64(f))
	if part > 0 {
		n++
	}
	if most != Unknown {
		n = min(n, uint64(most-t.items))
	}
	t.add(int64(n), f)
}

// piece is a stretch of batches that are gathered with one factor; where it
// changed before one was, the last of those at the same place counts.
type piece struct {
	tally  // before it
	factor Factor
}

// SegmentBegins reports whether the next step begins an epoch or a segment of
// one, so that SetFactor would act on it. An epoch that a plan without segments
// began with the factor 1, and that one with segments goes on with, has none.
func (m *Machine) SegmentBegins() bool {
	return m.step == 0 || m.plan.Segment > 0 && m.echoing && m.step%m.plan.Segment == 0
}

// turn begins what comes after a step: the next epoch, where this one is over,
// or a segment with a factor that waits for it.
func (m *Machine) turn(over bool) error {
	over = over || m.step == m.extent.steps
	if f := m.upcoming(); !over && f != m.factor && m.SegmentBegins() {
		if err := m.change(f); err != nil {
			return err
		}
		over = m.step == m.extent.steps // what is left no longer fills a batch
	}
	if over {
		return m.begin(m.epoch + 1)
	}
	return nil
}

// change sets the factor of the steps to come of this epoch.
func (m *Machine) change(f Factor) error {
	if !m.counted {
		m.factor = f
		return nil
	}
	if m.plan.Unit == Batch {
		m.tallyBatches(f)
	} else {
		m.tallyLanes()
	}
	m.factor = f
	return m.sum()
}

func (m *Machine) tallyBatches(f Factor) {
	p := m.pieces[len(m.pieces)-1]
	p.until(m.room()+m.step-1, m.extent.batches, p.factor)
	p.factor = f
	m.pieces = append(m.pieces, p)
}

func (m *Machine) tallyLanes() {
	if len(m.tallies) == 0 {
		for l := range m.plan.Lanes {
			m.tallies = append(m.tallies, m.untouched(l))
		}
	}
	copies := m.room() + m.step*int64(m.each) - 1
	for l := range m.tallies {
		m.tallies[l].until(copies, m.places(l), m.factor)
	}
}

// tally returns how far a lane was when the present factor began.
func (m *Machine) tally(lane int) tally {
	if len(m.tallies) > 0 {
		return m.tallies[lane]
	}
	return m.untouched(lane)
}

func (m *Machine) untouched(lane int) (t tally) {
	t.acc.begin(lane, m.plan.Lanes)
	return t
}

// emissions returns how many a lane gives in all with Sample echo, if it has n
// places and the factor stays.
func (m *Machine) emissions(lane int, n int64) int64 {
	t := m.tally(lane)
	return t.copies + m.factor.copies(n-t.items, t.acc.rest)
}

// repetitions returns how many copies the first n batches have in all, if the
// factor stays.
func (m *Machine) repetitions(n int64) int64 {
	i := sort.Search(len(m.pieces), func(i int) bool { return m.pieces[i].items > n }) - 1
	p := &m.pieces[i]
	return p.copies + p.factor.copies(n-p.items, p.acc.rest)
}

// room returns how many copies a buffer behind the echo is filled up to: a
// lane's, or that of batches.
func (m *Machine) room() int64 {
	switch {
	case !m.echoing:
		return 1
	case m.plan.Unit == Batch:
		return int64(max(1, m.plan.Buffer))
	}
	return int64(max(1, m.plan.Buffer/m.plan.Lanes))
}
