package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"

	"shardtool/bench"
	"shardtool/reader"
	"shardtool/reader/store"
)

func benchCommand() *cli.Command {
	return verb{
		Name:  "bench",
		Args:  "[IN...]",
		Usage: "measure how fast shards become batches, and what limits it",
		About: `Runs the loader over shards as training would: reads, shuffles, decodes, augments
and makes batches; after a warm-up it counts the batches that are finished within
the duration. Shards are read again as often as needed. Without paths it reads
photographs that come with the program.

Without --columns, pictures of the field jpg, jpeg, png, webp, gif, image/encoded
or image, or of --field, are decoded, cropped at random, flipped and normalised to
224x224. ` + columnsHelp + `

With --world it makes one rank's part of each batch. --upstream slows the store
down, as in 50MB/s,20ms: a rate for all reads together, and a latency for each
request. With --echo E each sample is emitted E times and decoded each time; with
--unit batch each batch is emitted E times as it is.`,
		Examples: []string{
			"shardtool bench",
			"shardtool bench --duration 20s --workers 8 train-{000..127}.tar",
			"shardtool bench --shuffle stream:8,4096 --world 8 --batch 1024 s3://bucket/train-*.tar",
			"shardtool bench --columns padded:input_ids:int64:512 tokens-*.tfrecord",
			"shardtool bench --upstream 6MB/s,20ms --echo 2 --unit batch --json",
		},
		Flags: [][]cli.Flag{benchTrainingFlags(), {
			rankFlag(),
			&cli.StringFlag{Name: "field", Usage: "pictures are in the first `LIST` of fields that a sample has, by semicolons", DefaultText: "the usual names"},
			&cli.StringFlag{Name: "upstream", Usage: "slow the store down to a `LIMIT` such as 50MB/s,20ms"},
			&cli.DurationFlag{Name: "warmup", Usage: "before the measurement", Value: time.Second},
			&cli.DurationFlag{Name: "duration", Usage: "of the measurement, after the warm-up", Value: 5 * time.Second},
			choice("format", "what the shards are", "auto", "tar", "tfrecord"),
		}},
		Run: runBench,
	}.command()
}

// benchTrainingFlags are trainingFlags without the epochs, which have no end
// here.
func benchTrainingFlags() []cli.Flag {
	return slices.DeleteFunc(trainingFlags(), func(f cli.Flag) bool { return f.Names()[0] == "epochs" })
}

func runBench(c *call) error {
	load, err := c.training()
	if err != nil {
		return err
	}
	o := &bench.Options{
		Load:     *load,
		Field:    c.String("field"),
		Duration: c.Duration("duration"),
		Warmup:   c.Duration("warmup"),
		Version:  version(),
	}
	if !c.IsSet("columns") {
		o.Load.Columns = nil // the field decides
	}
	switch {
	case c.IsSet("columns") && c.IsSet("field"):
		return usageError("--field is for the pictures that are read without --columns")
	case o.Warmup <= 0:
		return usageError("--warmup %v: more than nothing", o.Warmup)
	case o.Duration <= 0:
		return usageError("--duration %v: more than nothing", o.Duration)
	}
	if limit := c.String("upstream"); limit != "" {
		l, err := store.ParseLimit(limit)
		if err != nil {
			return err
		}
		o.Upstream = &l
	}
	if c.Args().Present() {
		o.Dataset, err = c.dataset(&reader.Options{Format: word(c.String("format"), reader.AutoFormat, reader.Tar, reader.TFRecord)})
		if err != nil {
			return err
		}
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
