package loader

import (
	"context"
	"math"
	"sync"
)

// gate bounds the bytes of the samples under way. What the next batch waits
// for passes in any case: what comes later can be released only after it. That
// is whatever is read for the step that is to be delivered next, and the run
// that the order stage waits for if it is at that step.
type gate struct {
	limit int64

	mu       sync.Mutex
	used     int64
	starving *run          // whose next chunk the order stage waits for; nil if none is
	at       int64         // the step that it is at
	urgent   int64         // steps up to here are waited for
	changed  chan struct{} // closed at the next change; nil if nobody waits
}

// laterStep is the step of what no step in particular waits for.
const laterStep = math.MaxInt64

// take waits until n bytes fit, or the step is urgent, or the one that r is
// starving for, or ctx ends.
func (g *gate) take(ctx context.Context, n int64, r *run, step int64) error {
	for {
		g.mu.Lock()
		fits := g.used+n <= g.limit || step <= g.urgent
		if !fits && r != nil && g.starving == r && g.at <= g.urgent {
			fits, g.starving = true, nil // this once
		}
		if fits {
			g.used += n
			g.mu.Unlock()
			return nil
		}
		if g.changed == nil {
			g.changed = make(chan struct{})
		}
		changed := g.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// force takes n bytes, whether they fit or not.
func (g *gate) force(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used += n
}

func (g *gate) give(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used -= n
	g.wake()
}

// starve says whose next chunk is waited for, by which step: one chunk passes.
func (g *gate) starve(r *run, step int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.starving != r {
		g.starving, g.at = r, step
		g.wake()
	}
}

// await says which step is to be delivered next, now that the trainer waits
// for it.
func (g *gate) await(step int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.urgent = step
	g.wake()
}

func (g *gate) wake() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}
