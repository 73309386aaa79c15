package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"shardtool/format"
	"shardtool/shard"
)

func statsCommand() *cli.Command {
	return verb{
		Name:  "stats",
		Args:  "IN...",
		Usage: "decode all images: sizes, mean and standard deviation, unreadable ones",
		About: `Images are the fields whose content begins as one, and those named jpg, jpeg, png,
webp, gif or image/encoded; --field names others. Every image is decoded. An
unreadable one is counted by class, and makes the run exit 1; the others are
summed up all the same. Mean and standard deviation are over all pixels, as 8-bit
RGB scaled to 0 to 1, ready for Normalize; the means of --each are 0 to 255.

With --each there is one line, or with --json one object, for each image; then
--json prints these alone, without the summary.`,
		Examples: []string{
			"shardtool stats train-{000..127}.tar",
			"shardtool stats --json --field 'jpg;png' train-*.tar",
			"shardtool stats --json --each train-000000.tar | grep -v '\"error\":null'",
		},
		Flags: [][]cli.Flag{{onErrorFlag()}, shapeFlags(), choiceFlags(), {
			jobsFlag(),
			&cli.BoolFlag{Name: "each", Usage: "print each image", DisableDefaultText: true},
			&cli.Int64Flag{Name: "limit", Aliases: []string{"n"}, Usage: "look at no more than `N` samples of a shard", DefaultText: "all"},
			&cli.IntFlag{Name: "max-errors", Usage: "report no more than `N` unreadable images", Value: 100},
		}},
		Run: runStats,
	}.command()
}

func runStats(c *call) error {
	names, o, _, err := c.inputs()
	if err != nil {
		return err
	}
	if c.Int64("limit") < 0 {
		return usageError("--limit %d: 0 or more", c.Int64("limit"))
	}
	if c.Int("max-errors") < 1 {
		return usageError("--max-errors %d: at least 1", c.Int("max-errors"))
	}
	var each func(*shard.ImageStats) error
	if c.Bool("each") {
		each = func(s *shard.ImageStats) error {
			c.Mark(s.Err)
			if c.JSON() {
				return c.Row(newEachRow(s))
			}
			return c.Printf("%s\n", eachText(s))
		}
	}
	var end func()
	o.Store, end = c.watched("stats", names)
	defer end()
	sum, err := shard.Stats(c.Context.Context, names, &shard.StatsOptions{
		Options: o, Limit: c.Int64("limit"), MaxErrors: c.Int("max-errors"),
	}, each)
	end()
	if err != nil {
		return err
	}
	for _, err := range sum.Errors {
		c.Mark(err)
	}
	if c.Bool("each") || !c.JSON() { // else it is in the row
		c.sayReading(&sum.Reading)
	}
	switch {
	case !c.JSON():
		err = c.Printf("%s", statsText(sum, len(names), c.Bool("each")))
	case !c.Bool("each"):
		err = c.Row(newStatsRow(sum))
	}
	for _, err := range sum.Failed {
		c.Fault(err)
	}
	return err
}

// eachRow is one image. The size is upright, channels are as stored; what is not
// known of an unreadable image is null.
type eachRow struct {
	Shard    string       `json:"shard"`
	Key      *[]byte      `json:"key"`
	Field    string       `json:"field"`
	Width    *int         `json:"width"`
	Height   *int         `json:"height"`
	Channels *int         `json:"channels"`
	Mean     *[3]float64  `json:"mean"` // 0 to 255
	Error    *errorObject `json:"error"`
	Bytes    int64        `json:"bytes"`
	Encoding *string      `json:"encoding"`
	Sampling *string      `json:"sampling"` // of a JPEG's chroma
	// Orientation is EXIF's, 1 to 8: how the image is stored.
	Orientation *int `json:"orientation"`
}

type errorObject struct {
	Class   string `json:"class"`
	Message string `json:"message"`
}

func newEachRow(s *shard.ImageStats) eachRow {
	row := eachRow{Shard: format.Redact(s.Shard), Field: s.Field, Bytes: s.Bytes}
	if s.Key != nil {
		row.Key = &s.Key
	}
	if h := &s.Header; h.Width > 0 {
		row.Width, row.Height, row.Channels, row.Encoding = &h.Width, &h.Height, &h.Channels, &h.Encoding
		row.Orientation = &h.Orientation
		if h.Sampling != "" {
			row.Sampling = &h.Sampling
		}
	}
	if s.Err != nil {
		row.Error = &errorObject{format.Class(s.Err), s.Err.Error()}
	} else {
		row.Mean = &s.Mean
	}
	return row
}

