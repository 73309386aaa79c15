package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"shardtool/experiments/internal/nn"
)

const fixtures = "../fixtures"

func plan(t *testing.T) *Plan {
	t.Helper()
	p, err := readPlan()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPlan counts the arms by hand. digits: the baseline, 3 variants with 4
// factors and 2 buffers, and a large buffer for each; text: 2 variants; wide
// digits: two arms. To the end: baselines, and each variant with 2 factors.
func TestPlan(t *testing.T) {
	p := plan(t)
	got := map[string]int{}
	seen := map[Arm]bool{}
	for _, a := range p.arms() {
		key := a.Workload
		if a.Quality {
			key += " to the end"
		}
		got[key]++
		if seen[a] {
			t.Errorf("%v is twice in the table", a)
		}
		seen[a] = true
	}
	want := map[string]int{"digits": 1 + 3*4*2 + 3, "text": 1 + 2*4*2 + 2, "wide digits": 2, "digits to the end": 1 + 3*2, "text to the end": 1 + 2*2}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("arms %v, want %v", got, want)
	}
	if len(p.Seeds) < 5 || len(p.Headline.Seeds) < 5 {
		t.Errorf("%d and %d seeds, want five or more", len(p.Seeds), len(p.Headline.Seeds))
	}
	for _, s := range p.TuningSeeds {
		if slices.Contains(p.Seeds, s) || slices.Contains(p.Headline.Seeds, s) {
			t.Errorf("rates are chosen on seed %d, which is reported", s)
		}
	}
	for _, a := range p.arms() {
		if _, err := p.run(a, 0.1, 1).options(); err != nil {
			t.Errorf("%v: %v", a, err)
		}
	}
}

// TestData: as many samples as fixtures/README.md says, none in both files, and
// all of them as the columns want them.
func TestData(t *testing.T) {
	for name, want := range map[string][2]int{"digits": {1280, 517}, "text": {8192, 512}} {
		w := workloads[name]
		if w.Train != want[0] {
			t.Errorf("%s: %d training samples, want %d", name, w.Train, want[0])
		}
		seen := map[string]int{}
		for i, test := range []bool{false, true} {
			n := 0
			for s, err := range w.open(fixtures, nil, test).Samples(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				var whole []byte
				for _, f := range s.Fields {
					whole = append(whole, f.Data...)
				}
				n++
				if at, ok := seen[string(whole)]; ok && at != i && name == "digits" {
					t.Errorf("%s: sample %d of the test data is among the training data", name, n)
				}
				seen[string(whole)] = i
			}
			if n != want[i] {
				t.Errorf("%s, test %v: %d samples, want %d", name, test, n, want[i])
			}
		}
		e, err := w.load(t.Context(), fixtures)
		if err != nil {
			t.Fatal(err)
		}
		loss, accuracy := e.metric(nn.New(w.Shape, 1))
		classes := float64(w.Shape.Layers[len(w.Shape.Layers)-1])
		if loss < 0.5*math.Log(classes) || loss > 3*math.Log(classes) || accuracy > 4/classes {
			t.Errorf("%s: a network that has learned nothing has a loss of %v, an accuracy of %v", name, loss, accuracy)
		}
		e.close()
	}
}

// TestCopies: which copies are equal, by variant. In one lane without a buffer,
// the two copies of a picture stand beside each other in a batch.
func TestCopies(t *testing.T) {
	for variant, equal := range map[string]bool{"sample before": false, "sample after": true} {
		ld, err := Run{Workload: "digits", Variant: variant, E: 2, Seed: 5}.open(t.Context(), fixtures, nil)
		if err != nil {
			t.Fatal(err)
		}
		same, n := 0, 0
		for b, err := range ld.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < b.Len(); i += 2 {
				first, second := b.Column(0).At(i), b.Column(0).At(i+1)
				if b.Refs[i].Index != b.Refs[i+1].Index || b.Refs[i+1].Copy != 1 {
					t.Fatalf("%s: %+v beside %+v", variant, b.Refs[i], b.Refs[i+1])
				}
				if n++; bytes.Equal(first.Bytes(), second.Bytes()) {
					same++
				}
			}
			if b.Release(); n >= 64 {
				break
			}
		}
		ld.Close()
		if equal && same != n || !equal && same > n/10 {
			t.Errorf("%s: %d of %d pairs of copies are equal", variant, same, n)
		}
	}
}

