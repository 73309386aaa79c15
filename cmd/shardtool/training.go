package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"shardtool/echo"
	"shardtool/format"
	"shardtool/loader"
	"shardtool/reader"
	"shardtool/reader/order"
)

// trainingFlags are the options of a training set-up: what loader.Options holds
// of the plan. call.training reads them.
func trainingFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "columns", Usage: "what is made of each sample, a `LIST` by commas; see above", DefaultText: "image"},
		&cli.IntFlag{Name: "batch", Usage: "`N` samples of a batch, of all ranks together", Value: 64},
		&cli.IntFlag{Name: "world", Usage: "ranks that train together", Value: 1},
		&cli.StringFlag{Name: "shuffle", Usage: "none, global, block:K (K shards mixed) or stream:K,B (and a buffer of B samples)", Value: "none"},
		&cli.Uint64Flag{Name: "seed", Usage: "of everything that is drawn"},
		choice("tail", "samples that fill no batch; default is drop when shuffling, else keep for one rank and pad for several", "default", "drop", "keep", "pad", "wrap"),
		&cli.StringFlag{Name: "epochs", Usage: "passes over the samples, or endless", Value: "1"},
		&cli.Int64Flag{Name: "steps", Usage: "of an epoch: it is cut, or filled from its start", DefaultText: "as many as the samples make"},
		&cli.IntFlag{Name: "lanes", Usage: "shares of an epoch that are dealt to ranks", DefaultText: "the largest divisor of the batch up to 64"},
		&cli.StringFlag{Name: "echo", Usage: "emit everything `E` times, such as 2 or 1.5; auto: as often as measured times allow", Value: "1"},
		choice("unit", "what is emitted again", "sample", "batch", "shard"),
		choice("keep", "what is kept between the copies; natural: bytes, of a batch the batch", "natural", "bytes", "decoded", "augmented", "batch"),
		&cli.IntFlag{Name: "buffer", Usage: "of the echo: mix `N` units behind it"},
		&cli.IntFlag{Name: "workers", Usage: "decode on `N` workers", DefaultText: "one for each core"},
		&cli.StringFlag{Name: "exclude", Usage: "leave out the samples that this `FILE` lists, a quarantine list or JSON Lines of shard and index"},
		choice("scan", "which shards are read to count their samples where no index tells; auto: local ones that are not compressed, by their headers", "auto", "never", "always"),
	}
}

// rankFlag goes with trainingFlags where one rank is run.
func rankFlag() cli.Flag {
	return &cli.IntFlag{Name: "rank", Usage: "of those that train together, from 0"}
}

// columnsHelp is the syntax of --columns, for the help of a verb.
const columnsHelp = `--columns is a list by commas of

   image:FIELD[:SIZE][:eval]        decoded, cropped, flipped and normalised to SIZE
                                    (224); eval: resized and cropped in the middle
   int64:FIELD  float32:FIELD       one number
   dense:FIELD:TYPE:SHAPE           an array, such as dense:box:float32:4 or 3x8x8
   padded:FIELD:TYPE:LENGTH         a list, padded with zeros; also :pad=VALUE,
                                    :truncate, :buckets=128;256, :inner=SHAPE
   ragged:FIELD:TYPE[:SHAPE]        a list of any length, of numbers or of SHAPE
   bytes:FIELD                      as it is stored
   key  location                    the sample's key; where it stands

FIELD may be alternatives, jpg;jpeg;png. Each may end in :hole (a sample without the
field becomes a hole) or :or=VALUE. A backslash takes the meaning from , and :.`

// training returns what trainingFlags ask for. The rank is that of rankFlag
// where the verb has it.
func (c *call) training() (*loader.Options, error) {
	o := &loader.Options{
		GlobalBatch: c.Int("batch"), Seed: c.Uint64("seed"), Steps: c.Int64("steps"), Lanes: c.Int("lanes"),
		Workers: c.Int("workers"), Rank: c.Int("rank"), World: c.Int("world"),
		Tail: word(c.String("tail"), order.TailDefault, order.TailDrop, order.TailKeep, order.TailPad, order.TailWrap),
		Echo: echo.Options{
			Unit:   word(c.String("unit"), echo.Sample, echo.Batch, echo.Shard),
			Keep:   word(c.String("keep"), echo.Natural, echo.Bytes, echo.Decoded, echo.Augmented, echo.Batched),
			Buffer: c.Int("buffer"),
		},
	}
	switch {
	case o.GlobalBatch < 1:
		return nil, usageError("--batch %d: at least 1", o.GlobalBatch)
	case o.World < 1 || o.Rank < 0 || o.Rank >= o.World:
		return nil, usageError("--rank %d --world %d: ranks go from 0 to one less than the world", o.Rank, o.World)
	case c.IsSet("workers") && o.Workers < 1:
		return nil, usageError("--workers %d: at least 1", o.Workers)
	case o.Steps < 0 || o.Lanes < 0 || o.Echo.Buffer < 0:
		return nil, usageError("--steps, --lanes and --buffer are 0 or more")
	}
	var err error
	if err = parseEcho(c.String("echo"), &o.Echo); err != nil {
		return nil, err
	}
	if o.Shuffle, err = parseShuffle(c.String("shuffle")); err != nil {
		return nil, err
	}
	if o.Epochs, err = parseEpochs(c.String("epochs")); err != nil {
		return nil, err
	}
	if o.Columns, err = parseColumns(c.StringSlice("columns")); err != nil {
		return nil, err
	}
	o.Exclude, err = c.excluded()
	return o, err
}

