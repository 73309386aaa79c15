package loader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"shardtool/augment"
	"shardtool/echo"
	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/order"
	"shardtool/reader/store"
	"shardtool/tensor"
)

// An epoch goes on with the echo that it began with, whatever the plan says
// now.
func TestResumeWithAnotherEcho(t *testing.T) {
	ds := labelled(t, t.TempDir(), 5, 4, 6)
	for _, shuffle := range []order.Shuffle{order.None, order.Block(2)} {
		for _, f := range [][2]float64{{2, 1}, {1, 2}, {1.5, 1}, {3, 2}} {
			o := Options{GlobalBatch: 4, Seed: 3, Epochs: 2, Shuffle: shuffle, Tail: order.TailDrop, World: 1, Lanes: 1, Echo: echo.Options{Factor: f[0]}}
			all := steps(t, ds, o, 3)
			o.Resume, o.Echo.Factor = saved(t, &all[1]), f[1]
			want, rest := orderOf(t, ds, o), steps(t, ds, o, -1)
			if len(rest) != len(want) {
				t.Fatalf("%v, %v: %d steps, want %d", shuffle, f, len(rest), len(want))
			}
			for i := range rest {
				if rest[i].check(t); !slices.Equal(rest[i].Refs, want[i]) {
					t.Fatalf("%v, %v: step %d\n got %v\nwant %v", shuffle, f, i, rest[i].Refs, want[i])
				}
			}
		}
	}
}

// Without counts, the machine takes the first sample of each lane before the
// rest of any.
func TestLanesWithoutCounts(t *testing.T) {
	ds := zipped(t, labelled(t, t.TempDir(), 5, 4, 6, 7))
	for _, shuffle := range []order.Shuffle{order.None, order.Stream(4, 0), order.Stream(4, 16)} {
		for _, tail := range []order.Tail{order.TailPad, order.TailDrop, order.TailWrap} {
			for _, s := range steps(t, ds, Options{GlobalBatch: 8, Lanes: 2, Seed: 3, Epochs: 2, Shuffle: shuffle, Tail: tail, World: 1}, -1) {
				s.check(t)
			}
		}
	}
}

// left is what the order stage still has after all batches.
func left(o *orderer) (runs, kept, pages int) {
	for _, r := range o.readings {
		runs += len(r.runs)
	}
	return runs, len(o.kept), len(o.pages)
}

// A run ends when its samples have been taken, also where the last of them are
// left out and nobody had counted them.
func TestRunsEndBehindWhatIsExcluded(t *testing.T) {
	counts, out := make([]int, 50), make([]Exclusion, 50)
	for i := range counts {
		counts[i], out[i] = 3, Exclusion{fmt.Sprintf("memory-%03d", i), 2}
	}
	r := load(t, numbers(counts...), Options{Columns: []Column{Int64("cls")}, GlobalBatch: 2, Exclude: out, World: 1})
	if r.err != nil || len(r.labels) != 100 {
		t.Fatalf("%d samples, %v", len(r.labels), r.err)
	}
	if runs, _, _ := left(r.loader.pipe.orderer); runs > 1 { // the end of the last one ended the order
		t.Errorf("%d runs are open after the last sample", runs)
	}
}

// Whatever the order, what is kept for emissions to come is let go with the
// last of them, also in a run that was resumed. With padding no sample is
// dropped.
func TestNothingIsKeptAfterItsLastEmission(t *testing.T) {
	counted := labelled(t, t.TempDir(), 5, 0, 9, 4)
	mixed := mixOf(t, reader.Weighted{Dataset: counted, Weight: 1}, reader.Weighted{Dataset: labelled(t, t.TempDir(), 3, 2), Weight: 2})
	for _, tt := range []struct {
		name string
		ds   *reader.Dataset
		of   []order.Shuffle
	}{
		{"counted", counted, []order.Shuffle{order.None, order.Global, order.Block(3), order.Stream(3, 8)}},
		{"a mix", mixed, []order.Shuffle{order.None, order.Global, order.Block(3), order.Stream(3, 8)}},
		{"not counted", zipped(t, counted), []order.Shuffle{order.None, order.Stream(3, 8)}},
	} {
		for _, shuffle := range tt.of {
			for _, e := range echoes {
				o := Options{GlobalBatch: 4, Lanes: 2, Seed: 3, Epochs: 2, Shuffle: shuffle, Tail: order.TailPad, World: 1, Echo: e, Columns: []Column{Int64("cls")}}
				states := []*State{nil}
				for at := 0; at < len(states); at += 5 {
					o.Resume = states[at]
					l, err := New(t.Context(), tt.ds, &o)
					if err != nil {
						t.Fatal(err)
					}
					for b, err := range l.Batches(t.Context()) {
						if err != nil {
							t.Fatal(err)
						}
						if at == 0 {
							states = append(states, b.State())
						}
						b.Release()
					}
					if _, kept, pages := left(l.pipe.orderer); kept+pages > 0 {
						t.Errorf("%s, %v, echo %+v, resumed at %d: %d samples and %d batches are kept", tt.name, shuffle, e, at, kept, pages)
					}
					checkEnd(t, l)
				}
			}
		}
	}
}

