package still

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"io"

	"golang.org/x/image/vp8"
	"golang.org/x/image/vp8l"
	"golang.org/x/image/webp"

	"shardtool/format"
)

// webpFile is what a WebP says before its pixels (RFC 9649):
//
//	"RIFF" | length of what follows 4 | "WEBP" ( kind 4 | length 4 | body, padded to even )*
//	VP8X: flags 1 | 3 | width-1 3 | height-1 3     before the others where there is more than one image's pixels
//	VP8:  frame tag 3 | 9D 01 2A | width 2 | height 2 ...
//	VP8L: 2F | width-1 14 bits, height-1 14 bits, alpha 1, version 3 ...
type webpFile struct {
	width, height int
	alpha         bool
	lossless      bool
	pixels        []byte // the body of VP8 or VP8L
}

func (f *webpFile) header() Header {
	h := Header{Encoding: "webp", Width: f.width, Height: f.height, Channels: 3, Bits: 8}
	if f.alpha {
		h.Channels = 4
	}
	return h
}

func webpHeader(data []byte) (Header, error) {
	var f webpFile
	if err := f.read(data); err != nil {
		return Header{}, err
	}
	return f.header(), nil
}

// read finds the pixels and reads their header.
func (f *webpFile) read(data []byte) error {
	*f = webpFile{}
	end := int64(binary.LittleEndian.Uint32(data[4:])) + 8
	rest := data[12:min(int64(len(data)), max(end, 12))]
	var canvas []byte
	for {
		if len(rest) < 8 {
			return webpShort(data, end)
		}
		kind, length := string(rest[:4]), int64(binary.LittleEndian.Uint32(rest[4:]))
		body := rest[8:min(int64(len(rest)), 8+length)]
		whole := int64(len(body)) == length
		switch kind {
		case "VP8X":
			if canvas != nil || whole && length < 10 {
				return fault(format.ErrCorrupt, "the WebP has chunks VP8X in a place or of a length that make no sense")
			}
			if !whole {
				return webpShort(data, end)
			}
			canvas = body
			f.alpha = body[0]&0x10 != 0
			if body[0]&0x02 != 0 {
				return fault(format.ErrUnsupported, "an animated WebP")
			}
		case "VP8 ", "VP8L":
			f.lossless = kind == "VP8L"
			if err := f.frame(body, canvas); err != nil || whole {
				return err
			}
			return nil // the header stands; decoding will tell what is missing
		}
		if !whole {
			return webpShort(data, end)
		}
		rest = rest[min(int64(len(rest)), 8+length+length&1):]
	}
}

// webpShort is for a WebP without pixels.
func webpShort(data []byte, end int64) error {
	if int64(len(data)) < end {
		return fault(format.ErrTruncated, "the WebP ends %d bytes early", end-int64(len(data)))
	}
	return fault(format.ErrCorrupt, "the WebP has no pixels")
}

// frame reads the header of the pixels. canvas is the body of VP8X, if there is
// one.
func (f *webpFile) frame(b, canvas []byte) error {
	f.pixels = b
	if f.lossless {
		if len(b) < 5 {
			return fault(format.ErrTruncated, "the WebP ends in the header of its pixels")
		}
		bits := binary.LittleEndian.Uint32(b[1:])
		if b[0] != 0x2f || bits>>29 != 0 {
			return fault(format.ErrCorrupt, "the lossless pixels of the WebP begin with %02X and version %d", b[0], bits>>29)
		}
		f.width, f.height = int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1
		f.alpha = f.alpha || bits>>28&1 != 0
	} else {
		if len(b) < 10 {
			return fault(format.ErrTruncated, "the WebP ends in the header of its pixels")
		}
		if b[0]&1 != 0 || string(b[3:6]) != "\x9d\x01\x2a" {
			return fault(format.ErrCorrupt, "the lossy pixels of the WebP do not begin with a key frame")
		}
		f.width, f.height = word(b[6:])&0x3fff, word(b[8:])&0x3fff
		if f.width == 0 || f.height == 0 {
			return fault(format.ErrCorrupt, "a WebP of %dx%d pixels", f.width, f.height)
		}
	}
	if canvas != nil {
		w, h := 1+int(binary.LittleEndian.Uint32(canvas[4:])&0xffffff), 1+int(binary.LittleEndian.Uint32(canvas[6:])>>8)
		if w != f.width || h != f.height {
			return fault(format.ErrCorrupt, "the WebP has two sizes: %dx%d and %dx%d", w, h, f.width, f.height)
		}
	}
	return nil
}

