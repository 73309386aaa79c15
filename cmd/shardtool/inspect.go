package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"shardtool/format"
	"shardtool/reader"
	"shardtool/shard"
)

func inspectCommand() *cli.Command {
	return verb{
		Name:  "inspect",
		Args:  "IN...",
		Usage: "say what shards are and hold",
		About: `Says the format, the compression, how many samples there are, their fields with
types and sizes, the first keys, and what faults were seen on the way. Of fields
that hold images it says what their headers tell: encodings, sizes, samplings,
orientations; not of tars that are compressed or come through a pipe. An image
whose header cannot be read is counted, and is no fault: the exit code is of the
shards. The pixels are for stats.`,
		Examples: []string{
			"shardtool inspect train-000000.tar",
			"shardtool inspect --limit 1000 --json train-*.tfrecord",
		},
		Flags: [][]cli.Flag{shapeFlags(), {
			jobsFlag(),
			&cli.Int64Flag{Name: "limit", Aliases: []string{"n"}, Usage: "look at no more than `N` samples of a shard", DefaultText: "all"},
		}},
		Run: runInspect,
	}.command()
}

type inspectRow struct {
	Shard       string           `json:"shard"`
	Format      *string          `json:"format"`
	Type        *string          `json:"type"`
	Compression string           `json:"compression"`
	Bytes       *int64           `json:"bytes"`
	Samples     int64            `json:"samples"`
	Whole       bool             `json:"whole"`
	Fields      []inspectField   `json:"fields"`
	Keys        []string         `json:"keys"`
	Skipped     map[string]int64 `json:"skipped"`
	Errors      []faultRow       `json:"errors"`
	ErrorsTotal int64            `json:"errors_total"`
}

type inspectField struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Samples  int64  `json:"samples"`
	Bytes    int64  `json:"bytes"`
	MinBytes int64  `json:"min_bytes"`
	MaxBytes int64  `json:"max_bytes"`
	Mixed    bool   `json:"mixed"`
	// Images is absent where the field holds none, or they were not looked at.
	Images *imagesRow `json:"images,omitempty"`
}

// imagesRow is what the headers of images say.
type imagesRow struct {
	Images       int64            `json:"images"`
	Unreadable   map[string]int64 `json:"unreadable"`
	Encodings    map[string]int64 `json:"encodings"`
	Channels     map[string]int64 `json:"channels"`
	Samplings    map[string]int64 `json:"samplings"`
	Orientations map[string]int64 `json:"orientations"`
	Width        *rangeRow        `json:"width"` // null where no header is readable
	Height       *rangeRow        `json:"height"`
	// NotLookedAt: more than 16 MiB stand before the frame.
	NotLookedAt int64 `json:"not_looked_at"`
}

type rangeRow struct {
	Min int64 `json:"min"`
	P50 int64 `json:"p50"`
	Max int64 `json:"max"`
}

func newImagesRow(c *shard.ImageCounts) *imagesRow {
	if c == nil {
		return nil
	}
	return &imagesRow{
		c.Images, c.Unreadable, c.Encodings, numbered(c.Channels), c.Samplings, numbered(c.Orientations),
		newRangeRow(&c.Width), newRangeRow(&c.Height), c.NotLookedAt,
	}
}

func newRangeRow(d *shard.Distribution) *rangeRow {
	if d.N == 0 {
		return nil
	}
	return &rangeRow{d.Min, d.Quantile(0.5), d.Max}
}

func runInspect(c *call) error {
	names, o, _, err := c.inputs()
	if err != nil {
		return err
	}
	if c.Int64("limit") < 0 {
		return usageError("--limit %d: 0 or more", c.Int64("limit"))
	}
	var end func()
	o.Store, end = c.watched("inspect", names)
	defer end()
	return shard.Inspect(c.Context.Context, names, &shard.InspectOptions{Options: o, Limit: c.Int64("limit")}, func(in *shard.Inspection) error {
		for _, err := range in.Errors {
			c.Mark(err)
		}
		if c.JSON() {
			return c.Row(newInspectRow(in))
		}
		return c.Printf("%s", inspectText(in))
	})
}

