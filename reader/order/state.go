package order

import (
	"slices"

	"shardtool/format"
)

// State is a position in an order: that after the step last given. It holds
// what the plan does not say, and the data only by what was learned of it; it
// is small, and encoding/json writes and reads it. With known counts it is the
// same on all ranks, and good for any world that divides the lanes. Without,
// each rank saves its own.
type State struct {
	Version     int          `json:"version"` // 1
	Fingerprint *Fingerprint `json:"fingerprint"`
	Epoch       int32        `json:"epoch"`
	Step        int64        `json:"step"`              // steps of the epoch that were given
	Factors     []Segment    `json:"factors,omitempty"` // of the steps of this epoch that were given
	Echo        bool         `json:"echo,omitempty"`    // copies go through the echo's buffer, though the epoch began with the factor 1
	Next        Factor       `json:"next,omitempty"`    // of later segments and epochs, where it was set; else the plan's
	Counts      []Count      `json:"counts,omitempty"`  // of shards whose end was found, in the order of finding
	World       int          `json:"world,omitempty"`   // without counts: the world
	Rank        int          `json:"rank,omitempty"`    // and the rank
}

const stateVersion = 1

// Segment is a stretch of an epoch with one echo factor, from a step on: one or
// more segments of the plan.
type Segment struct {
	Step   int64  `json:"step"`
	Factor Factor `json:"factor"`
}

// Count is how many samples a shard turned out to have.
type Count struct {
	Shard   int32 `json:"shard"`
	Samples int64 `json:"samples"`
}

// State returns the position after the last step. It copies nothing: the state
// shares memory that does not change any more.
func (m *Machine) State() State {
	s := State{
		Version: stateVersion, Fingerprint: m.print, Epoch: m.epoch, Step: m.step,
		Factors: m.factors[:len(m.factors):len(m.factors)], Next: m.next, Counts: m.learned[:len(m.learned):len(m.learned)],
	}
	s.Echo = m.echoing && len(m.factors) > 0 && m.factors[0].Factor == One
	if !m.counted {
		s.World, s.Rank = m.world, m.rank
	}
	return s
}

// Restore goes to a position: the next Step gives what followed it. It reads
// nothing, and takes as long as the steps of one epoch without data do, less
// where there is no buffer. The state of another plan is ErrStale, naming what
// differs; one that needs its own world or rank ErrUsage; one that makes no
// sense ErrCorrupt. After an error from here the machine is where it was,
// except when only the replay finds that the state makes no sense: then the
// order has ended with that error.
func (m *Machine) Restore(s State) error {
	if err := m.accept(&s); err != nil {
		return err
	}
	m.failed = m.goTo(s)
	return m.failed
}

func corrupt(msg string, args ...any) error {
	return format.Errorf(format.ErrCorrupt, format.Nowhere, msg, args...)
}

// accept checks what can be checked without a replay.
func (m *Machine) accept(s *State) error {
	switch {
	case s.Version != stateVersion:
		return format.Errorf(format.ErrUnsupported, format.Nowhere, "a state of version %d; this is version %d", s.Version, stateVersion)
	case s.Fingerprint == nil:
		return corrupt("a state without fingerprint")
	case !m.counted && s.World > 0 && s.World != m.world:
		return usage("the state is of a world of %d, not %d: where samples are not counted, only the same world can go on; make an index (shardtool index) before a run that shall change it", s.World, m.world)
	case !m.counted && s.World > 0 && s.Rank != m.rank:
		return usage("the state is of rank %d, not %d: where samples are not counted, each rank goes on from its own", s.Rank, m.rank)
	}
	if d := m.plan.differs(s.Fingerprint, m.print); d != "" {
		return format.Errorf(format.ErrStale, format.Nowhere, "the state is of another plan, which differs in %s", d)
	}
	switch {
	case s.Epoch < 0 || s.Step < 0:
		return corrupt("a state at epoch %d, step %d", s.Epoch, s.Step)
	case s.Next != 0 && (s.Next < One || s.Next > maxFactor):
		return corrupt("a state with a next echo factor of %v", s.Next)
	}
	if s.Step > 0 {
		if err := m.acceptFactors(s); err != nil {
			return err
		}
	}
	return m.acceptCounts(s)
}

func (m *Machine) acceptFactors(s *State) error {
	if len(s.Factors) == 0 || s.Factors[0].Step != 0 {
		return corrupt("a state at step %d that does not say the echo factor", s.Step)
	}
	for i, f := range s.Factors {
		switch {
		case f.Factor < One || f.Factor > maxFactor:
			return corrupt("a state with an echo factor of %v", f.Factor)
		case f.Step >= s.Step || i > 0 && f.Step <= s.Factors[i-1].Step:
			return corrupt("a state at step %d whose echo factors begin at steps that are not ascending below it: number %d at %d", s.Step, i, f.Step)
		}
	}
	switch several := len(s.Factors) > 1; {
	case m.plan.Unit == Shard && (several || s.Echo):
		return corrupt("a state with several echo factors in an epoch, whose shards are repeated as often as the first says")
	case several && s.Factors[0].Factor == One && !s.Echo:
		return corrupt("a state with several echo factors in an epoch without echo")
	}
	return nil
}

