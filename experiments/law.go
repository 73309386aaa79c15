package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"shardtool/device"
	"shardtool/echo"
	"shardtool/loader"
	"shardtool/reader/store"
)

// LawPlan is how the time per fresh sample is measured: pictures of digits read
// by a limited source, steps on a simulated accelerator.
type LawPlan struct {
	StepMS   float64   `json:"step_ms"`        // time of a batch on the accelerator
	Seconds  float64   `json:"seconds"`        // of a measurement
	Warmup   float64   `json:"warmup_seconds"` // before it
	Variants []string  `json:"variants"`
	Runs     []LawRuns `json:"runs"`
}

// LawRuns are the factors that are measured at an R.
type LawRuns struct {
	R       float64 `json:"r"`
	Factors []int   `json:"factors"`
}

// LawResult is one measurement. Times are of a fresh sample, in milliseconds.
type LawResult struct {
	Variant  string  `json:"variant"`
	R        float64 `json:"r"`
	E        int     `json:"e"`
	Measured float64 `json:"ms_per_fresh"`
	Law      float64 `json:"law_ms_per_fresh"`
	Steps    float64 `json:"steps_per_s"`
}

// lawWorkload is what is read while the accelerator is only played.
const lawWorkload = "digits"

// measureLaw does the measurements of a plan.
func measureLaw(ctx context.Context, p LawPlan, fixtures string, progress io.Writer) (results []LawResult, err error) {
	for _, runs := range p.Runs {
		for _, v := range p.Variants {
			for _, e := range runs.Factors {
				r, err := p.measure(ctx, fixtures, v, runs.R, e)
				if err != nil {
					return nil, err
				}
				fmt.Fprintf(progress, "law: %s, R %g, e=%d: %.3f ms a fresh sample, %.3f by the law\n", v, r.R, r.E, r.Measured, r.Law)
				results = append(results, r)
			}
		}
	}
	return results, nil
}

func (p LawPlan) measure(ctx context.Context, fixtures, variant string, r float64, e int) (LawResult, error) {
	w := workloads[lawWorkload]
	step := time.Duration(p.StepMS * float64(time.Millisecond))
	down := step.Seconds() / float64(w.Batch)
	res := LawResult{Variant: variant, R: r, E: e, Law: 1e3 * down * max(r, float64(e))}
	st, err := w.limited(fixtures, r*down)
	if err != nil {
		return res, err
	}
	ld, err := Run{Workload: lawWorkload, Variant: variant, E: e, Seed: 1}.open(ctx, fixtures, st)
	if err != nil {
		return res, err
	}
	defer ld.Close()
	accelerator := &device.Simulated{StepTime: step}
	defer accelerator.Close()
	var account echo.Account
	var from time.Time
	var before echo.Account
	steps, begin := 0, time.Now()
	for b, err := range ld.Batches(ctx) {
		if err != nil {
			return res, err
		}
		account.Add(b.Refs)
		refs := b.Refs
		if err := playStep(ctx, accelerator, b); err != nil {
			return res, err
		}
		// The window begins and ends where the copies of an item do, so that it
		// holds whole items.
		now, last := time.Now(), refs[len(refs)-1]
		whole := last.Copy == last.Times-1
		if from.IsZero() {
			if whole && now.Sub(begin).Seconds() >= p.Warmup {
				from, before = now, account
			}
			continue
		}
		if steps++; whole && now.Sub(from).Seconds() >= p.Seconds {
			seconds := now.Sub(from).Seconds()
			res.Measured = 1e3 * seconds / float64(account.Fresh-before.Fresh)
			res.Steps = float64(steps) / seconds
			return res, nil
		}
	}
	return res, fmt.Errorf("the batches ended")
}

// playStep does one step on the accelerator and gives the batch back.
func playStep(ctx context.Context, d *device.Simulated, b *loader.Batch) error {
	defer b.Release()
	on, err := d.Put(ctx, b.Arrays())
	if err != nil {
		return err
	}
	defer on.Release()
	if err := on.Wait(ctx); err != nil {
		return err
	}
	return d.Step(ctx, on)
}

// limited returns a store that gives a sample of the training data in so many
// seconds.
func (w *Workload) limited(fixtures string, seconds float64) (store.Store, error) {
	bytes, err := w.bytesPerSample(fixtures)
	if err != nil {
		return nil, err
	}
	return store.Limit(oneByOne{&store.Local{}}, store.LimitOptions{BytesPerSecond: int64(bytes / seconds)}), nil
}

// bytesPerSample is the mean size of a record of the training data.
func (w *Workload) bytesPerSample(fixtures string) (float64, error) {
	stat, err := os.Stat(filepath.Join(fixtures, w.Folder, "train.tfrecord"))
	if err != nil {
		return 0, err
	}
	return float64(stat.Size()) / float64(w.Train), nil
}

// oneByOne reads what lies near each other by requests of its own, where a
// store would read what lies between, too: so the bytes of a sample in any order
// are its record's.
type oneByOne struct{ store.Store }

func (s oneByOne) Open(ctx context.Context, name string) (store.Object, error) {
	o, err := s.Store.Open(ctx, name)
	return object{o}, err
}

type object struct{ store.Object }

func (object) Gap() int64 { return 0 }
