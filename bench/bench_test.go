package bench

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"shardtool/device"
	"shardtool/echo"
	"shardtool/format"
	"shardtool/loader"
	"shardtool/reader"
	"shardtool/reader/order"
	"shardtool/reader/store"
	"shardtool/tensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Batches of 10 samples, 5 of them fresh, at these milliseconds; a warm-up of
// 100 ms after the first, and a window of 100 ms.
func TestWindow(t *testing.T) {
	for _, tt := range []struct {
		name    string
		at      []int
		counted int
		seconds float64
		gaps    []int
	}{
		{"even", []int{0, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200}, 5, 0.100, []int{20, 20, 20, 20, 20}},
		{"opens at the first batch after the warm-up", []int{0, 30, 60, 110, 150, 200, 215}, 2, 0.090, []int{40, 50}},
		{"ends with the last that fits", []int{0, 30, 60, 110, 150, 205}, 2, 0.095, []int{40, 55}},
		{"the exact end counts", []int{0, 30, 60, 110, 150, 210}, 2, 0.100, []int{40, 60}},
		{"a late batch does not count", []int{0, 30, 60, 110, 150, 200, 211}, 2, 0.090, []int{40, 50}},
		{"unless there was a long wait", []int{0, 30, 60, 110, 150, 211}, 2, 0.101, []int{40, 61}},
		{"a burst and a wait", []int{0, 30, 60, 110, 111, 112, 113, 310}, 4, 0.200, []int{1, 1, 1, 197}},
		{"unless it is the only one", []int{0, 30, 60, 110, 900}, 1, 0.790, []int{790}},
		{"four batches at least warm up", []int{0, 400, 500, 600, 650, 700}, 2, 0.100, []int{50, 50}},
	} {
		w := newWindow(100*time.Millisecond, 100*time.Millisecond)
		start := time.Unix(0, 0)
		asked := uint64(0)
		for i, ms := range tt.at {
			more := w.finished(start.Add(time.Duration(ms)*time.Millisecond), count{5, 10, 1000, 2000}, func() usage {
				asked++
				return usage{allocs: asked, stages: []loader.Stage{{Name: "fetch", Busy: float64(ms)}}}
			})
			closed := w.opened != (time.Time{}) && ms >= int(w.opened.Sub(start).Milliseconds())+100
			if more == closed {
				t.Errorf("%s: batch %d, more %v", tt.name, i, more)
			}
			if !more {
				break
			}
		}
		n := int64(tt.counted)
		if w.total != (count{5 * n, 10 * n, 1000 * n, 2000 * n}) || math.Abs(w.outcome().seconds-tt.seconds) > 1e-12 {
			t.Errorf("%s: %+v in %v s, want %d batches in %v s", tt.name, w.total, w.outcome().seconds, n, tt.seconds)
		}
		var gaps []int
		for _, g := range w.gaps {
			gaps = append(gaps, int(g.Milliseconds()))
		}
		if !slices.Equal(gaps, tt.gaps) {
			t.Errorf("%s: gaps %v, want %v", tt.name, gaps, tt.gaps)
		}
		if w.to.allocs-w.from.allocs != uint64(n) || math.Abs(w.stages()[0].Busy-tt.seconds*1000) > 1e-9 {
			t.Errorf("%s: usage from %+v to %+v", tt.name, w.from, w.to)
		}
	}
}

// TestWindowHoldsSomethingFresh: copies alone do not close a window.
func TestWindowHoldsSomethingFresh(t *testing.T) {
	w := newWindow(100*time.Millisecond, 100*time.Millisecond)
	start := time.Unix(0, 0)
	finish := func(ms int, fresh int64) bool {
		return w.finished(start.Add(time.Duration(ms)*time.Millisecond), count{fresh: fresh, emitted: 10}, func() usage { return usage{} })
	}
	for i := range 5 { // the window opens at 100
		finish(25*i, 10)
	}
	if !finish(250, 0) || !finish(300, 0) {
		t.Error("closed by copies alone")
	}
	if finish(400, 10) {
		t.Error("not closed by a fresh batch")
	}
	if w.total != (count{fresh: 10, emitted: 30}) || w.outcome().seconds != 0.3 {
		t.Errorf("%+v in %v s, want 10 fresh of 30 in 0.3 s", w.total, w.outcome().seconds)
	}
}

