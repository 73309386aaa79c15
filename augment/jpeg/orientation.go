package jpeg

import (
	"encoding/binary"
	"image"
)

// Orientation is EXIF's: how the stored picture lies. 1 is upright, 2 to 4
// mirrored or turned by 180 degrees, 5 to 8 with rows and columns exchanged
// (EXIF 2.32, tag 0x0112). The zero value counts as 1.
type Orientation uint8

// Transposed reports whether rows and columns are exchanged. The upright
// picture is the stored one, transposed if this says so, then mirrored as
// Flips says.
func (o Orientation) Transposed() bool { return 5 <= o && o <= 8 }

// Flips reports how the stored picture, after the transposition, is mirrored
// to be upright.
func (o Orientation) Flips() (x, y bool) {
	switch o {
	case 2, 6:
		return true, false
	case 3, 7:
		return true, true
	case 4, 8:
		return false, true
	}
	return false, false
}

// Stored returns where the part r of the upright picture lies in the stored
// one, whose size is width x height.
func (o Orientation) Stored(r image.Rectangle, width, height int) image.Rectangle {
	if o.Transposed() {
		width, height = height, width
	}
	flipX, flipY := o.Flips()
	if flipX {
		r.Min.X, r.Max.X = width-r.Max.X, width-r.Min.X
	}
	if flipY {
		r.Min.Y, r.Max.Y = height-r.Max.Y, height-r.Min.Y
	}
	if o.Transposed() {
		r.Min.X, r.Min.Y, r.Max.X, r.Max.Y = r.Min.Y, r.Min.X, r.Max.Y, r.Max.X
	}
	return r
}

// exifOrientation reads the orientation of the main directory of an APP1
// segment:
//
//	"Exif\0\0" | "II*\0" or "MM\0*" | offset of the directory 4 | ... | entries 2 | ( tag 2, type 2, count 4, value 4 )*
//
// Offsets count from the byte order. Whatever is broken or not defined is
// none: an image does not fail for its EXIF.
func exifOrientation(s []byte) (Orientation, bool) {
	if len(s) < 14 {
		return 0, false
	}
	s = s[6:]
	var order binary.ByteOrder = binary.LittleEndian
	switch string(s[:4]) {
	case "II*\x00":
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return 0, false
	}
	at := uint64(order.Uint32(s[4:]))
	if at+2 > uint64(len(s)) {
		return 0, false
	}
	entries := int(order.Uint16(s[at:]))
	s = s[at+2:]
	for ; entries > 0 && len(s) >= 12; entries, s = entries-1, s[12:] {
		if order.Uint16(s) != 0x0112 {
			continue
		}
		var v uint32
		switch order.Uint16(s[2:]) {
		case 3: // short
			v = uint32(order.Uint16(s[8:]))
		case 4: // long
			v = order.Uint32(s[8:])
		}
		if v < 1 || v > 8 || order.Uint32(s[4:]) != 1 {
			return 0, false
		}
		return Orientation(v), true
	}
	return 0, false
}
