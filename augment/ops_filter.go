package augment

import (
	"fmt"
	"image"
	"math"
)

// GaussianBlur blurs by a kernel of KernelSize x KernelSize, an odd number,
// with a standard deviation drawn from Sigma; zero: 0.1 to 2. Beyond its edges
// the picture is mirrored, again and again where it is smaller than the
// kernel. Draws: the standard deviation. Without randomness nothing is done,
// unless the bounds of Sigma are equal.
type GaussianBlur struct {
	KernelSize int
	Sigma      [2]float64
}

func (b GaussianBlur) check() error {
	if b.KernelSize < 1 || b.KernelSize > maxKernel || b.KernelSize%2 == 0 {
		return usage("GaussianBlur: kernel size %d is not odd and within 1 to %d", b.KernelSize, maxKernel)
	}
	return checkRange("GaussianBlur", "sigma", orRange(b.Sigma, [2]float64{0.1, 2}), math.SmallestNonzeroFloat32, math.MaxFloat32)
}

func (b GaussianBlur) step() step {
	sigma := orRange(b.Sigma, [2]float64{0.1, 2})
	s := step{
		name: "GaussianBlur",
		note: fmt.Sprintf("kernel %d, sigma %v to %v", b.KernelSize, sigma[0], sigma[1]),
		draw: func(s Stream, _ image.Point) Drawn {
			return Drawn{Active: true, Factor: [4]float64{s.Between(sigma[0], sigma[1])}}
		},
		apply: func(c *canvas, d Drawn) error { return c.blur(b.KernelSize, d.Factor[0]) },
	}
	if sigma[0] != sigma[1] {
		s.rest = never
	}
	return s
}
