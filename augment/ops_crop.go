package augment

import (
	"fmt"
	"image"
	"math"
)

// PaddingMode is what lies outside of a picture.
type PaddingMode uint8

const (
	Constant  PaddingMode = iota // the fill color
	Edge                         // the nearest pixel
	Reflect                      // the picture mirrored about its outermost pixels: 3 2 | 1 2 3 | 2 1
	Symmetric                    // the picture mirrored about its edges: 2 1 | 1 2 3 | 3 2
)

var paddingModes = [...]string{"constant", "edge", "reflect", "symmetric"}

// String returns torchvision's name, such as "reflect".
func (m PaddingMode) String() string {
	if int(m) < len(paddingModes) {
		return paddingModes[m]
	}
	return "unknown"
}

// Edges is a number of pixels at each side of a picture.
type Edges struct{ Left, Top, Right, Bottom int }

// AllEdges is the same number at each side.
func AllEdges(n int) Edges { return Edges{n, n, n, n} }

func checkPadding(op string, e Edges, m PaddingMode) error {
	for _, n := range [...]int{e.Left, e.Top, e.Right, e.Bottom} {
		if n < 0 || n > maxSize {
			return usage("%s: padding %v is not within 0 to %d", op, e, maxSize)
		}
	}
	if int(m) >= len(paddingModes) {
		return usage("%s: padding mode %d is unknown", op, m)
	}
	return nil
}

// CenterCrop cuts out the central part of Size x Size, or Height x Width. A
// picture that is smaller is padded with black on both sides.
type CenterCrop struct{ Size, Height, Width int }

func (c CenterCrop) check() error {
	return checkTarget("CenterCrop", c.Size, c.Height, c.Width, maxSize)
}

func (c CenterCrop) step() step {
	to := target(c.Size, c.Height, c.Width)
	return step{
		name:  "CenterCrop",
		note:  fmt.Sprintf("%dx%d", to.X, to.Y),
		size:  func(image.Point) image.Point { return to },
		draw:  func(_ Stream, in image.Point) Drawn { return Drawn{Active: true, Rect: central(in, to)} },
		reach: func(in image.Point) reach { return reachOf(in, to) },
		fold:  foldCrop,
		apply: applyCrop(Constant, [3]uint8{}),
	}
}

// central places a part of size to in the middle of a picture of size in. It
// lies beyond the picture where that is smaller. Halves go to the even side
// where the picture is cut, as Python rounds, and down where it is padded.
func central(in, to image.Point) image.Rectangle {
	at := func(in, to int) int {
		if to > in {
			return -((to - in) / 2)
		}
		return int(math.RoundToEven(float64(in-to) / 2))
	}
	return image.Rectangle{Max: to}.Add(image.Pt(at(in.X, to.X), at(in.Y, to.Y)))
}

// reach tells whether the part that a crop keeps is within the picture.
type reach uint8

const (
	within    reach = iota
	ifSmaller       // beyond where the picture is smaller than the part
	perhaps         // that depends on the picture or on what is drawn
	beyond
)

// reachOf is the reach of a part of size to that lies within wherever it can.
func reachOf(in, to image.Point) reach {
	switch {
	case in == image.Point{}:
		return ifSmaller
	case to.X <= in.X && to.Y <= in.Y:
		return within
	}
	return beyond
}

func foldCrop(g geometry, d Drawn) (geometry, bool) {
	if d.Rect.Empty() || !d.Rect.In(image.Rectangle{Max: g.result()}) {
		return g, false
	}
	return g.crop(d.Rect), true
}

func applyCrop(mode PaddingMode, fill [3]uint8) func(*canvas, Drawn) error {
	return func(c *canvas, d Drawn) error {
		if err := c.make(d.Rect.Dx(), d.Rect.Dy()); err != nil {
			return err
		}
		extended(&c.next, &c.now, d.Rect, mode, fill)
		c.swap()
		return nil
	}
}

// RandomCrop cuts out a part of Size x Size, or Height x Width, at a random
// place of the picture padded by Padding, and where PadIfNeeded, further on
// both sides of an axis that is too short. A picture that is too small is
// ErrUsage otherwise. Draws: top, left, each where there is a choice.
type RandomCrop struct {
	Size, Height, Width int
	Padding             Edges
	PadIfNeeded         bool
	Fill                [3]uint8 // red, green, blue of what Constant pads with
	PaddingMode         PaddingMode
}

