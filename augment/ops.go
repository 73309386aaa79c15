package augment

import (
	"image"
	"math"

	"shardtool/format"
)

// Op is an operation of a transform: one of the types of this package that
// have it. Names, parameters and defaults are torchvision's; where an
// operation acts on 8-bit pictures, its results are those of torchvision on
// Pillow's images. The zero value of a parameter is torchvision's default:
// RandomHorizontalFlip{} mirrors every second picture, RandomHorizontalFlip{P:
// [Never]} none.
type Op interface {
	check() error // ErrUsage for parameters that make no sense
	step() step
}

// Never is zero for the parameters whose zero value stands for a default, as
// their comments say: a probability of zero, or a magnitude. Whoever varies such
// a parameter down to zero must give Never there.
const Never = -1

// step is an operation made ready: what it draws, and the ways to do it.
type step struct {
	name  string
	note  string // the parameters, for Explain
	place int    // in the list given to Compile
	nth   int    // of the steps of one operation

	// size gives the size of the result for a picture of size in; zero stands
	// for one that is known only when a picture is. nil: the size stays.
	size func(in image.Point) image.Point
	// draw chooses what to do to a picture of size in. nil: nothing is chosen.
	draw func(s Stream, in image.Point) Drawn
	// rest is draw without randomness. nil: as draw, with whatever it is given.
	rest func(in image.Point) Drawn
	// fold makes the operation part of the one pass of g. nil: it cannot be.
	fold func(g geometry, d Drawn) (geometry, bool)
	// reach tells, before anything is drawn, whether the part that is kept of a
	// picture of size in is within it; zero stands for one that is known only
	// when a picture is. nil: it is.
	reach func(in image.Point) reach
	// resizes tells that fold may change the size otherwise than by a cut.
	resizes bool
	// apply does the operation to the raster of c.
	apply func(c *canvas, d Drawn) error
}

func (s *step) result(in image.Point) image.Point {
	if s.size == nil {
		return in
	}
	return s.size(in)
}

// folds makes the operation part of the one pass of g, as it is if there is
// nothing to do.
func (s *step) folds(g geometry, d Drawn) (geometry, bool) {
	switch {
	case !d.Active:
		return g, true
	case s.fold == nil:
		return g, false
	}
	return s.fold(g, d)
}

// idle is fold of an operation that never does anything.
func idle(g geometry, _ Drawn) (geometry, bool) { return g, true }

// foldGray makes the luma part of the pass. Crops, resizes and mirrorings that
// follow do the same to it as to three channels.
func foldGray(g geometry, _ Drawn) (geometry, bool) { return g.toGray(), true }

// never is what an operation that changes the picture at random does without
// randomness.
func never(image.Point) Drawn { return Drawn{} }

// Interpolation is how values between pixels are found.
type Interpolation uint8

const (
	Default  Interpolation = iota // the operation's own, as torchvision's
	Nearest                       // the pixel that covers the place
	Bilinear                      // a triangle
	Bicubic                       // a cubic with a = -0.5, or -0.75 without antialiasing
	Lanczos                       // a windowed sinc of radius 3
)

var interpolations = [...]string{"default", "nearest", "bilinear", "bicubic", "lanczos"}

// String returns torchvision's name, such as "bilinear".
func (i Interpolation) String() string {
	if int(i) < len(interpolations) {
		return interpolations[i]
	}
	return "unknown"
}

func (i Interpolation) or(other Interpolation) Interpolation {
	if i == Default {
		return other
	}
	return i
}

// The bounds of parameters. maxSize, of results, keeps three planes of float32
// addressable on any machine. A Resize may go further, for a crop to follow: the
// one pass makes no more than what the crop keeps.
const (
	maxSize   = 1 << 13
	maxResize = 1 << 14
	maxKernel = 1<<10 - 1
	maxBins   = 1 << 10
)

// target is the size that an operation's result is to have: size x size, or
// else width x height.
func target(size, height, width int) image.Point {
	if size != 0 {
		return image.Pt(size, size)
	}
	return image.Pt(width, height)
}

func checkTarget(op string, size, height, width, most int) error {
	p := target(size, height, width)
	switch {
	case size != 0 && (height != 0 || width != 0):
		return usage("%s: size %d and %dx%d are both given", op, size, width, height)
	case p.X < 1 || p.Y < 1 || p.X > most || p.Y > most:
		return usage("%s: size %dx%d is not within 1 to %d", op, p.X, p.Y, most)
	}
	return nil
}

func checkProbability(op string, p float64) error {
	if !(0 <= p && p <= 1 || p == Never) {
		return usage("%s: %v is no probability", op, p)
	}
	return nil
}

func checkFilter(op string, f, highest Interpolation) error {
	if f > highest {
		return usage("%s: interpolation %v is not offered", op, f)
	}
	return nil
}

// checkRange wants low <= high within from and to.
func checkRange(op, what string, r [2]float64, from, to float64) error {
	if !(from <= r[0] && r[0] <= r[1] && r[1] <= to) || math.IsInf(r[1], 0) {
		return usage("%s: %s %v is not within %v to %v, the smaller bound first", op, what, r, from, to)
	}
	return nil
}

func orRange(r, other [2]float64) [2]float64 {
	if r == [2]float64{} {
		return other
	}
	return r
}

func orFloat(v, other float64) float64 {
	switch v {
	case 0:
		return other
	case Never:
		return 0
	}
	return v
}

func orInt(v, other int) int {
	switch v {
	case 0:
		return other
	case Never:
		return 0
	}
	return v
}

func usage(msg string, args ...any) error {
	return format.Errorf(format.ErrUsage, format.Nowhere, msg, args...)
}
