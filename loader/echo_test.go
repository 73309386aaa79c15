package loader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"shardtool/augment"
	"shardtool/echo"
	"shardtool/fixtures"
	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/order"
	"shardtool/reader/store"
)

// Whatever is kept, and however little of it fits, the tensors are those of
// bytes that are decoded for each copy; where copies are kept augmented, each
// is the first.
func TestLevelsMakeTheSameTensors(t *testing.T) {
	photos := reader.New(store.FS(fixtures.Photos), fixtures.PhotoShards, &reader.Options{CacheDir: "-"})
	mixed := assorted(t, func(label int, s *format.Sample) {
		if label == 1003 {
			s.Fields[0].Data = s.Fields[0].Data[:len(s.Fields[0].Data)/2]
		}
	}, 9, 14, 0, 13)
	for _, tt := range []struct {
		name    string
		ds      *reader.Dataset
		columns []Column
		sizes   []int64 // of the cache: nothing fits, little, all
	}{
		{"photos", photos, []Column{Image("jpg;image/encoded", augment.ImageNetTrain(64)), Int64("cls;image/class/label")}, []int64{1, 300_000, 0}},
		{"assorted", mixed, assortedColumns(), []int64{1, 8_000, 0}},
	} {
		for _, e := range []echo.Options{{Factor: 3}, {Factor: 2.5, Buffer: 20}} {
			o := Options{
				Columns: tt.columns, GlobalBatch: 8, Seed: 5, Epochs: 2, Shuffle: order.Global, Tail: order.TailPad, World: 1,
				Workers: 3, OnBad: OnBad{Skip: 3}, Echo: e,
			}
			want, err := watch(t, tt.ds, o)
			if err != nil {
				t.Fatal(err)
			}
			first := map[order.Ref][32]byte{} // of the sample, whatever the copy
			for i := range want {
				for k, ref := range want[i].refs {
					if ref.Copy == 0 && want[i].valid[k] {
						first[ref] = want[i].tensors[k]
					}
				}
			}
			for _, o.Echo.Bytes = range tt.sizes {
				for _, o.Echo.Keep = range []echo.Level{echo.Decoded, echo.Augmented} {
					what := fmt.Sprintf("%s, %+v", tt.name, o.Echo)
					got, err := watch(t, tt.ds, o)
					if err != nil || len(got) != len(want) {
						t.Fatalf("%s: %d batches, want %d: %v", what, len(got), len(want), err)
					}
					for i := range got {
						for k, ref := range got[i].refs {
							sum := want[i].tensors[k]
							if o.Echo.Keep == echo.Augmented && want[i].valid[k] {
								ref.Copy = 0
								sum = first[ref]
							}
							if got[i].refs[k] != want[i].refs[k] || got[i].valid[k] != want[i].valid[k] || want[i].valid[k] && got[i].tensors[k] != sum {
								t.Fatalf("%s: batch %d, place %d, %+v differs", what, i, k, got[i].refs[k])
							}
						}
					}
				}
			}
		}
	}
}

// What is kept is bounded, and made again where it was not kept: at least once
// for each sample, at most for each emission.
func TestKeptIsBounded(t *testing.T) {
	const n, e = 51, 4
	for _, keep := range []echo.Level{echo.Decoded, echo.Augmented} {
		var before int64 = n*e + 1
		for _, bytes := range []int64{1, 20_000, 64 << 10, 1 << 20} {
			var decodes, pixels atomic.Int64
			l, err := newLoader(t.Context(), pictures(t, 25, 26), &Options{
				Columns:     []Column{Image("jpg;png", countingTransform(32, &decodes, &pixels)), Int64("cls")},
				GlobalBatch: 4, World: 1, Workers: 2, Seed: 3, Echo: echo.Options{Keep: keep, Factor: e, Buffer: 60, Bytes: bytes},
			})
			if err != nil {
				t.Fatal(err)
			}
			// Beside what is kept there is one value for each worker, with the alignment of its memory.
			const each = 32*32*3*4 + 1024
			for b, err := range l.Batches(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if c := l.Stats().Echo.Cache; c.Bytes > bytes+2*each {
					t.Fatalf("%v: %d bytes are kept, of %d", keep, c.Bytes, bytes)
				}
				b.Release()
			}
			c := l.Stats().Echo.Cache
			if decodes.Load() != c.Builds+c.Rebuilds || c.Builds != n || c.Hits+c.Builds+c.Rebuilds != n*e || c.Bytes != 0 {
				t.Errorf("%v of %d bytes: %d decodes, %+v", keep, bytes, decodes.Load(), c)
			}
			if d := decodes.Load(); d > before || bytes == 1 && c.Hits > n || bytes == 1<<20 && d != n {
				t.Errorf("%v: %d decodes with %d bytes, %d with less", keep, d, bytes, before)
			}
			before = decodes.Load()
			checkEnd(t, l)
		}
	}
}

