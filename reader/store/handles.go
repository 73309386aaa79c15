package store

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"

	"shardtool/format"
)

// Handles keeps the objects of a store open that are read again and again, at
// most a set number of them, and closes first what was used longest ago. It is
// safe for use by several goroutines.
type Handles struct {
	st  Store
	max int

	mu     sync.Mutex
	open   map[string]*Handle // also those being opened
	idle   Handle             // ring of those that nobody uses; idle.next was used last
	closed bool
}

// NewHandles returns Handles over st that keep at most max objects open, where
// no more are in use at a time; a max of 0 is 512, or half of the files that
// this process may have open if that is less.
func NewHandles(st Store, max int) *Handles {
	if max <= 0 {
		max = min(512, openFiles()/2)
	}
	s := &Handles{st: st, max: max, open: make(map[string]*Handle)}
	s.idle.next, s.idle.prev = &s.idle, &s.idle
	return s
}

// Handle is an object that Handles keeps open. It is an Object itself.
type Handle struct {
	all  *Handles
	name string

	opened chan struct{} // closed when o or err is set
	o      Object
	stat   Entry
	err    error

	// Of Handles, under its mutex.
	refs       int
	ready      bool // o is set
	dropped    bool // not in Handles.open any more
	prev, next *Handle
}

// Get returns the object that e describes, of which the name alone need be
// known, and opens it if it is not open. An open object that is not what e
// describes is given up. Each Get is followed by one Release.
//
// Where more than max objects are in use at a time, more are open; Get never
// waits for a Release.
func (s *Handles) Get(ctx context.Context, e Entry) (*Handle, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, format.Errorf(format.ErrUsage, format.In(e.Name), "the handles have been closed")
		}
		h := s.open[e.Name]
		if h == nil {
			return s.openNew(ctx, e) // unlocks
		}
		if h.refs == 0 {
			h.unlink()
		}
		h.refs++
		ready := h.ready
		s.mu.Unlock()
		if !ready {
			select {
			case <-h.opened:
			case <-ctx.Done():
				h.Release()
				return nil, ctx.Err()
			}
		}
		if h.err == nil && e.Unchanged(h.stat) == nil {
			return h, nil
		}
		err := h.err
		s.drop(h)
		h.Release()
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// openNew is called with the mutex held, and gives it back.
func (s *Handles) openNew(ctx context.Context, e Entry) (*Handle, error) {
	h := &Handle{all: s, name: e.Name, refs: 1, opened: make(chan struct{})}
	s.open[e.Name] = h
	old := s.takeIdle(len(s.open) - s.max)
	s.mu.Unlock()
	_ = closeHandles(old) // they were only read
	o, err := OpenEntry(ctx, s.st, e)
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		s.mu.Lock()
		old = s.takeIdle(len(s.open))
		s.mu.Unlock()
		_ = closeHandles(old)
		o, err = OpenEntry(ctx, s.st, e)
	}
	s.mu.Lock()
	h.o, h.err = o, err
	if err == nil {
		h.stat, h.ready = o.Stat(), true
	}
	s.mu.Unlock()
	close(h.opened)
	if err != nil {
		s.drop(h)
		h.Release()
		return nil, err
	}
	return h, nil
}

// takeIdle takes up to n handles out that nobody uses, to be closed without
// the mutex.
func (s *Handles) takeIdle(n int) (taken []*Handle) {
	for ; n > 0 && s.idle.prev != &s.idle; n-- {
		h := s.idle.prev
		h.unlink()
		h.dropped = true
		delete(s.open, h.name)
		taken = append(taken, h)
	}
	return taken
}

func closeHandles(hs []*Handle) error {
	var errs []error
	for _, h := range hs {
		if h.o != nil {
			errs = append(errs, h.o.Close())
		}
	}
	return errors.Join(errs...)
}

// drop takes h out of reach of Get, if it still is within. Who holds it goes on.
func (s *Handles) drop(h *Handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !h.dropped {
		h.dropped = true
		delete(s.open, h.name)
	}
}

// Forget closes the object of that name if it is open, at once or when its last
// user has released it. The next Get opens it anew.
func (s *Handles) Forget(name string) error {
	s.mu.Lock()
	h := s.open[name]
	if h == nil {
		s.mu.Unlock()
		return nil
	}
	h.dropped = true
	delete(s.open, name)
	idle := h.refs == 0
	if idle {
		h.unlink()
	}
	s.mu.Unlock()
	if idle {
		return closeHandles([]*Handle{h})
	}
	return nil
}

// Close closes all objects, those in use when they are released. Get fails from
// now on.
func (s *Handles) Close() error {
	s.mu.Lock()
	s.closed = true
	old := s.takeIdle(len(s.open))
	for name, h := range s.open {
		h.dropped = true
		delete(s.open, name)
	}
	s.mu.Unlock()
	return closeHandles(old)
}

func (h *Handle) unlink() {
	h.prev.next, h.next.prev = h.next, h.prev
	h.prev, h.next = nil, nil
}

// Release gives the object back. It must not be used through this Get any more.
func (h *Handle) Release() {
	s := h.all
	s.mu.Lock()
	h.refs--
	if h.refs < 0 {
		s.mu.Unlock()
		panic("store: a Handle was released more often than it was got")
	}
	last := h.refs == 0
	if last && !h.dropped {
		if len(s.open) <= s.max {
			h.prev, h.next = &s.idle, s.idle.next
			h.prev.next, h.next.prev = h, h
			last = false
		} else {
			h.dropped = true
			delete(s.open, h.name)
		}
	}
	s.mu.Unlock()
	if last && h.o != nil {
		_ = h.o.Close()
	}
}

// Close is Release.
func (h *Handle) Close() error {
	h.Release()
	return nil
}

// ReadAt is that of the object.
func (h *Handle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	return h.o.ReadAt(ctx, p, off)
}

// Stream is as the function Stream.
func (h *Handle) Stream(ctx context.Context, off int64) (io.ReadCloser, error) {
	return Stream(ctx, h.o, off)
}

// Stat is that of the object.
func (h *Handle) Stat() Entry { return h.stat }

// Gap is that of the object.
func (h *Handle) Gap() int64 { return Gap(h.o) }
