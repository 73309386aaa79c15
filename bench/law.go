package bench

import (
	"fmt"
	"math"
	"slices"

	"shardtool/device"
	"shardtool/echo"
	"shardtool/loader"
)

// times gives the stages by name.
func times(stages []loader.Stage) map[string]loader.Stage {
	m := make(map[string]loader.Stage, len(stages))
	for _, s := range stages {
		m[s.Name] = s
	}
	return m
}

// bottleneck names the stage that holds the others up: the device, if it is busy
// nearly all the time; else by what the workers that decode and augment did with
// theirs: the work itself, of which the longer part counts; or waiting for
// something to do, for the stages before them; or for room, for those behind.
func bottleneck(stages []loader.Stage) string {
	m := times(stages)
	decode, augment, order := m[loader.StageDecode], m[loader.StageAugment], m[loader.StageOrder]
	busy := decode.Busy + augment.Busy
	device := m[StageDevice]
	switch {
	case device.Busy > 0.9*(device.Busy+device.WaitIn+device.WaitOut):
		return StageDevice
	case busy >= decode.WaitIn && busy >= decode.WaitOut && augment.Busy > decode.Busy:
		return loader.StageAugment
	case busy >= decode.WaitIn && busy >= decode.WaitOut:
		return loader.StageDecode
	case decode.WaitIn >= decode.WaitOut && order.Busy > order.WaitIn+order.WaitOut:
		return loader.StageOrder
	case decode.WaitIn >= decode.WaitOut:
		return loader.StageFetch
	case m[loader.StageDeliver].Busy > device.Busy:
		return loader.StageDeliver
	}
	return StageDevice
}

// costs returns what a sample cost in a run of that factor.
func (s *session) costs(o *outcome, factor float64) echo.Costs {
	if s.o.Load.Echo.Auto != nil {
		factor = float64(o.total.emitted) / float64(max(o.total.fresh, 1))
	}
	e := &s.o.Load.Echo
	c := o.measured.Costs(e.Unit, e.Keep, factor)
	if o.measured.Fetched < int64(s.perRank) { // what was used in the window had been fetched before
		c.Fetch = o.whole.Costs(e.Unit, e.Keep, factor).Fetch
	}
	_, host := s.o.Device.(device.Host)
	switch {
	case s.step > 0:
		c.Step = s.step.Seconds() / float64(s.perRank)
	case s.o.Device == nil || host:
		c.Step = 0 // a batch is there at once, and nobody trains
	default:
		c.Step = o.busy / float64(max(o.total.emitted, 1))
	}
	return c
}

// Law is what the law predicts by: what a sample cost, in seconds of wall time
// of each stage by itself, at the factor of the report. See echo.Costs.
type Law struct {
	Fetch   float64 `json:"fetch_s"`
	Decode  float64 `json:"decode_s"`
	Augment float64 `json:"augment_s"`
	Step    float64 `json:"step_s"` // 0: no accelerator is known

	Up        float64 `json:"up_s"`          // before the echo, of a fresh sample
	Down      float64 `json:"down_s"`        // behind it, of an emission
	EmittedPS float64 `json:"emitted_per_s"` // predicted for the report's own factor
}

// Advice is the echo that is recommended, with what the law predicts for it.
type Advice struct {
	Unit        string  `json:"unit"`
	Keep        string  `json:"keep"`
	Factor      float64 `json:"factor"` // 1: no echo
	R           float64 `json:"r"`
	FreshPerS   float64 `json:"fresh_per_s"`
	EmittedPerS float64 `json:"emitted_per_s"`
	Reason      string  `json:"reason"`

	// Accelerator is the speed of the accelerator that it is for, in samples a
	// second; 0 where none is known.
	Accelerator float64 `json:"accelerator_per_s"`
}

func adviceFor(c echo.Costs) Advice {
	a := c.Recommend()
	advice := Advice{
		Unit: a.Unit.String(), Keep: a.Keep.String(), Factor: a.Factor, R: a.R,
		FreshPerS: a.FreshPerS, EmittedPerS: a.EmittedPerS, Reason: a.Reason,
	}
	if c.Step > 0 {
		advice.Accelerator = 1 / c.Step
	}
	return advice
}