// The copies of a shard are runs of their own, also side by side: each is read
// to its end, and none of its samples is kept for the next. Options do not
// allow them yet.
func TestCopiesOfShards(t *testing.T) {
	for _, tt := range []struct {
		shuffle order.Shuffle
		factor  order.Factor
	}{{order.None, 2}, {order.Block(1), 3}, {order.Block(2), 2}, {order.Block(5), 3}} {
		src := numbers(slices.Repeat([]int{3, 1, 4}, 12)...)
		src.counted = true
		l, err := newLoader(t.Context(), src, &Options{Columns: []Column{Int64("cls")}, GlobalBatch: 6, World: 1, Lanes: 1, Shuffle: tt.shuffle, Tail: order.TailKeep})
		if err != nil {
			t.Fatal(err)
		}
		l.plan.Unit, l.plan.Factor = order.Shard, tt.factor*order.One
		if l.machine, err = order.New(l.plan, 0, 1); err != nil {
			t.Fatal(err)
		}
		if err := l.chooseReading(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatalf("%v: %v", tt.shuffle, err)
			}
			for i, ref := range b.Refs {
				if n++; b.Int64(0)[i] != 1000*int64(ref.Shard)+ref.Index {
					t.Fatalf("%v: label %d at %+v", tt.shuffle, b.Int64(0)[i], ref)
				}
			}
			b.Release()
		}
		if n != 8*12*int(tt.factor) {
			t.Errorf("%v: %d samples", tt.shuffle, n)
		}
		// With None the runs of the last batch are open until the next.
		if runs, kept, _ := left(l.pipe.orderer); kept > 0 || runs > 0 && tt.shuffle != order.None {
			t.Errorf("%v: %d runs, %d samples are left", tt.shuffle, runs, kept)
		}
		checkEnd(t, l)
	}
}

// A manifest says that the second shard has 5 samples, and it has 6: that is
// found out when the fifth was taken, in every order.
func TestMoreSamplesThanCounted(t *testing.T) {
	plain := labelled(t, t.TempDir(), 5, 6, 5)
	for _, ds := range []*reader.Dataset{plain, zipped(t, plain)} {
		var list []string
		for _, name := range ds.Shards() {
			list = append(list, fmt.Sprintf(`{"url":%q,"nsamples":5}`, name))
		}
		name := filepath.Join(t.TempDir(), "manifest.json")
		text := `{"__kind__":"wids-shard-index-v1","wids_version":1,"shardlist":[` + strings.Join(list, ",") + "]}"
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		counted, err := reader.Open(t.Context(), name, &reader.Options{CacheDir: "-"})
		if err != nil {
			t.Fatal(err)
		}
		for _, shuffle := range []order.Shuffle{order.None, order.Block(2), order.Stream(2, 4)} {
			for _, lanes := range []int{1, 2} {
				all, err := stepsOrError(t, counted, Options{GlobalBatch: 4, World: 1, Shuffle: shuffle, Tail: order.TailPad, Lanes: lanes})
				if e := format.AsError(err); !errors.Is(err, format.ErrStale) || e.Shard != ds.Shards()[1] || len(all) > 3 {
					t.Errorf("%v, %d lanes: %d steps, %v", shuffle, lanes, len(all), err)
				}
				for _, s := range all {
					s.check(t)
				}
			}
		}
	}
}

// A fault behind the last sample of a shard ends loading, unless bad samples
// are tolerated: then it is no sample.
func TestAFaultBehindTheLastSample(t *testing.T) {
	boom := format.Errorf(format.ErrCorrupt, format.Location{Shard: "memory-001", Offset: 5, Record: -1}, "boom")
	for _, tt := range []struct {
		skip   int64
		want   error
		labels int
	}{{0, format.ErrCorrupt, 4}, {1, nil, 13}} {
		src := numbers(5, 3, 5)
		src.counted, src.fail = true, map[int]error{1: boom}
		r := load(t, src, Options{Columns: []Column{Int64("cls")}, GlobalBatch: 4, World: 1, Tail: order.TailKeep, OnBad: OnBad{Skip: tt.skip}})
		if !errors.Is(r.err, tt.want) || len(r.labels) != tt.labels || r.stats.Holes > 0 {
			t.Errorf("skip %d: labels %v, %d holes, %v", tt.skip, r.labels, r.stats.Holes, r.err)
		}
	}
}