// While one worker decodes, others that need the same picture do something
// else, and whoever ends in the middle leaves nothing.
func TestCopiesWaitForOneDecode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var decodes atomic.Int64
		slow := augment.ImageNetTrain(4).WithDecoder(func(l *format.Limits) augment.Decoder {
			return sleeping{augment.Standard(l), &decodes}
		})
		begin := time.Now()
		r := load(t, pictures(t, 16), Options{
			Columns: []Column{Image("jpg;png", slow), Int64("cls")}, GlobalBatch: 8, World: 1, Workers: 4, Prefetch: 4,
			Echo: echo.Options{Factor: 4, Keep: echo.Decoded},
		})
		// 16 decodes of a second each by 4 workers; one after the other they would take 16.
		if took := time.Since(begin); r.err != nil || decodes.Load() != 16 || took > 5*time.Second {
			t.Errorf("%d decodes took %v, %v", decodes.Load(), took, r.err)
		}
	})
}

type sleeping struct {
	augment.Decoder
	decodes *atomic.Int64
}

func (s sleeping) Decode(px *augment.Pixels, data []byte, r image.Rectangle) error {
	s.decodes.Add(1)
	time.Sleep(time.Second)
	return s.Decoder.Decode(px, data, r)
}

// Accounts of batches by hand: e = 2, batches of 4, no buffer, one lane: each
// sample stands twice side by side. With batches as unit, copies are 4 apart.
func TestEchoAccounts(t *testing.T) {
	for _, tt := range []struct {
		unit  echo.Unit
		batch echo.Account
	}{
		{echo.Sample, echo.Account{Fresh: 2, Emitted: 4, Duplicates: 2, Echoes: 2, Spaced: 2, Distance: 2, Nearest: 1}},
		{echo.Batch, echo.Account{Fresh: 2, Emitted: 4, Echoes: 2, Spaced: 2, Distance: 8, Nearest: 4}}, // of two
	} {
		l, err := newLoader(t.Context(), numbers(8), &Options{
			Columns: []Column{Int64("cls")}, GlobalBatch: 4, World: 1, Lanes: 1, Echo: echo.Options{Unit: tt.unit, Factor: 2},
		})
		if err != nil {
			t.Fatal(err)
		}
		var sum echo.Account
		batches := 0
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			a := b.Echo()
			if tt.unit == echo.Sample && a != tt.batch {
				t.Errorf("%v: %+v, want %+v", tt.unit, a, tt.batch)
			}
			sum.Merge(a)
			batches++
			b.Release()
		}
		want := echo.Account{}
		for range batches {
			want.Merge(tt.batch)
		}
		if batches != 4 || sum != want || l.Stats().Echo.Account != want {
			t.Errorf("%v: %d batches, %+v, loader %+v, want %+v", tt.unit, batches, sum, l.Stats().Echo.Account, want)
		}
		checkEnd(t, l)
	}
}

// log keeps what a loader says.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) Enabled(context.Context, slog.Level) bool { return true }
func (l *log) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *log) WithGroup(string) slog.Handler            { return l }
func (l *log) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	l.lines = append(l.lines, line)
	return nil
}

