package main

import (
	"strings"
	"testing"
)

// armOf is an arm with its fresh samples by seed, 0 for a target that was not
// reached, and as many steps as batches of one sample.
func armOf(variant string, e, buffer int, fresh ...int64) *ArmResult {
	a := &ArmResult{Arm: Arm{Workload: "digits", Variant: variant, E: e, Buffer: buffer}}
	for _, f := range fresh {
		a.Runs = append(a.Runs, Result{Reached: f > 0, Used: f, Emitted: f * int64(e), Steps: f * int64(e)})
	}
	return a
}

func TestVerdicts(t *testing.T) {
	base := armOf("baseline", 1, 0, 100, 110, 120, 130, 140)
	all := func(arms ...*ArmResult) []*ArmResult { return arms }
	half := armOf("sample before", 2, 0, 60, 61, 62, 63, 64)
	like := armOf("batch", 2, 0, 101, 111, 119, 131, 139)
	worse := armOf("batch", 2, 0, 200, 201, 202, 203, 0)
	third := armOf("sample before", 2, 0, 30, 31, 32, 33, 34)
	none := armOf("batch", 2, 0, 0, 0, 0, 0, 0)
	for _, tt := range []struct {
		name string
		got  func() (string, string)
		want string
		says string
	}{
		// Five against five, wholly apart: p = 1/252 = 0.004.
		{"saves", func() (string, string) { return savesAtTwo(base, all(half, like)) }, Supported, "p = 0.004"},
		{"saves in none", func() (string, string) { return savesAtTwo(base, all(worse)) }, NotSupported, "0 of 1"},
		{"saves by chance", func() (string, string) { return savesAtTwo(base, all(like)) }, Unclear, "1 of 1"},
		{"saves, other factors", func() (string, string) { return savesAtTwo(base, all(armOf("batch", 4, 0, 1))) }, Unclear, "no arm"},
		{"at most e", func() (string, string) { return atMostE(base, all(half, worse)) }, Supported, "0.97"}, // 120/62/2
		{"more than e", func() (string, string) { return atMostE(base, all(third)) }, NotSupported, "1.88"},  // 120/32/2
		{"as good", func() (string, string) { return noWorse([]pair{{half, like}}) }, Supported, "1 better and 0 worse"},
		{"worse", func() (string, string) { return noWorse([]pair{{like, half}}) }, NotSupported, "against it: batch"},
		{"as good, with what says nothing", func() (string, string) { return noWorse([]pair{{half, like}, {none, none}}) }, Supported, "1 of 1"},
		{"mixed", func() (string, string) { return noWorse([]pair{{armOf("batch", 2, 0, 100, 150, 160, 170, 140), base}}) }, Unclear, "0 of 1"},
		{"no pairs", func() (string, string) { return noWorse(nil) }, Unclear, "no augmentation"},
		{"no gain", func() (string, string) { return noGain(base, all(half, like)) }, Supported, "1.03"}, // 62*2/120
		{"gain", func() (string, string) { return noGain(base, all(third)) }, NotSupported, "0.53"},      // 32*2/120
	} {
		verdict, words := tt.got()
		if verdict != tt.want || !strings.Contains(words, tt.says) {
			t.Errorf("%s: %s (%s), want %s with %q", tt.name, verdict, words, tt.want, tt.says)
		}
	}
}

func TestMinimum(t *testing.T) {
	e := &evidence{workload: "digits", plan: &WorkloadPlan{Variants: []string{"batch", "sample after"}, Factors: []int{2, 4}, Buffers: []int{0}}, arms: map[Arm]*ArmResult{}}
	set := func(arms ...*ArmResult) {
		for _, a := range arms {
			e.arms[a.Arm] = a
		}
	}
	set(armOf("baseline", 1, 0, 100, 101, 102, 103, 104),
		armOf("batch", 2, 0, 60, 61, 62, 63, 64), armOf("batch", 4, 0, 80, 81, 82, 83, 84),
		armOf("sample after", 2, 0, 60, 61, 62, 63, 64), armOf("sample after", 4, 0, 40, 41, 42, 43, 44))
	if v, words := hasMinimum(e); v != Unclear || !strings.Contains(words, "in 1 of 2 curves (batch, buffer 0: least at e = 2, rising to 4; sample after, buffer 0: least at e = 4, still falling at 4)") {
		t.Errorf("%s: %s", v, words)
	}
	set(armOf("sample after", 4, 0, 0, 0, 0, 0, 0)) // not reached at all
	if v, words := hasMinimum(e); v != Supported {
		t.Errorf("%s: %s", v, words)
	}
	set(armOf("batch", 4, 0, 60, 61, 62, 63, 65), armOf("sample after", 2, 0, 160, 161, 162, 163, 164))
	if v, words := hasMinimum(e); v != NotSupported || !strings.Contains(words, "no rise beyond chance") || !strings.Contains(words, "least at e = 1, rising to 4") {
		t.Errorf("%s: %s", v, words)
	}
}

