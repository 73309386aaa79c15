package loader

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"shardtool/augment"
	"shardtool/echo"
	"shardtool/format"
	"shardtool/format/tarshard"
	"shardtool/reader"
	"shardtool/reader/order"
	"shardtool/reader/store"
	"shardtool/tensor"
)

const cases = "../fixtures/cases/"

// expected reads what a case expects, and returns its files.
func expected(t *testing.T, name string, into any) (files []string) {
	t.Helper()
	text, err := os.ReadFile(cases + "cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Name   string
		Files  []string
		Expect json.RawMessage
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.Name == name {
			if err := json.Unmarshal(c.Expect, into); err != nil {
				t.Fatal(err)
			}
			for _, f := range c.Files {
				files = append(files, filepath.Join(cases, filepath.FromSlash(f)))
			}
			return files
		}
	}
	t.Fatalf("no case %s", name)
	return nil
}

func dataset(names []string) *reader.Dataset {
	return reader.New(&store.Local{}, names, &reader.Options{CacheDir: "-"})
}

// given is one place of a batch: the number of the shard and the key.
type given struct {
	id     string
	epoch  int32
	valid  bool
	kind   order.Kind
	tensor string // bytes of column 0, should it be a picture
	data   string // bytes of the column bin, should there be one
}

// give runs a loader, whose last column is Key.
func give(t *testing.T, ds *reader.Dataset, o Options) (batches [][]given, l *Loader, err error) {
	t.Helper()
	if l, err = New(t.Context(), ds, &o); err != nil {
		return nil, nil, err
	}
	for b, e := range l.Batches(t.Context()) {
		if e != nil {
			err = e
			break
		}
		var batch []given
		for i, ref := range b.Refs {
			g := given{epoch: ref.Epoch, valid: b.Valid[i], kind: ref.Kind}
			g.id = fmt.Sprintf("%d/%s", ref.Shard, b.Binary(len(o.Columns)-1).At(i))
			for c := range o.Columns {
				switch o.Columns[c].Field {
				case "jpg":
					g.tensor = string(b.Column(c).At(i).Bytes())
				case "bin":
					g.data = string(b.Binary(c).At(i))
				}
			}
			batch = append(batch, g)
		}
		batches = append(batches, batch)
		b.Release()
	}
	checkEnd(t, l)
	return batches, l, err
}

func idsOf(batches [][]given) (all []string) {
	for _, b := range batches {
		for _, g := range b {
			all = append(all, g.id)
		}
	}
	return all
}

func distinct(list []string) int {
	m := map[string]bool{}
	for _, s := range list {
		m[s] = true
	}
	return len(m)
}

// f1: shards of 10, 10 and 7 for two ranks; a picture that does not decode.
func TestCaseUneven(t *testing.T) {
	var want struct {
		Ranks, Batch   int
		BatchesPerRank []int `json:"batches_per_rank"`
		BatchSizes     []int `json:"batch_sizes"`
		SamplesTotal   int   `json:"samples_total"`
		Alternatives   []struct {
			Policy         string
			BatchesPerRank []int `json:"batches_per_rank"`
			Error          *struct{ Class string }
		}
	}
	ds := dataset(expected(t, "f1_uneven", &want))
	for _, shuffle := range shuffles {
		o := Options{
			Columns:     []Column{Image("jpg", augment.ImageNetTrain(8)), Key()},
			GlobalBatch: want.Ranks * want.Batch, Shuffle: shuffle, Seed: 3, World: want.Ranks, OnBad: OnBad{Skip: 1},
		}
		bads, seen := 0, map[string]int{}
		for rank := range want.Ranks {
			o.Tail, o.Rank = order.TailDrop, rank
			batches, l, err := give(t, ds, o)
			if err != nil || len(batches) != want.BatchesPerRank[rank] {
				t.Fatalf("%v: %d batches, %v", shuffle, len(batches), err)
			}
			for i, b := range batches {
				if len(b) != want.BatchSizes[i] {
					t.Errorf("%v: a batch of %d", shuffle, len(b))
				}
				for _, g := range b {
					if g.valid {
						seen[g.id]++
					}
				}
			}
			s := l.Stats()
			bads += int(s.Bad["corrupt"] + s.Bad["truncated"])
			if len(s.Bad) > 1 || s.Holes > 1 {
				t.Errorf("%v: %+v", shuffle, s)
			}
		}
		// Without shuffling the last three are dropped, and 0004 is not
		// among them; with it, it may be.
		if bads > 1 || shuffle == order.None && bads != 1 || len(seen)+bads != 24 {
			t.Errorf("%v: %d bad, %d good", shuffle, bads, len(seen))
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("%v: %s %d times", shuffle, id, n)
			}
		}
		for _, alt := range want.Alternatives {
			good := map[string]bool{}
			for rank := range want.Ranks {
				o.Rank = rank
				o.Tail = map[string]order.Tail{"uneven=pad": order.TailPad, "uneven=error": order.TailKeep}[alt.Policy]
				batches, _, err := give(t, ds, o)
				if alt.Error != nil {
					if format.Class(err) != alt.Error.Class {
						t.Errorf("%v, %s: %v", shuffle, alt.Policy, err)
					}
					continue
				}
				if err != nil || len(batches) != alt.BatchesPerRank[rank] {
					t.Fatalf("%v, %s: %d batches, %v", shuffle, alt.Policy, len(batches), err)
				}
				for _, b := range batches {
					for _, g := range b {
						if g.valid {
							good[g.id] = true
						}
					}
				}
			}
			if alt.Error == nil && len(good) != want.SamplesTotal-1 {
				t.Errorf("%v, %s: %d good samples", shuffle, alt.Policy, len(good))
			}
		}
	}
}