// The samples of a batch are under way together, from however many shards: what
// is held for small ones is in proportion to them.
func TestSmallShardsTakeUpLittle(t *testing.T) {
	const shards = 500
	src := sized{numbers(slices.Repeat([]int{5}, shards)...), 1000}
	src.counted = true
	var l *Loader
	var used int64
	peak := Func("peak", tensor.Int64, nil, func(tensor.Dense, *format.Sample, augment.Draws) error {
		l.chunks.gate.mu.Lock()
		defer l.chunks.gate.mu.Unlock()
		used = max(used, l.chunks.gate.used)
		return nil
	})
	l, err := newLoader(t.Context(), src, &Options{Columns: []Column{peak, Int64("cls")}, GlobalBatch: 5 * shards, World: 1, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	checkEnd(t, l)
	if used > shards*8<<10 {
		t.Errorf("%d bytes under way for %d shards of 1000 bytes", used, shards)
	}
	for _, tt := range []struct {
		bytes int64
		want  int
	}{{order.Unknown, chunkBytes}, {0, 4 << 10}, {1000, 4 << 10}, {5000, 20_000}, {chunkBytes, chunkBytes}, {1 << 62, chunkBytes}} {
		l.shards[0].Bytes = tt.bytes
		if got := l.chunkOf(0); got != tt.want {
			t.Errorf("a shard of %d bytes has chunks of %d, want %d", tt.bytes, got, tt.want)
		}
	}
}

// sized is memory whose shards are said to have so many bytes.
type sized struct {
	*memory
	bytes int64
}

func (s sized) parts() []order.Part {
	parts := s.memory.parts()
	for i := range parts[0].Shards {
		parts[0].Shards[i].Bytes = s.bytes
	}
	return parts
}

// placed is memory that tells places, or says that they are not known.
type placed struct {
	*memory
	at    places
	asked *int
}

func (p placed) places(context.Context, int) (places, error) {
	*p.asked++
	return p.at, nil
}

func (p placed) read(context.Context, int, []store.Span) error { return nil }

// even are places of samples of one size, a power of two.
type even struct {
	n    int
	bits int
}

func (e even) Len() int                  { return e.n }
func (e even) At(i int) (off, end int64) { return int64(i) << e.bits, int64(i+1) << e.bits }

// Places cost memory, and perhaps a request: only what is read at them needs
// them, and of a shard without samples nobody does.
func TestPlacesAreAskedForWhereTheyAreNeeded(t *testing.T) {
	for _, tt := range []struct {
		shuffle order.Shuffle
		world   int
		asked   int // of shards of 4, 0, 4 and 6 samples
	}{
		{order.None, 1, 0}, {order.None, 2, 3}, {order.Global, 1, 3}, {order.Global, 2, 3},
		{order.Block(2), 2, 0}, {order.Stream(2, 4), 2, 0},
	} {
		asked := 0
		src := placed{numbers(4, 0, 4, 6), even{6, 10}, &asked}
		src.counted = true
		l, err := newLoader(t.Context(), src, &Options{Columns: []Column{Int64("cls")}, GlobalBatch: 4, World: tt.world, Shuffle: tt.shuffle})
		if err != nil || asked != tt.asked || l.scatter != (tt.asked > 0) {
			t.Errorf("%v, world %d: asked %d times, want %d; %v", tt.shuffle, tt.world, asked, tt.asked, err)
		}
	}
}

// A place may claim any size: it meets the limit before there is memory for it.
func TestPlacesMeetTheLimit(t *testing.T) {
	src := placed{numbers(10), even{10, 50}, new(int)}
	src.counted = true
	o := Options{Columns: []Column{Int64("cls")}, GlobalBatch: 4, World: 1, Shuffle: order.Global}
	r := load(t, src, o)
	if e := format.AsError(r.err); !errors.Is(r.err, format.ErrLimit) || e.Shard != "memory-000" || e.Record < 0 || e.Offset != e.Record<<50 {
		t.Error(r.err)
	}
}

func TestPlaceBytes(t *testing.T) {
	one := unsafe.Sizeof(order.Ref{}) + unsafe.Sizeof(slot{}) + unsafe.Sizeof(task{}) + unsafe.Sizeof(&chunk{}) + unsafe.Sizeof(job{}) + unsafe.Sizeof(&task{}) + unsafe.Sizeof(true)
	if one > placeBytes+4 { // a channel's room is for the batches ahead alone
		t.Errorf("a sample of a batch takes up %d bytes, counted as %d", one, placeBytes)
	}
}

// A source of small samples that is slow is not waited for until a chunk is
// full: with a sample in 10 ms, the first batch of 8 is there after little more
// than 80, not after the 1024 samples of a chunk; and so is every other one.
func TestSlowSourcesPassOnWhatTheyHave(t *testing.T) {
	for _, shuffle := range []order.Shuffle{order.None, order.Stream(1, 4)} {
		synctest.Test(t, func(t *testing.T) {
			src := numbers(400)
			src.delay = 10 * time.Millisecond
			l, err := newLoader(t.Context(), src, &Options{Columns: []Column{Int64("cls")}, GlobalBatch: 8, World: 1, Lanes: 1, Shuffle: shuffle, Tail: order.TailDrop})
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			for b, err := range l.Batches(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				// 4 samples wait in the buffer; a chunk may have begun when it was asked for.
				at, least := time.Since(begin), time.Duration(b.Step+1)*80*time.Millisecond
				if at > least+100*time.Millisecond {
					t.Errorf("%v: batch %d after %v, its samples were there after %v", shuffle, b.Step, at, least)
				}
				b.Release()
			}
			if s := l.Stats(); s.Batches != 50 {
				t.Errorf("%d batches", s.Batches)
			}
			checkEnd(t, l)
		})
	}
}
