package echo

import (
	"fmt"
	"math"
	"strconv"
)

// Costs are what one sample costs, in seconds of wall time of a stage that runs
// by itself, with all its workers. What was not measured is 0.
type Costs struct {
	Fetch   float64 // of a fresh sample, until its bytes are there
	Decode  float64 // of reading and decoding it, by all workers together
	Augment float64 // of making an emission from decoded pixels: augment, lay out; by the same workers
	Step    float64 // of an emission on the accelerator: the time of a batch's step by its samples; 0: not known
}

// Split returns the two times of the paper's law, in seconds: up, of what
// stands before the echo, for a fresh sample, and down, of what stands behind
// it, for an emission. Stages run side by side, so the slowest counts:
//
//	kept       up                            down
//	bytes      fetch                         max(decode + augment, step)
//	decoded    max(fetch, decode)            max(augment, step)
//	augmented  max(fetch, decode + augment)  step
//	batch      max(fetch, decode + augment)  step
func (c Costs) Split(u Unit, k Level) (up, down float64) {
	switch natural(u, k) {
	case Decoded:
		return max(c.Fetch, c.Decode), max(c.Augment, c.Step)
	case Augmented, Batched:
		return max(c.Fetch, c.Decode+c.Augment), c.Step
	}
	return c.Fetch, max(c.Decode+c.Augment, c.Step)
}

// natural fills in the level that a unit keeps by itself.
func natural(u Unit, k Level) Level {
	switch {
	case k != Natural:
		return k
	case u == Batch:
		return Batched
	}
	return Bytes
}

// R is up/down of Split, the paper's R: up to this factor echo costs no time.
// It is +Inf where down is 0.
func (c Costs) R(u Unit, k Level) float64 {
	up, down := c.Split(u, k)
	if down == 0 {
		return math.Inf(1)
	}
	return up / down
}

// PerFresh predicts the seconds that one fresh sample takes with its e
// emissions, e of 1 or more:
//
//	bytes      max(fetch, e (decode + augment), e step)
//	decoded    max(fetch, decode + e augment, e step)
//	augmented  max(fetch, decode + augment, e step)
//	batch      max(fetch, decode + augment, e step)
//
// It is the paper's max(up, e down) where the stages before and behind the echo
// are different machines. Ours share the cores: what the workers do before the
// echo and behind it adds up.
func (c Costs) PerFresh(u Unit, k Level, e float64) float64 {
	var work float64
	switch natural(u, k) {
	case Decoded:
		work = c.Decode + e*c.Augment
	case Augmented, Batched:
		work = c.Decode + c.Augment
	default:
		work = e * (c.Decode + c.Augment)
	}
	return max(c.Fetch, work, e*c.Step)
}

// PerEmission is PerFresh(u, k, e) / e.
func (c Costs) PerEmission(u Unit, k Level, e float64) float64 {
	return c.PerFresh(u, k, e) / e
}

// Speedup predicts how many times sooner a model reaches its target with the
// factor e than without echo, where up takes r times as long as down:
//
//	F(1)/F(e) × max(r, 1)/max(r, e)
//
// (arXiv 1907.05550). F(e) is the number of fresh samples to the target, a
// matter of the model and its data, and freshRatio is F(1)/F(e): e if every
// copy were worth a fresh sample, 1 if copies were worth nothing.
func Speedup(r, e, freshRatio float64) float64 {
	return freshRatio * max(r, 1) / max(r, e)
}

// MaxAdvised is the greatest factor that Recommend gives, and that Auto takes
// unless it is told otherwise. The paper's savings end at factors of about 4 to
// 16, by workload: beyond, copies stand in for too little that is fresh.
const MaxAdvised = 8

// Advice is what Recommend says.
type Advice struct {
	Unit        Unit
	Keep        Level
	Factor      float64 // 1: no echo
	R           float64 // of this unit and level; see Costs.R
	PerFresh    float64 // predicted, in seconds, with this factor
	PerEmission float64
	FreshPerS   float64 // their inverses; 0 where nothing was measured
	EmittedPerS float64
	Bottleneck  string // without echo: fetch, decode, augment or accelerator; "" where nothing was measured
	Reason      string // for people
}

// choices are what Recommend chooses from, in the paper's order of preference:
// samples before batches, and copies that are augmented anew before equal ones.
// A later one is taken for a gain only, of so many times the emissions a
// second: decoded costs memory, and equal copies teach less. The costs say
// nothing for a batch or a shard that a sample would not have as well.
var choices = []struct {
	keep Level
	gain float64
}{
	{Bytes, 1},
	{Decoded, 1.05},
	{Augmented, 1.5},
}

