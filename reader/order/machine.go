package order

import (
	"slices"

	"shardtool/format"
)

// Take is told of each sample that is taken, once in every pass, when it is
// taken, which may be long before it is emitted: buffers lie between. It
// answers whether there is one. Where the count of a shard is known, no is
// ErrStale; where it is not, no ends the shard, and is asked for in every
// epoch. An error ends the order. Of what fills a tail it is not told.
//
// reading is the sequence of runs (see [Machine.Run]) that the sample is read
// in, -1 with Global. The samples of a run come in order, but with None and
// known counts the lanes of a rank share a reading, and only the samples of
// one lane come in order: [Machine.Low] says what all of them are past.
type Take func(reading int32, epoch, shard int32, index int64) (bool, error)

// Machine gives one rank's part of the steps of a plan. It is for one
// goroutine.
//
// The epoch is dealt to Plan.Lanes lanes, of which a rank has as many in a row
// as any other: by default as many as the largest divisor of the batch up to
// 64; one, if the tail is kept; as many as there are ranks, if counts are not
// known. A world must divide them. Each lane gives L = Batch / Lanes
// references of a step:
//
//   - None and Global, with counts: the n-th fresh sample of lane l is at place
//     (n/L) Batch + l L + n%L of the epoch, so that a batch is Batch
//     places in a row.
//   - Block and Stream, with counts: a lane has the samples from l N/V to
//     (l+1) N/V of the epoch's shards in permuted order.
//   - without counts, whole shards are dealt to the lanes in turn.
type Machine struct {
	plan        Plan // with its defaults
	rank, world int
	counted     bool // the samples of all shards are known
	entries     []Entry
	parts       []part
	blend       blend
	lanes       []lane // this rank's
	each        int    // references of a lane in a step
	print       *Fingerprint

	epoch  int32
	step   int64 // of the epoch, so far
	extent extent
	length int64 // places of the epoch, where lanes take them in turn
	taken  bool  // something was, in this epoch
	batch  repeats[gathered]
	made   int64 // batches gathered for batch, so far
	dry    bool  // and there are no more

	echoing bool      // the epoch's copies go through a buffer, be there one of each
	factor  Factor    // of the next step
	next    Factor    // of later segments and epochs; 0: the plan's
	factors []Segment // of the epoch's steps so far
	tallies []tally   // of all lanes, where factor began; none where the epoch began with it
	pieces  []piece   // of the epoch's batches
	last    emission  // of a batch

	learned []Count
	counts  map[int32]int64 // the same, by shard

	deals  []*deal
	starts [][2]passStarts // by reading, for epochs of even and odd number
	take   Take
	failed error
}

// New returns a machine at the start of the plan, for one rank of a world. A
// plan that makes no sense is ErrUsage.
func New(p Plan, rank, world int) (*Machine, error) {
	p, counted, err := p.resolve(world)
	if err != nil {
		return nil, err
	}
	if rank < 0 || rank >= world {
		return nil, usage("rank %d of a world of %d", rank, world)
	}
	m := &Machine{plan: p, rank: rank, world: world, counted: counted, entries: p.shards(), each: p.Batch / p.Lanes}
	if m.blend, err = newBlendOf(p.Parts); err != nil {
		return nil, err
	}
	m.last.item = -1
	m.parts = newParts(&p, counted)
	m.print = p.print()
	own := p.Lanes / world
	m.lanes = make([]lane, own)
	for i := range m.lanes {
		m.lanes[i] = newLane(m, i, rank*own+i)
	}
	m.starts = make([][2]passStarts, m.Readings())
	return m, m.begin(0)
}

// begin puts the machine at the start of an epoch of the plan.
func (m *Machine) begin(epoch int32) error {
	return m.start(epoch, m.upcoming(), m.plan.Segment > 0)
}

// start puts the machine at the start of an epoch that begins with a factor,
// and may go on with others.
func (m *Machine) start(epoch int32, f Factor, segments bool) error {
	if epoch < 0 {
		return usage("more than 2^31 epochs")
	}
	m.epoch, m.step, m.taken, m.made, m.dry = epoch, 0, false, 0, false
	m.factor, m.factors, m.echoing = f, nil, f > One || segments
	m.tallies, m.pieces = m.tallies[:0], append(m.pieces[:0], piece{factor: f})
	if !m.over() {
		if err := m.measure(); err != nil {
			return err
		}
	}
	for i := range m.lanes {
		m.lanes[i].begin(m)
	}
	m.batch.begin(Hash(m.plan.Seed, ForBatches, uint64(epoch)), 0, 1)
	return nil
}

func (m *Machine) over() bool {
	return m.plan.Epochs != Endless && int(m.epoch) >= m.plan.Epochs
}

