package order_test

import (
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"shardtool/reader/order"
)

// schedule is which factors are set, before which steps, counted over all
// epochs.
type schedule map[int]order.Factor

// stepAt gives step n, with what is to be set before it.
func (r *rank) stepAt(n int, s schedule) []order.Ref {
	if f, ok := s[n]; ok {
		if r.err = r.SetFactor(f); r.err != nil {
			return nil
		}
	}
	return r.step()
}

// follow gives all steps from step n on.
func (r *rank) follow(n int, s schedule) (steps [][]order.Ref) {
	for refs := r.stepAt(n, s); refs != nil; refs = r.stepAt(n, s) {
		steps = append(steps, refs)
		if n++; n > 100_000 {
			panic("no end")
		}
	}
	return steps
}

func quarters(n int) order.Factor { return order.One * order.Factor(n) / 4 }

func TestFactorsByHand(t *testing.T) {
	const one, two, three = order.One, 2 * order.One, 3 * order.One
	for _, tt := range []struct {
		name    string
		plan    order.Plan
		samples int64
		set     schedule
		want    string
	}{
		{"rises", order.Plan{Batch: 1, Segment: 2}, 4, schedule{2: two},
			"[0/0.0] [0/1.0] [0/2.0] [0/2.1] [0/3.0] [0/3.1]"},
		{"waits", order.Plan{Batch: 1, Segment: 2}, 4, schedule{1: two},
			"[0/0.0] [0/1.0] [0/2.0] [0/2.1] [0/3.0] [0/3.1]"},
		{"the last that was set", order.Plan{Batch: 1, Segment: 3}, 4, schedule{1: three, 2: two},
			"[0/0.0] [0/1.0] [0/2.0] [0/3.0] [0/3.1]"},
		{"what was taken stays", order.Plan{Batch: 1, Segment: 1, Factor: three}, 3, schedule{1: one},
			"[0/0.0] [0/0.1] [0/0.2] [0/1.0] [0/2.0]"},
		// 1.5, then 2.5: 1 copy with a half over, which the next adds to: 3, then 2 with a half over, then 3.
		{"halves", order.Plan{Batch: 1, Segment: 1, Factor: one * 3 / 2}, 4, schedule{1: one * 5 / 2},
			"[0/0.0] [0/1.0] [0/1.1] [0/1.2] [0/2.0] [0/2.1] [0/3.0] [0/3.1] [0/3.2]"},
		// Three times three are four batches; after three of them two samples are taken, and one more emission is none.
		{"drop ends at once", order.Plan{Batch: 2, Lanes: 1, Tail: order.TailDrop, Segment: 1, Factor: three, Epochs: 2}, 3, schedule{3: one},
			"[0/0.0 0/0.1] [0/0.2 0/1.0] [0/1.1 0/1.2] [e1:0/0.0 e1:0/1.0]"},
		{"without segments", order.Plan{Batch: 1, Epochs: 2}, 2, schedule{1: two},
			"[0/0.0] [0/1.0] [e1:0/0.0] [e1:0/0.1] [e1:0/1.0] [e1:0/1.1]"},
		{"next epoch before the segment", order.Plan{Batch: 1, Epochs: 2, Segment: 9}, 2, schedule{1: two},
			"[0/0.0] [0/1.0] [e1:0/0.0] [e1:0/0.1] [e1:0/1.0] [e1:0/1.1]"},
		{"batches", order.Plan{Batch: 2, Unit: order.Batch, Segment: 1}, 5, schedule{1: two},
			"[0/0.0 0/1.0] [0/2.0 0/3.0] [0/2.1 0/3.1] [0/4.0] [0/4.1]"},
		{"batches fall", order.Plan{Batch: 2, Unit: order.Batch, Segment: 2, Factor: three}, 5, schedule{2: one},
			"[0/0.0 0/1.0] [0/0.1 0/1.1] [0/0.2 0/1.2] [0/2.0 0/3.0] [0/4.0]"},
		{"batches, padded steps", order.Plan{Batch: 2, Unit: order.Batch, Segment: 1, Steps: 6, Tail: order.TailPad}, 3, schedule{1: three},
			"[0/0.0 0/1.0] [0/2.0 -] [0/2.1 -] [0/2.2 -] [- -] [- -]"},
	} {
		for _, tr := range []trial{counted(tt.plan, tt.samples), uncounted(tt.plan, tt.samples)} {
			r, err := newRank(&tr, 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			if got := text(r.follow(0, tt.set)); got != tt.want {
				t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
			}
		}
	}
}

// A factor that leaves less than a batch ends the epoch when it is set.
func TestFactorEndsAnEpoch(t *testing.T) {
	tr := counted(order.Plan{Batch: 2, Lanes: 1, Tail: order.TailDrop, Segment: 1, Factor: 3 * order.One, Epochs: 2}, 3)
	r, _ := newRank(&tr, 0, 1)
	for range 3 {
		r.step()
	}
	said := func() string {
		s := r.State()
		n, _ := r.Steps()
		return fmt.Sprintf("epoch %d, step %d of %d", s.Epoch, s.Step, n)
	}
	if got, want := said(), "epoch 0, step 3 of 4"; got != want {
		t.Errorf("%s instead of %s", got, want)
	}
	if err := r.SetFactor(order.One); err != nil {
		t.Fatal(err)
	}
	if got, want := said(), "epoch 1, step 0 of 1"; got != want {
		t.Errorf("%s instead of %s", got, want)
	}
}

func TestItemByHand(t *testing.T) {
	tr := counted(order.Plan{Batch: 2, Unit: order.Batch, Factor: order.One * 3 / 2, Steps: 6, Tail: order.TailPad, Epochs: 2}, 5)
	want := "0:0/1 1:0/2 1:1/2 2:0/1 -1:0/0 -1:0/0 " // three batches, once, twice and once; then padding
	want += want
	r, _ := newRank(&tr, 0, 1)
	said := func() string {
		item, copy, times := r.Item()
		return fmt.Sprintf("%d:%d/%d ", item, copy, times)
	}
	if said() != "-1:0/0 " {
		t.Errorf("before the first step %s", said())
	}
	got := ""
	for r.step() != nil {
		got += said()
	}
	if got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	r, _ = newRank(&tr, 0, 1)
	r.step()
	r.SetFactor(order.One) // an epoch without echo after one with
	for range 6 {
		r.step()
	}
	if said() != "-1:0/0 " {
		t.Errorf("without echo %s", said())
	}
	for _, p := range []order.Plan{{Batch: 2, Factor: 2 * order.One}, {Batch: 2, Unit: order.Batch}, {Batch: 2, Unit: order.Shard, Factor: 2 * order.One}} {
		tr := counted(p, 4)
		r, _ = newRank(&tr, 0, 1)
		for r.step() != nil {
			if said() != "-1:0/0 " {
				t.Errorf("%v: %s", p.Unit, said())
			}
		}
	}
}

func TestSegmentBegins(t *testing.T) {
	for _, tt := range []struct {
		plan order.Plan
		want string
	}{
		{order.Plan{Batch: 1, Epochs: 2}, "1000010000"},
		{order.Plan{Batch: 1, Epochs: 2, Segment: 2}, "1010110101"},
	} {
		tr := counted(tt.plan, 5)
		r, _ := newRank(&tr, 0, 1)
		got := ""
		for range 10 {
			got += map[bool]string{true: "1", false: "0"}[r.SegmentBegins()]
			r.step()
		}
		if got != tt.want {
			t.Errorf("segments of %d: %s", tt.plan.Segment, got)
		}
	}
}

// drawSchedule draws a plan whose factor changes, and the changes.
func drawSchedule(t *rapid.T) (tr trial, world int, s schedule) {
	tr, world = drawTrial(t)
	if tr.Unit == order.Shard {
		tr.Unit = order.Batch
	}
	tr.Segment = rapid.SampledFrom([]int64{1, 1, 2, 3, 5}).Draw(t, "steps of a segment")
	s = schedule{}
	for range rapid.IntRange(0, 9).Draw(t, "changes") {
		s[rapid.IntRange(0, 30).Draw(t, "before step")] = quarters(rapid.SampledFrom([]int{4, 4, 5, 6, 8, 11, 16, 30}).Draw(t, "its quarters"))
	}
	return tr, world, s
}

// model says which factor holds at a step, by the words of SetFactor.
type model struct {
	segment      int64
	holds, waits order.Factor
	epoch        int32
	step         int64 // of the epoch
}

// made is told of a step that was made, and what was set before it.
func (m *model) made(set order.Factor, epoch int32) {
	if set != 0 {
		m.waits = set
	}
	if m.step++; m.epoch != epoch {
		m.epoch, m.step = epoch, 0
	}
	if m.step%m.segment == 0 {
		m.holds = m.waits
	}
}

func newModel(p *order.Plan) *model {
	return &model{segment: p.Segment, holds: p.Factor, waits: p.Factor, step: -1}
}

// fraction is an accumulator in rationals.
type fraction struct{ sum *big.Rat }

func startOf(lane, lanes int) fraction {
	// 32 bits after the point, as documented for what a lane starts with.
	return fraction{big.NewRat(int64(uint64(lane)<<32/uint64(lanes)), 1<<32)}
}

func floor(r *big.Rat) int64 { return new(big.Int).Div(r.Num(), r.Denom()).Int64() }

func (a fraction) times(f order.Factor) int64 {
	before := floor(a.sum)
	a.sum.Add(a.sum, big.NewRat(int64(f), 1<<32))
	return floor(a.sum) - before
}

// Each sample has as many copies as the accumulator gives it for the factor
// that held when it was taken; steps are as many as was said.
func TestSamplesGetTheFactorTheyWereTakenWith(t *testing.T) {
	kinds := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		tr, world, set := drawSchedule(t)
		// One lane to a rank and no buffer before the echo, so that samples come
		// to it as they are taken; in one part, so that each comes once.
		tr.Unit, tr.Lanes = order.Sample, world
		tr.Parts = tr.Parts[:1]
		tr.counts = tr.counts[:len(tr.Parts[0].Shards)]
		if tr.Tail == order.TailKeep {
			tr.Lanes = 0
		}
		if tr.Shuffle.Buffer() > 0 {
			tr.Shuffle = order.Stream(2, world)
		}
		length := -1
		for n := range world {
			r, err := newRank(&tr, n, world)
			if err != nil {
				return
			}
			steps := checkSamples(t, r, world, set)
			if r.err != nil {
				return // a rank without samples
			}
			if length < 0 {
				length = steps
			}
			if steps != length {
				t.Fatalf("rank 0 has %d steps, rank %d has %d", length, n, steps)
			}
		}
		kinds[fmt.Sprintf("%.5s counted=%v", tr.Shuffle, tr.counted())]++
	})
	if testing.Verbose() {
		t.Log(kinds)
	}
}