// TestRun counts by hand: 40 batches of 32 are an epoch of 1280, and with e of 2
// twice as many; a run ends with the evaluation that finds the budget used.
func TestRun(t *testing.T) {
	for _, tt := range []struct {
		run                  Run
		used, emitted, steps int64
	}{
		{Run{Workload: "digits", Variant: "baseline", E: 1, Fresh: 1280, Every: 128}, 1280, 1280, 40},
		{Run{Workload: "digits", Variant: "batch", E: 2, Fresh: 1280, Every: 128}, 1280, 2528, 79}, // at the first copy of the 40th
		{Run{Workload: "digits", Variant: "sample before", E: 2, Fresh: 1280, Every: 128}, 1280, 2560, 80},
		{Run{Workload: "text", Variant: "baseline", E: 1, Fresh: 1000, Every: 256}, 1024, 1024, 64},
		{Run{Workload: "text", Variant: "sample", E: 4, Fresh: 512, Every: 512}, 512, 2048, 128},
		{Run{Workload: "digits", Variant: "baseline", E: 1, Fresh: 1280, Every: 128, Target: 100}, 128, 128, 4}, // at once
	} {
		test, err := workloads[tt.run.Workload].load(t.Context(), fixtures)
		if err != nil {
			t.Fatal(err)
		}
		tt.run.Rate, tt.run.Seed = 0.02, 3
		res, err := tt.run.train(t.Context(), fixtures, test)
		if err != nil {
			t.Fatal(err)
		}
		if res.Used != tt.used || res.Emitted != tt.emitted || res.Steps != tt.steps || res.Reached != (tt.run.Target > 0) || res.Failed {
			t.Errorf("%+v, want %d fresh, %d emitted, %d steps", res, tt.used, tt.emitted, tt.steps)
		}
		again, err := tt.run.train(t.Context(), fixtures, test)
		if again.Loss != res.Loss || err != nil {
			t.Errorf("a loss of %v the first time and %v the second (%v)", res.Loss, again.Loss, err)
		}
		test.close()
	}
}

