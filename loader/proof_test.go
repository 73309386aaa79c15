package loader

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"shardtool/echo"
	"shardtool/format"
	"shardtool/format/tarshard"
	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
	"shardtool/reader"
	"shardtool/reader/order"
	"shardtool/reader/store"
	"shardtool/tensor"
)

// labelled makes shards of so many samples each, tar or TFRecord by turns, in
// a folder. A sample's cls is 1000*shard + index, and its ids are as many
// numbers as that, modulo 7, from it on.
func labelled(t rapid.TB, dir string, counts ...int) *reader.Dataset {
	t.Helper()
	var names []string
	for shard, n := range counts {
		name := filepath.Join(dir, fmt.Sprintf("s-%03d.tar", shard))
		if shard%2 == 1 {
			name = filepath.Join(dir, fmt.Sprintf("s-%03d.tfrecord", shard))
		}
		names = append(names, name)
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		write := tarWriter(t, f)
		if shard%2 == 1 {
			write = recordWriter(t, f)
		}
		for i := range n {
			write(1000*shard + i)
		}
		write(-1)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return reader.New(&store.Local{}, names, &reader.Options{CacheDir: "-"})
}

// ids are the numbers of a labelled sample.
func ids(label int) []int64 {
	list := make([]int64, label%7)
	for i := range list {
		list[i] = int64(label + i)
	}
	return list
}

func tarWriter(t rapid.TB, f *os.File) func(int) {
	w := tarshard.NewWriter(f, nil)
	return func(label int) {
		var err error
		if label < 0 {
			err = w.Close()
		} else {
			list, _ := json.Marshal(ids(label))
			err = w.WriteSample(&format.Sample{
				Key: fmt.Appendf(nil, "k%06d", label),
				Fields: []format.Field{
					{Name: "cls", Data: fmt.Appendf(nil, "%d", label)},
					{Name: "ids.json", Data: list},
				},
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func recordWriter(t rapid.TB, f *os.File) func(int) {
	w := tfrecord.NewWriter(f)
	return func(label int) {
		if label < 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			return
		}
		var b tfexample.Builder
		b.AddBytes("__key__", fmt.Appendf(nil, "k%06d", label))
		b.AddInt64("cls", int64(label))
		b.AddInt64("ids.json", ids(label)...)
		if err := w.Write(b.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
	}
}

var labelledColumns = []Column{
	Padded("ids.json", tensor.Int64, 8, &PadOptions{Value: -1, Buckets: []int{2, 4}}),
	Ragged("ids.json", tensor.Int64),
	Key(),
	Int64("cls"),
}

// step is what a trainer sees of a batch.
type step struct {
	Refs   []order.Ref
	Valid  []bool
	Labels []int64
	Keys   []string
	IDs    [][]int64 // as the ragged column has them
	Padded string    // the padded column
	State  string
}

func stepOf(t rapid.TB, b *Batch) step {
	s := step{Refs: slices.Clone(b.Refs), Valid: slices.Clone(b.Valid), Labels: slices.Clone(b.Int64(3))}
	ragged, keys, padded := b.Ragged(1), b.Binary(2), b.Padded(0)
	for i := range b.Len() {
		s.Keys = append(s.Keys, string(keys.At(i)))
		row := slices.Clone(ragged.At(i).Int64())
		s.IDs = append(s.IDs, row)
		if n := int(padded.Lengths[i]); n != len(row) || !slices.Equal(padded.Values.At(i).Int64()[:n], row) {
			t.Errorf("padded %v, ragged %v", padded.Values.At(i).Int64(), row)
		}
	}
	s.Padded = fmt.Sprint(padded.Values.Shape(), padded.Values.Int64())
	state, err := json.Marshal(b.State())
	if err != nil {
		t.Fatal(err)
	}
	s.State = string(state)
	return s
}

// steps runs a loader for at most so many batches; negative: all.
func steps(t rapid.TB, ds *reader.Dataset, o Options, most int) []step {
	t.Helper()
	o.Columns = labelledColumns
	l, err := New(context.Background(), ds, &o)
	if err != nil {
		t.Fatal(err)
	}
	var all []step
	if most != 0 {
		for b, err := range l.Batches(context.Background()) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, stepOf(t, b))
			b.Release()
			if len(all) == most {
				break
			}
		}
	}
	checkEnd(t, l)
	return all
}

// check holds every place of a batch against the data of its reference.
func (s *step) check(t rapid.TB) {
	t.Helper()
	for i, ref := range s.Refs {
		if ref.Kind == order.Padding {
			if s.Valid[i] {
				t.Errorf("padding is valid")
			}
			continue
		}
		label := int(1000*int64(ref.Shard) + ref.Index)
		if !s.Valid[i] || s.Labels[i] != int64(label) || s.Keys[i] != fmt.Sprintf("k%06d", label) || !slices.Equal(s.IDs[i], ids(label)) {
			t.Fatalf("%+v has label %d, key %s, ids %v, valid %v", ref, s.Labels[i], s.Keys[i], s.IDs[i], s.Valid[i])
		}
	}
}

func (s *step) equal(o *step) bool {
	return slices.Equal(s.Refs, o.Refs) && slices.Equal(s.Valid, o.Valid) && slices.Equal(s.Labels, o.Labels) &&
		slices.Equal(s.Keys, o.Keys) && s.Padded == o.Padded && s.State == o.State
}

// drawOptions draws what an order is made of.
func drawOptions(rt *rapid.T) Options {
	o := Options{
		GlobalBatch: rapid.SampledFrom([]int{1, 2, 4, 6, 8}).Draw(rt, "batch"),
		Seed:        rapid.Uint64().Draw(rt, "seed"),
		Epochs:      rapid.IntRange(1, 3).Draw(rt, "epochs"),
		Shuffle: rapid.SampledFrom([]order.Shuffle{order.None, order.Global, order.Block(1), order.Block(3),
			order.Stream(1, 5), order.Stream(3, 8)}).Draw(rt, "shuffle"),
		Tail: rapid.SampledFrom([]order.Tail{order.TailDefault, order.TailDrop, order.TailPad, order.TailWrap}).Draw(rt, "tail"),
		Echo: echo.Options{
			Unit:   rapid.SampledFrom([]echo.Unit{echo.Sample, echo.Batch}).Draw(rt, "unit"),
			Factor: rapid.SampledFrom([]float64{1, 1, 1.5, 2, 3}).Draw(rt, "e"),
			Buffer: rapid.SampledFrom([]int{0, 0, 3, 10}).Draw(rt, "W"),
		},
		Workers:  rapid.IntRange(1, 4).Draw(rt, "workers"),
		Fetchers: rapid.IntRange(1, 4).Draw(rt, "fetchers"),
		Prefetch: rapid.IntRange(1, 4).Draw(rt, "prefetch"),
	}
	if o.Echo.Unit == echo.Sample {
		o.Echo.Keep = rapid.SampledFrom([]echo.Level{echo.Natural, echo.Bytes, echo.Decoded, echo.Augmented}).Draw(rt, "keep")
		o.Echo.Bytes = rapid.SampledFrom([]int64{0, 1, 300}).Draw(rt, "kept bytes")
	}
	if o.Shuffle != order.Global && rapid.IntRange(0, 4).Draw(rt, "shard") == 0 {
		o.Echo.Unit, o.Echo.Keep = echo.Shard, echo.Bytes
	}
	if o.GlobalBatch%2 == 0 && rapid.Bool().Draw(rt, "two ranks") {
		o.World = 2
		o.Rank = rapid.IntRange(0, 1).Draw(rt, "rank")
	} else {
		o.World = 1
	}
	return o
}

// orderOf runs the machine of a loader alone.
func orderOf(t rapid.TB, ds *reader.Dataset, o Options) (all [][]order.Ref) {
	o.Columns = labelledColumns
	l, err := New(context.Background(), ds, &o)
	if err != nil {
		t.Fatal(err)
	}
	for {
		refs, ok, err := l.machine.Step(nil, func(int32, int32, int32, int64) (bool, error) { return true, nil })
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return all
		}
		all = append(all, refs)
	}
}

// Whatever the order, the batches are what it says, of the data; and from any
// of them on another loader goes on as if nothing had happened.
func TestPlanAloneSaysWhatComes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		counts := rapid.SliceOfN(rapid.IntRange(0, 12), 1, 5).Draw(rt, "counts")
		counts = append(counts, rapid.IntRange(8, 20).Draw(rt, "last"))
		ds := labelled(t, dir, counts...)
		o := drawOptions(rt)
		want := orderOf(rt, ds, o)
		all := steps(rt, ds, o, -1)
		if len(all) != len(want) {
			rt.Fatalf("%d steps, the order has %d", len(all), len(want))
		}
		for i := range all {
			if !slices.Equal(all[i].Refs, want[i]) {
				rt.Fatalf("step %d\n got %v\nwant %v", i, all[i].Refs, want[i])
			}
			all[i].check(rt)
		}
		if len(all) == 0 {
			return
		}
		at := rapid.IntRange(0, len(all)-1).Draw(rt, "resumed after")
		var state State
		if err := json.Unmarshal([]byte(all[at].State), &state); err != nil {
			rt.Fatal(err)
		}
		o.Resume = &state
		o.Workers = rapid.IntRange(1, 4).Draw(rt, "other workers")
		rest := steps(rt, ds, o, -1)
		if len(rest) != len(all)-at-1 {
			rt.Fatalf("%d steps are left, want %d", len(rest), len(all)-at-1)
		}
		for i := range rest {
			if !rest[i].equal(&all[at+1+i]) {
				rt.Fatalf("step %d after %d\n got %+v\nwant %+v", i, at, rest[i], all[at+1+i])
			}
		}
	})
}
