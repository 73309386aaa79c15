package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// ArmResult is what an arm came to, with the learning rate that was chosen for
// it.
type ArmResult struct {
	Arm
	Rate float64  `json:"rate"`
	Edge bool     `json:"edge,omitempty"` // the rate is the least or the greatest of the grid
	Runs []Result `json:"-"`              // by seed
}

// table runs the arms.
type table struct {
	plan     *Plan
	fixtures string
	kept     *kept
	progress io.Writer

	test map[string]*examples

	mu    sync.Mutex
	begin time.Time
	runs  int // that were done, and not found
	arms  int // that are done
	all   int
}

// do runs what is not kept, jobs arms at a time, and returns the arms in the
// plan's order.
func (t *table) do(ctx context.Context, jobs int) ([]ArmResult, error) {
	t.test, t.begin = map[string]*examples{}, time.Now()
	for name := range t.plan.Workloads {
		e, err := workloads[name].load(ctx, t.fixtures)
		if err != nil {
			return nil, err
		}
		defer e.close()
		t.test[name] = e
	}
	arms := t.plan.arms()
	t.all = len(arms)
	results := make([]ArmResult, len(arms))
	// The longest first: those that take the most steps.
	order := make([]int, len(arms))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return arms[b].E - arms[a].E })
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(jobs)
	for _, i := range order {
		g.Go(func() (err error) {
			if results[i], err = t.arm(ctx, arms[i]); err != nil {
				return fmt.Errorf("%v: %w", arms[i], err)
			}
			return nil
		})
	}
	return results, g.Wait()
}

// arm tunes an arm and runs its seeds.
func (t *table) arm(ctx context.Context, a Arm) (ArmResult, error) {
	rate, err := t.tune(ctx, a)
	rates := t.plan.Workloads[a.Workload].Rates
	res := ArmResult{Arm: a, Rate: rate, Edge: rate == slices.Min(rates) || rate == slices.Max(rates)}
	for _, seed := range t.plan.Seeds {
		if err != nil {
			return res, err
		}
		var r Result
		r, err = t.run(ctx, t.plan.run(a, rate, seed))
		res.Runs = append(res.Runs, r)
	}
	if err != nil {
		return res, err
	}
	t.tell(&res)
	return res, nil
}

// tune returns the learning rate that does best on the tuning seeds: needs the
// fewest fresh samples for the target in all, where a seed that does not reach it
// counts as twice the budget; or, of an arm that is trained to the end, has the
// lowest mean loss on the way. Equal ones are told apart by the loss.
//
// Every rate of the grid is tried. A run ends early where its rate cannot become
// the best any more, which changes no choice.
func (t *table) tune(ctx context.Context, a Arm) (float64, error) {
	w := t.plan.Workloads[a.Workload]
	best, bestCost, bestLoss := 0.0, int64(-1), 0.0
	for _, rate := range w.Rates {
		cost, loss := int64(0), 0.0
		for _, seed := range t.plan.TuningSeeds {
			r := t.plan.run(a, rate, seed)
			if bestCost >= 0 && !a.Quality {
				r.Fresh = min(r.Fresh, bestCost-cost+1)
			}
			if r.Fresh <= 0 {
				break
			}
			res, err := t.run(ctx, r)
			if err != nil {
				return 0, err
			}
			if loss += res.Loss; !a.Quality {
				cost += res.cost(w.Fresh)
			}
		}
		if bestCost < 0 || cost < bestCost || cost == bestCost && loss < bestLoss {
			best, bestCost, bestLoss = rate, cost, loss
		}
	}
	return best, nil
}

// cost is what a tuning run counts, for a budget.
func (r Result) cost(budget int64) int64 {
	if !r.Reached {
		return 2 * budget
	}
	return r.Used
}

// run returns the result of a run, which is done if it is not kept.
func (t *table) run(ctx context.Context, r Run) (Result, error) {
	if res, ok := t.kept.find(r); ok {
		return res, nil
	}
	res, err := r.train(ctx, t.fixtures, t.test[r.Workload])
	if err != nil {
		return res, err
	}
	t.mu.Lock()
	t.runs++
	t.mu.Unlock()
	return res, t.kept.add(res)
}

// tell reports an arm that is done.
func (t *table) tell(a *ArmResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arms++
	s := summarize(a)
	fmt.Fprintf(t.progress, "%3d/%d %5.0fs  %v: rate %g, ", t.arms, t.all, time.Since(t.begin).Seconds(), a.Arm, a.Rate)
	if a.Quality {
		fmt.Fprintf(t.progress, "loss %.3f, accuracy %.3f\n", s.Loss.Median, s.Accuracy.Median)
		return
	}
	fmt.Fprintf(t.progress, "F %v (%d of %d reached)\n", s.Fresh.Median, s.Reached, len(a.Runs))
}
