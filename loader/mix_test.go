package loader

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"shardtool/echo"
	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/order"
)

func mixOf(t rapid.TB, parts ...reader.Weighted) *reader.Dataset {
	t.Helper()
	ds, err := reader.Mix(parts...)
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// labelOf is the label of a reference in a mix of labelled datasets, each of
// which counts its shards from 0.
func labelOf(ds *reader.Dataset, ref order.Ref) int {
	for _, p := range ds.Parts() {
		if k := int(ref.Shard) - p.First; k >= 0 && k < p.N {
			return 1000*k + int(ref.Index)
		}
	}
	return -1
}

// Part A has the labels 0 to 5, B has 0 and, in a second shard, 1000. With
// weights of 3 to 1, of every four samples one is of B, the first of the four:
// a part takes a place when its share of the places so far, rounded down,
// grows, and B takes what A does not.
func TestMixByHand(t *testing.T) {
	a, b := labelled(t, t.TempDir(), 6), labelled(t, t.TempDir(), 1, 1)
	ds := mixOf(t, reader.Weighted{Dataset: a, Weight: 3}, reader.Weighted{Dataset: b, Weight: 1})
	one := mixOf(t, reader.Weighted{Dataset: a, Weight: 3}, reader.Weighted{Dataset: labelled(t, t.TempDir(), 1), Weight: 1})
	const ofB = 1 // the first shard of B, after one of A
	for _, tt := range []struct {
		name   string
		ds     *reader.Dataset
		ends   order.Ends
		epochs int
		shards []int32
		labels []int64
	}{
		{"even", ds, order.Restart, 1, []int32{ofB, 0, 0, 0, ofB + 1, 0, 0, 0}, []int64{0, 0, 1, 2, 1000, 3, 4, 5}},
		{"even, stop", ds, order.Stop, 2, []int32{ofB, 0, 0, 0, ofB + 1, 0, 0, 0, ofB, 0, 0, 0, ofB + 1, 0, 0, 0},
			[]int64{0, 0, 1, 2, 1000, 3, 4, 5, 0, 0, 1, 2, 1000, 3, 4, 5}},
		{"restart", one, order.Restart, 1, []int32{ofB, 0, 0, 0, ofB, 0, 0, 0}, []int64{0, 0, 1, 2, 0, 3, 4, 5}},
		{"restart, and again", one, order.Restart, 2, []int32{ofB, 0, 0, 0, ofB, 0, 0, 0, ofB, 0, 0, 0, ofB, 0, 0, 0},
			[]int64{0, 0, 1, 2, 0, 3, 4, 5, 0, 0, 1, 2, 0, 3, 4, 5}},
		{"stop", one, order.Stop, 1, []int32{ofB, 0, 0, 0}, []int64{0, 0, 1, 2}},
	} {
		all := steps(t, tt.ds, Options{GlobalBatch: 4, Ends: tt.ends, Epochs: tt.epochs, Tail: order.TailKeep, World: 1}, -1)
		var shards []int32
		var labels []int64
		for _, s := range all {
			for _, ref := range s.Refs {
				shards = append(shards, ref.Shard)
			}
			labels = append(labels, s.Labels...)
		}
		if !slices.Equal(shards, tt.shards) || !slices.Equal(labels, tt.labels) {
			t.Errorf("%s: shards %v, labels %v", tt.name, shards, labels)
		}
	}
}

// In every mode, by every world that divides the lanes, the shares of a long
// run are those of the weights, to one sample for each lane and level.
func TestMixProportions(t *testing.T) {
	ds := mixOf(t,
		reader.Weighted{Dataset: labelled(t, t.TempDir(), 90, 50), Weight: 5},
		reader.Weighted{Dataset: labelled(t, t.TempDir(), 60), Weight: 3},
		reader.Weighted{Dataset: labelled(t, t.TempDir(), 20, 11), Weight: 2})
	for _, shuffle := range []order.Shuffle{order.None, order.Global, order.Block(4), order.Stream(4, 16)} {
		for _, world := range []int{1, 2} {
			var got [3]int
			total := 0
			for rank := range world {
				o := Options{GlobalBatch: 20, Lanes: 4, Seed: 1, Shuffle: shuffle, Tail: order.TailDrop, World: world, Rank: rank}
				for _, s := range steps(t, ds, o, -1) {
					for i, ref := range s.Refs {
						part := slices.IndexFunc(ds.Parts(), func(p reader.Part) bool { return int(ref.Shard) < p.First+p.N })
						got[part]++
						total++
						if s.Labels[i] != int64(labelOf(ds, ref)) || !s.Valid[i] {
							t.Fatalf("%v: label %d at %+v", shuffle, s.Labels[i], ref)
						}
					}
				}
			}
			// The epoch lasts until all of every part was read, which are 140
			// samples of half of the places; of each lane's last step, 20
			// together, some may lack.
			if total < 260 || total > 320 {
				t.Errorf("%v, world %d: %d samples", shuffle, world, total)
			}
			// What waits in the buffers of Stream when the tail is dropped may
			// be of any part.
			slack := 4 + 20
			for part, of := range [3]int{5, 3, 2} {
				if d := 10*got[part] - of*total; d > 10*slack || d < -10*slack {
					t.Errorf("%v, world %d: %v of %d", shuffle, world, got, total)
				}
			}
			if shuffle == order.None || shuffle == order.Global { // places in turn, of which 20 a step
				if got != [3]int{total / 2, total * 3 / 10, total / 5} {
					t.Errorf("%v, world %d: %v of %d", shuffle, world, got, total)
				}
			}
		}
	}
}

// Any mix, in any mode, gives what the order says, of the data; and goes on
// from any step.
func TestMixIsWhatTheOrderSays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var parts []reader.Weighted
		for range rapid.IntRange(2, 3).Draw(rt, "parts") {
			dir, err := os.MkdirTemp(t.TempDir(), "")
			if err != nil {
				rt.Fatal(err)
			}
			counts := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 2).Draw(rt, "counts")
			counts = append(counts, rapid.IntRange(6, 15).Draw(rt, "last"))
			parts = append(parts, reader.Weighted{Dataset: labelled(rt, dir, counts...), Weight: rapid.Float64Range(0.5, 4).Draw(rt, "weight")})
		}
		ds := mixOf(rt, parts...)
		o := drawOptions(rt)
		o.Ends = rapid.SampledFrom([]order.Ends{order.Restart, order.Stop}).Draw(rt, "ends")
		o.Lanes = rapid.SampledFrom([]int{0, o.World}).Draw(rt, "lanes")
		holdMix(rt, ds, o, rapid.IntRange(0, 1<<20).Draw(rt, "resumed after"))
	})
}

