package order_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"shardtool/format"
	"shardtool/reader/order"
)

func TestErrors(t *testing.T) {
	two := counted(order.Plan{}, 3, 4).Parts
	dark := uncounted(order.Plan{}, 3, 4).Parts
	mixed := func(weights ...float64) (parts []order.Part) {
		for _, w := range weights {
			parts = append(parts, order.Part{Shards: two[0].Shards, Weight: w})
		}
		return parts
	}
	excluded := func(x ...int64) []order.Part {
		return []order.Part{{Shards: []order.Entry{{Name: "x.tar", Samples: 3, Exclude: x}}}}
	}
	for _, tt := range []struct {
		plan  order.Plan
		world int
		is    error
		says  string
	}{
		{order.Plan{}, 1, format.ErrUsage, "no shards"},
		{order.Plan{Parts: []order.Part{{}}}, 1, format.ErrUsage, "no shards"},
		{order.Plan{Parts: []order.Part{two[0], {}}}, 1, format.ErrUsage, "no shards in data set 1"},
		{order.Plan{Parts: two, Batch: -1}, 1, format.ErrUsage, "batch of -1"},
		{order.Plan{Parts: two, Epochs: -2}, 1, format.ErrUsage, "-2 epochs"},
		{order.Plan{Parts: two, Steps: -1}, 1, format.ErrUsage, "-1 steps"},
		{order.Plan{Parts: two, Steps: math.MaxInt64}, 1, format.ErrUsage, "steps"},
		{order.Plan{Parts: two, Factor: order.One - 1}, 1, format.ErrUsage, "echo factor"},
		{order.Plan{Parts: two, Factor: 1<<48 + 1}, 1, format.ErrUsage, "echo factor"},
		{order.Plan{Parts: two, Buffer: -1}, 1, format.ErrUsage, "buffer of -1"},
		{order.Plan{Parts: two, Lanes: -1}, 1, format.ErrUsage, "-1 lanes"},
		{order.Plan{Parts: two, Lanes: 3}, 1, format.ErrUsage, "a batch of 64 samples does not divide among 3 lanes"},
		{order.Plan{Parts: two, Shuffle: order.Block(0)}, 1, format.ErrUsage, "block(0)"},
		{order.Plan{Parts: two, Shuffle: order.Stream(1, -1)}, 1, format.ErrUsage, "stream(1, -1)"},
		{order.Plan{Parts: two, Shuffle: order.Global, Unit: order.Shard}, 1, format.ErrUsage, "global"},
		{order.Plan{Parts: two, Unit: 9}, 1, format.ErrUsage, "unit 9"},
		{order.Plan{Parts: two, Segment: -1}, 1, format.ErrUsage, "segments of -1 steps"},
		{order.Plan{Parts: two, Segment: 1, Unit: order.Shard}, 1, format.ErrUsage, "echo of shards with segments"},
		{order.Plan{Parts: two}, 0, format.ErrUsage, "world of 0"},
		{order.Plan{Parts: two, Shuffle: order.Global}, 3, format.ErrUsage, "3 ranks do not divide the 64 lanes of a batch of 64 samples among them: 1, 2, 4, 8, 16, 32, 64 do"},
		{order.Plan{Parts: two, Tail: order.TailKeep}, 2, format.ErrUsage, "one rank only"},
		{order.Plan{Parts: two, Tail: order.TailKeep, Lanes: 2}, 1, format.ErrUsage, "one lane only"},
		{order.Plan{Parts: dark, Shuffle: order.Global}, 1, format.ErrUsage, "2 of 2 shards, first train-0.tar: make an index (shardtool index)"},
		{order.Plan{Parts: dark, Shuffle: order.Block(2)}, 1, format.ErrUsage, "shardtool index"},
		{order.Plan{Parts: dark}, 2, format.ErrUsage, "give the steps"},
		{order.Plan{Parts: dark, Steps: 1}, 4, format.ErrUsage, "2 shards for 4 lanes of 4 ranks"},
		{order.Plan{Parts: dark, Steps: 1, Batch: 3}, 2, format.ErrUsage, "3 samples does not divide among 2 lanes"},
		{order.Plan{Parts: mixed(1, 0)}, 1, format.ErrUsage, "data set 1 of the mix has a weight of 0"},
		{order.Plan{Parts: mixed(1, math.NaN())}, 1, format.ErrUsage, "NaN"},
		{order.Plan{Parts: mixed(1, -1)}, 1, format.ErrUsage, "-1"},
		{order.Plan{Parts: mixed(math.Inf(1), 1)}, 1, format.ErrUsage, "Inf"},
		{order.Plan{Parts: mixed(math.MaxFloat64, math.MaxFloat64)}, 1, format.ErrUsage, "sum"},
		{order.Plan{Parts: mixed(1, 1e-30)}, 1, format.ErrUsage, "unequal"},
		{order.Plan{Parts: mixed(1, 1), Shuffle: order.Block(1)}, 1, format.ErrUsage, "7 samples of data set 0 of the mix for 64 lanes"},
		{order.Plan{Parts: append(mixed(1), order.Part{Shards: []order.Entry{{Name: "e"}}, Weight: 1})}, 1, format.ErrMissing, "no samples in the 1 shard of data set 1"},
		{order.Plan{Parts: excluded(2, 1)}, 1, format.ErrUsage, "x.tar"},
		{order.Plan{Parts: excluded(-1)}, 1, format.ErrUsage, "x.tar"},
		{order.Plan{Parts: excluded(1, 1)}, 1, format.ErrUsage, "x.tar"},
		{order.Plan{Parts: excluded(3)}, 1, format.ErrUsage, "sample 3 is excluded, but there are 3"},
		{order.Plan{Parts: []order.Part{{Shards: []order.Entry{{Name: "n.tar", Samples: -2}}}}}, 1, format.ErrLimit, "n.tar"},
		{order.Plan{Parts: []order.Part{{Shards: []order.Entry{{Samples: 1 << 45}, {Name: "n.tar", Samples: 1}}}}}, 1, format.ErrLimit, "n.tar"},
	} {
		switch tt.plan.Batch {
		case 0:
			tt.plan.Batch = 64
		case -1:
			tt.plan.Batch = -1
		}
		if tt.says == "batch of -1" {
			tt.plan.Batch = -1
		}
		_, err := order.New(tt.plan, 0, tt.world)
		if !errors.Is(err, tt.is) || !strings.Contains(fmt.Sprint(err), tt.says) {
			t.Errorf("%v, want %q", err, tt.says)
		}
	}
	for _, rank := range []int{-1, 2} {
		if _, err := order.New(counted(order.Plan{Batch: 2, Tail: order.TailDrop}, 4).Plan, rank, 2); !errors.Is(err, format.ErrUsage) {
			t.Errorf("rank %d of 2: %v", rank, err)
		}
	}
}

