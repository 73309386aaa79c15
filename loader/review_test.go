package loader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"shardtool/echo"
	"shardtool/format"
	"shardtool/reader/order"
	"shardtool/reader/store"
)

// S1
func TestReviewResumeWithoutEcho(t *testing.T) {
	ds := labelled(t, t.TempDir(), 5, 4, 6)
	for _, shuffle := range []order.Shuffle{order.None, order.Block(2)} {
		for _, f := range [][2]float64{{2, 1}, {1, 2}, {1.5, 1}, {3, 2}} {
			o := Options{GlobalBatch: 4, Seed: 3, Epochs: 2, Shuffle: shuffle, Tail: order.TailDrop, World: 1, Lanes: 1, Echo: echo.Options{Factor: f[0]}}
			all := steps(t, ds, o, 3)
			o.Resume = saved(t, &all[1])
			o.Echo.Factor = f[1]
			want := orderOf(t, ds, o)
			rest := steps(t, ds, o, -1)
			if len(rest) != len(want) {
				t.Fatalf("%d steps, want %d", len(rest), len(want))
			}
			for i := range rest {
				rest[i].check(t)
				if !slices.Equal(rest[i].Refs, want[i]) {
					t.Fatal(i, rest[i].Refs, want[i])
				}
			}
		}
	}
}

// S2
func TestReviewLanesWithoutCounts(t *testing.T) {
	ds := zipped(t, labelled(t, t.TempDir(), 5, 4, 6, 7))
	for _, shuffle := range []order.Shuffle{order.None, order.Stream(4, 0), order.Stream(4, 16)} {
		for _, tail := range []order.Tail{order.TailPad, order.TailDrop, order.TailWrap} {
			o := Options{GlobalBatch: 8, Lanes: 2, Seed: 3, Epochs: 2, Shuffle: shuffle, Tail: tail, World: 1}
			all := steps(t, ds, o, -1)
			for i := range all {
				all[i].check(t)
			}
		}
	}
}

// S3
func TestReviewTrailingExclusion(t *testing.T) {
	var counts []int
	var ex []Exclusion
	for i := range 50 {
		counts = append(counts, 3)
		ex = append(ex, Exclusion{fmt.Sprintf("memory-%03d", i), 2})
	}
	src := numbers(counts...)
	l, err := newLoader(t.Context(), src, &Options{Columns: []Column{Int64("cls")}, GlobalBatch: 2, Exclude: ex, World: 1})
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, len(l.pipe.orderer.readings[0].runs))
		b.Release()
	}
	if most > l.runsOpen+1 {
		t.Errorf("%d runs open, %d may be", most, l.runsOpen)
	}
	checkEnd(t, l)
}

// S4
func TestReviewEpochs(t *testing.T) {
	for _, o := range []Options{{Epoch: 1 << 32}, {Epoch: 1 << 32, Epochs: order.Endless}, {Epochs: 1 << 32}, {Epoch: 1<<31 - 1, Epochs: 5}} {
		o.Columns, o.World, o.GlobalBatch = []Column{Int64("cls")}, 1, 2
		l, err := newLoader(t.Context(), numbers(3), &o)
		if err != nil {
			if !errors.Is(err, format.ErrUsage) {
				t.Error(err)
			}
			continue
		}
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Logf("%d %d: %v", o.Epoch, o.Epochs, err)
				break
			}
			t.Errorf("%d %d: %v", o.Epoch, o.Epochs, b.Refs)
			break
		}
		l.Close()
	}
}

// S5
func TestReviewSlots(t *testing.T) {
	t.Log(unsafe.Sizeof(slot{}), unsafe.Sizeof(task{}), unsafe.Sizeof(order.Ref{}), unsafe.Sizeof(job{}), unsafe.Sizeof(item{}), unsafe.Sizeof(format.Sample{}))
}

type fixed struct{ n int }

func (f fixed) Len() int              { return f.n }
func (f fixed) At(i int) (a, b int64) { return int64(i) * 10, int64(i)*10 + 10 }

// placed is memory whose samples can be read at places, as far as until blocks.
type placed struct {
	*memory
	block func(ctx context.Context) error
}

func (p placed) places(_ context.Context, i int) (places, error) { return fixed{len(p.shards[i])}, nil }
func (p placed) read(ctx context.Context, i int, spans []store.Span) error {
	for _, s := range spans {
		s.P[0] = byte(s.Off / 10)
	}
	if p.block != nil {
		return p.block(ctx)
	}
	return nil
}
func (p placed) parser() parser { return placedParser{p.memory} }

type placedParser struct{ m *memory }

func (p placedParser) Sample(shard int, index, off int64, data []byte) (*format.Sample, error) {
	return &p.m.shards[shard][index], nil
}
func (p placedParser) FillOf(int, *format.Sample) error { return nil }

// S6
func TestReviewCloseWhileReading(t *testing.T) {
	bad := 0
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			src := placed{numbers(40), func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
			src.counted = true
			l, err := newLoader(context.Background(), src, &Options{Columns: []Column{Int64("cls")}, GlobalBatch: 4, World: 1, Shuffle: order.Global, Workers: 2})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				synctest.Wait()
				l.Close()
			}()
			for _, err := range l.Batches(t.Context()) {
				if !errors.Is(err, format.ErrUsage) {
					bad++
				}
			}
			checkEnd(t, l)
		})
	}
	if bad > 0 {
		t.Errorf("%d of 300 ended with another error", bad)
	}
}

// T6, T7
func TestReviewTinyShards(t *testing.T) {
	for _, n := range []int{2000, 8000} {
		counts := make([]int, n)
		for i := range counts {
			counts[i] = 5
		}
		src := numbers(counts...)
		src.counted = true
		l, err := newLoader(t.Context(), src, &Options{Columns: []Column{Int64("cls")}, GlobalBatch: 5 * n, World: 1, Lanes: 1})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		var peak atomic.Int64
		stop := make(chan bool)
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
					l.chunks.gate.mu.Lock()
					peak.Store(max(peak.Load(), l.chunks.gate.used))
					l.chunks.gate.mu.Unlock()
				}
			}
		}()
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
		}
		close(stop)
		t.Log(n, time.Since(begin), peak.Load()>>20, "MiB")
		checkEnd(t, l)
	}
}
