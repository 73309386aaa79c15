package bench

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"shardtool/loader"
)

// WriteText writes the report for people: rates, the stages, the bottleneck
// and what would lift it, and how much to echo.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, part := range []func(*strings.Builder){
		r.writeSetup, r.writeRates, r.writeStages, r.writeAdvice, r.writeSweep, r.writeAgainst, r.writeWarnings,
	} {
		part(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) writeSetup(b *strings.Builder) {
	c := &r.Config
	source, others := strings.CutSuffix(c.Source, andOthers)
	source = shown(source)
	if others {
		source += andOthers
	}
	fmt.Fprintf(b, "%s: %s, batches of %d, %s\n", source, counted(c.Shards, "shard"), c.Batch, counted(c.Workers, "worker"))
	if c.World > 1 {
		fmt.Fprintf(b, "rank %d of %d, which makes its part of each batch\n", c.Rank, c.World)
	}
	if c.Upstream != "" {
		fmt.Fprintf(b, "the store gives %s\n", c.Upstream)
	}
	if c.Shuffle != "none" {
		fmt.Fprintf(b, "shuffle %s; ", c.Shuffle)
	}
	fmt.Fprintf(b, "%s; echo %s\n\n", c.Transform, r.echoWords())
}

// table writes rows of cells, the first of each to the left.
func table(b *strings.Builder, rows [][]string) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	t.Flush()
}

// numbers writes rows of cells to the right.
func numbers(b *strings.Builder, rows [][]string) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	t.Flush()
}

func (r *Report) writeRates(b *strings.Builder) {
	rows := [][]string{
		{"samples/s", fmt.Sprintf("%.1f emitted, %.1f fresh%s", r.EmittedPerS, r.FreshPerS, within(r.Noise))},
		{"MB/s", fmt.Sprintf("%.1f read", r.MBPerS)},
		{"Mpix/s", fmt.Sprintf("%.1f decoded", r.MpixPerS)},
		{"CPU", fmt.Sprintf("%.2f s for 1000 samples", r.CPUPer1000)},
		{"memory", fmt.Sprintf("%.0f MB at most, %.1f allocations a sample", r.PeakRSSMB, r.AllocsPerSample)},
		{"batches", fmt.Sprintf("%d in %.2f s, gap %.1f ms (p50), %.1f ms (p99)", r.Batches, r.Seconds, r.BatchGap.P50, r.BatchGap.P99)},
	}
	if r.DeviceWaits != nil {
		rows = append(rows, []string{"accelerator", fmt.Sprintf("a step in %s, %s samples/s at most; it waits %.0f%% of the time", span(r.Config.StepS), figureOf(1/r.Law.Step), 100**r.DeviceWaits)})
	}
	if r.Echo.Realised > 1 {
		copies := fmt.Sprintf("%.2f emissions of a fresh sample", r.Echo.Realised)
		if math.IsInf(r.Echo.Realised, 1) {
			copies = "copies alone, nothing fresh"
		}
		if r.Echo.Distance > 0 {
			copies += fmt.Sprintf("; copies %.0f samples apart, %.1f%% of all beside one in the same batch", r.Echo.Distance, 100*r.Echo.Duplicates)
		}
		if r.Echo.CacheHits > 0 {
			copies += fmt.Sprintf("; %.0f MB kept at most, %d hits, %d made again", r.Echo.CachePeakMB, r.Echo.CacheHits, r.Echo.CacheRebuilds)
		}
		rows = append(rows, []string{"echo", copies})
	}
	table(b, rows)
}

func (r *Report) writeStages(b *strings.Builder) {
	b.WriteString("\n")
	rows := [][]string{{"stage", "workers", "busy s", "waits for input s", "waits for room s"}}
	for _, s := range r.Stages {
		rows = append(rows, []string{s.Name, fmt.Sprint(s.Workers), fmt.Sprintf("%.2f", s.Busy), fmt.Sprintf("%.2f", s.WaitIn), fmt.Sprintf("%.2f", s.WaitOut)})
	}
	numbers(b, rows)
	fmt.Fprintf(b, "\nbottleneck: %s. %s\n", r.Bottleneck, r.lift())
}

