package main

import (
	"fmt"
	"math"
	"strings"

	"shardtool/experiments/internal/stats"
)

// The verdicts.
const (
	Supported    = "supported"
	NotSupported = "not supported"
	Unclear      = "unclear"
)

// Claim is one of the paper's, and what the table says about it.
type Claim struct {
	Claim    string `json:"claim"`
	Workload string `json:"workload"`
	Verdict  string `json:"verdict"`
	Evidence string `json:"evidence"`
}

// level is the p-value below which a difference counts, divided by the number
// of comparisons that a claim makes (Bonferroni).
const level = 0.05

// The margins within which a median is no worse than another.
const (
	freshMargin    = 1.05  // times the fresh samples
	accuracyMargin = 0.005 // of the share classified rightly
	lossMargin     = 1.01  // times the loss
)

// evidence is what claims are judged by: the arms of one workload.
type evidence struct {
	workload string
	plan     *WorkloadPlan
	arms     map[Arm]*ArmResult
}

func evidenceOf(p *Plan, workload string, arms []ArmResult) *evidence {
	e := &evidence{workload, p.Workloads[workload], map[Arm]*ArmResult{}}
	for i := range arms {
		if arms[i].Workload == workload {
			e.arms[arms[i].Arm] = &arms[i]
		}
	}
	return e
}

func (e *evidence) arm(variant string, factor, buffer int) *ArmResult {
	return e.arms[Arm{Workload: e.workload, Variant: variant, E: factor, Buffer: buffer}]
}

func (e *evidence) baseline() *ArmResult { return e.arm("baseline", 1, 0) }

// echoed are the arms with e above 1 that are trained to the target, in the
// plan's order.
func (e *evidence) echoed(p *Plan) (arms []*ArmResult) {
	for _, a := range p.arms() {
		if r := e.arms[a]; r != nil && a.E > 1 && !a.Quality {
			arms = append(arms, r)
		}
	}
	return arms
}

// judge returns the verdict on each claim that is made of trainings.
func judge(p *Plan, arms []ArmResult) (claims []Claim) {
	for _, name := range workloadOrder[:2] {
		if p.Workloads[name] == nil {
			continue
		}
		e := evidenceOf(p, name, arms)
		add := func(claim, verdict, evidence string) {
			claims = append(claims, Claim{claim, name, verdict, evidence})
		}
		echoed := e.echoed(p)
		v, s := savesAtTwo(e.baseline(), echoed)
		add("e = 2 needs fewer fresh samples, in some variant", v, s)
		v, s = atMostE(e.baseline(), echoed)
		add("a factor of e saves at most e times", v, s)
		v, s = noWorse(e.pairs(echoed, "sample before", "sample after"))
		add("echo before augmentation is at least as good as after it", v, s)
		v, s = noWorse(e.unbuffered(echoed))
		add("without a buffer, sample echo is at least as good as batch echo", v, s)
		v, s = noWorse(e.buffered(echoed))
		add("a larger buffer does not hurt", v, s)
		v, s = hasMinimum(e)
		add("F(e) falls, and rises again", v, s)
		v, s = sameQuality(e, p)
		add("the final quality is the same", v, s)
		v, s = noGain(e.baseline(), echoed)
		add("no gain at R ≤ 1, where the time is that of the steps", v, s)
	}
	return claims
}

// describe is an arm without its workload.
func describe(a Arm) string {
	if a.E == 1 {
		return "e = 1"
	}
	return fmt.Sprintf("%s, e = %d, buffer %d", a.Variant, a.E, a.Buffer)
}

func count(v float64) string {
	if math.IsInf(v, 0) {
		return "more than the budget"
	}
	return fmt.Sprintf("%.0f", v)
}

func savesAtTwo(base *ArmResult, echoed []*ArmResult) (verdict, words string) {
	var best *ArmResult
	bestP, fewer, n := 2.0, 0, 0
	for _, a := range echoed {
		if a.E != 2 {
			continue
		}
		n++
		if stats.Median(a.fresh()) < stats.Median(base.fresh()) {
			fewer++
		}
		if p := stats.Less(a.fresh(), base.fresh()); p < bestP {
			best, bestP = a, p
		}
	}
	if best == nil {
		return Unclear, "no arm"
	}
	words = fmt.Sprintf("%d of %d arms have a lower median; best: %s with %s against %s, p = %.3f, of %d compared", fewer, n, describe(best.Arm),
		count(stats.Median(best.fresh())), count(stats.Median(base.fresh())), bestP, n)
	switch {
	case bestP < level/float64(n):
		return Supported, words
	case fewer == 0:
		return NotSupported, words
	}
	return Unclear, words
}

