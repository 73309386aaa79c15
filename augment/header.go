package augment

import (
	"bytes"
	"encoding/binary"

	"shardtool/format"
)

// Header is what is known of an encoded image without decoding it.
type Header struct {
	Encoding      string // "jpeg" or "png"
	Width, Height int    // in pixels, as the picture will be decoded
	Channels      int    // as stored, after a palette: 1 gray, 2 gray and alpha, 3 color, 4 color and alpha, or CMYK
}

// ParseHeader reads the header of a JPEG or a PNG. It allocates nothing, and
// bounds nothing: Decode does. Other encodings are ErrUnsupported, what is no
// image is ErrWrongFormat.
func ParseHeader(data []byte) (Header, error) {
	switch {
	case bytes.HasPrefix(data, soi):
		return jpegHeader(data)
	case bytes.HasPrefix(data, pngMagic):
		return pngHeader(data)
	case len(data) < len(pngMagic) && (bytes.HasPrefix(soi, data) || bytes.HasPrefix(pngMagic, data)):
		return Header{}, fault(format.ErrTruncated, "the image has %d bytes", len(data))
	case bytes.HasPrefix(data, []byte("GIF8")), bytes.HasPrefix(data, []byte("BM")),
		bytes.HasPrefix(data, []byte("II*\x00")), bytes.HasPrefix(data, []byte("MM\x00*")),
		len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return Header{}, fault(format.ErrUnsupported, "only JPEG and PNG images are decoded for now")
	}
	if looks := format.LooksLike(data[:min(len(data), 512)]); looks != "" {
		return Header{}, fault(format.ErrWrongFormat, "no image: it looks like %s", looks)
	}
	return Header{}, fault(format.ErrWrongFormat, "no image")
}

var (
	soi      = []byte{0xff, 0xd8}
	pngMagic = []byte("\x89PNG\r\n\x1a\n")
)

// jpegHeader walks the markers up to the frame header (ITU-T T.81, B.2):
//
//	FFD8 ( FF marker, length of 2 bytes which counts itself, content )*
//	frame: FF C0..CF, length, precision 1, height 2, width 2, components 1, ...
func jpegHeader(data []byte) (Header, error) {
	for at := len(soi); ; {
		// Bytes between segments are passed over, as other decoders do.
		skip := bytes.IndexByte(data[at:], 0xff)
		if skip < 0 || at+skip+4 > len(data) {
			return Header{}, fault(format.ErrTruncated, "the JPEG ends before its frame header")
		}
		at += skip
		marker := data[at+1]
		switch {
		case marker == 0xff: // a fill byte
			at++
			continue
		case marker == 0, marker == 0x01, 0xd0 <= marker && marker <= 0xd7, marker == 0xd8: // no content follows
			at += 2
			continue
		case marker == 0xd9, marker == 0xda:
			return Header{}, fault(format.ErrCorrupt, "byte %d of the JPEG: there is no frame header before marker FF%02X", at, marker)
		}
		length := int(binary.BigEndian.Uint16(data[at+2:]))
		if length < 2 {
			return Header{}, fault(format.ErrCorrupt, "byte %d of the JPEG: a segment of length %d", at, length)
		}
		content := data[at+4 : min(len(data), at+2+length)]
		if 0xc0 <= marker && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc {
			return jpegFrame(marker, content)
		}
		at += 2 + length
		if at > len(data) {
			return Header{}, fault(format.ErrTruncated, "the JPEG ends before its frame header")
		}
	}
}

func jpegFrame(marker byte, content []byte) (Header, error) {
	if len(content) < 6 {
		return Header{}, fault(format.ErrTruncated, "the JPEG ends in its frame header")
	}
	h := Header{
		Encoding: "jpeg",
		Height:   int(binary.BigEndian.Uint16(content[1:])),
		Width:    int(binary.BigEndian.Uint16(content[3:])),
		Channels: int(content[5]),
	}
	switch {
	case marker > 0xc2:
		return h, fault(format.ErrUnsupported, "a JPEG with marker FF%02X: lossless, hierarchical or arithmetic coding", marker)
	case content[0] != 8:
		return h, fault(format.ErrUnsupported, "a JPEG of %d bits", content[0])
	case h.Width == 0:
		return h, fault(format.ErrCorrupt, "a JPEG of width 0")
	case h.Height == 0:
		return h, fault(format.ErrUnsupported, "a JPEG whose height follows its first scan")
	}
	return h, nil
}

// pngHeader reads the first chunk (PNG specification, 11.2.1), of 13 bytes:
//
//	magic 8 | length 4 "IHDR" | width 4 | height 4 | depth 1 | color type 1 | ... | CRC 4
func pngHeader(data []byte) (Header, error) {
	if len(data) < 33 {
		return Header{}, fault(format.ErrTruncated, "the PNG ends in its header")
	}
	if string(data[12:16]) != "IHDR" {
		return Header{}, fault(format.ErrCorrupt, "the PNG does not begin with its header")
	}
	width, height := binary.BigEndian.Uint32(data[16:]), binary.BigEndian.Uint32(data[20:])
	channels, ok := map[byte]int{0: 1, 2: 3, 3: 3, 4: 2, 6: 4}[data[25]]
	if width == 0 || height == 0 || width > 1<<31-1 || height > 1<<31-1 || !ok {
		return Header{}, fault(format.ErrCorrupt, "a PNG of %dx%d pixels and color type %d", width, height, data[25])
	}
	return Header{Encoding: "png", Width: int(width), Height: int(height), Channels: channels}, nil
}

func fault(sentinel error, msg string, args ...any) error {
	return format.Errorf(sentinel, format.Nowhere, msg, args...)
}