func (m *Machine) acceptCounts(s *State) error {
	seen := make(map[int32]bool, len(s.Counts))
	for _, c := range s.Counts {
		switch {
		case c.Shard < 0 || int(c.Shard) >= len(m.entries) || seen[c.Shard]:
			return corrupt("a state that counts shard %d of %d twice, or one that is not there", c.Shard, len(m.entries))
		case m.entries[c.Shard].Samples != Unknown || c.Samples < 0:
			return corrupt("a state that counts %d samples of %s, which has %d", c.Samples, format.Redact(m.entries[c.Shard].Name), m.entries[c.Shard].Samples)
		}
		seen[c.Shard] = true
	}
	most := One
	for _, f := range s.Factors {
		most = max(most, f.Factor)
	}
	if !m.counted && s.Step > m.mostSteps(most) {
		return corrupt("a state at step %d, which is more than all shards have bytes for", s.Step)
	}
	return nil
}

// mostSteps bounds the steps of an epoch whose counts are not known, so that a
// state that makes no sense is seldom replayed: a shard has less than 64
// samples in a byte, as a record has 16 bytes and deflate makes at most 1032 of
// one.
func (m *Machine) mostSteps(f Factor) int64 {
	const unknown = 1 << 40
	if m.plan.Steps > 0 {
		return m.plan.Steps
	}
	var bytes int64
	for i := range m.entries {
		if m.entries[i].Bytes <= 0 {
			return unknown
		}
		bytes = min(bytes+m.entries[i].Bytes, unknown)
	}
	return f.total(min(bytes*64, unknown), 0, 1)
}

// goTo begins the state's epoch and repeats its steps.
func (m *Machine) goTo(s State) error {
	m.learned, m.counts = nil, nil
	for _, c := range s.Counts {
		m.learn(c)
	}
	m.next, m.last = s.Next, emission{item: -1}
	if s.Step == 0 {
		return m.begin(s.Epoch)
	}
	if err := m.start(s.Epoch, s.Factors[0].Factor, s.Echo); err != nil || m.over() {
		return err
	}
	seek := m.seeks()
	for i, f := range s.Factors {
		end := s.Step
		if i+1 < len(s.Factors) {
			end = s.Factors[i+1].Step
		}
		if i > 0 {
			if err := m.change(f.Factor); err != nil {
				return err
			}
		}
		if n, known := m.Steps(); known && end > n {
			return corrupt("a state at step %d of an epoch of %d", end, n)
		}
		if seek {
			m.step = end
		} else if err := m.repeat(end); err != nil {
			return err
		}
	}
	if seek {
		if err := m.seek(); err != nil {
			return err
		}
		m.taken, m.factors = true, slices.Clone(s.Factors)
	}
	return m.turn(false)
}

// repeat makes the steps before one.
func (m *Machine) repeat(end int64) error {
	var refs []Ref
	for m.step < end {
		var ok bool
		var err error
		if refs, ok, err = m.one(refs[:0]); err != nil {
			return err
		}
		if !ok {
			return corrupt("a state at step %d of an epoch of %d", end, m.step)
		}
	}
	return nil
}

// seeks reports whether a step can be gone to without those before it: places
// are taken in turn, and no buffer mixes them.
func (m *Machine) seeks() bool { return m.sequential() && m.room() == 1 }

// seek puts lanes and batches where they are after m.step steps.
func (m *Machine) seek() error {
	if m.plan.Unit == Batch && m.echoing {
		return m.seekBatch()
	}
	for i := range m.lanes {
		l := &m.lanes[i]
		k := m.step * int64(m.each)
		if !l.plain {
			l.seekCopies(m, k)
			continue
		}
		l.src.(*positions).seek(m.within(k, m.places(l.number)))
	}
	return nil
}

// within returns how many places a lane is past that gave k: beyond its own
// only if it wraps.
func (m *Machine) within(k, places int64) int64 {
	if m.filled() == TailWrap {
		return k
	}
	return min(k, places)
}

// seekCopies puts a lane with Sample echo behind its first k emissions, of
// which there is one.
func (l *lane) seekCopies(m *Machine, k int64) {
	src := l.src.(*positions)
	places := m.places(l.number)
	t := m.tally(l.number)
	t.until(k, places, m.factor)
	if k > t.copies {
		src.seek(m.within(places+k-t.copies, places))
		return
	}
	src.seek(t.items - 1)
	src.put(&l.echo.slot().item, src.p)
	src.seek(t.items)
	l.echo.acc = t.acc
	l.echo.put(t.last)
	l.echo.skip(t.copies - k)
}

// seekBatch puts the machine behind the first emissions of batches.
func (m *Machine) seekBatch() error {
	p := m.pieces[len(m.pieces)-1]
	p.until(m.step, m.extent.batches, p.factor)
	before := p.items - 1
	if m.step > p.copies {
		before = p.items // in the padding after the last
	}
	for i := range m.lanes {
		l := &m.lanes[i]
		l.src.(*positions).seek(m.within(before*int64(m.each), m.places(l.number)))
	}
	m.made, m.batch.acc = before, p.acc
	if before == p.items {
		m.dry = true
		return nil
	}
	b := m.batch.slot()
	if _, err := m.fillBatch(&b.item); err != nil {
		return err
	}
	m.batch.put(p.last)
	given := m.batch.skip(p.copies - m.step)
	if b.item.number >= 0 {
		m.last = emission{b.item.number, given, p.last}
	}
	return nil
}

// skip gives copies of the only item until some are left, and returns the last.
func (r *repeats[T]) skip(left int64) (copy int32) {
	for int64(len(r.buf)) > left {
		_, copy = r.next()
	}
	return copy
}
