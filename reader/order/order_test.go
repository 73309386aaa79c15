package order_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"shardtool/reader/order"
)

func TestStepsByHand(t *testing.T) {
	const two = 2 * order.One
	for _, tt := range []struct {
		name string
		plan order.Plan
		want string
	}{
		{"plain", order.Plan{}, "[0/0.0 0/1.0] [2/0.0 2/1.0] [2/2.0]"},
		{"drop", order.Plan{Tail: order.TailDrop}, "[0/0.0 0/1.0] [2/0.0 2/1.0]"},
		{"two epochs", order.Plan{Epochs: 2, Tail: order.TailDrop}, "[0/0.0 0/1.0] [2/0.0 2/1.0] [e1:0/0.0 e1:0/1.0] [e1:2/0.0 e1:2/1.0]"},
		{"sample twice", order.Plan{Factor: two}, "[0/0.0 0/0.1] [0/1.0 0/1.1] [2/0.0 2/0.1] [2/1.0 2/1.1] [2/2.0 2/2.1]"},
		{"sample thrice", order.Plan{Factor: 3 * order.One, Tail: order.TailDrop, Lanes: 1},
			"[0/0.0 0/0.1] [0/0.2 0/1.0] [0/1.1 0/1.2] [2/0.0 2/0.1] [2/0.2 2/1.0] [2/1.1 2/1.2] [2/2.0 2/2.1]"},
		{"sample 1.5", order.Plan{Factor: order.One * 3 / 2}, "[0/0.0 0/1.0] [0/1.1 2/0.0] [2/1.0 2/1.1] [2/2.0]"},
		{"batch twice", order.Plan{Unit: order.Batch, Factor: two},
			"[0/0.0 0/1.0] [0/0.1 0/1.1] [2/0.0 2/1.0] [2/0.1 2/1.1] [2/2.0] [2/2.1]"},
		{"batch 1.5", order.Plan{Unit: order.Batch, Factor: order.One * 3 / 2},
			"[0/0.0 0/1.0] [2/0.0 2/1.0] [2/0.1 2/1.1] [2/2.0]"},
		{"batch twice, drop", order.Plan{Unit: order.Batch, Factor: two, Tail: order.TailDrop},
			"[0/0.0 0/1.0] [0/0.1 0/1.1] [2/0.0 2/1.0] [2/0.1 2/1.1]"},
		{"shard twice", order.Plan{Unit: order.Shard, Factor: two},
			"[0/0.0 0/1.0] [0/0.1 0/1.1] [2/0.0 2/1.0] [2/2.0 2/0.1] [2/1.1 2/2.1]"},
		{"shard 1.5", order.Plan{Unit: order.Shard, Factor: order.One * 3 / 2},
			"[0/0.0 0/1.0] [2/0.0 2/1.0] [2/2.0 2/0.1] [2/1.1 2/2.1]"},
		{"pad", order.Plan{Tail: order.TailPad}, "[0/0.0 0/1.0] [2/0.0 2/1.0] [2/2.0 -]"},
		{"wrap", order.Plan{Tail: order.TailWrap}, "[0/0.0 0/1.0] [2/0.0 2/1.0] [2/2.0 w0/0.0p1]"},
		{"lanes wrap", order.Plan{Tail: order.TailWrap, Lanes: 2}, "[0/0.0 0/1.0] [2/0.0 2/1.0] [2/2.0 w0/0.0p1]"},
		{"two lanes, twice", order.Plan{Tail: order.TailPad, Lanes: 2, Factor: two},
			"[0/0.0 0/1.0] [0/0.1 0/1.1] [2/0.0 2/1.0] [2/0.1 2/1.1] [2/2.0 -] [2/2.1 -]"},
		{"two lanes, 1.5", order.Plan{Tail: order.TailPad, Lanes: 2, Factor: order.One * 3 / 2},
			"[0/0.0 0/1.0] [2/0.0 0/1.1] [2/0.1 2/1.0] [2/2.0 -]"},
		{"steps cut", order.Plan{Steps: 1, Epochs: 2}, "[0/0.0 0/1.0] [e1:0/0.0 e1:0/1.0]"},
		{"steps fill", order.Plan{Steps: 6, Tail: order.TailDrop},
			"[0/0.0 0/1.0] [2/0.0 2/1.0] [2/2.0 w0/0.0p1] [w0/1.0p1 w2/0.0p1] [w2/1.0p1 w2/2.0p1] [w0/0.0p2 w0/1.0p2]"},
		{"steps keep", order.Plan{Steps: 6, Tail: order.TailKeep}, "[0/0.0 0/1.0] [2/0.0 2/1.0] [2/2.0]"},
		{"steps pad", order.Plan{Steps: 4, Tail: order.TailPad}, "[0/0.0 0/1.0] [2/0.0 2/1.0] [2/2.0 -] [- -]"},
	} {
		tt.plan.Batch = 2
		if got := text(run(t, counted(tt.plan, 2, 0, 3, 0), 1)[0]); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
		if tt.plan.Lanes > 1 || tt.plan.Unit == order.Shard {
			continue // dealt otherwise
		}
		got := text(run(t, uncounted(tt.plan, 2, 0, 3, 0), 1)[0])
		if got != tt.want {
			t.Errorf("%s, uncounted:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// A mix of weights 2 and 1: the first part takes places 1 and 2 of three.
func TestMixByHand(t *testing.T) {
	mixed := func(p order.Plan) trial {
		a, b := counted(p, 4), counted(p, 2, 1)
		a.Parts[0].Weight, b.Parts[0].Weight = 2, 1
		a.Parts = append(a.Parts, b.Parts...)
		a.counts = append(a.counts, b.counts...)
		return a
	}
	for _, tt := range []struct {
		name string
		plan order.Plan
		want string
	}{
		{"restart", order.Plan{Batch: 3}, "[1/0.0 0/0.0 0/1.0] [1/1.0 0/2.0 0/3.0] [2/0.0]"},
		{"stop", order.Plan{Batch: 3, Ends: order.Stop}, "[1/0.0 0/0.0 0/1.0] [1/1.0 0/2.0 0/3.0] [2/0.0]"},
	} {
		if got := text(run(t, mixed(tt.plan), 1)[0]); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
	long := order.Plan{Batch: 3}
	tr := mixed(long)
	tr.Parts[0].Shards[0].Samples, tr.counts[0] = 1, 1
	want := "[1/0.0 0/0.0 0/0.0p1] [1/1.0 0/0.0p2 0/0.0p3] [2/0.0]"
	if got := text(run(t, tr, 1)[0]); got != want {
		t.Errorf("restart of a short part:\n got %s\nwant %s", got, want)
	}
	tr.Ends = order.Stop
	want = "[1/0.0 0/0.0]"
	if got := text(run(t, tr, 1)[0]); got != want {
		t.Errorf("stop at a short part:\n got %s\nwant %s", got, want)
	}
}

// item is what an epoch takes once.
type item struct {
	shard, pass int32
	index       int64
}

// TestEverySampleAsOftenAsTheFactorSays runs all ranks of small plans of every
// kind and looks at each epoch.
func TestEverySampleAsOftenAsTheFactorSays(t *testing.T) {
	kinds := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		tr, world := drawTrial(t)
		ranks, ok := runAll(t, &tr, world)
		if !ok {
			return
		}
		kinds[fmt.Sprintf("%.5s %v counted=%v parts=%d", tr.Shuffle, tr.Unit, tr.counted(), len(tr.Parts))]++
		epochs := map[int32][][]order.Ref{}
		for _, b := range batches(ranks) {
			epochs[b[0].Epoch] = append(epochs[b[0].Epoch], b)
		}
		if !tr.counted() && tr.Steps == 0 && tr.Tail == order.TailDrop && len(epochs) > tr.Epochs {
			t.Fatal("more epochs than asked for")
		}
		for epoch, steps := range epochs {
			checkEpoch(t, &tr, world, epoch, steps)
		}
	})
	if testing.Verbose() {
		for _, k := range slices.Sorted(maps.Keys(kinds)) {
			t.Log(kinds[k], k)
		}
	}
}

// runAll runs all ranks to the end and checks that their steps are equal; it
// reports false for plans that are refused.
func runAll(t *rapid.T, tr *trial, world int) (ranks [][][]order.Ref, ok bool) {
	for n := range world {
		r, err := newRank(tr, n, world)
		if err != nil {
			return nil, false
		}
		steps := r.all()
		if r.err != nil {
			return nil, false
		}
		for _, a := range r.asked {
			if slices.Contains(tr.entry(a.shard).Exclude, a.index) {
				t.Fatalf("sample %d of shard %d is excluded", a.index, a.shard)
			}
		}
		ranks = append(ranks, steps)
		if len(steps) != len(ranks[0]) {
			t.Fatalf("rank 0 has %d steps, rank %d has %d", len(ranks[0]), n, len(steps))
		}
	}
	return ranks, true
}

func checkEpoch(t *rapid.T, tr *trial, world int, epoch int32, steps [][]order.Ref) {
	m, _ := order.New(tr.Plan, 0, world)
	at := m.State()
	at.Epoch = epoch
	if err := m.Restore(at); err != nil {
		t.Fatal(err)
	}
	resolved, err := tr.Fingerprint(world)
	if err != nil {
		t.Fatal(err)
	}
	tail := resolved.Settings["tail"]
	copies := map[item][]int32{}
	times := map[item]int32{}
	var emitted int64
	for i, refs := range steps {
		if short := len(refs) < tr.Batch; short && (tail != "keep" || len(refs) == 0) ||
			short && i+1 < len(steps) && tr.Unit != order.Batch {
			t.Fatalf("step %d of %d has %d references", i, len(steps), len(refs))
		}
		for _, r := range refs {
			if r.Epoch != epoch || r.Times < 1 || r.Copy < 0 || r.Copy >= r.Times {
				t.Fatalf("%+v in epoch %d", r, epoch)
			}
			if r.Kind == order.Padding {
				if r.Shard != -1 || r.Index != -1 || tail != "pad" {
					t.Fatalf("%+v", r)
				}
				continue
			}
			emitted++
			if slices.Contains(tr.entry(r.Shard).Exclude, r.Index) || r.Index < 0 || r.Index >= tr.counts[r.Shard] {
				t.Fatalf("%+v of %d samples", r, tr.counts[r.Shard])
			}
			if r.Kind == order.Wrapped {
				if tail != "wrap" && tr.Steps == 0 {
					t.Fatalf("%+v", r)
				}
				continue
			}
			id := item{r.Shard, r.Pass, r.Index}
			if n, seen := times[id]; seen && n != r.Times {
				t.Fatalf("%+v after %d times", r, n)
			}
			times[id] = r.Times
			copies[id] = append(copies[id], r.Copy)
		}
	}
	if n, known := m.Steps(); known && n != int64(len(steps)) {
		t.Fatalf("%d steps instead of %d", len(steps), n)
	}
	fresh, want, known := m.Lengths()
	if known && want != emitted {
		t.Fatalf("%d emitted instead of %d", emitted, want)
	}
	whole := tail != "drop" && tr.Steps == 0
	// A part of a mix may be cut within the copies of a shard.
	uncut := whole && (len(tr.Parts) == 1 || tr.Unit != order.Shard)
	for id, c := range copies {
		if tr.Unit == order.Shard {
			slices.Sort(c)
		}
		for i, n := range c {
			if int(n) != i && (uncut || tr.Unit != order.Shard) {
				t.Fatalf("copies %v of %+v", c, id)
			}
		}
		e := tr.Factor.Float64()
		if n := float64(times[id]); n <= e-1 || n >= e+1 {
			t.Fatalf("%v times %+v for factor %v", n, id, e)
		}
		if uncut && len(c) != int(times[id]) {
			t.Fatalf("%d of %d copies of %+v", len(c), times[id], id)
		}
		if id.pass > 0 && whole && tr.Ends == order.Restart && tr.counted() {
			before := id
			before.pass--
			if tr.Shuffle == order.None && copies[before] == nil {
				t.Fatalf("pass %d of %+v, but not the one before", id.pass, id)
			}
		}
	}
	if whole && (len(tr.Parts) == 1 || tr.Ends == order.Restart) {
		checkComplete(t, tr, copies)
	}
	if whole && len(tr.Parts) == 1 && known && int64(len(copies)) != fresh {
		t.Fatalf("%d samples instead of %d", len(copies), fresh)
	}
}

func checkComplete(t *rapid.T, tr *trial, copies map[item][]int32) {
	var passes int
	for id := range copies {
		if id.pass > 0 {
			passes++
		}
	}
	if passes > 0 && len(tr.Parts) == 1 {
		t.Fatal("passes without a mix")
	}
	for shard, n := range tr.counts {
		for index := range n {
			if slices.Contains(tr.entry(int32(shard)).Exclude, index) {
				continue
			}
			if copies[item{int32(shard), 0, index}] == nil {
				t.Fatalf("sample %d of shard %d is missing", index, shard)
			}
		}
	}
}

// With counts, the batch of all ranks does not depend on the world.
func TestBatchesOfEveryWorldAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr, _ := drawTrial(t)
		if tr.Tail == order.TailDefault || !tr.counted() {
			return // the world decides
		}
		one, ok := runAll(t, &tr, 1)
		if !ok {
			return
		}
		for _, world := range []int{2, 3, 4, 6, 12} {
			ranks, ok := runAll(t, &tr, world)
			if ok && text(batches(ranks)) != text(one[0]) {
				t.Fatalf("world %d:\n got %s\nwant %s", world, text(batches(ranks)), text(one[0]))
			}
		}
	})
}