func TestNoStep(t *testing.T) {
	for _, tr := range []trial{
		counted(order.Plan{Batch: 4, Tail: order.TailDrop, Epochs: order.Endless}, 3),
		uncounted(order.Plan{Batch: 4, Tail: order.TailDrop, Epochs: order.Endless}, 3),
		counted(order.Plan{Batch: 4, Shuffle: order.Global, Epochs: order.Endless}, 3),
		uncounted(order.Plan{Batch: 4, Shuffle: order.Stream(1, 2), Epochs: order.Endless}, 3),
	} {
		r, _ := newRank(&tr, 0, 1)
		if steps := r.all(); len(steps) > 0 || !errors.Is(r.err, format.ErrUsage) {
			t.Errorf("%d steps, %v", len(steps), r.err)
		}
	}
	tr := counted(order.Plan{Batch: 4}, 1)
	tr.Parts[0].Shards[0].Exclude = []int64{0}
	r, _ := newRank(&tr, 0, 1)
	if r.step(); !errors.Is(r.err, format.ErrMissing) || !strings.Contains(r.err.Error(), "excluded") {
		t.Errorf("all excluded: %v", r.err)
	}
}

func TestEndless(t *testing.T) {
	tr := uncounted(order.Plan{Batch: 2, Epochs: order.Endless}, 3)
	r, _ := newRank(&tr, 0, 1)
	var refs []order.Ref
	for range 1000 {
		refs = r.step()
	}
	if refs[0].Epoch != 499 {
		t.Errorf("the last is of epoch %d", refs[0].Epoch)
	}
}