func checkSamples(t *rapid.T, r *rank, world int, set schedule) (n int) {
	type key struct {
		epoch, shard int32
		index        int64
	}
	m := newModel(&r.tr.Plan)
	var acc fraction
	times := map[key]int64{}
	seen := map[key]int64{}
	asked := 0
	for epoch := int32(-1); ; n++ {
		refs := r.stepAt(n, set)
		if refs == nil {
			break
		}
		if m.made(set[n], refs[0].Epoch); refs[0].Epoch != epoch {
			epoch = refs[0].Epoch
			acc = startOf(r.n, world)
		}
		for _, a := range r.asked[asked:] {
			if a.yes && a.epoch == epoch {
				times[key{a.epoch, a.shard, a.index}] = acc.times(m.holds)
			}
		}
		asked = len(r.asked)
		for _, ref := range refs {
			if ref.Kind != order.Fresh {
				continue
			}
			k := key{ref.Epoch, ref.Shard, ref.Index}
			if int64(ref.Times) != times[k] || int64(ref.Copy) != seen[k] {
				t.Fatalf("step %d: %+v, which should be copy %d of %d", n, ref, seen[k], times[k])
			}
			seen[k]++
		}
	}
	fp, err := r.tr.Fingerprint(world)
	if err != nil {
		t.Fatal(err)
	}
	if r.err == nil && fp.Settings["tail"] != "drop" && r.tr.Steps == 0 && !maps.Equal(times, seen) {
		t.Fatalf("emitted %v instead of %v", seen, times)
	}
	return n
}