func (m *Machine) upcoming() Factor {
	if m.next != 0 {
		return m.next
	}
	return m.plan.Factor
}

// SetFactor sets the factor from the next step on that begins an epoch or a
// segment of one (see [Machine.SegmentBegins]): from the very next, if that
// does. Until then it waits, and one that is set meanwhile takes its place. All
// ranks must set the same before the same step.
//
// An item gets as many copies as the factor says that holds when it is taken,
// and keeps them: what a buffer holds when the factor changes is given as often
// as was meant. The first item that is taken with factor e, after n items whose
// factors add up to s (to which a lane l of V adds l/V), gets
// floor(s + e) - floor(s) copies: the accumulator goes on, and what one factor
// left of a copy counts for the next.
//
// With Shard as unit, runs depend on the factor: set it before those of the
// next epoch are asked for.
func (m *Machine) SetFactor(f Factor) error {
	if f < One || f > maxFactor {
		return badFactor(f.Float64())
	}
	m.next = f
	switch {
	case m.failed != nil:
		return nil
	case m.step == 0:
		return m.begin(m.epoch)
	}
	return m.turn(false)
}

// Step replaces what dst holds by this rank's references of the next step, of
// lane after lane: all of one epoch, and as many as the rank's share of the
// batch, fewer only at an epoch's end under TailKeep. It reports false after
// the last step. An epoch that gives no step at all is an error: ErrMissing
// without samples, else ErrUsage. An error ends the order.
//
// take may be nil where all counts are known.
func (m *Machine) Step(dst []Ref, take Take) ([]Ref, bool, error) {
	if m.failed != nil {
		return dst[:0], false, m.failed
	}
	if take == nil && !m.counted {
		return dst[:0], false, usage("the number of samples is not known of all shards, so Step must be told whether there is a sample")
	}
	m.take = take
	dst, ok, err := m.advance(dst[:0])
	m.take = nil
	if err != nil {
		m.failed = err
		return dst[:0], false, err
	}
	return dst, ok, nil
}

func (m *Machine) advance(dst []Ref) ([]Ref, bool, error) {
	for !m.over() {
		dst, ok, err := m.one(dst[:0])
		if err != nil {
			return dst, false, err
		}
		if !ok && m.step == 0 {
			return dst, false, m.barren()
		}
		if err := m.turn(!ok); err != nil {
			return dst, false, err
		}
		if ok {
			return dst, true, nil
		}
	}
	return dst[:0], false, nil
}

// one makes the next step of this epoch; it reports false at its end.
func (m *Machine) one(dst []Ref) ([]Ref, bool, error) {
	if m.step == m.extent.steps || m.plan.Steps > 0 && m.step >= m.plan.Steps {
		return dst, false, nil
	}
	m.last = emission{item: -1}
	var ok bool
	var err error
	if m.plan.Unit == Batch && m.echoing {
		dst, ok, err = m.repeated(dst)
	} else {
		dst, ok, err = m.gather(dst)
	}
	if err != nil || !ok {
		return dst, false, err
	}
	if n := len(m.factors); n == 0 || m.factors[n-1].Factor != m.factor {
		m.factors = append(m.factors, Segment{Step: m.step, Factor: m.factor})
	}
	m.step++
	return dst, true, nil
}

// gather appends what the lanes give for a step, with the tail's rule where
// one has no more. It reports false at the epoch's end.
func (m *Machine) gather(dst []Ref) ([]Ref, bool, error) {
	if m.extent.steps == Unknown {
		if more, err := m.more(); err != nil || !more {
			return dst, false, err
		}
	}
	start := len(dst)
	for i := range m.lanes {
		l := &m.lanes[i]
		begin := len(dst)
		var err error
		if dst, err = l.emit(m, dst, m.each); err != nil {
			return dst, false, err
		}
		if missing := m.each - (len(dst) - begin); missing > 0 {
			if m.plan.Tail == TailDrop && m.plan.Steps == 0 {
				return dst[:start], false, nil
			}
			if dst, err = m.fill(dst, l, missing); err != nil {
				return dst, false, err
			}
		}
	}
	if !m.counted && !m.taken && len(dst) > start {
		return dst, false, m.barren() // padding alone, and no sample before it
	}
	return dst, len(dst) > start, nil
}

// more reports whether a lane has anything left.
func (m *Machine) more() (more bool, err error) {
	for i := range m.lanes {
		ok, err := m.lanes[i].more(m)
		if err != nil {
			return false, err
		}
		more = more || ok
	}
	return more, nil
}

// gathered is a batch that is repeated.
type gathered struct {
	refs   []Ref
	number int64 // in the epoch; -1 for padding alone
}

// emission is which copy of a batch a step is.
type emission struct {
	item        int64
	copy, times int32
}

