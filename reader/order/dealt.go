package order

import (
	"slices"

	"shardtool/format"
)

// dealt is the source of a lane that has shards, or stretches of them, of its
// own: it keeps a few open and picks the next sample from one of them by hash.
//
//	list of the pass   [run 5] [run 6] [run 7] ...      not opened yet
//	open               run 1 @17   run 3 @4   run 4 @0  next one by hash
type dealt struct {
	m        *Machine
	lane     int
	local    int   // among the rank's lanes
	length   int64 // places of the epoch; Unknown where counts are
	n        int64 // taken so far
	seed     uint64
	readings []reading // one for each part
	ended    bool

	again  *dealt // what wraps: the same from the start, without telling
	quiet  bool
	rounds int64 // of again that are over
}

// reading is where a lane stands in a part.
type reading struct {
	number int32
	list   *list
	pass   int32
	base   int // runs of earlier passes
	next   int // the next run of this pass
	given  bool
	ended  bool // read once
	open   []cursor
}

// cursor is an open run.
type cursor struct {
	OpenRun
	exclude []int64 // what is left of it, from At on
}

func newDealt(m *Machine, local, lane int) *dealt {
	d := &dealt{m: m, lane: lane, local: local, readings: make([]reading, len(m.parts))}
	for k := range d.readings {
		d.readings[k].number = int32(local*len(m.parts) + k)
	}
	return d
}

func (d *dealt) begin() {
	d.length, d.n, d.ended, d.rounds = Unknown, 0, false, 0
	if d.m.counted {
		d.length = d.m.places(d.lane)
	}
	d.seed = Hash(d.m.plan.Seed, ForRun, uint64(d.m.epoch), uint64(d.lane))
	for k := range d.readings {
		r := &d.readings[k]
		*r = reading{number: r.number, open: r.open[:0]}
	}
	d.again = nil
}

// next takes the lane's next sample.
func (d *dealt) next(to *Ref) (bool, error) {
	if d.ended || d.n == d.length {
		return false, nil
	}
	k := 0
	if len(d.m.blend) > 0 {
		k, _ = d.m.blend.at(d.n, d.lane)
	}
	ok, err := d.read(k, to)
	if ok {
		d.n++
	}
	return ok, err
}

// read takes the next sample of a part, which begins anew where it must.
func (d *dealt) read(k int, to *Ref) (bool, error) {
	r := &d.readings[k]
	for {
		if r.list == nil {
			r.list = d.listOf(k, r.pass)
		}
		if ok, err := d.pick(r, to); ok || err != nil {
			return ok, err
		}
		r.ended = true
		if d.over() {
			d.ended = true
			return false, nil
		}
		if !r.given {
			return false, format.Errorf(format.ErrMissing, format.Nowhere,
				"no samples in the shards of data set %d of the mix that rank %d of %d reads", k, d.m.rank, d.m.world)
		}
		r.base += r.list.count
		r.list, r.next, r.given = nil, 0, false
		r.pass++
	}
}

// over reports whether the lane ends, now that a part has.
func (d *dealt) over() bool {
	if !d.m.restarts() {
		return true
	}
	for k := range d.readings {
		if !d.readings[k].ended {
			return false
		}
	}
	return true
}

func (d *dealt) listOf(k int, pass int32) *list {
	l := &d.m.deal(k, d.m.epoch, pass).lists[d.local]
	if d.quiet && d.m.counted && l.count == 0 {
		return d.m.whole(k, d.m.epoch)
	}
	return l
}

// pick takes a sample from one of the open runs; it reports false where the
// pass is over.
func (d *dealt) pick(r *reading, to *Ref) (bool, error) {
	if r.next == 0 {
		for len(r.open) < d.m.Open() && r.next < r.list.count {
			r.open = append(r.open, d.opened(r))
		}
	}
	for len(r.open) > 0 {
		i := 0
		if len(r.open) > 1 {
			i = below(extend(d.seed, uint64(d.n)), len(r.open))
		}
		c := &r.open[i]
		ok, err := d.has(r, c)
		if err != nil {
			return false, err
		}
		if !ok {
			d.close(r, i)
			continue
		}
		d.m.taken, r.given = true, true
		*to = Ref{Epoch: c.Epoch, Shard: c.Shard, Copy: c.Copy, Times: c.Times, Index: c.At, Pass: c.Pass}
		c.At++
		c.skip()
		if c.To != Unknown && c.At >= c.To {
			d.close(r, i)
		}
		return true, nil
	}
	return false, nil
}

// opened opens the next run of the pass.
func (d *dealt) opened(r *reading) cursor {
	run := r.list.run(d.m.epoch, r.pass, r.next)
	c := cursor{OpenRun: OpenRun{I: r.base + r.next, Run: run, At: run.From}, exclude: d.m.entries[run.Shard].Exclude}
	first, _ := slices.BinarySearch(c.exclude, run.From)
	c.exclude = c.exclude[first:]
	c.skip()
	r.next++
	return c
}

// skip passes over what is excluded.
func (c *cursor) skip() {
	for len(c.exclude) > 0 && c.exclude[0] == c.At {
		c.At++
		c.exclude = c.exclude[1:]
	}
}

// close puts the next run in the place of one that ended.
func (d *dealt) close(r *reading, i int) {
	if r.next < r.list.count {
		r.open[i] = d.opened(r)
		return
	}
	r.open = slices.Delete(r.open, i, i+1)
}

// has asks whether a run goes on, and remembers where a shard of unknown count
// ends. What was learned is not trusted for a shard that is read again, but
// must hold.
func (d *dealt) has(r *reading, c *cursor) (bool, error) {
	m := d.m
	told := m.told() && !d.quiet
	if c.To != Unknown {
		if !told {
			return true, nil
		}
		return true, m.tell(r.number, c.Shard, c.At)
	}
	count, learned := m.counts[c.Shard]
	if !told {
		return !learned || c.At < count, nil
	}
	ok, err := m.take(r.number, c.Epoch, c.Shard, c.At)
	switch {
	case err != nil:
		return false, err
	case learned && ok != (c.At < count):
		return false, m.stale(c.Shard, "it ended at sample %d when it was read before: sample %d is there now: %v", count, c.At, ok)
	case !ok && !learned:
		m.learn(Count{c.Shard, c.At})
	}
	return ok, nil
}

func (m *Machine) learn(c Count) {
	if m.counts == nil {
		m.counts = map[int32]int64{}
	}
	m.counts[c.Shard] = c.Samples
	m.learned = append(m.learned, c)
}

// wrap gives the lane's samples from the epoch's start again. A lane without
// any of its own gives those of the whole epoch.
func (d *dealt) wrap(to *Ref) error {
	if d.again == nil {
		d.again = newDealt(d.m, d.local, d.lane)
		d.again.quiet = true
		d.rewind()
	}
	for fresh := false; ; fresh = true {
		ok, err := d.again.next(to)
		switch {
		case err != nil:
			return err
		case ok:
			to.wrap(d.rounds + 1)
			return nil
		case fresh:
			return format.Errorf(format.ErrMissing, format.Nowhere,
				"no samples in the shards that lane %d of %d reads, of rank %d of %d", d.lane, d.m.plan.Lanes, d.m.rank, d.m.world)
		}
		d.rewind()
		d.rounds++
	}
}

func (d *dealt) rewind() {
	d.again.begin()
	if d.length == 0 {
		d.again.length = Unknown // that of the whole epoch
	}
}