// TestWindowWithoutAnythingFresh: it waits ten times its length, no longer.
func TestWindowWithoutAnythingFresh(t *testing.T) {
	w := newWindow(100*time.Millisecond, 100*time.Millisecond)
	start := time.Unix(0, 0)
	last := 0
	for ms, more := 0, true; more && ms < 10_000; ms += 50 { // the window opens at 150
		last = ms
		more = w.finished(start.Add(time.Duration(ms)*time.Millisecond), count{emitted: 10}, func() usage { return usage{} })
	}
	if o := w.outcome(); last != 1150 || !o.stale || o.total != (count{emitted: 200}) || o.seconds != 1 || !math.IsInf(o.realised(), 1) {
		t.Errorf("closed at %d ms: %+v", last, o)
	}
	var merged outcome
	merged.add(w.outcome())
	merged.add(outcome{total: count{fresh: 1, emitted: 100}})
	if !merged.stale || merged.realised() != 300 {
		t.Errorf("%+v", merged)
	}
}

// On a fake clock, 100 ms for each batch of copies alone: the samples come once,
// and their epoch is filled from its start for longer than anybody waits.
func TestRunOfCopiesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := Run(t.Context(), &Options{
			Load: loader.Options{GlobalBatch: 4, Workers: 2, Tail: order.TailWrap, Steps: 10_000}, Device: &slow{step: 100 * time.Millisecond},
			Duration: time.Second, Warmup: 2 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.FreshPerS != 0 || math.Abs(r.EmittedPerS-40) > 1e-6 || math.Abs(r.Seconds-10) > 1e-6 || !math.IsInf(r.Echo.Realised, 1) {
			t.Errorf("%+v", r)
		}
		if !strings.Contains(strings.Join(r.Warnings, "|"), "no fresh sample came within 10 times the duration: ") {
			t.Errorf("%q", r.Warnings)
		}
		var text, svg strings.Builder
		if err := errors.Join(r.WriteText(&text), r.WriteSVG(&svg)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), "40.0 emitted, 0.0 fresh") || !strings.Contains(text.String(), "copies alone, nothing fresh") {
			t.Error(text.String())
		}
		for _, bad := range []string{"NaN", "Inf"} {
			if strings.Contains(text.String(), bad) || strings.Contains(svg.String(), bad) {
				t.Errorf("%s in %s%s", bad, text.String(), svg.String())
			}
		}
	})
}

// TestWarmup: the window opens when as many fresh samples have come as had been
// fetched when the first batch was there, or after ten times its own length.
func TestWarmup(t *testing.T) {
	for _, tt := range []struct {
		name    string
		fetched int64 // at the first batch
		opens   int   // batch of 5 fresh samples, every 20 ms
		early   bool
	}{
		{"nothing ahead", 0, 6, false},
		{"as much as comes meanwhile", 30, 6, false},
		{"more", 31, 7, false},
		{"much more", 200, 40, false},
		{"just in time", 255, 51, false},
		{"too much", 256, 51, true},
	} {
		w := newWindow(100*time.Millisecond, time.Second)
		at := 0
		for i := 1; w.opened.IsZero(); i++ {
			at = i
			w.finished(time.Unix(0, 0).Add(time.Duration(i)*20*time.Millisecond), count{fresh: 5, emitted: 10}, func() usage {
				return usage{measured: echo.Measured{Fetched: tt.fetched + int64(i-1)*1000}}
			})
		}
		if at != tt.opens || w.early != tt.early {
			t.Errorf("%s: opens at batch %d, early %v", tt.name, at, w.early)
		}
	}
}

