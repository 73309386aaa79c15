package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"shardtool/format"
	"shardtool/format/index"
	"shardtool/shard"
)

func indexCommand() *cli.Command {
	return verb{
		Name:  "index",
		Args:  "IN...",
		Usage: "write or check indexes of shards",
		About: `Writes IN.idx beside each shard: lines of offset and size for TFRecord, as DALI
and tfrecord2idx have them, and wds2idx v1.2 for tar; or another dialect. The
dialect wids makes one JSON index of all shards and needs --output. --check
holds the indexes that are there against their shards instead.

--manifest OUT.json writes no index, but what a trainer has to know of a data
set before it begins: the names of all shards as seen from OUT.json, with sizes
and numbers of samples. It is a wids index without MD5s, for which headers are
read, or indexes that fit; compressed and remote shards without an index are
read as a whole. reader.Open takes it for a data set.`,
		Examples: []string{
			"shardtool index train-{000..127}.tar",
			"shardtool index --dialect wids --output train.json train-*.tar",
			"shardtool index --manifest train.json train-*.tar",
			"shardtool index --check train-*.tfrecord",
		},
		Flags: [][]cli.Flag{{
			choice("dialect", "of the index, auto goes by the shard", "auto", "dali", "wds", "wds-1.1", "energon", "wids"),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the index to `FILE`, or - for standard output"},
			&cli.StringFlag{Name: "manifest", Usage: "write a manifest of all shards to `FILE`, and no index"},
			&cli.BoolFlag{Name: "check", Usage: "check instead of writing", DisableDefaultText: true},
			forceFlag(),
		}, inputFlagSet()},
		Run: runIndex,
	}.command()
}

type indexRow struct {
	Shard   string `json:"shard"`
	Index   string `json:"index"`
	Dialect string `json:"dialect"`
	Samples int64  `json:"samples"`
	Links   int64  `json:"links,omitempty"` // members left out for being links
}

func runIndex(c *call) error {
	names, read, indexName, err := c.inputs()
	if err != nil {
		return err
	}
	c.ReportTo(c.String("output"))
	c.ReportTo(c.String("manifest"))
	o := &shard.IndexOptions{Options: read, Output: c.String("output"), Force: c.Bool("force")}
	if c.IsSet("manifest") {
		return writeManifest(c, names, indexName, o)
	}
	if c.Bool("check") {
		return checkIndexes(c, names, indexName, o)
	}
	if d, ok := index.ParseDialect(c.String("dialect")); ok {
		o.Dialect = &d
	}
	var end func()
	o.Store, end = c.watched("index", names)
	defer end()
	if o.Dialect != nil && *o.Dialect == index.WIDS {
		return indexDataset(c, names, o)
	}
	all, err := shard.Index(c.Context.Context, names, o)
	end()
	if err != nil {
		return err
	}
	for _, x := range all {
		if x.Links > 0 {
			c.Warn(fmt.Sprintf("%s: %d members are links and stand in no index", format.Redact(x.Shard), x.Links))
		}
		err := c.report(indexRow{format.Redact(x.Shard), format.Redact(x.Name), x.Dialect.String(), x.Samples, x.Links}, "%s: %s, %s\n", shown(x.Name), x.Dialect, counted(x.Samples, "sample"))
		if err != nil {
			return err
		}
	}
	return nil
}

func indexDataset(c *call, names []string, o *shard.IndexOptions) error {
	if o.Output == "" {
		return usageError("--dialect wids makes one index of all shards: say where with --output")
	}
	set, err := shard.IndexDataset(c.Context.Context, names, o.Output, o)
	if err != nil {
		return err
	}
	row := struct {
		Index   string `json:"index"`
		Dialect string `json:"dialect"`
		Shards  int    `json:"shards"`
		Samples int64  `json:"samples"`
	}{o.Output, index.WIDS.String(), len(set.Shards), set.Samples()}
	return c.report(row, "%s: wids, %s, %s\n", shown(o.Output), counted(len(set.Shards), "shard"), counted(set.Samples(), "sample"))
}

func writeManifest(c *call, names []string, indexName string, o *shard.IndexOptions) error {
	for _, other := range []string{"output", "dialect", "check"} {
		if c.IsSet(other) {
			return usageError("--manifest writes no index, which --%s is about", other)
		}
	}
	out := c.String("manifest")
	if out == "" {
		return usageError("--manifest: no file is named")
	}
	bar := c.Progress("index", int64(len(names)), false)
	defer bar.End()
	o.Read.Index = indexName
	o.Read.Progress = func(int, int) { bar.Add(1) }
	set, warnings, err := shard.WriteManifest(c.Context.Context, names, out, o)
	bar.End()
	if err != nil {
		return err
	}
	for _, w := range warnings {
		c.Warn(w)
	}
	row := struct {
		Manifest string `json:"manifest"`
		Shards   int    `json:"shards"`
		Samples  int64  `json:"samples"`
	}{out, len(set.Shards), set.Samples()}
	return c.report(row, "%s: a manifest of %s, %s\n", shown(out), counted(len(set.Shards), "shard"), counted(set.Samples(), "sample"))
}

type checkRow struct {
	Shard  string     `json:"shard"`
	Index  string     `json:"index"`
	Errors []faultRow `json:"errors"`
	OK     bool       `json:"ok"`
}

func checkIndexes(c *call, names []string, indexName string, o *shard.IndexOptions) error {
	for _, name := range names {
		at := indexName
		if at == "" {
			at = shard.SidecarOf(name)
		}
		row := checkRow{Shard: format.Redact(name), Index: format.Redact(at), OK: true}
		err := shard.CheckIndex(c.Context.Context, name, at, &o.Options)
		if c.Context.Context.Err() != nil {
			return err
		}
		if err != nil {
			c.Mark(err)
			row.OK, row.Errors = false, faultRows([]error{err})
		}
		switch {
		case c.JSON():
			err = c.Row(row)
		case err != nil:
			err = c.Printf("%s: %s\n", shown(row.Index), visible(err.Error()))
		default:
			err = c.Printf("%s: ok\n", shown(row.Index))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
