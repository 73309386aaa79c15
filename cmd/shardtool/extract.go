package main

import (
	"github.com/urfave/cli/v2"

	"shardtool/shard"
)

func extractCommand() *cli.Command {
	return verb{
		Name:  "extract",
		Args:  "IN... FOLDER",
		Usage: "write samples as files into a folder",
		About: `Each field becomes a file named KEY.FIELD, as in a tar. No file is written outside
FOLDER, which is one of this machine, whatever the names in the shards say. All files appear at the end, or
none; existing ones are kept unless --force is given.

With --images png images are decoded and written upright as 8-bit RGB: the fields
named jpg, jpeg, png, webp, gif or image/encoded, and those whose content begins
as an image; features that are lists are written as JSON. Their names end in .png instead. What cannot be
decoded is a fault; --on-error skip leaves out its sample. A sample with two images
that would be one file, such as jpg and png, ends the run even so: choose by
--field 'jpg;png'.`,
		Examples: []string{
			"shardtool extract train-000000.tar out",
			"shardtool extract --images png --field 'jpg;png' train-000000.tar out",
			"shardtool extract --keys '*_1002?' --field 'jpg;png' --limit 100 train-*.tar out",
		},
		Flags: [][]cli.Flag{inputFlagSet(), {
			choice("images", "how images are written", "stored", "png"),
			forceFlag(), keysFlag(),
			&cli.Int64Flag{Name: "limit", Aliases: []string{"n"}, Usage: "no more than `N` samples", DefaultText: "all"},
		}, mappingFlags()},
		Run: runExtract,
	}.command()
}

type extractRow struct {
	Samples int64 `json:"samples"`
	Files   int64 `json:"files"`
	Bytes   int64 `json:"bytes"`
	readingRow
}

func runExtract(c *call) error {
	ins, folder, err := c.outAndIns()
	if err != nil {
		return err
	}
	if err := localOnly(folder, "files are extracted into a folder of this machine", "convert writes shards to remote stores"); err != nil {
		return err
	}
	o := &shard.ExtractOptions{Keys: c.StringSlice("keys"), Limit: c.Int64("limit"), Force: c.Bool("force"),
		Images: word(c.String("images"), shard.StoredImages, shard.PNGImages)}
	if o.Options, _, err = c.options(); err != nil {
		return err
	}
	if o.Mapping, err = c.mapping(); err != nil {
		return err
	}
	if o.Limit < 0 {
		return usageError("--limit %d: 0 or more", o.Limit)
	}
	var end func()
	o.Store, end = c.watched("extract", ins)
	defer end()
	x, err := shard.Extract(c.Context.Context, ins, folder, o)
	end()
	if err != nil {
		return err
	}
	if !c.JSON() {
		c.sayReading(&x.Reading)
	}
	return c.report(extractRow{x.Samples, x.Files, x.Bytes, newReadingRow(&x.Reading)},
		"%s: %s of %s\n", shown(folder), counted(x.Files, "file"), counted(x.Samples, "sample"))
}
