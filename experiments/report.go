package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"shardtool/internal/plot"
)

// Report is all that was found: results.json.
type Report struct {
	Plan     *Plan       `json:"plan"`
	Claims   []Claim     `json:"claims"`
	Arms     []Summary   `json:"arms"`
	Law      []LawResult `json:"law,omitempty"`
	Headline *Headline   `json:"headline,omitempty"`
}

// The files of a report.
const (
	runsFile     = "runs.jsonl"
	lawFile      = "law.json"
	headlineFile = "headline.json"
	resultsFile  = "results.json"
)

// makeReport judges the arms, with what else was measured in the folder.
func makeReport(p *Plan, arms []ArmResult, folder string) (*Report, error) {
	r := &Report{Plan: p, Claims: judge(p, arms), Arms: summaries(arms)}
	if err := readJSON(filepath.Join(folder, lawFile), &r.Law); err != nil {
		return nil, err
	}
	if err := readJSON(filepath.Join(folder, headlineFile), &r.Headline); err != nil {
		return nil, err
	}
	r.Claims = append(r.Claims, judgeLaw(r.Law)...)
	return r, nil
}

// readJSON reads a file, if it is there.
func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// write writes results.json and the plots to the folder, and the tables between
// the marks of the page, unless page is empty.
func (r *Report) write(folder, page string) error {
	if err := writeJSON(filepath.Join(folder, resultsFile), r); err != nil {
		return err
	}
	for name := range r.Plan.Workloads {
		if len(r.Plan.Workloads[name].Variants) < 2 {
			continue
		}
		if err := drawTo(filepath.Join(folder, "fresh-"+name+".svg"), r.curves(name)); err != nil {
			return err
		}
	}
	if len(r.Law) > 0 {
		if err := drawTo(filepath.Join(folder, "law.svg"), r.lawChart()); err != nil {
			return err
		}
	}
	if page == "" {
		return nil
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(filepath.Dir(page), folder)
	if err != nil {
		return err
	}
	text, err = between(text, r.markdown(filepath.ToSlash(rel)))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return replaceFile(page, text)
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	return replaceFile(path, append(data, '\n'))
}

func drawTo(path string, d plot.Drawing) error {
	var b bytes.Buffer
	if err := plot.Write(&b, d); err != nil {
		return err
	}
	return replaceFile(path, b.Bytes())
}

// replaceFile writes a file beside its place and renames it.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// The marks in the page.
const (
	beginMark = "<!-- experiments:begin -->"
	endMark   = "<!-- experiments:end -->"
)

// between puts text between the marks of a page.
func between(page []byte, text string) ([]byte, error) {
	before, rest, ok := bytes.Cut(page, []byte(beginMark))
	_, after, ok2 := bytes.Cut(rest, []byte(endMark))
	if !ok || !ok2 {
		return nil, fmt.Errorf("no %s and %s", beginMark, endMark)
	}
	return fmt.Appendf(nil, "%s%s\n%s%s%s", before, beginMark, text, endMark, after), nil
}

// seriesName is a variant and a buffer in a legend.
func seriesName(variant string, buffer int) string {
	if buffer == 0 {
		return variant + ", no buffer"
	}
	return fmt.Sprintf("%s, buffer %d", variant, buffer)
}

// curves draws F(e).
func (r *Report) curves(workload string) *plot.Chart {
	w := r.Plan.Workloads[workload]
	c := &plot.Chart{
		Title: fmt.Sprintf("%s: fresh samples until a test loss of %.2f", workload, w.Target),
		X:     plot.Axis{Label: "echo factor e", Scale: plot.Log2},
		Y:     plot.Axis{Label: "fresh samples (median, quartiles)", Scale: plot.Log10},
	}
	for _, v := range w.Variants {
		for _, buffer := range w.Buffers {
			s := plot.Series{Name: seriesName(v, buffer), Style: plot.Joined}
			for i := range r.Arms {
				a := &r.Arms[i]
				if a.Workload == workload && !a.Quality && (a.E == 1 || a.Variant == v && a.Buffer == buffer) {
					s.Points = append(s.Points, a.point(w.Fresh))
				}
			}
			c.Series = append(c.Series, s)
		}
	}
	if w.Large.Buffer == 0 {
		return c
	}
	for i := range r.Arms {
		if a := &r.Arms[i]; a.Workload == workload && !a.Quality && a.Buffer == w.Large.Buffer {
			c.Series = append(c.Series, plot.Series{Name: seriesName(a.Variant, a.Buffer), Points: []plot.Point{a.point(w.Fresh)}})
		}
	}
	return c
}

// point is a median of F with its quartiles; what is beyond the budget is drawn
// hollow, at the budget.
func (s *Summary) point(budget int64) plot.Point {
	bound := func(n Number) float64 { return min(float64(n), float64(budget)) }
	return plot.Point{
		X: float64(s.E), Y: bound(s.Fresh.Median), Low: bound(s.Fresh.Low), High: bound(s.Fresh.High), Open: math.IsInf(float64(s.Fresh.Median), 1),
	}
}

func (r *Report) lawChart() *plot.Chart {
	c := &plot.Chart{
		Title: "Time of a fresh sample behind a limited source",
		X:     plot.Axis{Label: "echo factor e", Scale: plot.Log2},
		Y:     plot.Axis{Label: "milliseconds a fresh sample", Scale: plot.Log10},
	}
	index := map[string]int{}
	add := func(name string, style plot.Style, p plot.Point) {
		i, ok := index[name]
		if !ok {
			i = len(c.Series)
			index[name] = i
			c.Series = append(c.Series, plot.Series{Name: name, Style: style})
		}
		c.Series[i].Points = append(c.Series[i].Points, p)
	}
	for _, l := range r.Law {
		if l.Variant == r.Plan.Law.Variants[0] {
			add(fmt.Sprintf("the law at R = %g", l.R), plot.Dashed, plot.Point{X: float64(l.E), Y: l.Law})
		}
		add(fmt.Sprintf("%s, R = %g", l.Variant, l.R), plot.Marks, plot.Point{X: float64(l.E), Y: l.Measured})
	}
	return c
}

// markdown is the section of the page; plots are in a folder relative to it.
func (r *Report) markdown(folder string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "This part is written by the program in [experiments](../experiments/README.md), which says how to run it again. Every number is of the runs that\n"+
		"[plan.json](../experiments/plan.json) lists, which was committed before the first of them; nothing that failed was left out. An arm is a variant, a factor and a\n"+
		"buffer; each has a learning rate of its own, chosen from the same grid on seeds of its own, and %d seeds. [results.json](%s) has all numbers.\n\n", len(r.Plan.Seeds), folder+"/"+resultsFile)
	b.WriteString("### Verdicts\n\n| claim | on | verdict | what was found |\n|---|---|---|---|\n")
	for _, c := range r.Claims {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.Claim, c.Workload, c.Verdict, c.Evidence)
	}
	b.WriteString("\nThe rules of the verdicts, fixed beforehand:\n\n")
	for _, rule := range r.Plan.Rules {
		fmt.Fprintf(&b, "- %s\n", rule)
	}
	for _, name := range workloadOrder {
		if w := r.Plan.Workloads[name]; w != nil {
			r.workloadTable(&b, name, w, folder)
		}
	}
	r.edges(&b)
	r.qualityTable(&b)
	r.lawTable(&b, folder)
	r.headlineText(&b)
	return b.String()
}

