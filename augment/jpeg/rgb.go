package jpeg

import (
	"image"

	"shardtool/augment/internal/kernel"
	"shardtool/format"
)

// Colors turns the planes of an Image into rows of RGB. It holds rows on the
// way, so a value serves one caller at a time; the zero value is ready.
type Colors struct {
	sums kernel.Sums
	rows [4][]byte
	rgb  []byte
}

// WriteRGB writes the part r of the picture, as stored and not turned upright,
// three bytes a pixel, rows stride bytes apart. r must be within img.Rect.
//
// YCbCr becomes the RGB of libjpeg, bit for bit, with its fancy upsampling.
// Gray is repeated. CMYK becomes RGB by the product of ink and black.
func (c *Colors) WriteRGB(dst []byte, stride int, img *Image, r image.Rectangle) error {
	if !r.In(img.Rect) {
		return fault(format.ErrUsage, "the part %v is not within %v", r, img.Rect)
	}
	if img.Count == 4 && !img.Inverted {
		return errInks()
	}
	for y := r.Min.Y; y < r.Max.Y; y++ {
		c.row(dst[(y-r.Min.Y)*stride:][:3*r.Dx()], img, y, r.Min.X, r.Max.X)
	}
	return nil
}

// WriteGray is WriteRGB with one byte a pixel: see [Decoder.Gray].
func (c *Colors) WriteGray(dst []byte, stride int, img *Image, r image.Rectangle) error {
	if !r.In(img.Rect) {
		return fault(format.ErrUsage, "the part %v is not within %v", r, img.Rect)
	}
	n := r.Dx()
	if img.Color == Gray || img.Color == YCbCr {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			img.Planes[0].upsample(dst[(y-r.Min.Y)*stride:][:n], y, r.Min.X)
		}
		return nil
	}
	if cap(c.rgb) < 3*n {
		c.rgb = make([]byte, 3*n)
	}
	rgb := c.rgb[:3*n]
	for y := r.Min.Y; y < r.Max.Y; y++ {
		if err := c.WriteRGB(rgb, 3*n, img, image.Rect(r.Min.X, y, r.Max.X, y+1)); err != nil {
			return err
		}
		row := dst[(y-r.Min.Y)*stride:][:n]
		for i := range row {
			p := (*[3]byte)(rgb[3*i:])
			row[i] = byte((19595*uint(p[0]) + 38470*uint(p[1]) + 7471*uint(p[2]) + 1<<15) >> 16)
		}
	}
	return nil
}

// row writes the pixels x0 to x1-1 of row y.
func (c *Colors) row(dst []byte, img *Image, y, x0, x1 int) {
	p := &img.Planes
	if img.Color == YCbCr && p[0].X == (Ratio{1, 1, false}) && p[0].Y == p[0].X && p[1].X == p[2].X && p[1].Y == p[2].Y &&
		p[1].X.Smooth && p[1].Rect == p[2].Rect {
		luma := p[0].at(p[0].row(y), x0, x1)
		off := x0 - 2*p[1].Rect.Min.X
		if p[1].Y.Smooth {
			near, far := p[1].nearFar(y)
			c.sums.RGB420(dst, luma, p[1].row(near), p[1].row(far), p[2].row(near), p[2].row(far), off)
			return
		}
		if p[1].Y.Num == 1 && p[1].Y.Den == 1 {
			c.sums.RGB422(dst, luma, p[1].row(y), p[2].row(y), off)
			return
		}
	}
	n := x1 - x0
	for i := range img.Count {
		if cap(c.rows[i]) < n {
			c.rows[i] = make([]byte, n+n/4)
		}
		c.rows[i] = c.rows[i][:n]
		p[i].upsample(c.rows[i], y, x0)
	}
	a, b, d, k := c.rows[0], c.rows[1], c.rows[2], c.rows[3]
	switch img.Color {
	case Gray:
		for i, v := range a {
			dst[3*i], dst[3*i+1], dst[3*i+2] = v, v, v
		}
	case YCbCr:
		kernel.YCbCrToRGB(dst, a, b, d, n)
	case RGB:
		for i := range a {
			dst[3*i], dst[3*i+1], dst[3*i+2] = a[i], b[i], d[i]
		}
	case YCCK:
		kernel.YCbCrToPlanes(a, b, d, a, b, d, n)
		for i := range a {
			dst[3*i], dst[3*i+1], dst[3*i+2] = over(255-a[i], k[i]), over(255-b[i], k[i]), over(255-d[i], k[i])
		}
	case CMYK:
		for i := range a {
			dst[3*i], dst[3*i+1], dst[3*i+2] = over(a[i], k[i]), over(b[i], k[i]), over(d[i], k[i])
		}
	}
}