func (c RandomCrop) check() error {
	if err := checkTarget("RandomCrop", c.Size, c.Height, c.Width, maxSize); err != nil {
		return err
	}
	return checkPadding("RandomCrop", c.Padding, c.PaddingMode)
}

func (c RandomCrop) step() step {
	to := target(c.Size, c.Height, c.Width)
	apply := applyCrop(c.PaddingMode, c.Fill)
	note := fmt.Sprintf("%dx%d", to.X, to.Y)
	if c.Padding != (Edges{}) || c.PadIfNeeded {
		note += fmt.Sprintf(", padding %v %v", c.PaddingMode, c.Padding)
	}
	return step{
		name:  "RandomCrop",
		note:  note,
		size:  func(image.Point) image.Point { return to },
		draw:  func(s Stream, in image.Point) Drawn { return c.place(in, to, s.IntN) },
		rest:  func(in image.Point) Drawn { return c.place(in, to, func(n int) int { return n / 2 }) },
		reach: func(in image.Point) reach { return c.reach(in, to) },
		fold:  foldCrop,
		apply: func(cv *canvas, d Drawn) error {
			if d.Rect.Empty() {
				return usage("RandomCrop: %dx%d pixels hold no part of %dx%d", cv.now.width, cv.now.height, to.X, to.Y)
			}
			return apply(cv, d)
		},
	}
}

func (c RandomCrop) reach(in, to image.Point) reach {
	switch {
	case c.Padding == Edges{} && !c.PadIfNeeded:
		return within
	case c.Padding == Edges{} || reachOf(in, to) == beyond:
		return reachOf(in, to)
	}
	return perhaps
}

// place chooses the part by choose(n), a number below n. The part is empty
// where the picture is too small.
func (c RandomCrop) place(in, to image.Point, choose func(int) int) Drawn {
	left, width := c.axis(in.X, to.X, c.Padding.Left, c.Padding.Right)
	top, height := c.axis(in.Y, to.Y, c.Padding.Top, c.Padding.Bottom)
	if width < to.X || height < to.Y {
		return Drawn{Active: true}
	}
	var at image.Point
	if height > to.Y {
		at.Y = choose(height - to.Y + 1)
	}
	if width > to.X {
		at.X = choose(width - to.X + 1)
	}
	return Drawn{Active: true, Rect: image.Rectangle{Max: to}.Add(at).Sub(image.Pt(left, top))}
}

// axis returns how much is added before an axis, and its length then.
func (c RandomCrop) axis(in, to, before, after int) (int, int) {
	length := in + before + after
	if missing := to - length; missing > 0 && c.PadIfNeeded {
		return before + missing, length + 2*missing
	}
	return before, length
}

// Pad adds pixels at the sides of the picture.
type Pad struct {
	Padding     Edges
	Fill        [3]uint8 // red, green, blue of what Constant pads with
	PaddingMode PaddingMode
}

func (p Pad) check() error { return checkPadding("Pad", p.Padding, p.PaddingMode) }

func (p Pad) step() step {
	e := p.Padding
	apply := applyCrop(p.PaddingMode, p.Fill)
	return step{
		name: "Pad",
		note: fmt.Sprintf("%v %v", p.PaddingMode, e),
		size: func(in image.Point) image.Point {
			if in == (image.Point{}) {
				return in
			}
			return in.Add(image.Pt(e.Left+e.Right, e.Top+e.Bottom))
		},
		draw: func(_ Stream, in image.Point) Drawn {
			return Drawn{Active: true, Rect: image.Rect(-e.Left, -e.Top, in.X+e.Right, in.Y+e.Bottom)}
		},
		reach: func(image.Point) reach {
			if e == (Edges{}) {
				return within
			}
			return beyond
		},
		fold:  foldCrop,
		apply: apply,
	}
}