// f2: one shard for four ranks of two workers.
func TestCaseOneShard(t *testing.T) {
	var want struct {
		Ranks, Workers int
		SamplesTotal   int `json:"samples_total"`
		Outcomes       []struct {
			PerRank []int `json:"samples_per_rank"`
			Error   *struct {
				Class string
			}
		} `json:"outcomes_allowed"`
	}
	files := expected(t, "f2_one_shard", &want)
	for _, shuffle := range shuffles {
		var all []string
		for rank := range want.Ranks {
			batches, _, err := give(t, dataset(files), Options{Columns: []Column{Key()}, GlobalBatch: 4, Shuffle: shuffle, World: want.Ranks, Rank: rank, Workers: want.Workers})
			if err != nil {
				t.Fatal(err)
			}
			got := idsOf(batches)
			if len(got) != want.Outcomes[0].PerRank[rank] {
				t.Errorf("%v: rank %d has %v", shuffle, rank, got)
			}
			all = append(all, got...)
		}
		if len(all) != want.SamplesTotal || distinct(all) != want.SamplesTotal {
			t.Errorf("%v: %v", shuffle, all)
		}
	}
	// Compressed, nobody counts the samples: then it is an error that says so.
	_, _, err := give(t, zipped(t, dataset(files)), Options{Columns: []Column{Key()}, GlobalBatch: 4, Shuffle: order.Stream(1, 4), World: want.Ranks, Steps: 4, Workers: want.Workers})
	if format.Class(err) != want.Outcomes[1].Error.Class || !strings.Contains(err.Error(), "1 shard ") || !strings.Contains(err.Error(), "4 ranks") {
		t.Errorf("not counted: %v", err)
	}
}

// f4: the epoch is set to 0, to 1, and to 0 again.
func TestCaseEpochOrder(t *testing.T) {
	var want struct {
		Seed    uint64
		Epochs  []int
		Equal   [][2]int `json:"order_equal"`
		Differs [][2]int `json:"order_differs"`
		Keys    int      `json:"each_epoch_has_all_keys_once"`
	}
	files := expected(t, "f4_epoch_order", &want)
	for _, shuffle := range shuffles[1:] {
		var orders [][]string
		for _, epoch := range want.Epochs {
			batches, _, err := give(t, dataset(files), Options{Columns: []Column{Key()}, GlobalBatch: 4, Tail: order.TailKeep, Shuffle: shuffle, World: 1, Seed: want.Seed, Epoch: epoch})
			if err != nil {
				t.Fatal(err)
			}
			got := idsOf(batches)
			if len(got) != want.Keys || distinct(got) != want.Keys || batches[0][0].epoch != int32(epoch) {
				t.Errorf("%v: epoch %d has %v", shuffle, epoch, got)
			}
			orders = append(orders, got)
		}
		for _, pair := range want.Equal {
			if !slices.Equal(orders[pair[0]], orders[pair[1]]) {
				t.Errorf("%v: %v differ", shuffle, pair)
			}
		}
		for _, pair := range want.Differs {
			if slices.Equal(orders[pair[0]], orders[pair[1]]) {
				t.Errorf("%v: %v are equal", shuffle, pair)
			}
		}
	}
}

