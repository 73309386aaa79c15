package echo

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Auto proposes the factor of the next stretch of a run from what the last one
// took: an epoch, or a segment of one. The zero value works. It is a function
// of what is measured, and remembers nothing: what was decided is in the state
// of the order, from which a run replays without measuring.
type Auto struct {
	Min, Max float64 // of the factor; 0 stand for 1 and MaxAdvised
	Quantum  float64 // factors are multiples of it, but for Min and Max; 0: 0.25
	Change   float64 // a share by which R must leave the factor before that follows; 0: 0.15
	Segment  int64   // steps after which the factor may change, as soon as enough of them are measured; 0: where an epoch begins only

	// Agree makes one value of what the ranks propose, such as the least of all
	// by an all-reduce. With more than one rank it must be given. It is called
	// on every rank at the same steps, whether or not that rank proposes a
	// change, and must return the same value everywhere, within Min and Max. The
	// loader calls it from a goroutine of its own, ahead of the trainer: what it
	// communicates by must not be what the trainer's steps do. It has to return
	// when ctx ends. nil: the proposal holds.
	Agree func(ctx context.Context, p Proposal) (float64, error)

	// StepTime tells how long a step takes on the accelerator, 0 as long as that
	// is not known. It has to be given where the trainer begins steps and does not
	// wait for their end: its own time is next to nothing then, as long as the
	// accelerator waits for input. The loader calls it from a goroutine of its own.
	// nil: a step takes as long as the trainer keeps the loader waiting.
	StepTime func() time.Duration
}

// Check reports what makes no sense, as ErrUsage. nil is fine.
func (a *Auto) Check() error {
	if a == nil {
		return nil
	}
	s := a.filled()
	switch {
	case !(s.Min >= 1 && s.Max <= maxFactor && s.Min <= s.Max):
		return usage("automatic echo factors from %v to %v: they are from 1 to %d, the least before the greatest", s.Min, s.Max, maxFactor)
	case !(s.Quantum >= 1e-6 && s.Quantum <= maxFactor):
		return usage("automatic echo factors that are multiples of %v", s.Quantum)
	case !(s.Change > 0 && s.Change < 1):
		return usage("automatic echo with a change of %v of the factor: it is a share, below 1", s.Change)
	case s.Segment < 0:
		return usage("automatic echo with a segment of %d steps", s.Segment)
	}
	return nil
}

// Accept says why a factor is not one that Auto may set: ErrUsage.
func (a *Auto) Accept(factor float64) error {
	if s := a.filled(); !(factor >= s.Min && factor <= s.Max) {
		return usage("automatic echo: a factor of %v, which is not within %v to %v", factor, s.Min, s.Max)
	}
	return nil
}

const maxFactor = 1 << 16 // as order.NewFactor has it

// filled returns the settings with their defaults.
func (a *Auto) filled() Auto {
	var s Auto
	if a != nil {
		s = *a
	}
	for _, d := range []struct {
		v *float64
		d float64
	}{{&s.Min, 1}, {&s.Max, max(MaxAdvised, s.Min)}, {&s.Quantum, 0.25}, {&s.Change, 0.15}} {
		if *d.v == 0 {
			*d.v = d.d
		}
	}
	return s
}

// Measured is what a stretch of a run took.
type Measured struct {
	Seconds  float64 // wall time of the stretch
	Batches  int64   // that the trainer took; 0: not counted
	Fresh    int64   // samples emitted for the first time
	Emitted  int64   // all emissions
	Fetched  int64   // samples that were fetched, which may be ahead of Fresh; 0: as many as the emissions need
	Fetching float64 // seconds in which at least one fetch was under way, and not held up for room
	Starved  float64 // seconds that the stages behind waited for fetched samples, with all their workers
	Decode   float64 // seconds of work, summed over the workers
	Augment  float64 // the same; what lays out a batch included
	Workers  int     // that decode and augment; 0 stands for 1
	Waited   float64 // seconds that the trainer waited for batches
	Trainer  float64 // seconds that the trainer kept the loader waiting: its own work
}

// Since returns what was measured after from, of the same run.
func (m Measured) Since(from Measured) Measured { return m.plus(&from, -1) }

// And returns what was measured in two stretches of the same set-up.
func (m Measured) And(other Measured) Measured { return m.plus(&other, 1) }

func (m Measured) plus(o *Measured, sign int64) Measured {
	m.Batches += sign * o.Batches
	m.Fresh += sign * o.Fresh
	m.Emitted += sign * o.Emitted
	m.Fetched += sign * o.Fetched
	by := float64(sign)
	m.Seconds += by * o.Seconds
	m.Fetching += by * o.Fetching
	m.Starved += by * o.Starved
	m.Decode += by * o.Decode
	m.Augment += by * o.Augment
	m.Waited += by * o.Waited
	m.Trainer += by * o.Trainer
	return m
}

// idle is the share of a stretch from which waiting counts. Where stages are
// balanced, and when a buffer runs dry for a moment, they wait for a per cent
// or two; a stage that is short of a tenth of its input waits for a tenth of the
// time. TestIdle shows what lies between.
const idle = 0.05

func (m Measured) starved() bool { return m.Starved > idle*m.Seconds }
func (m Measured) waited() bool  { return m.Waited > idle*m.Seconds }

