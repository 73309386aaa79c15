package bench

import (
	"math"
	"slices"
	"time"

	"shardtool/echo"
	"shardtool/loader"
)

// count is what batches amount to.
type count struct {
	fresh, emitted int64 // samples
	bytes, pixels  int64
}

func (c *count) add(o count) {
	c.fresh += o.fresh
	c.emitted += o.emitted
	c.bytes += o.bytes
	c.pixels += o.pixels
}

// usage is what had been spent at some instant.
type usage struct {
	cpu       time.Duration
	allocs    uint64
	stages    []loader.Stage
	measured  echo.Measured
	busy      time.Duration
	waited    time.Duration // of a simulated device, for input
	simulated bool
}

// window decides which batches count, from the instants at which they were
// finished. See the package comment.
type window struct {
	warmup, length time.Duration

	batches  int       // finished in the warm-up
	begun    time.Time // the first of these
	fresh    int64     // samples that have come in the warm-up
	due      int64     // that must have come before the window opens
	early    bool      // it opened before they had
	opened   time.Time
	last     time.Time // end of the last batch that counts
	total    count
	marks    []mark          // at opened, and at the end of each batch that counts
	gaps     []time.Duration // between the ends of batches that count
	from, to usage           // at opened and at last
}

// mark is what had been counted at the end of a batch.
type mark struct {
	at    time.Time
	total count
	cpu   time.Duration
}

// warmupBatches is how many must be finished before the window opens, however
// long that takes: all that were made ahead while nobody waited, and one.
const warmupBatches = prefetch + 1

// patience is how many times as long as it was to the warm-up may last, and the
// window without anything fresh.
const patience = 10

func newWindow(warmup, length time.Duration) *window {
	return &window{warmup: warmup, length: length}
}

// finished is told of each batch when it is finished. It asks for the usage
// where it matters, and reports false when the window is closed. A window
// waits for a fresh sample, as copies alone would make a rate of nothing, but no
// longer than patience allows: there may be none to come. Where the last batch
// that fits ends long before it, the next one counts too: batches may come in
// bursts, with a long wait behind.
func (w *window) finished(now time.Time, c count, spent func() usage) (more bool) {
	if w.opened.IsZero() {
		w.warm(now, c, spent)
		return true
	}
	since := now.Sub(w.opened)
	if since > w.length && w.total.fresh > 0 && w.last.Sub(w.opened) >= w.length-w.length/10 {
		return false
	}
	w.gaps = append(w.gaps, now.Sub(w.last))
	w.last = now
	w.total.add(c)
	w.to = spent()
	w.marks = append(w.marks, mark{now, w.total, w.to.cpu})
	return since < w.length || w.total.fresh == 0 && since < patience*w.length
}

// warm opens the window when the pipeline runs as it will go on: what had been
// fetched ahead of the first batch has been used by then.
func (w *window) warm(now time.Time, c count, spent func() usage) {
	w.fresh += c.fresh
	if w.batches++; w.batches == 1 {
		w.begun, w.due = now, spent().measured.Fetched
	}
	took := now.Sub(w.begun)
	if w.batches < warmupBatches || took < w.warmup {
		return
	}
	if w.early = w.fresh < w.due; w.early && took < patience*w.warmup {
		return
	}
	w.opened, w.last, w.from = now, now, spent()
	w.marks = append(w.marks, mark{now, count{}, w.from.cpu})
}

// outcome is what one window held, or several of the same set-up.
type outcome struct {
	total    count
	seconds  float64
	gaps     []time.Duration
	slices   []Slice
	stages   []loader.Stage // the device included
	measured echo.Measured
	whole    echo.Measured // since loading began
	busy     float64       // seconds of the device
	waited   float64       // of a simulated one, for input
	cpu      time.Duration
	allocs   uint64
	early    bool
	stale    bool        // a window closed without a fresh sample
	played   bool        // the device is simulated
	echo     loader.Echo // of the whole run, warm-up included
}

