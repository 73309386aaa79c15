package bench

import (
	"io"
	"math"

	"shardtool/echo"
	"shardtool/internal/plot"
)

// WriteSVG draws the report: of a sweep the steps per second against the
// factor, measured and by the law; and what each stage did with its time.
func (r *Report) WriteSVG(w io.Writer) error {
	var all []plot.Drawing
	if len(r.Sweep) > 0 {
		all = append(all, r.sweepChart())
	}
	return plot.Write(w, append(all, r.stageBars())...)
}

func (r *Report) sweepChart() *plot.Chart {
	first, last := r.Sweep[0].Factor, r.Sweep[len(r.Sweep)-1].Factor
	perStep := r.EmittedPerS / r.StepsPerS
	law := plot.Series{Name: "the law, by the costs measured at the least factor", Style: plot.Line}
	const points = 256 // a corner between them is hardly seen
	for i := range points + 1 {
		e := first * math.Pow(last/first, float64(i)/points)
		law.Points = append(law.Points, plot.Point{X: e, Y: 1 / r.costs().PerEmission(r.unit(), r.keep(), e) / perStep})
	}
	measured := plot.Series{Name: "measured, median of rounds, least to most"}
	for _, s := range r.Sweep {
		measured.Points = append(measured.Points, plot.Point{X: s.Factor, Y: s.StepsPerS, Low: s.Least, High: s.Most})
	}
	return &plot.Chart{
		Title:  "Steps per second by echo factor: " + r.Echo.Unit + ", " + r.Echo.Keep + " kept, R = " + number(r.Echo.R),
		X:      plot.Axis{Label: "echo factor e (emissions of each " + r.Echo.Unit + ")", Scale: plot.Log2},
		Y:      plot.Axis{Label: "steps per second"},
		Series: []plot.Series{law, measured},
	}
}

func (r *Report) costs() echo.Costs {
	return echo.Costs{Fetch: r.Law.Fetch, Decode: r.Law.Decode, Augment: r.Law.Augment, Step: r.Law.Step}
}

func (r *Report) unit() echo.Unit {
	for _, u := range []echo.Unit{echo.Batch, echo.Shard} {
		if u.String() == r.Echo.Unit {
			return u
		}
	}
	return echo.Sample
}

func (r *Report) keep() echo.Level {
	for k := echo.Bytes; k <= echo.Batched; k++ {
		if k.String() == r.Echo.Keep {
			return k
		}
	}
	return echo.Natural
}

// stageBars shows the time of the workers of each stage, in percent of the
// window.
func (r *Report) stageBars() *plot.Bars {
	b := &plot.Bars{
		Title: "Time of each stage", Axis: plot.Axis{Label: "% of the window, in the mean of the stage's workers"},
		Parts: []plot.Part{{Name: "busy"}, {Name: "waits for input"}, {Name: "waits for room"}},
	}
	b.Axis.Max = 100
	for _, s := range r.Stages {
		b.Rows = append(b.Rows, s.Name)
		share := 100 / float64(max(s.Workers, 1)) / r.Seconds
		room := 100.0 // beyond it is what began before the window
		for i, v := range []float64{s.Busy, s.WaitIn, s.WaitOut} {
			v = min(share*v, room)
			room -= v
			b.Parts[i].Values = append(b.Parts[i].Values, v)
		}
	}
	return b
}
