package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"shardtool/format"
	"shardtool/reader"
	"shardtool/shard"
)

// shardFlags is how outputs are divided into shards.
func shardFlags() []cli.Flag {
	return []cli.Flag{
		choice("to", "what to write, auto goes by the suffix", "auto", "tar", "tfrecord"),
		&cli.Int64Flag{Name: "count", Usage: "no more than `N` samples in a shard; OUT holds a number such as %06d"},
		&cli.StringFlag{Name: "size", Usage: "shards of no more than `SIZE` (500MB, 1GiB) before compression; OUT holds a number"},
	}
}

func mappingFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "map", Usage: "rename a field, `FROM=TO`; a single whole number becomes its digits in a tar"},
		&cli.StringSliceFlag{Name: "drop", Usage: "leave out these `FIELDS`, by commas"},
		choice("preset", "renames for a common layout", "none", "imagenet"),
	}
}

func (c *call) mapping() (shard.Mapping, error) {
	m := shard.Mapping{
		Rename: make(map[string]string),
		Drop:   splitFields(c.StringSlice("drop")),
		Preset: word(c.String("preset"), shard.NoPreset, shard.ImageNet),
	}
	for _, pair := range c.StringSlice("map") {
		from, to, ok := strings.Cut(pair, "=")
		if !ok || from == "" || to == "" {
			return m, usageError("--map %s: write FROM=TO", pair)
		}
		m.Rename[from] = to
	}
	return m, nil
}

func (c *call) output() (shard.OutputOptions, error) {
	f := readOutputFlags(c.Context)
	o := shard.OutputOptions{
		Format:   word(c.String("to"), reader.AutoFormat, reader.Tar, reader.TFRecord),
		Compress: f.Compress,
		Level:    f.Level,
		Force:    f.Force,
		Count:    c.Int64("count"),
	}
	if o.Count < 0 {
		return o, usageError("--count %d: 1 or more", o.Count)
	}
	var err error
	if c.IsSet("size") {
		o.Size, err = parseSize("size", c.String("size"))
	}
	return o, err
}

// units of sizes: MB is 10^6 bytes, MiB is 2^20.
var units = []struct {
	suffix string
	bytes  float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// parseSize reads the value of a flag.
func parseSize(flag, s string) (int64, error) {
	for _, u := range units {
		if len(s) <= len(u.suffix) || !strings.EqualFold(s[len(s)-len(u.suffix):], u.suffix) {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(s[:len(s)-len(u.suffix)]), 64)
		if bytes := n * u.bytes; err == nil && bytes >= 1 && bytes < 1<<62 {
			return int64(bytes), nil
		}
		break
	}
	return 0, usageError("--%s %s: a number of bytes such as 500MB or 1GiB", flag, s)
}

// outAndIns parts the paths of a verb into inputs, expanded, and the last one.
func (c *call) outAndIns() (ins []string, out string, err error) {
	args := c.Args().Slice()
	if len(args) < 2 {
		return nil, "", usageError("inputs and an output are needed; shardtool %s %s", c.Command.Name, c.Command.ArgsUsage)
	}
	out = args[len(args)-1]
	ins, err = c.expand(args[:len(args)-1])
	return ins, out, err
}

// lossRow is a part of an input that was passed over.
type lossRow struct {
	Shard   string `json:"shard"`
	Offset  *int64 `json:"offset"`
	Bytes   int64  `json:"bytes"`
	Records *int64 `json:"records"`
	Class   string `json:"class"`
	Message string `json:"message"`
}

func lossRows(losses []format.Loss) []lossRow {
	rows := make([]lossRow, len(losses))
	for i, l := range losses {
		rows[i] = lossRow{Offset: known(l.Offset), Bytes: l.Bytes, Records: known(l.Records), Class: format.Class(l.Err)}
		if l.Err != nil {
			rows[i].Message = l.Err.Error()
		}
		if e := format.AsError(l.Err); e != nil {
			rows[i].Shard = format.Redact(e.Shard)
		}
	}
	return rows
}

// readingRow is what was left out of the inputs.
type readingRow struct {
	Skipped  map[string]int64 `json:"skipped"`
	Warnings map[string]int64 `json:"warnings"`
	Lost     int64            `json:"lost"`
	Losses   []lossRow        `json:"losses"`
}

func newReadingRow(r *shard.Reading) readingRow {
	row := readingRow{Skipped: r.Skipped, Warnings: make(map[string]int64), Lost: r.Lost, Losses: lossRows(r.Losses)}
	for w, n := range r.Warnings {
		row.Warnings[string(w)] = n
	}
	return row
}

// sayReading tells on standard error what was left out.
func (c *call) sayReading(r *shard.Reading) {
	for i, l := range r.Losses {
		if i == 20 {
			break
		}
		c.Warn("passed over: " + l.Err.Error())
	}
	if more := r.Lost - 20; more > 0 {
		c.Warn("and " + strconv.FormatInt(more, 10) + " more parts passed over")
	}
	if text := skippedText(r.Skipped); text != "" {
		c.Warn(strings.TrimPrefix(text, "; "))
	}
	for _, w := range slices.Sorted(maps.Keys(r.Warnings)) {
		c.Warn("the inputs have faults that were read over: " + strconv.FormatInt(r.Warnings[w], 10) + " " + string(w))
	}
}

type writtenRow struct {
	Name    string `json:"name"`
	Samples int64  `json:"samples"`
	Bytes   int64  `json:"bytes"`
	Stored  int64  `json:"stored"`
}

func writtenRows(outs []shard.Written) []writtenRow {
	rows := make([]writtenRow, len(outs))
	for i, o := range outs {
		rows[i] = writtenRow(o)
		rows[i].Name = format.Redact(o.Name)
	}
	return rows
}

// report prints a row or text.
func (c *call) report(row any, text string, args ...any) error {
	if c.JSON() {
		return c.Row(row)
	}
	return c.Printf(text, args...)
}
