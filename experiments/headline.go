package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"shardtool/echo"
	"shardtool/experiments/internal/nn"
	"shardtool/experiments/internal/stats"
)

// HeadlinePlan is the wall clock to the target behind a limited source, with
// and without echo.
type HeadlinePlan struct {
	Workload string   `json:"workload"`
	Variant  string   `json:"variant"`
	Factor   int      `json:"factor"`
	Buffer   int      `json:"buffer"`
	R        float64  `json:"r"`
	Seeds    []uint64 `json:"seeds"`
}

// Headline is what was measured. Times are in seconds.
type Headline struct {
	R         float64       `json:"r"`
	Step      float64       `json:"step_s"` // of a batch, measured before
	RateKB    float64       `json:"source_kb_per_s"`
	Runs      []HeadlineRun `json:"runs"`
	Ratio     Spread        `json:"ratio"`      // of the times to the target, by seed
	Predicted Spread        `json:"predicted"`  // by F(1)/F(e) max(R,1)/max(R,e), by seed
	FreshGain Spread        `json:"fresh_gain"` // F(1)/F(e), by seed
}

// HeadlineRun is one training to the target behind the limited source.
type HeadlineRun struct {
	E       int     `json:"e"`
	Seed    uint64  `json:"seed"`
	Fresh   int64   `json:"fresh"`
	Steps   int64   `json:"steps"`
	Seconds float64 `json:"seconds"` // of them: from the call of Batches to the end of the last step
	Network float64 `json:"network"` // of the seconds, in the network's steps
}

// measureHeadline takes the learning rates that the table chose.
func measureHeadline(ctx context.Context, p *Plan, fixtures string, rates map[int]float64, progress io.Writer) (*Headline, error) {
	h := p.Headline
	w := workloads[h.Workload]
	test, err := w.load(ctx, fixtures)
	if err != nil {
		return nil, err
	}
	defer test.close()
	arms := []Arm{{Workload: h.Workload, Variant: "baseline", E: 1}, {Workload: h.Workload, Variant: h.Variant, E: h.Factor, Buffer: h.Buffer}}
	step, err := stepTime(ctx, fixtures, p.run(arms[0], rates[1], 1))
	if err != nil {
		return nil, err
	}
	perSample := h.R * step / float64(w.Batch)
	res := &Headline{R: h.R, Step: step}
	var ratio, predicted, gain []float64
	for _, seed := range h.Seeds {
		var seconds, fresh [2]float64
		for i, a := range arms {
			run := p.run(a, rates[a.E], seed)
			r, err := run.behind(ctx, fixtures, perSample, test)
			if err != nil {
				return nil, err
			}
			res.Runs = append(res.Runs, r)
			seconds[i], fresh[i] = r.Seconds, float64(r.Fresh)
			fmt.Fprintf(progress, "headline: seed %d, e=%d: %.2f s for %d steps, %d fresh samples; %.2f s of it in the network\n", seed, r.E, r.Seconds, r.Steps, r.Fresh, r.Network)
		}
		ratio = append(ratio, seconds[0]/seconds[1])
		gain = append(gain, fresh[0]/fresh[1])
		predicted = append(predicted, echo.Speedup(h.R, float64(h.Factor), fresh[0]/fresh[1]))
	}
	res.Ratio, res.Predicted, res.FreshGain = spreadOf(ratio), spreadOf(predicted), spreadOf(gain)
	bytes, err := w.bytesPerSample(fixtures)
	res.RateKB = bytes / perSample / 1e3
	return res, err
}

// stepTime returns the median seconds of a step of the network on batches that
// are there.
func stepTime(ctx context.Context, fixtures string, r Run) (float64, error) {
	const warm, count = 50, 300
	ld, err := r.open(ctx, fixtures, nil)
	if err != nil {
		return 0, err
	}
	defer ld.Close()
	net := nn.New(workloads[r.Workload].Shape, r.Seed)
	var took []float64
	for b, err := range ld.Batches(ctx) {
		if err != nil {
			return 0, err
		}
		from := time.Now()
		workloads[r.Workload].train(net, b, float32(r.Rate))
		took = append(took, time.Since(from).Seconds())
		if b.Release(); len(took) == warm+count {
			break
		}
	}
	return stats.Median(took[warm:]), nil
}

// behind trains to the target behind a source that gives a sample in so many
// seconds. Evaluation takes no part in the time: the run is first done without
// a limit, and then again to the very step at which the target was reached,
// which is the same training bit for bit.
func (r Run) behind(ctx context.Context, fixtures string, perSample float64, test *examples) (HeadlineRun, error) {
	h, w := HeadlineRun{E: r.E, Seed: r.Seed}, workloads[r.Workload]
	dry, err := r.train(ctx, fixtures, test)
	if err != nil {
		return h, err
	}
	if !dry.Reached {
		return h, fmt.Errorf("e=%d, seed %d: the target of %g is not reached within %d fresh samples", r.E, r.Seed, r.Target, r.Fresh)
	}
	st, err := w.limited(fixtures, perSample)
	if err != nil {
		return h, err
	}
	ld, err := r.open(ctx, fixtures, st)
	if err != nil {
		return h, err
	}
	defer ld.Close()
	net := nn.New(w.Shape, r.Seed)
	var network time.Duration
	begin := time.Now()
	for b, err := range ld.Batches(ctx) {
		if err != nil {
			return h, err
		}
		from := time.Now()
		w.train(net, b, float32(r.Rate))
		network += time.Since(from)
		b.Release()
		if h.Steps++; h.Steps == dry.Steps {
			break
		}
	}
	h.Fresh, h.Seconds, h.Network = dry.Used, time.Since(begin).Seconds(), network.Seconds()
	if loss, _ := test.metric(net); loss != dry.Loss {
		return h, fmt.Errorf("e=%d, seed %d: a loss of %v behind the limited source, and %v without the limit", r.E, r.Seed, loss, dry.Loss)
	}
	return h, nil
}