func TestQuality(t *testing.T) {
	p := &Plan{Workloads: map[string]*WorkloadPlan{"digits": {Variants: []string{"batch"}, Quality: QualityPlan{Fresh: 1, Factors: []int{2}}}}}
	of := func(variant string, e int, accuracy ...float64) ArmResult {
		a := ArmResult{Arm: Arm{Workload: "digits", Variant: variant, E: e, Quality: true}}
		for _, v := range accuracy {
			a.Runs = append(a.Runs, Result{Accuracy: v})
		}
		return a
	}
	base := of("baseline", 1, 0.97, 0.971, 0.972, 0.973, 0.974)
	for _, tt := range []struct {
		accuracy []float64
		want     string
	}{
		{[]float64{0.968, 0.969, 0.97, 0.969, 0.968}, Supported},    // 0.3 points below
		{[]float64{0.98, 0.98, 0.98, 0.98, 0.98}, Supported},        // better
		{[]float64{0.95, 0.951, 0.952, 0.953, 0.954}, NotSupported}, // 2 points, beyond chance
		{[]float64{0.99, 0.99, 0.96, 0.96, 0.96}, Unclear},          // 1.2 points, and not
	} {
		e := evidenceOf(p, "digits", []ArmResult{base, of("batch", 2, tt.accuracy...)})
		if v, words := sameQuality(e, p); v != tt.want {
			t.Errorf("%v: %s (%s), want %s", tt.accuracy, v, words, tt.want)
		}
	}
}

func TestLawVerdict(t *testing.T) {
	for _, tt := range []struct {
		measured float64
		want     string
	}{{1.04, Supported}, {0.97, Supported}, {1.1, Unclear}, {1.2, NotSupported}} {
		c := judgeLaw([]LawResult{{Measured: 1, Law: 1}, {Measured: tt.measured, Law: 1}})
		if c[0].Verdict != tt.want {
			t.Errorf("%v: %+v", tt.measured, c[0])
		}
	}
	c := judgeLaw([]LawResult{{"batch", 0.5, 1, 1, 1, 100}, {"batch", 0.5, 4, 4, 4, 98}, {"batch", 4, 1, 1, 1, 25}, {"batch", 4, 4, 1, 1, 100}})
	if !strings.Contains(c[0].Evidence, "at R = 0.5, echo changes the steps per second by 2.0% at most") {
		t.Error(c[0].Evidence)
	}
	if judgeLaw(nil) != nil {
		t.Error("a verdict on nothing")
	}
}

// TestPairs: which arms are set beside which.
func TestPairs(t *testing.T) {
	p := &Plan{Workloads: map[string]*WorkloadPlan{"digits": plan(t).Workloads["digits"]}}
	var arms []ArmResult
	for _, a := range p.arms() {
		arms = append(arms, ArmResult{Arm: a})
	}
	e := evidenceOf(p, "digits", arms)
	echoed := e.echoed(p)
	// 9 arms of each kind of sample echo: four factors with two buffers, and the large one.
	if n := len(e.pairs(echoed, "sample before", "sample after")); n != 9 {
		t.Errorf("%d pairs of before and after, want 9", n)
	}
	if n := len(e.unbuffered(echoed)); n != 8 {
		t.Errorf("%d pairs of sample and batch without a buffer, want 2 times 4", n)
	}
	if n := len(e.buffered(echoed)); n != 15 {
		t.Errorf("%d pairs of buffers, want 3 times 4+1", n)
	}
}
