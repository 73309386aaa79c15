package order

import "sort"

// Run is a stretch of a shard that is read in order.
type Run struct {
	Epoch, Shard int32
	Pass         int32 // of its part in this epoch, from 0
	Copy, Times  int32 // Shard echo: the run is listed Times times in a row
	From, To     int64 // its first sample, and the one after its last; To Unknown: the end of the shard
}

// OpenRun is a run that is being read.
type OpenRun struct {
	I int // its ordinal in its reading
	Run
	At int64 // the next sample that is taken of it
}

// Readings returns how many sequences of runs this rank reads side by side,
// numbered from 0: with None and known counts one for each part of the plan;
// with Global, which takes samples at random, none; else one for each lane of
// the rank and part, lane after lane.
func (m *Machine) Readings() int {
	switch {
	case !m.sequential():
		return len(m.lanes) * len(m.parts)
	case m.plan.Shuffle == Global:
		return 0
	}
	return len(m.parts)
}

// Open returns how many runs of a reading are open at a time.
func (m *Machine) Open() int {
	if m.plan.Shuffle.mode >= block {
		return max(1, m.plan.Shuffle.open/m.plan.Lanes)
	}
	return 1
}

// sequential reports whether lanes take the places of an epoch in turn.
func (m *Machine) sequential() bool { return m.counted && m.plan.Shuffle.mode < block }

// restarts reports whether parts begin anew within an epoch.
func (m *Machine) restarts() bool { return len(m.parts) > 1 && m.plan.Ends == Restart }

func (m *Machine) factorOf(epoch int32) Factor {
	if epoch == m.epoch {
		return m.factor
	}
	return m.upcoming()
}

// Run returns the i-th run of a reading in an epoch; false says that there is
// none. It is a function of the plan. Runs are opened in this order, [Open] at
// a time: when one ends, the next is opened. Where a part of a mix begins
// anew, its runs go on for ever; an epoch's end cuts them.
func (m *Machine) Run(reading int, epoch int32, i int) (Run, bool) {
	if i < 0 || epoch < 0 || reading < 0 || reading >= m.Readings() || m.plan.Epochs != Endless && int(epoch) >= m.plan.Epochs {
		return Run{}, false
	}
	if m.sequential() {
		return m.listedAt(reading, epoch, i)
	}
	local, k := reading/len(m.parts), reading%len(m.parts)
	pass, i := m.passOf(reading, epoch, i)
	l := &m.deal(k, epoch, pass).lists[local]
	if i >= l.count {
		return Run{}, false
	}
	return l.run(epoch, pass, i), true
}

// passStarts are the ordinals of the first runs of the passes of a reading in
// an epoch.
type passStarts struct {
	epoch int32
	at    []int
}

// passOf returns the pass that the i-th run is of, and its place in it. In a
// reading that does not begin anew, that place may be beyond the end.
func (m *Machine) passOf(reading int, epoch int32, i int) (pass int32, place int) {
	if !m.restarts() {
		return 0, i
	}
	s := &m.starts[reading][epoch&1]
	if s.epoch != epoch || len(s.at) == 0 {
		s.epoch, s.at = epoch, append(s.at[:0], 0)
	}
	local, k := reading/len(m.parts), reading%len(m.parts)
	for {
		n := len(s.at) - 1
		if i < s.at[n] {
			break
		}
		s.at = append(s.at, s.at[n]+m.deal(k, epoch, int32(n)).lists[local].count)
	}
	p := sort.SearchInts(s.at, i+1) - 1
	return int32(p), i - s.at[p]
}

// Opened returns the runs of a reading that are open now, in the present
// epoch, and the ordinal of the one that is opened next. Nothing is open
// before the first sample is taken.
func (m *Machine) Opened(reading int) (open []OpenRun, next int) {
	if reading < 0 || reading >= m.Readings() {
		return nil, 0
	}
	if m.sequential() {
		if !m.taken {
			return nil, 0
		}
		i, at := m.Low(reading)
		run, ok := m.listedAt(reading, m.epoch, i)
		if !ok {
			return nil, i
		}
		return []OpenRun{{i, run, at}}, i + 1
	}
	r := m.reading(reading)
	for i := range r.open {
		open = append(open, r.open[i].OpenRun)
	}
	return open, r.base + r.next
}

// Low returns a run of a reading and a sample of it: nothing before them will
// be taken any more in the present epoch, neither earlier runs nor earlier
// samples of this one.
func (m *Machine) Low(reading int) (run int, index int64) {
	if reading < 0 || reading >= m.Readings() {
		return 0, 0
	}
	if m.sequential() {
		p := m.length
		for i := range m.lanes {
			p = min(p, m.lanes[i].src.(*positions).p)
		}
		return m.low(reading, p)
	}
	r := m.reading(reading)
	run, index = r.base+r.next, 0
	for i := range r.open {
		if o := &r.open[i]; o.I < run {
			run, index = o.I, o.At
		}
	}
	return run, index
}

func (m *Machine) reading(i int) *reading {
	return &m.lanes[i/len(m.parts)].src.(*dealt).readings[i%len(m.parts)]
}

