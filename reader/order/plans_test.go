package order_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"shardtool/reader/order"
)

// trial is a plan with the data that it is about: real counts, some of which
// the plan does not know.
type trial struct {
	order.Plan
	counts []int64 // of all shards
	part   []int   // of all shards
}

// drawTrial draws a small plan of any kind and a world for it; New may refuse
// it, but seldom does.
func drawTrial(t *rapid.T) (tr trial, world int) {
	world = rapid.SampledFrom([]int{1, 1, 2, 3, 4, 6}).Draw(t, "world")
	known := rapid.SampledFrom([]int{100, 100, 0, 50}).Draw(t, "known")
	parts := rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "parts")
	for k := range parts {
		part := order.Part{Weight: rapid.SampledFrom([]float64{1, 1, 0.5, 3, 0.7}).Draw(t, "weight")}
		for i := range rapid.IntRange(1, 6).Draw(t, "shards") {
			n := rapid.Int64Range(0, 9).Draw(t, "samples")
			e := order.Entry{Name: fmt.Sprintf("/data/%d/s%d.tar", k, i), Bytes: 1000 * n, Samples: n}
			for x := range n {
				if rapid.IntRange(0, 9).Draw(t, "exclude") == 0 {
					e.Exclude = append(e.Exclude, x)
				}
			}
			if rapid.IntRange(0, 99).Draw(t, "count") >= known {
				e.Samples = order.Unknown
			}
			tr.counts = append(tr.counts, n)
			tr.part = append(tr.part, k)
			part.Shards = append(part.Shards, e)
		}
		tr.Parts = append(tr.Parts, part)
	}
	tr.Ends = rapid.SampledFrom([]order.Ends{order.Restart, order.Stop}).Draw(t, "ends")
	tr.Epochs = rapid.IntRange(1, 3).Draw(t, "epochs")
	lanes := world * rapid.IntRange(1, 3).Draw(t, "lanes")
	if rapid.Bool().Draw(t, "lanes given") {
		tr.Lanes = lanes
	}
	tr.Batch = lanes * rapid.IntRange(1, 4).Draw(t, "lane's part of the batch")
	open, buffer := rapid.IntRange(1, 9).Draw(t, "open"), rapid.IntRange(0, 20).Draw(t, "shuffle buffer")
	tr.Shuffle = rapid.SampledFrom([]order.Shuffle{order.None, order.Global, order.Block(open), order.Stream(open, buffer)}).Draw(t, "shuffle")
	tr.Seed = rapid.Uint64().Draw(t, "seed")
	tr.Tail = rapid.SampledFrom([]order.Tail{order.TailDefault, order.TailDrop, order.TailKeep, order.TailPad, order.TailWrap}).Draw(t, "tail")
	tr.Steps = rapid.SampledFrom([]int64{0, 0, 0, 1, 3, 7}).Draw(t, "steps")
	tr.Unit = rapid.SampledFrom([]order.Unit{order.Sample, order.Batch, order.Shard}).Draw(t, "unit")
	tr.Factor = order.One * order.Factor(rapid.SampledFrom([]int{4, 4, 6, 8, 9, 15}).Draw(t, "quarters")) / 4
	tr.Buffer = rapid.SampledFrom([]int{0, 0, 3, 8, 25}).Draw(t, "buffer")
	if tr.Unit != order.Shard {
		tr.Segment = rapid.SampledFrom([]int64{0, 0, 1, 2, 3, 7}).Draw(t, "segment")
	}
	if !tr.counted() {
		if tr.Shuffle == order.Global || tr.Shuffle == order.Block(open) {
			tr.Shuffle = order.Stream(open, buffer)
		}
		if world > 1 && tr.Steps == 0 {
			tr.Steps = 2
		}
	}
	if tr.Tail == order.TailKeep {
		world, tr.Lanes = 1, 0
	}
	if tr.Shuffle == order.Global && tr.Unit == order.Shard {
		tr.Unit = order.Sample
	}
	return tr, world
}

