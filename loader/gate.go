package loader

import (
	"context"
	"sync"
)

// gate bounds the bytes of the chunks in use. Whoever reads the shard that the
// next batch waits for passes in any case: what comes later can be released
// only after it.
type gate struct {
	limit int64

	mu       sync.Mutex
	used     int64
	starving *shardStream  // whose next chunk is waited for; nil if none is
	changed  chan struct{} // closed at the next change; nil if nobody waits
}

// take waits until n bytes fit, or s is starving, or ctx ends.
func (g *gate) take(ctx context.Context, n int64, s *shardStream) error {
	for {
		g.mu.Lock()
		if g.used+n <= g.limit || g.starving == s {
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

func (g *gate) give(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used -= n
	g.wake()
}

// starve says whose next chunk is waited for.
func (g *gate) starve(s *shardStream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.starving = s
	g.wake()
}

func (g *gate) wake() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}