// The same for batches, whose numbers and copies Item says.
func TestBatchesGetTheFactorTheyWereGatheredWith(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr, world, set := drawSchedule(t)
		tr.Unit = order.Batch
		n := rapid.IntRange(0, world-1).Draw(t, "rank")
		r, err := newRank(&tr, n, world)
		if err != nil {
			return
		}
		checkBatches(t, r, set)
	})
}

func checkBatches(t *rapid.T, r *rank, set schedule) {
	m := newModel(&r.tr.Plan)
	var acc fraction
	var times, seen []int64 // of each batch of the epoch
	var refs [][]order.Ref
	whole := func() {
		for i, n := range seen {
			if r.err == nil && r.tr.Steps == 0 && n != times[i] && refs[i] != nil {
				t.Fatalf("batch %d: %d of %d copies", i, n, times[i])
			}
		}
	}
	epoch, inside := int32(-1), int64(0)
	for n := 0; ; n++ {
		got := r.stepAt(n, set)
		if got == nil {
			break
		}
		if m.made(set[n], got[0].Epoch); got[0].Epoch != epoch {
			whole()
			epoch, inside, acc = got[0].Epoch, 0, startOf(0, 1)
			times, seen, refs = nil, nil, nil
		}
		for inside < int64(max(1, r.tr.Buffer)) {
			times = append(times, acc.times(m.holds))
			seen, refs = append(seen, 0), append(refs, nil)
			inside += times[len(times)-1]
		}
		inside--
		item, copy, of := r.Item()
		padding := !slices.ContainsFunc(got, func(r order.Ref) bool { return r.Kind != order.Padding })
		if padding != (item < 0) {
			t.Fatalf("step %d: item %d of %s", n, item, words(got))
		}
		if padding {
			continue
		}
		if item >= int64(len(times)) || int64(of) != times[item] || int64(copy) != seen[item] {
			t.Fatalf("step %d: copy %d of %d of batch %d, but times are %v, seen are %v", n, copy, of, item, times, seen)
		}
		seen[item]++
		first := slices.Clone(got)
		for i := range first {
			if first[i].Copy != copy || first[i].Times != of {
				t.Fatalf("step %d: copy %d of %d has %+v", n, copy, of, first[i])
			}
			first[i].Copy = 0
		}
		if refs[item] == nil {
			refs[item] = first
		}
		if !slices.Equal(refs[item], first) {
			t.Fatalf("step %d: batch %d is %s, and was %s", n, item, words(first), words(refs[item]))
		}
	}
	whole()
}

