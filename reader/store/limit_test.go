package store_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"shardtool/format"
	"shardtool/reader/store"
)

func TestParseLimit(t *testing.T) {
	for s, want := range map[string]store.LimitOptions{
		"50MB/s,20ms":   {BytesPerSecond: 50e6, Latency: 20 * time.Millisecond},
		"20ms, 50 MB/s": {BytesPerSecond: 50e6, Latency: 20 * time.Millisecond},
		"6MB/s":         {BytesPerSecond: 6e6},
		"1.5GB/s":       {BytesPerSecond: 15e8},
		"64KiB/s":       {BytesPerSecond: 65536},
		"2MiB/s":        {BytesPerSecond: 2 << 20},
		"1GiB/s":        {BytesPerSecond: 1 << 30},
		"3KB/s":         {BytesPerSecond: 3000},
		"7B/s":          {BytesPerSecond: 7},
		"1.5s":          {Latency: 1500 * time.Millisecond},
		"250us":         {Latency: 250 * time.Microsecond},
	} {
		if got, err := store.ParseLimit(s); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", s, got, err, want)
		}
	}
	for _, s := range []string{
		"", ",", "50", "50MB", "MB/s", "50Mb/s", "50MB/s,", "50MB/s,60MB/s", "20ms,30ms", "20ms,50MB/s,1s", "0MB/s", "-5MB/s", "0.1B/s", "0s", "-20ms",
		"NaNMB/s", "InfGB/s", "1e30GB/s", "50 /s", "5XB/s", "0x10MB/s,",
	} {
		if got, err := store.ParseLimit(s); !errors.Is(err, format.ErrUsage) {
			t.Errorf("%q: %+v, %v; want usage", s, got, err)
		}
	}
}