// The clock is fake: a shard gives a sample in 4 ms, which come 8 in a chunk, and
// a step takes 1 ms a sample, so R is 4.
func TestAutoFollowsR(t *testing.T) {
	for _, segment := range []int64{0, 200} {
		for _, shuffle := range []order.Shuffle{order.None, order.Stream(1, 1)} {
			synctest.Test(t, func(t *testing.T) {
				src := numbers(1600)
				pad := make([]byte, 128<<10)
				for i := range src.shards[0] {
					s := &src.shards[0][i]
					s.Fields = append(s.Fields, format.Field{Name: "pad", Data: pad})
				}
				src.delay, src.counted = 4*time.Millisecond, true
				var said log
				o := Options{
					Columns: []Column{size("pad"), Int64("cls")}, GlobalBatch: 8, World: 1, Epochs: 2, Shuffle: shuffle, Lanes: 1, Fetchers: 1, Tail: order.TailDrop,
					Echo: echo.Options{Buffer: 64, Auto: &echo.Auto{Segment: segment}}, Log: slog.New(&said),
				}
				l, err := newLoader(t.Context(), src, &o)
				if err != nil {
					t.Fatal(err)
				}
				var states []State
				var refs [][]order.Ref
				for b, err := range l.Batches(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Duration(b.Len()) * time.Millisecond)
					states = append(states, *b.State())
					refs = append(refs, slices.Clone(b.Refs))
					b.Release()
				}
				checkEnd(t, l)
				last := states[len(states)-2]
				if got := last.Factors[len(last.Factors)-1].Factor.Float64(); got < 3.5 || got > 4.5 {
					t.Errorf("segments of %d: the factor became %v, R is 4; %v", segment, got, said.lines)
				}
				if !slices.ContainsFunc(said.lines, func(s string) bool {
					return strings.HasPrefix(s, "the echo factor changes") && strings.Contains(s, "reason=")
				}) {
					t.Errorf("nothing was said of it: %q", said.lines)
				}
				holdReplay(t, src, o, states, refs)
			})
		}
	}
}

// holdReplay goes on from states of a run whose factors changed: the machine
// alone gives what the run gave, as long as nobody changes the factor.
func holdReplay(t *testing.T, src *memory, o Options, states []State, refs [][]order.Ref) {
	t.Helper()
	for at := 0; at < len(states); at += len(states) / 7 {
		o.Resume = &states[at]
		l, err := newLoader(t.Context(), src, &o)
		if err != nil {
			t.Fatal(err)
		}
		got := l.machine.State()
		if fmt.Sprint(got.Factors, got.Epoch, got.Step) != fmt.Sprint(states[at].Factors, states[at].Epoch, states[at].Step) {
			t.Fatalf("resumed at %+v, got %+v", states[at], got)
		}
		for k := at + 1; k < len(refs); k++ {
			if l.machine.SegmentBegins() { // from here on the factor may be another
				break
			}
			step, ok, err := l.machine.Step(nil, func(_, _, shard int32, i int64) (bool, error) { return i < int64(len(src.shards[shard])), nil })
			if err != nil || !ok || !slices.Equal(step, refs[k]) {
				t.Fatalf("step %d after %d: %v, %v, %v, want %v", k, at, step, ok, err, refs[k])
			}
		}
	}
}

// With several ranks the factor is what they agree on.
func TestAutoNeedsAgreement(t *testing.T) {
	o := Options{Columns: []Column{Int64("cls")}, GlobalBatch: 8, World: 2, Steps: 40, Tail: order.TailWrap, Shuffle: order.Stream(1, 1), Echo: echo.Options{Buffer: 16, Auto: &echo.Auto{Segment: 10}}}
	if _, err := newLoader(t.Context(), numbers(40, 40), &o); err == nil || !strings.Contains(err.Error(), "Agree") {
		t.Fatalf("two ranks without agreement: %v", err)
	}
	var asked atomic.Int64
	agreed := []float64{1, 3, 2, 2}
	for rank := range 2 {
		auto := *o.Echo.Auto
		calls := 0
		auto.Agree = func(_ context.Context, p echo.Proposal) (float64, error) {
			asked.Add(1)
			if want := int64(10 * calls); p.Step != want || p.Epoch != 0 {
				t.Errorf("asked at epoch %d, step %d, want %d", p.Epoch, p.Step, want)
			}
			calls++
			return agreed[calls-1], nil
		}
		o.Rank, o.Echo.Auto = rank, &auto
		l, err := newLoader(t.Context(), numbers(40, 40), &o)
		if err != nil {
			t.Fatal(err)
		}
		var last State
		n := 0
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 39 {
				last = *b.State()
			}
			b.Release()
		}
		if got := fmt.Sprint(last.Factors); n != 40 || got != "[{0 1} {10 3} {20 2}]" {
			t.Errorf("rank %d: %d steps, factors %s", rank, n, got)
		}
		checkEnd(t, l)
	}
	if asked.Load() != 8 {
		t.Errorf("asked %d times", asked.Load())
	}
	failing := *o.Echo.Auto
	failing.Agree = func(context.Context, echo.Proposal) (float64, error) { return 0.5, nil }
	o.Echo.Auto = &failing
	l, err := newLoader(t.Context(), numbers(40, 40), &o)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range l.Batches(t.Context()) {
		err = e
	}
	if format.Sentinel(err) != format.ErrUsage {
		t.Errorf("a factor of 0.5 was agreed on: %v", err)
	}
	checkEnd(t, l)
}

