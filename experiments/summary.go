package main

import (
	"encoding/json"
	"math"

	"shardtool/experiments/internal/stats"
)

// Number is a number that may be infinite: "inf" in JSON. +Inf fresh samples
// are more than the budget.
type Number float64

// MarshalJSON writes four digits or more.
func (n Number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsInf(v, 0) || math.IsNaN(v) {
		return []byte(`"inf"`), nil
	}
	return json.Marshal(math.Round(float64(n)*1e4) / 1e4)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (n *Number) UnmarshalJSON(p []byte) error {
	if string(p) == `"inf"` {
		*n = Number(math.Inf(1))
		return nil
	}
	return json.Unmarshal(p, (*float64)(n))
}

// Spread is a median and the quartiles around it.
type Spread struct {
	Median Number `json:"median"`
	Low    Number `json:"q1"`
	High   Number `json:"q3"`
}

func spreadOf(values []float64) Spread {
	return Spread{Number(stats.Median(values)), Number(stats.Quantile(values, 0.25)), Number(stats.Quantile(values, 0.75))}
}

// Summary is an arm in the tables.
type Summary struct {
	ArmResult
	Seeds    int      `json:"seeds"`
	Reached  int      `json:"reached"`
	Fresh    Spread   `json:"fresh"` // until the target; more than the budget counts as infinite
	Steps    Spread   `json:"steps"`
	Each     []Number `json:"fresh_each"`       // by seed
	Saving   Number   `json:"saving,omitempty"` // the baseline's median by this one
	Factor   Number   `json:"factor"`           // emitted by fresh, up to the target: the median
	Loss     Spread   `json:"loss"`             // the lowest of a run
	Accuracy Spread   `json:"accuracy"`         // the highest
}

func summarize(a *ArmResult) Summary {
	s := Summary{ArmResult: *a, Seeds: len(a.Runs)}
	for _, r := range a.Runs {
		if r.Reached {
			s.Reached++
		}
		s.Each = append(s.Each, Number(r.fresh()))
	}
	s.Fresh, s.Steps = spreadOf(a.fresh()), spreadOf(a.steps())
	s.Factor = Number(stats.Median(a.each(func(r Result) float64 { return float64(r.Emitted) / float64(r.Used) })))
	s.Loss = spreadOf(a.each(func(r Result) float64 { return r.Loss }))
	s.Accuracy = spreadOf(a.each(func(r Result) float64 { return r.Accuracy }))
	return s
}

// summaries are those of all arms, with what each saves beside its baseline.
func summaries(arms []ArmResult) (all []Summary) {
	baseline := map[string]Number{}
	for i := range arms {
		s := summarize(&arms[i])
		if s.E == 1 && !s.Quality {
			baseline[s.Workload] = s.Fresh.Median
		}
		if !s.Quality && !math.IsInf(float64(s.Fresh.Median), 1) {
			s.Saving = baseline[s.Workload] / s.Fresh.Median
		}
		all = append(all, s)
	}
	return all
}

func (a *ArmResult) each(of func(Result) float64) (values []float64) {
	for _, r := range a.Runs {
		values = append(values, of(r))
	}
	return values
}

// fresh are the fresh samples until the target, by seed; +Inf where it was not
// reached.
func (a *ArmResult) fresh() []float64 { return a.each(Result.fresh) }

// steps are the batches until the target.
func (a *ArmResult) steps() []float64 {
	return a.each(func(r Result) float64 {
		if !r.Reached {
			return math.Inf(1)
		}
		return float64(r.Steps)
	})
}
