// Command echo holds the law of data echoing against a clock: the whole loader
// behind a limited store and before a simulated accelerator, where a fresh
// sample takes R times as long to fetch as an emission takes on the
// accelerator, and everything else next to nothing. The law then gives
// min(1, e/R) of the steps that the accelerator can take.
//
//	go run ./benchmarks/echo            # every R, e, unit and level: five rounds, forty minutes
//	go run ./benchmarks/echo -short     # that it works: some seconds
//
// Each round runs every case once, in turn, so that what slows the machine down
// for a while does so for all. It prints the steps a second by those of the law,
// the median of the rounds and the least and the most; with -within 0.05 it
// fails where a median is further from 1. package bench has the same on a fake
// clock as a test.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"shardtool/augment"
	"shardtool/bench"
	"shardtool/echo"
	"shardtool/format"
	"shardtool/format/tarshard"
	"shardtool/loader"
	"shardtool/reader"
	"shardtool/reader/store"
)

const (
	batch   = 16
	perS    = 1600 // emissions a second that the accelerator takes
	shards  = 64
	samples = 8 // of a shard
)

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "of all cases")
	flag.Float64Var(&o.seconds, "seconds", 3, "of each run, after its warm-up")
	flag.Float64Var(&o.within, "within", 0, "fail where a median is further from the law than this share; 0: never")
	flag.StringVar(&o.unit, "unit", "", "cases of one `unit` alone: sample, batch or shard")
	short := flag.Bool("short", false, "few cases, shortly")
	flag.Parse()
	if *short {
		o = options{unit: o.unit, rounds: 1, seconds: 0.3, within: o.within, few: true}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, &o, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

type options struct {
	unit    string
	rounds  int
	seconds float64
	within  float64
	few     bool
}

// point is a case, and its steps a second by those of the law in each round.
type point struct {
	r      float64
	echo   echo.Options
	ratios []float64
}

func (o *options) points() []*point {
	rs, factors := []float64{0.5, 1, 2, 4, 8}, []float64{1, 2, 4, 8, 16}
	if o.few {
		rs, factors = []float64{0.5, 4}, []float64{1, 4}
	}
	var all []*point
	for _, e := range []echo.Options{
		{Unit: echo.Sample, Keep: echo.Bytes, Buffer: 64},
		{Unit: echo.Sample, Keep: echo.Decoded, Buffer: 64},
		{Unit: echo.Sample, Keep: echo.Augmented, Buffer: 64},
		{Unit: echo.Batch, Keep: echo.Batched, Buffer: 4},
		{Unit: echo.Shard, Keep: echo.Bytes},
	} {
		if o.unit != "" && o.unit != e.Unit.String() {
			continue
		}
		for _, r := range rs {
			for _, e.Factor = range factors {
				all = append(all, &point{r: r, echo: e})
			}
		}
	}
	return all
}

func run(ctx context.Context, o *options, out, progress io.Writer) error {
	w, err := newWorld()
	if err != nil {
		return err
	}
	points := o.points()
	if len(points) == 0 {
		return fmt.Errorf("there is no unit %q: sample, batch or shard", o.unit)
	}
	for round := range o.rounds {
		for i, p := range points {
			fmt.Fprintf(progress, "\rround %d of %d: %d of %d ", round+1, o.rounds, i+1, len(points))
			ratio, err := w.measure(ctx, o, p)
			if err != nil {
				return err
			}
			p.ratios = append(p.ratios, ratio)
		}
	}
	fmt.Fprintln(progress)
	return report(out, points, o.within)
}

// world is a data set in memory.
type world struct {
	ds    *reader.Dataset
	bytes float64 // of a sample
}

func newWorld() (*world, error) {
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		return nil, err
	}
	files := fstest.MapFS{}
	var names []string
	var size int64
	for s := range shards {
		var shard bytes.Buffer
		w := tarshard.NewWriter(&shard, nil)
		for i := range samples {
			err := w.WriteSample(&format.Sample{Key: fmt.Appendf(nil, "%d_%d", s, i), Fields: []format.Field{
				{Name: "png", Data: picture.Bytes()}, {Name: "txt", Data: make([]byte, 3000)},
			}})
			if err != nil {
				return nil, err
			}
		}
		end := w.Offset() + 1024 // and no padding behind, which would be fetched with some echoes
		size += end
		if err := w.Close(); err != nil {
			return nil, err
		}
		name := fmt.Sprintf("%03d.tar", s)
		files[name] = &fstest.MapFile{Data: shard.Bytes()[:end]}
		names = append(names, name)
	}
	return &world{reader.New(store.FS(files), names, &reader.Options{CacheDir: "-"}), float64(size) / shards / samples}, nil
}

// measure returns the steps a second of one run by those of the law.
func (w *world) measure(ctx context.Context, o *options, p *point) (float64, error) {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	r, err := bench.Run(ctx, &bench.Options{
		Dataset: w.ds, Upstream: &store.LimitOptions{BytesPerSecond: int64(w.bytes * perS / p.r)}, StepTime: batch * time.Second / perS,
		Load:   loader.Options{GlobalBatch: batch, Echo: p.echo, Columns: []loader.Column{loader.Image("png", augment.ImageNetTrain(8))}},
		Warmup: seconds(o.seconds / 4), Duration: seconds(o.seconds),
	})
	if err != nil {
		return 0, err
	}
	return r.StepsPerS / (perS / batch * min(1, p.echo.Factor/p.r)), nil
}

func report(out io.Writer, points []*point, within float64) error {
	var header, row strings.Builder
	var worst float64
	for i, p := range points {
		slices.Sort(p.ratios)
		median := p.ratios[len(p.ratios)/2]
		worst = max(worst, math.Abs(median-1))
		fmt.Fprintf(&header, " e = %v |", p.echo.Factor)
		fmt.Fprintf(&row, " %.3f (%.3f–%.3f) |", median, p.ratios[0], p.ratios[len(p.ratios)-1])
		if i+1 < len(points) && points[i+1].r == p.r && points[i+1].echo.Keep == p.echo.Keep {
			continue
		}
		if i < strings.Count(header.String(), "|") { // the first row
			fmt.Fprintf(out, "| unit, kept | R |%s\n|---|---|%s\n", &header, strings.Repeat("---|", strings.Count(header.String(), "|")))
		}
		fmt.Fprintf(out, "| %v, %v | %v |%s\n", p.echo.Unit, p.echo.Keep, p.r, &row)
		header.Reset()
		row.Reset()
	}
	fmt.Fprintf(out, "\nfurthest from the law: %.1f%%\n", 100*worst)
	if within > 0 && worst > within {
		return fmt.Errorf("a median is %.1f%% from the law", 100*worst)
	}
	return nil
}
