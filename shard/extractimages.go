package shard

import (
	"bytes"
	"image"
	"image/png"

	"shardtool/augment"
	"shardtool/format"
)

// ImageForm is how Extract writes images.
type ImageForm uint8

const (
	StoredImages ImageForm = iota // to the byte, as any other field
	PNGImages                     // as decoded: upright, 8-bit RGB, alpha dropped
)

// String returns the word that commands use: stored or png.
func (f ImageForm) String() string { return [...]string{"stored", "png"}[f] }

// pngWriter makes a PNG of each image of a sample.
type pngWriter struct {
	images  imageReader
	picture image.NRGBA
	encoder png.Encoder
	out     []bytes.Buffer // one for each image of a sample
	warned  func(map[format.Warning]int64)
}

// newPNGWriter tells warned of faults of images that are read over.
func newPNGWriter(limits *format.Limits, warned func(map[format.Warning]int64)) *pngWriter {
	w := &pngWriter{images: imageReader{open: augment.Standard, limits: limits}, warned: warned}
	// BenchmarkPNG: 2.6 times as fast as the default, for 7% more bytes.
	w.encoder = png.Encoder{CompressionLevel: png.BestSpeed, BufferPool: new(oneBuffer)}
	return w
}

// oneBuffer is the encoder's memory, kept from image to image.
type oneBuffer struct{ b *png.EncoderBuffer }

func (o *oneBuffer) Get() *png.EncoderBuffer  { return o.b }
func (o *oneBuffer) Put(b *png.EncoderBuffer) { o.b = b }

// sample replaces the images among the fields of a sample that is about to be
// written, whose names are those of a tar, by PNGs. They are lent until the next
// call. An error says which field it is of.
func (w *pngWriter) sample(fields []format.Field) error {
	n := 0
	for i := range fields {
		f := &fields[i]
		if f.Data == nil || !pngField(f) {
			continue
		}
		if n == len(w.out) {
			w.out = append(w.out, bytes.Buffer{})
		}
		if err := w.encode(&w.out[n], f.Data); err != nil {
			return format.ReadError(err, format.Location{Offset: format.Unknown, Record: format.Unknown, Field: f.Name})
		}
		f.Data, f.Name = w.out[n].Bytes(), pngName(f.Name)
		n++
	}
	return nil
}

// pngField reports whether a field, named as in a tar, is an image.
func pngField(f *format.Field) bool {
	name, _ := decodeField(f.Name)
	return namedImage(name) || startsAsImage(f.Data, f.Size())
}

// pngName puts png in the place of the suffix of an image, or behind a name that
// has none.
func pngName(name string) string {
	stem, _ := lastSuffix(name)
	switch {
	case !hasImageSuffix(name):
		return name + ".png"
	case stem == "":
		return "png"
	default:
		return stem + ".png"
	}
}

func (w *pngWriter) encode(out *bytes.Buffer, data []byte) error {
	h, err := w.images.header(data)
	if err != nil {
		return err
	}
	out.Reset()
	p := &w.picture
	err = w.images.each(h, data, func(rgb []byte, y int) error {
		if y == 0 { // decoded, so the size is within limits
			n := 4 * h.Width * h.Height
			if cap(p.Pix) < n {
				p.Pix = make([]byte, n)
			}
			p.Pix, p.Stride, p.Rect = p.Pix[:n], 4*h.Width, image.Rect(0, 0, h.Width, h.Height)
		}
		opaque(p.Pix[y*p.Stride:], rgb)
		return nil
	})
	w.warned(w.images.warned)
	if err != nil {
		return err
	}
	err = w.encoder.Encode(out, p) // without alpha it is stored as RGB
	if int64(h.Width)*int64(h.Height) > largeImage {
		p.Pix = nil
	}
	return err
}

// opaque writes pixels of three bytes as pixels of four.
func opaque(dst, rgb []byte) {
	for len(rgb) >= 3 {
		dst[0], dst[1], dst[2], dst[3] = rgb[0], rgb[1], rgb[2], 255
		rgb, dst = rgb[3:], dst[4:]
	}
}