// holdMix holds the batches of a mix against its order, and what comes when it
// goes on behind one of them.
func holdMix(t rapid.TB, ds *reader.Dataset, o Options, at int) {
	t.Helper()
	o.Columns = labelledColumns
	l, err := New(context.Background(), ds, &o)
	if errors.Is(err, format.ErrUsage) {
		return // fewer samples than lanes
	}
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	want, wantErr := ordered(l)
	all, err := stepsOrError(t, ds, o)
	if format.Class(err) != format.Class(wantErr) || len(all) != len(want) {
		t.Fatalf("%d steps, %v; want %d, %v", len(all), err, len(want), wantErr)
	}
	for i, s := range all {
		if !slices.Equal(s.Refs, want[i]) {
			t.Fatalf("step %d\n got %v\nwant %v", i, s.Refs, want[i])
		}
		for k, ref := range s.Refs {
			if label := labelOf(ds, ref); ref.Kind != order.Padding && (s.Labels[k] != int64(label) || !slices.Equal(s.IDs[k], ids(label)) || !s.Valid[k]) {
				t.Fatalf("step %d: label %d, ids %v at %+v", i, s.Labels[k], s.IDs[k], ref)
			}
		}
	}
	if len(all) == 0 {
		return
	}
	at %= len(all)
	o.Resume = saved(t, &all[at])
	rest, err := stepsOrError(t, ds, o)
	if len(rest) != len(all)-at-1 || format.Class(err) != format.Class(wantErr) {
		t.Fatalf("%d steps are left, %v; want %d, %v", len(rest), err, len(all)-at-1, wantErr)
	}
	for i := range rest {
		if !rest[i].equal(&all[at+1+i]) {
			t.Fatalf("step %d after %d\n got %+v\nwant %+v", i, at, rest[i], all[at+1+i])
		}
	}
}

