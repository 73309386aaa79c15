package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"shardtool/loader"
)

// WriteText writes the report for people: rates, the stages, the bottleneck
// and what would lift it.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	c := &r.Config
	fmt.Fprintf(&b, "%s: %s, batches of %d, %s\n", c.Source, counted(c.Shards, "shard"), c.Batch, counted(c.Workers, "worker"))
	if c.World > 1 {
		fmt.Fprintf(&b, "rank %d of %d, which makes its part of each batch\n", c.Rank, c.World)
	}
	if c.Shuffle != "none" {
		fmt.Fprintf(&b, "shuffle %s; ", c.Shuffle)
	}
	fmt.Fprintf(&b, "%s; echo %s\n\n", c.Transform, r.echoWords())

	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"samples/s", fmt.Sprintf("%.1f emitted, %.1f fresh", r.EmittedPerS, r.FreshPerS)},
		{"MB/s", fmt.Sprintf("%.1f read", r.MBPerS)},
		{"Mpix/s", fmt.Sprintf("%.1f decoded", r.MpixPerS)},
		{"CPU", fmt.Sprintf("%.2f s for 1000 samples", r.CPUPer1000)},
		{"memory", fmt.Sprintf("%.0f MB at most, %.1f allocations a sample", r.PeakRSSMB, r.AllocsPerSample)},
		{"batches", fmt.Sprintf("%d in %.2f s, gap %.1f ms (p50), %.1f ms (p99)", r.Batches, r.Seconds, r.BatchGap.P50, r.BatchGap.P99)},
	} {
		fmt.Fprintf(table, "%s\t%s\n", row[0], row[1])
	}
	table.Flush()

	b.WriteString("\n")
	table = tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "stage\tworkers\tbusy s\twaits for input s\twaits for room s\t")
	for _, s := range r.Stages {
		fmt.Fprintf(table, "%s\t%d\t%.2f\t%.2f\t%.2f\t\n", s.Name, s.Workers, s.Busy, s.WaitIn, s.WaitOut)
	}
	table.Flush()
	fmt.Fprintf(&b, "\nbottleneck: %s. %s\n", r.Bottleneck, r.advice())
	_, err := io.WriteString(w, b.String())
	return err
}

func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func (r *Report) echoWords() string {
	e := &r.Echo
	if e.Factor == 1 {
		return "off"
	}
	return fmt.Sprintf("%v of each %s, %s kept", e.Factor, e.Unit, e.Keep)
}

// advice says what would lift the bottleneck.
func (r *Report) advice() string {
	switch r.Bottleneck {
	case loader.StageFetch:
		if r.Echo.Unit == "sample" && r.Echo.R >= 2 && !math.IsInf(r.Echo.R, 0) {
			const most = 8 // beyond, copies stand in for too little that is fresh
			return fmt.Sprintf("The workers wait for shards: a faster or nearer store helps, or --echo %d, which costs nothing upstream.", int(min(r.Echo.R, most)))
		}
		return "The workers wait for shards: a faster or nearer store helps."
	case loader.StageDecode:
		if r.Echo.Unit == "batch" && r.Echo.Factor > 1 {
			return "Decoding takes the workers' time: more cores help, or smaller pictures; a higher --echo decodes less."
		}
		return "Decoding takes the workers' time: more cores help, or smaller pictures; where the accelerator still waits, --unit batch --echo 2 decodes half as much."
	case loader.StageAugment:
		return "Resizing and normalising takes the workers' time: more cores help, or pictures stored nearer to the size of the crop."
	case StageDevice:
		return "The device is busy all the time: the input is fast enough, and echo would only repeat what could be fresh."
	default:
		return "Handing samples over takes the time, not the work on them: larger batches help."
	}
}
