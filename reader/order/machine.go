package order

import (
	"shardtool/format"
)

// Has tells whether a shard has a sample at an index. A machine that does not
// shuffle asks for each shard in turn, for the indices 0, 1, 2, ... until the
// answer is no; each question once an epoch. An error ends the order.
type Has func(shard int32, index int64) (bool, error)

// Machine gives the steps of a plan. It is for one goroutine.
type Machine struct {
	plan  Plan
	epoch int32
	steps int64 // of this epoch, so far
	lane  lane

	// Batch as unit: the batch that is repeated, and how often it still is.
	batch []Ref
	left  int32
	acc   accumulator
}

// New returns a machine at the start of the plan. A plan that makes no sense
// is ErrUsage, one that is not built yet ErrUnsupported.
func New(p Plan) (*Machine, error) {
	p, err := p.check()
	if err != nil {
		return nil, err
	}
	return &Machine{plan: p}, nil
}

// Step replaces what dst holds by the references of the next batch: all of one
// epoch, as many as Plan.Batch, fewer only at an epoch's end under TailKeep.
// It reports false after the last step. An epoch that gives no batch at all is
// an error: ErrMissing without samples, else ErrUsage.
func (m *Machine) Step(dst []Ref, has Has) ([]Ref, bool, error) {
	dst = dst[:0]
	if m.left > 0 {
		m.left--
		for i := range m.batch {
			m.batch[i].Copy++
		}
		m.steps++
		return append(dst, m.batch...), true, nil
	}
	for m.plan.Epochs == Endless || m.epoch < int32(m.plan.Epochs) {
		var err error
		if dst, err = m.fill(dst, has); err != nil {
			return dst[:0], false, err
		}
		if len(dst) == m.plan.Batch || len(dst) > 0 && m.plan.Tail == TailKeep {
			m.repeat(dst)
			m.steps++
			return dst, true, nil
		}
		if m.steps == 0 {
			return dst[:0], false, m.barren()
		}
		m.epoch++
		m.steps, m.lane, m.acc = 0, lane{}, accumulator{}
		dst = dst[:0]
	}
	return dst, false, nil
}

// fill appends references until the batch is full or the epoch ends.
func (m *Machine) fill(dst []Ref, has Has) ([]Ref, error) {
	e := m.plan.Factor
	if m.plan.Unit == Batch {
		e = One
	}
	for len(dst) < m.plan.Batch {
		ok, err := m.lane.next(m.plan.Shards, e, has)
		if err != nil || !ok {
			return dst, err
		}
		l := &m.lane
		dst = append(dst, Ref{Epoch: m.epoch, Shard: l.shard, Index: l.index, Copy: l.copy})
	}
	return dst, nil
}

// repeat remembers a batch that is to come again.
func (m *Machine) repeat(refs []Ref) {
	if m.plan.Unit != Batch {
		return
	}
	if m.left = m.acc.times(m.plan.Factor) - 1; m.left > 0 {
		m.batch = append(m.batch[:0], refs...)
	}
}

func (m *Machine) barren() error {
	if m.lane.taken == 0 {
		return format.Errorf(format.ErrMissing, format.Nowhere, "no samples in %d shards", m.plan.Shards)
	}
	return usage("the %d samples of an epoch do not fill a batch of %d, and the tail is dropped", m.lane.taken, m.plan.Batch)
}

// lane is a share of an epoch: for now all of it.
type lane struct {
	shard int32
	index int64 // of the item that is given now
	copy  int32 // of that item
	left  int32 // copies of it still to come
	begun bool  // there was an item in this shard
	taken int64 // fresh items so far
	acc   accumulator
}

// next moves to the next emission; it reports false at the lane's end.
func (l *lane) next(shards int, e Factor, has Has) (bool, error) {
	if l.left > 0 {
		l.left--
		l.copy++
		return true, nil
	}
	for int(l.shard) < shards {
		if l.begun {
			l.index++
		}
		ok, err := has(l.shard, l.index)
		if err != nil {
			return false, err
		}
		if ok {
			l.begun, l.copy, l.left = true, 0, l.acc.times(e)-1
			l.taken++
			return true, nil
		}
		l.shard, l.index, l.begun = l.shard+1, 0, false
	}
	return false, nil
}
