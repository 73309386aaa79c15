package augment

import (
	"bytes"
	"errors"

	"shardtool/augment/internal/still"
	"shardtool/augment/jpeg"
	"shardtool/format"
)

// Header is what is known of an encoded image without decoding it.
type Header struct {
	Encoding      string // "jpeg", "png", "gif" or "webp", by content
	Width, Height int    // in pixels, as the picture will be decoded: upright
	Channels      int    // as stored, after a palette: 1 gray, 2 gray and alpha, 3 color, 4 color and alpha, or CMYK
	Bits          int    // of a channel, or of an index into a palette, as stored
	Orientation   int    // EXIF's, 1 to 8, of how the picture is stored; 1: upright
	Sampling      string // of the chroma of a JPEG, such as "4:2:0", or "2x2,1x1,1x2"; else ""
	Progressive   bool   // a progressive JPEG, or an interlaced PNG or GIF
}

// ParseHeader reads the header of a JPEG, a PNG, a GIF or a WebP. For all but
// JPEGs of uncommon samplings it allocates nothing. It bounds nothing: Decode
// does. Other kinds of image are ErrUnsupported by their names, what is no image
// is ErrWrongFormat.
func ParseHeader(data []byte) (Header, error) {
	if isJPEG(data) {
		return jpegHeader(data)
	}
	h, err := still.ParseHeader(data)
	switch {
	case err == nil:
		return Header{
			Encoding: h.Encoding, Width: h.Width, Height: h.Height, Channels: h.Channels, Bits: h.Bits,
			Orientation: 1, Progressive: h.Interlaced,
		}, nil
	case isLateJPEG(data, err):
		return jpegHeader(data)
	}
	return Header{}, err
}

// Sniffed is how much of the start of a file StartsAsImage needs.
const Sniffed = 64

// StartsAsImage reports whether data begins as the file of an image does: a
// JPEG, PNG, GIF or WebP, or one that is told apart but not decoded, such as a
// TIFF, BMP, AVIF, HEIC or JPEG XL. Kinds whose first bytes may well stand at the
// start of a text or a number (PNM, ICO, JPEG XL without boxes) are not among
// them. It needs no more than the first Sniffed bytes.
func StartsAsImage(data []byte) bool { return still.StartsAsImage(data[:min(len(data), Sniffed)]) }

func isJPEG(data []byte) bool { return bytes.HasPrefix(data, []byte{0xff, 0xd8}) }

// isLateJPEG reports whether a JPEG follows a little garbage, in data that was
// refused as nothing that is known.
func isLateJPEG(data []byte, err error) bool {
	return errors.Is(err, format.ErrWrongFormat) && format.LooksLike(data[:min(len(data), 512)]) == "" && jpeg.Start(data) > 0
}

func jpegHeader(data []byte) (Header, error) {
	h, err := jpeg.ParseHeader(data)
	if err != nil {
		return Header{}, err
	}
	if err := h.Displayable(); err != nil {
		return Header{}, err
	}
	width, height := h.Upright()
	return Header{
		Encoding: "jpeg", Width: width, Height: height, Channels: h.Count, Bits: 8,
		Orientation: max(1, int(h.Orientation)), Sampling: h.Sampling(), Progressive: h.Progressive,
	}, nil
}
