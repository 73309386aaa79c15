package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the drawings of testdata anew: look at them then")

func drawings() []Drawing {
	return []Drawing{
		&Chart{
			Title: "Steps per second against e", X: Axis{Label: "emissions of each sample, e", Scale: Log2}, Y: Axis{Label: "steps per second"},
			Series: []Series{
				{Name: "the law", Style: Line, Points: []Point{{X: 1, Y: 5}, {X: 4, Y: 20}, {X: 16, Y: 20}}},
				{Name: "measured", Points: []Point{{X: 1, Y: 5, Low: 4, High: 6}, {X: 2, Y: 10}, {X: 4, Y: 19, Low: 17, High: 20}, {X: 8, Y: math.NaN()}, {X: 16, Y: 20, Open: true}}},
				{Name: "before & after <x>", Style: Joined, Points: []Point{{X: 1, Y: 2}, {X: 2, Y: 3}}},
				{Style: Dashed, Points: []Point{{X: 4, Y: 0}, {X: 4, Y: 20}}},
			},
		},
		&Bars{
			Title: "Time of each stage", Axis: Axis{Label: "seconds"}, Rows: []string{"fetch", "decode"},
			Parts: []Part{{"busy", []float64{3, 1}}, {"waits for input", []float64{0.5, math.Inf(1)}}, {"waits for room", []float64{1}}},
		},
		&Chart{
			Title: "By name", X: Axis{Label: "variant", Names: []string{"baseline", "batch"}}, Y: Axis{Label: "fresh examples", Scale: Log10},
			Series: []Series{{Name: "median", Points: []Point{{X: 0, Y: 12000}, {X: 1, Y: 700, Low: 500, High: 900}}}},
		},
	}
}

// TestDrawing compares with a drawing that was looked at, in both schemes.
func TestDrawing(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, drawings()...); err != nil {
		t.Fatal(err)
	}
	const path = "testdata/drawing.svg"
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Bytes(); !bytes.Equal(got, bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))) {
		t.Errorf("%s is another drawing than\n%s", path, got)
	}
}

// parsed fails where a text is not XML, and returns its text and element names.
func parsed(t interface{ Fatalf(string, ...any) }, svg []byte) (text string, names map[string]int) {
	names = map[string]int{}
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return text, names
		case err != nil:
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch v := token.(type) {
		case xml.CharData:
			text += string(v)
		case xml.StartElement:
			names[v.Name.Local]++
			for _, a := range v.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Fatalf("%s of %s", a.Value, v.Name.Local)
				}
			}
		}
	}
}

func TestWellFormed(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, drawings()...); err != nil {
		t.Fatal(err)
	}
	text, names := parsed(t, b.Bytes())
	for _, want := range []string{
		"before & after <x>", "emissions of each sample, e", "steps per second", "fetch", "waits for room", "seconds", "baseline", "10,000", "prefers-color-scheme:dark",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no text %q", want)
		}
	}
	// Two drawings have bars of 3 keys and 4 values that are not 0; one paper.
	if names["rect"] != 1+3+4 || names["title"] != 1 || names["style"] != 1 {
		t.Errorf("%v", names)
	}
	var again bytes.Buffer
	if err := Write(&again, drawings()...); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("another drawing the second time, %v", err)
	}
}

// Any values and names give XML whose coordinates are numbers.
func TestAnyValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-10, 1e6), rapid.SampledFrom([]float64{0, math.Inf(1), math.Inf(-1), math.NaN(), 1}))
		small := rapid.OneOf(rapid.Float64Range(-1e30, 1e30), rapid.SampledFrom([]float64{0, math.Inf(1), math.NaN(), 1}))
		axis := func(name string) Axis {
			return Axis{Label: rapid.String().Draw(t, name), Scale: rapid.SampledFrom([]Scale{Linear, Log2, Log10}).Draw(t, name)}
		}
		ch := &Chart{Title: rapid.String().Draw(t, "title"), X: axis("x"), Y: axis("y")}
		for range rapid.IntRange(0, 8).Draw(t, "series") {
			s := Series{Name: rapid.String().Draw(t, "name"), Style: rapid.SampledFrom([]Style{Marks, Joined, Line, Dashed}).Draw(t, "style")}
			for range rapid.IntRange(0, 5).Draw(t, "points") {
				s.Points = append(s.Points, Point{X: small.Draw(t, "x"), Y: small.Draw(t, "y"), Low: small.Draw(t, "low"), High: small.Draw(t, "high")})
			}
			ch.Series = append(ch.Series, s)
		}
		bars := &Bars{Rows: rapid.SliceOfN(rapid.String(), 0, 4).Draw(t, "rows")}
		bars.Parts = append(bars.Parts, Part{Values: rapid.SliceOfN(value, 0, 4).Draw(t, "values")})
		var b bytes.Buffer
		if err := Write(&b, ch, bars); err != nil {
			t.Fatal(err)
		}
		parsed(t, b.Bytes())
	})
}

