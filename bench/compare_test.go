package bench

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"shardtool/format"
)

// evenly returns slices of a second each, with so many emissions.
func evenly(emitted ...int64) []Slice {
	var all []Slice
	for _, n := range emitted {
		all = append(all, Slice{Seconds: 1, Batches: 1, Fresh: n / 2, Emitted: n, CPU: 2})
	}
	return all
}

// The standard error of 90, 100 and 110 is 10/sqrt(3), 5.774% of the mean; with
// two degrees of freedom the interval is 4.303 times as wide on either side, and
// that of a quotient of two of them sqrt(2) as wide again: exp(±0.3514).
func TestChange(t *testing.T) {
	before := evenly(100, 110, 90)
	for _, tt := range []struct {
		figure    int
		now       []Slice
		ratio     float64
		low, high float64
		verdict   string
	}{
		{0, evenly(90, 110, 100), 1, 0.7037, 1.4210, "unchanged"},
		{0, evenly(150, 165, 135), 1.5, 1.0556, 2.1315, "faster"},
		{0, evenly(120, 132, 108), 1.2, 0.8445, 1.7052, "unchanged"},
		{0, evenly(60, 66, 54), 0.6, 0.4222, 0.8526, "slower"},
		{1, evenly(60, 66, 54), 0.6, 0.4222, 0.8526, "slower"},
		{0, evenly(150), 1.5, 0, 0, "unknown"},
		{0, evenly(0, 0, 0), 0, 0, 0, "unknown"},
	} {
		c := figures[tt.figure].change(2, before, tt.now)
		if math.Abs(c.Ratio-tt.ratio) > 1e-9 || math.Abs(c.Low-tt.low) > 5e-4 || math.Abs(c.High-tt.high) > 5e-4 || c.Verdict != tt.verdict || c.Factor != 2 {
			t.Errorf("%+v, want %+v", c, tt)
		}
	}
	// Two seconds of CPU a slice: 6 for 300 emissions before, for 150 now.
	c := figures[2].change(1, before, evenly(50, 51, 49))
	if math.Abs(c.Before-20) > 1e-9 || math.Abs(c.Now-40) > 1e-9 || c.Verdict != "more" {
		t.Errorf("%+v", c)
	}
	if n := figures[0].noise(before); math.Abs(n-0.2484) > 1e-4 {
		t.Errorf("noise %v", n)
	}
	if n := figures[0].noise(evenly(1)); n != 1 {
		t.Errorf("noise of one slice %v", n)
	}
}

// Of runs that differ by chance alone, about 5 in 100 are told to have changed.
func TestFalseAlarms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	run := func() []Slice {
		var n []int64
		for range 10 {
			n = append(n, int64(10000+300*r.NormFloat64()))
		}
		return evenly(n...)
	}
	alarms := 0
	const tries = 2000
	for range tries {
		if figures[0].change(1, run(), run()).Verdict != "unchanged" {
			alarms++
		}
	}
	if alarms < tries/50 || alarms > tries*7/100 {
		t.Errorf("%d alarms in %d", alarms, tries)
	}
}

func TestEarlier(t *testing.T) {
	r := &Report{
		Slices: evenly(100, 110, 90), Sweep: []Swept{{Factor: 1, Slices: evenly(1, 2)}, {Factor: 2, Slices: evenly(100, 110, 90)}},
		Config: Config{Source: "a.tar", Batch: 64, Columns: "x\n"}, CPU: "c", Gomaxprocs: 2, Bottleneck: "fetch",
		Echo: EchoReport{Unit: "sample", Keep: "bytes", Factor: 1},
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ReadEarlier(append([]byte("{}\n"), text...))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.comparable(&r.Config, r.Echo); err != nil {
		t.Error(err)
	}
	now := *r
	now.Slices, now.Bottleneck, now.Gomaxprocs = evenly(200, 220, 180), "decode", 4
	c := e.compare(&now)
	if len(c.Changes) != 4 || c.Changes[0].Verdict != "faster" || c.Changes[3].Factor != 2 || c.Changes[3].Verdict != "unchanged" || len(c.Notes) != 2 {
		t.Errorf("%+v", c)
	}
	now.Against = c
	var b strings.Builder
	if err := now.WriteText(&b); err != nil || !strings.Contains(b.String(), "faster") || !strings.Contains(b.String(), "the bottleneck was fetch and is decode") {
		t.Errorf("%v: %s", err, b.String())
	}
	other := Config{Source: "a.tar", Batch: 32, Columns: "y\n"}
	err = e.comparable(&other, EchoReport{Unit: "batch", Keep: "batch", Factor: 2})
	for _, want := range []string{"--batch was 64 and is 32", "--unit was sample and is batch", "--columns made other tensors", "--keep"} {
		if !errors.Is(err, format.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, bad := range []string{"", "x", "{}", "[1]", `{"config":{}}`, `{"config":{},"slices":[]}`, `{"config":1}`} {
		if e, err := ReadEarlier([]byte(bad)); e != nil || !errors.Is(err, format.ErrUsage) {
			t.Errorf("%s: %+v, %v", bad, e, err)
		}
	}
}

func FuzzReadEarlier(f *testing.F) {
	text, _ := json.Marshal(&Report{Slices: evenly(1)})
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := ReadEarlier(text)
		if (e == nil) == (err == nil) {
			t.Fatal(e, err)
		}
		if e != nil {
			e.compare(&Report{Slices: evenly(1, 2), Sweep: []Swept{{Factor: 2}}})
		}
	})
}
