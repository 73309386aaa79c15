package augment

import (
	"fmt"
	"image"
	"math"
)

// RandomRotation turns the picture about its center, counterclockwise, by an
// angle drawn from -Degrees to Degrees, or from Between. The size stays; what
// comes in from outside is Fill. Draws: the angle. Without randomness nothing
// is done, unless the bounds of Between are equal.
type RandomRotation struct {
	Degrees       float64
	Between       [2]float64
	Interpolation Interpolation // Default: Nearest; Bilinear, Bicubic
	Fill          [3]uint8
}

func (r RandomRotation) bounds() [2]float64 {
	return orRange(r.Between, [2]float64{-r.Degrees, r.Degrees})
}

func (r RandomRotation) check() error {
	const most = 1 << 20
	if !(0 <= r.Degrees && r.Degrees <= most) || r.Degrees != 0 && r.Between != [2]float64{} {
		return usage("RandomRotation: degrees %v, between %v", r.Degrees, r.Between)
	}
	if err := checkRange("RandomRotation", "degrees", r.bounds(), -most, most); err != nil {
		return err
	}
	return checkFilter("RandomRotation", r.Interpolation, Bicubic)
}

func (r RandomRotation) step() step {
	bounds, filter := r.bounds(), r.Interpolation.or(Nearest)
	s := step{
		name: "RandomRotation",
		note: fmt.Sprintf("%v to %v degrees, %v", bounds[0], bounds[1], filter),
		draw: func(s Stream, _ image.Point) Drawn {
			return Drawn{Active: true, Factor: [4]float64{s.Between(bounds[0], bounds[1])}}
		},
		apply: func(c *canvas, d Drawn) error { return c.rotate(d.Factor[0], filter, r.Fill) },
	}
	if bounds[0] != bounds[1] {
		s.rest = never
	}
	return s
}

// rotate turns the picture by degrees, as Pillow does: by exact moves of pixels
// where the angle allows, and with sines and cosines rounded to 15 digits, so
// that a right angle has none that is nearly zero.
func (c *canvas) rotate(degrees float64, filter Interpolation, fill [3]uint8) error {
	degrees = math.Mod(degrees, 360)
	if degrees < 0 {
		degrees += 360
	}
	w, h := c.now.width, c.now.height
	switch {
	case degrees == 0 || degrees == 360:
		return nil
	case degrees == 180:
		c.now.mirrorX()
		c.now.mirrorY()
		return nil
	case degrees == 90 && w == h:
		return c.turn()
	case degrees == 270 && w == h:
		c.now.mirrorX()
		c.now.mirrorY()
		return c.turn()
	}
	angle := -degrees * (math.Pi / 180)
	cos, sin := round15(math.Cos(angle)), round15(math.Sin(angle))
	cx, cy := float64(w)/2, float64(h)/2
	m := affine{cos, sin, 0, -sin, cos, 0}
	m[2] = float64(m[0]*-cx) + float64(m[1]*-cy) + cx
	m[5] = float64(m[3]*-cx) + float64(m[4]*-cy) + cy
	return c.affine(m, filter, fill)
}

func round15(v float64) float64 { return math.RoundToEven(v*1e15) / 1e15 }

// turn turns a square picture by 90 degrees counterclockwise.
func (c *canvas) turn() error {
	n := c.now.width
	if err := c.make(n, n); err != nil {
		return err
	}
	for y := range n {
		row := c.now.row(y)
		for x := range n {
			copy(c.next.pix[3*((n-1-x)*n+y):][:3], row[3*x:])
		}
	}
	c.swap()
	return nil
}
