// Package still decodes PNG, GIF and WebP to planes of 8 bits: one of gray, or
// three of red, green and blue. It walks the containers itself, in memory, so
// that sizes meet their limits before anything is taken for them and so that
// what does not matter to the pixels cannot fail an image; what is compressed
// is left to compress/zlib (of klauspost), compress/lzw, and the VP8 and VP8L
// decoders of golang.org/x/image.
//
//	bytes ─ ParseHeader ─▶ 16x16, 4 channels ─ Decode(part) ─▶ Picture: planes of the part
//
// 16 bits become the upper 8, gray of fewer is stretched to 0 to 255, and alpha
// is dropped, not blended, unless a Background is given. The first image of an
// animation is the picture; animated WebP is not supported. The kind is told by
// content alone.
package still

import (
	"image"

	"shardtool/format"
)

// Header is what an image says before its pixels.
type Header struct {
	Encoding      string // "png", "gif" or "webp"
	Width, Height int    // in pixels
	Channels      int    // as stored, after a palette: 1 gray, 2 gray and alpha, 3 color, 4 color and alpha
	Bits          int    // of a channel, or of an index into a palette, as stored
	Interlaced    bool
}

// ParseHeader reads what stands before the pixels. It allocates nothing but
// errors, and bounds nothing. Kinds of image that are not decoded are
// ErrUnsupported by their names, what is no image is ErrWrongFormat.
func ParseHeader(data []byte) (Header, error) {
	switch kindOf(data) {
	case "png":
		return pngHeader(data)
	case "gif":
		return gifHeader(data)
	case "webp":
		return webpHeader(data)
	}
	return Header{}, refuse(data)
}

// Picture is the part of a picture that was decoded.
type Picture struct {
	Gray   bool // one plane; else three
	Rect   image.Rectangle
	Stride int    // bytes from row to row: the width of Rect
	Mem    []byte // of all planes
}

// Plane returns plane c.
func (p *Picture) Plane(c int) []byte {
	n := p.Stride * p.Rect.Dy()
	return p.Mem[c*n : (c+1)*n : (c+1)*n]
}

// newPicture lays the planes of a part out in mem, or in larger memory.
func newPicture(mem []byte, gray bool, r image.Rectangle) Picture {
	p := Picture{Gray: gray, Rect: r, Stride: r.Dx()}
	n := p.Stride * r.Dy()
	if !gray {
		n *= 3
	}
	if cap(mem) < n {
		mem = make([]byte, n)
	}
	p.Mem = mem[:n]
	return p
}

// rows returns the part of each plane's row y that is held.
func (p *Picture) rows(y int) (rows [3][]byte) {
	count := 3
	if p.Gray {
		count = 1
	}
	at := (y - p.Rect.Min.Y) * p.Stride
	for c := range count {
		rows[c] = p.Plane(c)[at:][:p.Stride:p.Stride]
	}
	return rows
}

// Warnings counts what one image has wrong that does not matter to its pixels.
type Warnings struct {
	AncillaryCRC int // chunks of a PNG that are not needed and whose checksum is wrong
	ExtraData    int // 1 if there is more data than pixels
}

// Decoder decodes images of the three kinds. It is for one goroutine. The zero
// value is ready.
type Decoder struct {
	Pixels     int64     // the most that a picture may have; 0: the default of format.Limits
	Background *[3]uint8 // if not nil, alpha is blended over this color, and a picture with alpha has three planes

	warnings Warnings
	png      pngDecoder
	gif      gifDecoder
	line     []byte // one row, expanded
}

// Warnings returns those of the last image.
func (d *Decoder) Warnings() Warnings { return d.warnings }

// Decode decodes the part r of an image. The whole of its data is checked,
// whatever r is. The planes are put into mem where its capacity
// suffices, else into larger memory; either way the Picture has it.
func (d *Decoder) Decode(mem, data []byte, r image.Rectangle) (Picture, error) {
	d.warnings = Warnings{}
	h, err := ParseHeader(data)
	if err != nil {
		return Picture{}, err
	}
	whole := image.Rect(0, 0, h.Width, h.Height)
	if !r.In(whole) || r.Empty() {
		return Picture{}, fault(format.ErrUsage, "the part %v is not within the picture %v", r, whole)
	}
	if err := d.admit(h, data); err != nil {
		return Picture{}, err
	}
	switch h.Encoding {
	case "png":
		return d.decodePNG(mem, data, r)
	case "gif":
		return d.decodeGIF(mem, data, r)
	default:
		return d.decodeWebP(mem, data, r)
	}
}

// A flat picture can be a few bytes, whatever its size: lossless WebP spends no
// bit on a pixel, and a GIF may fill its screen with none. Beyond this many
// pixels, every 2^16 of them must have a byte.
const freePixels = 1 << 24

// admit refuses a picture that is too large, before memory is taken for it.
func (d *Decoder) admit(h Header, data []byte) error {
	limit := d.Pixels
	if limit == 0 {
		limit = new(format.Limits).OrDefault().Pixels
	}
	pixels := int64(h.Width) * int64(h.Height)
	if pixels > limit {
		return fault(format.ErrLimit, "%dx%d pixels are more than %d", h.Width, h.Height, limit)
	}
	if h.Encoding != "png" && pixels > freePixels && pixels>>16 > int64(len(data)) {
		return fault(format.ErrLimit, "%dx%d pixels in %d bytes: beyond 2^24 pixels, a %s has a byte for every 2^16 of them", h.Width, h.Height, len(data), h.Encoding)
	}
	return nil
}

// blend puts v of opacity a over a background.
func blend(v, a, background uint8) uint8 {
	return uint8((uint32(v)*uint32(a) + uint32(background)*uint32(255-a) + 127) / 255)
}

func fault(sentinel error, msg string, args ...any) error {
	return format.Errorf(sentinel, format.Nowhere, msg, args...)
}