// Without echo, None and Global do not depend on the lanes either.
func TestPlacesDoNotDependOnLanes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr, _ := drawTrial(t)
		tr.Factor, tr.Tail = order.One, rapid.SampledFrom([]order.Tail{order.TailDrop, order.TailPad, order.TailWrap}).Draw(t, "its tail")
		tr.Shuffle = rapid.SampledFrom([]order.Shuffle{order.None, order.Global}).Draw(t, "its shuffle")
		tr.Lanes, tr.Segment = 0, 0
		if !tr.counted() {
			return
		}
		want, ok := runAll(t, &tr, 1)
		for tr.Lanes = 1; ok && tr.Lanes <= tr.Batch; tr.Lanes++ {
			if got, ok := runAll(t, &tr, 1); ok && text(got[0]) != text(want[0]) {
				t.Fatalf("%d lanes:\n got %s\nwant %s", tr.Lanes, text(got[0]), text(want[0]))
			}
		}
	})
}

// What follows a state follows it in another machine too, takes included: at
// every step, through JSON.
func TestRestoreAtEveryStep(t *testing.T) {
	kinds := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		tr, world := drawTrial(t)
		n := rapid.IntRange(0, world-1).Draw(t, "rank")
		r, err := newRank(&tr, n, world)
		if err != nil {
			return
		}
		type point struct {
			state    order.State
			asked    int
			buffered []order.Ref
		}
		var points []point
		var steps [][]order.Ref
		for {
			points = append(points, point{r.State(), len(r.asked), r.Buffered(nil)})
			refs := r.step()
			if refs == nil {
				break
			}
			steps = append(steps, refs)
		}
		if r.err != nil && len(steps) == 0 {
			return
		}
		kinds[fmt.Sprintf("%.5s %v", tr.Shuffle, tr.Unit)]++
		for at, p := range points {
			if len(points) > 40 && at%7 != len(points)%7 {
				continue
			}
			s, _ := newRank(&tr, n, world)
			if err := s.Restore(overJSON(t, p.state)); err != nil {
				t.Fatalf("step %d: %v", at, err)
			}
			if !reflect.DeepEqual(overJSON(t, s.State()), overJSON(t, p.state)) {
				t.Fatalf("step %d: state %+v instead of %+v", at, s.State(), p.state)
			}
			if got := s.Buffered(nil); !sameRefs(got, p.buffered) {
				t.Fatalf("step %d: buffered %s instead of %s", at, words(got), words(p.buffered))
			}
			checkFollow(t, s, world)
			got := s.all()
			if text(got) != text(steps[at:]) || fmt.Sprint(s.err) != fmt.Sprint(r.err) {
				t.Fatalf("step %d:\n got %s %v\nwant %s %v", at, text(got), s.err, text(steps[at:]), r.err)
			}
			if !slices.Equal(s.asked, r.asked[p.asked:]) {
				t.Fatalf("step %d:\n took %v\n want %v", at, s.asked, r.asked[p.asked:])
			}
			checkBuffered(t, &tr, p.buffered, s.asked, got)
		}
	})
	if testing.Verbose() {
		t.Log(kinds)
	}
}

