package echo_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"shardtool/echo"
	"shardtool/reader/order"
)

func TestLedger(t *testing.T) {
	ref := func(index int64, copy, times int32) order.Ref {
		return order.Ref{Index: index, Copy: copy, Times: times}
	}
	next := func(r order.Ref) order.Ref { r.Epoch = 1; return r }
	var l echo.Ledger
	for i, tt := range []struct {
		refs []order.Ref
		want echo.Account
	}{
		// Places 1, 2, 3: sample 0 comes again after one other.
		{[]order.Ref{ref(0, 0, 2), ref(1, 0, 1), ref(0, 1, 2)}, echo.Account{Fresh: 2, Emitted: 3, Echoes: 1, Duplicates: 1, Spaced: 1, Distance: 2, Nearest: 2}},
		// 4, 5. Padding has no place.
		{[]order.Ref{ref(2, 0, 3), {Index: -1, Shard: -1, Times: 1, Kind: order.Padding}, ref(3, 0, 3)}, echo.Account{Fresh: 2, Emitted: 2}},
		// 6, 7, 8: sample 3 comes right after itself, but in the next batch.
		{[]order.Ref{ref(3, 1, 3), ref(4, 0, 1), ref(2, 1, 3)}, echo.Account{Fresh: 1, Emitted: 3, Echoes: 2, Spaced: 2, Distance: 1 + 4, Nearest: 1}},
		// 9, 10: the same sample in another shard is another one; what fills a tail is not fresh.
		{[]order.Ref{{Shard: 1, Index: 2, Times: 3}, {Index: 2, Times: 1, Kind: order.Wrapped}}, echo.Account{Fresh: 1, Emitted: 2}},
		// 11, 12: a copy whose first one was not seen, and its successor.
		{[]order.Ref{ref(9, 1, 3), ref(9, 2, 3)}, echo.Account{Emitted: 2, Echoes: 2, Duplicates: 1, Spaced: 1, Distance: 1, Nearest: 1}},
		// 13, 14: of an epoch that was left, nothing is remembered.
		{[]order.Ref{next(ref(3, 2, 3)), next(ref(2, 0, 2))}, echo.Account{Fresh: 1, Emitted: 2, Echoes: 1}},
		{nil, echo.Account{}},
		// 15 to 18: what fills a tail is not followed.
		{[]order.Ref{next(ref(7, 0, 2)), next(order.Ref{Index: 7, Times: 2, Kind: order.Wrapped})}, echo.Account{Fresh: 1, Emitted: 2}},
		{[]order.Ref{next(ref(7, 1, 2)), next(order.Ref{Index: 7, Copy: 1, Times: 2, Kind: order.Wrapped})}, echo.Account{Emitted: 2, Echoes: 2, Spaced: 1, Distance: 2, Nearest: 2}},
	} {
		if got := l.Add(tt.refs); got != tt.want {
			t.Errorf("batch %d: %s", i, cmp.Diff(tt.want, got))
		}
	}
	want := echo.Account{Fresh: 8, Emitted: 18, Echoes: 8, Duplicates: 2, Spaced: 5, Distance: 10, Nearest: 1}
	if got := l.Total(); got != want {
		t.Errorf("all: %s", cmp.Diff(want, got))
	}
	if l.Total().MeanDistance() != 2 || l.Total().Factor() != 18./8 {
		t.Errorf("mean distance %v, factor %v", l.Total().MeanDistance(), l.Total().Factor())
	}
	if (echo.Account{}).MeanDistance() != 0 {
		t.Error("a mean distance of nothing")
	}
}

func TestLedgerOfBatches(t *testing.T) {
	batch := func(copy int32, kinds ...order.Kind) (refs []order.Ref) {
		for i, k := range kinds {
			refs = append(refs, order.Ref{Index: int64(i), Copy: copy, Times: 3, Kind: k})
		}
		return refs
	}
	const f, w, p = order.Fresh, order.Wrapped, order.Padding
	other := []order.Ref{{Index: 8, Times: 1}, {Index: 9, Times: 1}}
	l := echo.Ledger{Unit: echo.Batch}
	for i, tt := range []struct {
		refs []order.Ref
		want echo.Account
	}{
		{batch(0, p, w, f, f), echo.Account{Fresh: 2, Emitted: 3}},
		{other, echo.Account{Fresh: 2, Emitted: 2}},
		{batch(1, p, w, f, f), echo.Account{Emitted: 3, Echoes: 3, Spaced: 3, Distance: 15, Nearest: 5}},
		{batch(2, p, w, f, f), echo.Account{Emitted: 3, Echoes: 3, Spaced: 3, Distance: 9, Nearest: 3}},
		{batch(2, p, w, f, f), echo.Account{Emitted: 3, Echoes: 3}}, // all copies were there
		{batch(0, p, w, w), echo.Account{Emitted: 2}},
		{batch(1, p, w, w), echo.Account{Emitted: 2, Echoes: 2}},
		{batch(0, p, p), echo.Account{}},
	} {
		if got := l.Add(tt.refs); got != tt.want {
			t.Errorf("batch %d: %s", i, cmp.Diff(tt.want, got))
		}
	}
}

