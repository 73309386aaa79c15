package augment

import (
	"image"

	"shardtool/augment/jpeg"
	"shardtool/format"
)

// decodeJPEG decodes the part r of the upright picture, perhaps reduced.
func (d *decoder) decodeJPEG(px *Pixels, data []byte, h Header, r image.Rectangle, shrink int) error {
	o := jpeg.Orientation(h.Orientation)
	width, height := h.Width, h.Height // as stored
	if o.Transposed() {
		width, height = height, width
	}
	r = o.Stored(r, width, height)
	r = image.Rect(r.Min.X/shrink, r.Min.Y/shrink, (r.Max.X+shrink-1)/shrink, (r.Max.Y+shrink-1)/shrink)
	img := &px.jpeg
	if err := d.jpeg.Planes(img, data, r, shrink); err != nil {
		return err
	}
	d.warnings.damaged = d.jpeg.Damaged()
	if img.Width != (width+shrink-1)/shrink || img.Height != (height+shrink-1)/shrink {
		return fault(format.ErrCorrupt, "the JPEG has two sizes")
	}
	if err := px.takeJPEG(img); err != nil {
		return err
	}
	if o.Transposed() {
		px.transpose()
	}
	px.Full = image.Pt(h.Width, h.Height)
	px.Shrink = shrink
	px.FlipX, px.FlipY = o.Flips()
	px.Rect = px.stored(px.Rect) // mirrors are their own inverses
	return nil
}

// takeJPEG makes px the picture as stored, over its memory. Four inks become
// planes of RGB.
func (px *Pixels) takeJPEG(img *jpeg.Image) error {
	layout, count := RGB, 3
	switch img.Color {
	case jpeg.Gray:
		layout, count = Gray, 1
	case jpeg.YCbCr:
		layout = YCbCr
	}
	px.reset(layout, img.Rect, image.Pt(img.Width, img.Height))
	if img.Count == 4 {
		return px.takeInks(img)
	}
	for c := range count {
		px.Planes[c] = planeOf(&img.Planes[c], img.Width, img.Height)
	}
	return nil
}

func planeOf(p *jpeg.Plane, width, height int) Plane {
	return Plane{
		Pix: p.Pix, Stride: p.Stride,
		X: Axis{Pixels: width, Num: p.X.Num, Den: p.X.Den, Smooth: p.X.Smooth, Total: p.Width, First: p.Rect.Min.X, Held: p.Rect.Dx()},
		Y: Axis{Pixels: height, Num: p.Y.Num, Den: p.Y.Den, Smooth: p.Y.Smooth, Total: p.Height, First: p.Rect.Min.Y, Held: p.Rect.Dy()},
	}
}

// takeInks converts CMYK and YCCK row by row.
func (px *Pixels) takeInks(img *jpeg.Image) error {
	r := img.Rect
	n := r.Dx() * r.Dy()
	own := px.room(3*n + 3*r.Dx())
	row := own[3*n:]
	for c := range 3 {
		px.Planes[c] = px.plane(own[c*n:(c+1)*n:(c+1)*n], r.Dx())
	}
	for y := range r.Dy() {
		if err := px.colors.WriteRGB(row, len(row), img, image.Rect(r.Min.X, r.Min.Y+y, r.Max.X, r.Min.Y+y+1)); err != nil {
			return err
		}
		for c := range 3 {
			to := px.Planes[c].Pix[y*r.Dx():][:r.Dx()]
			for x := range to {
				to[x] = row[3*x+c]
			}
		}
	}
	return nil
}

// transpose exchanges rows and columns of the picture.
func (px *Pixels) transpose() {
	n := 0
	for _, p := range px.Planes {
		n += p.X.Held * p.Y.Held
	}
	mem := px.turned
	if cap(mem) < n {
		mem = make([]byte, n)
	}
	px.turned, mem = mem, mem[:n]
	for c := range px.Planes {
		p := &px.Planes[c]
		if p.Pix == nil {
			continue
		}
		size := p.X.Held * p.Y.Held
		dst := mem[:size:size]
		mem = mem[size:]
		turn(dst, p.Y.Held, p.Pix, p.Stride, p.X.Held, p.Y.Held)
		*p = Plane{Pix: dst, Stride: p.Y.Held, X: p.Y, Y: p.X}
	}
	px.Size = image.Pt(px.Size.Y, px.Size.X)
	px.Rect = image.Rect(px.Rect.Min.Y, px.Rect.Min.X, px.Rect.Max.Y, px.Rect.Max.X)
}

// turn transposes width x height bytes, in squares that fit into a cache.
func turn(dst []byte, dstStride int, src []byte, srcStride, width, height int) {
	const side = 16
	for y0 := 0; y0 < height; y0 += side {
		y1 := min(y0+side, height)
		for x0 := 0; x0 < width; x0 += side {
			x1 := min(x0+side, width)
			for y := y0; y < y1; y++ {
				row := src[y*srcStride+x0 : y*srcStride+x1]
				at := x0*dstStride + y
				for _, v := range row {
					dst[at] = v
					at += dstStride
				}
			}
		}
	}
}