func sameRefs(a, b []order.Ref) bool {
	key := func(refs []order.Ref) map[order.Ref]int {
		m := map[order.Ref]int{}
		for _, r := range refs {
			m[r]++
		}
		return m
	}
	return maps.Equal(key(a), key(b))
}

func overJSON(t *rapid.T, s order.State) (out order.State) {
	text, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// checkBuffered: what is emitted after a restore was taken after it, or is
// among what was buffered; and nothing is buffered twice.
func checkBuffered(t *rapid.T, tr *trial, buffered []order.Ref, taken []asked, steps [][]order.Ref) {
	type key struct {
		epoch, shard int32
		index        int64
	}
	have := map[key]int{}
	distinct := map[order.Ref]bool{}
	for _, r := range buffered {
		have[key{r.Epoch, r.Shard, r.Index}]++
		if r.Copy, r.Times = 0, 0; tr.Unit != order.Shard && r.Kind == order.Fresh && distinct[r] {
			t.Fatalf("%+v is buffered twice", r)
		}
		distinct[r] = true
	}
	for _, a := range taken {
		if a.yes {
			have[key{a.epoch, a.shard, a.index}]++
		}
	}
	seen := map[key]map[int32]bool{}
	for _, refs := range steps {
		for _, r := range refs {
			if r.Kind != order.Fresh {
				continue
			}
			k := key{r.Epoch, r.Shard, r.Index}
			if seen[k] == nil {
				seen[k] = map[int32]bool{}
			}
			id := r.Pass
			if tr.Unit == order.Shard {
				id = r.Pass<<8 | r.Copy
			}
			seen[k][id] = true
			if len(seen[k]) > have[k] {
				t.Fatalf("%+v is emitted, but neither buffered nor taken", r)
			}
		}
	}
}

// checkFollow follows a machine as one who fetches does: it knows runs only by
// Run and Opened, and expects every sample that is taken to be the next of an
// open one.
func checkFollow(t *rapid.T, from *rank, world int) {
	r, _ := newRank(from.tr, from.n, world)
	if err := r.Restore(from.State()); err != nil {
		t.Fatal(err)
	}
	type stand struct {
		epoch int32
		open  []order.OpenRun
		next  int
	}
	stands := make([]stand, r.Readings())
	lows := make([]stand, r.Readings())
	for i := range stands {
		stands[i].epoch = r.State().Epoch
		stands[i].open, stands[i].next = r.Opened(i)
	}
	mark := func() {
		for i := range lows {
			run, index := r.Low(i)
			lows[i] = stand{epoch: r.State().Epoch, next: run}
			lows[i].open = []order.OpenRun{{At: index}}
		}
	}
	mark()
	sequential := from.tr.counted() && r.Open() == 1 && len(stands) == len(from.tr.Parts) && from.tr.Shuffle == order.None
	skip := func(o *order.OpenRun) {
		for slices.Contains(from.tr.entry(o.Shard).Exclude, o.At) {
			o.At++
		}
	}
	take := func(reading, epoch, shard int32, index int64) (bool, error) {
		yes := index < from.tr.counts[shard]
		if from.tr.Shuffle == order.Global {
			if reading != -1 {
				t.Fatalf("reading %d of Global", reading)
			}
			return yes, nil
		}
		if sequential {
			checkLow(t, r, lows[reading].epoch, lows[reading].next, lows[reading].open[0].At, reading, epoch, shard, index)
			return yes, nil
		}
		s := &stands[reading]
		if s.epoch != epoch {
			*s = stand{epoch: epoch}
		}
		for len(s.open) < r.Open() {
			run, ok := r.Run(int(reading), epoch, s.next)
			if !ok {
				break
			}
			o := order.OpenRun{I: s.next, Run: run, At: run.From}
			skip(&o)
			s.open = append(s.open, o)
			s.next++
		}
		for i := range s.open {
			o := &s.open[i]
			if o.Shard != shard || o.At != index {
				continue
			}
			o.At++
			skip(o)
			if !yes || o.To != order.Unknown && o.At >= o.To {
				s.open = slices.Delete(s.open, i, i+1)
			}
			return yes, nil
		}
		t.Fatalf("took %d of shard %d in epoch %d, but open in reading %d are %+v", index, shard, epoch, reading, s.open)
		return false, nil
	}
	for {
		_, ok, err := r.Step(nil, take)
		if err != nil || !ok {
			return
		}
		mark()
	}
}

// checkLow finds the sample in the runs from the low mark on.
func checkLow(t *rapid.T, r *rank, lowEpoch int32, run int, at int64, reading, epoch, shard int32, index int64) {
	if epoch != lowEpoch {
		run, at = 0, 0
	}
	for i := run; i < run+200; i++ {
		got, ok := r.Run(int(reading), epoch, i)
		if !ok {
			break
		}
		if got.Shard == shard && index >= got.From && index < got.To && (i > run || index >= at) {
			return
		}
	}
	t.Fatalf("took %d of shard %d, but low is run %d at %d", index, shard, run, at)
}
