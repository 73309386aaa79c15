package augment

import "math"

// The changes of color are Pillow's ImageEnhance and ImageOps, bit for bit:
// products in float32 or float64 as there, and results cut off, not rounded.

// blend goes from a to b by f, and beyond.
func blend(a, b uint8, f float32) uint8 {
	v := float32(a) + float32(f*float32(int(b)-int(a)))
	return uint8(min(max(v, 0), 255))
}

// table replaces each value by the one that t has for it.
func (r *raster) table(t *[256]uint8) {
	for i, v := range r.pix {
		r.pix[i] = t[v]
	}
}

// towards blends a single value with all others.
func (r *raster) towards(from uint8, f float64) {
	var t [256]uint8
	for v := range t {
		t[v] = blend(from, uint8(v), float32(f))
	}
	r.table(&t)
}

// luma is ITU-R 601-2, rounded.
func luma(r, g, b uint8) uint8 {
	return uint8((uint32(r)*19595 + uint32(g)*38470 + uint32(b)*7471 + 0x8000) >> 16)
}

func (r *raster) brightness(f float64) { r.towards(0, f) }

// contrast blends with the mean of the luma, a whole number.
func (r *raster) contrast(f float64) {
	var sum int64
	for p := r.pix; len(p) >= 3; p = p[3:] {
		sum += int64(luma(p[0], p[1], p[2]))
	}
	mean := float64(sum) / float64(len(r.pix)/3)
	r.towards(uint8(mean+0.5), f)
}

func (r *raster) saturation(f float64) {
	by := float32(f)
	for p := r.pix; len(p) >= 3; p = p[3:] {
		l := luma(p[0], p[1], p[2])
		p[0], p[1], p[2] = blend(l, p[0], by), blend(l, p[1], by), blend(l, p[2], by)
	}
}

func (r *raster) gray() {
	for p := r.pix; len(p) >= 3; p = p[3:] {
		l := luma(p[0], p[1], p[2])
		p[0], p[1], p[2] = l, l, l
	}
}

// hue turns the hue by a share of the circle, in steps of 1/255. The way over
// HSV in 8 bits loses a little even where the hue stays.
func (r *raster) hue(f float64) {
	turn := uint8(int(f * 255)) // wraps around
	for p := r.pix; len(p) >= 3; p = p[3:] {
		h, s, v := toHSV(p[0], p[1], p[2])
		p[0], p[1], p[2] = fromHSV(h+turn, s, v)
	}
}

func toHSV(r, g, b uint8) (h, s, v uint8) {
	high, low := max(r, g, b), min(r, g, b)
	if low == high {
		return 0, 0, high
	}
	span := float32(high - low)
	rc, gc, bc := float32(high-r)/span, float32(high-g)/span, float32(high-b)/span
	var hue float32
	switch high {
	case r:
		hue = bc - gc
	case g:
		hue = float32(2 + float64(rc) - float64(bc))
	default:
		hue = float32(4 + float64(gc) - float64(rc))
	}
	// From 5/6 to 11/6 of the circle; whole turns are taken off.
	turns := float64(hue)/6 + 1
	if turns >= 1 {
		turns--
	}
	hue = float32(turns)
	return uint8(int(float64(hue) * 255)), uint8(int(float64(span/float32(high)) * 255)), high
}

func fromHSV(h, s, v uint8) (r, g, b uint8) {
	if s == 0 {
		return v, v, v
	}
	sixth := math.Floor(float64(h) * 6 / 255)
	f := float32(float64(h)*6/255 - float64(float32(sixth)))
	fs := float32(float64(s) / 255)
	value := float64(v)
	p := round8(value * (1 - float64(fs)))
	q := round8(value * (1 - float64(float32(fs*f))))
	t := round8(value * (1 - float64(float64(fs)*(1-float64(f)))))
	switch int(sixth) % 6 {
	case 0:
		return v, t, p
	case 1:
		return q, v, p
	case 2:
		return p, v, t
	case 3:
		return p, q, v
	case 4:
		return t, p, v
	default:
		return v, p, q
	}
}

func round8(v float64) uint8 { return uint8(min(max(math.Floor(v+0.5), 0), 255)) }

func (r *raster) posterize(bits int) {
	mask := uint8(0xff) << (8 - bits)
	for i := range r.pix {
		r.pix[i] &= mask
	}
}

// solarize inverts the values from threshold on.
func (r *raster) solarize(threshold float64) {
	var t [256]uint8
	for v := range t {
		t[v] = uint8(v)
		if float64(v) >= threshold {
			t[v] = uint8(255 - v)
		}
	}
	r.table(&t)
}

func (r *raster) histograms() (h [3][256]int) {
	for p := r.pix; len(p) >= 3; p = p[3:] {
		h[0][p[0]]++
		h[1][p[1]]++
		h[2][p[2]]++
	}
	return h
}

func (r *raster) tables(t *[3][256]uint8) {
	for p := r.pix; len(p) >= 3; p = p[3:] {
		p[0], p[1], p[2] = t[0][p[0]], t[1][p[1]], t[2][p[2]]
	}
}

// autocontrast stretches each channel to 0 to 255.
func (r *raster) autocontrast() {
	var t [3][256]uint8
	for c, h := range r.histograms() {
		low, high := 0, 255
		for low < 255 && h[low] == 0 {
			low++
		}
		for high > 0 && h[high] == 0 {
			high--
		}
		scale, offset := 1.0, 0.0
		if low < high {
			scale = 255 / float64(high-low)
			offset = float64(-low) * scale
		}
		for v := range t[c] {
			t[c][v] = uint8(min(max(int(float64(float64(v)*scale)+offset), 0), 255))
		}
	}
	r.tables(&t)
}

// equalize gives each channel a flat histogram, as far as its values go.
func (r *raster) equalize() {
	var t [3][256]uint8
	for c, h := range r.histograms() {
		total, last, kinds := 0, 0, 0
		for _, n := range h {
			total += n
			if n != 0 {
				last = n
				kinds++
			}
		}
		step := (total - last) / 255
		if kinds <= 1 || step == 0 {
			for v := range t[c] {
				t[c][v] = uint8(v)
			}
			continue
		}
		n := step / 2
		for v := range t[c] {
			t[c][v] = uint8(min(n/step, 255))
			n += h[v]
		}
	}
	r.tables(&t)
}
