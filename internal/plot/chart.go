package plot

import (
	"math"
	"strings"
)

// Style is how a series is drawn.
type Style uint8

// The styles.
const (
	Marks  Style = iota // a mark at each point
	Joined              // marks, and a line through them
	Line                // a line alone
	Dashed              // a broken line alone
)

// Point is one value of a series. What is not finite is left out, and breaks
// the line.
type Point struct {
	X, Y      float64
	Low, High float64 // ends of the error bar; none where they are equal
	Open      bool    // drawn hollow: a bound, and not a value
}

// Series is points that belong together.
type Series struct {
	Name   string // in the legend; "": it is not in it
	Style  Style
	Points []Point
}

// Chart is series over two axes.
type Chart struct {
	Title  string
	X, Y   Axis
	Series []Series
}

func (ch *Chart) heading() string { return ch.Title }

// frame is where the values of a chart are on the page.
type frame struct {
	x, y                     extent
	left, right, top, bottom float64
}

func (f *frame) at(x, y float64) (px, py float64, ok bool) {
	ax, okX := f.x.at(x)
	ay, okY := f.y.at(y)
	return f.acrossTo(ax), f.bottom - ay*(f.bottom-f.top), okX && okY
}

// acrossTo returns where a share of the axis x is: marks at its ends keep off
// the numbers of the axis y.
func (f *frame) acrossTo(share float64) float64 {
	const inset = 12
	return f.left + inset + share*(f.right-f.left-2*inset)
}

const plotHeight = 280

func (ch *Chart) draw(c *canvas) float64 {
	begin := c.top
	var keys []key
	for i, s := range ch.Series {
		keys = append(keys, key{s.Name, func(x, y float64) {
			c.stroke(i, s.Style, x-9, y, x+9, y)
			if s.Style == Marks || s.Style == Joined {
				c.mark(i, x, y, false)
			}
		}})
	}
	f := frame{right: width - margin - 10}
	f.top = begin + c.heading(ch.Title, keys) + 4
	f.bottom = f.top + plotHeight
	f.x, f.y = ch.X.settle(ch.bounds(&ch.X, func(p Point) []float64 { return []float64{p.X} })), ch.Y.settle(ch.bounds(&ch.Y, Point.heights))
	f.left = margin + line + 8
	for _, t := range f.y.ticks {
		f.left = max(f.left, margin+line+8+textWidth(t.name))
	}
	c.axes(&f, ch.X.Label, ch.Y.Label)
	for i := range ch.Series {
		c.series(&f, i, &ch.Series[i])
	}
	return f.bottom + 2*line + 8 - begin
}

func (p Point) heights() []float64 {
	if p.Low == p.High {
		return []float64{p.Y}
	}
	return []float64{p.Y, p.Low, p.High}
}

// bounds returns the least and the largest of the values that an axis can show.
func (ch *Chart) bounds(a *Axis, of func(Point) []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range ch.Series {
		for _, p := range s.Points {
			for _, v := range of(p) {
				if _, ok := a.Scale.place(v); ok {
					low, high = min(low, v), max(high, v)
				}
			}
		}
	}
	return low, high
}

// axes draws the grid, the ticks and the names of the axes.
func (c *canvas) axes(f *frame, x, y string) {
	for _, t := range f.y.ticks {
		at, _ := f.y.at(t.at)
		py := f.bottom - at*(f.bottom-f.top)
		c.element("line", "grid", "x1", f.left, "y1", py, "x2", f.right, "y2", py)
		c.text(f.left-6, py+4, atEnd, "soft", t.name)
	}
	c.element("line", "axis", "x1", f.left, "y1", f.bottom, "x2", f.right, "y2", f.bottom)
	for _, t := range f.x.ticks {
		at, _ := f.x.at(t.at)
		px := f.acrossTo(at)
		c.element("line", "axis", "x1", px, "y1", f.bottom, "x2", px, "y2", f.bottom+4)
		c.text(px, f.bottom+line, atMid, "soft", t.name)
	}
	c.text((f.left+f.right)/2, f.bottom+2*line+2, atMid, "soft", x)
	c.upright(margin+10, (f.top+f.bottom)/2, y)
}

// series draws the line, then the error bars, then the marks.
func (c *canvas) series(f *frame, i int, s *Series) {
	if s.Style != Marks {
		c.path(f, i, s)
	}
	for _, p := range s.Points {
		if p.Low == p.High {
			continue
		}
		px, low, okLow := f.at(p.X, p.Low)
		_, high, okHigh := f.at(p.X, p.High)
		if !okLow || !okHigh {
			continue
		}
		c.element("path", paint("mark", i), "d", "M"+number(px-4)+" "+number(high)+"h8m-4 0V"+number(low)+"m-4 0h8", "fill", "none")
	}
	if s.Style != Marks && s.Style != Joined {
		return
	}
	for _, p := range s.Points {
		if px, py, ok := f.at(p.X, p.Y); ok {
			c.mark(i, px, py, p.Open)
		}
	}
}

// path draws the line through the points of a series.
func (c *canvas) path(f *frame, i int, s *Series) {
	var d strings.Builder
	down := false
	for _, p := range s.Points {
		px, py, ok := f.at(p.X, p.Y)
		switch {
		case !ok:
			down = false
			continue
		case down:
			d.WriteString("L")
		default:
			d.WriteString("M")
		}
		d.WriteString(number(px) + " " + number(py))
		down = true
	}
	if d.Len() > 0 {
		c.element("path", s.Style.class(i), "d", d.String())
	}
}

func (s Style) class(i int) string {
	class := paint("line", i)
	if s == Dashed {
		class += " dash"
	}
	return class
}

// stroke draws the line of a series between two points, if it has one.
func (c *canvas) stroke(i int, s Style, x1, y1, x2, y2 float64) {
	if s != Marks {
		c.element("line", s.class(i), "x1", x1, "y1", y1, "x2", x2, "y2", y2)
	}
}

func paint(class string, i int) string { return class + " s" + string(rune('0'+i%colours)) }

// mark draws the mark of series i, each of a shape of its own up to as many as
// there are colours.
func (c *canvas) mark(i int, x, y float64, open bool) {
	class := paint("mark", i) + " f" + string(rune('0'+i%colours))
	if open {
		class = paint("open mark", i)
	}
	shapes := []string{"m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z", "m-4 -4h8v8h-8z", "m0 -5l5 9h-10z", "m0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z",
		"m0 5l5 -9h-10z", "m-4.5 -4.5l9 9v-9l-9 9z"}
	c.element("path", class, "d", "M"+number(x)+" "+number(y)+shapes[i%len(shapes)])
}
