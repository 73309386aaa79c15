package loader

import (
	"encoding/json"
	"errors"
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

// States that lie: each is refused with its class, by New or, where only the
// data can tell, by the first batch that needs it.
func TestLyingStates(t *testing.T) {
	counted := labelled(t, t.TempDir(), 5, 0, 3, 6)
	for _, tt := range []struct {
		name string
		lie  func(s *State)
		gz   bool
		want error
	}{
		{"version", func(s *State) { s.Version = 7 }, false, format.ErrUnsupported},
		{"no fingerprint", func(s *State) { s.Fingerprint = nil }, false, format.ErrCorrupt},
		{"another fingerprint", func(s *State) { s.Fingerprint.Sum = "00" }, false, format.ErrStale},
		{"epoch", func(s *State) { s.Epoch = -1 }, false, format.ErrCorrupt},
		{"step", func(s *State) { s.Step = -1 }, false, format.ErrCorrupt},
		{"beyond the epoch", func(s *State) { s.Step = 1 << 62 }, false, format.ErrCorrupt},
		{"beyond all bytes", func(s *State) { s.Step = 1 << 62 }, true, format.ErrCorrupt},
		{"no factor", func(s *State) { s.Factors = nil }, false, format.ErrCorrupt},
		{"a factor of a half", func(s *State) { s.Factors = []order.Segment{{Factor: order.One / 2}} }, false, format.ErrCorrupt},
		{"a huge factor", func(s *State) { s.Factors = []order.Segment{{Factor: 1 << 60}} }, false, format.ErrCorrupt},
		{"a huge next factor", func(s *State) { s.Next = 1 << 60 }, false, format.ErrCorrupt},
		{"a count of a counted shard", func(s *State) { s.Counts = []order.Count{{Shard: 0, Samples: 5}} }, false, format.ErrCorrupt},
		{"a count of no shard", func(s *State) { s.Counts = []order.Count{{Shard: 4, Samples: 5}} }, true, format.ErrCorrupt},
		{"two counts", func(s *State) { s.Counts = []order.Count{{Shard: 0, Samples: 5}, {Shard: 0, Samples: 5}} }, true, format.ErrCorrupt},
		{"a negative count", func(s *State) { s.Counts = []order.Count{{Shard: 0, Samples: -3}} }, true, format.ErrCorrupt},
		{"a wrong count", func(s *State) { s.Counts = []order.Count{{Shard: 3, Samples: 4}} }, true, format.ErrStale},
		{"another rank", func(s *State) { s.World, s.Rank = 2, 1 }, true, format.ErrUsage},
	} {
		ds := counted
		if tt.gz {
			ds = zipped(t, counted)
		}
		o := Options{GlobalBatch: 4, Epochs: 2, Shuffle: order.Stream(1, 2), Tail: order.TailKeep, World: 1, Echo: echo.Options{Factor: 2}, Columns: labelledColumns}
		all := steps(t, ds, o, 3)
		o.Resume = saved(t, &all[2])
		tt.lie(o.Resume)
		l, err := New(t.Context(), ds, &o)
		if err == nil {
			for b, e := range l.Batches(t.Context()) {
				if err = e; err == nil {
					b.Release()
				}
			}
			checkEnd(t, l)
		}
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}