func TestTicks(t *testing.T) {
	for _, tt := range []struct {
		axis      Axis
		low, high float64
		want      string
	}{
		{Axis{}, 3, 20, "0 5 10 15 20"},
		{Axis{}, 0, 1, "0 0.2 0.4 0.6 0.8 1"},
		{Axis{}, 0, 0.3, "0 0.05 0.1 0.15 0.2 0.25 0.3"},
		{Axis{}, -2, 2, "-2 -1 0 1 2"},
		{Axis{}, 0, 61000, "0 20,000 40,000 60,000 80,000"},
		{Axis{}, 0, 0, "0 0.2 0.4 0.6 0.8 1"},
		{Axis{}, math.Inf(1), math.Inf(-1), "0 0.2 0.4 0.6 0.8 1"},
		{Axis{Min: 40, Max: 50}, 45, 46, "40 42 44 46 48 50"},
		{Axis{}, 0, 3e6, "0 500,000 1e6 1.5e6 2e6 2.5e6 3e6"},
		{Axis{Scale: Log2}, 1, 16, "1 2 4 8 16"},
		{Axis{Scale: Log2}, 0.6, 5, "0.5 1 2 4 8"},
		{Axis{Scale: Log2}, 4, 4, "2 4"},
		{Axis{Scale: Log2}, 1, 1 << 12, "1 4 16 64 256 1024 4096"},
		{Axis{Scale: Log10}, 3, 40, "2 5 10 20 50"},
		{Axis{Scale: Log10}, 1, 100, "1 2 5 10 20 50 100"},
		{Axis{Scale: Log10}, 1e-3, 1e5, "0.001 0.01 0.1 1 10 100 1000 10,000 100,000"},
		{Axis{Scale: Log10}, math.Inf(1), math.Inf(-1), "1 2"},
		{Axis{Names: []string{"a", "b"}}, 0, 1, "a b"},
	} {
		e := tt.axis.settle(tt.low, tt.high)
		var names []string
		for _, tick := range e.ticks {
			names = append(names, tick.name)
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%+v from %v to %v: %s, want %s", tt.axis, tt.low, tt.high, got, tt.want)
		}
		if !slices.IsSortedFunc(e.ticks, func(a, b tick) int {
			if a.at < b.at {
				return -1
			}
			return 1
		}) {
			t.Errorf("%v", e.ticks)
		}
	}
}

// A value at the middle of an axis is there.
func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		axis      Axis
		low, high float64
		v, want   float64
		ok        bool
	}{
		{Axis{}, 0, 10, 5, 0.5, true},
		{Axis{Scale: Log2}, 1, 16, 4, 0.5, true},
		{Axis{Scale: Log10}, 1, 100, 10, 0.5, true},
		{Axis{Names: []string{"a", "b"}}, 0, 0, 0, 0.25, true},
		{Axis{Scale: Log2}, 1, 16, 0, 0, false},
		{Axis{}, 0, 10, math.Inf(1), 0, false},
	} {
		e := tt.axis.settle(tt.low, tt.high)
		if got, ok := e.at(tt.v); ok != tt.ok || ok && math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%v of %+v: %v, %v", tt.v, tt.axis, got, ok)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriteFails(t *testing.T) {
	if err := Write(broken{}, drawings()...); err != io.ErrShortWrite {
		t.Error(err)
	}
}