func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %s", n, plural(thing))
}

func plural(thing string) string {
	if strings.HasSuffix(thing, "ch") {
		return thing + "es"
	}
	return thing + "s"
}

func (r *Report) echoWords() string {
	e := &r.Echo
	if e.Factor == 1 && !e.Auto {
		return "off"
	}
	s := fmt.Sprintf("%v of each %s, %s kept", e.Factor, e.Unit, e.Keep)
	if e.Auto {
		s = fmt.Sprintf("automatic, of each %s, %s kept", e.Unit, e.Keep)
	}
	if e.Buffer > 0 {
		s += fmt.Sprintf(", from a buffer of %d", e.Buffer)
	}
	return s
}

// lift says what would lift the bottleneck.
func (r *Report) lift() string {
	echo := "."
	if r.Advice.Factor > r.Echo.Factor {
		echo = "; or echo, see below."
	}
	switch r.Bottleneck {
	case loader.StageFetch:
		return "The workers wait for shards: a faster or nearer store helps" + echo
	case loader.StageDecode:
		return "Decoding takes the workers' time: more cores help, or smaller pictures" + echo
	case loader.StageAugment:
		return "Resizing and normalising takes the workers' time: more cores help, or pictures stored nearer to the size of the crop" + echo
	case StageDevice:
		return "The device is busy all the time: the input is fast enough, and echo would only repeat what could be fresh."
	default:
		return "Handing samples over takes the time, not the work on them: larger batches help."
	}
}

// writeAdvice says what R is and what follows from it.
func (r *Report) writeAdvice(b *strings.Builder) {
	e, l := &r.Echo, &r.Law
	fmt.Fprintf(b, "\nA sample takes %s to fetch, %s to decode, %s to augment", span(l.Fetch), span(l.Decode), span(l.Augment))
	if l.Step > 0 {
		fmt.Fprintf(b, ", %s on the accelerator", span(l.Step))
	}
	fmt.Fprintf(b, ".\nR = %s for %s, %s kept: %s before the echo, %s behind it", number(e.R), plural(e.Unit), e.Keep, span(l.Up), span(l.Down))
	if l.Step == 0 {
		b.WriteString("; the accelerator's step is not in it (--step-time, --accelerator)")
	}
	b.WriteString(".\n")
	if e.Factor > 1 && len(r.Sweep) == 0 {
		fmt.Fprintf(b, "By the law this echo gives %s emitted/s; measured are %.2f of that.\n", figureOf(l.EmittedPS), r.EmittedPerS/l.EmittedPS)
	}
	if len(r.Faster) > 0 {
		r.writeFaster(b)
		return
	}
	fmt.Fprintf(b, "Recommended: %s.\n", r.Advice.words())
}

func (a *Advice) words() string {
	what := "no echo"
	if a.Factor > 1 {
		what = a.flags()
	}
	return fmt.Sprintf("%s, which gives %s emitted/s of %s fresh/s by the law: %s", what, figureOf(a.EmittedPerS), figureOf(a.FreshPerS), a.Reason)
}

func (a *Advice) flags() string {
	return fmt.Sprintf("--echo %v --unit %s --keep %s", a.Factor, a.Unit, a.Keep)
}

// writeFaster says what to do for accelerators of some speeds.
func (r *Report) writeFaster(b *strings.Builder) {
	fmt.Fprintf(b, "Without echo an accelerator of up to %s samples/s is fed. By the law:\n\n", figureOf(r.Faster[0].Accelerator))
	rows := [][]string{{"accelerator/s", "R", "recommended", "emitted/s", "fresh/s"}}
	for i := range r.Faster {
		a := &r.Faster[i]
		what := "no echo"
		if a.Factor > 1 {
			what = a.flags()
		}
		rows = append(rows, []string{figureOf(a.Accelerator), number(a.R), what, figureOf(a.EmittedPerS), figureOf(a.FreshPerS)})
	}
	numbers(b, rows)
}