// deal is how the shards of a part are dealt to lanes in a pass of it.
type deal struct {
	part        int
	epoch, pass int32
	factor      Factor
	lists       []list  // of this rank's lanes
	places      []int64 // of all lanes: samples, once for each copy of Shard echo
}

// list is the runs of a lane.
type list struct {
	runs  []stretch
	count int // of runs, copies included
}

type stretch struct {
	shard    int32
	times    int32
	from, to int64
	first    int // ordinal of its first copy
}

func (l *list) add(s stretch) {
	s.first = l.count
	l.runs = append(l.runs, s)
	l.count += int(s.times)
}

// run returns the i-th run, which there is.
func (l *list) run(epoch, pass int32, i int) Run {
	j := i
	if l.count > len(l.runs) {
		j = sort.Search(len(l.runs), func(j int) bool { return l.runs[j].first > i }) - 1
	}
	s := &l.runs[j]
	return Run{Epoch: epoch, Shard: s.shard, Pass: pass, Copy: int32(i - s.first), Times: s.times, From: s.from, To: s.to}
}

// deal returns how part k is dealt. The last few are kept: lanes may be a pass
// apart, and who fetches looks ahead into the next epoch.
func (m *Machine) deal(k int, epoch, pass int32) *deal {
	f := One
	if m.plan.Unit == Shard {
		f = m.factorOf(epoch)
	}
	for _, d := range m.deals {
		if d.part == k && d.epoch == epoch && d.pass == pass && d.factor == f {
			return d
		}
	}
	d := &deal{part: k, epoch: epoch, pass: pass, factor: f, lists: make([]list, len(m.lanes))}
	if m.counted {
		m.share(d)
	} else {
		m.dealWhole(d)
	}
	if len(m.deals) == 4*len(m.parts) {
		m.deals = append(m.deals[:0], m.deals[1:]...)
	}
	m.deals = append(m.deals, d)
	return d
}

// sequence calls visit with the entries of a part in the order of a pass.
func (m *Machine) sequence(d *deal, visit func(e int)) {
	n := len(m.parts[d.part].filled)
	if m.plan.Shuffle == None {
		for e := range n {
			visit(e)
		}
		return
	}
	p := newPermutation(int64(n), Hash(m.plan.Seed, ForShards, uint64(d.epoch), uint64(d.part), uint64(d.pass)))
	for i := range n {
		visit(int(p.at(uint64(i))))
	}
}

// share cuts the samples of a part, in the order of a pass, into as many
// stretches as there are lanes.
func (m *Machine) share(d *deal) {
	t := &m.parts[d.part]
	lanes := m.plan.Lanes
	d.places = make([]int64, lanes)
	lane, at := 0, int64(0)
	end := t.share(0, lanes)
	var acc accumulator
	m.sequence(d, func(e int) {
		for r := int64(0); r < t.left[e]; {
			for at == end {
				lane++
				end = t.share(lane, lanes)
				acc.begin(lane, lanes)
			}
			n := min(end-at, t.left[e]-r)
			times := acc.times(d.factor)
			d.places[lane] += n * int64(times)
			if local := lane - m.lanes[0].number; local >= 0 && local < len(m.lanes) {
				d.lists[local].add(m.stretch(t.filled[e], r, r+n, times))
			}
			at, r = at+n, r+n
		}
	})
}

// share returns where the samples of a lane end.
func (t *part) share(lane, lanes int) int64 {
	n := int64(lanes)
	// In two terms, so that no product exceeds 63 bits.
	return t.samples/n*int64(lane+1) + t.samples%n*int64(lane+1)/n
}

// stretch returns the run of a counted shard that has the samples from to
// to-1, what is excluded left out.
func (m *Machine) stretch(shard int32, from, to int64, times int32) stretch {
	x := m.entries[shard].Exclude
	return stretch{shard: shard, times: times, from: kept(x, from), to: kept(x, to-1) + 1}
}

// dealWhole deals whole shards to the lanes in turn.
func (m *Machine) dealWhole(d *deal) {
	t := &m.parts[d.part]
	accs := make([]accumulator, len(m.lanes))
	for i := range accs {
		accs[i].begin(m.lanes[i].number, m.plan.Lanes)
	}
	at := 0
	m.sequence(d, func(e int) {
		local := at%m.plan.Lanes - m.lanes[0].number
		at++
		if local < 0 || local >= len(m.lanes) {
			return
		}
		s := stretch{shard: t.filled[e], to: Unknown, times: accs[local].times(d.factor)}
		if entry := &m.entries[s.shard]; entry.Samples != Unknown {
			s = m.stretch(s.shard, 0, entry.left(), s.times)
		}
		d.lists[local].add(s)
	})
}

// whole returns the runs of all of a part, for a lane that has none of it.
func (m *Machine) whole(k int, epoch int32) *list {
	t := &m.parts[k]
	l := &list{}
	m.sequence(&deal{part: k, epoch: epoch}, func(e int) {
		l.add(m.stretch(t.filled[e], 0, t.left[e], 1))
	})
	return l
}
