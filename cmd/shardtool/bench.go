package main

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"

	"shardtool/bench"
	"shardtool/echo"
	"shardtool/loader"
	"shardtool/reader"
)

func benchCommand() *cli.Command {
	return verb{
		Name:  "bench",
		Args:  "[IN...]",
		Usage: "measure how fast shards become batches, and what limits it",
		About: `Reads images from shards, decodes them, crops, flips and normalises them for
training, and makes batches; after a warm-up it counts the batches that are
finished within the duration. Shards are read again as often as needed. Without
paths it reads photographs that come with the program. Pictures are of the field
jpg, jpeg, png, webp, gif, image/encoded or image, or of --field, and become
224x224; labels are not read.

With --echo E each sample is emitted E times and decoded each time; with
--unit batch each batch is emitted E times as it is.`,
		Examples: []string{
			"shardtool bench",
			"shardtool bench --duration 20s --workers 8 train-{000..127}.tar",
			"shardtool bench --echo 2 --unit batch --json",
		},
		Flags: [][]cli.Flag{{
			&cli.StringFlag{Name: "field", Usage: "pictures are in the first `LIST` of fields that a sample has, by semicolons", DefaultText: "the usual names"},
			&cli.IntFlag{Name: "workers", Usage: "decode on `N` workers", DefaultText: "one for each core"},
			&cli.IntFlag{Name: "batch", Usage: "`N` samples of a batch", Value: 64},
			&cli.Uint64Flag{Name: "seed", Usage: "of crops and flips"},
			&cli.Float64Flag{Name: "echo", Usage: "emit everything `E` times", Value: 1},
			choice("unit", "what is emitted again", "sample", "batch"),
			&cli.DurationFlag{Name: "warmup", Usage: "before the measurement", Value: time.Second},
			&cli.DurationFlag{Name: "duration", Usage: "of the measurement, after the warm-up", Value: 5 * time.Second},
			choice("format", "what the shards are", "auto", "tar", "tfrecord"),
		}},
		Run: runBench,
	}.command()
}

func runBench(c *call) error {
	o := &bench.Options{
		Field: c.String("field"),
		Load: loader.Options{
			GlobalBatch: c.Int("batch"),
			Workers:     c.Int("workers"),
			Seed:        c.Uint64("seed"),
			Echo:        echo.Options{Unit: word(c.String("unit"), echo.Sample, echo.Batch), Factor: c.Float64("echo")},
		},
		Duration: c.Duration("duration"),
		Warmup:   c.Duration("warmup"),
		Version:  version(),
		Read:     &reader.Options{Format: word(c.String("format"), reader.AutoFormat, reader.Tar, reader.TFRecord)},
	}
	switch {
	case o.Load.GlobalBatch < 1:
		return usageError("--batch %d: at least 1", o.Load.GlobalBatch)
	case c.IsSet("workers") && o.Load.Workers < 1:
		return usageError("--workers %d: at least 1", o.Load.Workers)
	case o.Load.Echo.Factor == 0:
		return usageError("--echo 0: it counts every emission, so 1 is the least")
	case o.Warmup <= 0:
		return usageError("--warmup %v: more than nothing", o.Warmup)
	case o.Duration <= 0:
		return usageError("--duration %v: more than nothing", o.Duration)
	}
	if c.Args().Present() {
		shards, err := c.Paths()
		if err != nil {
			return err
		}
		o.Store, o.Shards = c.Store, shards
	}
	bar := benchBar(c, o)
	report, err := bench.Run(c.Context.Context, o)
	if bar != nil {
		_ = bar.Finish()
	}
	switch {
	case err != nil:
		return err
	case c.JSON():
		return c.Row(report)
	default:
		return report.WriteText(c.out)
	}
}

// benchBar draws how far the run is, where somebody watches.
func benchBar(c *call, o *bench.Options) *progressbar.ProgressBar {
	if c.Bool("quiet") || !isTerminal(c.App.ErrWriter) {
		return nil
	}
	bar := progressbar.NewOptions(1000,
		progressbar.OptionSetWriter(c.App.ErrWriter),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionFullWidth(),
	)
	o.Progress = func(p bench.Progress) {
		bar.Describe(fmt.Sprintf("%.0f samples/s", p.EmittedPS))
		_ = bar.Set(int(1000 * p.Done / p.Total))
	}
	return bar
}