// Costs are the costs of a sample that follow, for a run with the factor e.
//
// Fetch is the time in which anything was being fetched, by the samples that
// were. It says too much where fetches would overlap better if more were asked
// for at a time. Where samples are not counted as they are fetched, those that
// the emissions need are, and all of the time where the stages behind were
// starved, for then fetching set the pace.
//
// A buffer gives fresh samples later than it takes them, and gives fewer while
// it fills up. So those taken are counted by e, as emissions by e, rather than
// as they come out. Decode and Augment belong to what was decoded and augmented
// at this level: emissions, or fresh samples.
func (m Measured) Costs(u Unit, k Level, e float64) Costs {
	emitted := float64(m.Emitted)
	fresh := emitted / e
	if !(e >= 1) {
		fresh = float64(m.Fresh)
	}
	decoded, augmented := emitted, emitted
	switch natural(u, k) {
	case Decoded:
		decoded = fresh
	case Augmented, Batched:
		decoded, augmented = fresh, fresh
	}
	fetching, fetched := min(m.Fetching, m.Seconds), float64(m.Fetched)
	if m.Fetched == 0 {
		fetched = fresh
		if m.starved() {
			fetching = m.Seconds
		}
	}
	workers := float64(max(1, m.Workers))
	return Costs{
		Fetch:   per(fetching, fetched),
		Decode:  per(m.Decode/workers, decoded),
		Augment: per(m.Augment/workers, augmented),
		Step:    per(m.Trainer, emitted),
	}
}

func per(seconds, n float64) float64 {
	if !(n > 0) {
		return 0
	}
	return seconds / n
}

// tooLittle says what was not measured well enough to decide by.
func (m Measured) tooLittle() string {
	for _, v := range []float64{m.Seconds, m.Fetching, m.Starved, m.Decode, m.Augment, m.Waited, m.Trainer} {
		if !(v >= 0) || math.IsInf(v, 1) {
			return "what was measured makes no sense"
		}
	}
	switch {
	case m.Batches == 1:
		return "only one batch was measured"
	case m.Emitted <= 0 || m.Seconds == 0:
		return "nothing was measured"
	case m.Trainer == 0:
		return "the trainer took no time that was measured"
	}
	return ""
}

// Proposal is a factor for the next stretch, and why. Reason is for people, and
// for the log.
type Proposal struct {
	Step   int64 // of the epoch, at which the factor is to begin; the loader sets it
	Epoch  int32 // the same
	From   float64
	Factor float64 // From where nothing is to change
	R      float64 // as measured; 0 where too little was
	Costs  Costs
	Reason string
}

// Propose returns the factor for the next stretch. from is that of the one that
// was measured.
//
// The factor goes for R, rounded down to the quantum, within the bounds. It
// stays while R is within the share Change of it, and goes half the way while R
// is within twice that: what is measured is noisy, and a factor that follows one
// stretch all the way leaves it again after the next. It does not rise where the
// trainer did not wait: the input keeps up, and R is then only known not to be
// greater. It falls to no less than half at a time, for a network that is calm
// may not stay so.
func (a *Auto) Propose(from float64, m Measured, u Unit, k Level) Proposal {
	p := Proposal{From: from, Factor: from}
	if a != nil && a.StepTime != nil {
		if step := a.StepTime().Seconds(); step > 0 {
			m.Trainer = step * float64(m.Batches)
		}
	}
	if p.Reason = m.tooLittle(); p.Reason != "" {
		return p
	}
	s := a.filled()
	p.Costs = m.Costs(u, k, from)
	p.R = p.Costs.R(u, k)
	r := min(max(p.R, s.Min), s.Max)
	target := s.round(r)
	why := "is close to the factor"
	switch inside := from >= s.Min && from <= s.Max; {
	case inside && within(r, from, s.Change):
	case inside && target > from && !m.waited():
		why = "would be more, but the trainer hardly waited"
	case target > from:
		p.Factor, why = s.rise(from, target, r), "is room for more copies"
	case target < from:
		p.Factor, why = s.fall(from, target, r), "is less than the copies take"
	}
	up, down := p.Costs.Split(u, k)
	p.Reason = fmt.Sprintf("a fresh sample takes %s up to the echo, and an emission %s behind it: R = %.3g %s", span(up), span(down), p.R, why)
	return p
}

func within(r, factor, share float64) bool {
	return r < factor*(1+share) && factor <= r*(1+share)
}

func (a *Auto) rise(from, target, r float64) float64 {
	if within(r, from, 2*a.Change) {
		return min(target, a.round((from+r+a.Quantum)/2)) // half the way, to the nearest multiple
	}
	return target
}

func (a *Auto) fall(from, target, r float64) float64 {
	if within(r, from, 2*a.Change) {
		return max(target, a.round((from+r)/2))
	}
	return max(target, a.round(from/2))
}

// exact is the share up to which measured times are taken to be exact: an R
// that is not further below a multiple of the quantum is that multiple.
const exact = 0.01

// round returns the greatest multiple of the quantum that is not above r, but
// within the bounds.
func (a *Auto) round(r float64) float64 {
	return min(max(math.Floor(r*(1+exact)/a.Quantum)*a.Quantum, a.Min), a.Max)
}
