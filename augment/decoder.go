package augment

import (
	"image"

	"shardtool/augment/internal/still"
	"shardtool/augment/jpeg"
	"shardtool/format"
)

// Decoder decodes images. It is for one goroutine. Its errors are
// *format.Error, without a shard: whoever calls knows where the image stands.
type Decoder interface {
	// Header reads what stands before the pixels. It is cheap.
	Header(data []byte) (Header, error)
	// Decode puts the part r of the upright picture, and perhaps more of it,
	// into px: px.Rect says what. r is within the size that Header gives, and
	// not empty. The size meets Limits.Pixels before memory is taken for it.
	// After an error px holds nothing of use. data is not kept.
	Decode(px *Pixels, data []byte, r image.Rectangle) error
}

// ShrinkDecoder is a Decoder that can decode a smaller picture than the stored
// one, at less cost.
type ShrinkDecoder interface {
	Decoder
	// DecodeShrunk is Decode of a picture whose sides are 2, 4 or 8 times
	// smaller, rounded up, where the encoding allows it: px.Shrink says how much
	// smaller it is. r is in pixels of the full picture; px.Rect, in those of
	// the smaller one, covers it.
	DecodeShrunk(px *Pixels, data []byte, r image.Rectangle, shrink int) error
}

// Warner is a Decoder that counts faults of images that it read over, as those
// of this package are. Of a Worker, it is w.Decoder.(Warner).
type Warner interface {
	// Warnings returns those of the last Decode; nil if there are none.
	Warnings() map[format.Warning]int64
}

// Faults of images that are read over.
const (
	// AncillaryCRC is a chunk of a PNG that its pixels do not need, with a wrong
	// checksum.
	AncillaryCRC format.Warning = "ancillary-crc"
	// ExtraData is data of pixels beyond the last one of a PNG or a GIF.
	ExtraData format.Warning = "extra-data"
	// DamagedImage is a JPEG that was truncated or damaged in a part that was
	// decoded, under Decoding.Tolerant.
	DamagedImage format.Warning = "damaged-image"
)

// NewDecoder makes a decoder for one worker. nil limits are the defaults.
type NewDecoder func(limits *format.Limits) Decoder

// Standard makes a decoder of JPEG, PNG, GIF and WebP with the options' zero
// values.
func Standard(limits *format.Limits) Decoder { return Decoding{}.New(limits) }

// Decoding are options of decoding. For example,
// t.WithDecoder(Decoding{Background: &white}.New) blends alpha over white.
type Decoding struct {
	// Background is the color over which alpha is blended; nil: alpha is
	// dropped, which leaves the colors that are stored behind it.
	Background *[3]uint8
	// Tolerant shows what there is of truncated and damaged JPEGs, the rest
	// gray, as libjpeg does with block smoothing off. The default is an error.
	Tolerant bool
	// AsStored leaves the orientation that EXIF tells unapplied.
	AsStored bool
	// Workers is how many goroutines decode one JPEG, where it has restart
	// markers that let them begin; 0: one.
	Workers int
}

// New makes a decoder. JPEGs are decoded by package jpeg, which decodes only
// what the part needs; of the other encodings, the whole image is read whatever
// the part is, and checked, and the part is kept.
func (o Decoding) New(limits *format.Limits) Decoder {
	all := limits.OrDefault()
	return &decoder{
		asStored: o.AsStored,
		still:    still.Decoder{Pixels: all.Pixels, Background: o.Background},
		jpeg:     jpeg.NewDecoder(&jpeg.Options{Limits: &all, Tolerant: o.Tolerant, Workers: o.Workers}),
	}
}

// decoder hands images to the decoder of their encoding.
type decoder struct {
	asStored bool
	still    still.Decoder
	jpeg     *jpeg.Decoder
	warnings struct {
		still   still.Warnings
		damaged bool
	}
}

var _ interface {
	ShrinkDecoder
	Warner
} = (*decoder)(nil)

func (d *decoder) Header(data []byte) (Header, error) {
	h, err := ParseHeader(data)
	if d.asStored && h.Orientation > 1 {
		if jpeg.Orientation(h.Orientation).Transposed() {
			h.Width, h.Height = h.Height, h.Width
		}
		h.Orientation = 1
	}
	return h, err
}

func (d *decoder) Decode(px *Pixels, data []byte, r image.Rectangle) error {
	return d.DecodeShrunk(px, data, r, 1)
}

func (d *decoder) DecodeShrunk(px *Pixels, data []byte, r image.Rectangle, shrink int) error {
	d.warnings.still, d.warnings.damaged = still.Warnings{}, false
	h, err := d.Header(data)
	if err != nil {
		return err
	}
	if shrink != 1 && shrink != 2 && shrink != 4 && shrink != 8 {
		return fault(format.ErrUsage, "a picture cannot be reduced by %d", shrink)
	}
	whole := image.Rect(0, 0, h.Width, h.Height)
	if !r.In(whole) || r.Empty() {
		return fault(format.ErrUsage, "the part %v is not within the picture %v", r, whole)
	}
	if h.Encoding == "jpeg" {
		return d.decodeJPEG(px, data, h, r, shrink)
	}
	pic, err := d.still.Decode(px.own, data, r)
	if pic.Mem != nil {
		px.own = pic.Mem
	}
	d.warnings.still = d.still.Warnings()
	if err != nil {
		return err
	}
	layout, count := RGB, 3
	if pic.Gray {
		layout, count = Gray, 1
	}
	px.reset(layout, pic.Rect, image.Pt(h.Width, h.Height))
	for c := range count {
		px.Planes[c] = px.plane(pic.Plane(c), pic.Stride)
	}
	return nil
}

// Warnings implements Warner.
func (d *decoder) Warnings() map[format.Warning]int64 {
	w := &d.warnings
	if w.still == (still.Warnings{}) && !w.damaged {
		return nil
	}
	counts := make(map[format.Warning]int64)
	if n := w.still.AncillaryCRC; n > 0 {
		counts[AncillaryCRC] = int64(n)
	}
	if n := w.still.ExtraData; n > 0 {
		counts[ExtraData] = int64(n)
	}
	if w.damaged {
		counts[DamagedImage] = 1
	}
	return counts
}

func fault(sentinel error, msg string, args ...any) error {
	return format.Errorf(sentinel, format.Nowhere, msg, args...)
}
