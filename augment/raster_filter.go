package augment

import (
	"math"
	"slices"
)

// sharpness blends from a smoothed picture: 1/13 of the pixel and its eight
// neighbours each, and 4/13 of the pixel more. Pixels at the edges are not
// smoothed, nor are pictures of less than three rows or columns. The sums are
// Pillow's: float32, the lowest row first, a half added before.
func (c *canvas) sharpness(f float64) error {
	src := &c.now
	if src.width < 3 || src.height < 3 {
		return nil
	}
	if err := c.make(src.width, src.height); err != nil {
		return err
	}
	dst := &c.next
	copy(dst.pix, src.pix)
	by, one, five := float32(f), float32(1)/13, float32(5)/13
	for y := 1; y < src.height-1; y++ {
		above, here, below, row := src.row(y-1), src.row(y), src.row(y+1), dst.row(y)
		for i := 3; i < len(row)-3; i++ {
			sum := float32(0.5)
			sum += float32(float32(below[i-3])*one) + float32(float32(below[i])*one) + float32(float32(below[i+3])*one)
			sum += float32(float32(here[i-3])*one) + float32(float32(here[i])*five) + float32(float32(here[i+3])*one)
			sum += float32(float32(above[i-3])*one) + float32(float32(above[i])*one) + float32(float32(above[i+3])*one)
			row[i] = blend(uint8(min(max(sum, 0), 255)), here[i], by)
		}
	}
	c.swap()
	return nil
}

// blur convolves with a Gaussian of size places along rows, then along
// columns, in float32; the result is rounded to even. Rows that have been
// convolved are kept in a ring, for as long as a column needs them.
func (c *canvas) blur(size int, sigma float64) error {
	src := &c.now
	if err := c.make(src.width, src.height); err != nil {
		return err
	}
	c.gaussian(size, sigma)
	n, radius := 3*src.width, size/2
	c.lines = slices.Grow(c.lines[:0], size*n)[:size*n]
	c.sums = slices.Grow(c.sums[:0], n+6*radius)[:n+6*radius]
	ready := 0 // rows of the source that have been convolved
	for y := range src.height {
		for ; ready < min(y+radius+1, src.height); ready++ {
			c.blurRow(c.lines[ready%size*n:][:n], src.row(ready), radius)
		}
		sums := c.sums[:n]
		clear(sums)
		for k, w := range c.kernel {
			line := c.lines[outside(y+k-radius, src.height, Reflect)%size*n:][:n]
			for i, v := range line {
				sums[i] += float32(v * w)
			}
		}
		row := c.next.row(y)
		for i, v := range sums {
			row[i] = uint8(math.RoundToEven(float64(v)))
		}
	}
	c.swap()
	return nil
}

// blurRow convolves one row, which it extends by radius pixels on each side.
func (c *canvas) blurRow(dst []float32, src []byte, radius int) {
	width := len(src) / 3
	wide := c.sums[:len(src)+6*radius]
	for x := range width + 2*radius {
		p := src[3*outside(x-radius, width, Reflect):]
		wide[3*x], wide[3*x+1], wide[3*x+2] = float32(p[0]), float32(p[1]), float32(p[2])
	}
	clear(dst)
	for k, w := range c.kernel {
		for i, v := range wide[3*k:][:len(dst)] {
			dst[i] += float32(v * w)
		}
	}
}

// gaussian fills the kernel, which sums to 1.
func (c *canvas) gaussian(size int, sigma float64) {
	c.kernel = slices.Grow(c.kernel[:0], size)[:size]
	sum := 0.0
	for i := range c.kernel {
		x := (float64(i) - float64(size-1)/2) / sigma
		v := math.Exp(-x * x / 2)
		c.kernel[i] = float32(v)
		sum += v
	}
	for i := range c.kernel {
		c.kernel[i] = float32(float64(c.kernel[i]) / sum)
	}
}