// decodeWebP decodes the part r.
func (d *Decoder) decodeWebP(mem, data []byte, r image.Rectangle) (Picture, error) {
	var f webpFile
	if err := f.read(data); err != nil {
		return Picture{}, err
	}
	if end := int64(binary.LittleEndian.Uint32(data[4:])) + 8; end > int64(len(data)) {
		return Picture{}, fault(format.ErrTruncated, "the WebP ends %d bytes early", end-int64(len(data)))
	}
	if !f.lossless && len(f.pixels) >= 1<<24 {
		return Picture{}, fault(format.ErrUnsupported, "a lossy WebP of %d bytes: at most 2^24 are decoded", len(f.pixels))
	}
	var img image.Image
	var err error
	switch {
	case d.Background != nil && f.alpha && !f.lossless:
		img, err = webp.Decode(bytes.NewReader(data)) // alpha stands in a chunk of its own
	case f.lossless:
		img, err = vp8l.Decode(bytes.NewReader(f.pixels))
	default:
		v := vp8.NewDecoder() // a used one would keep filter settings
		v.Init(bytes.NewReader(f.pixels), len(f.pixels))
		if _, err = v.DecodeFrameHeader(); err == nil {
			img, err = v.DecodeFrame()
		}
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return Picture{}, fault(format.ErrTruncated, "the pixels of the WebP end early")
	case err != nil:
		return Picture{}, fault(format.ErrCorrupt, "the pixels of the WebP: %w", err)
	case !image.Rect(0, 0, f.width, f.height).In(img.Bounds()):
		return Picture{}, fault(format.ErrCorrupt, "the WebP has two sizes: %dx%d and %v", f.width, f.height, img.Bounds().Size())
	}
	pic := newPicture(mem, false, r)
	switch img := img.(type) {
	case *image.NRGBA:
		d.putNRGBA(&pic, img, f.alpha)
	case *image.YCbCr:
		putVideo(&pic, img, f.width, f.height)
	case *image.NYCbCrA:
		putVideo(&pic, &img.YCbCr, f.width, f.height)
		d.blendPlanes(&pic, img)
	default:
		return pic, fault(format.ErrUnsupported, "a WebP decoded as %T", img)
	}
	return pic, nil
}

// putNRGBA takes the part from lossless pixels.
func (d *Decoder) putNRGBA(pic *Picture, img *image.NRGBA, alpha bool) {
	alpha = alpha && d.Background != nil
	for y := pic.Rect.Min.Y; y < pic.Rect.Max.Y; y++ {
		to := pic.rows(y)
		from := img.Pix[img.PixOffset(pic.Rect.Min.X, y):][: 4*pic.Stride : 4*pic.Stride]
		for x := range pic.Stride {
			v := from[4*x : 4*x+4 : 4*x+4]
			for c := range 3 {
				to[c][x] = v[c]
				if alpha {
					to[c][x] = blend(v[c], v[3], d.Background[c])
				}
			}
		}
	}
}

func (d *Decoder) blendPlanes(pic *Picture, img *image.NYCbCrA) {
	for y := pic.Rect.Min.Y; y < pic.Rect.Max.Y; y++ {
		alpha := img.A[img.AOffset(pic.Rect.Min.X, y):]
		for c, to := range pic.rows(y) {
			for x := range to {
				to[x] = blend(to[x], alpha[x], d.Background[c])
			}
		}
	}
}