// workloadTable has a row for each variant and buffer, and a column for each e.
func (r *Report) workloadTable(b *strings.Builder, name string, w *WorkloadPlan, folder string) {
	fmt.Fprintf(b, "\n### Fresh samples to the target: %s\n\n", name)
	fmt.Fprintf(b, "Until a loss of %.2f on the test data, looked at every %d fresh samples: the median (quartiles), and how many times less than without echo.\n", w.Target, w.Every)
	fmt.Fprintf(b, "Where not all seeds got there within %d fresh samples, how many did.\n\n", w.Fresh)
	if len(w.Variants) > 1 {
		fmt.Fprintf(b, "![F(e) of %s](%s/fresh-%s.svg)\n\n", name, folder, name)
	}
	fmt.Fprint(b, "| variant | buffer |")
	for _, e := range w.Factors {
		fmt.Fprintf(b, " e = %d |", e)
	}
	fmt.Fprintf(b, "\n|---|---|%s\n", strings.Repeat("---|", len(w.Factors)))
	cells := map[Arm]string{}
	for i := range r.Arms {
		if a := &r.Arms[i]; a.Workload == name && !a.Quality {
			cells[a.Arm] = a.cell()
		}
	}
	fmt.Fprintf(b, "| no echo, e = 1 | | %s |%s\n", cells[Arm{Workload: name, Variant: "baseline", E: 1}], strings.Repeat(" |", len(w.Factors)-1))
	for _, v := range w.Variants {
		buffers := w.Buffers
		if len(w.Large.Factors) > 0 {
			buffers = append(buffers[:len(buffers):len(buffers)], w.Large.Buffer)
		}
		for _, buffer := range buffers {
			fmt.Fprintf(b, "| %s | %d |", v, buffer)
			for _, e := range w.Factors {
				fmt.Fprintf(b, " %s |", cells[Arm{Workload: name, Variant: v, E: e, Buffer: buffer}])
			}
			fmt.Fprintln(b)
		}
	}
}

