package augment

import (
	"image"

	"shardtool/augment/internal/resample"
	"shardtool/augment/jpeg"
)

// Layout is how Pixels holds a picture.
type Layout uint8

const (
	Gray  Layout = iota // plane 0
	YCbCr               // planes 0 to 2: luma, and two of chroma that may have fewer samples; full range, as JFIF
	RGB                 // planes 0 to 2: red, green, blue
)

// Axis says how the samples of a plane lie along one axis of the picture, whose
// length in pixels is Pixels: sample i, of Total, covers the pixels i*Num/Den to
// (i+1)*Num/Den; First is the first sample in memory, of Held. Smooth says that
// pixels between samples are mixed 3 to 1, as in [jpeg.Ratio].
type Axis = resample.Axis

// Plane is one plane of a picture: samples of 8 bits in Pix, rows Stride bytes
// apart, and where they lie: the axes X and Y.
type Plane = resample.Plane

// Pixels is a decoded picture or a part of one, in planes of 8 bits a sample:
//
//	upright picture     the planes          a plane
//	┌────── Size ──┐    as they lie:        Pix[0] is sample (X.First, Y.First),
//	│  ┌─Rect─┐    │    mirrored, where     X.Held by Y.Held samples are there
//	│  │ held │    │ ─▶ FlipX or FlipY   ─▶ ┌───────────────┐
//	│  └──────┘    │    says so             │               │ Stride bytes
//	└──────────────┘                        └───────────────┘ from row to row
//
// Rows and columns are never exchanged. Around the part that Rect says, the
// planes hold the samples of chroma that its pixels at the rim are mixed from.
//
// A Pixels is reused from picture to picture: its memory grows to the largest
// one and stays. What a decoder puts into it is good until the next Decode into
// the same Pixels, whatever else the decoder does.
type Pixels struct {
	Layout       Layout
	Rect         image.Rectangle // the part that is held, in pixels of the upright picture
	Size         image.Point     // of the upright picture
	Full         image.Point     // its size before Shrink
	FlipX, FlipY bool            // the planes lie mirrored to the upright picture
	Shrink       int             // 1, 2, 4 or 8: Rect and Size count pixels of the picture reduced by it, the size rounded up
	Planes       [3]Plane

	own    []byte     // memory for planes
	jpeg   jpeg.Image // and its memory
	turned []byte     // memory for planes that were transposed
	view   jpeg.Image // the planes as package jpeg has them
	colors jpeg.Colors
}

// picture is what the resampler takes: the planes as they lie.
func (px *Pixels) picture() resample.Picture {
	return resample.Picture{Planes: px.Planes, Count: px.count(), YCbCr: px.Layout == YCbCr}
}

// count returns how many planes there are.
func (px *Pixels) count() int {
	if px.Layout == Gray {
		return 1
	}
	return 3
}

// stored returns where the part r of the upright picture lies in the planes,
// in pixels.
func (px *Pixels) stored(r image.Rectangle) image.Rectangle {
	if px.FlipX {
		r.Min.X, r.Max.X = px.Size.X-r.Max.X, px.Size.X-r.Min.X
	}
	if px.FlipY {
		r.Min.Y, r.Max.Y = px.Size.Y-r.Max.Y, px.Size.Y-r.Min.Y
	}
	return r
}

// source returns where the part r of the full upright picture lies in the
// planes, in pixels of the reduced picture: x0, y0, x1, y1. As it is the stored
// picture that is reduced, a part at an end of the upright one may begin amid a
// pixel.
func (px *Pixels) source(r image.Rectangle) [4]float64 {
	if px.FlipX {
		r.Min.X, r.Max.X = px.Full.X-r.Max.X, px.Full.X-r.Min.X
	}
	if px.FlipY {
		r.Min.Y, r.Max.Y = px.Full.Y-r.Max.Y, px.Full.Y-r.Min.Y
	}
	by := float64(max(px.Shrink, 1))
	return [4]float64{
		float64(r.Min.X) / by, float64(r.Min.Y) / by,
		min(float64(r.Max.X)/by, float64(px.Size.X)), min(float64(r.Max.Y)/by, float64(px.Size.Y)),
	}
}

