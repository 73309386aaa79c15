package augment

import (
	"image"
	"math"
	"slices"
)

// taps says of which pixels along an axis, and by which weights, each place of
// the result is made.
type taps struct {
	first   []int32 // of the pixels of a place
	count   []int32 // of them
	most    int     // weights from place to place
	weights []int32 // fixed point, fraction bits of them
	exact   []float64
}

// fraction is how many bits of a weight follow the point: with 8 bits of a
// sample, two are left for what negative weights add.
const fraction = 32 - 8 - 2

// make fills t for an axis of in pixels that becomes one of out. Antialiased,
// the result is Pillow's, bit for bit: the filter is widened by the reduction,
// and weights beyond the edges are left out. Otherwise it is that of PyTorch's
// interpolate: pixels beyond the edges repeat the outermost.
func (t *taps) make(in, out int, f Interpolation, antialias bool) {
	scale := float64(in) / float64(out)
	wide := 1.0
	if antialias {
		wide = max(scale, 1)
	}
	filter := resampleFilters[f]
	radius := float64(filter.Radius() * wide)
	t.most = 2*int(math.Ceil(radius)) + 1
	t.first = slices.Grow(t.first[:0], out)[:out]
	t.count = slices.Grow(t.count[:0], out)[:out]
	t.weights = slices.Grow(t.weights[:0], out*t.most)[:out*t.most]
	t.exact = slices.Grow(t.exact[:0], t.most)[:t.most]
	by := 1 / wide
	for o := range out {
		center := float64((float64(o) + 0.5) * scale)
		// Places count from the edge, as C's conversion cuts off.
		first := int(center - radius + 0.5)
		last := int(center + radius + 0.5)
		if !antialias {
			first, last = int(math.Floor(center-radius+0.5)), int(math.Floor(center+radius+0.5))
		}
		low, high := max(first, 0), min(last, in)
		w := t.exact[:high-low]
		clear(w)
		sum := 0.0
		for x := first; x < last; x++ {
			if antialias && (x < low || x >= high) {
				continue
			}
			v := filter.At(float64((float64(x)-center+0.5)*by), antialias)
			w[min(max(x, low), high-1)-low] += v
			sum += v
		}
		t.first[o], t.count[o] = int32(low), int32(len(w))
		for i, v := range w {
			if sum != 0 {
				v /= sum
			}
			t.weights[o*t.most+i] = int32(math.Round(float64(v * (1 << fraction))))
		}
	}
}

// resize changes the size of the picture along one axis after the other, each
// rounded to 8 bits, and left out where the length stays. Columns come first
// where that makes the picture much smaller, as in Pillow since version 13, but
// not without antialiasing, as in PyTorch.
func (c *canvas) resize(to image.Point, f Interpolation, antialias bool) error {
	from := image.Pt(c.now.width, c.now.height)
	switch lost := from.Sub(to); {
	case lost == image.Point{}:
		return nil
	case f == Nearest:
		return c.nearest(to)
	case antialias && lost.Y > 0 && lost.Y > 2*lost.X:
		if err := c.columns(to.Y, f, antialias); err != nil {
			return err
		}
		return c.rows(to.X, f, antialias)
	default:
		if err := c.rows(to.X, f, antialias); err != nil {
			return err
		}
		return c.columns(to.Y, f, antialias)
	}
}

// rows changes the width.
func (c *canvas) rows(width int, f Interpolation, antialias bool) error {
	src := &c.now
	if width == src.width {
		return nil
	}
	if err := c.make(width, src.height); err != nil {
		return err
	}
	c.taps.make(src.width, width, f, antialias)
	for y := range src.height {
		c.taps.row(c.next.row(y), src.row(y))
	}
	c.swap()
	return nil
}

// columns changes the height.
func (c *canvas) columns(height int, f Interpolation, antialias bool) error {
	src := &c.now
	if height == src.height {
		return nil
	}
	if err := c.make(src.width, height); err != nil {
		return err
	}
	c.taps.make(src.height, height, f, antialias)
	c.taps.columns(&c.next, src)
	c.swap()
	return nil
}

// row makes one row of the result of one of the source.
func (t *taps) row(dst, src []byte) {
	for o := range t.first {
		weights := t.weights[o*t.most:][:t.count[o]]
		p := src[3*t.first[o]:][:3*len(weights)]
		r, g, b := int32(1<<(fraction-1)), int32(1<<(fraction-1)), int32(1<<(fraction-1))
		for _, w := range weights {
			q := p[:3:3]
			r += int32(q[0]) * w
			g += int32(q[1]) * w
			b += int32(q[2]) * w
			p = p[3:]
		}
		d := dst[3*o:][:3:3]
		d[0], d[1], d[2] = clamp8(r>>fraction), clamp8(g>>fraction), clamp8(b>>fraction)
	}
}

// columns makes the rows of dst as sums of rows of src.
func (t *taps) columns(dst, src *raster) {
	n := 3 * src.width
	for o := range t.first {
		weights := t.weights[o*t.most:][:t.count[o]]
		from := src.pix[int(t.first[o])*n:]
		row := dst.row(o)
		for x := range row {
			sum := int32(1 << (fraction - 1))
			at := x
			for _, w := range weights {
				sum += int32(from[at]) * w
				at += n
			}
			row[x] = clamp8(sum >> fraction)
		}
	}
}

func clamp8(v int32) uint8 { return uint8(min(max(v, 0), 255)) }

// nearest takes the pixels at the centers of those of the result. The places
// are summed up, as Pillow does.
func (c *canvas) nearest(to image.Point) error {
	if err := c.make(to.X, to.Y); err != nil {
		return err
	}
	src, dst := &c.now, &c.next
	xs, ys := float64(src.width)/float64(dst.width), float64(src.height)/float64(dst.height)
	c.places = slices.Grow(c.places[:0], dst.width)[:dst.width]
	at := xs * 0.5
	for x := range c.places {
		c.places[x] = int32(min(int(at), src.width-1))
		at += xs
	}
	at = ys * 0.5
	for y := range dst.height {
		to, from := dst.row(y), src.row(min(int(at), src.height-1))
		for x, i := range c.places {
			copy(to[3*x:3*x+3], from[3*i:])
		}
		at += ys
	}
	c.swap()
	return nil
}
