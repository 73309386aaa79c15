package remote

import (
	"context"
	"fmt"
	"time"
)

// watch ends a request that moves no byte for too long. A total limit would
// punish what is slow and steady; this one does not.
type watch struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
	stall  time.Duration
}

type watchKey struct{}

// stallError says that a request was cut by its watch.
type stallError struct{ d time.Duration }

func (e stallError) Error() string { return fmt.Sprintf("no byte came for %v", e.d) }

// newWatch returns a context for one request and its watch, which runs.
func newWatch(ctx context.Context, stall time.Duration) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watch{cancel: cancel, stall: stall}
	w.timer = time.AfterFunc(stall, func() { cancel(stallError{stall}) })
	return context.WithValue(ctx, watchKey{}, w), w
}

// alive starts the time anew.
func (w *watch) alive() { w.timer.Reset(w.stall) }

// rest stops the time while nobody waits for bytes.
func (w *watch) rest() { w.timer.Stop() }

// end releases the watch and ends its request.
func (w *watch) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// cause is err, or the stall that was behind it.
func (w *watch) cause(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if stall, ok := context.Cause(ctx).(stallError); ok {
		return stall
	}
	return err
}

// Alive tells the watch over a request that bytes move, for a call made by
// Client.Do that may take longer than Options.Stall: an upload calls it as its
// body is read. ctx is the one that the call was given; with any other, Alive
// does nothing.
func Alive(ctx context.Context) {
	if w, ok := ctx.Value(watchKey{}).(*watch); ok {
		w.alive()
	}
}
