package augment

import (
	"fmt"
	"image"
)

// RandomHorizontalFlip mirrors left and right with probability P; zero: 1/2,
// Never: 0. Draws: whether.
type RandomHorizontalFlip struct{ P float64 }

func (f RandomHorizontalFlip) check() error { return checkProbability("RandomHorizontalFlip", f.P) }

func (f RandomHorizontalFlip) step() step {
	return flipStep("RandomHorizontalFlip", orFloat(f.P, 0.5), geometry.mirrorX, (*raster).mirrorX)
}

// RandomVerticalFlip mirrors top and bottom with probability P; zero: 1/2,
// Never: 0. Draws: whether.
type RandomVerticalFlip struct{ P float64 }

func (f RandomVerticalFlip) check() error { return checkProbability("RandomVerticalFlip", f.P) }

func (f RandomVerticalFlip) step() step {
	return flipStep("RandomVerticalFlip", orFloat(f.P, 0.5), geometry.mirrorY, (*raster).mirrorY)
}

func flipStep(name string, p float64, fold func(geometry) geometry, apply func(*raster)) step {
	return step{
		name: name,
		note: fmt.Sprintf("p %v", p),
		draw: func(s Stream, _ image.Point) Drawn { return Drawn{Active: s.Float64() < p} },
		rest: never,
		fold: func(g geometry, _ Drawn) (geometry, bool) { return fold(g), true },
		apply: func(c *canvas, _ Drawn) error {
			apply(&c.now)
			return nil
		},
	}
}
