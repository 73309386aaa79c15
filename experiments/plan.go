package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// planJSON is the table of runs. It was committed before the first of them was
// measured, and README.md says how it came about.
//
//go:embed plan.json
var planJSON []byte

// Plan is what is run and measured.
type Plan struct {
	Version     int                      `json:"version"`
	Seeds       []uint64                 `json:"seeds"`        // that are reported
	TuningSeeds []uint64                 `json:"tuning_seeds"` // on which the learning rates are chosen
	Workloads   map[string]*WorkloadPlan `json:"workloads"`
	Law         LawPlan                  `json:"law"`
	Headline    HeadlinePlan             `json:"headline"`
	Rules       []string                 `json:"rules"` // of the verdicts, in words; claims.go has them in code
}

// WorkloadPlan is the arms of a workload.
type WorkloadPlan struct {
	Target   float64   `json:"target"` // loss on the test data, in nats
	Fresh    int64     `json:"fresh"`  // budget of a run
	Every    int64     `json:"every"`  // fresh samples between evaluations
	Rates    []float64 `json:"rates"`  // learning rates, in the order in which they are tried
	Variants []string  `json:"variants"`
	Factors  []int     `json:"factors"` // besides 1
	Buffers  []int     `json:"buffers"` // samples
	Large    struct {
		Factors []int `json:"factors"`
		Buffer  int   `json:"buffer"`
	} `json:"large_buffer"`
	Quality QualityPlan `json:"quality"`
}

// QualityPlan is the arms that are trained past the target.
type QualityPlan struct {
	Fresh   int64 `json:"fresh"`
	Every   int64 `json:"every"`
	Factors []int `json:"factors"`
	Buffer  int   `json:"buffer"`
}

// Arm is a way to train, of which the runs differ by learning rate and seed.
type Arm struct {
	Workload string `json:"workload"`
	Variant  string `json:"variant"`
	E        int    `json:"e"`
	Buffer   int    `json:"buffer"`
	Quality  bool   `json:"quality,omitempty"` // trained to a budget and not to the target
}

func (a Arm) String() string {
	s := fmt.Sprintf("%s, %s, e=%d, buffer %d", a.Workload, a.Variant, a.E, a.Buffer)
	if a.Quality {
		s += ", to the end"
	}
	return s
}

func readPlan() (*Plan, error) {
	var p Plan
	if err := json.Unmarshal(planJSON, &p); err != nil {
		return nil, fmt.Errorf("plan.json: %w", err)
	}
	return &p, nil
}

// workloadOrder is that of tables; the first two carry the claims.
var workloadOrder = []string{"digits", "text", "wide digits"}

// arms returns all arms: by workload, baseline first, then by variant, buffer
// and factor; behind them those that are trained to the end.
func (p *Plan) arms() (arms []Arm) {
	for _, name := range workloadOrder {
		w := p.Workloads[name]
		if w == nil {
			continue
		}
		arms = append(arms, Arm{Workload: name, Variant: "baseline", E: 1})
		for _, v := range w.Variants {
			for _, b := range w.Buffers {
				for _, e := range w.Factors {
					arms = append(arms, Arm{Workload: name, Variant: v, E: e, Buffer: b})
				}
			}
			for _, e := range w.Large.Factors {
				arms = append(arms, Arm{Workload: name, Variant: v, E: e, Buffer: w.Large.Buffer})
			}
		}
		if q := w.Quality; q.Fresh > 0 {
			arms = append(arms, Arm{Workload: name, Variant: "baseline", E: 1, Quality: true})
			for _, v := range w.Variants {
				for _, e := range q.Factors {
					arms = append(arms, Arm{Workload: name, Variant: v, E: e, Buffer: q.Buffer, Quality: true})
				}
			}
		}
	}
	return arms
}

// run returns one run of an arm.
func (p *Plan) run(a Arm, rate float64, seed uint64) Run {
	w := p.Workloads[a.Workload]
	r := Run{
		Workload: a.Workload, Variant: a.Variant, E: a.E, Buffer: a.Buffer, Rate: rate, Seed: seed,
		Fresh: w.Fresh, Target: w.Target, Every: w.Every,
	}
	if a.Quality {
		r.Fresh, r.Target, r.Every = w.Quality.Fresh, 0, w.Quality.Every
	}
	return r
}

// short cuts the plan down to what shows in a minute that every part works: two
// seeds, two rates, e of 2, easy targets.
func (p *Plan) short() *Plan {
	s := *p
	s.Seeds, s.TuningSeeds = p.Seeds[:2], p.TuningSeeds[:1]
	s.Workloads = map[string]*WorkloadPlan{}
	for name, w := range p.Workloads {
		c := *w
		c.Rates, c.Fresh, c.Target = w.Rates[:2], 1536, 2.6
		if name != "text" {
			c.Target = 1.2
		}
		if len(w.Factors) > 1 {
			c.Factors = w.Factors[:1]
		}
		c.Large.Factors = nil
		if c.Quality.Fresh > 0 {
			c.Quality.Fresh, c.Quality.Factors = 2048, w.Quality.Factors[:1]
		}
		s.Workloads[name] = &c
	}
	s.Law.Seconds, s.Law.Warmup = 0.3, 0.2
	s.Law.Runs = []LawRuns{{R: 4, Factors: []int{1, 8}}}
	s.Headline.Seeds = p.Headline.Seeds[:2]
	return &s
}