// An error of Take ends the order, and data that contradict the counts are one.
func TestTakeErrors(t *testing.T) {
	boom := errors.New("boom")
	tr := uncounted(order.Plan{Batch: 4}, 9)
	m, _ := order.New(tr.Plan, 0, 1)
	take := func(_, _, _ int32, i int64) (bool, error) { return i < 2, map[int64]error{2: boom}[i] }
	for range 2 {
		if refs, ok, err := m.Step(nil, take); len(refs) != 0 || ok || err != boom {
			t.Errorf("%v, %v, %v", refs, ok, err)
		}
	}
	if _, _, err := m.Step(nil, nil); err != boom {
		t.Error(err)
	}
	fresh, _ := order.New(tr.Plan, 0, 1)
	if _, _, err := fresh.Step(nil, nil); !errors.Is(err, format.ErrUsage) {
		t.Error(err)
	}

	for _, shuffle := range []order.Shuffle{order.None, order.Global, order.Block(1)} {
		short := counted(order.Plan{Batch: 4, Shuffle: shuffle}, 9)
		short.counts[0] = 0
		r, _ := newRank(&short, 0, 1)
		if r.step(); !errors.Is(r.err, format.ErrStale) || !strings.Contains(r.err.Error(), "train-0.tar") {
			t.Errorf("%v: %v", shuffle, r.err)
		}
	}
	for _, later := range []int64{2, 4} {
		changed := uncounted(order.Plan{Batch: 1, Epochs: 2}, 3)
		r, _ := newRank(&changed, 0, 1)
		for range 4 {
			r.step()
		}
		changed.counts[0] = later
		for r.err == nil {
			r.step()
		}
		if !errors.Is(r.err, format.ErrStale) {
			t.Errorf("3 samples, then %d: %v", later, r.err)
		}
	}
}

// An order without data: Take may be nil where counts are known.
func TestPlanAlone(t *testing.T) {
	tr := counted(order.Plan{Batch: 4, Shuffle: order.Block(2), Seed: 9}, 5, 6, 7)
	want := run(t, tr, 1)[0]
	m, _ := order.New(tr.Plan, 0, 1)
	for _, w := range want {
		refs, ok, err := m.Step(nil, nil)
		if !ok || err != nil || words(refs) != words(w) {
			t.Fatalf("%s, %v, %v", words(refs), ok, err)
		}
	}
}