// Recommend chooses unit, level and factor. It gives no factor above R, and so
// none where the accelerator is the bottleneck; whole numbers where R is 2 or
// more; and MaxAdvised at most. Without a step time it knows of the loader's
// own stages only, and keeps to levels whose copies are augmented anew.
func (c Costs) Recommend() Advice {
	name, slowest := c.slowest()
	if slowest == 0 {
		return Advice{Keep: Bytes, Factor: 1, Reason: "nothing was measured that takes time"}
	}
	var best Advice
	for _, choice := range choices {
		if choice.keep == Augmented && c.Step == 0 {
			continue
		}
		a := c.advise(choice.keep)
		if choice.keep == Bytes || a.EmittedPerS >= best.EmittedPerS*choice.gain {
			best = a
		}
	}
	best.Bottleneck = name
	best.Reason = c.reason(best, slowest)
	return best
}

func (c Costs) advise(k Level) Advice {
	a := Advice{Unit: Sample, Keep: k, R: c.R(Sample, k)}
	a.Factor = advised(a.R)
	a.PerFresh = c.PerFresh(Sample, k, a.Factor)
	a.PerEmission = a.PerFresh / a.Factor
	a.FreshPerS, a.EmittedPerS = 1/a.PerFresh, 1/a.PerEmission
	return a
}

// advised rounds R down to a factor: to quarters below 2, else to whole
// numbers, whose copies are the same for all samples.
func advised(r float64) float64 {
	r = min(r+ulps, MaxAdvised)
	switch {
	case r < 1:
		return 1
	case r < 2:
		return math.Floor(4*r) / 4
	}
	return math.Floor(r)
}

// ulps makes up for what a quotient is short of a whole number by rounding.
const ulps = 1e-9

// slowest is the stage that takes longest for a sample without echo. Decoding
// and augmenting are the work of the same cores, and so are one stage, named by
// the longer of the two.
func (c Costs) slowest() (string, float64) {
	work := c.Decode + c.Augment
	switch {
	case c.Step > 0 && c.Step >= max(c.Fetch, work):
		return "accelerator", c.Step
	case c.Fetch >= work:
		return "fetch", c.Fetch
	case c.Decode >= c.Augment:
		return "decode", work
	}
	return "augment", work
}

// reason says why.
func (c Costs) reason(a Advice, slowest float64) string {
	var what string
	switch a.Bottleneck {
	case "accelerator":
		return fmt.Sprintf("the accelerator takes longest, %s a sample, and the input keeps up: copies would take the place of fresh samples", span(c.Step))
	case "fetch":
		what = "fetching"
	default:
		what = "decoding and augmenting"
	}
	what += fmt.Sprintf(" takes longest, %s a sample", span(slowest))
	_, down := c.Split(a.Unit, a.Keep)
	behind := "what stands behind the echo"
	if c.Step > 0 && down == c.Step {
		behind = "a step"
	}
	if a.Factor == 1 {
		return fmt.Sprintf("%s, but what stands before the echo takes %s times as long as %s: too little for copies", what, times(a.R), behind)
	}
	ratio := fmt.Sprintf("%s; up to the echo it is %s times as long as %s", what, times(a.R), behind)
	if math.IsInf(a.R, 1) {
		ratio = what + "; what stands behind the echo takes no time that was measured"
	}
	copies := map[Level]string{
		Bytes:     "each sample that is fetched can be decoded and augmented %s times",
		Decoded:   "each sample that is decoded can be augmented anew %s times",
		Augmented: "augmenting is too slow to be done for each copy, so each sample can be given %s times as it is",
	}[a.Keep]
	s := ratio + ": " + fmt.Sprintf(copies, times(a.Factor))
	if left := c.PerFresh(a.Unit, a.Keep, 1) / a.PerFresh; left < 0.95 {
		s += fmt.Sprintf("; the cores' work for the copies leaves %.0f%% of the fresh samples", 100*left)
	}
	if c.Step == 0 {
		s += "; the accelerator's step time is not known, and bounds this"
	}
	return s
}

func times(e float64) string { return strconv.FormatFloat(math.Round(e*100)/100, 'g', -1, 64) }

// span writes seconds as people read them.
func span(seconds float64) string {
	switch {
	case seconds >= 1:
		return fmt.Sprintf("%.3g s", seconds)
	case seconds >= 1e-3:
		return fmt.Sprintf("%.3g ms", seconds*1e3)
	case seconds >= 1e-6:
		return fmt.Sprintf("%.3g µs", seconds*1e6)
	}
	return fmt.Sprintf("%.3g ns", seconds*1e9)
}
