package loader

import (
	"encoding/json"
	"testing"

	"shardtool/echo"
	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/order"
)

// FuzzResume gives a loader states that somebody made up: there is an error
// that says what is wrong, or batches as a state allows.
func FuzzResume(f *testing.F) {
	dir := f.TempDir()
	counted := labelled(f, dir, 5, 0, 3, 6)
	plans := []struct {
		ds *reader.Dataset
		o  Options
	}{
		{counted, Options{GlobalBatch: 4, Epochs: 3, Shuffle: order.Global, Tail: order.TailWrap, World: 1, Echo: echo.Options{Factor: 2, Buffer: 6}}},
		{counted, Options{GlobalBatch: 4, Epochs: order.Endless, Shuffle: order.Block(2), Tail: order.TailPad, World: 2, Rank: 1}},
		{counted, Options{GlobalBatch: 4, Epochs: 2, Tail: order.TailDrop, World: 1, Echo: echo.Options{Factor: 1.5, Unit: echo.Batch, Buffer: 3}}},
		{zipped(f, counted), Options{GlobalBatch: 4, Epochs: 3, Shuffle: order.Stream(2, 6), Tail: order.TailKeep, World: 1}},
		{zipped(f, counted), Options{GlobalBatch: 4, Epochs: 3, Steps: 5, Tail: order.TailWrap, World: 2}},
	}
	for which, p := range plans {
		for i, s := range steps(f, p.ds, p.o, 9) {
			if i%2 == 0 {
				f.Add(byte(which), s.State)
			}
		}
	}
	for _, s := range []string{`{}`, `null`, `{"version":1}`, `{"version":2,"fingerprint":{}}`, `{"version":1,"fingerprint":{"settings":{"seed":"1"},"shards":"00"}}`} {
		f.Add(byte(0), s)
	}
	f.Fuzz(func(t *testing.T, which byte, text string) {
		var state State
		if json.Unmarshal([]byte(text), &state) != nil {
			t.Skip("no state at all")
		}
		p := plans[int(which)%len(plans)]
		p.o.Resume, p.o.Columns = &state, labelledColumns
		l, err := New(t.Context(), p.ds, &p.o)
		if err != nil {
			holdError(t, err)
			return
		}
		n := 0
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				holdError(t, err)
				break
			}
			s := stepOf(t, b)
			s.check(t)
			b.Release()
			if n++; n == 8 {
				break
			}
		}
		checkEnd(t, l)
	})
}

func holdError(t *testing.T, err error) {
	t.Helper()
	if format.AsError(err) == nil {
		t.Errorf("%T: %v", err, err)
	}
}
