package augment

import (
	"image"

	"github.com/disintegration/imaging"
)

// general is the path for any picture: crop, resize on imaging, then flip and
// normalise in one pass into planes. Its result is what faster paths are held
// to.
func (t *Transform) general(dst []float32, px *Pixels, plan *Plan) {
	size := t.crop.Size
	small := imaging.Resize(px.within(plan.Crop), size, size, imaging.Linear)
	t.planes(dst, small, plan.Flip)
}

// planes writes the picture as normalised float32, channel after channel.
func (t *Transform) planes(dst []float32, src *image.NRGBA, flip bool) {
	width, height := src.Rect.Dx(), src.Rect.Dy()
	area := width * height
	first, step := 0, 4
	if flip {
		first, step = 4*(width-1), -4
	}
	for y := range height {
		row := src.Pix[y*src.Stride:][: 4*width : 4*width]
		red := dst[y*width:][:width]
		green := dst[area+y*width:][:width]
		blue := dst[2*area+y*width:][:width]
		at := first
		for x := range red {
			p := row[at : at+3 : at+3]
			red[x] = t.table[0][p[0]]
			green[x] = t.table[1][p[1]]
			blue[x] = t.table[2][p[2]]
			at += step
		}
	}
}
