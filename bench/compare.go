package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"shardtool/format"
)

// Earlier is what a comparison needs of an earlier report.
type Earlier struct {
	Bottleneck string        `json:"bottleneck"`
	Echo       earlierEcho   `json:"echo"`
	Sweep      []earlierStep `json:"sweep"`
	Slices     []Slice       `json:"slices"`
	Config     *Config       `json:"config"`
	Version    string        `json:"version"`
	CPU        string        `json:"cpu"`
	Gomaxprocs int           `json:"gomaxprocs"`
}

type earlierEcho struct {
	Unit   string  `json:"unit"`
	Keep   string  `json:"keep"`
	Factor float64 `json:"factor"`
	Buffer int     `json:"buffer"`
	Auto   bool    `json:"auto"`
}

type earlierStep struct {
	Factor float64 `json:"factor"`
	Slices []Slice `json:"slices"`
}

// ReadEarlier reads the JSON of a report; of several lines, the last. What is
// none, or has no spread to compare by, is ErrUsage.
func ReadEarlier(text []byte) (*Earlier, error) {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	var e Earlier
	switch err := json.Unmarshal(lines[len(lines)-1], &e); {
	case err != nil || e.Config == nil:
		return nil, format.Errorf(format.ErrUsage, format.Nowhere, "no report of a measurement, as bench --json prints it")
	case len(e.Slices) == 0:
		return nil, format.Errorf(format.ErrUsage, format.Nowhere, "a report without the spread of its rates, of an older version: measure it again")
	case !e.measured():
		return nil, format.Errorf(format.ErrUsage, format.Nowhere, "no report of a measurement: its figures cannot have been measured")
	}
	return &e, nil
}

// measured reports whether every slice may be one of a window.
func (e *Earlier) measured() bool {
	if !measured(e.Slices) {
		return false
	}
	for _, s := range e.Sweep {
		if !(s.Factor >= 1) || !measured(s.Slices) {
			return false
		}
	}
	return true
}

// measured reports whether slices hold time and samples, and nothing negative
// or beyond all measure: quotients of their sums are finite. There may be no
// time of cores where the system does not tell it, and no fresh sample.
func measured(slices []Slice) bool {
	const most = 1e12 // seconds, or samples
	var seconds float64
	var emitted int64
	for _, s := range slices {
		switch {
		case !(s.Seconds >= 0 && s.Seconds <= most), !(s.CPU >= 0 && s.CPU <= most):
			return false
		case s.Batches < 1 || s.Batches > most, s.Fresh < 0 || s.Fresh > s.Emitted || s.Emitted > most:
			return false
		}
		seconds += s.Seconds
		emitted += s.Emitted
	}
	return seconds >= 1e-9 && emitted > 0
}

// UnmarshalJSON also reads a seed that is a string, as the command writes whole
// numbers that a float64 would round.
func (c *Config) UnmarshalJSON(text []byte) error {
	type config Config
	members := struct {
		*config
		Seed json.Number `json:"seed"`
	}{config: (*config)(c)}
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	if members.Seed == "" {
		return nil
	}
	var err error
	c.Seed, err = strconv.ParseUint(members.Seed.String(), 10, 64)
	return err
}

// comparable refuses a report of another set-up, naming every setting that
// differs. How long was measured may differ.
func (e *Earlier) comparable(now *Config, echo EchoReport) error {
	was := e.Config
	differs := ""
	for _, s := range []struct {
		name     string
		was, now any
	}{
		{"the source", was.Source, now.Source},
		{"the number of shards", was.Shards, now.Shards},
		{"--batch", was.Batch, now.Batch},
		{"--workers", was.Workers, now.Workers},
		{"--seed", was.Seed, now.Seed},
		{"--shuffle", was.Shuffle, now.Shuffle},
		{"--upstream", was.Upstream, now.Upstream},
		{"--world", was.World, now.World},
		{"--rank", was.Rank, now.Rank},
		{"--device", was.Device, now.Device},
		{"the accelerator's step in seconds", was.StepS, now.StepS},
		{"--unit", e.Echo.Unit, echo.Unit},
		{"--keep", e.Echo.Keep, echo.Keep},
		{"--echo, or the least of --sweep,", e.Echo.Factor, echo.Factor},
		{"--buffer", e.Echo.Buffer, echo.Buffer},
		{"--echo auto", e.Echo.Auto, echo.Auto},
		{"--columns", was.Columns, now.Columns},
	} {
		if s.was == s.now {
			continue
		}
		if differs != "" {
			differs += "; "
		}
		if s.name == "--columns" { // many lines
			differs += "--columns made other tensors"
		} else {
			differs += fmt.Sprintf("%s was %v and is %v", s.name, quoted(s.was), quoted(s.now))
		}
	}
	if differs == "" {
		return nil
	}
	return format.Errorf(format.ErrUsage, format.Nowhere, "the earlier report is of another set-up: %s", differs)
}

