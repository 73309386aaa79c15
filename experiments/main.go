// Command experiments tests the claims of "Faster Neural Network Training with
// Data Echoing" (arXiv 1907.05550) in small: real networks, trained on real data
// that this project's own loader reads and echoes, as plan.json says.
//
//	go run . -out ../docs/echo -page ../docs/echo.md
//
// does what has not been done, and writes the tables, the plots and the page.
// Runs that are done are kept in runs.jsonl of the folder, and a table that was
// interrupted goes on. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
)

func main() {
	log.SetFlags(0)
	var o options
	flag.StringVar(&o.out, "out", "out", "folder of runs.jsonl, results.json and the plots")
	flag.StringVar(&o.page, "page", "", "page to write the tables into; none if empty")
	flag.StringVar(&o.fixtures, "fixtures", "../fixtures", "folder of the data")
	flag.StringVar(&o.only, "only", "", "table, law, headline or report: do that alone, and what is missing of the table that it needs (several: with commas)")
	flag.BoolVar(&o.short, "short", false, "a cut-down plan, which shows in a minute that all parts work")
	flag.IntVar(&o.jobs, "jobs", runtime.GOMAXPROCS(0), "arms of the table trained at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.do(ctx); err != nil {
		log.Fatal(err)
	}
}

type options struct {
	out, page, fixtures, only string
	short                     bool
	jobs                      int
}

// does reports whether a part is to be done.
func (o *options) does(part string) bool {
	if o.only == "" {
		return true
	}
	for _, p := range strings.Split(o.only, ",") {
		if p == part {
			return true
		}
	}
	return false
}

func (o *options) check() error {
	if o.only == "" {
		return nil
	}
	for _, p := range strings.Split(o.only, ",") {
		switch p {
		case "table", "law", "headline", "report":
		default:
			return fmt.Errorf("-only %q: table, law, headline or report", p)
		}
	}
	return nil
}

// do does the parts. Without its runs the table is done before the headline and
// the report, which need it.
func (o *options) do(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	p, err := readPlan()
	if err != nil {
		return err
	}
	if o.short {
		p = p.short()
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	if o.does("law") {
		results, err := measureLaw(ctx, p.Law, o.fixtures, os.Stderr)
		if err != nil {
			return err
		}
		if err := writeJSON(filepath.Join(o.out, lawFile), results); err != nil {
			return err
		}
	}
	if !o.does("table") && !o.does("headline") && !o.does("report") {
		return nil
	}
	if o.only == "headline" || o.only == "report" {
		if _, err := os.Stat(filepath.Join(o.out, runsFile)); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is not there: run the table first", filepath.Join(o.out, runsFile))
		}
	}
	arms, err := o.table(ctx, p)
	if err != nil {
		return err
	}
	if o.does("headline") {
		h, err := measureHeadline(ctx, p, o.fixtures, headlineRates(p, arms), os.Stderr)
		if err != nil {
			return err
		}
		if err := writeJSON(filepath.Join(o.out, headlineFile), h); err != nil {
			return err
		}
	}
	r, err := makeReport(p, arms, o.out)
	if err != nil {
		return err
	}
	return r.write(o.out, o.page)
}

func (o *options) table(ctx context.Context, p *Plan) (arms []ArmResult, err error) {
	k, err := openKept(filepath.Join(o.out, runsFile))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	t := &table{plan: p, fixtures: o.fixtures, kept: k, progress: os.Stderr}
	return t.do(ctx, o.jobs)
}

// headlineRates are the learning rates that the table chose for the headline's
// two arms, by factor.
func headlineRates(p *Plan, arms []ArmResult) map[int]float64 {
	rates := map[int]float64{}
	for _, a := range arms {
		h := p.Headline
		if a.Workload == h.Workload && !a.Quality && (a.E == 1 || a.Variant == h.Variant && a.E == h.Factor && a.Buffer == h.Buffer) {
			rates[a.E] = a.Rate
		}
	}
	return rates
}
