package still

import (
	"bytes"
	"encoding/binary"

	"shardtool/format"
)

const pngMagic = "\x89PNG\r\n\x1a\n"

// kindOf returns "png", "gif", "webp" or "".
func kindOf(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte(pngMagic)):
		return "png"
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "gif"
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "webp"
	}
	return ""
}

// begun are the beginnings of what is decoded, JPEG among them, for data that
// ends within one.
var begun = []string{pngMagic, "GIF87a", "GIF89a", "RIFF", "\xff\xd8\xff"}

// others are the kinds of image that are told apart from what is no image: by
// beginnings too long to stand elsewhere by chance.
var others = []struct{ magic, name string }{
	{"II*\x00", "a TIFF"},
	{"MM\x00*", "a TIFF"},
	{"II+\x00", "a BigTIFF"},
	{"MM\x00+", "a BigTIFF"},
	{"\x00\x00\x00\x0cJXL \r\n\x87\n", "a JPEG XL"},
	{"\x00\x00\x00\x0cjP  \r\n\x87\n", "a JPEG 2000"},
	{"\xff\x4f\xff\x51", "a JPEG 2000"},
	{"II\xbc\x01", "a JPEG XR"},
	{"\xff\xd8\xff\xf7", "a JPEG-LS"},
	{"8BPS\x00", "a Photoshop file"},
	{"qoif", "a QOI"},
	{"\x76\x2f\x31\x01", "an OpenEXR"},
	{"#?RADIANCE", "a Radiance HDR"},
	{"DDS \x7c", "a DDS"},
}

// perhaps are those whose beginnings may also be a number's, or a text's.
var perhaps = []struct{ magic, name string }{
	{"\xff\x0a", "a JPEG XL"},
	{"\x00\x00\x01\x00", "an ICO"},
}

// StartsAsImage reports whether data begins as a JPEG does, or one of those that
// are decoded here, or of others.
func StartsAsImage(data []byte) bool {
	return bytes.HasPrefix(data, []byte("\xff\xd8\xff")) || kindOf(data) != "" || other(data) != ""
}

// other names one of the others, or returns "".
func other(data []byte) string {
	for _, o := range others {
		if bytes.HasPrefix(data, []byte(o.magic)) {
			return o.name
		}
	}
	// BM is also how a text may begin: the next words are sizes and zeros.
	if len(data) >= 18 && string(data[:2]) == "BM" && binary.LittleEndian.Uint32(data[6:]) == 0 && data[15] == 0 && data[17] == 0 {
		return "a BMP"
	}
	return boxed(data)
}

// refuse returns the error for data that is none of the three.
func refuse(data []byte) error {
	for _, magic := range begun {
		if len(data) < len(magic) && magic[:len(data)] == string(data) {
			return fault(format.ErrTruncated, "the image has %d bytes", len(data))
		}
	}
	if len(data) < 12 && bytes.HasPrefix(data, []byte("RIFF")) {
		return fault(format.ErrTruncated, "the image has %d bytes", len(data))
	}
	name := other(data)
	for _, o := range perhaps {
		if bytes.HasPrefix(data, []byte(o.magic)) {
			name = o.name
		}
	}
	if len(data) >= 3 && data[0] == 'P' && '1' <= data[1] && data[1] <= '7' && (data[2] == '\n' || data[2] == ' ' || data[2] == '\r') {
		name = "a PNM"
	}
	if name != "" {
		return fault(format.ErrUnsupported, "%s: images that are decoded are JPEG, PNG, GIF and WebP", name)
	}
	if looks := format.LooksLike(data[:min(len(data), 512)]); looks != "" {
		return fault(format.ErrWrongFormat, "no image: it looks like %s", looks)
	}
	return fault(format.ErrWrongFormat, "no image")
}

// boxed names an image in the ISO base media format (ISO/IEC 14496-12, 4.3) by
// its brands: the major one, then the compatible ones.
//
//	size 4 | "ftyp" | major brand 4 | version 4 | brands of 4 ...
func boxed(data []byte) string {
	if len(data) < 12 || string(data[4:8]) != "ftyp" {
		return ""
	}
	brands := data[8:min(len(data), max(12, int(binary.BigEndian.Uint32(data)&0xffff)), 512)]
	for ; len(brands) >= 4; brands = brands[4:] {
		switch string(brands[:4]) {
		case "avif", "avis":
			return "an AVIF"
		case "heic", "heix", "heim", "heis", "hevc", "hevx":
			return "a HEIC"
		}
	}
	if brand := string(data[8:12]); brand == "mif1" || brand == "msf1" {
		return "a HEIF"
	}
	return ""
}