// f6: random crops and flips by 1 worker and by 8.
func TestCaseWorkers(t *testing.T) {
	var want struct {
		Seed            uint64
		Workers         []int
		Epochs          int
		SamplesPerEpoch int `json:"samples_per_epoch"`
	}
	files := expected(t, "f6_workers", &want)
	for _, shuffle := range shuffles[1:] {
		var runs [][][]given
		for _, workers := range want.Workers {
			batches, _, err := give(t, dataset(files), Options{
				Columns:     []Column{Image("jpg", augment.ImageNetTrain(8)), Key()},
				GlobalBatch: 4, Tail: order.TailKeep, Shuffle: shuffle, World: 1, Seed: want.Seed, Epochs: want.Epochs, Workers: workers,
			})
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, batches)
		}
		if !slices.EqualFunc(runs[0], runs[1], slices.Equal) {
			t.Errorf("%v: %d and %d workers differ", shuffle, want.Workers[0], want.Workers[1])
		}
		epochs := make([]string, want.Epochs)
		count := make([]int, want.Epochs)
		for _, b := range runs[0] {
			for _, g := range b {
				epochs[g.epoch] += g.tensor
				count[g.epoch]++
			}
		}
		for e := range epochs {
			if count[e] != want.SamplesPerEpoch || slices.Contains(epochs[:e], epochs[e]) {
				t.Errorf("%v: epoch %d has %d samples, or is as another", shuffle, e, count[e])
			}
		}
	}
}

