package order

// extent is how long an epoch is. For Batch as unit, the tail's rule is
// applied to the batches before they are repeated, else to what the lanes give.
type extent struct {
	steps   int64 // Unknown: as long as there is something
	batches int64 // that are gathered, before Batch echo; Unknown: as many as asked for
	fresh   int64 // samples of a pass, of all ranks; Unknown
	emitted int64 // references that are not Padding, of all ranks; Unknown
	whole   int64 // what would be emitted without a rule for the tail
}

// Steps returns how many steps the present epoch has, which are the same on
// all ranks; where the factor changes in its segments, how many it will have if
// the present one stays. They are not known where the counts are not and the
// plan does not give them.
func (m *Machine) Steps() (perEpoch int64, known bool) {
	if m.extent.steps == Unknown {
		return 0, false
	}
	return m.extent.steps, true
}

// Lengths returns how many samples there are to take in an epoch, before what
// the tail's rule leaves out, and how many references are emitted in it, if the
// factor stays, over all ranks, Padding not counted.
func (m *Machine) Lengths() (fresh, emitted int64, known bool) {
	if m.extent.fresh == Unknown || m.extent.emitted == Unknown {
		return 0, 0, false
	}
	return m.extent.fresh, m.extent.emitted, true
}

// places returns how many places the epoch of a lane has, where counts are
// known: its fresh samples, once for each copy of Shard echo.
func (m *Machine) places(lane int) int64 {
	each := int64(m.each)
	if m.sequential() {
		full, rest := m.length/int64(m.plan.Batch), m.length%int64(m.plan.Batch)
		return full*each + min(max(rest-int64(lane)*each, 0), each)
	}
	lengths := make([]int64, len(m.parts))
	for k := range m.parts {
		t := &m.parts[k]
		if m.plan.Unit == Shard {
			lengths[k] = m.deal(k, m.epoch, 0).places[lane]
			continue
		}
		lengths[k] = t.share(lane, m.plan.Lanes)
		if lane > 0 {
			lengths[k] -= t.share(lane-1, m.plan.Lanes)
		}
	}
	return m.blend.length(lengths, m.plan.Ends, lane)
}

// measure finds the extent of the epoch.
func (m *Machine) measure() error {
	m.extent = unmeasured
	if !m.counted {
		if m.plan.Steps > 0 && m.plan.Tail != TailKeep {
			m.extent.steps = m.plan.Steps
		}
		return nil
	}
	if m.sequential() {
		lengths := make([]int64, len(m.parts))
		for k := range m.parts {
			m.parts[k].lay(m.plan.Unit, m.factor)
			lengths[k] = m.parts[k].ladder.total()
		}
		m.length = m.blend.length(lengths, m.plan.Ends, 0)
		if len(m.blend) > 0 && m.length > maxSamples {
			return m.tooLong()
		}
	}
	return m.sum()
}

func (m *Machine) tooLong() error {
	return usage("the weights of the mix make an epoch of more than 2^45 samples until each data set was read once: stop with the first that ends, or weigh them otherwise")
}

var unmeasured = extent{steps: Unknown, batches: Unknown, fresh: Unknown, emitted: Unknown}

// sum adds up what the lanes give.
func (m *Machine) sum() error {
	m.extent = unmeasured
	x := &m.extent
	each := int64(m.each)
	var fresh, emitted int64
	batches := lengthOf{least: -1}
	steps := lengthOf{least: -1}
	for l := range m.plan.Lanes {
		n := m.places(l)
		if len(m.blend) > 0 && n > maxSamples {
			return m.tooLong()
		}
		e := n
		switch m.plan.Unit {
		case Sample:
			e = m.emissions(l, n)
		case Batch:
			// What a lane has of a last batch that is not full is repeated with it.
			full := m.repetitions(n / each)
			e = each*full + n%each*(m.repetitions(n/each+1)-full)
		}
		fresh += n
		emitted += e
		batches.add(n, each)
		steps.add(e, each)
	}
	x.fresh, x.whole = fresh, emitted
	if m.plan.Unit == Shard && m.factor > One {
		x.fresh = Unknown
		if len(m.parts) == 1 {
			x.fresh = m.parts[0].samples
		}
	}
	x.steps = steps.by(m.plan.Tail)
	if m.plan.Unit == Batch {
		x.batches = batches.by(m.plan.Tail)
		x.steps = m.repetitions(x.batches)
	}
	m.fit(fresh, emitted)
	return nil
}

// fit applies the steps that the plan gives.
func (m *Machine) fit(fresh, emitted int64) {
	x := &m.extent
	given, natural, whole := m.plan.Steps, x.steps, int64(m.plan.Batch)
	if given > 0 && fresh > 0 && (m.plan.Tail != TailKeep || given < natural) {
		x.steps = given
		if m.filled() == TailWrap {
			x.batches = Unknown
		}
	}
	cut := x.steps < natural
	switch {
	case x.steps == 0:
		x.emitted = 0
	case m.filled() != TailPad && m.plan.Tail != TailKeep:
		x.emitted = x.steps * whole
	case !cut:
		x.emitted = emitted
	case m.plan.Tail == TailKeep && m.plan.Unit != Batch:
		x.emitted = x.steps * whole
	case m.plan.Unit != Batch:
		x.emitted = 0
		for l := range m.plan.Lanes {
			n := m.places(l)
			if m.plan.Unit == Sample {
				n = m.emissions(l, n)
			}
			x.emitted += min(n, x.steps*int64(m.each))
		}
	case emitted == natural*whole:
		x.emitted = x.steps * whole // no batch has a hole
	}
}

// lengthOf is the least number of full batches among lanes, and the greatest
// of begun ones.
type lengthOf struct{ least, most int64 }

func (x *lengthOf) add(n, each int64) {
	if full := n / each; x.least < 0 || full < x.least {
		x.least = full
	}
	x.most = max(x.most, (n+each-1)/each)
}

func (x *lengthOf) by(t Tail) int64 {
	if t == TailDrop {
		return x.least
	}
	return x.most
}

// filled returns the rule for what lacks in a step: to drop the tail of an
// epoch whose steps are given would not fill them.
func (m *Machine) filled() Tail {
	if m.plan.Tail == TailDrop && m.plan.Steps > 0 {
		return TailWrap
	}
	return m.plan.Tail
}

func (m *Machine) pad(dst []Ref, n int) []Ref {
	for range n {
		dst = append(dst, Ref{Epoch: m.epoch, Shard: -1, Index: -1, Times: 1, Kind: Padding})
	}
	return dst
}

// fill appends what lacks of a lane's part of a step.
func (m *Machine) fill(dst []Ref, l *lane, missing int) ([]Ref, error) {
	switch m.filled() {
	case TailPad:
		return m.pad(dst, missing), nil
	case TailWrap:
		for range missing {
			dst = append(dst, Ref{})
			if err := l.src.wrap(&dst[len(dst)-1]); err != nil {
				return dst, err
			}
		}
	}
	return dst, nil
}
