package augment

import (
	"fmt"
	"image"
)

// Resize changes the size: to Height x Width, or so that the shorter side is
// Size and the ratio stays. With MaxSize the longer side is at most that; then
// Size may be zero, and the longer side is MaxSize. The sizes are within 16384;
// where the result is to be larger than 8192, a crop must follow.
type Resize struct {
	Size, Height, Width int
	MaxSize             int
	Interpolation       Interpolation // Default: Bilinear
	NoAntialias         bool          // do not widen the filter when reducing
}

func (r Resize) check() error {
	exact := r.Height != 0 || r.Width != 0
	switch {
	case exact && r.MaxSize != 0:
		return usage("Resize: MaxSize with a height and a width")
	case r.MaxSize < 0 || r.MaxSize > maxResize:
		return usage("Resize: MaxSize %d is not within 1 to %d", r.MaxSize, maxResize)
	case r.MaxSize != 0 && r.Size >= r.MaxSize:
		return usage("Resize: MaxSize %d is not above size %d", r.MaxSize, r.Size)
	case r.Size != 0 || exact || r.MaxSize == 0:
		if err := checkTarget("Resize", r.Size, r.Height, r.Width, maxResize); err != nil {
			return err
		}
	}
	return checkResize("Resize", r.Interpolation.or(Bilinear), r.NoAntialias)
}

func (r Resize) step() step {
	filter := r.Interpolation.or(Bilinear)
	note := fmt.Sprintf("%dx%d", r.Width, r.Height)
	if r.Size != 0 {
		note = fmt.Sprintf("shorter side %d", r.Size)
	}
	if r.MaxSize != 0 {
		note += fmt.Sprintf(", longer side %d at most", r.MaxSize)
	}
	return step{
		name: "Resize",
		note: note + ", " + resizeNote(filter, r.NoAntialias),
		size: r.size,

		resizes: true,
		fold: func(g geometry, _ Drawn) (geometry, bool) {
			to := r.size(g.result())
			if !g.resizable(to) {
				return g, false
			}
			return g.resize(to, filter, !r.NoAntialias), true
		},
		apply: func(c *canvas, _ Drawn) error {
			return c.resize(r.size(image.Pt(c.now.width, c.now.height)), filter, !r.NoAntialias)
		},
	}
}

// size is torchvision's: quotients are cut off, not rounded. A side never
// vanishes, where torchvision fails.
func (r Resize) size(in image.Point) image.Point {
	if r.Height != 0 {
		return image.Pt(r.Width, r.Height)
	}
	if in.X == 0 || in.Y == 0 {
		return image.Point{}
	}
	short, long := min(in.X, in.Y), max(in.X, in.Y)
	newShort, newLong := r.Size, r.Size*long/short
	if r.Size == 0 {
		newShort, newLong = r.MaxSize*short/long, r.MaxSize
	} else if r.MaxSize != 0 && newLong > r.MaxSize {
		newShort, newLong = r.MaxSize*newShort/newLong, r.MaxSize
	}
	newShort = max(newShort, 1)
	if in.X <= in.Y {
		return image.Pt(newShort, newLong)
	}
	return image.Pt(newLong, newShort)
}

// checkResize refuses what torchvision refuses: Lanczos has an antialiased
// form only.
func checkResize(op string, f Interpolation, noAntialias bool) error {
	if f == Lanczos && noAntialias {
		return usage("%s: lanczos without antialiasing", op)
	}
	return checkFilter(op, f, Lanczos)
}

func resizeNote(f Interpolation, noAntialias bool) string {
	if noAntialias || f == Nearest {
		return f.String()
	}
	return f.String() + " antialiased"
}