func (tr *trial) counted() bool {
	for _, p := range tr.Parts {
		for _, e := range p.Shards {
			if e.Samples == order.Unknown {
				return false
			}
		}
	}
	return true
}

func (tr *trial) entry(shard int32) *order.Entry {
	for _, p := range tr.Parts {
		if int(shard) < len(p.Shards) {
			return &p.Shards[shard]
		}
		shard -= int32(len(p.Shards))
	}
	panic("no such shard")
}

// asked is a call of Take.
type asked struct {
	reading, epoch, shard int32
	index                 int64
	yes                   bool
}

// rank is a machine with what it was told and gave.
type rank struct {
	*order.Machine
	tr    *trial
	n     int
	asked []asked
	err   error
}

func newRank(tr *trial, n, world int) (*rank, error) {
	m, err := order.New(tr.Plan, n, world)
	return &rank{Machine: m, tr: tr, n: n}, err
}

func (r *rank) take(reading, epoch, shard int32, index int64) (bool, error) {
	yes := index < r.tr.counts[shard]
	r.asked = append(r.asked, asked{reading, epoch, shard, index, yes})
	return yes, nil
}

// step gives the next step, nil after the last.
func (r *rank) step() []order.Ref {
	refs, ok, err := r.Step(nil, r.take)
	if err != nil || !ok {
		r.err = err
		return nil
	}
	return refs
}

// all gives all steps.
func (r *rank) all() (steps [][]order.Ref) {
	for {
		refs := r.step()
		if refs == nil {
			return steps
		}
		steps = append(steps, refs)
		if len(steps) > 100_000 {
			panic("no end")
		}
	}
}

// words writes references as shard/index.copy, with epoch, pass and kind where
// they are not zero.
func words(refs []order.Ref) string {
	s := make([]string, len(refs))
	for i, r := range refs {
		s[i] = fmt.Sprintf("%d/%d.%d", r.Shard, r.Index, r.Copy)
		if r.Kind == order.Padding {
			s[i] = "-"
		}
		if r.Pass > 0 {
			s[i] += fmt.Sprintf("p%d", r.Pass)
		}
		if r.Kind == order.Wrapped {
			s[i] = "w" + s[i]
		}
		if r.Epoch > 0 {
			s[i] = fmt.Sprintf("e%d:", r.Epoch) + s[i]
		}
	}
	return fmt.Sprint(s)
}

func text(steps [][]order.Ref) (s string) {
	for i, refs := range steps {
		if i > 0 {
			s += " "
		}
		s += words(refs)
	}
	return s
}

// counted makes a plan of one data set of shards with these counts.
func counted(p order.Plan, counts ...int64) trial {
	part := order.Part{}
	for i, n := range counts {
		part.Shards = append(part.Shards, order.Entry{Name: fmt.Sprintf("train-%d.tar", i), Bytes: n * 100, Samples: n})
	}
	p.Parts = []order.Part{part}
	return trial{Plan: p, counts: counts, part: make([]int, len(counts))}
}

// uncounted is counted for a plan that does not know.
func uncounted(p order.Plan, counts ...int64) trial {
	tr := counted(p, counts...)
	for i := range tr.Parts[0].Shards {
		tr.Parts[0].Shards[i].Samples = order.Unknown
	}
	return tr
}

func run(t *testing.T, tr trial, world int) (ranks [][][]order.Ref) {
	t.Helper()
	for n := range world {
		r, err := newRank(&tr, n, world)
		if err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, r.all())
		if r.err != nil {
			t.Fatal(r.err)
		}
	}
	return ranks
}

// batches joins what the ranks give to the batches of all.
func batches(ranks [][][]order.Ref) (all [][]order.Ref) {
	for s := range ranks[0] {
		var b []order.Ref
		for _, r := range ranks {
			b = append(b, r[s]...)
		}
		all = append(all, b)
	}
	return all
}