// faster says what is advised for accelerators that take as many samples as the
// loader gives without echo, and more.
func faster(c echo.Costs) []Advice {
	slowest := max(c.Fetch, c.Decode+c.Augment)
	if slowest == 0 {
		return nil
	}
	var all []Advice
	for _, times := range []float64{1, 2, 4, 8} {
		c.Step = 1 / (digits(1/slowest, 2) * times)
		all = append(all, adviceFor(c))
	}
	return all
}

// digits rounds down to so many digits.
func digits(v float64, n int) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v))-float64(n-1))
	return math.Floor(v/unit+1e-9) * unit
}

// Swept is a factor of a sweep. Rates are medians of its rounds.
type Swept struct {
	Factor      float64 `json:"factor"`
	Realised    float64 `json:"realised"` // the factor that came about, infinite of copies alone
	StepsPerS   float64 `json:"steps_per_s"`
	Least       float64 `json:"steps_per_s_least"` // of the rounds
	Most        float64 `json:"steps_per_s_most"`
	FreshPerS   float64 `json:"fresh_per_s"`
	EmittedPerS float64 `json:"emitted_per_s"`
	Noise       float64 `json:"noise"` // see Report.Noise
	Law         float64 `json:"law_steps_per_s"`
	Ratio       float64 `json:"measured_by_law"`
	DeviceWaits float64 `json:"device_waits"` // share of the time, of a simulated device; 0 where it is none
	Bottleneck  string  `json:"bottleneck"`
	Slices      []Slice `json:"slices"`
}

// swept reports the factors of a sweep, beside the law by the costs of the least.
func (s *session) swept(c echo.Costs) []Swept {
	if len(s.o.Sweep) == 0 {
		return nil
	}
	var all []Swept
	for i, factor := range s.factors {
		o := &s.runs[i]
		steps := slices.Sorted(slices.Values(s.steps[i]))
		perStep := float64(o.total.emitted) / float64(max(len(o.gaps), 1))
		w := Swept{
			Factor: factor, StepsPerS: steps[len(steps)/2], Least: steps[0], Most: steps[len(steps)-1],
			Law: s.predicted(c, factor) / float64(s.perRank), Bottleneck: bottleneck(o.stages), Slices: o.slices,
			Realised: o.realised(), Noise: figures[0].noise(o.slices),
		}
		w.EmittedPerS = w.StepsPerS * perStep
		w.FreshPerS = w.EmittedPerS / w.Realised
		w.Ratio = w.StepsPerS / w.Law
		if o.played {
			w.DeviceWaits = o.waited / max(o.busy+o.waited, 1e-9)
		}
		all = append(all, w)
	}
	return all
}

// predicted is how many samples the law has emitted in a second.
func (s *session) predicted(c echo.Costs, factor float64) float64 {
	return 1 / c.PerEmission(s.o.Load.Echo.Unit, s.o.Load.Echo.Keep, factor)
}

// warnings says what is probably not wanted, as far as the measurement tells.
func (s *session) warnings(r float64) []string {
	var w []string
	of := func(factor float64) string {
		if len(s.factors) == 1 {
			return ""
		}
		return fmt.Sprintf(" of echo %v", factor)
	}
	for i, factor := range s.factors {
		if s.runs[i].early {
			w = append(w, fmt.Sprintf("the warm-up ended before what had been fetched ahead was used: the rates%s may be off; give a longer one", of(factor)))
			break
		}
	}
	for i, factor := range s.factors {
		if s.runs[i].stale {
			w = append(w, fmt.Sprintf("no fresh sample came within %d times the duration: the rates%s are those of copies; give a longer duration, or more samples", patience, of(factor)))
			break
		}
	}
	const rough = 0.1
	for i, factor := range s.factors {
		if noise := figures[0].noise(s.runs[i].slices); noise > rough {
			w = append(w, fmt.Sprintf("the rates%s are rough, by %.0f%% and more: batches came in bursts, or there were few; give a longer duration", of(factor), 100*noise))
			break
		}
	}
	if len(s.o.Sweep) > 0 {
		return w
	}
	return append(append(w, echo.Warnings(s.o.Load.Echo, r)...), s.echoes...)
}