// over returns what is left of light v, 255 being all, under k.
func over(v, k byte) byte { return byte((uint(v)*uint(k) + 127) / 255) }

// row returns the samples that are held of row y of the plane.
func (p *Plane) row(y int) []byte {
	return p.Pix[(y-p.Rect.Min.Y)*p.Stride:][:p.Rect.Dx()]
}

// at returns the samples x0 to x1-1 of a row.
func (p *Plane) at(row []byte, x0, x1 int) []byte { return row[x0-p.Rect.Min.X : x1-p.Rect.Min.X] }

// nearFar returns the rows of samples nearest to a row of pixels, and next to it,
// of a plane that is halved vertically.
func (p *Plane) nearFar(y int) (near, far int) {
	near = y / 2
	far = near - 1 + y%2*2
	return near, max(0, min(p.Height-1, far))
}

// upsample writes len(dst) pixels of row y from x0 on.
func (p *Plane) upsample(dst []byte, y, x0 int) {
	switch {
	case p.X.Smooth && p.Y.Smooth:
		near, far := p.nearFar(y)
		kernel.FancyH2V2(dst, p.row(near), p.row(far), x0-2*p.Rect.Min.X)
	case p.X.Smooth:
		kernel.FancyH2(dst, p.row(y), x0-2*p.Rect.Min.X)
	case p.Y.Smooth:
		near, far := p.nearFar(y)
		kernel.FancyV2(dst, p.at(p.row(near), x0, x0+len(dst)), p.at(p.row(far), x0, x0+len(dst)), y%2 == 1)
	case p.X.Den == 1 && p.Y.Den == 1:
		p.repeat(dst, p.row(y/p.Y.Num), x0)
	default:
		p.interpolate(dst, y, x0)
	}
}

func (p *Plane) repeat(dst, row []byte, x0 int) {
	n := p.X.Num
	x := x0 - n*p.Rect.Min.X
	if rest := x % n; rest != 0 { // up to the next whole sample
		m := min(n-rest, len(dst))
		for i := range m {
			dst[i] = row[x/n]
		}
		dst, x = dst[m:], x+m
	}
	if len(dst) > 0 {
		kernel.Replicate(dst, row[x/n:], n)
	}
}

// interpolate is for ratios that are not whole, which libjpeg refuses: each
// pixel is mixed from the samples around its centre.
func (p *Plane) interpolate(dst []byte, y, x0 int) {
	v0, v1, v := p.Y.between(y, p.Height)
	ofY := p.Y.parts()
	upper, lower := p.row(v0), p.row(v1)
	ofX := p.X.parts()
	for i := range dst {
		u0, u1, u := p.X.between(x0+i, p.Width)
		u0, u1 = u0-p.Rect.Min.X, u1-p.Rect.Min.X
		a := int(upper[u0])*(ofX-u) + int(upper[u1])*u
		b := int(lower[u0])*(ofX-u) + int(lower[u1])*u
		dst[i] = byte((a*(ofY-v) + b*v + ofX*ofY/2) / (ofX * ofY))
	}
}

// parts is in how many parts the distance of two samples is divided.
func (r Ratio) parts() int { return 2 * r.Num }

// between returns the samples on both sides of the centre of pixel x, of n, and
// how far from the first to the second it lies, in parts.
func (r Ratio) between(x, n int) (a, b, part int) {
	if r.Den == 1 { // samples are repeated
		return x / r.Num, x / r.Num, 0
	}
	at := (2*x+1)*r.Den - r.Num // sample i lies at 2*Num*i
	if at < 0 {
		return 0, 0, 0
	}
	a = at / (2 * r.Num)
	return min(a, n-1), min(a+1, n-1), at % (2 * r.Num)
}