func (r *Report) writeSweep(b *strings.Builder) {
	if len(r.Sweep) == 0 {
		return
	}
	fmt.Fprintf(b, "\nSweep, medians of %d rounds, with the least and the most; the law by the stages' times at echo %v:\n\n", rounds, r.Sweep[0].Factor)
	rows := [][]string{{"echo", "steps/s", "least", "most", "law", "measured/law", "±", "emitted/s", "fresh/s", "bottleneck"}}
	for _, s := range r.Sweep {
		rows = append(rows, []string{
			fmt.Sprint(s.Factor), figureOf(s.StepsPerS), figureOf(s.Least), figureOf(s.Most), figureOf(s.Law), fmt.Sprintf("%.3f", s.Ratio), percent(s.Noise),
			figureOf(s.EmittedPerS), figureOf(s.FreshPerS), s.Bottleneck,
		})
	}
	numbers(b, rows)
}

func (r *Report) writeAgainst(b *strings.Builder) {
	if r.Against == nil {
		return
	}
	fmt.Fprintf(b, "\nAgainst the earlier report (version %s), with intervals of 95%% by the spread within each run:\n\n", shown(r.Against.Version))
	rows := [][]string{{"", "echo", "before", "now", "now/before", "from", "to", ""}}
	for _, c := range r.Against.Changes {
		from, to := fmt.Sprintf("%.3f", c.Low), fmt.Sprintf("%.3f", c.High)
		if c.High == 0 {
			from, to = "?", "?"
		}
		ratio := "?"
		if c.Before > 0 {
			ratio = fmt.Sprintf("%.3f", c.Ratio)
		}
		rows = append(rows, []string{c.What, fmt.Sprint(c.Factor), figureOf(c.Before), figureOf(c.Now), ratio, from, to, c.Verdict})
	}
	numbers(b, rows)
	for _, note := range r.Against.Notes {
		fmt.Fprintf(b, "%s\n", escaped(note))
	}
}

func (r *Report) writeWarnings(b *strings.Builder) {
	for _, w := range r.Warnings {
		fmt.Fprintf(b, "\nwarning: %s\n", escaped(w))
	}
}

// within writes the noise of a rate.
func within(noise float64) string {
	if noise >= 1 {
		return ""
	}
	return " (± " + percent(noise) + ")"
}

// percent writes a share to two digits, or to a whole number where that is more.
func percent(share float64) string {
	switch v := 100 * share; {
	case v >= 9.95:
		return fmt.Sprintf("%.0f%%", v)
	case v < 1e-3:
		return "0%"
	default:
		return fmt.Sprintf("%.2g%%", v)
	}
}

// shown writes a name that comes from outside as a terminal may have it: quoted
// where it does not print.
func shown(name string) string {
	if prints(name) {
		return name
	}
	return strconv.Quote(name)
}

// escaped is shown for a line that has such names in it.
func escaped(line string) string {
	if prints(line) {
		return line
	}
	q := strconv.Quote(line)
	return q[1 : len(q)-1]
}

func prints(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// number writes a ratio.
func number(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "infinite"
	case math.IsNaN(v):
		return "?"
	}
	return fmt.Sprintf("%.3g", v)
}

// figureOf writes a rate: to a whole number from 1000 on, else to four digits.
func figureOf(v float64) string {
	switch {
	case math.IsInf(v, 0) || math.IsNaN(v):
		return number(v)
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// span writes seconds as people read them.
func span(seconds float64) string {
	switch {
	case seconds >= 1 || seconds == 0:
		return fmt.Sprintf("%.3g s", seconds)
	case seconds >= 1e-3:
		return fmt.Sprintf("%.3g ms", seconds*1e3)
	default:
		return fmt.Sprintf("%.3g µs", seconds*1e6)
	}
}