// A shard that is repeated is fetched once, however often it is read, whatever
// the order and the place; and the batches are those of shards that are read
// anew each time. What is kept does not stay.
func TestShardsAreFetchedOnce(t *testing.T) {
	local := assorted(t, nil, 9, 14, 0, 13, 5)
	total := int64(0)
	for _, name := range local.Shards() {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	const epochs = 2
	for _, shuffle := range []order.Shuffle{order.None, order.Block(2), order.Stream(2, 8)} {
		for world := 1; world <= 2; world++ {
			for _, bytes := range []int64{1, 0} { // in files, and in memory
				o := Options{
					Columns: assortedColumns(), GlobalBatch: 6, Seed: 8, Epochs: epochs, Shuffle: shuffle, Tail: order.TailPad, World: world, Rank: world - 1, Lanes: 2,
					Workers: 2, Fetchers: 3, Echo: echo.Options{Unit: echo.Shard, Factor: 3, Buffer: 9, Bytes: bytes, Dir: t.TempDir()},
				}
				want, err := watch(t, local, o)
				if err != nil {
					t.Fatal(err)
				}
				var c store.Counters
				ds := reader.New(store.Limit(store.Count(&store.Local{}, &c), store.LimitOptions{}), local.Shards(), &reader.Options{CacheDir: "-"})
				l, err := New(t.Context(), ds, &o)
				if err != nil {
					t.Fatal(err)
				}
				before := c.Bytes.Load() // to count, and to find places
				got, err := watchLoader(t, l)
				if err != nil {
					t.Fatal(err)
				}
				what := fmt.Sprintf("%v, rank %d of %d, %d bytes", shuffle, o.Rank, world, bytes)
				if at := equalSeen(want, got); at >= 0 {
					t.Fatalf("%s: step %d of %d differs, of %d", what, at, len(got), len(want))
				}
				// Once in each epoch, and the lane's stretch of a shard may begin within what another one reads.
				if n := c.Bytes.Load() - before; n > epochs*total*3/2 || n < total/2 {
					t.Errorf("%s: %d bytes were fetched of %d, %d times", what, n, total, epochs)
				}
				if left, err := os.ReadDir(o.Echo.Dir); err != nil || len(left) > 0 {
					t.Errorf("%s: %v is left, %v", what, left, err)
				}
				if s := l.Stats().Echo.Spool; s.Objects != 0 || s.Memory != 0 || s.Disk != 0 || s.Served < total/2 {
					t.Errorf("%s: %+v", what, s)
				}
			}
		}
	}
}

// What is probably not wanted is said: before, of the options; after the first
// epoch, of what was measured.
func TestEchoWarnings(t *testing.T) {
	warned := func(src source, o Options) string {
		t.Helper()
		var said log
		synctest.Test(t, func(t *testing.T) {
			o.Log = slog.New(&said)
			l, err := newLoader(t.Context(), src, &o)
			if err != nil {
				t.Fatal(err)
			}
			for b, err := range l.Batches(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(b.Len()) * time.Millisecond)
				b.Release()
			}
			checkEnd(t, l)
		})
		return strings.Join(said.lines, "\n")
	}
	slow := numbers(slices.Repeat([]int{8}, 40)...)
	slow.delay = 4 * time.Millisecond // by two, so R is about 2
	quick := numbers(slices.Repeat([]int{8}, 40)...)
	quick.delay = 100 * time.Microsecond
	base := Options{GlobalBatch: 8, World: 1, Lanes: 1, Fetchers: 1, Epochs: 2}
	for _, tt := range []struct {
		name    string
		src     source
		columns []Column
		echo    echo.Options
		says    string // or what it must not say, behind a !
	}{
		{"above R", slow, []Column{Int64("cls")}, echo.Options{Factor: 6, Buffer: 64}, "above R"},
		{"below R", slow, []Column{Int64("cls")}, echo.Options{Factor: 1.5, Buffer: 64}, "!R is"},
		{"R below 1", quick, []Column{Int64("cls")}, echo.Options{Factor: 2, Buffer: 64}, "use no echo"},
		{"no buffer", slow, []Column{Int64("cls")}, echo.Options{Factor: 2}, "without a buffer"},
		{"batches", slow, []Column{Int64("cls")}, echo.Options{Factor: 2, Unit: echo.Batch}, "same batch comes"},
		{"evaluation", pictures(t, 20), []Column{Image("jpg;png", augment.ImageNetEval(8)), Int64("cls")}, echo.Options{Factor: 2, Buffer: 64}, "without randomness"},
		{"training", pictures(t, 20), []Column{Image("jpg;png", augment.ImageNetTrain(8)), Int64("cls")}, echo.Options{Factor: 2, Buffer: 64}, "!without randomness"},
		{"no echo", numbers(40), []Column{Int64("cls")}, echo.Options{}, "!echo"},
	} {
		o := base
		o.Columns, o.Echo = tt.columns, tt.echo
		said := warned(tt.src, o)
		want, not := strings.CutPrefix(tt.says, "!")
		if n := strings.Count(said, want); not != (n == 0) || n > 1 {
			t.Errorf("%s: %q is said %d times:\n%s", tt.name, want, n, said)
		}
	}
}