func (s *Summary) cell() string {
	text := fmt.Sprintf("%s (%s to %s)", count(float64(s.Fresh.Median)), brief(s.Fresh.Low), brief(s.Fresh.High))
	if math.IsInf(float64(s.Fresh.Median), 1) {
		text = "not reached"
	} else if s.E > 1 {
		text += fmt.Sprintf(", %.2f×", s.Saving)
	}
	if s.Reached < s.Seeds {
		text += fmt.Sprintf(", %d of %d", s.Reached, s.Seeds)
	}
	return text
}

func brief(n Number) string {
	if math.IsInf(float64(n), 0) {
		return "∞"
	}
	return fmt.Sprintf("%.0f", float64(n))
}

// edges names the arms whose best learning rate is at an end of the grid: with
// a wider one they might have done better.
func (r *Report) edges(b *strings.Builder) {
	var names []string
	for i := range r.Arms {
		if a := &r.Arms[i]; a.Edge {
			names = append(names, fmt.Sprintf("%v at %g", a.Arm, a.Rate))
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(b, "\nBest at an end of the grid of learning rates, so that a wider one might do better: %s.\n", strings.Join(names, "; "))
	}
}

func (r *Report) qualityTable(b *strings.Builder) {
	fmt.Fprint(b, "\n### Final quality\n\nThe best that was seen on the test data over the whole budget of fresh samples: median (quartiles).\n\n"+
		"| workload | variant | e | buffer | fresh samples | accuracy | loss |\n|---|---|---|---|---|---|---|\n")
	for i := range r.Arms {
		a := &r.Arms[i]
		if !a.Quality {
			continue
		}
		fmt.Fprintf(b, "| %s | %s | %d | %d | %d | %.4f (%.4f to %.4f) | %.4f (%.4f to %.4f) |\n", a.Workload, a.Variant, a.E, a.Buffer,
			r.Plan.Workloads[a.Workload].Quality.Fresh, a.Accuracy.Median, a.Accuracy.Low, a.Accuracy.High, a.Loss.Median, a.Loss.Low, a.Loss.High)
	}
}

func (r *Report) lawTable(b *strings.Builder, folder string) {
	if len(r.Law) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Time of a fresh sample\n\nPictures of digits read by a limited source, %g ms steps of a batch of %d on a simulated accelerator.\n\n", r.Plan.Law.StepMS, workloads[lawWorkload].Batch)
	fmt.Fprintf(b, "![time of a fresh sample](%s/law.svg)\n\n| variant | R | e | ms a fresh sample | by the law | steps per second |\n|---|---|---|---|---|---|\n", folder)
	for _, l := range r.Law {
		fmt.Fprintf(b, "| %s | %g | %d | %.3f | %.3f | %.1f |\n", l.Variant, l.R, l.E, l.Measured, l.Law, l.Steps)
	}
}

func (r *Report) headlineText(b *strings.Builder) {
	h := r.Headline
	if h == nil {
		return
	}
	p := r.Plan.Headline
	fmt.Fprintf(b, "\n### The headline\n\nThe paper trains ResNet-50 on ImageNet 3.25 times faster, read over a network, with R about 6 and e = 5 before augmentation. Here: %s, read by a\n"+
		"source of %.1f KB/s, R = %g for the network's own step of %.2f ms, measured at the start; %s, e = %d, buffer %d; %d seeds, each without and with\n"+
		"echo in turn. Seconds are from the first batch asked for to the end of the step at which the target is met: evaluation is left out by training to the very\n"+
		"step that an earlier, equal run found. Making the network's weights and the index of the shard are left out too.\n\n", p.Workload, h.RateKB, h.R, h.Step*1e3, p.Variant, p.Factor, p.Buffer, len(p.Seeds))
	fmt.Fprint(b, "| seed | e | fresh samples | steps | seconds | in the network |\n|---|---|---|---|---|---|\n")
	for _, run := range h.Runs {
		fmt.Fprintf(b, "| %d | %d | %d | %d | %.2f | %.2f |\n", run.Seed, run.E, run.Fresh, run.Steps, run.Seconds, run.Network)
	}
	fmt.Fprintf(b, "\nTo the target **%.2f times faster** (quartiles %.2f to %.2f). The law says %.2f: F(1)/F(%d) = %.2f times fewer fresh samples, times max(R, 1)/max(R, e) = %.2f.\n"+
		"What bounds it is the first: a copy is worth less than a fresh sample, so it stays below %d. The second is 1 as long as e is at most R. What is lost beside the law is\n"+
		"the network's, which shares the cores with the pipeline: its seconds are in the last column.\n", h.Ratio.Median, h.Ratio.Low, h.Ratio.High,
		h.Predicted.Median, p.Factor, h.FreshGain.Median, max(h.R, 1)/max(h.R, float64(p.Factor)), p.Factor)
}