func eachText(s *shard.ImageStats) string {
	key := "-"
	if s.Key != nil {
		key = printable(s.Key)
	}
	text := fmt.Sprintf("%s\t%s\t%s\t", shown(s.Shard), key, printable([]byte(s.Field)))
	if s.Err != nil {
		return text + visible(errorText(s.Err))
	}
	h := &s.Header
	return text + fmt.Sprintf("%s %dx%d, %s, mean %.2f %.2f %.2f",
		h.Encoding, h.Width, h.Height, counted(h.Channels, "channel"), s.Mean[0], s.Mean[1], s.Mean[2])
}

// errorText is an error without its place, which stands beside it.
func errorText(err error) string {
	if e := format.AsError(err); e != nil {
		return e.Err.Error() + ": " + e.Detail
	}
	return err.Error()
}

// statsRow is the summary. Sizes, channels, encodings, samplings, orientations,
// mean and std are of readable images; a distribution without any is null.
type statsRow struct {
	Shards          int              `json:"shards"`
	Samples         int64            `json:"samples"`
	SamplesWithout  int64            `json:"samples_without"`
	Images          int64            `json:"images"`
	Unreadable      map[string]int64 `json:"unreadable"`
	UnreadableTotal int64            `json:"unreadable_total"`
	Bytes           int64            `json:"bytes"`
	Fields          map[string]int64 `json:"fields"`
	Encodings       map[string]int64 `json:"encodings"`
	Channels        map[string]int64 `json:"channels"`
	Samplings       map[string]int64 `json:"samplings"`
	Orientations    map[string]int64 `json:"orientations"`
	Width           *distributionRow `json:"width"`
	Height          *distributionRow `json:"height"`
	Pixels          *distributionRow `json:"pixels"`
	Aspect          *distributionRow `json:"aspect"`
	FileBytes       *distributionRow `json:"file_bytes"`
	Mean            *[3]float64      `json:"mean"` // 0 to 1
	Std             *[3]float64      `json:"std"`
	Errors          []faultRow       `json:"errors"`
	Failed          []faultRow       `json:"failed"` // shards that were not read to their end
	readingRow
}

type distributionRow struct {
	Min       float64  `json:"min"`
	P5        float64  `json:"p5"`
	P25       float64  `json:"p25"`
	P50       float64  `json:"p50"`
	P75       float64  `json:"p75"`
	P95       float64  `json:"p95"`
	Max       float64  `json:"max"`
	Mean      float64  `json:"mean"`
	Histogram []binRow `json:"histogram"`
}

// binRow is how many values v are From <= v < To.
type binRow struct {
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	Count int64   `json:"count"`
}

const histogramBins = 12

func newStatsRow(s *shard.ImageSummary) statsRow {
	row := statsRow{
		Shards: s.Shards, Samples: s.Samples, SamplesWithout: s.Without, Images: s.Images,
		Unreadable: s.Unreadable, UnreadableTotal: sumOf(s.Unreadable), Bytes: s.Bytes, Fields: s.Fields,
		Encodings: s.Encodings, Channels: numbered(s.Channels), Samplings: s.Samplings, Orientations: numbered(s.Orientations),
		Width: newDistributionRow(&s.Width, 1), Height: newDistributionRow(&s.Height, 1), Pixels: newDistributionRow(&s.Pixels, 1),
		Aspect: newDistributionRow(&s.Aspect, 1000), FileBytes: newDistributionRow(&s.FileBytes, 1),
		Errors: faultRows(s.Errors), Failed: faultRows(s.Failed), readingRow: newReadingRow(&s.Reading),
	}
	if mean, std := s.Normal(); !math.IsNaN(mean[0]) {
		row.Mean, row.Std = &mean, &std
	}
	return row
}

// numbered gives a map the keys that JSON needs.
func numbered(counts map[int]int64) map[string]int64 {
	m := make(map[string]int64, len(counts))
	for k, n := range counts {
		m[strconv.Itoa(k)] = n
	}
	return m
}

func sumOf(counts map[string]int64) (n int64) {
	for _, v := range counts {
		n += v
	}
	return n
}

// newDistributionRow gives values in units of which one holds scale.
func newDistributionRow(d *shard.Distribution, scale float64) *distributionRow {
	if d.N == 0 {
		return nil
	}
	at := func(p float64) float64 { return float64(d.Quantile(p)) / scale }
	row := &distributionRow{
		float64(d.Min) / scale, at(0.05), at(0.25), at(0.5), at(0.75), at(0.95), float64(d.Max) / scale, d.Mean() / scale, nil,
	}
	for _, b := range d.Bins(histogramBins) {
		row.Histogram = append(row.Histogram, binRow{float64(b.From) / scale, float64(b.To) / scale, b.Count})
	}
	return row
}

