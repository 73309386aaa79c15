package main

import (
	"context"
	"math"
	"time"

	"shardtool/echo"
	"shardtool/experiments/internal/nn"
	"shardtool/loader"
	"shardtool/reader/order"
	"shardtool/reader/store"
)

// Run is one training, and the key under which its Result is kept: equal runs
// have equal results on machines of one architecture.
type Run struct {
	Workload string  `json:"workload"`
	Variant  string  `json:"variant"` // of variants
	E        int     `json:"e"`
	Buffer   int     `json:"buffer"` // in samples; for batch echo too
	Rate     float64 `json:"rate"`   // of learning
	Seed     uint64  `json:"seed"`   // of weights, order and augmentation
	Fresh    int64   `json:"fresh"`  // budget: training ends after so many fresh samples
	Target   float64 `json:"target"` // training ends when the loss on the test data is as low; 0: it does not
	Every    int64   `json:"every"`  // fresh samples between evaluations
}

// Result is what came of a run.
type Result struct {
	Run
	Reached  bool    `json:"reached"`          // the target
	Used     int64   `json:"used"`             // fresh samples until then, or all
	Emitted  int64   `json:"emitted"`          // samples until then
	Steps    int64   `json:"steps"`            // batches until then
	Loss     float64 `json:"loss"`             // the lowest of all evaluations
	Accuracy float64 `json:"accuracy"`         // the highest
	Failed   bool    `json:"failed,omitempty"` // the loss became no number
	Seconds  float64 `json:"seconds"`          // wall time, evaluation included: for those who wait for it
}

// variants are what the echo repeats, and the level that is kept. What stands
// before augmentation is augmented anew for each copy.
var variants = map[string]echo.Options{
	"baseline":      {},
	"batch":         {Unit: echo.Batch, Keep: echo.Batched},
	"sample":        {Unit: echo.Sample, Keep: echo.Bytes}, // of a workload without augmentation
	"sample before": {Unit: echo.Sample, Keep: echo.Decoded},
	"sample after":  {Unit: echo.Sample, Keep: echo.Augmented},
}

// options are the loader's for a run.
func (r Run) options() (*loader.Options, error) {
	w := workloads[r.Workload]
	columns, err := w.columns(false)
	if err != nil {
		return nil, err
	}
	e := variants[r.Variant]
	e.Factor = float64(r.E)
	if e.Buffer = r.Buffer; e.Unit == echo.Batch {
		e.Buffer = r.Buffer / w.Batch
	}
	return &loader.Options{
		Columns: columns, GlobalBatch: w.Batch, Lanes: 1, World: 1, Seed: r.Seed, Epochs: order.Endless,
		Shuffle: order.Global, Tail: order.TailDrop, Echo: e, Workers: 1,
	}, nil
}

// open returns the loader of a run. The data are those in a folder of fixtures,
// read by st; nil reads files.
func (r Run) open(ctx context.Context, fixtures string, st store.Store) (*loader.Loader, error) {
	o, err := r.options()
	if err != nil {
		return nil, err
	}
	return loader.New(ctx, workloads[r.Workload].open(fixtures, st, false), o)
}

// train does a run on the data in a folder of fixtures.
func (r Run) train(ctx context.Context, fixtures string, test *examples) (Result, error) {
	w := workloads[r.Workload]
	res := Result{Run: r, Loss: unknownLoss}
	ld, err := r.open(ctx, fixtures, nil)
	if err != nil {
		return res, err
	}
	defer ld.Close()
	net := nn.New(w.Shape, r.Seed)
	var account echo.Account
	begin, next := time.Now(), r.Every
	for b, err := range ld.Batches(ctx) {
		if err != nil {
			return res, err
		}
		account.Add(b.Refs)
		w.train(net, b, float32(r.Rate))
		b.Release()
		if res.Steps++; account.Fresh < next {
			continue
		}
		for next <= account.Fresh {
			next += r.Every
		}
		if res.evaluated(test.metric(net)) || account.Fresh >= r.Fresh {
			break
		}
	}
	res.Used, res.Emitted, res.Seconds = account.Fresh, account.Emitted, time.Since(begin).Seconds()
	return res, nil
}

// unknownLoss is the loss of a run that was never evaluated to a number: JSON
// has no infinity.
const unknownLoss = math.MaxFloat32

// evaluated takes an evaluation and reports whether the run ends with it.
func (r *Result) evaluated(loss, accuracy float64) (end bool) {
	if r.Failed = math.IsNaN(loss) || math.IsInf(loss, 0); r.Failed {
		return true
	}
	r.Loss, r.Accuracy = min(r.Loss, loss), max(r.Accuracy, accuracy)
	r.Reached = loss <= r.Target
	return r.Reached
}

// fresh is what the run says about F: the fresh samples until the target, and
// +Inf where that was not reached.
func (r Result) fresh() float64 {
	if !r.Reached {
		return math.Inf(1)
	}
	return float64(r.Used)
}