// numbered makes tar shards of n samples each, whose field bin is the number of
// the sample as eight little-endian bytes, 64 times; f5 and f7 are of such.
func numbered(t testing.TB, shards, n int) *reader.Dataset {
	t.Helper()
	dir := t.TempDir()
	var names []string
	for shard := range shards {
		var data bytes.Buffer
		w := tarshard.NewWriter(&data, nil)
		for i := range n {
			if err := w.WriteSample(&format.Sample{Key: fmt.Appendf(nil, "%06d", shard*n+i), Fields: []format.Field{{Name: "bin", Data: payload(shard*n + i)}}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.Join(dir, fmt.Sprintf("%d.tar", shard)))
		if err := os.WriteFile(names[shard], data.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dataset(names)
}

func payload(i int) []byte { return bytes.Repeat(binary.LittleEndian.AppendUint64(nil, uint64(i)), 64) }

// f7: the caller keeps every payload until the epoch ends.
func TestCaseAliasing(t *testing.T) {
	var want struct {
		Shard  struct{ Samples int }
		Buffer int `json:"shuffle_buffer"`
		Epochs int
		Growth int64 `json:"rss_growth_mb_after_epoch_2_max"`
	}
	expected(t, "f7_aliasing", &want)
	const batch = 50
	perEpoch := want.Shard.Samples / batch
	l, err := New(t.Context(), numbered(t, 1, want.Shard.Samples), &Options{
		Columns: []Column{Bytes("bin"), Key()}, GlobalBatch: batch, World: 1, Seed: 1,
		Shuffle: order.Stream(1, want.Buffer), Epochs: want.Epochs, Hold: perEpoch + 1, Workers: 4, Prefetch: 2 * perEpoch,
		MemoryBytes: 64 << 20, // how many of the 50 lanes have chunks at a time is chance: without a bound, these are large
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var held []*Batch
	var before int64
	epochs := 0
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if held = append(held, b); len(held) < perEpoch {
			continue
		}
		keys := map[string]bool{}
		for _, b := range held {
			for i := range b.Len() {
				key := string(b.Binary(1).At(i))
				keys[key] = true
				var n int
				if _, err := fmt.Sscanf(key, "%d", &n); err != nil || !bytes.Equal(b.Binary(0).At(i), payload(n)) {
					t.Fatalf("epoch %d: the payload of %s is another's", epochs, key)
				}
			}
			b.Release()
		}
		if len(keys) != want.Shard.Samples {
			t.Fatalf("epoch %d has %d keys", epochs, len(keys))
		}
		held = held[:0]
		if epochs++; epochs == 2 {
			before = inUse()
		}
	}
	if grown := inUse() - before; epochs != want.Epochs || grown > want.Growth<<20 {
		t.Errorf("%d epochs, memory grew by %d bytes", epochs, grown)
	}
}

// inUse is the memory that Go has in use, what is garbage aside.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// f5: checkpoints after some deliveries; a new loader gives the rest, random
// augmentation included. With a batch of one a delivery is a step; with three,
// checkpoints are at batches.
func TestCaseCheckpoint(t *testing.T) {
	var want struct {
		Samples, Shards, Echo, Deliveries int
		Buffer                            int   `json:"shuffle_buffer"`
		After                             []int `json:"checkpoint_after"`
		Exactly                           int   `json:"each_sample_exactly"`
	}
	expected(t, "f5_checkpoint", &want)
	ds := numbered(t, want.Shards, want.Samples/want.Shards)
	noise := Func("noise", tensor.Uint64, nil, func(dst tensor.Dense, s *format.Sample, draws augment.Draws) error {
		dst.Uint64()[0] = uint64(draws) ^ binary.LittleEndian.Uint64(s.Field("bin").Data)
		return nil
	})
	for _, ds := range []*reader.Dataset{ds, zipped(t, ds)} {
		for _, buffer := range []int{0, want.Buffer} { // of the echo; the shuffle's is as the case has it
			o := Options{
				Columns: []Column{Bytes("bin"), noise, Key()}, GlobalBatch: 1, World: 1, Seed: 7,
				Shuffle: order.Stream(want.Shards, want.Buffer), Echo: echo.Options{Factor: float64(want.Echo), Buffer: buffer},
			}
			run := func(from *State, most int) (all []string, last *State) {
				o := o
				o.Resume = from
				l, err := New(context.Background(), ds, &o)
				if err != nil {
					t.Fatal(err)
				}
				for b, err := range l.Batches(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, fmt.Sprintf("%s %x %x", b.Binary(2).At(0), b.Binary(0).At(0), b.Column(1).Uint64()[0]))
					last = b.State()
					b.Release()
					if len(all) == most {
						break
					}
				}
				checkEnd(t, l)
				return all, last
			}
			all, _ := run(nil, -1)
			if len(all) != want.Deliveries {
				t.Fatalf("%d deliveries", len(all))
			}
			times, draws := map[string]int{}, map[string]bool{}
			for _, s := range all {
				times[strings.Fields(s)[0]]++
				draws[s] = true
			}
			for key, n := range times {
				if n != want.Exactly {
					t.Errorf("%s %d times", key, n)
				}
			}
			if len(times) != want.Samples || len(draws) != want.Deliveries {
				t.Errorf("%d samples, %d of %d with draws of their own", len(times), len(draws), want.Deliveries)
			}
			for _, after := range want.After {
				var state *State
				if after > 0 {
					var head []string
					if head, state = run(nil, after); !slices.Equal(head, all[:after]) {
						t.Errorf("the first %d differ", after)
					}
				}
				if rest, _ := run(state, -1); !slices.Equal(rest, all[after:]) {
					t.Errorf("after %d: %d deliveries, want %d, or they differ", after, len(rest), len(all)-after)
				}
			}
		}
	}
}

// f8: ten samples in batches of four.
func TestCaseLastBatch(t *testing.T) {
	var want struct {
		Batch    int
		Requests []struct {
			Policy string
			Sizes  []int `json:"batch_sizes"`
		}
	}
	files := expected(t, "f8_last_batch", &want)
	for _, req := range want.Requests {
		tail := map[string]order.Tail{"last=keep": order.TailKeep, "last=drop": order.TailDrop}[req.Policy]
		for _, ds := range []*reader.Dataset{dataset(files), zipped(t, dataset(files))} {
			batches, _, err := give(t, ds, Options{Columns: []Column{Key()}, GlobalBatch: want.Batch, Tail: tail, World: 1})
			var sizes []int
			for _, b := range batches {
				sizes = append(sizes, len(b))
			}
			if err != nil || !slices.Equal(sizes, req.Sizes) {
				t.Errorf("%s: %v, %v", req.Policy, sizes, err)
			}
		}
	}
	// As evaluation asks for it: a short batch for one rank, padding for two.
	keys := map[string]int{}
	for rank := range 2 {
		o := Options{Columns: []Column{Key()}, GlobalBatch: want.Batch, World: 2, Rank: rank, Shuffle: order.Global, Epochs: 3, Echo: echo.Options{Factor: 2}}
		batches, _, err := give(t, dataset(files), *o.Evaluation())
		if err != nil || len(batches) != 3 {
			t.Fatalf("evaluation: %d batches, %v", len(batches), err)
		}
		for _, b := range batches {
			for _, g := range b {
				if g.valid {
					keys[g.id]++
				}
			}
		}
	}
	if len(keys) != 10 || slices.Max(slices.Collect(maps.Values(keys))) != 1 {
		t.Errorf("evaluation by two ranks gives %v", keys)
	}
}

// f11: a shard that is not there, a pattern without a match, braces. Listing a
// bucket is the S3 store's.
func TestCaseMissingShards(t *testing.T) {
	type missing struct {
		Pattern string
		Error   struct{ Class, Shard string }
		Expand  map[string][]string
		Others  []struct {
			Keys    []string
			Skipped map[string]int
		} `json:"alternatives"`
	}
	var want missing
	expected(t, "f11_missing_shard", &want)
	open := func(o *reader.Options) (*reader.Dataset, error) {
		o.CacheDir = "-"
		return reader.Open(t.Context(), cases+want.Pattern, o)
	}
	ds, err := open(&reader.Options{})
	if err == nil {
		_, _, err = give(t, ds, Options{Columns: []Column{Key()}, World: 1})
	}
	if e := format.AsError(err); format.Class(err) != want.Error.Class || e.Shard != cases+want.Error.Shard {
		t.Errorf("%v", err)
	}
	if ds, err = open(&reader.Options{OnMissingShard: format.MissingSkip}); err != nil {
		t.Fatal(err)
	}
	for _, shuffle := range shuffles {
		batches, _, err := give(t, ds, Options{Columns: []Column{Key()}, GlobalBatch: 4, Tail: order.TailKeep, Shuffle: shuffle, World: 1})
		var keys []string
		for _, id := range idsOf(batches) {
			_, key, _ := strings.Cut(id, "/")
			keys = append(keys, key)
		}
		if shuffle != order.None {
			slices.Sort(keys)
		}
		if err != nil || !slices.Equal(keys, want.Others[0].Keys) {
			t.Errorf("%v: %v, %v", shuffle, keys, err)
		}
	}
	want = missing{}
	expected(t, "f11_glob_none", &want)
	if _, err := open(&reader.Options{}); format.Class(err) != want.Error.Class {
		t.Errorf("no match: %v", err)
	}
	want = missing{}
	expected(t, "f11_braces", &want)
	if len(want.Expand) < 5 {
		t.Fatal("no patterns")
	}
	for pattern, names := range want.Expand {
		if got, err := store.Expand(t.Context(), &store.Local{}, pattern); err != nil || !slices.Equal(got, names) {
			t.Errorf("%s: %v, %v; want %v", pattern, got, err, names)
		}
	}
}

// b4: shards without samples, for ever.
func TestCaseRepeatEmpty(t *testing.T) {
	var want struct {
		Requests []struct {
			Samples []string
			Error   struct {
				Class  string
				AlsoOK []string `json:"also_ok"`
			}
		}
	}
	files := expected(t, "b4_repeat_empty", &want)
	allowed := append(want.Requests[0].Error.AlsoOK, want.Requests[0].Error.Class)
	for _, ds := range []*reader.Dataset{dataset(files), zipped(t, dataset(files))} {
		for _, o := range []Options{
			{}, {Tail: order.TailDrop}, {Tail: order.TailWrap, Steps: 5}, {Tail: order.TailPad, Steps: 5},
			{Shuffle: order.Global}, {Shuffle: order.Block(2)}, {Shuffle: order.Stream(2, 10)},
			{Echo: echo.Options{Factor: 2, Unit: echo.Batch, Buffer: 3}}, {Echo: echo.Options{Factor: 2, Buffer: 3}},
			{World: 2, Steps: 5},
		} {
			o.Columns, o.Epochs, o.World = []Column{Key()}, order.Endless, max(1, o.World)
			batches, _, err := give(t, ds, o)
			if len(batches) != 0 || !slices.Contains(allowed, format.Class(err)) {
				t.Errorf("%+v: %d batches, %v", o.Shuffle, len(batches), err)
			}
		}
	}
}