// times returns the values, each so many times as large.
func times(values []float64, by int) (scaled []float64) {
	for _, v := range values {
		scaled = append(scaled, v*float64(by))
	}
	return scaled
}

func atMostE(base *ArmResult, echoed []*ArmResult) (verdict, words string) {
	verdict = Supported
	most, at, n := 0.0, "", 0
	for _, a := range echoed {
		share := stats.Median(base.fresh()) / stats.Median(a.fresh()) / float64(a.E)
		if n++; share > most {
			most, at = share, describe(a.Arm)
		}
		if share > 1 && verdict == Supported {
			verdict = Unclear
		}
		if stats.Less(times(a.fresh(), a.E), base.fresh()) < level/float64(len(echoed)) {
			verdict = NotSupported
		}
	}
	return verdict, fmt.Sprintf("the most, as a share of e, of %d arms: %.2f (%s)", n, most, at)
}

// pair is two arms of which the first is claimed to be no worse.
type pair struct{ a, b *ArmResult }

// pairs are the arms of two variants that are alike otherwise.
func (e *evidence) pairs(echoed []*ArmResult, first, second string) (pairs []pair) {
	for _, a := range echoed {
		if b := e.arm(second, a.E, a.Buffer); a.Variant == first && b != nil {
			pairs = append(pairs, pair{a, b})
		}
	}
	return pairs
}

func (e *evidence) unbuffered(echoed []*ArmResult) (pairs []pair) {
	for _, v := range e.plan.Variants {
		if v == "batch" {
			continue
		}
		for _, p := range e.pairs(echoed, v, "batch") {
			if p.a.Buffer == 0 {
				pairs = append(pairs, p)
			}
		}
	}
	return pairs
}

// buffered sets each arm with a buffer beside the next smaller one.
func (e *evidence) buffered(echoed []*ArmResult) (pairs []pair) {
	for _, a := range echoed {
		var next *ArmResult
		for _, b := range echoed {
			if b.Variant == a.Variant && b.E == a.E && b.Buffer < a.Buffer && (next == nil || b.Buffer > next.Buffer) {
				next = b
			}
		}
		if next != nil {
			pairs = append(pairs, pair{a, next})
		}
	}
	return pairs
}

// noWorse judges that the first of each pair needs no more fresh samples than
// the second. Pairs of which neither reaches the target say nothing.
func noWorse(pairs []pair) (verdict, words string) {
	if len(pairs) == 0 {
		return Unclear, "there is no augmentation: the copies are equal either way"
	}
	var better, worse, within, said int
	var against []string
	for _, p := range pairs {
		a, b := stats.Median(p.a.fresh()), stats.Median(p.b.fresh())
		if math.IsInf(a, 1) && math.IsInf(b, 1) {
			continue
		}
		if said++; a <= freshMargin*b {
			within++
		}
		switch limit := level / float64(len(pairs)); {
		case stats.Less(p.a.fresh(), p.b.fresh()) < limit:
			better++
		case stats.Less(p.b.fresh(), p.a.fresh()) < limit:
			worse++
			against = append(against, fmt.Sprintf("%s: %s, beside %s: %s", describe(p.a.Arm), count(a), describe(p.b.Arm), count(b)))
		}
	}
	words = fmt.Sprintf("of %d pairs, %d better and %d worse beyond chance; in %d of %d the median is at most 5%% higher", len(pairs), better, worse, within, said)
	if len(against) > 0 {
		words += "; against it: " + strings.Join(against, "; ")
	}
	switch {
	case worse > 0:
		return NotSupported, words
	case said > 0 && 4*within >= 3*said:
		return Supported, words
	}
	return Unclear, words
}

// hasMinimum looks at each curve F(e), of a variant and buffer, for a factor
// between 1 and the greatest that needs the fewest fresh samples, and fewer than
// the greatest beyond chance.
func hasMinimum(e *evidence) (verdict, words string) {
	var curves, inside int
	var parts []string
	for _, v := range e.plan.Variants {
		for _, buffer := range e.plan.Buffers {
			best, last := e.baseline(), (*ArmResult)(nil)
			for _, f := range e.plan.Factors {
				last = e.arm(v, f, buffer)
				if stats.Median(last.fresh()) < stats.Median(best.fresh()) {
					best = last
				}
			}
			curves++
			rises := best != last && stats.Less(best.fresh(), last.fresh()) < level
			if best.E > 1 && rises {
				inside++
			}
			word := "and no rise beyond chance up to"
			if rises {
				word = "rising to"
			}
			if best == last {
				word = "still falling at"
			}
			parts = append(parts, fmt.Sprintf("%s, buffer %d: least at e = %d, %s %d", v, buffer, best.E, word, last.E))
		}
	}
	words = fmt.Sprintf("in %d of %d curves (%s)", inside, curves, strings.Join(parts, "; "))
	switch inside {
	case 0:
		return NotSupported, words
	case curves:
		return Supported, words
	}
	return Unclear, words
}

