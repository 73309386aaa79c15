package augment

import "math"

// affine maps places of the result to places of the source, both measured in
// pixels from the upper left corner: x' = m0 x + m1 y + m2, y' = m3 x + m4 y + m5.
type affine [6]float64

// affine replaces the picture by the one that m maps to it, of the same size;
// what lies outside is fill. Places, rounding and edges are Pillow's.
func (c *canvas) affine(m affine, f Interpolation, fill [3]uint8) error {
	src := &c.now
	if err := c.make(src.width, src.height); err != nil {
		return err
	}
	dst := &c.next
	for y := range dst.height {
		fillRow(dst.row(y), fill)
	}
	switch {
	case f == Bilinear:
		sampled(dst, src, m, bilinearAt)
	case f == Bicubic:
		sampled(dst, src, m, bicubicAt)
	case m[1] == 0 && m[3] == 0:
		scaled(dst, src, m)
	case m.fits(dst.width, dst.height):
		steppedFixed(dst, src, m)
	default:
		stepped(dst, src, m)
	}
	c.swap()
	return nil
}

// scaled does a map without shear, to the nearest pixel. The places are summed
// up.
func scaled(dst, src *raster, m affine) {
	yo := m[5] + float64(m[4]*0.5)
	for y := range dst.height {
		if yi := cut(yo); 0 <= yi && yi < src.height {
			to, from := dst.row(y), src.row(yi)
			xo := m[2] + float64(m[0]*0.5)
			for x := range dst.width {
				if xi := cut(xo); 0 <= xi && xi < src.width {
					copy(to[3*x:3*x+3], from[3*xi:])
				}
				xo += m[0]
			}
		}
		yo += m[4]
	}
}

// cut drops the fraction of a place; one before the edge has none.
func cut(v float64) int {
	if v < 0 {
		return -1
	}
	return int(v)
}

// fits tells whether all places have less than 16 bits before the point.
func (m affine) fits(width, height int) bool {
	for _, p := range [4][2]float64{{0, 0}, {float64(width), 0}, {0, float64(height)}, {float64(width), float64(height)}} {
		if math.Abs(p[0]*m[0]+p[1]*m[1]+m[2]) >= 1<<15 || math.Abs(p[0]*m[3]+p[1]*m[4]+m[5]) >= 1<<15 {
			return false
		}
	}
	return true
}

// steppedFixed walks to the nearest pixels in steps with 16 bits of fraction.
func steppedFixed(dst, src *raster, m affine) {
	fix := func(v float64) int32 { return int32(math.Floor(float64(v*65536) + 0.5)) }
	x0 := fix(m[2] + float64(m[0]*0.5) + float64(m[1]*0.5))
	y0 := fix(m[5] + float64(m[3]*0.5) + float64(m[4]*0.5))
	m0, m1, m3, m4 := fix(m[0]), fix(m[1]), fix(m[3]), fix(m[4])
	for y := range dst.height {
		row := dst.row(y)
		xx, yy := x0, y0
		for x := range dst.width {
			xi, yi := int(xx>>16), int(yy>>16)
			if 0 <= xi && xi < src.width && 0 <= yi && yi < src.height {
				copy(row[3*x:3*x+3], src.pix[3*(yi*src.width+xi):])
			}
			xx += m0
			yy += m3
		}
		x0 += m1
		y0 += m4
	}
}

// stepped is steppedFixed for pictures that are too large for it.
func stepped(dst, src *raster, m affine) {
	x0 := m[2] + float64(m[1]*0.5) + float64(m[0]*0.5)
	y0 := m[5] + float64(m[4]*0.5) + float64(m[3]*0.5)
	for y := range dst.height {
		row := dst.row(y)
		xx, yy := x0, y0
		for x := range dst.width {
			if xi, yi := cut(xx), cut(yy); 0 <= xi && xi < src.width && 0 <= yi && yi < src.height {
				copy(row[3*x:3*x+3], src.pix[3*(yi*src.width+xi):])
			}
			xx += m[0]
			yy += m[3]
		}
		x0 += m[1]
		y0 += m[4]
	}
}

// sampled computes each place anew and lets at write the pixel there.
func sampled(dst, src *raster, m affine, at func(dst []byte, src *raster, x, y float64)) {
	for y := range dst.height {
		row := dst.row(y)
		yin := float64(y) + 0.5
		for x := range dst.width {
			xin := float64(x) + 0.5
			sx := float64(m[0]*xin) + float64(m[1]*yin) + m[2]
			sy := float64(m[3]*xin) + float64(m[4]*yin) + m[5]
			if 0 <= sx && sx < float64(src.width) && 0 <= sy && sy < float64(src.height) {
				at(row[3*x:3*x+3:3*x+3], src, sx-0.5, sy-0.5)
			}
		}
	}
}

// bilinearAt mixes the four pixels about a place. The result is cut off, not
// rounded.
func bilinearAt(dst []byte, src *raster, x, y float64) {
	xi, yi := int(math.Floor(x)), int(math.Floor(y))
	dx, dy := x-float64(xi), y-float64(yi)
	x0, x1 := 3*outside(xi, src.width, Edge), 3*outside(xi+1, src.width, Edge)
	above := src.row(outside(yi, src.height, Edge))
	for i := range dst {
		v := mix2(above[x0+i], above[x1+i], dx)
		if yi+1 < src.height {
			below := src.row(yi + 1)
			v += float64((mix2(below[x0+i], below[x1+i], dx) - v) * dy)
		}
		dst[i] = uint8(v)
	}
}

func mix2(a, b uint8, d float64) float64 {
	return float64(a) + float64((float64(b)-float64(a))*d)
}

// bicubicAt fits cubics through the sixteen pixels about a place.
func bicubicAt(dst []byte, src *raster, x, y float64) {
	xi, yi := int(math.Floor(x)), int(math.Floor(y))
	dx, dy := x-float64(xi), y-float64(yi)
	var columns, rows [4]int
	for k := range 4 {
		columns[k] = 3 * outside(xi-1+k, src.width, Edge)
		rows[k] = outside(yi-1+k, src.height, Edge)
	}
	for i := range dst {
		var v [4]float64
		for k, at := range rows {
			row := src.row(at)
			v[k] = mix4(float64(row[columns[0]+i]), float64(row[columns[1]+i]), float64(row[columns[2]+i]), float64(row[columns[3]+i]), dx)
		}
		dst[i] = uint8(min(max(mix4(v[0], v[1], v[2], v[3], dy), 0), 255))
	}
}

// mix4 is the cubic with a = -1 at d between v2 and v3.
func mix4(v1, v2, v3, v4, d float64) float64 {
	p2 := -v1 + v3
	p3 := 2*(v1-v2) + v3 - v4
	p4 := -v1 + v2 - v3 + v4
	return v2 + float64(d*(p2+float64(d*(p3+float64(d*p4)))))
}