// reset makes px a part of an upright picture. Its planes are still to be set.
func (px *Pixels) reset(layout Layout, r image.Rectangle, size image.Point) {
	px.Layout, px.Rect, px.Size, px.Full = layout, r, size, size
	px.FlipX, px.FlipY, px.Shrink = false, false, 1
	px.Planes = [3]Plane{}
}

// room returns n bytes of memory for planes.
func (px *Pixels) room(n int) []byte {
	if cap(px.own) < n {
		px.own = make([]byte, n)
	}
	px.own = px.own[:n]
	return px.own
}

// plane describes a plane with one sample a pixel, of px.Rect.
func (px *Pixels) plane(pix []byte, stride int) Plane {
	return Plane{
		Pix: pix, Stride: stride,
		X: Axis{Pixels: px.Size.X, Num: 1, Den: 1, Total: px.Size.X, First: px.Rect.Min.X, Held: px.Rect.Dx()},
		Y: Axis{Pixels: px.Size.Y, Num: 1, Den: 1, Total: px.Size.Y, First: px.Rect.Min.Y, Held: px.Rect.Dy()},
	}
}

// RGB returns the color of one pixel of Rect, as WriteRGB writes it.
func (px *Pixels) RGB(x, y int) (r, g, b uint8) {
	var c [3]byte
	px.WriteRGB(c[:], 3, image.Rect(x, y, x+1, y+1))
	return c[0], c[1], c[2]
}

// WriteRGB writes the part r of the upright picture, which must be within
// Rect, as red, green and blue, three bytes a pixel: row i begins at
// dst[i*stride]. Chroma is upsampled and converted bit for bit as libjpeg-turbo
// does for the samplings that it knows ("fancy" upsampling), but for pictures
// whose rows and columns were exchanged: there, halves are rounded the other way
// at 4:2:0. See [jpeg.Colors]. It allocates nothing in steady state.
func (px *Pixels) WriteRGB(dst []byte, stride int, r image.Rectangle) {
	if !r.In(px.Rect) {
		panic("augment: the part is not within the pixels")
	}
	img := px.asJPEG()
	s := px.stored(r)
	n := 3 * s.Dx()
	for i := range s.Dy() {
		y := s.Min.Y + i
		if px.FlipY {
			y = s.Max.Y - 1 - i
		}
		row := dst[i*stride:][:n:n]
		if err := px.colors.WriteRGB(row, n, img, image.Rect(s.Min.X, y, s.Max.X, y+1)); err != nil {
			panic("augment: " + err.Error()) // the row is within, and of one of three layouts
		}
		if px.FlipX {
			mirror(row)
		}
	}
}

// asJPEG describes the planes to package jpeg, which has the rows of RGB.
func (px *Pixels) asJPEG() *jpeg.Image {
	img := &px.view
	img.Color = [...]jpeg.ColorSpace{Gray: jpeg.Gray, YCbCr: jpeg.YCbCr, RGB: jpeg.RGB}[px.Layout]
	img.Count, img.Rect = px.count(), px.stored(px.Rect)
	for c := range img.Count {
		p := &px.Planes[c]
		img.Planes[c] = jpeg.Plane{
			Pix: p.Pix, Stride: p.Stride,
			Rect:  image.Rect(p.X.First, p.Y.First, p.X.First+p.X.Held, p.Y.First+p.Y.Held),
			Width: p.X.Total, Height: p.Y.Total,
			X: jpeg.Ratio{Num: p.X.Num, Den: p.X.Den, Smooth: p.X.Smooth},
			Y: jpeg.Ratio{Num: p.Y.Num, Den: p.Y.Den, Smooth: p.Y.Smooth},
		}
	}
	return img
}

// mirror exchanges left and right in a row of three bytes a pixel.
func mirror(row []byte) {
	for i, j := 0, len(row)-3; i < j; i, j = i+3, j-3 {
		row[i], row[j] = row[j], row[i]
		row[i+1], row[j+1] = row[j+1], row[i+1]
		row[i+2], row[j+2] = row[j+2], row[i+2]
	}
}