// RandomResizedCrop cuts out a part of random area and aspect ratio and
// resizes it to Size x Size, or Height x Width: ten tries, then the largest
// central part of an allowed ratio. Draws of a try: area, ratio, and if it
// fits, top, left. Without randomness it is that central part.
type RandomResizedCrop struct {
	Size, Height, Width int
	Scale               [2]float64    // bounds of the part's area, as a share of the picture's; zero: 0.08 to 1
	Ratio               [2]float64    // bounds of width by height; zero: 3/4 to 4/3
	Interpolation       Interpolation // Default: Bilinear
	NoAntialias         bool          // do not widen the filter when reducing
}

func (c RandomResizedCrop) withDefaults() RandomResizedCrop {
	c.Scale = orRange(c.Scale, [2]float64{0.08, 1})
	c.Ratio = orRange(c.Ratio, [2]float64{3.0 / 4, 4.0 / 3})
	c.Interpolation = c.Interpolation.or(Bilinear)
	return c
}

func (c RandomResizedCrop) check() error {
	d := c.withDefaults()
	if err := checkTarget("RandomResizedCrop", c.Size, c.Height, c.Width, maxSize); err != nil {
		return err
	}
	if err := checkRange("RandomResizedCrop", "scale", d.Scale, math.SmallestNonzeroFloat64, 1); err != nil {
		return err
	}
	if err := checkRange("RandomResizedCrop", "ratio", d.Ratio, math.SmallestNonzeroFloat64, math.MaxFloat64); err != nil {
		return err
	}
	return checkResize("RandomResizedCrop", d.Interpolation, c.NoAntialias)
}

func (c RandomResizedCrop) step() step {
	c = c.withDefaults()
	to := target(c.Size, c.Height, c.Width)
	return step{
		name: "RandomResizedCrop",
		note: fmt.Sprintf("%dx%d, %s", to.X, to.Y, resizeNote(c.Interpolation, c.NoAntialias)),
		size: func(image.Point) image.Point { return to },
		draw: func(s Stream, in image.Point) Drawn { return Drawn{Active: true, Rect: c.draw(&s, in.X, in.Y)} },
		rest: func(in image.Point) Drawn { return Drawn{Active: true, Rect: c.central(in.X, in.Y)} },

		resizes: true,
		fold: func(g geometry, d Drawn) (geometry, bool) {
			if !d.Rect.In(image.Rectangle{Max: g.result()}) || !g.crop(d.Rect).resizable(to) {
				return g, false
			}
			return g.crop(d.Rect).resize(to, c.Interpolation, !c.NoAntialias), true
		},
		apply: func(cv *canvas, d Drawn) error {
			if err := applyCrop(Edge, [3]uint8{})(cv, d); err != nil {
				return err
			}
			return cv.resize(to, c.Interpolation, !c.NoAntialias)
		},
	}
}

// draw chooses the part, in the order of draws of torchvision's get_params.
// Products are rounded one by one, so that a fused multiply-add cannot move a
// crop.
func (c RandomResizedCrop) draw(r *Stream, width, height int) image.Rectangle {
	area := float64(width) * float64(height)
	low, high := math.Log(c.Ratio[0]), math.Log(c.Ratio[1])
	for range 10 {
		part := float64(area * r.Between(c.Scale[0], c.Scale[1]))
		aspect := math.Exp(r.Between(low, high))
		w := math.RoundToEven(math.Sqrt(float64(part * aspect)))
		h := math.RoundToEven(math.Sqrt(float64(part / aspect)))
		if 0 < w && w <= float64(width) && 0 < h && h <= float64(height) {
			top := r.IntN(height - int(h) + 1)
			left := r.IntN(width - int(w) + 1)
			return image.Rect(left, top, left+int(w), top+int(h))
		}
	}
	return c.central(width, height)
}

func (c RandomResizedCrop) central(width, height int) image.Rectangle {
	w, h := width, height
	switch in := float64(width) / float64(height); {
	case in < c.Ratio[0]:
		h = min(height, int(math.RoundToEven(float64(width)/c.Ratio[0])))
	case in > c.Ratio[1]:
		w = min(width, int(math.RoundToEven(float64(height)*c.Ratio[1])))
	}
	// A picture one pixel wide may leave nothing to round to.
	w, h = max(w, 1), max(h, 1)
	top, left := (height-h)/2, (width-w)/2
	return image.Rect(left, top, left+w, top+h)
}