// Every unit and level under factors that change: each sample comes as often as
// the factor of its epoch says, and a run that is resumed goes on alike.
func TestFactorsThatChange(t *testing.T) {
	factors := []float64{2, 3, 1, 2}
	ds := assorted(t, nil, 9, 14, 13)
	for _, shuffle := range shuffles {
		for _, e := range []echo.Options{{Unit: echo.Shard}, {Unit: echo.Batch}, {Keep: echo.Bytes}, {Keep: echo.Decoded, Buffer: 12}, {Keep: echo.Augmented, Buffer: 12}} {
			if e.Unit == echo.Shard && shuffle == order.Global {
				continue
			}
			what := fmt.Sprintf("%v, %+v", shuffle, e)
			e.Auto = &echo.Auto{Agree: func(_ context.Context, p echo.Proposal) (float64, error) { return factors[p.Epoch], nil }}
			o := Options{GlobalBatch: 6, Seed: 4, Epochs: len(factors), World: 1, Lanes: 1, Shuffle: shuffle, Tail: order.TailPad, Echo: e, Workers: 2}
			all, err := watch(t, ds, o)
			if err != nil {
				t.Fatal(what, err)
			}
			times := map[order.Ref]int{}
			for _, s := range all {
				for _, ref := range s.refs {
					if ref.Kind == order.Fresh {
						times[order.Ref{Epoch: ref.Epoch, Shard: ref.Shard, Index: ref.Index}]++
					}
				}
			}
			for ref, n := range times {
				if n != int(factors[ref.Epoch]) {
					t.Fatalf("%s: %+v comes %d times", what, ref, n)
				}
			}
			if len(times) != 36*len(factors) {
				t.Errorf("%s: %d samples in %d epochs", what, len(times), len(factors))
			}
			for at := 1; at < len(all); at += 11 {
				o.Resume = &all[at].state
				rest, err := watch(t, ds, o)
				if err != nil {
					t.Fatal(what, at, err)
				}
				if i := equalSeen(all[at+1:], rest); i >= 0 {
					t.Fatalf("%s: step %d after %d differs", what, i, at)
				}
			}
		}
	}
}