// Mixes that went wrong once: two batches of an epoch that begin with the same
// reference, and a part that begins anew behind where its run was resumed.
func TestMixesThatWentWrong(t *testing.T) {
	for _, tt := range []struct {
		parts map[float64][]int
		o     Options
		at    int
	}{
		{map[float64][]int{3.98068106174469: {0, 4, 8}, 3.781005859375: {8}, 0.9136031883193955: {6}},
			Options{GlobalBatch: 4, Seed: 0x225c18c7bd3, Epochs: 3, Shuffle: order.Block(3), Tail: order.TailWrap, Echo: echo.Options{Unit: echo.Batch, Factor: 2, Buffer: 10}}, 0},
		{map[float64][]int{1.7879413133391406: {2, 12}, 0.7781971008516848: {6}, 0.699462890625: {15}},
			Options{GlobalBatch: 6, Seed: 0x52f3b1517ecf, Epochs: 2, Lanes: 1, Shuffle: order.Block(1), Tail: order.TailWrap, Echo: echo.Options{Unit: echo.Batch, Factor: 3, Buffer: 10}}, 0},
	} {
		var parts []reader.Weighted
		for _, w := range slices.Backward(slices.Sorted(maps.Keys(tt.parts))) {
			parts = append(parts, reader.Weighted{Dataset: labelled(t, t.TempDir(), tt.parts[w]...), Weight: w})
		}
		tt.o.World = 1
		holdMix(t, mixOf(t, parts...), tt.o, tt.at)
	}
}

// ordered runs the machine of a loader alone, to its end or its error.
func ordered(l *Loader) (all [][]order.Ref, err error) {
	for {
		refs, ok, err := l.machine.Step(nil, func(int32, int32, int32, int64) (bool, error) { return true, nil })
		if err != nil || !ok {
			return all, err
		}
		all = append(all, refs)
	}
}

func stepsOrError(t rapid.TB, ds *reader.Dataset, o Options) (all []step, err error) {
	o.Columns = labelledColumns
	l, err := New(context.Background(), ds, &o)
	if err != nil {
		return nil, err
	}
	for b, e := range l.Batches(context.Background()) {
		if err = e; err != nil {
			break
		}
		all = append(all, stepOf(t, b))
		b.Release()
	}
	checkEnd(t, l)
	return all, err
}

// A change of the mix is another plan.
func TestResumeOfAnotherMix(t *testing.T) {
	a, b := labelled(t, t.TempDir(), 6), labelled(t, t.TempDir(), 5)
	mixed := func(w float64) *reader.Dataset {
		return mixOf(t, reader.Weighted{Dataset: a, Weight: w}, reader.Weighted{Dataset: b, Weight: 1})
	}
	o := Options{GlobalBatch: 2, World: 1, Tail: order.TailDrop, Echo: echo.Options{Factor: 2}}
	all := steps(t, mixed(2), o, 2)
	o.Resume, o.Columns = saved(t, &all[1]), labelledColumns
	for i, change := range []func() (*reader.Dataset, Options){
		func() (*reader.Dataset, Options) { return mixed(2.5), o },
		func() (*reader.Dataset, Options) { o := o; o.Ends = order.Stop; return mixed(2), o },
		func() (*reader.Dataset, Options) { return a, o },
	} {
		ds, o := change()
		if _, err := New(t.Context(), ds, &o); !errors.Is(err, format.ErrStale) {
			t.Errorf("change %d: %v", i, fmt.Sprint(err))
		}
	}
}
