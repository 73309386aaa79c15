package order

// positions is the source of a lane that takes its places of the epoch in turn
// with the other lanes, L at a time: None and Global with known counts.
//
//	place  0 1 2 3 4 5 6 7 | 8 9 ...
//	lane   0 0 1 1 2 2 3 3 | 0 0 ...     batch 8, 4 lanes, L = 2
//
// A place is found by itself, so what is kept is the next one.
type positions struct {
	m      *Machine
	lane   int
	global bool
	p      int64 // the next place
	k      int   // of the L in this step
	hint   []int // by part, the entry found last
}

func (s *positions) begin() {
	s.p, s.k = int64(s.lane)*int64(s.m.each), 0
	clear(s.hint)
}

// seek goes to the n-th place of the lane.
func (s *positions) seek(n int64) {
	each := int64(s.m.each)
	s.k = int(n % each)
	s.p = n/each*int64(s.m.plan.Batch) + int64(s.lane)*each + int64(s.k)
}

func (s *positions) advance() {
	s.p++
	if s.k++; s.k == s.m.each {
		s.k = 0
		s.p += int64(s.m.plan.Batch - s.m.each)
	}
}

func (s *positions) next(r *Ref) (bool, error) {
	m := s.m
	if s.p >= m.length {
		return false, nil
	}
	part := s.put(r, s.p)
	if m.told() {
		if s.global {
			part = -1
		}
		if err := m.tell(int32(part), r.Shard, r.Index); err != nil {
			return false, err
		}
	}
	m.taken = true
	s.advance()
	return true, nil
}

// wrap goes on in the lane's places beyond the end of the epoch: they are
// those of its start again, for all lanes together.
func (s *positions) wrap(r *Ref) error {
	round := s.p / s.m.length
	s.put(r, s.p%s.m.length)
	s.advance()
	r.wrap(round)
	return nil
}

// wrap makes a filling of a reference, in a round that counts from the fresh
// one, 0. It is emitted once and by itself.
func (r *Ref) wrap(round int64) {
	r.Kind = Wrapped
	r.Pass += int32(round)*r.Times + r.Copy
	r.Copy, r.Times = 0, 1
}

// put writes the sample at a place of the epoch, and returns the part it is
// of.
func (s *positions) put(r *Ref, p int64) int {
	m := s.m
	k, q := 0, p
	if len(m.blend) > 0 {
		k, q = m.blend.at(p, 0)
	}
	t := &m.parts[k]
	var pass int64
	if total := t.ladder.total(); q >= total {
		pass, q = q/total, q%total
	}
	e := s.hint[k]
	if s.global {
		q = t.permuted(m.plan.Seed, m.epoch, int32(pass), q)
		e = t.ladder.find(q)
	} else if q < t.ladder.sums[e] || q >= t.ladder.sums[e+1] {
		e = t.ladder.find(q)
		s.hint[k] = e
	}
	*r = Ref{Epoch: m.epoch, Shard: t.filled[e], Times: 1, Index: q - t.ladder.sums[e], Pass: int32(pass)}
	if t.factor > One {
		r.Times = t.times(e)
		r.Copy, r.Index = int32(r.Index/t.left[e]), r.Index%t.left[e]
	}
	if t.exclude {
		r.Index = kept(m.entries[r.Shard].Exclude, r.Index)
	}
	return k
}

// low returns where the part of the epoch from place p on begins in a part's
// runs: the run and the sample in it.
func (m *Machine) low(k int, p int64) (run int, index int64) {
	t := &m.parts[k]
	q := p
	if len(m.blend) > 0 {
		q = m.blend.count(p, k, 0)
	}
	total := t.ladder.total()
	if total == 0 {
		return 0, 0
	}
	pass, r := int(q/total), q%total
	e := t.ladder.find(r)
	r -= t.ladder.sums[e]
	run = pass*t.listed() + int(t.factor.total(int64(e), 0, 1)) + int(r/t.left[e])
	return run, kept(m.entries[t.filled[e]].Exclude, r%t.left[e])
}

// listed is how many runs a pass of the part has.
func (t *part) listed() int { return int(t.factor.total(int64(len(t.filled)), 0, 1)) }

// listedAt returns run i of the part's runs.
func (m *Machine) listedAt(k int, epoch int32, i int) (Run, bool) {
	t := &m.parts[k]
	f := One
	if m.plan.Unit == Shard {
		f = m.factorOf(epoch)
	}
	each := int(f.total(int64(len(t.filled)), 0, 1))
	if each == 0 {
		return Run{}, false
	}
	pass, j := i/each, i%each
	if pass > 0 && !m.restarts() {
		return Run{}, false
	}
	// The last entry before which no more than j are listed.
	e := int(((uint64(j)+1)<<32 - 1) / uint64(f))
	from := f.total(int64(e), 0, 1)
	entry := &m.entries[t.filled[e]]
	return Run{
		Epoch: epoch, Shard: t.filled[e], Pass: int32(pass),
		Copy: int32(int64(j) - from), Times: int32(f.total(int64(e)+1, 0, 1) - from),
		From: kept(entry.Exclude, 0), To: kept(entry.Exclude, entry.left()-1) + 1,
	}, true
}