func (w *window) outcome() outcome {
	return outcome{
		total: w.total, seconds: w.last.Sub(w.opened).Seconds(), gaps: w.gaps, slices: w.slices(), stages: w.stages(),
		measured: w.to.measured.Since(w.from.measured), whole: w.to.measured,
		busy: (w.to.busy - w.from.busy).Seconds(), waited: (w.to.waited - w.from.waited).Seconds(),
		cpu: w.to.cpu - w.from.cpu, allocs: w.to.allocs - w.from.allocs, early: w.early, stale: w.total.fresh == 0, played: w.to.simulated,
	}
}

// realised is how many emissions there were of a fresh sample; infinite where
// there was none.
func (o *outcome) realised() float64 {
	if o.total.fresh == 0 {
		return math.Inf(1)
	}
	return float64(o.total.emitted) / float64(o.total.fresh)
}

// add adds another outcome of the same set-up.
func (o *outcome) add(p outcome) {
	o.total.add(p.total)
	o.seconds += p.seconds
	o.gaps = append(o.gaps, p.gaps...)
	o.slices = append(o.slices, p.slices...)
	if o.stages == nil {
		o.stages, o.measured.Workers = slices.Clone(p.stages), p.measured.Workers
	} else {
		for i, s := range p.stages {
			o.stages[i].Busy += s.Busy
			o.stages[i].WaitIn += s.WaitIn
			o.stages[i].WaitOut += s.WaitOut
		}
	}
	o.measured = o.measured.And(p.measured)
	o.whole = o.whole.And(p.whole)
	o.busy += p.busy
	o.waited += p.waited
	o.cpu += p.cpu
	o.allocs += p.allocs
	o.early = o.early || p.early
	o.stale = o.stale || p.stale
	o.played = p.played
	o.echo.Account.Merge(p.echo.Account)
	o.echo.Cache = p.echo.Cache
}

// gap returns the time between batches below which a share q of them lies, in
// milliseconds: the nearest rank.
func gap(gaps []time.Duration, q float64) float64 {
	if len(gaps) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(gaps))
	rank := int(q*float64(len(sorted)) + 0.9999999)
	return sorted[min(max(rank, 1), len(sorted))-1].Seconds() * 1000
}

// stages is what each stage did within the window, the device included.
func (w *window) stages() []loader.Stage {
	stages := make([]loader.Stage, 0, len(w.to.stages)+1)
	var idle float64
	for i, to := range w.to.stages {
		from := w.from.stages[i]
		to.Busy -= from.Busy
		to.WaitIn -= from.WaitIn
		to.WaitOut -= from.WaitOut
		if to.Name == loader.StageDeliver {
			idle = to.WaitIn + to.Busy
		}
		stages = append(stages, to)
	}
	if w.to.simulated {
		idle = (w.to.waited - w.from.waited).Seconds()
	}
	device := loader.Stage{Name: StageDevice, Workers: 1, Busy: (w.to.busy - w.from.busy).Seconds(), WaitIn: idle}
	return append(stages, device)
}

// StageDevice is the stage behind the loader.
const StageDevice = "device"

// Slice is a part of a window: so many batches in a row. What differs between
// slices is the noise of a measurement.
type Slice struct {
	Seconds float64 `json:"seconds"`
	Batches int     `json:"batches"`
	Fresh   int64   `json:"fresh"`
	Emitted int64   `json:"emitted"`
	CPU     float64 `json:"cpu_s"`
}

// mostSlices is into how many slices a window is divided, if it has the batches.
// More would say little more of the noise, and slices of few batches depend on
// each other.
const mostSlices = 10

func (w *window) slices() []Slice {
	n := len(w.marks) - 1
	k := min(n, mostSlices)
	var all []Slice
	for i := range k {
		a, b := w.marks[i*n/k], w.marks[(i+1)*n/k]
		all = append(all, Slice{
			Seconds: b.at.Sub(a.at).Seconds(), Batches: (i+1)*n/k - i*n/k,
			Fresh: b.total.fresh - a.total.fresh, Emitted: b.total.emitted - a.total.emitted, CPU: (b.cpu - a.cpu).Seconds(),
		})
	}
	return all
}