// TestLimitTakesItsTime computes by hand how long things take: the bytes by the
// rate, and the latency once for each request.
func TestLimitTakesItsTime(t *testing.T) {
	const ms = time.Millisecond
	readAll := func(t *testing.T, o store.Object, off int64) {
		r, err := store.Stream(t.Context(), o, off)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		o    store.LimitOptions
		do   func(t *testing.T, st store.Store, o store.Object)
		want time.Duration
	}{
		{"ReadAt", store.LimitOptions{BytesPerSecond: 1e6}, func(t *testing.T, _ store.Store, o store.Object) {
			_, _ = o.ReadAt(t.Context(), make([]byte, 1_000_000), 0)
		}, 1000 * ms},
		{"ReadAt with latency", store.LimitOptions{BytesPerSecond: 1e6, Latency: 20 * ms}, func(t *testing.T, _ store.Store, o store.Object) {
			_, _ = o.ReadAt(t.Context(), make([]byte, 500_000), 0)
			_, _ = o.ReadAt(t.Context(), make([]byte, 0), 0)
		}, 540 * ms},
		{"Stream", store.LimitOptions{BytesPerSecond: 2e6}, func(t *testing.T, _ store.Store, o store.Object) { readAll(t, o, 0) }, 500 * ms},
		{"Stream with latency", store.LimitOptions{BytesPerSecond: 2e6, Latency: 30 * ms}, func(t *testing.T, _ store.Store, o store.Object) { readAll(t, o, 600_000) }, 230 * ms},
		{"two readers", store.LimitOptions{BytesPerSecond: 1e6}, func(t *testing.T, _ store.Store, o store.Object) {
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { readAll(t, o, 0) })
			}
			wg.Wait()
		}, 2000 * ms},
		{"latencies at the same time", store.LimitOptions{Latency: 100 * ms}, func(t *testing.T, _ store.Store, o store.Object) {
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() { _, _ = o.ReadAt(t.Context(), make([]byte, 1000), 0) })
			}
			wg.Wait()
		}, 100 * ms},
		{"names", store.LimitOptions{Latency: 7 * ms}, func(t *testing.T, st store.Store, _ store.Object) {
			for range st.List(t.Context(), "") {
			}
			_, _ = store.Stat(t.Context(), st, "x")
			_, _ = store.Glob(t.Context(), st, "*")
			o, _ := st.Open(t.Context(), "x")
			p, _ := store.OpenEntry(t.Context(), st, o.Stat()) // no request
			o.Close()
			p.Close()
		}, 28 * ms},
		{"odd rate", store.LimitOptions{BytesPerSecond: 3}, func(t *testing.T, _ store.Store, o store.Object) {
			for range 10 {
				_, _ = o.ReadAt(t.Context(), make([]byte, 1), 0)
			}
		}, 3333333333},
		{"after a rest", store.LimitOptions{BytesPerSecond: 1e6}, func(t *testing.T, _ store.Store, o store.Object) {
			_, _ = o.ReadAt(t.Context(), make([]byte, 100_000), 0)
			time.Sleep(time.Second)
			_, _ = o.ReadAt(t.Context(), make([]byte, 100_000), 0)
		}, 100*ms + 1000*ms + 95*ms}, // 5 ms of the rest are made up for
		{"no limit", store.LimitOptions{}, func(t *testing.T, _ store.Store, o store.Object) { readAll(t, o, 0) }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := store.Limit(store.FS(fstest.MapFS{"x": {Data: make([]byte, 1_000_000)}}), tt.o)
				o, err := st.Open(t.Context(), "x")
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				tt.do(t, st, o)
				if got := time.Since(start); got != tt.want {
					t.Errorf("took %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// Shares are equal: a reader of little is not kept waiting by one of much.
func TestLimitIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.Limit(store.FS(fstest.MapFS{"x": {Data: make([]byte, 10<<20)}}), store.LimitOptions{BytesPerSecond: 1 << 20})
		o, err := st.Open(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var large, small time.Duration
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _ = o.ReadAt(t.Context(), make([]byte, 10<<20), 0)
			large = time.Since(start)
		})
		wg.Go(func() {
			_, _ = o.ReadAt(t.Context(), make([]byte, 1<<20), 0)
			small = time.Since(start)
		})
		wg.Wait()
		piece := time.Second / 16 // 64 KiB
		if d := small - 2*time.Second; d < -piece || d > piece || large != 11*time.Second {
			t.Errorf("1 MiB takes %v and 10 MiB %v; want 2 s and 11 s", small, large)
		}
	})
}

func TestLimitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.Limit(store.FS(fstest.MapFS{"x": {Data: make([]byte, 1_000_000)}}), store.LimitOptions{BytesPerSecond: 1000, Latency: time.Minute})
		o, err := st.Open(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		for name, call := range map[string]func(ctx context.Context) error{
			"Open":   func(ctx context.Context) error { _, err := st.Open(ctx, "x"); return err },
			"Stat":   func(ctx context.Context) error { _, err := store.Stat(ctx, st, "x"); return err },
			"Glob":   func(ctx context.Context) error { _, err := store.Glob(ctx, st, "*"); return err },
			"ReadAt": func(ctx context.Context) error { _, err := o.ReadAt(ctx, make([]byte, 10), 0); return err },
			"Stream": func(ctx context.Context) error { _, err := store.Stream(ctx, o, 0); return err },
			"List": func(ctx context.Context) (err error) {
				for _, err = range st.List(ctx, "") {
				}
				return err
			},
		} {
			for _, after := range []time.Duration{time.Second, 59 * time.Second} {
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), after)
				if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != after {
					t.Errorf("%s: %v after %v, want the context's error after %v", name, err, time.Since(start), after)
				}
				cancel()
			}
		}
		// In the middle of the bytes.
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		if n, err := o.ReadAt(ctx, make([]byte, 1_000_000), 0); n != 0 || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 100*time.Second {
			t.Errorf("%d, %v after %v", n, err, time.Since(start))
		}
	})
}