// Ranks are equal in their steps, which are as many as the machine says, and
// their batch is the same for every world.
func TestFactorsInEveryWorld(t *testing.T) {
	kinds := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		tr, _, set := drawSchedule(t)
		if tr.Tail == order.TailDefault || !tr.counted() {
			return // the world decides
		}
		want := ""
		for _, world := range []int{1, 2, 3, 4, 6, 12} {
			var ranks [][][]order.Ref
			for n := range world {
				r, err := newRank(&tr, n, world)
				if err != nil {
					break
				}
				ranks = append(ranks, r.follow(0, set))
				if len(ranks[n]) != len(ranks[0]) {
					t.Fatalf("rank 0 has %d steps, rank %d has %d", len(ranks[0]), n, len(ranks[n]))
				}
			}
			if len(ranks) < world {
				continue
			}
			all := batches(ranks)
			if want == "" {
				want = text(all)
				kinds[fmt.Sprintf("%.5s %v", tr.Shuffle, tr.Unit)]++
			}
			if got := text(all); got != want {
				t.Fatalf("world %d:\n got %s\nwant %s", world, got, want)
			}
			checkLengths(t, &tr, world, set, all)
		}
	})
	if testing.Verbose() {
		t.Log(kinds)
	}
}

// checkLengths compares the steps and the emissions of each epoch with those
// that are said before its last step. One that a factor ends at once has fewer.
func checkLengths(t *rapid.T, tr *trial, world int, set schedule, all [][]order.Ref) {
	var emitted int64
	r, err := newRank(tr, 0, world)
	if err != nil {
		t.Fatal(err)
	}
	for n, batch := range all {
		if f, ok := set[n]; ok {
			if err := r.SetFactor(f); err != nil {
				t.Fatal(err)
			}
		}
		at := r.State().Step
		steps, known := r.Steps()
		_, want, also := r.Lengths()
		if r.step() == nil {
			t.Fatalf("no step %d", n)
		}
		for _, ref := range batch {
			if ref.Kind != order.Padding {
				emitted++
			}
		}
		last, over := at+1 == steps, r.State().Epoch != batch[0].Epoch
		switch {
		case !known:
		case last && !over, over && !last && r.State().Next == 0:
			t.Fatalf("step %d of %d: over is %v", at, steps, over)
		case last && also && want != emitted:
			t.Fatalf("%d emitted instead of %d", emitted, want)
		}
		if over {
			emitted = 0
		}
	}
}

