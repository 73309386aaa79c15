package main

import (
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"shardtool/shard"
)

func convertCommand() *cli.Command {
	return verb{
		Name:  "convert",
		Args:  "IN... OUT",
		Usage: "write shards anew: other format, size, order, fields or compression",
		About: `Reads shards in order and writes their samples to OUT, which may hold a number
such as %06d for several shards. The format and compression of OUT go by its
suffix. Between tar and TFRecord, a tar field is a feature of one byte string
and back; other features become JSON (label.int64.json) and come back as they
were. All outputs appear together at the end, or none.

--split train=0.9,val=0.1 divides by a hash of the key, always alike; OUT holds
{split}. --shuffle is across all inputs and the same for the same --seed.`,
		Examples: []string{
			"shardtool convert train-{000..127}.tar train-%05d.tfrecord --count 10000",
			"shardtool convert --preset imagenet imagenet-*.tfrecord imagenet-%06d.tar.gz --size 1GB",
			"shardtool convert --shuffle --seed 7 --split train=0.9,val=0.1 all-*.tar '{split}-%04d.tar' --shards 16",
		},
		Flags: [][]cli.Flag{inputFlagSet(), outputFlagSet(), shardFlags(), {
			&cli.IntFlag{Name: "shards", Usage: "deal the samples to `N` shards of equal count"},
			&cli.BoolFlag{Name: "shuffle", Usage: "in an order drawn by --seed", DisableDefaultText: true},
			&cli.Uint64Flag{Name: "seed", Usage: "of the shuffle"},
			&cli.StringFlag{Name: "split", Usage: "`PARTS` and their shares, such as train=0.9,val=0.1"},
			keysFlag(),
		}, mappingFlags()},
		Run: runConvert,
	}.command()
}

type convertRow struct {
	Samples  int64 `json:"samples"`
	Filtered int64 `json:"filtered"`
	readingRow
	Outputs []writtenRow `json:"outputs"`
}

func newConvertRow(r *shard.Conversion) convertRow {
	return convertRow{r.Samples, r.Filtered, newReadingRow(&r.Reading), writtenRows(r.Outputs)}
}

func runConvert(c *call) error {
	ins, out, err := c.outAndIns()
	if err != nil {
		return err
	}
	c.ReportTo(out)
	o := &shard.ConvertOptions{
		Shards: c.Int("shards"), Keys: c.StringSlice("keys"), Shuffle: c.Bool("shuffle"), Seed: c.Uint64("seed"),
	}
	if o.Options, _, err = c.options(); err != nil {
		return err
	}
	if o.Output, err = c.output(); err != nil {
		return err
	}
	if o.Mapping, err = c.mapping(); err != nil {
		return err
	}
	if o.Parts, err = parseParts(c.String("split")); err != nil {
		return err
	}
	if o.Shards < 0 {
		return usageError("--shards %d: 1 or more", o.Shards)
	}
	var end func()
	o.Store, end = c.watched("convert", ins)
	defer end()
	r, err := shard.Convert(c.Context.Context, ins, out, o)
	end()
	if err != nil {
		return err
	}
	if !c.JSON() {
		c.sayReading(&r.Reading)
	}
	return c.report(newConvertRow(r), "%s in %s\n", counted(r.Samples, "sample"), counted(len(r.Outputs), "shard"))
}

func parseParts(s string) ([]shard.Part, error) {
	if s == "" {
		return nil, nil
	}
	var parts []shard.Part
	for _, one := range strings.Split(s, ",") {
		name, share, ok := strings.Cut(one, "=")
		weight, err := strconv.ParseFloat(share, 64)
		if !ok || err != nil || name == "" {
			return nil, usageError("--split %s: write NAME=SHARE,...", s)
		}
		parts = append(parts, shard.Part{Name: name, Weight: weight})
	}
	return parts, nil
}
