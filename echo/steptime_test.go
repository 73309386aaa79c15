package echo

import (
	"math"
	"testing"
	"time"
)

// An accelerator that is starved of input by a trainer that does not wait for
// steps: R is 4 by its step time, and cannot be told without.
func TestStepTime(t *testing.T) {
	m := Measured{Seconds: 40, Batches: 10, Fresh: 100, Emitted: 100, Fetched: 100, Fetching: 40, Starved: 40, Workers: 1, Waited: 40, Trainer: 1e-6}
	step := time.Second
	a := &Auto{StepTime: func() time.Duration { return step }}
	if p := a.Propose(1, m, Sample, Bytes); math.Abs(p.R-4) > 1e-9 || p.Factor != 4 || math.Abs(p.Costs.Step-0.1) > 1e-12 {
		t.Errorf("%+v", p)
	}
	step = 0 // not known yet
	if p := a.Propose(1, m, Sample, Bytes); p.R < 1e6 {
		t.Errorf("%+v", p)
	}
	if p := (&Auto{}).Propose(1, m, Sample, Bytes); p.R < 1e6 {
		t.Errorf("%+v", p)
	}
}