// sameQuality sets the best metric of the arms that were trained to the end
// beside the baseline's: the share of digits classified wrongly, or the loss.
func sameQuality(e *evidence, p *Plan) (verdict, words string) {
	quality := func(a *ArmResult) []float64 {
		return a.each(func(r Result) float64 {
			if e.workload == "text" {
				return r.Loss
			}
			return 1 - r.Accuracy
		})
	}
	allowed := func(v float64) float64 {
		if e.workload == "text" {
			return v * lossMargin
		}
		return v + accuracyMargin
	}
	base := e.arms[Arm{Workload: e.workload, Variant: "baseline", E: 1, Quality: true}]
	var arms []*ArmResult
	for _, a := range p.arms() {
		if r := e.arms[a]; r != nil && a.Quality && a.E > 1 {
			arms = append(arms, r)
		}
	}
	if base == nil || len(arms) == 0 {
		return Unclear, "no arm"
	}
	of := stats.Median(quality(base))
	verdict = Supported
	within := 0
	var parts []string
	for _, a := range arms {
		m := stats.Median(quality(a))
		parts = append(parts, fmt.Sprintf("%s: %.4f", describe(a.Arm), m))
		switch {
		case m <= allowed(of):
			within++
		case stats.Less(quality(base), quality(a)) < level/float64(len(arms)):
			verdict = NotSupported
		case verdict == Supported:
			verdict = Unclear
		}
	}
	name := "the lowest loss"
	if e.workload != "text" {
		name = "the lowest share classified wrongly"
	}
	return verdict, fmt.Sprintf("%s, %.4f at e = 1, is as good or within the margin in %d of %d arms (%s)", name, of, within, len(arms), strings.Join(parts, "; "))
}

func noGain(base *ArmResult, echoed []*ArmResult) (verdict, words string) {
	verdict = Supported
	least, at := math.Inf(1), "none"
	of := stats.Median(base.steps())
	for _, a := range echoed {
		m := stats.Median(a.steps()) / of
		if m < least {
			least, at = m, describe(a.Arm)
		}
		switch {
		case stats.Less(a.steps(), base.steps()) < level/float64(len(echoed)):
			verdict = NotSupported
		case m < 1 && verdict == Supported:
			verdict = Unclear
		}
	}
	return verdict, fmt.Sprintf("the fewest steps to the target of %d arms are %.2f times those without echo (%s)", len(echoed), least, at)
}

// judgeLaw judges the time of a fresh sample.
func judgeLaw(results []LawResult) (claims []Claim) {
	if len(results) == 0 {
		return nil
	}
	verdict, worst, within := Supported, 0.0, 0
	for _, r := range results {
		off := math.Abs(r.Measured/r.Law - 1)
		worst = max(worst, off)
		switch {
		case off <= 0.05:
			within++
		case off > 0.15:
			verdict = NotSupported
		case verdict == Supported:
			verdict = Unclear
		}
	}
	words := fmt.Sprintf("%d of %d measured times are within 5%% of the law; the largest difference is %.1f%%", within, len(results), 100*worst)
	if gain, r := fastestBelowOne(results); r > 0 {
		words += fmt.Sprintf("; at R = %g, echo changes the steps per second by %.1f%% at most", r, 100*gain)
	}
	return []Claim{{"the time of an upstream step is flat up to R, then linear", "simulated accelerator", verdict, words}}
}

// fastestBelowOne returns by which share the steps per second with echo differ
// at most from those without, at an R of 1 or less, which it returns too.
func fastestBelowOne(results []LawResult) (share, r float64) {
	for _, without := range results {
		for _, l := range results {
			if without.E == 1 && l.E > 1 && l.R <= 1 && l.R == without.R && l.Variant == without.Variant {
				share, r = max(share, math.Abs(l.Steps/without.Steps-1)), l.R
			}
		}
	}
	return share, r
}
