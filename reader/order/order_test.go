package order_test

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/reader/order"
)

// data answers from counts and checks that questions come in order, once.
type data struct {
	counts []int64
	shard  int32
	next   int64
}

func (d *data) has(shard int32, index int64) (bool, error) {
	if int(d.shard) == len(d.counts) {
		d.shard = 0 // the next epoch
	}
	if shard != d.shard || index != d.next {
		return false, fmt.Errorf("asked for %d of shard %d instead of %d of shard %d", index, shard, d.next, d.shard)
	}
	d.next++
	if index < d.counts[shard] {
		return true, nil
	}
	d.shard, d.next = d.shard+1, 0
	return false, nil
}

func run(p order.Plan, counts []int64, most int) (steps [][]order.Ref, err error) {
	m, err := order.New(p)
	if err != nil {
		return nil, err
	}
	d := &data{counts: counts}
	for len(steps) < most {
		refs, ok, err := m.Step(nil, d.has)
		if err != nil || !ok {
			return steps, err
		}
		steps = append(steps, refs)
	}
	return steps, nil
}

func TestStepsByHand(t *testing.T) {
	// shard/index.copy
	for _, tt := range []struct {
		name string
		plan order.Plan
		want string
	}{
		{"plain", order.Plan{}, "[0/0.0 0/1.0] [2/0.0 2/1.0] [2/2.0]"},
		{"drop", order.Plan{Tail: order.TailDrop}, "[0/0.0 0/1.0] [2/0.0 2/1.0]"},
		{"two epochs", order.Plan{Epochs: 2, Tail: order.TailDrop}, "[0/0.0 0/1.0] [2/0.0 2/1.0] e1[0/0.0 0/1.0] e1[2/0.0 2/1.0]"},
		{"sample twice", order.Plan{Factor: 2 * order.One}, "[0/0.0 0/0.1] [0/1.0 0/1.1] [2/0.0 2/0.1] [2/1.0 2/1.1] [2/2.0 2/2.1]"},
		{"sample thrice", order.Plan{Factor: 3 * order.One, Tail: order.TailDrop},
			"[0/0.0 0/0.1] [0/0.2 0/1.0] [0/1.1 0/1.2] [2/0.0 2/0.1] [2/0.2 2/1.0] [2/1.1 2/1.2] [2/2.0 2/2.1]"},
		{"sample 1.5", order.Plan{Factor: order.One * 3 / 2}, "[0/0.0 0/1.0] [0/1.1 2/0.0] [2/1.0 2/1.1] [2/2.0]"},
		{"batch twice", order.Plan{Unit: order.Batch, Factor: 2 * order.One},
			"[0/0.0 0/1.0] [0/0.1 0/1.1] [2/0.0 2/1.0] [2/0.1 2/1.1] [2/2.0] [2/2.1]"},
		{"batch 1.5", order.Plan{Unit: order.Batch, Factor: order.One * 3 / 2},
			"[0/0.0 0/1.0] [2/0.0 2/1.0] [2/0.1 2/1.1] [2/2.0]"},
		{"batch twice, drop", order.Plan{Unit: order.Batch, Factor: 2 * order.One, Tail: order.TailDrop},
			"[0/0.0 0/1.0] [0/0.1 0/1.1] [2/0.0 2/1.0] [2/0.1 2/1.1]"},
	} {
		tt.plan.Shards, tt.plan.Batch = 4, 2
		steps, err := run(tt.plan, []int64{2, 0, 3, 0}, 100)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		var got string
		for i, refs := range steps {
			if i > 0 {
				got += " "
			}
			if refs[0].Epoch > 0 {
				got += fmt.Sprint("e", refs[0].Epoch)
			}
			words := make([]string, len(refs))
			for j, r := range refs {
				words[j] = fmt.Sprintf("%d/%d.%d", r.Shard, r.Index, r.Copy)
			}
			got += fmt.Sprint(words)
		}
		if got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// What must hold for any plan, stated without the machine: item n is given
// floor((n+1)e) - floor(n e) times, copies numbered from 0 and in the order of
// the shards; batches are full but for the last of an epoch.
func TestEverySampleAsOftenAsTheFactorSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.Int64Range(0, 9), 1, 6).Draw(t, "counts")
		num, den := rapid.Uint64Range(4, 20).Draw(t, "num"), uint64(4)
		p := order.Plan{
			Shards: len(counts),
			Batch:  rapid.IntRange(1, 8).Draw(t, "batch"),
			Epochs: rapid.IntRange(1, 3).Draw(t, "epochs"),
			Unit:   rapid.SampledFrom([]order.Unit{order.Sample, order.Batch}).Draw(t, "unit"),
			Tail:   rapid.SampledFrom([]order.Tail{order.TailKeep, order.TailDrop}).Draw(t, "tail"),
			Factor: order.Factor(num) * order.One / 4,
		}
		steps, err := run(p, counts, math.MaxInt)
		want := model(p, counts, num, den)
		if len(want) == 0 {
			if err == nil {
				t.Fatalf("an epoch without a batch is no error")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(steps), fmt.Sprint(want); got != want {
			t.Fatalf("\n got %s\nwant %s", got, want)
		}
		again, _ := run(p, counts, math.MaxInt)
		if fmt.Sprint(again) != fmt.Sprint(steps) {
			t.Fatal("a second run differs")
		}
	})
}