func TestMerge(t *testing.T) {
	a := echo.Account{Fresh: 1, Emitted: 3, Echoes: 2, Duplicates: 1, Spaced: 2, Distance: 9, Nearest: 4}
	b := echo.Account{Fresh: 2, Emitted: 4, Echoes: 2, Duplicates: 2, Spaced: 1, Distance: 3, Nearest: 3}
	none := echo.Account{Fresh: 5, Emitted: 5}
	a.Merge(none)
	none.Merge(b)
	a.Merge(b)
	if want := (echo.Account{Fresh: 8, Emitted: 12, Echoes: 4, Duplicates: 3, Spaced: 3, Distance: 12, Nearest: 3}); a != want {
		t.Error(cmp.Diff(want, a))
	}
	if none.Nearest != 3 {
		t.Errorf("nearest %d", none.Nearest)
	}
}

// naive accounts with all that was ever emitted, whichever copy it was.
type naive struct {
	all   []order.Ref
	batch []int
}

func (n *naive) add(refs []order.Ref) echo.Account {
	var a echo.Account
	number := 1
	if len(n.batch) > 0 {
		number += n.batch[len(n.batch)-1]
	}
	for _, r := range refs {
		if r.Kind == order.Padding {
			continue
		}
		a.Emitted++
		if r.Kind == order.Fresh && r.Copy == 0 {
			a.Fresh++
		}
		if r.Copy > 0 {
			a.Echoes++
		}
		key := r
		key.Copy = 0
		for i := len(n.all) - 1; i >= 0 && r.Times > 1 && r.Kind == order.Fresh; i-- {
			if n.all[i] != key {
				continue
			}
			d := int64(len(n.all) - i)
			a.Spaced++
			a.Distance += d
			if a.Nearest == 0 || d < a.Nearest {
				a.Nearest = d
			}
			if n.batch[i] == number {
				a.Duplicates++
			}
			break
		}
		n.all, n.batch = append(n.all, key), append(n.batch, number)
	}
	return a
}

// whole accounts for a batch that is an echo of the same one before.
func (n *naive) whole(refs []order.Ref, before [][]order.Ref) echo.Account {
	a := n.add(refs)
	a.Duplicates, a.Spaced, a.Distance, a.Nearest = 0, 0, 0, 0
	keys := func(refs []order.Ref) (keys []order.Ref) {
		for _, r := range refs {
			if r.Kind != order.Padding {
				r.Copy = 0
				keys = append(keys, r)
			}
		}
		return keys
	}
	now := keys(refs)
	if !slices.ContainsFunc(now, func(r order.Ref) bool { return r.Kind == order.Fresh && r.Times > 1 }) {
		return a
	}
	distance := 0
	for _, b := range slices.Backward(before) {
		last := keys(b)
		if distance += len(last); slices.Equal(last, now) {
			a.Spaced = a.Emitted
			a.Nearest = int64(distance)
			a.Distance = a.Emitted * a.Nearest
			break
		}
	}
	return a
}

// drawOrder gives what one rank of a small plan emits, batch by batch.
func drawOrder(t *rapid.T) (order.Unit, [][]order.Ref) {
	p := order.Plan{
		Epochs: 2, Batch: rapid.SampledFrom([]int{1, 2, 3, 4, 8}).Draw(t, "batch"),
		Shuffle: rapid.SampledFrom([]order.Shuffle{order.None, order.Global, order.Block(2), order.Stream(2, 5)}).Draw(t, "shuffle"),
		Seed:    rapid.Uint64().Draw(t, "seed"),
		Tail:    rapid.SampledFrom([]order.Tail{order.TailDrop, order.TailPad, order.TailWrap}).Draw(t, "tail"),
		Unit:    rapid.SampledFrom([]order.Unit{order.Sample, order.Batch, order.Shard}).Draw(t, "unit"),
		Buffer:  rapid.IntRange(0, 20).Draw(t, "buffer"),
	}
	var part order.Part
	for i := range rapid.IntRange(1, 4).Draw(t, "shards") {
		part.Shards = append(part.Shards, order.Entry{Name: string(rune('a' + i)), Bytes: 1, Samples: int64(rapid.IntRange(1, 12).Draw(t, "samples"))})
	}
	p.Parts = []order.Part{part}
	p.Factor, _ = order.NewFactor(rapid.Float64Range(1, 5).Draw(t, "factor"))
	world := rapid.SampledFrom([]int{1, p.Batch}).Draw(t, "world")
	m, err := order.New(p, rapid.IntRange(0, world-1).Draw(t, "rank"), world)
	if err != nil {
		t.Skip(err)
	}
	var steps [][]order.Ref
	for {
		refs, ok, err := m.Step(nil, nil)
		if err != nil {
			t.Skip(err) // nothing fills a batch
		}
		if !ok {
			return p.Unit, steps
		}
		steps = append(steps, refs)
	}
}

func TestLedgerProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit, steps := drawOrder(t)
		from := 0
		if rapid.Bool().Draw(t, "resume") {
			from = rapid.IntRange(0, len(steps)).Draw(t, "from")
		}
		var l echo.Ledger
		if rapid.Bool().Draw(t, "knows the unit") {
			l.Unit = unit
		}
		var n naive
		var total echo.Account
		for i, refs := range steps[from:] {
			got := l.Add(refs)
			var want echo.Account
			if l.Unit == echo.Batch {
				want = n.whole(refs, steps[from:][:i])
			} else {
				want = n.add(refs)
			}
			if got != want {
				t.Fatalf("batch %d: %s", from+i, cmp.Diff(want, got))
			}
			total.Merge(want)
		}
		if l.Total() != total {
			t.Fatal(cmp.Diff(total, l.Total()))
		}
	})
}

// TestLedgerBound: what is more than it remembers is counted, not placed.
func TestLedgerBound(t *testing.T) {
	const n, most = 1<<20 + 1000, 1 << 20
	refs := make([]order.Ref, n)
	for i := range refs {
		refs[i] = order.Ref{Index: int64(i) * 7919, Shard: int32(i % 5), Times: 2}
	}
	var l echo.Ledger
	l.Add(refs)
	for i := range refs {
		refs[i].Copy = 1
	}
	l.Add(refs)
	want := echo.Account{Fresh: n, Emitted: 2 * n, Echoes: n, Spaced: most, Distance: most * n, Nearest: n}
	if got := l.Total(); got != want {
		t.Error(cmp.Diff(want, got))
	}
}

// ledgerRun is a run's batches of 256 of 64 lanes, with the echo's buffer full.
func ledgerRun(t testing.TB, p order.Plan, n int) [][]order.Ref {
	p.Parts = []order.Part{{Shards: []order.Entry{{Name: "a", Bytes: 1, Samples: 1 << 20}}}}
	p.Batch, p.Epochs = 256, order.Endless
	m, err := order.New(p, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	steps := make([][]order.Ref, n)
	for i := range steps {
		if steps[i], _, err = m.Step(nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	return steps
}

// TestBufferSpreadsCopies: what a buffer of W emissions does to the e copies of a
// sample. Each waits in it for a time that is exponential with mean W, whence
// the mean distance of neighbours is W H(e-1)/(e-1), with the harmonic number
// H. Of a lane with L samples in a batch of B, each has (L-1)/2 before it in the
// batch, one of which is a copy of it for (e-1) B/(4 W) (L-1)/L of all emissions,
// while B is small beside W.
func TestBufferSpreadsCopies(t *testing.T) {
	const w = 8192
	for _, tt := range []struct {
		e        int
		harmonic float64
	}{{2, 1}, {4, 1 + 1./2 + 1./3}, {8, 1 + 1./2 + 1./3 + 1./4 + 1./5 + 1./6 + 1./7}} {
		steps := ledgerRun(t, order.Plan{Shuffle: order.Global, Factor: order.Factor(tt.e) * order.One, Buffer: w}, 2000)
		var l echo.Ledger
		for _, refs := range steps {
			l.Add(refs)
		}
		a := l.Total()
		distance := a.MeanDistance() * float64(tt.e-1) / (w * tt.harmonic)
		duplicates := float64(a.Duplicates) / float64(a.Emitted) / (float64(tt.e-1) * 256 / (4 * w) * 3 / 4)
		if distance < 0.95 || distance > 1.05 || duplicates < 0.9 || duplicates > 1.1 {
			t.Errorf("e = %d: distances %.3f and duplicates %.3f of what is expected", tt.e, distance, duplicates)
		}
	}
}

var ledgerPlans = map[string]order.Plan{
	"none":   {Shuffle: order.Global},
	"sample": {Shuffle: order.Global, Factor: 4 * order.One, Buffer: 1 << 14},
	"batch":  {Shuffle: order.Global, Factor: 4 * order.One, Unit: order.Batch, Buffer: 64},
	"steps":  {Shuffle: order.Global, Factor: 4 * order.One, Unit: order.Batch},
}

func TestLedgerAllocatesNothing(t *testing.T) {
	for name, p := range ledgerPlans {
		steps := ledgerRun(t, p, 300)
		l := echo.Ledger{Unit: p.Unit}
		for _, refs := range steps[:200] {
			l.Add(refs)
		}
		i := 200
		if n := testing.AllocsPerRun(90, func() { l.Add(steps[i]); i++ }); n != 0 {
			t.Errorf("%s: %v allocations a batch", name, n)
		}
	}
}

func BenchmarkLedger(b *testing.B) {
	for _, name := range []string{"none", "sample", "batch", "steps"} {
		b.Run(name, func(b *testing.B) {
			steps := ledgerRun(b, ledgerPlans[name], 2048)
			b.ReportAllocs()
			l := echo.Ledger{Unit: ledgerPlans[name].Unit}
			for i := 0; b.Loop(); i++ {
				l.Add(steps[i%len(steps)])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(256*b.N), "ns/emission")
		})
	}
}
