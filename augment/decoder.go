package augment

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"

	"shardtool/format"
)

// Decoder decodes images. It is for one goroutine. Its errors are
// *format.Error, without a shard: whoever calls knows where the image stands.
type Decoder interface {
	// Header reads what stands before the pixels. It is cheap.
	Header(data []byte) (Header, error)
	// Decode puts the part r of the picture, and perhaps more of it, into px:
	// px.Rect says what. r is within the size that Header gives, and not
	// empty. The size meets Limits.Pixels before memory is taken for it. After
	// an error px holds nothing of use. data is not kept.
	Decode(px *Pixels, data []byte, r image.Rectangle) error
}

// NewDecoder makes a decoder for one worker. nil limits are the defaults.
type NewDecoder func(limits *format.Limits) Decoder

// Standard makes a decoder on image/jpeg and image/png. It always decodes the
// whole picture: JPEG as stored, in YCbCr or gray where it is; the rest, as
// RGBX: alpha dropped, not blended, 16 bits cut to the upper 8.
func Standard(limits *format.Limits) Decoder {
	return &standard{pixels: limits.OrDefault().Pixels}
}

type standard struct {
	pixels int64
	r      bytes.Reader
}

func (d *standard) Header(data []byte) (Header, error) { return ParseHeader(data) }

func (d *standard) Decode(px *Pixels, data []byte, r image.Rectangle) error {
	h, err := ParseHeader(data)
	if err != nil {
		return err
	}
	if err := d.admit(h, data); err != nil {
		return err
	}
	d.r.Reset(data)
	var img image.Image
	if h.Encoding == "jpeg" {
		img, err = jpeg.Decode(&d.r)
	} else {
		img, err = png.Decode(&d.r)
	}
	d.r.Reset(nil)
	if err != nil {
		return decodeError(h.Encoding, err)
	}
	if img.Bounds() != image.Rect(0, 0, h.Width, h.Height) {
		return fault(format.ErrCorrupt, "the %s has two sizes: %dx%d and %v", h.Encoding, h.Width, h.Height, img.Bounds().Size())
	}
	px.take(img)
	if !r.In(px.Rect) || r.Empty() {
		return fault(format.ErrUsage, "the part %v is not within the picture %v", r, px.Rect)
	}
	return nil
}

// admit refuses a picture that is too large, or that its bytes cannot hold.
//
// Every 8x8 block of the JPEG component sampled most finely costs at least one
// bit, so a byte stands for at most 512 pixels. Deflate expands by at most
// 1032, and a PNG's pixel has at least one bit.
func (d *standard) admit(h Header, data []byte) error {
	pixels := int64(h.Width) * int64(h.Height)
	if pixels > d.pixels {
		return fault(format.ErrLimit, "%dx%d pixels are more than %d", h.Width, h.Height, d.pixels)
	}
	perByte := int64(512)
	if h.Encoding == "png" {
		perByte = 8 * 1032
	}
	if pixels/perByte > int64(len(data)) {
		return fault(format.ErrTruncated, "%d bytes cannot hold %dx%d pixels", len(data), h.Width, h.Height)
	}
	return nil
}

func decodeError(encoding string, err error) error {
	var jf jpeg.FormatError
	var ju jpeg.UnsupportedError
	var pu png.UnsupportedError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fault(format.ErrTruncated, "the %s ends early", encoding)
	case errors.As(err, &ju), errors.As(err, &pu):
		return fault(format.ErrUnsupported, "%s", err)
	case errors.As(err, &jf) && jf == "short Huffman data":
		return fault(format.ErrTruncated, "the %s ends early", encoding)
	default:
		return fault(format.ErrCorrupt, "%s", err)
	}
}

// take makes px the picture, over its memory where the layout allows.
func (px *Pixels) take(img image.Image) {
	r := img.Bounds()
	switch img := img.(type) {
	case *image.Gray:
		px.set(Gray, r)
		px.Planes[0] = Plane{img.Pix, img.Stride}
	case *image.YCbCr:
		px.set(YCbCr, r)
		px.Ratio = img.SubsampleRatio
		px.Planes = [3]Plane{{img.Y, img.YStride}, {img.Cb, img.CStride}, {img.Cr, img.CStride}}
	case *image.RGBA: // a PNG or JPEG without alpha
		px.set(RGBX, r)
		px.Planes[0] = Plane{img.Pix, img.Stride}
	case *image.NRGBA:
		for i := 3; i < len(img.Pix); i += 4 {
			img.Pix[i] = 255
		}
		px.set(RGBX, r)
		px.Planes[0] = Plane{img.Pix, img.Stride}
	default:
		px.convert(img, r)
	}
}

// convert copies a picture of another kind, pixel by pixel.
func (px *Pixels) convert(img image.Image, r image.Rectangle) {
	dst := px.rgbx(r)
	at := colorAt(img)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			dst[0], dst[1], dst[2] = at(x, y)
			dst[3] = 255
			dst = dst[4:]
		}
	}
}

func colorAt(img image.Image) func(x, y int) (r, g, b uint8) {
	switch img := img.(type) {
	case *image.CMYK:
		return func(x, y int) (r, g, b uint8) {
			c := img.CMYKAt(x, y)
			return color.CMYKToRGB(c.C, c.M, c.Y, c.K)
		}
	case *image.Gray16:
		return func(x, y int) (r, g, b uint8) {
			v := uint8(img.Gray16At(x, y).Y >> 8)
			return v, v, v
		}
	case *image.NRGBA64:
		return func(x, y int) (r, g, b uint8) {
			c := img.NRGBA64At(x, y)
			return uint8(c.R >> 8), uint8(c.G >> 8), uint8(c.B >> 8)
		}
	case *image.Paletted:
		palette := make([]color.NRGBA, len(img.Palette))
		for i, c := range img.Palette {
			// The palette of a PNG is of NRGBA, or of RGBA that is opaque.
			palette[i] = opaque(c)
		}
		return func(x, y int) (r, g, b uint8) {
			var c color.NRGBA // black beyond the palette
			if i := int(img.ColorIndexAt(x, y)); i < len(palette) {
				c = palette[i]
			}
			return c.R, c.G, c.B
		}
	default: // opaque 16 bits among them
		return func(x, y int) (r, g, b uint8) {
			r16, g16, b16, _ := img.At(x, y).RGBA()
			return uint8(r16 >> 8), uint8(g16 >> 8), uint8(b16 >> 8)
		}
	}
}

func opaque(c color.Color) color.NRGBA {
	if n, ok := c.(color.NRGBA); ok {
		return n
	}
	r, g, b, _ := c.RGBA()
	return color.NRGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: 255}
}
