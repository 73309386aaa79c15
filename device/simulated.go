package device

import (
	"context"
	"sync"
	"time"

	"shardtool/tensor"
)

// Simulated plays an accelerator: one engine copies batches, one after the
// other, and one runs steps, one after the other.
//
//	copies   [  1  ][  2  ]   [  3  ]
//	steps           [   1   ]·[   2   ][   3   ]     · waited for input
//
// It computes nothing and sleeps instead. Both engines work by deadlines: what
// begins, begins when the one before it was due, not when somebody woke up; so
// sleeping too long does not add up. The zero value takes no time. The fields
// must not be changed after the first use.
type Simulated struct {
	StepTime       time.Duration // of one step; 0 or less for none
	BytesPerSecond float64       // of the copies; 0: they take no time
	Room           int           // batches on the device at once; 0: any number

	mu       sync.Mutex
	closed   bool
	left     bool          // a call ended with its context: nobody waits for the rest
	copied   time.Time     // when the last copy is due
	first    time.Time     // when the first step began
	ended    time.Time     // when the last step is due
	waited   time.Duration // between the steps
	steps    int64         // that were begun
	bytes    int64
	held     int           // batches not yet released
	leaving  []time.Time   // when those that were released give up their room
	released chan struct{} // closed at the next Release; nil if nobody waits for it
}

// SimulatedStats is what a Simulated has done up to an instant. From the begin
// of the first step on, Busy and Waited add up to the time that has passed.
type SimulatedStats struct {
	Steps  int64         // that have ended
	Busy   time.Duration // in steps, that which runs included as far as it has run
	Waited time.Duration // for input, since the first step
	Bytes  int64         // put
}

// Put begins the copy of the arrays, behind those before it.
func (s *Simulated) Put(ctx context.Context, arrays []tensor.Dense) (Buffer, error) {
	var bytes int64
	for _, a := range arrays {
		bytes += int64(len(a.Bytes()))
	}
	for {
		b, wait, released, err := s.put(ctx, bytes)
		if b != nil || err != nil {
			return b, err
		}
		if err := s.sleep(ctx, wait, released); err != nil {
			return nil, err
		}
	}
}

// put puts a batch, or says until when, or for whose release, to wait for room.
func (s *Simulated) put(ctx context.Context, bytes int64) (b Buffer, until time.Time, released <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, until, nil, ErrClosed
	case ctx.Err() != nil:
		s.left = true
		return nil, until, nil, ctx.Err()
	}
	now := time.Now()
	if until, full := s.full(now); full {
		if s.released == nil {
			s.released = make(chan struct{})
		}
		return nil, until, s.released, nil
	}
	s.copied = later(now, s.copied)
	if s.BytesPerSecond > 0 {
		s.copied = s.copied.Add(time.Duration(float64(bytes) / s.BytesPerSecond * float64(time.Second)))
	}
	s.bytes += bytes
	s.held++
	return &simulatedBuffer{device: s, ready: s.copied, busy: s.copied}, until, nil, nil
}

// full reports whether there is no room, and when there will be, if that is known.
func (s *Simulated) full(now time.Time) (until time.Time, full bool) {
	kept := s.leaving[:0]
	for _, t := range s.leaving {
		if t.After(now) {
			kept = append(kept, t)
			if until.IsZero() || t.Before(until) {
				until = t
			}
		}
	}
	s.leaving = kept
	return until, s.Room > 0 && s.held+len(s.leaving) >= s.Room
}