// Item returns of which batch the step just given is a copy, of which, and of
// how many there are: item counts the batches that this epoch gathers to repeat
// them, from 0. It is -1 where steps are not repeated, the unit being another
// or the epoch without echo, for a step of padding alone, and before the first
// step. After Restore it is of the last step before the state, where that is of
// the same epoch, else -1.
func (m *Machine) Item() (item int64, copy, times int32) {
	return m.last.item, m.last.copy, m.last.times
}

// repeated appends the next emission of a batch. The batches of all lanes move
// together: neither the accumulator nor the hash knows of lanes, so that the
// batch of all ranks stays whole.
func (m *Machine) repeated(dst []Ref) ([]Ref, bool, error) {
	for room := int(m.room()); len(m.batch.buf) < room && !m.dry; {
		if err := m.keep(); err != nil {
			return dst, false, err
		}
	}
	s, copy := m.batch.next()
	switch {
	case s != nil:
		if s.item.number >= 0 {
			m.last = emission{s.item.number, copy, s.times}
		}
	case m.filled() == TailPad && m.extent.steps != Unknown && (m.counted || m.taken):
		return m.pad(dst, len(m.lanes)*m.each), true, nil
	default:
		return dst, false, nil
	}
	for _, ref := range s.item.refs {
		ref.Copy, ref.Times = copy, s.times
		dst = append(dst, ref)
	}
	return dst, true, nil
}

// keep gathers one more batch, or finds that there are no more. Those of
// padding alone come after all others, not among them.
func (m *Machine) keep() error {
	m.dry = m.made == m.extent.batches
	if !m.counted && m.filled() == TailPad {
		more, err := m.more()
		if err != nil {
			return err
		}
		m.dry = !more
	}
	if m.dry {
		return nil
	}
	s := m.batch.slot()
	ok, err := m.fillBatch(&s.item)
	switch {
	case err != nil:
		return err
	case !ok:
		m.batch.drop()
		m.dry = true
		return nil
	}
	m.batch.add(m.factor)
	return nil
}

// fillBatch gathers the next batch.
func (m *Machine) fillBatch(b *gathered) (ok bool, err error) {
	if b.refs, ok, err = m.gather(b.refs[:0]); err != nil || !ok {
		return false, err
	}
	b.number = -1
	if slices.ContainsFunc(b.refs, func(r Ref) bool { return r.Kind != Padding }) {
		b.number = m.made
	}
	m.made++
	return true, nil
}

func (m *Machine) barren() error {
	if m.taken || m.extent.fresh > 0 {
		return usage("an epoch does not fill a batch of %d samples, and the tail is dropped", m.plan.Batch)
	}
	var excluded int
	for i := range m.entries {
		excluded += len(m.entries[i].Exclude)
	}
	switch {
	case excluded > 0:
		return format.Errorf(format.ErrMissing, format.Nowhere, "no samples in %s but %d that are excluded", plural(len(m.entries), "shard"), excluded)
	case !m.counted && m.world > 1:
		return format.Errorf(format.ErrMissing, format.Nowhere, "no samples in the shards of rank %d of %d", m.rank, m.world)
	}
	return format.Errorf(format.ErrMissing, format.Nowhere, "no samples in %s", plural(len(m.entries), "shard"))
}

// told reports whether takes are told of.
func (m *Machine) told() bool { return m.take != nil }

// tell says that a sample of a counted shard is taken.
func (m *Machine) tell(reading int32, shard int32, index int64) error {
	ok, err := m.take(reading, m.epoch, shard, index)
	if err == nil && !ok {
		err = m.stale(shard, "it has no sample %d, but should have %d samples", index, m.entries[shard].Samples)
	}
	return err
}

func (m *Machine) stale(shard int32, msg string, args ...any) error {
	return format.Errorf(format.ErrStale, format.In(m.entries[shard].Name), msg, args...)
}

// Buffered appends one reference for each sample that was taken and that still
// has emissions to come, with the Copy that is next: what has to be fetched
// anew after Restore, besides what is taken from then on.
func (m *Machine) Buffered(dst []Ref) []Ref {
	for i := range m.lanes {
		l := &m.lanes[i]
		dst = append(dst, l.stream.refs...)
		for j := range l.echo.slots {
			if s := &l.echo.slots[j]; s.copy < s.times {
				ref := s.item
				if m.plan.Unit == Sample {
					ref.Copy = s.copy
				}
				dst = append(dst, ref)
			}
		}
	}
	for j := range m.batch.slots {
		s := &m.batch.slots[j]
		if s.copy >= s.times {
			continue
		}
		for _, ref := range s.item.refs {
			if ref.Kind != Padding {
				ref.Copy, ref.Times = s.copy, s.times
				dst = append(dst, ref)
			}
		}
	}
	return dst
}