func TestCountersCount(t *testing.T) {
	var c store.Counters
	st := store.Count(store.FS(fstest.MapFS{"x": {Data: make([]byte, 1000)}}), &c)
	o, err := st.Open(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := o.ReadAt(t.Context(), make([]byte, 10), 5); err != nil {
			t.Fatal(err)
		}
	}
	r, err := store.Stream(t.Context(), o, 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Open(t.Context(), "none"); err == nil {
		t.Error("none is there")
	}
	if _, err := store.OpenEntry(t.Context(), st, o.Stat()); err != nil {
		t.Error(err)
	}
	if _, err := store.Stat(t.Context(), st, "x"); err != nil {
		t.Error(err)
	}
	if names, err := store.Glob(t.Context(), st, "?"); err != nil || len(names) != 1 {
		t.Error(names, err)
	}
	for range st.List(t.Context(), "") {
	}
	got := [6]int64{c.Opens.Load(), c.Stats.Load(), c.Lists.Load(), c.Reads.Load(), c.Streams.Load(), c.Bytes.Load()}
	if want := [6]int64{3, 1, 2, 3, 1, 930}; got != want {
		t.Errorf("counted %v, want %v", got, want)
	}
	sum := int64(0)
	meter := store.Meter(store.FS(fstest.MapFS{"x": {Data: make([]byte, 1000)}}), func(n int) { sum += int64(n) })
	if rc, err := store.OpenStream(t.Context(), meter, "x"); err != nil {
		t.Error(err)
	} else if _, err := io.Copy(io.Discard, rc); err != nil || sum != 1000 {
		t.Errorf("%v, %d bytes", err, sum)
	}
}

// memory says how much it holds.
type memory struct{ store.Store }

func (memory) Memory() int64 { return 1000 }

func TestMemoryIsPassedOn(t *testing.T) {
	local := &store.Local{}
	for name, tt := range map[string]struct {
		st   store.Store
		want int64
	}{
		"a store that does not say": {local, 0},
		"one that does":             {memory{local}, 1000},
		"Meter":                     {store.Meter(memory{local}, func(int) {}), 1000},
		"Limit":                     {store.Limit(memory{local}, store.LimitOptions{}), 1000},
		"Cache":                     {newCache(t, memory{local}, store.CacheOptions{Block: 10}), 1160},
	} {
		if got := store.Memory(tt.st); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

func FuzzParseLimit(f *testing.F) {
	for _, s := range []string{"50MB/s,20ms", "1.5GiB/s", "7B/s", "20ms", "1e300GB/s", ",", "NaNB/s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o, err := store.ParseLimit(s)
		if err != nil && (o != store.LimitOptions{} || !errors.Is(err, format.ErrUsage)) {
			t.Errorf("%q: %+v, %v", s, o, err)
		}
		if err == nil && (o.BytesPerSecond < 0 || o.Latency < 0 || o.BytesPerSecond == 0 && o.Latency == 0) {
			t.Errorf("%q: %+v", s, o)
		}
	})
}

func TestSlow(t *testing.T) {
	local, limited := &store.Local{}, store.Limit(&store.Local{}, store.LimitOptions{})
	cached, err := store.NewCache(local, store.CacheOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		st   store.Store
		name string
		want bool
	}{
		{local, "a.tar", false},
		{local, "file:///a.tar", false},
		{local, "s3://bucket/a.tar", true},
		{limited, "a.tar", true},
		{cached, "s3://bucket/a.tar", false},
		{store.Limit(cached, store.LimitOptions{}), "s3://bucket/a.tar", true},
		{store.Count(local, new(store.Counters)), "a.tar", false},
		{store.Count(limited, new(store.Counters)), "a.tar", true},
		{store.NewSpool(limited, store.SpoolOptions{}), "a.tar", true},
	} {
		if got := store.Slow(tt.st, tt.name); got != tt.want {
			t.Errorf("%T, %s: %v", tt.st, tt.name, got)
		}
	}
}
