package order

import "shardtool/format"

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
	Factors     []Segment    `json:"factors,omitempty"` // of the echo in this epoch, if it has begun
	Next        Factor       `json:"next,omitempty"`    // of later epochs, where it was set; else the plan's
	Counts      []Count      `json:"counts,omitempty"`  // of shards whose end was found, in the order of finding
	World       int          `json:"world,omitempty"`   // without counts: the world
	Rank        int          `json:"rank,omitempty"`    // and the rank
}

const stateVersion = 1

// Segment is a stretch of an epoch with one echo factor, from a step on. For
// now an epoch is one segment.
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
		Factors: m.factors, Next: m.next, Counts: m.learned[:len(m.learned):len(m.learned)],
	}
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
	case s.Step == 0:
	case len(s.Factors) > 1:
		return format.Errorf(format.ErrUnsupported, format.Nowhere, "a state with %d echo factors in one epoch", len(s.Factors))
	case len(s.Factors) == 0 || s.Factors[0].Step != 0:
		return corrupt("a state at step %d that does not say the echo factor", s.Step)
	case s.Factors[0].Factor < One || s.Factors[0].Factor > maxFactor:
		return corrupt("a state with an echo factor of %v", s.Factors[0].Factor)
	}
	return m.acceptCounts(s)
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
	if !m.counted && s.Step > m.mostSteps() {
		return corrupt("a state at step %d, which is more than all shards have bytes for", s.Step)
	}
	return nil
}

// mostSteps bounds the steps of an epoch whose counts are not known, so that a
// state that makes no sense is seldom replayed: a shard has less than 64
// samples in a byte, as a record has 16 bytes and deflate makes at most 1032 of
// one.
func (m *Machine) mostSteps() int64 {
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
	return m.factor.total(min(bytes*64, unknown), 0, 1)
}

// goTo begins the state's epoch and repeats its steps.
func (m *Machine) goTo(s State) error {
	m.learned, m.counts = nil, nil
	for _, c := range s.Counts {
		m.learn(c)
	}
	m.next = s.Next
	if s.Step > 0 {
		m.next = s.Factors[0].Factor
	}
	err := m.begin(s.Epoch)
	m.next = s.Next
	if err != nil || m.over() {
		return err
	}
	if n, known := m.Steps(); known && s.Step > n {
		return corrupt("a state at step %d of an epoch of %d", s.Step, n)
	}
	if s.Step > 0 && m.seek(s.Step) {
		m.step, m.taken = s.Step, true
		m.factors = []Segment{{Factor: m.factor}}
	}
	var refs []Ref
	for m.step < s.Step {
		var ok bool
		if refs, ok, err = m.one(refs[:0]); err != nil {
			return err
		}
		if !ok {
			return corrupt("a state at step %d of an epoch of %d", s.Step, m.step)
		}
	}
	if m.step > 0 && m.step == m.extent.steps {
		return m.begin(m.epoch + 1)
	}
	return nil
}

// seek goes to a step without those before it, where places are taken in turn
// and no buffer mixes them; else it reports false.
func (m *Machine) seek(step int64) bool {
	if !m.sequential() {
		return false
	}
	if m.plan.Unit == Batch && m.factor > One {
		return m.plan.Buffer <= 1 && m.seekBatch(step)
	}
	for i := range m.lanes {
		if m.lanes[i].room > 1 {
			return false
		}
	}
	for i := range m.lanes {
		l := &m.lanes[i]
		src := l.src.(*positions)
		k := step * int64(m.each)
		if l.plain {
			src.seek(m.within(k, m.places(l.number)))
			continue
		}
		l.seekCopies(m, src, k)
	}
	return true
}

// within returns how many places a lane is past that gave k: beyond its own
// only if it wraps.
func (m *Machine) within(k, places int64) int64 {
	if m.filled() == TailWrap {
		return k
	}
	return min(k, places)
}

// seekCopies puts a lane with Sample echo behind its first k emissions.
func (l *lane) seekCopies(m *Machine, src *positions, k int64) {
	lanes := m.plan.Lanes
	places := m.places(l.number)
	if all := m.factor.total(places, l.number, lanes); k > all {
		src.seek(m.within(places+k-all, places))
		return
	}
	n := least(places, func(n int64) bool { return m.factor.total(n, l.number, lanes) >= k })
	if n == 0 {
		return
	}
	src.seek(n - 1)
	s := l.echo.slot()
	src.put(&s.item, src.p)
	src.seek(n)
	l.echo.acc.after(m.factor, n-1, l.number, lanes)
	l.echo.add(m.factor)
	l.echo.skip(m.factor.total(n, l.number, lanes) - k)
}

// seekBatch puts the machine behind the first emissions of batches.
func (m *Machine) seekBatch(step int64) bool {
	n := least(step, func(n int64) bool { return m.factor.total(n, 0, 1) >= step })
	if x := m.extent.batches; x != Unknown && n > x {
		return false // in the padding after the last
	}
	for i := range m.lanes {
		l := &m.lanes[i]
		l.src.(*positions).seek(m.within((n-1)*int64(m.each), m.places(l.number)))
	}
	s := m.batch.slot()
	var ok bool
	if s.item, ok, _ = m.gather(s.item[:0]); !ok {
		m.batch.drop()
		return false
	}
	m.made = n
	m.batch.acc.after(m.factor, n-1, 0, 1)
	m.batch.add(m.factor)
	m.batch.skip(m.factor.total(n, 0, 1) - step)
	return true
}

// after puts the accumulator behind n items.
func (a *accumulator) after(e Factor, n int64, lane, lanes int) {
	a.begin(lane, lanes)
	a.rest = (a.rest + Factor(n)*e) & fraction
}

// skip gives copies of the only item until some are left.
func (r *repeats[T]) skip(left int64) {
	for int64(len(r.buf)) > left {
		r.next()
	}
}