// TestDivergence: a loss that is no number ends a run, as not having got there.
func TestDivergence(t *testing.T) {
	r := Result{Run: Run{Target: 1}, Loss: unknownLoss}
	if !r.evaluated(math.NaN(), 0.1) || !r.Failed || r.Reached || !math.IsInf(r.fresh(), 1) {
		t.Errorf("%+v", r)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// TestShort does the cut-down table twice: the second time nothing is left to do
// but the report.
func TestShort(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("before\n"+beginMark+"\nold\n"+endMark+"\nafter\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	p := plan(t).short()
	o := &options{out: dir, page: page, fixtures: fixtures, only: "table", jobs: 2}
	arms, err := o.table(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := os.ReadFile(filepath.Join(dir, runsFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range arms {
		for _, r := range a.Runs {
			realised := float64(r.Emitted) / float64(r.Used)
			if r.Failed || !a.Quality && !r.Reached || realised > float64(a.E) || realised < 0.8*float64(a.E)-0.5 {
				t.Errorf("%+v", r)
			}
		}
	}
	if again, err := o.table(t.Context(), p); err != nil || !reflect.DeepEqual(again, arms) {
		t.Errorf("the kept table differs (%v)", err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, runsFile)); err != nil || !bytes.Equal(after, runs) {
		t.Errorf("runs were done again (%v)", err)
	}
	if err := writeJSON(filepath.Join(dir, lawFile), []LawResult{{"batch", 4, 1, 1.2, 1.25, 25}, {"batch", 4, 8, 2.5, 2.5, 100}}); err != nil {
		t.Fatal(err)
	}
	if err := writeJSON(filepath.Join(dir, headlineFile), &Headline{R: 6, Runs: []HeadlineRun{{E: 5, Seed: 1}}}); err != nil {
		t.Fatal(err)
	}
	r, err := makeReport(p, arms, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.write(dir, page); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := readJSON(filepath.Join(dir, resultsFile), &back); err != nil || len(back.Arms) != len(p.arms()) || len(back.Claims) != 17 {
		t.Errorf("%d arms and %d claims (%v)", len(back.Arms), len(back.Claims), err)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.HasPrefix(string(text), "before\n"+beginMark+"\n") || !strings.HasSuffix(string(text), endMark+"\nafter\n") || strings.Contains(string(text), "old") {
		t.Errorf("%v, the page:\n%s", err, text)
	}
	for _, name := range []string{"fresh-digits.svg", "fresh-text.svg", "law.svg"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(bytes.NewReader(data))
		for err == nil {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".new-*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// TestKept: a last line that was cut off is done again, a broken one within is
// an error that says where.
func TestKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	first, second := Result{Run: Run{Seed: 1, E: 2}, Used: 10}, Result{Run: Run{Seed: 2, E: 2}, Used: 20}
	reopen := func() *kept {
		t.Helper()
		k, err := openKept(path)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	k := reopen()
	if err := errors.Join(k.add(first), k.add(second), k.close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data[:len(data)-5], 0o666); err != nil {
		t.Fatal(err)
	}
	k = reopen()
	if got, ok := k.find(first.Run); !ok || got != first {
		t.Errorf("%+v, %v", got, ok)
	}
	if _, ok := k.find(second.Run); ok {
		t.Error("a run whose line was cut off")
	}
	if err := errors.Join(k.add(second), k.close()); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, data) {
		t.Errorf("%q, want %q (%v)", again, data, err)
	}
	if err := os.WriteFile(path, append([]byte("{}x\n"), data...), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := openKept(path); err == nil || !strings.Contains(err.Error(), "byte 0") {
		t.Errorf("a broken line: %v", err)
	}
}

// TestTuning plays runs: what is kept is not run. The rate that needs the fewest
// fresh samples in sum is taken; a seed that does not get there counts twice the
// budget of 100; equal ones are told apart by the loss.
func TestTuning(t *testing.T) {
	p := &Plan{TuningSeeds: []uint64{1, 2}, Workloads: map[string]*WorkloadPlan{"digits": {Fresh: 100, Every: 1, Rates: []float64{1, 2, 3}}}}
	a := Arm{Workload: "digits", Variant: "batch", E: 2}
	for _, tt := range []struct {
		name string
		used [3][2]int64 // by rate and seed; 0: not reached
		loss [3]float64
		want float64
	}{
		{"fewest", [3][2]int64{{50, 60}, {50, 40}, {90, 5}}, [3]float64{}, 2},
		{"not reached", [3][2]int64{{10, 0}, {90, 90}, {0, 0}}, [3]float64{}, 2},
		{"ties", [3][2]int64{{50, 50}, {40, 60}, {60, 40}}, [3]float64{3, 1, 2}, 2},
		{"none", [3][2]int64{}, [3]float64{3, 2, 1}, 3},
	} {
		k := &kept{runs: map[Run]Result{}}
		tb := &table{plan: p, kept: k}
		for i, rate := range p.Workloads["digits"].Rates {
			for j, seed := range p.TuningSeeds {
				for budget := int64(1); budget <= 100; budget++ { // whichever it is cut to
					r := p.run(a, rate, seed)
					r.Fresh = budget
					res := Result{Run: r, Used: tt.used[i][j], Loss: tt.loss[i], Reached: tt.used[i][j] > 0 && tt.used[i][j] <= budget}
					k.runs[r] = res
				}
			}
		}
		if got, err := tb.tune(context.Background(), a); err != nil || got != tt.want {
			t.Errorf("%s: rate %v, want %v (%v)", tt.name, got, tt.want, err)
		}
	}
}

func TestBetween(t *testing.T) {
	for _, page := range []string{"", beginMark, endMark + beginMark} {
		if _, err := between([]byte(page), "x"); err == nil {
			t.Errorf("%q has both marks", page)
		}
	}
}

func TestUsage(t *testing.T) {
	o := &options{only: "tables"}
	if err := o.do(t.Context()); err == nil {
		t.Error("an unknown part")
	}
	dir := t.TempDir()
	o = &options{only: "headline", out: dir}
	if err := o.do(t.Context()); err == nil || !strings.Contains(err.Error(), "run the table first") {
		t.Errorf("a headline without a table: %v", err)
	}
}

// TestSame: runs of the table in the tree come out as they did.
func TestSame(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the table in the tree was made on amd64; others round sums of products in another way")
	}
	k, err := openKept(copyOf(t, filepath.Join("..", "docs", "echo", runsFile)))
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	if len(k.runs) == 0 {
		t.Skip("no table in the tree yet")
	}
	p := plan(t)
	for _, a := range []Arm{
		{"digits", "baseline", 1, 0, false}, {"digits", "sample before", 4, 256, false}, {"digits", "sample after", 2, 0, false},
		{"digits", "batch", 2, 256, false}, {"text", "baseline", 1, 0, false},
	} {
		for r, want := range k.runs {
			if w := p.Workloads[a.Workload]; r.Workload != a.Workload || r.Variant != a.Variant || r.E != a.E || r.Buffer != a.Buffer ||
				r.Seed != p.Seeds[0] || r.Fresh != w.Fresh {
				continue
			}
			test, err := workloads[a.Workload].load(t.Context(), fixtures)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.train(t.Context(), fixtures, test)
			if got.Seconds = want.Seconds; got != want || err != nil {
				t.Errorf("%+v, in the table %+v (%v)", got, want, err)
			}
			test.close()
		}
	}
}

// copyOf is a copy of a file, empty where there is none: opening a table may
// write to it.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(to, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return to
}