// What follows a state follows it in another machine too, whether a factor has
// just been set, waits or holds.
func TestRestoreBetweenFactors(t *testing.T) {
	kinds := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		tr, world, set := drawSchedule(t)
		r, err := newRank(&tr, rapid.IntRange(0, world-1).Draw(t, "rank"), world)
		if err != nil {
			return
		}
		type point struct {
			state    order.State
			n        int // the step that follows
			set      bool
			asked    int
			buffered []order.Ref
			item     int64
		}
		var points []point
		var steps [][]order.Ref
		mark := func(set bool) {
			item, _, _ := r.Item()
			points = append(points, point{r.State(), len(steps), set, len(r.asked), r.Buffered(nil), item})
		}
		for {
			mark(false)
			if f, ok := set[len(steps)]; ok {
				if err := r.SetFactor(f); err != nil {
					t.Fatal(err)
				}
				mark(true)
			}
			refs := r.step()
			if refs == nil {
				break
			}
			steps = append(steps, refs)
		}
		for i, p := range points {
			if len(p.state.Factors) > 1 {
				kinds[fmt.Sprintf("%.5s %v counted=%v", tr.Shuffle, tr.Unit, tr.counted())]++
			}
			if len(points) > 40 && i%7 != len(points)%7 {
				continue
			}
			s, _ := newRank(&tr, r.n, world)
			if err := s.Restore(overJSON(t, p.state)); err != nil {
				t.Fatalf("step %d: %v", p.n, err)
			}
			if !reflect.DeepEqual(overJSON(t, s.State()), overJSON(t, p.state)) {
				t.Fatalf("step %d: state %+v instead of %+v", p.n, s.State(), p.state)
			}
			if got := s.Buffered(nil); !sameRefs(got, p.buffered) {
				t.Fatalf("step %d: buffered %s instead of %s", p.n, words(got), words(p.buffered))
			}
			if item, _, _ := s.Item(); p.state.Step > 0 && item != p.item {
				t.Fatalf("step %d: item %d instead of %d", p.n, item, p.item)
			}
			checkCount(t, &tr, r.n, world, p.state)
			var got [][]order.Ref
			if p.set {
				if refs := s.step(); refs != nil {
					got = append(got, refs)
				}
			}
			if s.err == nil && len(got) > 0 || !p.set {
				got = append(got, s.follow(p.n+len(got), set)...)
			}
			if text(got) != text(steps[p.n:]) || fmt.Sprint(s.err) != fmt.Sprint(r.err) {
				t.Fatalf("step %d:\n got %s %v\nwant %s %v", p.n, text(got), s.err, text(steps[p.n:]), r.err)
			}
			if !slices.Equal(s.asked, r.asked[p.asked:]) {
				t.Fatalf("step %d:\n took %v\n want %v", p.n, s.asked, r.asked[p.asked:])
			}
			checkBuffered(t, &tr, p.buffered, s.asked, got)
		}
	})
	if testing.Verbose() {
		t.Log(kinds)
	}
}