func TestLengths(t *testing.T) {
	const half3 = order.One * 3 / 2
	for _, tt := range []struct {
		plan                  order.Plan
		steps, fresh, emitted int64
	}{
		{order.Plan{}, 3, 10, 10},
		{order.Plan{Tail: order.TailDrop}, 2, 10, 8},
		{order.Plan{Tail: order.TailPad}, 3, 10, 10},
		{order.Plan{Tail: order.TailWrap}, 3, 10, 12},
		{order.Plan{Shuffle: order.Global}, 2, 10, 8},
		{order.Plan{Factor: half3}, 4, 10, 15},
		{order.Plan{Factor: half3, Tail: order.TailPad, Lanes: 1}, 4, 10, 15},
		{order.Plan{Factor: half3, Unit: order.Shard}, 4, 10, 6 + 2*4}, // the second shard of 4 comes twice
		{order.Plan{Factor: half3, Unit: order.Batch}, 4, 10, 4 + 2*4 + 2},
		{order.Plan{Factor: half3, Unit: order.Batch, Tail: order.TailDrop}, 3, 10, 12},
		{order.Plan{Steps: 5, Tail: order.TailPad}, 5, 10, 10},
		{order.Plan{Steps: 5, Tail: order.TailDrop}, 5, 10, 20},
		{order.Plan{Steps: 2}, 2, 10, 8},
		{order.Plan{Steps: 5}, 3, 10, 10},
	} {
		tt.plan.Batch = 4
		m, err := order.New(counted(tt.plan, 6, 4).Plan, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		steps, known := m.Steps()
		fresh, emitted, also := m.Lengths()
		if !known || !also || steps != tt.steps || fresh != tt.fresh || emitted != tt.emitted {
			t.Errorf("%+v: %d steps, %d fresh, %d emitted", tt.plan, steps, fresh, emitted)
		}
	}
	m, _ := order.New(uncounted(order.Plan{Batch: 4}, 6).Plan, 0, 1)
	if _, known := m.Steps(); known {
		t.Error("steps are known without counts")
	}
	if _, _, known := m.Lengths(); known {
		t.Error("lengths are known without counts")
	}
}

// The lanes of Block turn to the parts of a mix one after the other, so that
// every batch has its share of each, though a lane gives one sample of it.
func TestBatchesAreMixed(t *testing.T) {
	a, b := counted(order.Plan{}, 3000, 3000), counted(order.Plan{}, 1000, 1000)
	a.Parts[0].Weight, b.Parts[0].Weight = 3, 1
	tr := trial{counts: append(a.counts, b.counts...), part: []int{0, 0, 1, 1},
		Plan: order.Plan{Batch: 64, Shuffle: order.Block(2), Parts: append(a.Parts, b.Parts...)}}
	for i, refs := range run(t, tr, 1)[0] {
		n := 0
		for _, r := range refs {
			n += tr.part[r.Shard]
		}
		if n < 14 || n > 18 {
			t.Errorf("batch %d of 64 has %d of a quarter", i, n)
		}
	}
}

// Open shards and buffers count over all lanes.
func TestReadings(t *testing.T) {
	for _, tt := range []struct {
		tr             trial
		world          int
		readings, open int
	}{
		{counted(order.Plan{Batch: 64}, 99), 1, 1, 1},
		{counted(order.Plan{Batch: 64, Shuffle: order.Global}, 99), 1, 0, 1},
		{counted(order.Plan{Batch: 64, Shuffle: order.Block(256)}, 99), 4, 16, 4},
		{counted(order.Plan{Batch: 64, Shuffle: order.Block(16)}, 99), 2, 32, 1},
		{uncounted(order.Plan{Batch: 64, Shuffle: order.Stream(16, 10), Steps: 1}, 1, 1, 1, 1), 2, 1, 8},
		{uncounted(order.Plan{Batch: 64, Steps: 1}, 1, 1, 1, 1), 4, 1, 1},
	} {
		m, err := order.New(tt.tr.Plan, 0, tt.world)
		if err != nil {
			t.Fatal(err)
		}
		if m.Readings() != tt.readings || m.Open() != tt.open {
			t.Errorf("%v: %d readings of %d", tt.tr.Shuffle, m.Readings(), m.Open())
		}
	}
}

func TestSetFactor(t *testing.T) {
	tr := counted(order.Plan{Batch: 1, Epochs: 3}, 2)
	r, _ := newRank(&tr, 0, 1)
	first := r.step()
	if err := r.SetFactor(2 * order.One); err != nil {
		t.Fatal(err)
	}
	mid := r.State()
	rest := r.all()
	want := "[0/0.0] [0/1.0] [e1:0/0.0] [e1:0/0.1] [e1:0/1.0] [e1:0/1.1] [e2:0/0.0] [e2:0/0.1] [e2:0/1.0] [e2:0/1.1]"
	if got := text(append([][]order.Ref{first}, rest...)); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	again, _ := newRank(&tr, 0, 1)
	if err := again.Restore(mid); err != nil {
		t.Fatal(err)
	}
	if got := again.all(); text(got) != text(rest) {
		t.Errorf("after restore %s", text(got))
	}
	if err := r.SetFactor(1); !errors.Is(err, format.ErrUsage) {
		t.Error(err)
	}
}

// The running epoch keeps the factor of the state; the plan's takes over at
// the next.
func TestRestoreWithAnotherFactor(t *testing.T) {
	tr := counted(order.Plan{Batch: 1, Epochs: 2, Factor: 2 * order.One}, 2)
	r, _ := newRank(&tr, 0, 1)
	r.step()
	tr.Factor = order.One
	again, _ := newRank(&tr, 0, 1)
	if err := again.Restore(r.State()); err != nil {
		t.Fatal(err)
	}
	if got, want := text(again.all()), "[0/0.1] [0/1.0] [0/1.1] [e1:0/0.0] [e1:0/1.0]"; got != want {
		t.Errorf("got %s", got)
	}
}

// mixed is a mix by two lanes: of all shards but the last one or two, and of
// the rest, so that both halves have a shard at least.
func mixed(s order.Shuffle, counts ...int64) trial {
	if len(counts) == 1 {
		counts = append(counts, counts[0])
	}
	tr := counted(order.Plan{Batch: 4, Lanes: 2, Shuffle: s}, counts...)
	all := tr.Plan.Parts[0].Shards
	n := (len(all) + 1) / 2
	tr.Plan.Parts = []order.Part{{Shards: all[:n], Weight: 1}, {Shards: all[n:], Weight: 1}}
	return tr
}

func TestWarnings(t *testing.T) {
	for _, tt := range []struct {
		tr    trial
		world int
		want  string
	}{
		{counted(order.Plan{Batch: 4}, 8), 1, ""},
		{counted(order.Plan{Batch: 4, Tail: order.TailDrop}, 10), 1, "the tail leaves out 2 of the 10 samples of an epoch"},
		{counted(order.Plan{Batch: 4, Tail: order.TailDrop}, 3), 1, "do not fill a batch of 4"},
		{counted(order.Plan{Batch: 4, Steps: 1}, 8), 1, "epochs of 1 steps leave out 4 of 8"},
		{counted(order.Plan{Batch: 4, Shuffle: order.Global, Factor: 2 * order.One}, 8), 1, "2 batches in a row hold the same samples; give the echo a buffer of 8 or more"},
		{counted(order.Plan{Batch: 4, Shuffle: order.Global, Factor: 2 * order.One, Buffer: 8}, 8), 1, ""},
		{counted(order.Plan{Batch: 4, Shuffle: order.Global, Factor: 2 * order.One, Lanes: 2}, 8), 1, "!echo without a buffer: the copies of a sample stand side by side in a batch; give the echo a buffer of a few batches, such as 16"},
		{counted(order.Plan{Batch: 4, Shuffle: order.Global, Factor: order.One * 3 / 2, Lanes: 2}, 8), 1, ""},
		{counted(order.Plan{Batch: 4, Shuffle: order.Global, Factor: 2 * order.One, Unit: order.Batch}, 8), 1, ""},
		{counted(order.Plan{Batch: 4, Shuffle: order.Global, Segment: 5, Buffer: 3, Lanes: 2}, 8), 1, "!an echo buffer of 3 among 2 lanes is none: give 4 or more"},
		{counted(order.Plan{Batch: 4, Shuffle: order.Global, Factor: 2 * order.One, Buffer: 5, Lanes: 2}, 8), 1, ""},
		{counted(order.Plan{Batch: 4, Shuffle: order.Global, Factor: 2 * order.One, Buffer: 3, Lanes: 2}, 8), 1, "!an echo buffer of 3 among 2 lanes is none: give 4 or more"},
		{counted(order.Plan{Batch: 4, Shuffle: order.Stream(4, 8)}, 8), 1, "1 shard for 4 lanes"},
		{counted(order.Plan{Batch: 4, Shuffle: order.Stream(2, 8)}, 2, 2, 2, 2), 1, "opens one shard for each lane, which makes 4"},
		{counted(order.Plan{Batch: 4, Shuffle: order.Stream(4, 7)}, 2, 2, 2, 2), 1, "a buffer of 7 among 4 lanes mixes nothing"},
		{uncounted(order.Plan{Batch: 4, Shuffle: order.Stream(4, 8)}, 2), 1, "same number of ranks"},
		{trial{}, 1, ""},
		{mixed(order.Block(4), 8, 8, 8, 8), 1, ""},
		{mixed(order.Block(4), 8, 8, 8), 1, "!1 shard in data set 1 of the mix for 2 lanes: several lanes read stretches of the same shard"},
		{mixed(order.Block(4), 8), 1, "!1 shard in data set 0 of the mix, 1 shard in data set 1 of the mix for 2 lanes: several"},
	} {
		warnings := order.Warnings(tt.tr.Plan, tt.world)
		got := strings.Join(warnings, "; ")
		if once, ok := strings.CutPrefix(tt.want, "!"); ok {
			tt.want = once
			n := 0
			for _, w := range warnings {
				if strings.Contains(w, "stretches") || strings.Contains(w, "echo") {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%q: not once", got)
			}
		}
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// steady are plans of every kind that are long enough to look at the middle.
func steady() map[string]trial {
	counts := make([]int64, 1000)
	for i := range counts {
		counts[i] = int64(1000 + i%7)
	}
	plans := map[string]trial{}
	for name, p := range map[string]order.Plan{
		"none":         {},
		"global":       {Shuffle: order.Global},
		"block":        {Shuffle: order.Block(128)},
		"stream":       {Shuffle: order.Stream(128, 1<<14)},
		"global echo":  {Shuffle: order.Global, Factor: order.One * 3 / 2, Buffer: 4096},
		"global batch": {Shuffle: order.Global, Factor: order.One * 3 / 2, Unit: order.Batch, Buffer: 4},
		"segments":     {Shuffle: order.Global, Buffer: 4096, Segment: 100},
		"block shard":  {Shuffle: order.Block(128), Factor: order.One * 3 / 2, Unit: order.Shard},
	} {
		p.Batch, p.Tail = 256, order.TailDrop
		plans[name] = counted(p, counts...)
	}
	plans["none uncounted"] = uncounted(order.Plan{Batch: 256}, counts...)
	plans["stream uncounted"] = uncounted(order.Plan{Batch: 256, Shuffle: order.Stream(16, 4096)}, counts...)
	mixed := counted(order.Plan{Batch: 256, Shuffle: order.Global}, counts...)
	mixed.Parts = []order.Part{{mixed.Parts[0].Shards[:500], 1}, {mixed.Parts[0].Shards[500:], 3}}
	plans["global mix"] = mixed
	return plans
}

func TestStepAllocatesNothing(t *testing.T) {
	for name, tr := range steady() {
		m, err := order.New(tr.Plan, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		take := func(_, _, shard int32, index int64) (bool, error) { return index < tr.counts[shard], nil }
		refs := make([]order.Ref, 0, 256)
		for range 100 {
			refs, _, _ = m.Step(refs, take)
		}
		var s order.State
		// Learned counts grow by doubling, which is less than once in the runs.
		if n := testing.AllocsPerRun(500, func() {
			refs, _, _ = m.Step(refs, take)
			s = m.State()
		}); n != 0 {
			t.Errorf("%s: Step and State allocate %v times", name, n)
		}
		if s.Step == 0 {
			t.Errorf("%s: an epoch ended", name)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	for name, tr := range steady() {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			tr.Epochs = order.Endless
			m, err := order.New(tr.Plan, 0, 1)
			if err != nil {
				b.Fatal(err)
			}
			take := func(_, _, shard int32, index int64) (bool, error) { return index < tr.counts[shard], nil }
			refs := make([]order.Ref, 0, 256)
			b.ReportAllocs()
			for b.Loop() {
				refs, _, _ = m.Step(refs, take)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256, "ns/ref")
		})
	}
}

// A thousand shards of a million samples.
func BenchmarkBillion(b *testing.B) {
	counts := make([]int64, 1000)
	for i := range counts {
		counts[i] = 1_000_000
	}
	for _, shuffle := range []order.Shuffle{order.None, order.Global} {
		b.Run(shuffle.String(), func(b *testing.B) {
			m, err := order.New(counted(order.Plan{Batch: 1024, Shuffle: shuffle, Tail: order.TailDrop, Epochs: order.Endless}, counts...).Plan, 0, 1)
			if err != nil {
				b.Fatal(err)
			}
			refs := make([]order.Ref, 0, 1024)
			for b.Loop() {
				refs, _, _ = m.Step(refs, nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/ref")
		})
	}
}
