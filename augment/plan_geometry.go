package augment

import (
	"image"
	"math"
)

// geometry is a chain of crops, one change of size, and mirrorings, as one map
// from the upright picture to the result:
//
//	src of the picture ─▶ resized to size ─▶ window of that ─▶ mirrored
//
// It is what one pass over the decoded planes can do, in color or in gray.
type geometry struct {
	src          image.Rectangle
	size         image.Point
	window       image.Rectangle
	flipX, flipY bool
	filter       Interpolation
	antialias    bool
	resized      bool // size is not src's by chance, but because of a resize
	gray         bool // the luma alone is made
}

// whole is the map of a picture to itself.
func whole(size image.Point) geometry {
	r := image.Rectangle{Max: size}
	return geometry{src: r, size: size, window: r, filter: Bilinear, antialias: true}
}

func (g geometry) result() image.Point { return g.window.Size() }

// crop keeps the part r of the result.
func (g geometry) crop(r image.Rectangle) geometry {
	of := g.result()
	if g.flipX {
		r.Min.X, r.Max.X = of.X-r.Max.X, of.X-r.Min.X
	}
	if g.flipY {
		r.Min.Y, r.Max.Y = of.Y-r.Max.Y, of.Y-r.Min.Y
	}
	if g.resized {
		g.window = r.Add(g.window.Min)
		return g
	}
	g.src = r.Add(g.src.Min)
	g.size = r.Size()
	g.window = image.Rectangle{Max: g.size}
	return g
}

// longest is the longest side that a picture is resized to in one pass.
const longest = 1 << 20

// resizable tells whether the result can be given another size in the same
// pass.
func (g geometry) resizable(to image.Point) bool {
	return to == g.result() || !g.resized && max(to.X, to.Y) <= longest
}

// resize changes the size of the result, which must be resizable.
func (g geometry) resize(to image.Point, filter Interpolation, antialias bool) geometry {
	if to == g.result() {
		return g
	}
	g.size, g.window = to, image.Rectangle{Max: to}
	g.filter, g.antialias, g.resized = filter, antialias, true
	return g
}

func (g geometry) mirrorX() geometry {
	g.flipX = !g.flipX
	return g
}

func (g geometry) mirrorY() geometry {
	g.flipY = !g.flipY
	return g
}

func (g geometry) toGray() geometry {
	g.gray = true
	return g
}

// need returns the part of the picture that the window depends on.
func (g geometry) need() image.Rectangle {
	x0, x1 := g.reach(g.src.Dx(), g.size.X, g.window.Min.X, g.window.Max.X)
	y0, y1 := g.reach(g.src.Dy(), g.size.Y, g.window.Min.Y, g.window.Max.Y)
	return image.Rect(x0, y0, x1, y1).Add(g.src.Min)
}

// reach returns which of from pixels the places first to last of to places are
// made of: the filter's radius about their centers, and one more for rounding.
func (g geometry) reach(from, to, first, last int) (int, int) {
	if first == 0 && last == to {
		return 0, from
	}
	scale := float64(from) / float64(to)
	radius := max(resampleFilters[g.filter].Radius(), 1)
	if g.antialias {
		radius *= max(scale, 1)
	}
	low := math.Floor((float64(first)+0.5)*scale-radius) - 1
	high := math.Ceil((float64(last)-0.5)*scale+radius) + 1
	return max(int(low), 0), min(int(high), from)
}

// shrink returns by how much the picture may be reduced before, so that what
// is left is still no smaller than the result.
func (g geometry) shrink() int {
	if !g.antialias || g.filter == Nearest {
		return 1
	}
	for s := 8; s > 1; s /= 2 {
		if g.src.Dx() >= s*g.size.X && g.src.Dy() >= s*g.size.Y {
			return s
		}
	}
	return 1
}
