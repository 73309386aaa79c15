package remote

import (
	"container/list"
	"context"
	"sync"
)

// gate lets a number of requests pass at a time. Those that somebody waits for
// pass before those that are made ahead, and each kind in order of arrival.
//
// The ceiling follows what the server bears: throttled answers halve it, but
// only once for all requests that were let in before it was last halved, for
// they tell the same story; each good answer raises it by one.
type gate struct {
	mu      sync.Mutex
	most    int // the ceiling's ceiling
	ceiling int
	active  int
	flight  int       // how often the ceiling was halved
	urgent  list.List // of *place
	ahead   list.List
}

// pass is what a request that was let in holds.
type pass struct{ flight int }

// place is where a request waits. The zero value is one ahead of need.
type place struct {
	urgent bool
	queue  *list.List // nil unless waiting
	at     *list.Element
	let    chan pass
}

func newGate(most int) *gate { return &gate{most: most, ceiling: most} }

// enter waits until the request may be made. at may be nil for one that is
// urgent and stays so.
func (g *gate) enter(ctx context.Context, at *place) (pass, error) {
	if err := ctx.Err(); err != nil {
		return pass{}, err
	}
	if at == nil {
		at = &place{urgent: true}
	}
	g.mu.Lock()
	if g.active < g.ceiling && g.urgent.Len() == 0 && (at.urgent || g.ahead.Len() == 0) {
		g.active++
		p := pass{g.flight}
		g.mu.Unlock()
		return p, nil
	}
	at.let = make(chan pass, 1)
	at.line(g)
	g.mu.Unlock()
	select {
	case p := <-at.let:
		return p, nil
	case <-ctx.Done():
		g.desert(at)
		return pass{}, ctx.Err()
	}
}

// line puts a request at the end of its queue.
func (at *place) line(g *gate) {
	at.queue = &g.ahead
	if at.urgent {
		at.queue = &g.urgent
	}
	at.at = at.queue.PushBack(at)
}

// desert takes a request out that is not wanted any more, and gives its pass to
// another if it got one meanwhile.
func (g *gate) desert(at *place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.queue != nil {
		at.queue.Remove(at.at)
		at.queue = nil
		return
	}
	g.active--
	g.admit()
}

// promote makes a request urgent.
func (g *gate) promote(at *place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.urgent {
		return
	}
	at.urgent = true
	if at.queue != nil {
		at.queue.Remove(at.at)
		at.line(g)
	}
}

// outcome is what an answer tells about the load that the server bears.
type outcome uint8

const (
	neutral outcome = iota
	good
	throttled
)

// leave gives a pass back.
func (g *gate) leave(p pass, o outcome) (halved bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active--
	switch {
	case o == good:
		g.ceiling = min(g.ceiling+1, g.most)
	case o == throttled && p.flight == g.flight:
		g.ceiling = max(g.ceiling/2, 1)
		g.flight++
		halved = true
	}
	g.admit()
	return halved
}

// admit lets in who waits, as far as the ceiling goes.
func (g *gate) admit() {
	for g.active < g.ceiling {
		queue := &g.urgent
		if queue.Len() == 0 {
			queue = &g.ahead
		}
		first := queue.Front()
		if first == nil {
			return
		}
		at := queue.Remove(first).(*place)
		at.queue = nil
		g.active++
		at.let <- pass{g.flight}
	}
}

func (g *gate) state() (ceiling, active int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ceiling, g.active
}