func TestSlices(t *testing.T) {
	w := newWindow(time.Millisecond, time.Hour)
	now := time.Unix(0, 0)
	for i := range 4 + 25 { // batches of 2 fresh samples, a second each; 2 s of CPU
		now = now.Add(time.Second)
		w.finished(now, count{fresh: 2, emitted: 4}, func() usage { return usage{cpu: time.Duration(i) * 2 * time.Second} })
	}
	all := w.slices()
	var sum Slice
	for _, s := range all {
		if s.Batches < 2 || s.Batches > 3 || s.Seconds != float64(s.Batches) || s.Emitted != 4*int64(s.Batches) || s.CPU != 2*s.Seconds {
			t.Errorf("%+v", s)
		}
		sum.Batches += s.Batches
		sum.Fresh += s.Fresh
	}
	if len(all) != 10 || sum.Batches != 25 || sum.Fresh != 50 {
		t.Errorf("%d slices of %+v", len(all), sum)
	}
	if one := newWindow(0, 0); one.slices() != nil {
		t.Error("slices of nothing")
	}
}

func TestGap(t *testing.T) {
	var gaps []time.Duration
	if gap(gaps, 0.5) != 0 {
		t.Error("a gap of none")
	}
	for i := range 100 {
		gaps = append(gaps, time.Duration(100-i)*time.Millisecond)
	}
	if gap(gaps, 0.5) != 50 || gap(gaps, 0.99) != 99 || gap(gaps, 1) != 100 || gap(gaps, 0) != 1 {
		t.Errorf("%v %v %v %v", gap(gaps, 0.5), gap(gaps, 0.99), gap(gaps, 1), gap(gaps, 0))
	}
}

func stages(fetch, order, decode, augment, deliver, device [3]float64) []loader.Stage {
	var s []loader.Stage
	for i, v := range [][3]float64{fetch, order, decode, augment, deliver, device} {
		name := []string{loader.StageFetch, loader.StageOrder, loader.StageDecode, loader.StageAugment, loader.StageDeliver, StageDevice}[i]
		s = append(s, loader.Stage{Name: name, Busy: v[0], WaitIn: v[1], WaitOut: v[2], Workers: []int{4, 1, 2, 2, 1, 1}[i]})
	}
	return s
}

func TestBottleneck(t *testing.T) {
	type v = [3]float64
	for _, tt := range []struct {
		name   string
		stages []loader.Stage
		want   string
	}{
		{"decode", stages(v{1, 0, 19}, v{0, 0, 5}, v{6, 0.1, 0}, v{2, 0, 0}, v{0, 4.9, 0}, v{0.1, 4.9, 0}), "decode"},
		{"augment", stages(v{1, 0, 19}, v{0, 0, 5}, v{2, 0.1, 0}, v{6, 0, 0}, v{0, 4.9, 0}, v{0.1, 4.9, 0}), "augment"},
		{"fetch", stages(v{20, 0, 0}, v{0, 5, 0}, v{1, 8, 0}, v{1, 0, 0}, v{0, 4.9, 0}, v{0.1, 4.9, 0}), "fetch"},
		{"order", stages(v{20, 0, 0}, v{5, 0, 0}, v{1, 8, 0}, v{1, 0, 0}, v{0, 4.9, 0}, v{0.1, 4.9, 0}), "order"},
		{"deliver", stages(v{1, 0, 19}, v{0, 0, 5}, v{2, 0, 6}, v{2, 0, 0}, v{5, 0, 0}, v{0, 5, 0}), "deliver"},
		{"device", stages(v{1, 0, 19}, v{0, 0, 5}, v{2, 0, 6}, v{2, 0, 0}, v{0, 0, 5}, v{5, 0, 0}), "device"},
		{"busy workers before a busy device", stages(v{15, 0, 5}, v{0, 3, 2}, v{4, 3, 2}, v{1, 0, 0}, v{0, 0.3, 4.7}, v{4.7, 0.3, 0}), "device"},
	} {
		if got := bottleneck(tt.stages); got != tt.want {
			t.Errorf("%s: %s", tt.name, got)
		}
		r := &Report{Stages: tt.stages, Bottleneck: tt.want, Echo: EchoReport{Unit: "sample", Keep: "bytes", Factor: 1, R: 1}}
		var b strings.Builder
		if err := r.WriteText(&b); err != nil || !strings.Contains(b.String(), "bottleneck: "+tt.want+". ") {
			t.Errorf("%s: %s", tt.name, b.String())
		}
	}
}