func model(p order.Plan, counts []int64, num, den uint64) (steps [][]order.Ref) {
	times := func(n int) int32 { return int32(uint64(n+1)*num/den - uint64(n)*num/den) }
	for epoch := range int32(p.Epochs) {
		var fresh []order.Ref
		for s, n := range counts {
			for i := range n {
				fresh = append(fresh, order.Ref{Epoch: epoch, Shard: int32(s), Index: i})
			}
		}
		emitted := fresh
		if p.Unit == order.Sample {
			emitted = nil
			for n, r := range fresh {
				for r.Copy = range times(n) {
					emitted = append(emitted, r)
				}
			}
		}
		for n := 0; len(emitted) > 0; n++ {
			size := min(p.Batch, len(emitted))
			if size < p.Batch && p.Tail == order.TailDrop {
				break
			}
			copies := int32(1)
			if p.Unit == order.Batch {
				copies = times(n)
			}
			for c := range copies {
				batch := append([]order.Ref(nil), emitted[:size]...)
				if p.Unit == order.Batch {
					for i := range batch {
						batch[i].Copy = c
					}
				}
				steps = append(steps, batch)
			}
			emitted = emitted[size:]
		}
	}
	return steps
}

func TestEndless(t *testing.T) {
	steps, err := run(order.Plan{Shards: 1, Batch: 2, Epochs: order.Endless}, []int64{3}, 1000)
	if err != nil || len(steps) != 1000 || steps[999][0].Epoch != 499 {
		t.Errorf("%d steps, the last of epoch %d, %v", len(steps), steps[len(steps)-1][0].Epoch, err)
	}
}

