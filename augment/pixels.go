package augment

import "image"

// Layout is how Pixels holds a picture.
type Layout uint8

const (
	Gray  Layout = iota // plane 0: one byte a pixel
	YCbCr               // planes 0 to 2: luma, and two of chroma sampled down by Ratio; full range, as JFIF
	RGBX                // plane 0: red, green, blue and 255 for each pixel
)

// Plane is one plane of a picture. Its first byte is the first pixel of
// Pixels.Rect, or the chroma sample that covers it.
type Plane struct {
	Pix    []byte
	Stride int // bytes from row to row
}

// Pixels is a decoded picture or a part of one, 8 bits a channel. A Pixels is
// reused from picture to picture; what a decoder puts into it stays good until
// the next Decode into the same Pixels.
type Pixels struct {
	Layout Layout
	Rect   image.Rectangle // the part that is held, in pixels of the picture
	Ratio  image.YCbCrSubsampleRatio
	Planes [3]Plane

	own []byte // memory that grows to the largest picture and is reused

	// Headers for the general path, kept here so that none is allocated.
	gray  image.Gray
	ycbcr image.YCbCr
	nrgba image.NRGBA
}

// rgbx makes px a picture of that layout in its own memory and returns its
// bytes, which have four times r's width to a row.
func (px *Pixels) rgbx(r image.Rectangle) []byte {
	n := 4 * r.Dx() * r.Dy()
	if cap(px.own) < n {
		px.own = make([]byte, n)
	}
	px.set(RGBX, r)
	px.Planes[0] = Plane{px.own[:n], 4 * r.Dx()}
	return px.own[:n]
}

func (px *Pixels) set(layout Layout, r image.Rectangle) {
	px.Layout, px.Rect, px.Ratio = layout, r, 0
	px.Planes = [3]Plane{}
}

// within returns a part of the picture as an image over the same memory. It
// stays good until the next call, or the next picture.
func (px *Pixels) within(r image.Rectangle) image.Image {
	p := &px.Planes
	switch px.Layout {
	case Gray:
		px.gray = image.Gray{Pix: p[0].Pix[px.offset(r, 1):], Stride: p[0].Stride, Rect: r}
		return &px.gray
	case YCbCr:
		whole := image.YCbCr{
			Y: p[0].Pix, Cb: p[1].Pix, Cr: p[2].Pix, YStride: p[0].Stride, CStride: p[1].Stride,
			SubsampleRatio: px.Ratio, Rect: px.Rect,
		}
		y, c := whole.YOffset(r.Min.X, r.Min.Y), whole.COffset(r.Min.X, r.Min.Y)
		whole.Y, whole.Cb, whole.Cr, whole.Rect = whole.Y[y:], whole.Cb[c:], whole.Cr[c:], r
		px.ycbcr = whole
		return &px.ycbcr
	default:
		px.nrgba = image.NRGBA{Pix: p[0].Pix[px.offset(r, 4):], Stride: p[0].Stride, Rect: r}
		return &px.nrgba
	}
}

// RGB returns the color of one pixel of Rect.
func (px *Pixels) RGB(x, y int) (r, g, b uint8) {
	// The colors of all three kinds of image are of 8 bits, doubled to 16.
	r16, g16, b16, _ := px.within(px.Rect).At(x, y).RGBA()
	return uint8(r16 >> 8), uint8(g16 >> 8), uint8(b16 >> 8)
}

func (px *Pixels) offset(r image.Rectangle, size int) int {
	return (r.Min.Y-px.Rect.Min.Y)*px.Planes[0].Stride + size*(r.Min.X-px.Rect.Min.X)
}
