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

// A slice is some time in which some samples came, of which some were fresh.
func TestEarlierWithDamagedSlices(t *testing.T) {
	const slice = `{"seconds":1,"batches":2,"fresh":1,"emitted":8,"cpu_s":0.5}`
	for _, tt := range []struct {
		slices, sweep string
		good          bool
	}{
		{slice, "", true},
		{slice + `,{"seconds":0,"batches":1,"fresh":0,"emitted":4,"cpu_s":0}`, "", true}, // by a coarse clock, and copies alone
		{slice, `{"factor":2,"slices":[` + slice + `]}`, true},
		{`{"seconds":-1,"batches":2,"fresh":1,"emitted":8,"cpu_s":0.5}`, "", false},
		{`{"seconds":0,"batches":2,"fresh":1,"emitted":8,"cpu_s":0.5}`, "", false},
		{`{"seconds":1e-320,"batches":2,"fresh":1,"emitted":8,"cpu_s":0.5}`, "", false},
		{`{"seconds":1e300,"batches":2,"fresh":1,"emitted":8,"cpu_s":0.5}`, "", false},
		{`{"seconds":1,"batches":0,"fresh":1,"emitted":8,"cpu_s":0.5}`, "", false},
		{`{"seconds":1,"batches":2,"fresh":-1,"emitted":8,"cpu_s":0.5}`, "", false},
		{`{"seconds":1,"batches":2,"fresh":9,"emitted":8,"cpu_s":0.5}`, "", false},
		{`{"seconds":1,"batches":2,"fresh":0,"emitted":0,"cpu_s":0.5}`, "", false},
		{`{"seconds":1,"batches":2,"fresh":-9,"emitted":-8,"cpu_s":0.5}`, "", false},
		{`{"seconds":1,"batches":2,"fresh":1,"emitted":9000000000000000000,"cpu_s":0.5}`, "", false},
		{`{"seconds":1,"batches":2,"fresh":1,"emitted":8,"cpu_s":-0.5}`, "", false},
		{`{}`, "", false},
		{slice + `,{"seconds":-0.5,"batches":2,"fresh":1,"emitted":8,"cpu_s":0.5}`, "", false},
		{slice, `{"factor":2,"slices":[]}`, false},
		{slice, `{"factor":0.5,"slices":[` + slice + `]}`, false},
		{slice, `{"factor":2,"slices":[{"seconds":-1,"batches":2,"fresh":1,"emitted":8,"cpu_s":0.5}]}`, false},
	} {
		e, err := ReadEarlier([]byte(`{"config":{},"slices":[` + tt.slices + `],"sweep":[` + tt.sweep + `]}`))
		if tt.good != (err == nil) || !tt.good && (e != nil || !errors.Is(err, format.ErrUsage) || !strings.Contains(err.Error(), "no report of a measurement")) {
			t.Errorf("%s, %s: %v", tt.slices, tt.sweep, err)
		}
	}
}

// Great seeds are strings where JSON is read by programs that have only float64.
func TestEarlierSeeds(t *testing.T) {
	for text, want := range map[string]uint64{
		`{"batch":4}`: 0, `{"seed":7,"batch":4}`: 7, `{"seed":"18446744073709551615","batch":4}`: 1<<64 - 1,
	} {
		e, err := ReadEarlier([]byte(`{"config":` + text + `,"slices":[{"seconds":1,"batches":1,"emitted":1}]}`))
		if err != nil || e.Config.Seed != want || e.Config.Batch != 4 {
			t.Errorf("%s: %+v, %v", text, e, err)
		}
	}
	for _, text := range []string{`{"seed":-1}`, `{"seed":"x"}`, `{"seed":1.5}`, `{"seed":[]}`} {
		if e, err := ReadEarlier([]byte(`{"config":` + text + `,"slices":[{"seconds":1,"batches":1,"emitted":1}]}`)); e != nil || !errors.Is(err, format.ErrUsage) {
			t.Errorf("%s: %+v, %v", text, e, err)
		}
	}
}

// What comes from names and files is quoted where a terminal would obey it.
func TestReportForTerminals(t *testing.T) {
	const bad = "a\x1b[31m\r\nb\u009b"
	r := &Report{
		Config: Config{Source: bad + andOthers, Shards: 2}, Slices: evenly(1, 2), Warnings: []string{"of " + bad},
		Echo: EchoReport{Unit: "batch", Keep: "batch", Factor: 1}, Noise: 0.996,
		Sweep: []Swept{{Factor: 1, Noise: 1, Slices: evenly(1, 2)}},
	}
	e := &Earlier{Slices: evenly(1, 2), Version: bad, CPU: bad, Bottleneck: bad}
	r.Against = e.compare(r)
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if strings.ContainsAny(text, "\x1b\r\u009b") {
		t.Errorf("%q", text)
	}
	const quoted = `a\x1b[31m\r\nb\u009b`
	for _, want := range []string{
		`"` + quoted + `" and others: 2 shards, `, `(version "` + quoted + `")`, "another machine: " + quoted, "bottleneck was " + quoted, "warning: of " + quoted,
		" for batches, batch kept", " (± 100%)", " 100% ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if strings.Contains(text, "e+02") {
		t.Error(text)
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{
		1: "100%", 0.996: "100%", 0.994: "99%", 0.0994: "9.9%", 0.0996: "10%", 0.012345: "1.2%", 0.00012345: "0.012%", 1e-9: "0%", 0: "0%",
	} {
		if got := percent(share); got != want {
			t.Errorf("%v: %s, want %s", share, got, want)
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