// Step begins a step of StepTime when the one before it has ended and the batch
// has been copied. b may be a buffer of another device, which Step waits for.
func (s *Simulated) Step(ctx context.Context, b Buffer) error {
	ready := time.Now()
	own, _ := b.(*simulatedBuffer)
	switch {
	case b == nil:
		return ErrReleased
	case own == nil || own.device != s:
		own = nil
		if err := b.Wait(ctx); err != nil {
			return err
		}
		ready = time.Now()
	}
	s.mu.Lock()
	err, before := s.usable(own), s.ended
	s.mu.Unlock()
	if err != nil {
		return err
	}
	// The step is entered when the one before it has ended, as of when it could
	// have begun: so there is at most one step ahead of the clock.
	if err := s.sleep(ctx, before, nil); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(own); err != nil {
		return err
	}
	if own != nil {
		ready = later(ready, own.ready)
	}
	begin := later(ready, s.ended)
	if s.steps++; s.steps == 1 {
		s.first = begin
	} else {
		s.waited += begin.Sub(s.ended)
	}
	s.ended = begin.Add(max(0, s.StepTime))
	if own != nil {
		own.busy = s.ended
	}
	return nil
}

// usable returns why the device, or a batch on it, is of no use any more. s.mu is held.
func (s *Simulated) usable(b *simulatedBuffer) error {
	switch {
	case s.closed:
		return ErrClosed
	case b != nil && b.released:
		return ErrReleased
	}
	return nil
}

// Stats returns what has been done up to now. It may be called at any time, by
// any goroutine.
func (s *Simulated) Stats() SimulatedStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := SimulatedStats{Steps: s.steps, Waited: s.waited, Bytes: s.bytes}
	if s.steps == 0 {
		return st
	}
	now := time.Now()
	step := max(0, s.StepTime)
	begin := s.ended.Add(-step) // of the last one
	st.Busy = time.Duration(s.steps) * step
	switch {
	case now.Before(begin): // its copy is not there yet
		st.Steps--
		st.Busy -= step
		st.Waited -= begin.Sub(now)
	case now.Before(s.ended):
		st.Steps--
		st.Busy -= s.ended.Sub(now)
	default:
		st.Waited += now.Sub(s.ended)
	}
	if now.Before(s.first) {
		st.Waited = 0
	}
	return st
}

// Close waits for the copies and the steps that were begun, unless a call has
// ended with its context: then nobody wants to know of them.
func (s *Simulated) Close() error {
	s.mu.Lock()
	until := later(s.copied, s.ended)
	through := s.closed || s.left
	s.closed = true
	s.mu.Unlock()
	if through {
		return nil
	}
	return sleep(context.Background(), until, nil)
}

// simulatedBuffer is a batch on a Simulated. Its device's lock guards it.
type simulatedBuffer struct {
	device   *Simulated
	ready    time.Time // when the copy is due
	busy     time.Time // when the copy and the steps on it are
	released bool
}

func (b *simulatedBuffer) Wait(ctx context.Context) error {
	if err := b.usable(); err != nil {
		return err
	}
	if err := b.device.sleep(ctx, b.ready, nil); err != nil {
		return err
	}
	return b.usable()
}

func (b *simulatedBuffer) usable() error {
	b.device.mu.Lock()
	defer b.device.mu.Unlock()
	return b.device.usable(b)
}

func (b *simulatedBuffer) Release() {
	s := b.device
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.released {
		return
	}
	b.released = true
	s.held--
	if s.Room > 0 {
		s.leaving = append(s.leaving, b.busy)
	}
	if s.released != nil {
		close(s.released)
		s.released = nil
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sleep waits as the function does, and notes whether the context ended first.
func (s *Simulated) sleep(ctx context.Context, until time.Time, woken <-chan struct{}) error {
	err := sleep(ctx, until, woken)
	if err != nil {
		s.mu.Lock()
		s.left = true
		s.mu.Unlock()
	}
	return err
}

// sleep returns at the instant until, if that is not zero or past, or when
// woken, or with the error of ctx when that ends. With neither of the first
// two it returns only where woken is nil.
func sleep(ctx context.Context, until time.Time, woken <-chan struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var due <-chan time.Time
	switch left := time.Until(until); {
	case until.IsZero() && woken == nil, !until.IsZero() && left <= 0:
		return nil
	case !until.IsZero():
		timer := time.NewTimer(left)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-woken:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