// speckled is a picture of noise, of which a part is not like another.
func speckled(t *testing.T, width, height, seed int) []byte {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range img.Pix {
		img.Pix[i] = uint8(r.Uint32())
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Pictures that are reduced for all copies alike are reduced alike after a
// resume amid the copies, before the last one too.
func TestReducedPicturesAfterResume(t *testing.T) {
	ds := assorted(t, func(label int, s *format.Sample) { s.Fields[0].Data = speckled(t, 300, 200, label) }, 12, 12)
	o := Options{
		Columns:     []Column{Image("jpg", augment.ImageNetTrain(24).WithShrink()), Int64("cls")},
		GlobalBatch: 4, World: 1, Lanes: 1, Seed: 3, Shuffle: order.Global, Echo: echo.Options{Factor: 3, Keep: echo.Decoded, Buffer: 9},
	}
	all, err := watch(t, ds, o)
	if err != nil {
		t.Fatal(err)
	}
	for at := range len(all) - 1 {
		o.Resume = &all[at].state
		rest, err := watch(t, ds, o)
		if err != nil {
			t.Fatal(err)
		}
		if i := equalSeen(all[at+1:], rest); i >= 0 {
			t.Fatalf("step %d after %d differs", i, at)
		}
	}
}

// Which of several faults a sample has does not depend on the level: here each
// bad sample lacks a field that makes a hole, before its picture is bad.
func TestLevelsFindTheSameFaults(t *testing.T) {
	ds := assorted(t, func(label int, s *format.Sample) {
		if label%6 == 1 {
			s.Fields = s.Fields[:4] // no text
			s.Fields[0].Data = s.Fields[0].Data[:100]
		}
	}, 12, 12)
	for _, keep := range []echo.Level{echo.Bytes, echo.Decoded, echo.Augmented} {
		l, err := New(t.Context(), ds, &Options{
			Columns:     []Column{Bytes("txt").OrHole(), Image("jpg", augment.ImageNetTrain(8)), Int64("cls")},
			GlobalBatch: 8, World: 1, Lanes: 1, Seed: 3, Shuffle: order.Global, Echo: echo.Options{Factor: 3, Keep: keep, Buffer: 9},
		})
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(keep, err)
			}
			b.Release()
		}
		if s := l.Stats(); s.Holes != 4*3 || len(s.Bad) != 1 || s.Bad["missing"] != 4 {
			t.Errorf("%v: %d holes, %v", keep, s.Holes, s.Bad)
		}
		checkEnd(t, l)
	}
}

// Samples of a shard that is kept are fetched once, whether runs read them or
// jobs at their places: the cost of a fresh one follows from that.
func TestFetchedOfShards(t *testing.T) {
	local := heavy(t, 2, 40, 20)
	for shuffle, scatter := range map[order.Shuffle]bool{order.None: true, order.Block(1): false} {
		ds := reader.New(store.Limit(&store.Local{}, store.LimitOptions{}), local.Shards(), &reader.Options{CacheDir: "-"})
		l, err := New(t.Context(), ds, &Options{
			Columns: []Column{size("pad"), Int64("cls")}, GlobalBatch: 8, World: 2, Lanes: 2, Shuffle: shuffle, Tail: order.TailPad,
			Echo: echo.Options{Unit: echo.Shard, Factor: 4},
		})
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
		}
		if s := l.Stats(); l.scatter != scatter || s.Fresh != 40 || s.Emitted != 160 || s.Measured.Fetched != 40 {
			t.Errorf("%v: %d fresh, %d emitted, %+v", shuffle, s.Fresh, s.Emitted, s.Measured)
		}
		checkEnd(t, l)
	}
}

// Reading that is held up for room is not fetching: here it takes no time, and
// the trainer all of it.
func TestRoomIsNotFetching(t *testing.T) {
	ds := heavy(t, 4, 16, 1000)
	for _, shuffle := range []order.Shuffle{order.Global, order.None} {
		o := Options{
			Columns: []Column{size("pad"), Int64("cls")}, GlobalBatch: 8, World: 1, Epochs: 3, Shuffle: shuffle, Workers: 2, Fetchers: 3,
		}
		o.MemoryBytes = tightest(t, ds, o)
		synctest.Test(t, func(t *testing.T) {
			l, err := New(t.Context(), ds, &o)
			if err != nil {
				t.Fatal(err)
			}
			for b, err := range l.Batches(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				b.Release()
			}
			s := l.Stats()
			if s.Measured.Fetching > 1e-3 || s.Measured.Trainer != 24 || s.Stages[0].Busy > 1e-3 {
				t.Errorf("%v: %+v, fetch %+v", shuffle, s.Measured, s.Stages[0])
			}
			checkEnd(t, l)
		})
	}
}

