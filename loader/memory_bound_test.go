package loader

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"shardtool/echo"
	"shardtool/format"
	"shardtool/format/tarshard"
	"shardtool/reader"
	"shardtool/reader/order"
)

// heavy makes tar shards whose samples have a field pad of some KiB, zeros, by
// turns of the sizes given.
func heavy(t *testing.T, shards, n int, kib ...int) *reader.Dataset {
	t.Helper()
	dir := t.TempDir()
	var names []string
	for shard := range shards {
		var data bytes.Buffer
		w := tarshard.NewWriter(&data, nil)
		for i := range n {
			if err := w.WriteSample(&format.Sample{Key: fmt.Appendf(nil, "k%06d", 1000*shard+i), Fields: []format.Field{
				{Name: "cls", Data: fmt.Appendf(nil, "%d", 1000*shard+i)},
				{Name: "pad", Data: make([]byte, kib[i%len(kib)]<<10)},
			}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.Join(dir, fmt.Sprintf("h-%d.tar", shard)))
		if err := os.WriteFile(names[shard], data.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dataset(names)
}

// tightest is the smallest bound of memory that New takes.
func tightest(t *testing.T, ds *reader.Dataset, o Options) int64 {
	t.Helper()
	o.MemoryBytes = 1
	_, err := New(t.Context(), ds, &o)
	if !errors.Is(err, format.ErrUsage) || !strings.Contains(fmt.Sprint(err), "memory of 1 bytes is too little") {
		t.Fatalf("a byte is enough: %v", err)
	}
	o.MemoryBytes = 0
	l, err := New(t.Context(), ds, &o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	reads := int64(l.runsOpen * l.machine.Readings())
	if l.scatter {
		reads = int64(l.o.Fetchers)
	}
	sum := reads * leastChunk
	for _, term := range l.Memory() {
		if term.Name != "samples under way" && !strings.Contains(term.Name, "that are kept") { // those take what there is
			sum += term.Bytes
		}
	}
	o.MemoryBytes = sum - 1
	if _, err := New(t.Context(), ds, &o); !errors.Is(err, format.ErrUsage) {
		t.Fatalf("%d bytes are enough: %v", sum-1, err)
	}
	return sum
}

// With as little memory as New takes, and a trainer who is slow, so that
// everything has run ahead as far as it may, the batches come all the same; in
// a bubble, to be stuck is a failure. What is under way is then bounded by what
// may be, by what waits in buffers, and by what one batch needs.
func TestTightMemory(t *testing.T) {
	const shards, n = 4, 16
	small, large := heavy(t, shards, n, 20), heavy(t, shards, n, 1, 1000, 30, 200)
	for _, tt := range []struct {
		name    string
		ds      *reader.Dataset
		largest int64 // bytes of a sample
	}{{"small", small, 20 << 10}, {"large", large, 1000 << 10}, {"not counted", zipped(t, small), 20 << 10}} {
		for _, shuffle := range []order.Shuffle{order.None, order.Global, order.Block(4), order.Stream(4, 40), order.Stream(1, 40)} {
			for _, e := range []echo.Options{{}, {Factor: 2}, {Factor: 2, Keep: echo.Augmented}, {Factor: 3, Buffer: 50}, {Factor: 2, Unit: echo.Batch, Buffer: 6}} {
				for world := 1; world <= 2; world++ {
					o := Options{
						GlobalBatch: 8, Seed: 1, Epochs: 2, Shuffle: shuffle, Echo: e, World: world, Rank: world - 1, Tail: order.TailWrap,
						Columns: []Column{size("pad"), Int64("cls")}, Workers: 2, Fetchers: 3, Prefetch: 3, Hold: 2,
					}
					if tt.name == "not counted" {
						if o.Steps = 8; shuffle == order.Global || shuffle == order.Block(4) {
							continue
						}
					}
					what := fmt.Sprintf("%s, %v, echo %+v, rank %d of %d", tt.name, shuffle, e, o.Rank, world)
					o.MemoryBytes = tightest(t, tt.ds, o)
					synctest.Test(t, func(t *testing.T) { holdTight(t, what, tt.ds, o, tt.largest) })
				}
			}
		}
	}
}

func holdTight(t *testing.T, what string, ds *reader.Dataset, o Options, largest int64) {
	l, err := New(t.Context(), ds, &o)
	if err != nil {
		t.Fatal(what, err)
	}
	largest += 64 // key and label
	// A batch needs its samples, each perhaps with the chunk that it came in.
	perBatch := int64(l.perRank) * (largest + leastChunk)
	buffered := int64(o.Shuffle.Buffer())
	if o.Echo.Unit == echo.Sample {
		buffered += int64(o.Echo.Buffer)
	} else {
		buffered += int64(o.Echo.Buffer * l.perRank) // before it is made
	}
	most := l.chunks.gate.limit + perBatch + buffered*(largest+leastChunk)
	steps, peak := 0, int64(0)
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(what, err)
		}
		for i, ref := range b.Refs {
			if b.Int64(1)[i] != 1000*int64(ref.Shard)+ref.Index {
				t.Fatalf("%s: label %d at %+v", what, b.Int64(1)[i], ref)
			}
		}
		time.Sleep(time.Second)
		peak = max(peak, gateUsed(l))
		b.Release()
		steps++
	}
	if steps < 2*4*16/8 {
		t.Errorf("%s: %d steps", what, steps)
	}
	if peak > most {
		t.Errorf("%s: %d KiB under way, %d may be, and %d with what must", what, peak>>10, l.chunks.gate.limit>>10, most>>10)
	}
	checkEnd(t, l)
}

func gateUsed(l *Loader) int64 {
	l.chunks.gate.mu.Lock()
	defer l.chunks.gate.mu.Unlock()
	return l.chunks.gate.used
}

// Who holds every batch is told so, in every mode, and not left to wait; what
// is held stays good.
func TestHoldingAllIsAnErrorInEveryMode(t *testing.T) {
	ds := heavy(t, 3, 20, 3)
	for _, shuffle := range shuffles {
		for _, e := range []echo.Options{{}, {Factor: 2, Buffer: 10}, {Factor: 2, Unit: echo.Batch}} {
			synctest.Test(t, func(t *testing.T) {
				o := Options{GlobalBatch: 4, Shuffle: shuffle, Echo: e, World: 1, Columns: []Column{Bytes("pad"), Int64("cls")}, Hold: 5}
				o.MemoryBytes = tightest(t, ds, o)
				l, err := New(t.Context(), ds, &o)
				if err != nil {
					t.Fatal(err)
				}
				var held []*Batch
				for b, e := range l.Batches(t.Context()) {
					if err = e; err != nil {
						break
					}
					held = append(held, b)
				}
				if !errors.Is(err, format.ErrUsage) || len(held) != 5 || !strings.Contains(err.Error(), "5 batches are held") {
					t.Errorf("%v, echo %+v: %d batches, %v", shuffle, e, len(held), err)
				}
				for _, b := range held {
					for i, ref := range b.Refs {
						if b.Int64(1)[i] != 1000*int64(ref.Shard)+ref.Index || !bytes.Equal(b.Binary(0).At(i), zeros[:3<<10]) {
							t.Errorf("%v: what is held changed", shuffle)
						}
					}
					b.Release()
				}
				checkEnd(t, l)
			})
		}
	}
}

// An echo of batches keeps as many as its buffer has: they are part of what is
// fixed. A batch of 8 numbers is 64 bytes.
func TestEchoedBatchesAreCounted(t *testing.T) {
	ds := heavy(t, 1, 20, 1)
	o := Options{GlobalBatch: 8, World: 1, Columns: []Column{Int64("cls")}, Prefetch: 2, Hold: 3, Echo: echo.Options{Factor: 2, Unit: echo.Batch, Buffer: 10}}
	l, err := New(t.Context(), ds, &o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	terms := map[string]int64{}
	for _, term := range l.Memory() {
		terms[term.Name] = term.Bytes
	}
	if terms["5 batches (2 made ahead, 3 held by the trainer)"] != 5*64 || terms["10 batches of the echo"] != 10*64 {
		t.Errorf("%v", terms)
	}
	// Also where the factor is 1 and may become another.
	o.Echo = echo.Options{Unit: echo.Batch, Buffer: 10, Auto: &echo.Auto{}}
	auto, err := New(t.Context(), ds, &o)
	if err != nil {
		t.Fatal(err)
	}
	defer auto.Close()
	if !slices.Contains(auto.Memory(), MemoryTerm{"10 batches of the echo", 10 * 64}) {
		t.Errorf("with an automatic factor: %v", auto.Memory())
	}
}

// To keep more than any memory has is refused, with a bound and without.
func TestKeptBeyondAllMemory(t *testing.T) {
	ds := heavy(t, 1, 20, 1)
	for _, bound := range []int64{0, 64 << 20} {
		o := Options{GlobalBatch: 8, World: 1, Columns: []Column{Int64("cls")}, MemoryBytes: bound, Echo: echo.Options{Factor: 2, Keep: echo.Augmented, Bytes: math.MaxInt64}}
		if _, err := New(t.Context(), ds, &o); !errors.Is(err, format.ErrUsage) || !strings.Contains(err.Error(), "samples that are kept augmented") {
			t.Errorf("a bound of %d: %v", bound, err)
		}
	}
}

// What is free is bounded too: sizes that come no more do not stay beside those
// that do.
func TestFreeMemoryOfKept(t *testing.T) {
	const bytes, n = 64 << 20, 16
	k := newKeeper(echo.Augmented, nil, bytes)
	before := inUse()
	for _, size := range []int{4 << 20, 3 << 20} {
		var held []*made
		for range n {
			held = append(held, k.get(1, size))
		}
		if used := inUse() - before; used > n*int64(size)+bytes/idleShare+1<<20 {
			t.Errorf("%d bytes in use by %d of %d", used, n, size)
		}
		for _, m := range held {
			k.put(m)
		}
	}
	if used := inUse() - before; used > bytes/idleShare+1<<20 {
		t.Errorf("%d bytes in use by nothing", used)
	}
}