func (c *call) excluded() ([]loader.Exclusion, error) {
	name := c.String("exclude")
	if name == "" {
		return nil, nil
	}
	r, err := c.openBeside(name)
	if err != nil {
		return nil, err
	}
	list, err := loader.ReadQuarantine(r)
	return list, errors.Join(format.ReadError(err, format.In(name)), r.Close())
}

// dataset makes a dataset of the verb's paths, or of the one manifest that
// they are: "@FILE", or a name that ends in .json.
func (c *call) dataset(o *reader.Options) (*reader.Dataset, error) {
	o.Store = c.Store
	o.Scan = scans[c.String("scan")]
	if slices.ContainsFunc(c.Args().Slice(), isManifest) {
		if c.NArg() > 1 {
			return nil, usageError("a manifest (@FILE, or FILE.json) is a data set by itself, and there are %d paths", c.NArg())
		}
		return reader.Open(c.Context.Context, c.Args().First(), o)
	}
	names, err := c.Paths()
	if err != nil {
		return nil, err
	}
	return reader.New(c.Store, names, o), nil
}

var scans = map[string]reader.Scan{"auto": reader.ScanAuto, "never": reader.ScanNever, "always": reader.ScanAlways}

func parseEpochs(s string) (int, error) {
	switch s {
	case "": // the verb has no such flag
		return 0, nil
	case "endless":
		return order.Endless, nil
	}
	if n, err := strconv.Atoi(s); err == nil && n >= 1 {
		return n, nil
	}
	return 0, usageError("--epochs %s: 1 or more, or endless", s)
}

// parseEcho reads how often everything is emitted: a number, or auto. What the
// ranks of an automatic one agree on is what one of them proposes: one runs here.
func parseEcho(s string, o *echo.Options) error {
	if s == "auto" {
		o.Factor = 1
		o.Auto = &echo.Auto{Agree: func(_ context.Context, p echo.Proposal) (float64, error) { return p.Factor, nil }}
		return nil
	}
	e, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil:
		return usageError("--echo %s: a number of emissions such as 2 or 1.5, or auto", s)
	case e == 0:
		return usageError("--echo 0: it counts every emission, so 1 is the least")
	}
	o.Factor = e
	return nil
}

// echoOfEvaluation warns of copies of what is prepared for evaluation; "" where
// there are none.
func (c *call) echoOfEvaluation(o echo.Options) string {
	if o.Factor == 1 && o.Auto == nil {
		return ""
	}
	for _, value := range c.StringSlice("columns") {
		for _, one := range splitEscaped(value, ',') {
			if words := splitEscaped(one, ':'); words[0] == "image" && slices.Contains(words, "eval") {
				return "echo of pictures that are prepared for evaluation (" + one + "): its copies are equal, and count as often in the result"
			}
		}
	}
	return ""
}

// parseShuffle reads none, global, block:K or stream:K,B.
func parseShuffle(s string) (order.Shuffle, error) {
	name, rest, _ := strings.Cut(s, ":")
	var n []int
	if rest != "" {
		for one := range strings.SplitSeq(rest, ",") {
			v, err := strconv.Atoi(one)
			if err != nil || v < 1 {
				n = nil
				name = ""
				break
			}
			n = append(n, v)
		}
	}
	switch {
	case name == "none" && rest == "":
		return order.None, nil
	case name == "global" && rest == "":
		return order.Global, nil
	case name == "block" && len(n) == 1:
		return order.Block(n[0]), nil
	case name == "stream" && len(n) == 2:
		return order.Stream(n[0], n[1]), nil
	}
	return order.None, usageError("--shuffle %s: write none, global, block:K or stream:K,B", s)
}