// slow is a device that takes a while for each batch.
type slow struct {
	step   time.Duration
	puts   int
	onPut  func(n int)
	shapes []string
}

func (s *slow) Put(ctx context.Context, arrays []tensor.Dense) (device.Buffer, error) {
	s.puts++
	if s.onPut != nil {
		s.onPut(s.puts)
	}
	s.shapes = append(s.shapes, arrays[0].Shape().String())
	return s, nil
}

func (s *slow) Wait(ctx context.Context) error {
	select {
	case <-time.After(s.step):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slow) Release()     {}
func (s *slow) Close() error { return nil }

// On a fake clock only the device takes time: 100 ms for each batch of 4.
func TestRun(t *testing.T) {
	for _, e := range []echo.Options{{}, {Factor: 2}, {Unit: echo.Batch, Factor: 2}} {
		synctest.Test(t, func(t *testing.T) {
			d := &slow{step: 100 * time.Millisecond}
			var last Progress
			r, err := Run(t.Context(), &Options{
				Load: loader.Options{GlobalBatch: 4, Workers: 2, Echo: e}, Device: d, Duration: time.Second, Warmup: time.Millisecond, Version: "v",
				Progress: func(p Progress) { last = p },
			})
			if err != nil {
				t.Fatal(err)
			}
			near := func(what string, got, want float64) {
				t.Helper()
				if math.Abs(got-want) > 1e-6*max(1, want) {
					t.Errorf("%+v: %s is %v, want %v", e, what, got, want)
				}
			}
			fresh := 40 / max(1, e.Factor)
			near("emitted", r.EmittedPerS, 40)
			near("fresh", r.FreshPerS, fresh)
			near("seconds", r.Seconds, 1)
			near("p50", r.BatchGap.P50, 100)
			near("p99", r.BatchGap.P99, 100)
			if r.Batches != 10 || r.Bottleneck != StageDevice || r.Echo.Factor != max(1, e.Factor) || r.Version != "v" || r.Config.Shards != 2 {
				t.Errorf("%+v", r)
			}
			if r.AllocsPerSample <= 0 || r.PeakRSSMB <= 0 || r.MBPerS <= 0 || r.MpixPerS <= 0 {
				t.Errorf("%+v", r)
			}
			if last.Total != time.Second+time.Millisecond || last.Done <= 0 {
				t.Errorf("progress %+v", last)
			}
			for _, shape := range d.shapes {
				if shape != "[4 3 224 224]" {
					t.Errorf("a batch of shape %s", shape)
				}
			}
		})
	}
}

func TestRunEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d := &slow{step: time.Hour, onPut: func(int) { time.AfterFunc(time.Minute, cancel) }}
		began := time.Now()
		r, err := Run(ctx, &Options{Load: loader.Options{GlobalBatch: 2}, Device: d})
		if r != nil || !errors.Is(err, context.Canceled) || time.Since(began) != time.Minute || d.puts != 1 {
			t.Errorf("%v, %v after %v", r, err, time.Since(began))
		}
	})
}

func TestRunErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		o    Options
		want error
	}{
		"no such shard":  {Options{Dataset: local("testdata/none.tar")}, format.ErrNotFound},
		"no shards":      {Options{Dataset: reader.New(&store.Local{}, nil, nil)}, format.ErrUsage},
		"standard input": {Options{Dataset: local("-")}, format.ErrUsage},
		"no pictures":    {Options{Dataset: local("../fixtures/tf/examples.tfrecord")}, format.ErrWrongFormat},
		"no samples":     {Options{Dataset: local(emptyTar(t))}, format.ErrMissing},
		"a device":       {Options{Dataset: local(os.DevNull)}, format.ErrUsage},
		"no such field":  {Options{Dataset: local("../fixtures/tf/raw.tfrecord")}, format.ErrMissing},
		"broken picture": {Options{Dataset: local("../fixtures/cases/image/d3_shard.tar")}, format.ErrTruncated},
		"factor":         {Options{Load: loader.Options{Echo: echo.Options{Factor: 0.5}}}, format.ErrUsage},
		"sweep":          {Options{Sweep: []float64{1, 0.5}}, format.ErrUsage},
		"sweep and auto": {Options{Sweep: []float64{1}, Load: loader.Options{Echo: echo.Options{Auto: &echo.Auto{}}}}, format.ErrUsage},
		"long sweep":     {Options{Sweep: make([]float64, maxSweep+1)}, format.ErrUsage},
		"two speeds":     {Options{StepTime: time.Second, Accelerator: 1}, format.ErrUsage},
		"two devices":    {Options{StepTime: time.Second, Device: device.Host{}}, format.ErrUsage},
		"no speed":       {Options{Accelerator: math.NaN()}, format.ErrUsage},
		"endless speed":  {Options{Accelerator: 1e300}, format.ErrUsage},
		"endless step":   {Options{Accelerator: 1e-300}, format.ErrUsage},
	} {
		if r, err := Run(t.Context(), &tt.o); r != nil || !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, %v", name, r, err)
		} else if name == "no samples" && (format.AsError(err).Shard != tt.o.Dataset.Shards()[0] || strings.Contains(err.Error(), "4096")) {
			t.Errorf("%s: %v", name, err)
		} else if want := map[string]string{"endless speed": "takes no time", "endless step": "takes longer than 290 years"}[name]; !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func local(name string) *reader.Dataset {
	return reader.New(&store.Local{}, []string{name}, &reader.Options{CacheDir: "-"})
}

// emptyTar is a tar of nothing but its end.
func emptyTar(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "empty.tar")
	if err := os.WriteFile(path, make([]byte, 1024), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The members are an interface: this list grows and loses nothing.
func TestJSONMembers(t *testing.T) {
	text, err := json.Marshal(&Report{Stages: []loader.Stage{{}}})
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	check := func(of string, m map[string]any, want ...string) {
		t.Helper()
		for _, name := range want {
			if _, ok := m[name]; !ok {
				t.Errorf("%s has no %q", of, name)
			}
		}
	}
	check("the report", m, "fresh_per_s", "emitted_per_s", "mb_per_s", "mpix_per_s", "seconds", "cpu_s_per_1000", "allocs_per_sample",
		"peak_rss_mb", "batch_gap_ms", "stages", "bottleneck", "echo", "config", "version", "cpu", "gomaxprocs",
		"steps_per_s", "noise", "device_waits", "law", "advice", "faster", "sweep", "against", "warnings", "slices", "batches")
	check("batch_gap_ms", m["batch_gap_ms"].(map[string]any), "p50", "p99")
	check("a stage", m["stages"].([]any)[0].(map[string]any), "name", "busy_s", "wait_in_s", "wait_out_s")
	check("echo", m["echo"].(map[string]any), "unit", "keep", "factor", "r", "buffer", "auto", "realised", "duplicates", "distance")
	check("config", m["config"].(map[string]any), "source", "shards", "batch", "workers", "seed", "transform", "columns", "shuffle", "upstream", "world", "rank",
		"duration_s", "warmup_s", "device", "step_s")
	check("law", m["law"].(map[string]any), "fetch_s", "decode_s", "augment_s", "step_s", "up_s", "down_s", "emitted_per_s")
	check("advice", m["advice"].(map[string]any), "unit", "keep", "factor", "r", "fresh_per_s", "emitted_per_s", "reason", "accelerator_per_s")
}