func quoted(v any) any {
	if v == "" {
		return "none"
	}
	return v
}

// Comparison is what changed since an earlier report.
type Comparison struct {
	Version string   `json:"version"` // of the program that made the earlier one
	Changes []Change `json:"changes"`
	Notes   []string `json:"notes"` // what else differs
}

// Change is one figure, before and now.
type Change struct {
	What    string  `json:"what"`   // emitted_per_s, fresh_per_s, cpu_s_per_1000
	Factor  float64 `json:"factor"` // of the echo
	Before  float64 `json:"before"`
	Now     float64 `json:"now"`
	Ratio   float64 `json:"ratio"` // now by before
	Low     float64 `json:"low"`   // 95% interval of the ratio; 0 where the noise is not known
	High    float64 `json:"high"`
	Verdict string  `json:"verdict"` // faster, slower, or less and more of what is spent; unchanged; unknown
}

// compare compares a report of the same set-up. What cannot be told from the
// noise is unchanged: the noise is the spread between the slices of each window,
// so what differs from run to run is not in it.
func (e *Earlier) compare(r *Report) *Comparison {
	c := &Comparison{Version: e.Version}
	if e.CPU != r.CPU || e.Gomaxprocs != r.Gomaxprocs {
		c.Notes = append(c.Notes, fmt.Sprintf("it was measured on another machine: %s, %d at a time", e.CPU, e.Gomaxprocs))
	}
	if e.Bottleneck != r.Bottleneck {
		c.Notes = append(c.Notes, fmt.Sprintf("the bottleneck was %s and is %s", e.Bottleneck, r.Bottleneck))
	}
	for _, f := range figures {
		c.Changes = append(c.Changes, f.change(r.Echo.Factor, e.Slices, r.Slices))
	}
	for _, was := range e.Sweep {
		for _, now := range r.Sweep {
			if was.Factor == now.Factor && was.Factor != r.Echo.Factor {
				c.Changes = append(c.Changes, figures[0].change(now.Factor, was.Slices, now.Slices))
			}
		}
	}
	return c
}

// figure is a quotient of what slices count.
type figure struct {
	what       string
	more, less string // the verdicts
	of, by     func(s *Slice) float64
}

var figures = []figure{
	{"emitted_per_s", "faster", "slower", func(s *Slice) float64 { return float64(s.Emitted) }, func(s *Slice) float64 { return s.Seconds }},
	{"fresh_per_s", "faster", "slower", func(s *Slice) float64 { return float64(s.Fresh) }, func(s *Slice) float64 { return s.Seconds }},
	{"cpu_s_per_1000", "more", "less", func(s *Slice) float64 { return s.CPU }, func(s *Slice) float64 { return float64(s.Emitted) / 1000 }},
}

// estimate returns the figure of all slices, and its standard error as a share
// of it, by the spread between them: that of a quotient of sums. It is NaN where
// slices do not tell.
func (f *figure) estimate(slices []Slice) (value, spread float64) {
	var of, by float64
	for i := range slices {
		of += f.of(&slices[i])
		by += f.by(&slices[i])
	}
	value = of / by
	k := float64(len(slices))
	if !(value > 0) || k < 2 {
		return value, math.NaN()
	}
	var squares float64
	for i := range slices {
		d := f.of(&slices[i]) - value*f.by(&slices[i])
		squares += d * d
	}
	return value, math.Sqrt(squares*k/(k-1)) / by / value
}

// noise returns half the width of the 95% interval of the figure, as a share of
// it; 1 where it is more, or not known.
func (f *figure) noise(slices []Slice) float64 {
	_, spread := f.estimate(slices)
	if n := student(len(slices)-1) * spread; n < 1 {
		return n
	}
	return 1
}

func (f *figure) change(factor float64, before, now []Slice) Change {
	c := Change{What: f.what, Factor: factor, Verdict: "unknown"}
	var a, b float64
	c.Before, a = f.estimate(before)
	c.Now, b = f.estimate(now)
	c.Ratio = c.Now / c.Before
	spread := student(min(len(before), len(now))-1) * math.Sqrt(a*a+b*b)
	if math.IsNaN(spread) {
		return c
	}
	c.Low, c.High = c.Ratio*math.Exp(-spread), c.Ratio*math.Exp(spread)
	switch {
	case c.Low > 1:
		c.Verdict = f.more
	case c.High < 1:
		c.Verdict = f.less
	default:
		c.Verdict = "unchanged"
	}
	return c
}

// student returns the quantile of Student's distribution that leaves out 5% on
// both sides together, for so many degrees of freedom.
func student(df int) float64 {
	table := []float64{
		12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
		2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
	}
	switch {
	case df < 1:
		return math.NaN()
	case df <= len(table):
		return table[df-1]
	}
	return 1.96 + 2.5/float64(df)
}
