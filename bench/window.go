package bench

import (
	"slices"
	"time"

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
	cpu    time.Duration
	allocs uint64
	stages []loader.Stage
	device time.Duration
}

// window decides which batches count, from the instants at which they were
// finished. See the package comment.
type window struct {
	warmup, length time.Duration

	batches  int       // finished in the warm-up
	begun    time.Time // the first of these
	opened   time.Time
	last     time.Time // end of the last batch that counts
	total    count
	gaps     []time.Duration // between the ends of batches that count
	from, to usage           // at opened and at last
}

// warmupBatches is how many must be finished before the window opens, however
// long that takes: all that were made ahead while nobody waited, and one.
const warmupBatches = prefetch + 1

func newWindow(warmup, length time.Duration) *window {
	return &window{warmup: warmup, length: length}
}

// finished is told of each batch when it is finished. It asks for the usage
// where it matters, and reports false when the window is closed. A window
// holds at least one fresh sample, however long that takes: copies alone would
// make a rate of nothing. Where the last batch that fits ends long before it,
// the next one counts too: batches may come in bursts, with a long wait behind.
func (w *window) finished(now time.Time, c count, spent func() usage) (more bool) {
	if w.opened.IsZero() {
		if w.batches++; w.batches == 1 {
			w.begun = now
		}
		if w.batches >= warmupBatches && now.Sub(w.begun) >= w.warmup {
			w.opened, w.last, w.from = now, now, spent()
		}
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
	return since < w.length || w.total.fresh == 0
}

// seconds is the length of the window.
func (w *window) seconds() float64 { return w.last.Sub(w.opened).Seconds() }

// gap returns the time between batches below which a share q of them lies, in
// milliseconds: the nearest rank.
func (w *window) gap(q float64) float64 {
	if len(w.gaps) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(w.gaps))
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
	device := loader.Stage{Name: StageDevice, Workers: 1, Busy: (w.to.device - w.from.device).Seconds(), WaitIn: idle}
	return append(stages, device)
}

// StageDevice is the stage behind the loader.
const StageDevice = "device"
