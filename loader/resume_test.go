package loader

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shardtool/echo"
	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/order"
	"shardtool/reader/store"
	"shardtool/tensor"
)

// echoes are what is tried of echo.
var echoes = []echo.Options{
	{},
	{Factor: 2},
	{Factor: 1.5, Buffer: 4},
	{Factor: 3, Unit: echo.Batch},
	{Factor: 1.5, Unit: echo.Batch, Buffer: 3},
	{Factor: 2, Keep: echo.Augmented, Buffer: 4},
}

// zipped compresses the shards of a dataset, so that nobody counts them.
func zipped(t testing.TB, ds *reader.Dataset) *reader.Dataset {
	t.Helper()
	dir := t.TempDir()
	var names []string
	for _, name := range ds.Shards() {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.Join(dir, filepath.Base(name)+".gz"))
		if err := os.WriteFile(names[len(names)-1], b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return reader.New(&store.Local{}, names, &reader.Options{CacheDir: "-"})
}

// saved is the state after a step, as it comes back from a file.
func saved(t rapid.TB, s *step) *State {
	t.Helper()
	var state State
	if err := json.Unmarshal([]byte(s.State), &state); err != nil {
		t.Fatal(err)
	}
	return &state
}

// holdRest goes on behind a step, for at most so many (negative: all).
func holdRest(t *testing.T, what string, ds *reader.Dataset, o Options, all []step, at, most int) {
	t.Helper()
	o.Resume = saved(t, &all[at])
	rest, want := steps(t, ds, o, most), all[at+1:]
	if most >= 0 && len(want) > most {
		want = want[:most]
	}
	if len(rest) != len(want) {
		t.Fatalf("%s: %d steps after step %d, want %d", what, len(rest), at, len(want))
	}
	for i := range rest {
		if !rest[i].equal(&want[i]) {
			t.Fatalf("%s: step %d, resumed after %d\n got %+v\nwant %+v", what, at+1+i, at, rest[i], want[i])
		}
	}
}

// Every step of small runs, over the ends of epochs, in every mode, with every
// tail and echo, with counts and without.
func TestResumeAtEveryStep(t *testing.T) {
	counted := labelled(t, t.TempDir(), 5, 0, 3, 6)
	for _, tt := range []struct {
		name string
		ds   *reader.Dataset
		of   []order.Shuffle
	}{
		{"counted", counted, []order.Shuffle{order.None, order.Global, order.Block(2), order.Stream(2, 6)}},
		{"not counted", zipped(t, counted), []order.Shuffle{order.None, order.Stream(2, 6)}},
	} {
		for _, shuffle := range tt.of {
			for _, tail := range []order.Tail{order.TailKeep, order.TailDrop, order.TailPad, order.TailWrap} {
				for _, e := range echoes {
					what := fmt.Sprintf("%s, %v, tail %v, echo %+v", tt.name, shuffle, tail, e)
					o := Options{GlobalBatch: 4, Seed: 9, Epochs: 2, Shuffle: shuffle, Tail: tail, Echo: e, World: 1, Workers: 2, Fetchers: 2}
					all := steps(t, tt.ds, o, -1)
					if len(all) < 6 { // twice 14 samples in batches of 4
						t.Fatalf("%s: %d steps", what, len(all))
					}
					for at := range all {
						all[at].check(t)
						most := 3
						if at%4 == 0 {
							most = -1
						}
						holdRest(t, what, tt.ds, o, all, at, most)
					}
				}
			}
		}
	}
}

// Some steps of larger runs, whose shards are of several chunks.
func TestResumeAtRandomSteps(t *testing.T) {
	ds := labelled(t, t.TempDir(), 900, 700, 0, 600, 500)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, shuffle := range []order.Shuffle{order.None, order.Global, order.Block(3), order.Stream(3, 500)} {
		for _, e := range []echo.Options{{}, {Factor: 2, Buffer: 700}, {Factor: 2, Unit: echo.Batch, Buffer: 20}} {
			for _, world := range []int{1, 2} {
				what := fmt.Sprintf("%v, echo %+v, world %d", shuffle, e, world)
				o := Options{GlobalBatch: 48, Seed: 4, Epochs: 2, Shuffle: shuffle, Tail: order.TailWrap, Echo: e, World: world, Rank: world - 1}
				all := steps(t, ds, o, -1)
				for range 4 {
					holdRest(t, what, ds, o, all, rng.IntN(len(all)), 5)
				}
			}
		}
	}
}

// A run goes on with another number of ranks, twice, and back: all ranks
// together give what a single one gives without a stop.
func TestResumeOnAnotherWorld(t *testing.T) {
	ds := labelled(t, t.TempDir(), 17, 30, 0, 23)
	for _, shuffle := range shuffles {
		for _, tail := range []order.Tail{order.TailDrop, order.TailPad} {
			for _, e := range []echo.Options{{}, {Factor: 2, Buffer: 24}, {Factor: 1.5, Unit: echo.Batch, Buffer: 2}, {Factor: 2, Keep: echo.Decoded, Buffer: 24}} {
				what := fmt.Sprintf("%v, tail %v, echo %+v", shuffle, tail, e)
				o := Options{GlobalBatch: 8, Seed: 6, Epochs: 2, Shuffle: shuffle, Tail: tail, Echo: e, World: 1}
				want := steps(t, ds, o, -1)
				at := 0
				for _, leg := range []struct{ world, steps int }{{1, 2}, {2, 3}, {4, 5}, {2, 4}, {1, -1}} {
					var whole []step
					for rank := range leg.world {
						o.World, o.Rank = leg.world, rank
						part := steps(t, ds, o, leg.steps)
						for i := range part {
							part[i].check(t)
							if rank == 0 {
								whole = append(whole, step{State: part[i].State})
							}
							if whole[i].State != part[i].State {
								t.Fatalf("%s: rank %d of %d has the state\n%s, rank 0\n%s", what, rank, leg.world, part[i].State, whole[i].State)
							}
							whole[i].Refs = append(whole[i].Refs, part[i].Refs...)
						}
					}
					for i := range whole {
						if !slices.Equal(whole[i].Refs, want[at+i].Refs) || whole[i].State != want[at+i].State {
							t.Fatalf("%s: step %d by %d ranks\n got %v\nwant %v", what, at+i, leg.world, whole[i].Refs, want[at+i].Refs)
						}
					}
					at += len(whole)
					o.Resume = saved(t, &whole[len(whole)-1])
				}
				if at != len(want) {
					t.Fatalf("%s: %d steps, want %d", what, at, len(want))
				}
			}
		}
	}
}

// Without counts a run goes on in the same world alone.
func TestResumeWithoutCounts(t *testing.T) {
	ds := zipped(t, labelled(t, t.TempDir(), 11, 8, 14, 9))
	for _, shuffle := range []order.Shuffle{order.None, order.Stream(2, 6)} {
		for rank := range 2 {
			o := Options{GlobalBatch: 4, Seed: 9, Epochs: 3, Steps: 9, Shuffle: shuffle, Tail: order.TailWrap, World: 2, Rank: rank}
			all := steps(t, ds, o, -1)
			if len(all) != 27 {
				t.Fatalf("%v: %d steps", shuffle, len(all))
			}
			for at := range all {
				holdRest(t, fmt.Sprint(shuffle, " rank ", rank), ds, o, all, at, 4)
			}
			o.Resume, o.Columns = saved(t, &all[3]), labelledColumns
			for _, other := range [][2]int{{0, 1}, {1 - rank, 2}, {0, 4}} {
				o.Rank, o.World = other[0], other[1]
				_, err := New(t.Context(), ds, &o)
				if !errors.Is(err, format.ErrUsage) && !errors.Is(err, format.ErrStale) {
					t.Errorf("%v: rank %d of %d goes on from rank %d of 2: %v", shuffle, o.Rank, o.World, rank, err)
				}
			}
		}
	}
}

// A state is of one plan: another is ErrStale and says what differs.
func TestResumeOfAnotherPlan(t *testing.T) {
	dir := t.TempDir()
	ds := labelled(t, dir, 5, 4, 6)
	base := Options{Columns: labelledColumns, GlobalBatch: 4, Seed: 3, Shuffle: order.Global, Tail: order.TailDrop, World: 1, Echo: echo.Options{Factor: 2, Buffer: 8}}
	all := steps(t, ds, base, 3)
	base.Resume = saved(t, &all[1])
	larger := labelled(t, t.TempDir(), 5, 5, 6)
	moved := labelled(t, t.TempDir(), 5, 4, 6)
	for _, tt := range []struct {
		name   string
		change func(o *Options)
		ds     *reader.Dataset
		says   []string // nil: it is the same plan
	}{
		{"nothing", func(o *Options) {}, ds, nil},
		{"seed", func(o *Options) { o.Seed = 4 }, ds, []string{"seed (3 there, 4 here)"}},
		{"batch", func(o *Options) { o.GlobalBatch = 8 }, ds, []string{"batch (4 there, 8 here)"}},
		{"shuffle", func(o *Options) { o.Shuffle = order.Block(2) }, ds, []string{"shuffle (global there, block(2) here)"}},
		{"columns", func(o *Options) { o.Columns = []Column{Int64("cls")} }, ds, []string{"columns"}},
		{"a column's length", func(o *Options) {
			o.Columns = slices.Clone(labelledColumns)
			o.Columns[0] = Padded("ids.json", tensor.Int64, 7, nil)
		}, ds, []string{"columns"}},
		{"tail", func(o *Options) { o.Tail = order.TailWrap }, ds, []string{"tail (drop there, wrap here)"}},
		{"steps", func(o *Options) { o.Steps = 5 }, ds, []string{"steps (0 there, 5 here)"}},
		{"lanes", func(o *Options) { o.Lanes = 2 }, ds, []string{"lanes (4 there, 2 here)"}},
		{"buffer", func(o *Options) { o.Echo.Buffer = 9 }, ds, []string{"buffer (8 there, 9 here)"}},
		{"unit", func(o *Options) { o.Echo.Unit = echo.Batch }, ds, []string{"unit (sample there, batch here)", "keep (bytes there, batch here)"}},
		{"exclude", func(o *Options) { o.Exclude = []Exclusion{{ds.Shards()[0], 1}} }, ds, []string{"exclude"}},
		{"a shard's size", func(o *Options) {}, larger, []string{"shards", "s-001.tfrecord"}},
		{"a shard less", func(o *Options) {}, reader.New(&store.Local{}, ds.Shards()[:2], &reader.Options{CacheDir: "-"}), []string{"shards (3 there, 2 here)"}},
		{"two at once", func(o *Options) { o.Seed, o.GlobalBatch = 9, 2 }, ds, []string{"seed", "batch"}},
		{"another folder", func(o *Options) {}, moved, nil},
		{"epochs", func(o *Options) { o.Epochs = 7 }, ds, nil},
		{"factor", func(o *Options) { o.Echo.Factor = 3 }, ds, nil},
		{"world", func(o *Options) { o.World, o.Rank = 4, 2 }, ds, nil},
		{"crew", func(o *Options) { o.Workers, o.Fetchers, o.Prefetch, o.Hold, o.MemoryBytes = 3, 7, 5, 6, 1<<30 }, ds, nil},
	} {
		o := base
		tt.change(&o)
		l, err := New(t.Context(), tt.ds, &o)
		if l != nil {
			l.Close()
		}
		switch {
		case tt.says == nil && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.says != nil && !errors.Is(err, format.ErrStale):
			t.Errorf("%s: %v", tt.name, err)
		}
		for _, s := range tt.says {
			if err == nil || !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %v does not say %q", tt.name, err, s)
			}
		}
	}
}

// What is saved is small, however large the run.
func TestStateIsSmall(t *testing.T) {
	counts := make([]int, 200)
	for i := range counts {
		counts[i] = 2
	}
	ds := labelled(t, t.TempDir(), counts...)
	all := steps(t, ds, Options{GlobalBatch: 16, Shuffle: order.Stream(10, 100), World: 1, Echo: echo.Options{Factor: 2, Buffer: 100}}, 20)
	for _, s := range all {
		if len(s.State) > 1200 {
			t.Fatalf("%d bytes of state: %s", len(s.State), s.State)
		}
	}
}
