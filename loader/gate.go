package loader

import (
	"context"
	"math"
	"sync"
)

// gate bounds the bytes of the samples under way. What the next batch waits
// for passes in any case: what comes later can be released only after it. That
// is the run that the order stage waits for, and whatever is read for a step
// that is to be delivered next.
type gate struct {
	limit int64

	mu       sync.Mutex
	used     int64
	starving *run          // whose next chunk is waited for; nil if none is
	urgent   int64         // steps up to here are waited for
	changed  chan struct{} // closed at the next change; nil if nobody waits
}

// laterStep is the step of what no step in particular waits for.
const laterStep = math.MaxInt64

// take waits until n bytes fit, or r is starving, or the step is urgent, or ctx
// ends.
func (g *gate) take(ctx context.Context, n int64, r *run, step int64) error {
	for {
		g.mu.Lock()
		if g.used+n <= g.limit || r != nil && g.starving == r || step <= g.urgent {
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

// starve says whose next chunk is waited for.
func (g *gate) starve(r *run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.starving != r {
		g.starving = r
		g.wake()
	}
}

// await says which step is to be delivered next.
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