// checkCount runs the epoch of a state to its end without another factor, and
// compares its steps with those that are said at the start.
func checkCount(t *rapid.T, tr *trial, n, world int, s order.State) {
	tr = &trial{Plan: tr.Plan, counts: tr.counts, part: tr.part}
	tr.Segment = 0
	r, _ := newRank(tr, n, world)
	s.Next = 0
	if err := r.Restore(s); err != nil {
		t.Fatal(err)
	}
	if s.Step == 0 {
		return // the plan's segments count
	}
	want, known := r.Steps()
	steps := s.Step
	for refs := r.step(); refs != nil && refs[0].Epoch == s.Epoch; refs = r.step() {
		steps++
	}
	if known && r.err == nil && steps != want {
		t.Fatalf("%d steps instead of %d after %+v", steps, want, s.Factors)
	}
}

// The segments are no part of the plan's fingerprint: an epoch goes on as it
// began, whatever the plan says by now.
func TestRestoreWithOtherSegments(t *testing.T) {
	const two = 2 * order.One
	plan := order.Plan{Batch: 2, Epochs: 2, Shuffle: order.Global, Buffer: 4, Lanes: 1, Seed: 3}
	with := plan
	with.Segment = 2
	for _, tt := range []struct {
		name        string
		first, then order.Plan
		set         schedule
		at          int
		waits       bool // what is set then
	}{
		{"without, at 1", with, plan, nil, 3, true},
		{"without, after two factors", with, plan, schedule{2: two}, 3, true},
		{"with, at 1", plan, with, nil, 2, true},
	} {
		tr := counted(tt.first, 9)
		r, _ := newRank(&tr, 0, 1)
		for n := range tt.at {
			r.stepAt(n, tt.set)
		}
		saved := r.State()
		want := r.all()
		other := counted(tt.then, 9)
		again, _ := newRank(&other, 0, 1)
		if err := again.Restore(saved); err != nil {
			t.Fatal(err)
		}
		if again.SegmentBegins() == tt.waits {
			t.Errorf("%s: a segment begins", tt.name)
		}
		if err := again.SetFactor(two); err != nil {
			t.Fatal(err)
		}
		rest := again.all()
		n := slices.IndexFunc(want, func(refs []order.Ref) bool { return refs[0].Epoch == 1 })
		if text(rest[:n]) != text(want[:n]) || rest[n][0].Epoch != 1 {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, text(rest), text(want))
		}
		if got := len(rest) - n; got != 9 {
			t.Errorf("%s: %d steps of 9 samples twice", tt.name, got)
		}
	}
	// Where the factor was above 1 from the start, segments may begin later.
	plan.Factor = two
	tr := counted(plan, 9)
	r, _ := newRank(&tr, 0, 1)
	r.step()
	r.step()
	with.Factor = two
	other := counted(with, 9)
	again, _ := newRank(&other, 0, 1)
	if err := again.Restore(r.State()); err != nil || !again.SegmentBegins() {
		t.Errorf("%v, %v", err, again.SegmentBegins())
	}
}