// A factor settles however short the segments are beside the batches made
// ahead: R is 4.
func TestAutoOfShortSegments(t *testing.T) {
	src := numbers(1600)
	pad := make([]byte, 128<<10)
	for i := range src.shards[0] {
		s := &src.shards[0][i]
		s.Fields = append(s.Fields, format.Field{Name: "pad", Data: pad})
	}
	src.delay, src.counted = 4*time.Millisecond, true
	for _, e := range []echo.Options{{Buffer: 64}, {Unit: echo.Batch, Buffer: 8}} {
		for _, segment := range []int64{2, 5, 10} {
			e.Auto = &echo.Auto{Segment: segment}
			o := Options{
				Columns: []Column{size("pad"), Int64("cls")}, GlobalBatch: 8, World: 1, Lanes: 1, Fetchers: 1, Tail: order.TailDrop, Prefetch: 8, Echo: e,
			}
			synctest.Test(t, func(t *testing.T) {
				l, err := newLoader(t.Context(), src, &o)
				if err != nil {
					t.Fatal(err)
				}
				var before, last State
				for b, err := range l.Batches(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Duration(b.Len()) * time.Millisecond)
					before, last = last, *b.State()
					b.Release()
				}
				checkEnd(t, l)
				f := before.Factors
				if n := len(f); n < 2 || n > 3 || f[n-1].Factor < 7*order.One/2 || f[n-1].Factor > 9*order.One/2 {
					t.Errorf("%v, segments of %d: %v", e.Unit, segment, f)
				}
			})
		}
	}
}

// A factor that is agreed on is held against the bounds, and an error of agreeing
// says what it is of.
func TestAgreementIsChecked(t *testing.T) {
	broken := errors.New("the network is down")
	for _, tt := range []struct {
		agreed float64
		err    error
		says   string
	}{
		{50, nil, "a factor of 50, which is not within 1 to 4"},
		{math.NaN(), nil, "a factor of NaN"},
		{2, broken, "agreeing on the echo factor of epoch 0, step 0: the network is down"},
	} {
		r := load(t, numbers(40), Options{
			Columns: []Column{Int64("cls")}, GlobalBatch: 4, World: 1,
			Echo: echo.Options{Auto: &echo.Auto{Max: 4, Segment: 2, Agree: func(context.Context, echo.Proposal) (float64, error) { return tt.agreed, tt.err }}},
		})
		if r.err == nil || !strings.Contains(r.err.Error(), tt.says) || tt.err == nil && !errors.Is(r.err, format.ErrUsage) || tt.err != nil && !errors.Is(r.err, tt.err) {
			t.Errorf("%v, %v: %v", tt.agreed, tt.err, r.err)
		}
	}
}

// Without an echo its buffer is none, and needs no memory.
func TestBufferWithoutEcho(t *testing.T) {
	o := Options{Columns: []Column{Int64("cls")}, GlobalBatch: 4, World: 1}
	want := load(t, numbers(40), o)
	o.Echo.Buffer = 1 << 20
	got := load(t, numbers(40), o)
	if got.err != nil || !slices.Equal(got.refs, want.refs) || fmt.Sprint(got.loader.Memory()) != fmt.Sprint(want.loader.Memory()) {
		t.Errorf("%v; %v, want %v", got.err, got.loader.Memory(), want.loader.Memory())
	}
}

// What Auto meant to do next binds nobody who goes on without it.
func TestAutoIsLeft(t *testing.T) {
	o := Options{
		Columns: []Column{Int64("cls")}, GlobalBatch: 4, World: 1, Epochs: 4, Tail: order.TailDrop,
		Echo: echo.Options{Buffer: 8, Auto: &echo.Auto{Agree: func(context.Context, echo.Proposal) (float64, error) { return 4, nil }}},
	}
	src := numbers(40)
	src.counted = true
	first := watchSource(t, src, o)
	at := first[3].state // of 40 steps of the first epoch
	if at.Next == 0 {
		t.Fatal("the state has no factor to come, so this shows nothing")
	}
	o.Resume, o.Echo.Auto, o.Echo.Factor = &at, nil, 1
	for _, s := range watchSource(t, src, o) {
		for _, ref := range s.refs {
			if want := map[bool]int32{true: 4, false: 1}[ref.Epoch == 0]; ref.Times != want {
				t.Fatalf("%+v, want %d times", ref, want)
			}
		}
	}
}

// watchSource runs a loader over a source to its end.
func watchSource(t *testing.T, src source, o Options) []seen {
	t.Helper()
	l, err := newLoader(t.Context(), src, &o)
	if err != nil {
		t.Fatal(err)
	}
	all, err := watchLoader(t, l)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