// RGB decodes the part r of the upright picture, of the size that
// Header.Upright gives, into dst: three bytes a pixel, rows stride bytes apart.
// See Planes for shrink and for what is checked, and WriteRGB for the colors.
func (d *Decoder) RGB(dst []byte, stride int, data []byte, r image.Rectangle, shrink int) error {
	return d.pixels(dst, stride, data, r, shrink, 3, d.colors.WriteRGB)
}

// Gray is RGB with one byte a pixel: the luma of YCbCr, gray as it is, and of
// other colors 0.299 R + 0.587 G + 0.114 B, rounded.
func (d *Decoder) Gray(dst []byte, stride int, data []byte, r image.Rectangle, shrink int) error {
	return d.pixels(dst, stride, data, r, shrink, 1, d.colors.WriteGray)
}

// pixels decodes a part upright, with so many bytes a pixel.
func (d *Decoder) pixels(dst []byte, stride int, data []byte, r image.Rectangle, shrink, bytes int, write func([]byte, int, *Image, image.Rectangle) error) error {
	h, err := ParseHeader(data)
	if err != nil {
		return err
	}
	if err := h.Displayable(); err != nil {
		return err
	}
	stored, err := h.stored(r, shrink)
	if err != nil {
		return err
	}
	if stride < bytes*r.Dx() || len(dst) < (r.Dy()-1)*stride+bytes*r.Dx() {
		return fault(format.ErrUsage, "%d bytes, %d a row, do not hold %dx%d pixels", len(dst), stride, r.Dx(), r.Dy())
	}
	if err := d.Planes(&d.img, data, stored, shrink); err != nil {
		return err
	}
	if h.Orientation <= 1 {
		return write(dst, stride, &d.img, stored)
	}
	w, height := stored.Dx(), stored.Dy()
	n := bytes * w * height
	if cap(d.turn) < n {
		d.turn = make([]byte, n)
	}
	if err := write(d.turn[:n], bytes*w, &d.img, stored); err != nil {
		return err
	}
	h.Orientation.apply(dst, stride, d.turn[:n], w, height, bytes)
	return nil
}

// Displayable tells by ErrUnsupported that a picture cannot be shown: four inks
// without an Adobe marker may be stored inverted or not.
func (h *Header) Displayable() error {
	if h.Count == 4 && !h.Adobe {
		return errInks()
	}
	return nil
}

func errInks() error {
	return fault(format.ErrUnsupported, "a JPEG of four inks without an Adobe marker: nothing says what its values mean")
}

// stored returns where the part r of the upright picture, reduced by shrink,
// lies in the stored one.
func (h *Header) stored(r image.Rectangle, shrink int) (image.Rectangle, error) {
	if shrink != 1 && shrink != 2 && shrink != 4 && shrink != 8 {
		return r, fault(format.ErrUsage, "a picture cannot be reduced by %d", shrink)
	}
	w, height := h.Upright()
	if size := image.Rect(0, 0, ceilDiv(w, shrink), ceilDiv(height, shrink)); r.Empty() || !r.In(size) {
		return r, fault(format.ErrUsage, "the part %v is not within the picture %v", r, size)
	}
	return h.Orientation.Stored(r, ceilDiv(h.Width, shrink), ceilDiv(h.Height, shrink)), nil
}

// apply writes the picture src of w x h pixels of so many bytes upright.
func (o Orientation) apply(dst []byte, stride int, src []byte, w, h, bytes int) {
	stepX, stepY := bytes, stride // in dst, for a step in src
	width, height := w, h
	if o.Transposed() {
		stepX, stepY = stride, bytes
		width, height = h, w
	}
	flipX, flipY := o.Flips()
	at := 0
	if flipX {
		at += bytes * (width - 1)
		if o.Transposed() {
			stepY = -bytes
		} else {
			stepX = -bytes
		}
	}
	if flipY {
		at += stride * (height - 1)
		if o.Transposed() {
			stepX = -stride
		} else {
			stepY = -stride
		}
	}
	for range h {
		to := at
		for range w {
			copy(dst[to:to+bytes], src)
			src = src[bytes:]
			to += stepX
		}
		at += stepY
	}
}