func newInspectRow(in *shard.Inspection) inspectRow {
	row := inspectRow{
		Shard: format.Redact(in.Shard), Format: formatWord(in.Format), Type: typeWord(in.Type), Compression: in.Compression.String(),
		Bytes: known(in.Size), Samples: in.Samples, Whole: in.Whole, Keys: in.Keys, Skipped: in.Skipped,
		Errors: faultRows(in.Errors), ErrorsTotal: in.ErrorsTotal,
	}
	for _, f := range in.Fields {
		row.Fields = append(row.Fields, inspectField{f.Name, f.Kind.String(), f.Samples, f.Bytes, f.MinBytes, f.MaxBytes, f.Mixed, newImagesRow(f.Images)})
	}
	return row
}

func typeWord(t reader.Type) *string {
	if t == reader.AutoType {
		return nil
	}
	s := t.String()
	return &s
}

func inspectText(in *shard.Inspection) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", shown(in.Shard))
	if in.Format != reader.AutoFormat {
		what := in.Format.String()
		if t := typeWord(in.Type); t != nil {
			what += " of " + *t + " records"
		}
		if k := in.Compression.String(); k != "none" {
			what += ", " + k
		}
		fmt.Fprintf(&b, "  format   %s\n", what)
		if in.Size >= 0 {
			fmt.Fprintf(&b, "  bytes    %d\n", in.Size)
		}
		more := ""
		if !in.Whole {
			more = " looked at; there may be more"
		}
		fmt.Fprintf(&b, "  samples  %d%s%s\n", in.Samples, more, skippedText(in.Skipped))
		for i, key := range in.Keys {
			in.Keys[i] = printable([]byte(key))
		}
		if len(in.Keys) > 0 {
			fmt.Fprintf(&b, "  keys     %s\n", strings.Join(in.Keys, ", "))
		}
	}
	writeFields(&b, in)
	writeImages(&b, in)
	if in.ErrorsTotal > 0 {
		fmt.Fprintf(&b, "  faults   %d\n", in.ErrorsTotal)
		for _, err := range in.Errors {
			fmt.Fprintf(&b, "    %s\n", visible(err.Error()))
		}
	}
	return b.String()
}

func writeFields(b *strings.Builder, in *shard.Inspection) {
	if len(in.Fields) == 0 {
		return
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\tsamples\tmin\tmean\tmax\tbytes\ttype\t  field\n")
	for _, f := range in.Fields {
		kind := f.Kind.String()
		if f.Mixed {
			kind += ", mixed"
		}
		fmt.Fprintf(w, "\t%d\t%d\t%d\t%d\t%d\t%s\t  %s\n", f.Samples, f.MinBytes, f.Bytes/max(f.Samples, 1), f.MaxBytes, f.Bytes, kind, printable([]byte(f.Name)))
	}
	w.Flush()
}

// writeImages says what the headers of images tell, field by field.
func writeImages(b *strings.Builder, in *shard.Inspection) {
	for _, f := range in.Fields {
		c := f.Images
		if c == nil || c.Images == 0 {
			continue
		}
		fmt.Fprintf(b, "  images in %s\n", printable([]byte(f.Name)))
		text := counted(c.Images, "image")
		if len(c.Unreadable) > 0 {
			text += "; unreadable: " + countsText(c.Unreadable, "%s")
		}
		if c.NotLookedAt > 0 {
			text += fmt.Sprintf("; not looked at, with more than 16 MiB before the frame: %d", c.NotLookedAt)
		}
		fmt.Fprintf(b, "    %s\n", text)
		if c.Width.N > 0 {
			fmt.Fprintf(b, "    width %s, height %s\n", rangeText(&c.Width), rangeText(&c.Height))
			for _, text := range []string{
				countsText(c.Encodings, "%s"), countsText(c.Channels, "channels %d"),
				countsText(c.Samplings, "sampling %s"), countsText(c.Orientations, "orientation %d"),
			} {
				if text != "" {
					fmt.Fprintf(b, "    %s\n", text)
				}
			}
		}
	}
}

func rangeText(d *shard.Distribution) string {
	return fmt.Sprintf("%d to %d, median %d", d.Min, d.Max, d.Quantile(0.5))
}
