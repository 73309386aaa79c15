package augment

import "image"

// Union is what serves every one of some plans for one picture: the rectangle
// about their crops, and the least of their Shrinks. The zero value is that of no
// plan.
//
// One decode of it is what several copies of a picture are best made from, always:
// a JPEG is decoded for its entropy up to the last row anyway, which is nearly half
// of the work. Of BenchmarkUnion's photographs of 500x375, with crops as for
// training, two copies take 0.75 of the time that a decode each takes, four 0.5,
// eight 0.35; the whole picture instead takes 1.1 of the union's time at two
// copies and the same at eight, and more to keep. The worst for it, small crops in
// opposite corners of a JPEG (BenchmarkCorners), takes twice the time of both; of
// two crops of 8% of the picture and more, one pair in a thousand should lose at
// all, by a model of that cost, and of 2% to 10% one in eleven, so nothing looks
// out for them.
//
// What Apply makes of the pixels of a union is bit for bit what it makes of those
// of the plan's own crop, decoded at the same Shrink.
type Union struct {
	Crop   image.Rectangle // of the upright picture
	Shrink int             // 1, 2, 4 or 8
}

// Add makes u serve the plan as well, which is of the same picture.
func (u *Union) Add(p *Plan) {
	u.Crop = u.Crop.Union(p.Crop)
	if u.Shrink == 0 || p.Shrink < u.Shrink {
		u.Shrink = p.Shrink
	}
}

// DecodeUnion decodes into px what the plans that were added to u need.
func (w *Worker) DecodeUnion(px *Pixels, data []byte, u Union) error {
	if d, ok := w.Decoder.(ShrinkDecoder); ok && u.Shrink > 1 {
		return d.DecodeShrunk(px, data, u.Crop, u.Shrink)
	}
	return w.Decode(px, data, u.Crop)
}