// statsText is the summary for people. Where each image has been said, those
// that are unreadable are not said again.
func statsText(s *shard.ImageSummary, shards int, said bool) string {
	var b strings.Builder
	if shards > 1 || s.Shards < shards {
		fmt.Fprintf(&b, "%d of %d shards, ", s.Shards, shards)
	}
	fmt.Fprintf(&b, "%s, %s of %s", counted(s.Samples, "sample"), counted(s.Images, "image"), counted(s.Bytes, "byte"))
	if s.Without > 0 {
		fmt.Fprintf(&b, "; %s without an image", counted(s.Without, "sample"))
	}
	b.WriteString("\n")
	if s.Width.N > 0 {
		writeSizes(&b, s)
		writeKinds(&b, &s.ImageCounts, s.Fields)
		writeNormal(&b, s)
		writeHistogram(&b, "width", &s.Width, "%.0f", 1)
		writeHistogram(&b, "height", &s.Height, "%.0f", 1)
		writeHistogram(&b, "aspect ratio", &s.Aspect, "%.3f", 1000)
		writeHistogram(&b, "bytes", &s.FileBytes, "%.0f", 1)
	}
	if n := sumOf(s.Unreadable); n > 0 {
		fmt.Fprintf(&b, "\n%s unreadable: %s\n", counted(n, "image"), countsText(s.Unreadable, "%s"))
		for _, err := range s.Errors {
			if !said {
				fmt.Fprintf(&b, "    %s\n", visible(err.Error()))
			}
		}
		if more := n - int64(len(s.Errors)); more > 0 && !said {
			fmt.Fprintf(&b, "    and %d more\n", more)
		}
	}
	return b.String()
}

func writeSizes(w io.Writer, s *shard.ImageSummary) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\tmin\tp5\tmedian\tmean\tp95\tmax\t\n")
	row := func(name string, d *shard.Distribution, verb string, scale float64) {
		fmt.Fprintf(t, "  %s\t", name)
		for _, v := range []float64{
			float64(d.Min), float64(d.Quantile(0.05)), float64(d.Quantile(0.5)), d.Mean(), float64(d.Quantile(0.95)), float64(d.Max),
		} {
			fmt.Fprintf(t, verb+"\t", v/scale)
		}
		fmt.Fprintln(t)
	}
	row("width", &s.Width, "%.0f", 1)
	row("height", &s.Height, "%.0f", 1)
	row("pixels", &s.Pixels, "%.0f", 1)
	row("aspect ratio", &s.Aspect, "%.3f", 1000)
	row("bytes", &s.FileBytes, "%.0f", 1)
	t.Flush()
}

// writeKinds says how many images there are of each kind.
func writeKinds(w io.Writer, c *shard.ImageCounts, fields map[string]int64) {
	named := make(map[string]int64)
	for name, n := range fields {
		named[printable([]byte(name))] += n
	}
	for _, kind := range []struct{ name, text string }{
		{"fields", countsText(named, "%s")},
		{"encodings", countsText(c.Encodings, "%s")},
		{"channels", countsText(c.Channels, "%d")},
		{"samplings", countsText(c.Samplings, "%s")},
		{"orientations", countsText(c.Orientations, "%d")},
	} {
		if kind.text != "" {
			fmt.Fprintf(w, "  %-13s %s\n", kind.name, kind.text)
		}
	}
}

// countsText lists counts, the largest first.
func countsText[K cmp.Ordered](counts map[K]int64, verb string) string {
	const most = 12
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var parts []string
	for i, k := range keys {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(keys)-most))
			break
		}
		parts = append(parts, fmt.Sprintf(verb+" (%d)", k, counts[k]))
	}
	return strings.Join(parts, ", ")
}

// writeNormal prints mean and deviation as Python and Go take them.
func writeNormal(w io.Writer, s *shard.ImageSummary) {
	mean, std := s.Normal()
	list := func(v [3]float64) string { return fmt.Sprintf("%.4f, %.4f, %.4f", v[0], v[1], v[2]) }
	fmt.Fprintf(w, "\nNormalize(mean=[%s], std=[%s])\n", list(mean), list(std))
	fmt.Fprintf(w, "augment.Normalize{Mean: [3]float64{%s}, Std: [3]float64{%s}}\n", list(mean), list(std))
}

// writeHistogram draws how values are distributed. The ends of a bin are both
// within it.
func writeHistogram(w io.Writer, name string, d *shard.Distribution, verb string, scale float64) {
	const width = 40
	bins := d.Bins(histogramBins)
	labels := make([][2]string, len(bins))
	var most int64
	var wide int
	for i, b := range bins {
		labels[i] = [2]string{fmt.Sprintf(verb, float64(b.From)/scale), fmt.Sprintf(verb, float64(b.To-1)/scale)}
		most, wide = max(most, b.Count), max(wide, len(labels[i][0]), len(labels[i][1]))
	}
	fmt.Fprintf(w, "\n%s\n", name)
	for i, b := range bins {
		bar := strings.Repeat("#", int((b.Count*width+most-1)/most)) // something for every image
		line := fmt.Sprintf("  %*s - %*s  %*d  %s", wide, labels[i][0], wide, labels[i][1], len(fmt.Sprint(most)), b.Count, bar)
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}