func TestErrors(t *testing.T) {
	boom := errors.New("boom")
	for _, tt := range []struct {
		name   string
		plan   order.Plan
		counts []int64
		want   error
	}{
		{"no samples", order.Plan{Shards: 2, Batch: 2, Epochs: order.Endless}, []int64{0, 0}, format.ErrMissing},
		{"all dropped", order.Plan{Shards: 1, Batch: 4, Epochs: order.Endless, Tail: order.TailDrop}, []int64{3}, format.ErrUsage},
		{"no shards", order.Plan{Batch: 2}, nil, format.ErrUsage},
		{"no batch", order.Plan{Shards: 1}, nil, format.ErrUsage},
		{"epochs", order.Plan{Shards: 1, Batch: 1, Epochs: -2}, nil, format.ErrUsage},
		{"factor", order.Plan{Shards: 1, Batch: 1, Factor: order.One - 1}, nil, format.ErrUsage},
		{"global", order.Plan{Shards: 1, Batch: 1, Shuffle: order.Global}, nil, format.ErrUnsupported},
		{"wrap", order.Plan{Shards: 1, Batch: 1, Tail: order.TailWrap}, nil, format.ErrUnsupported},
		{"shard", order.Plan{Shards: 1, Batch: 1, Unit: order.Shard}, nil, format.ErrUnsupported},
	} {
		if _, err := run(tt.plan, tt.counts, 10); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	m, _ := order.New(order.Plan{Shards: 1, Batch: 4})
	refs, ok, err := m.Step(nil, func(_ int32, i int64) (bool, error) { return i < 2, map[int64]error{2: boom}[i] })
	if len(refs) != 0 || ok || err != boom {
		t.Errorf("%v, %v, %v", refs, ok, err)
	}
}

func TestNewFactor(t *testing.T) {
	for e, want := range map[float64]order.Factor{1: order.One, 2: 2 << 32, 1.5: 3 << 31, 65536: 1 << 48} {
		if got, err := order.NewFactor(e); got != want || err != nil || got.Float64() != e || got.String() != fmt.Sprint(e) {
			t.Errorf("NewFactor(%v) = %d, %v", e, got, err)
		}
	}
	for _, e := range []float64{0, 0.999, -1, 65537, math.Inf(1), math.NaN()} {
		if _, err := order.NewFactor(e); !errors.Is(err, format.ErrUsage) {
			t.Errorf("NewFactor(%v): %v", e, err)
		}
	}
}

// A third is not representable, but a million thirds must not drift: fixed
// point holds n*floor-error below n/2^33.
func TestFactorDoesNotDrift(t *testing.T) {
	e, _ := order.NewFactor(4.0 / 3)
	steps, err := run(order.Plan{Shards: 1, Batch: 1 << 30, Factor: e}, []int64{3_000_000}, 2)
	if err != nil || len(steps) != 1 {
		t.Fatal(err)
	}
	if n := len(steps[0]); n != 3_999_999 && n != 4_000_000 {
		t.Errorf("%d emissions", n)
	}
}

// One bit of any input moves about half the bits of the result, and places do
// not stand in for each other.
func TestHashMixes(t *testing.T) {
	base := order.Hash(1, order.ForAugment, 2, 3, 4, 5)
	for place := range 4 {
		for bit := range 64 {
			c := []uint64{2, 3, 4, 5}
			c[place] ^= 1 << bit
			if n := bits.OnesCount64(base ^ order.Hash(1, order.ForAugment, c...)); n < 12 || n > 52 {
				t.Errorf("bit %d of counter %d moves %d bits", bit, place, n)
			}
		}
	}
	seen := map[uint64]bool{}
	for i := range uint64(40) {
		for j := range uint64(40) {
			seen[order.Hash(i, order.ForAugment, j)] = true
			seen[order.Hash(0, order.ForAugment, i, j)] = true
			seen[order.Hash(0, order.Purpose(i+2), j)] = true
		}
	}
	if len(seen) != 3*40*40 {
		t.Errorf("%d different of %d", len(seen), 3*40*40)
	}
	r := order.Ref{Epoch: 2, Shard: 3, Index: 4, Copy: 5}
	if r.Draws(1) != base {
		t.Error("Draws is another hash than it says")
	}
	if n := testing.AllocsPerRun(100, func() { r.Draws(1) }); n != 0 {
		t.Errorf("Draws allocates %v times", n)
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	m, _ := order.New(order.Plan{Shards: 1, Batch: 64, Epochs: order.Endless, Factor: 2 * order.One})
	has := func(_ int32, i int64) (bool, error) { return i < 1000, nil }
	refs := make([]order.Ref, 0, 64)
	if n := testing.AllocsPerRun(1000, func() { refs, _, _ = m.Step(refs, has) }); n != 0 {
		t.Errorf("Step allocates %v times", n)
	}
}

func BenchmarkStep(b *testing.B) {
	m, _ := order.New(order.Plan{Shards: 1, Batch: 64, Epochs: order.Endless})
	has := func(_ int32, i int64) (bool, error) { return i < 1000, nil }
	refs := make([]order.Ref, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		refs, _, _ = m.Step(refs, has)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/ref")
}
