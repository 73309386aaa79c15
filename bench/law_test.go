package bench

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"shardtool/augment"
	"shardtool/echo"
	"shardtool/format"
	"shardtool/format/tarshard"
	"shardtool/loader"
	"shardtool/reader"
	"shardtool/reader/store"
)

// world is a data set in memory behind a network, and an accelerator: a fresh
// sample takes r times 50 ms to fetch, and an emission 50 ms on the accelerator,
// which is long beside the 5 ms that the limited store makes up for. Nothing
// else takes time on a fake clock.
type world struct {
	ds    *reader.Dataset
	bytes float64 // of a sample
}

const (
	lawPerS    = 20 // emissions that the accelerator takes in a second
	lawBatch   = 16
	lawCycles  = 50 // of a fresh batch and its echoes, in a window
	lawSamples = 5  // of a shard: they fill no batch, and are few beside a window, for some shards are always under way
	lawShards  = 12
)

// newWorld makes shards of small pictures, with something beside them so that
// the network matters.
func newWorld(t testing.TB) *world {
	t.Helper()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	var names []string
	size := 0
	for s := range lawShards {
		var shard bytes.Buffer
		w := tarshard.NewWriter(&shard, nil)
		for i := range lawSamples {
			err := w.WriteSample(&format.Sample{Key: fmt.Appendf(nil, "%d_%d", s, i), Fields: []format.Field{
				{Name: "png", Data: picture.Bytes()}, {Name: "txt", Data: make([]byte, 15000)},
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		end := int(w.Offset()) + 1024 // and no padding behind, which would be fetched with some echoes
		size += end
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("law-%d.tar", s)
		files[name] = &fstest.MapFile{Data: shard.Bytes()[:end]}
		names = append(names, name)
	}
	return &world{reader.New(store.FS(files), names, &reader.Options{CacheDir: "-"}), float64(size) / lawShards / lawSamples}
}

func (w *world) options(r float64, e echo.Options) *Options {
	cycles := lawCycles
	if e.Unit == echo.Batch && e.Buffer > 0 {
		cycles *= 2 // the buffer holds a batch more or less
	}
	if r > e.Factor {
		cycles *= 2 // what is made ahead when the window opens may be used up when it closes
	}
	o := &Options{
		Dataset: w.ds, Upstream: &store.LimitOptions{BytesPerSecond: int64(w.bytes * lawPerS / r)}, StepTime: lawBatch * time.Second / lawPerS,
		Load: loader.Options{
			GlobalBatch: lawBatch, Workers: 2, Echo: e,
			Columns: []loader.Column{loader.Bytes("txt")},
		},
		Warmup: 20 * time.Second, Duration: time.Duration(float64(cycles) * lawBatch / lawPerS * max(r, e.Factor) * float64(time.Second)),
	}
	if e.Keep == echo.Decoded || e.Keep == echo.Augmented { // nothing else is decoded
		o.Load.Columns = []loader.Column{loader.Image("png", augment.ImageNetTrain(8))}
	}
	return o
}

// TestLaw runs the whole loader on a fake clock: behind a limited network, before
// a simulated accelerator, with every echo. One fresh sample and its e emissions
// take max(r, e) times what one takes on the accelerator, so that min(1, e/r) of
// the emissions come that it can take.
func TestLaw(t *testing.T) {
	w := newWorld(t)
	for _, e := range []echo.Options{
		{Unit: echo.Sample, Keep: echo.Bytes},
		{Unit: echo.Sample, Keep: echo.Bytes, Buffer: 64},
		{Unit: echo.Sample, Keep: echo.Decoded},
		{Unit: echo.Sample, Keep: echo.Decoded, Buffer: 64},
		{Unit: echo.Sample, Keep: echo.Augmented},
		{Unit: echo.Shard, Keep: echo.Bytes},
		{Unit: echo.Batch, Keep: echo.Batched},
		{Unit: echo.Batch, Keep: echo.Batched, Buffer: 4},
	} {
		t.Run(fmt.Sprintf("%v,%v,%d", e.Unit, e.Keep, e.Buffer), func(t *testing.T) {
			for _, r := range []float64{0.5, 1, 2, 4, 8} {
				for _, factor := range []float64{1, 1.5, 2, 4, 8, 16} {
					few := testing.Short() || raced
					if few && (r == 1 || r == 4 || factor == 2 || factor == 8) || factor == 1.5 && r != 2 {
						continue
					}
					e.Factor = factor
					synctest.Test(t, func(t *testing.T) { w.obeys(t, r, e) })
				}
			}
		})
	}
}

func (w *world) obeys(t *testing.T, r float64, e echo.Options) {
	t.Helper()
	report, err := Run(t.Context(), w.options(r, e))
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want, share float64) {
		t.Helper()
		if !(math.Abs(got-want) <= share*want) {
			t.Errorf("R %v, e %v: %s is %v, want %v", r, e.Factor, what, got, want)
		}
	}
	emitted := lawPerS * min(1, e.Factor/r)
	near("steps a second", report.StepsPerS, emitted/lawBatch, 0.05)
	near("emitted a second", report.EmittedPerS, emitted, 0.05)
	near("fresh a second", report.FreshPerS, emitted/e.Factor, 0.08) // they come by the batch
	near("R", report.Echo.R, r, 0.1)
	near("the share of time that the accelerator waits", 1+*report.DeviceWaits, 2-min(1, e.Factor/r), 0.05)
	near("the law", report.Law.EmittedPS, emitted, 0.1)
}

// TestSweep: what is measured of each factor, beside the law by the costs of the
// least, on a fake clock.
func TestSweep(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		o := w.options(4, echo.Options{Unit: echo.Batch})
		o.Sweep = []float64{16, 1, 4, 2, 8, 4}
		o.Duration = 600 * time.Second
		var last Progress
		o.Progress = func(p Progress) { last = p }
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Sweep) != 5 || r.Echo.Factor != 1 || r.Config.Device != "simulated" || r.Config.StepS != 0.8 || len(r.Faster) != 0 {
			t.Fatalf("%+v", r)
		}
		if math.Abs(last.Done.Seconds()/last.Total.Seconds()-1) > 0.05 || last.Factor != 16 || last.Total != 15*(220*time.Second) {
			t.Errorf("%+v", last)
		}
		for i, factor := range []float64{1, 2, 4, 8, 16} {
			s := r.Sweep[i]
			steps := min(1, factor/4) / 0.8
			if s.Factor != factor || math.Abs(s.Law/steps-1) > 0.05 || math.Abs(s.Ratio-1) > 0.05 || s.Least > s.StepsPerS || s.Most < s.StepsPerS {
				t.Errorf("%+v, want factor %v, %v steps a second", s, factor, steps)
			}
			if want := []string{"fetch", "fetch", "", "device", "device"}[i]; want != "" && s.Bottleneck != want {
				t.Errorf("bottleneck of e %v: %s", factor, s.Bottleneck)
			}
			if waits := 1 - min(1, factor/4); math.Abs(s.DeviceWaits-waits) > 0.05 {
				t.Errorf("e %v: it waits %v of the time, want %v", factor, s.DeviceWaits, waits)
			}
		}
		// The advice is for a sample: what is fetched and not yet trained on.
		if a := r.Advice; a.Factor != 4 && a.Factor != 3.75 && a.Factor != 3 || a.Unit != "sample" || a.Accelerator != lawPerS {
			t.Errorf("%+v", a)
		}
		var svg, text bytes.Buffer
		if err := errors.Join(r.WriteSVG(&svg), r.WriteText(&text)); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"steps per second", "echo factor e", "the law", "waits for room", "prefers-color-scheme"} {
			if !strings.Contains(svg.String(), want) {
				t.Errorf("no %q in %s", want, &svg)
			}
		}
		for _, want := range []string{"a step in 800 ms, 20 samples/s at most; it waits 75% of the time", "Sweep, medians of 3 rounds", "measured/law", "Recommended: --echo "} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("no %q in %s", want, &text)
			}
		}
	})
}

// TestAutomatic: the factor of an automatic echo comes to R.
func TestAutomatic(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		o := w.options(4, echo.Options{Unit: echo.Sample, Auto: &echo.Auto{Segment: 32}})
		o.Warmup = 1000 * time.Second
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if e := r.Echo; !e.Auto || e.Realised < 3.4 || e.Realised > 4.6 || math.Abs(e.R-4) > 0.4 || r.EmittedPerS < 0.85*lawPerS {
			t.Errorf("%+v, %v emitted a second", e, r.EmittedPerS)
		}
	})
}
