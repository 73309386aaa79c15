package jpeg

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"shardtool/format"
)

// ColorSpace is what the components of a JPEG mean.
type ColorSpace uint8

const (
	Gray  ColorSpace = iota // one component
	YCbCr                   // full range, ITU-R BT.601, as JFIF has it
	RGB
	CMYK // stored inverted, as Adobe does: 255 is no ink
	YCCK // CMYK whose first three components are YCbCr of the inverted inks
)

// String returns the usual name.
func (c ColorSpace) String() string { return [...]string{"Gray", "YCbCr", "RGB", "CMYK", "YCCK"}[c] }

// Component is one component of a JPEG's frame.
type Component struct {
	ID   byte
	H, V int // sampling factors, 1 to 4: samples of this component in an MCU, in units of 8
	tq   byte
}

// Header is what a JPEG says before its pixels.
type Header struct {
	Width, Height   int // in pixels, as stored: before Orientation
	Components      [4]Component
	Count           int // of components: 1, 3 or 4
	Color           ColorSpace
	Orientation     Orientation
	Adobe           bool // whether there is an Adobe marker, which says that inks are stored inverted
	Progressive     bool
	RestartInterval int // MCUs between restart markers; 0: none
}

// Upright returns the size of the picture after its orientation was applied.
func (h *Header) Upright() (width, height int) {
	if h.Orientation.Transposed() {
		return h.Height, h.Width
	}
	return h.Width, h.Height
}

// Sampling returns the subsampling of chroma in the usual notation, such as
// "4:2:0", or the factors of the components, such as "2x2,1x1,1x2", where that
// has no word for it. It is "" for gray.
func (h *Header) Sampling() string {
	c := &h.Components
	if h.Count == 1 {
		return ""
	}
	usual := c[1].H == 1 && c[1].V == 1 && c[2].H == 1 && c[2].V == 1 && (h.Count == 3 || c[3].H == c[0].H && c[3].V == c[0].V)
	if usual {
		switch [2]int{c[0].H, c[0].V} {
		case [2]int{1, 1}:
			return "4:4:4"
		case [2]int{2, 1}:
			return "4:2:2"
		case [2]int{2, 2}:
			return "4:2:0"
		case [2]int{1, 2}:
			return "4:4:0"
		case [2]int{4, 1}:
			return "4:1:1"
		case [2]int{4, 2}:
			return "4:1:0"
		}
	}
	var s []byte
	for i := range h.Count {
		if i > 0 {
			s = append(s, ',')
		}
		s = strconv.AppendInt(s, int64(c[i].H), 10)
		s = append(s, 'x')
		s = strconv.AppendInt(s, int64(c[i].V), 10)
	}
	return string(s)
}

// Markers (ITU-T T.81, table B.1).
const (
	mTEM   = 0x01
	mSOF0  = 0xc0 // baseline
	mSOF1  = 0xc1 // extended sequential
	mSOF2  = 0xc2 // progressive
	mDHT   = 0xc4
	mJPG   = 0xc8
	mDAC   = 0xcc
	mSOF15 = 0xcf
	mRST0  = 0xd0
	mRST7  = 0xd7
	mSOI   = 0xd8
	mEOI   = 0xd9
	mSOS   = 0xda
	mDQT   = 0xdb
	mDNL   = 0xdc
	mDRI   = 0xdd
	mAPP0  = 0xe0
	mAPP1  = 0xe1
	mAPP14 = 0xee
	mSOF55 = 0xf7 // JPEG-LS (T.87)
)

// most garbage before SOI that is passed over.
const mostBefore = 4096

// Start returns where the first SOI marker that another marker follows stands
// in data, or -1 if it is not among the first 4096 bytes.
func Start(data []byte) int {
	return bytes.Index(data[:min(len(data), mostBefore+3)], []byte{0xff, mSOI, 0xff})
}

// walker goes from marker to marker:
//
//	FFD8 ( FF marker, length of 2 bytes which counts itself, content )*
type walker struct {
	data []byte
	at   int // of the next byte
	from int // of the marker returned last
}

// start begins after SOI.
func (w *walker) start(data []byte) error {
	*w = walker{data: data}
	at := 0
	if !bytes.HasPrefix(data, []byte{0xff, mSOI}) {
		if at = Start(data); at < 0 {
			if len(data) < 2 {
				return truncated(len(data), "it ends in its first marker")
			}
			return fault(format.ErrWrongFormat, "no JPEG: it does not begin with FFD8")
		}
	}
	w.at = at + 2
	return nil
}

// next returns the next marker and what its segment holds. Bytes between
// segments are passed over, as other decoders do. Markers without content
// other than SOI and EOI are, too.
func (w *walker) next() (marker byte, content []byte, err error) {
	for {
		skip := bytes.IndexByte(w.data[w.at:], 0xff)
		if skip < 0 || w.at+skip+2 > len(w.data) {
			return 0, nil, w.end()
		}
		w.at += skip
		w.from = w.at
		marker = w.data[w.at+1]
		switch {
		case marker == 0xff: // a fill byte
			w.at++
			continue
		case marker == 0, marker == mTEM, mRST0 <= marker && marker <= mSOI:
			w.at += 2
			continue
		case marker == mEOI:
			w.at += 2
			return marker, nil, nil
		}
		if w.at+4 > len(w.data) {
			return 0, nil, w.end()
		}
		length := int(binary.BigEndian.Uint16(w.data[w.at+2:]))
		if length < 2 {
			return 0, nil, corrupt(w.from, "a segment of length %d", length)
		}
		if w.at+2+length > len(w.data) {
			w.at = len(w.data)
			return marker, nil, truncated(len(w.data), "it ends in the segment FF%02X that begins at byte %d", marker, w.from)
		}
		content = w.data[w.at+4 : w.at+2+length]
		w.at += 2 + length
		return marker, content, nil
	}
}

func (w *walker) end() error {
	w.at = len(w.data)
	return truncated(len(w.data), "it ends before its end marker")
}

// fields reads what the segments before the frame say, one at a time.
type fields struct {
	h          Header
	jfif       bool
	adobe      int // its transform; -1 if there is none
	orientated bool
}

func (f *fields) reset() { *f = fields{adobe: -1}; f.h.Orientation = 1 }

// app takes an application segment.
func (f *fields) app(marker byte, content []byte) {
	switch {
	case marker == mAPP0 && bytes.HasPrefix(content, []byte("JFIF\x00")):
		f.jfif = true
	case marker == mAPP1 && !f.orientated && bytes.HasPrefix(content, []byte("Exif\x00")):
		if o, ok := exifOrientation(content); ok {
			f.h.Orientation = o
		}
		f.orientated = true
	case marker == mAPP14 && len(content) >= 12 && bytes.HasPrefix(content, []byte("Adobe")):
		f.adobe, f.h.Adobe = int(content[11]), true
	}
}

// frame takes a frame header:
//
//	precision 1 | height 2 | width 2 | components 1 | ( id 1, H and V 4+4 bits, quantisation table 1 )*
func (f *fields) frame(marker byte, s []byte, at int) error {
	if len(s) < 6 {
		return corrupt(at, "the frame header has %d bytes", len(s))
	}
	h := &f.h
	h.Height = int(binary.BigEndian.Uint16(s[1:]))
	h.Width = int(binary.BigEndian.Uint16(s[3:]))
	h.Count = int(s[5])
	h.Progressive = marker == mSOF2
	switch {
	case marker > mSOF2:
		return unsupported(at, "%s (marker FF%02X)", codings[marker-mSOF0], marker)
	case s[0] != 8:
		return unsupported(at, "a JPEG of %d bits", s[0])
	case h.Width == 0:
		return corrupt(at, "a JPEG of width 0")
	case h.Count != 1 && h.Count != 3 && h.Count != 4:
		return unsupported(at, "a JPEG of %d components", h.Count)
	case len(s) != 6+3*h.Count:
		return corrupt(at, "the frame header of %d components has %d bytes", h.Count, len(s))
	}
	for i := range h.Count {
		c := Component{ID: s[6+3*i], H: int(s[7+3*i] >> 4), V: int(s[7+3*i] & 15), tq: s[8+3*i]}
		if c.H < 1 || c.H > 4 || c.V < 1 || c.V > 4 || c.tq > 3 {
			return corrupt(at, "component %d has sampling factors %dx%d and quantisation table %d", i, c.H, c.V, c.tq)
		}
		for j := range i {
			if h.Components[j].ID == c.ID {
				return corrupt(at, "two components have the number %d", c.ID)
			}
		}
		h.Components[i] = c
	}
	if h.Count == 1 { // the only component's factors have no effect
		h.Components[0].H, h.Components[0].V = 1, 1
	}
	return nil
}

var codings = [16]string{
	3: "lossless coding", 5: "hierarchical coding", 6: "hierarchical coding", 7: "hierarchical lossless coding",
	9: "arithmetic coding", 10: "progressive arithmetic coding", 11: "lossless arithmetic coding",
	13: "hierarchical arithmetic coding", 14: "hierarchical arithmetic coding", 15: "hierarchical arithmetic coding",
}

// colorSpace decides as libjpeg does (jdapimin.c, default_decompress_parms).
func (f *fields) colorSpace() ColorSpace {
	c := &f.h.Components
	switch f.h.Count {
	case 1:
		return Gray
	case 4:
		if f.adobe == 2 {
			return YCCK
		}
		return CMYK
	}
	switch {
	case f.jfif:
		return YCbCr
	case f.adobe >= 0:
		if f.adobe == 0 {
			return RGB
		}
		return YCbCr
	case c[0].ID == 'R' && c[1].ID == 'G' && c[2].ID == 'B':
		return RGB
	}
	return YCbCr
}

func isFrame(marker byte) bool {
	return mSOF0 <= marker && marker <= mSOF15 && marker != mDHT && marker != mJPG && marker != mDAC
}

// ParseHeader reads what stands before the pixels. It allocates nothing. A
// JPEG whose height follows its first scan (DNL) is searched for it.
func ParseHeader(data []byte) (Header, error) {
	var w walker
	var f fields
	if err := w.start(data); err != nil {
		return Header{}, err
	}
	f.reset()
	framed := false
	for {
		marker, s, err := w.next()
		if err != nil {
			return Header{}, err
		}
		switch {
		case marker == mEOI || marker == mSOS && !framed:
			return Header{}, corrupt(w.from, "there is no frame header before marker FF%02X", marker)
		case marker == mSOF55:
			return Header{}, unsupported(w.from, "JPEG-LS (marker FFF7)")
		case isFrame(marker):
			if framed {
				return Header{}, corrupt(w.from, "a second frame header")
			}
			framed = true
			if err := f.frame(marker, s, w.from); err != nil {
				return f.h, err
			}
		case marker == mDRI && len(s) == 2:
			f.h.RestartInterval = int(binary.BigEndian.Uint16(s))
		case marker == mSOS:
			f.h.Color = f.colorSpace()
			if f.h.Height == 0 {
				f.h.Height, err = findHeight(data, w.at)
			}
			return f.h, err
		default:
			f.app(marker, s)
		}
	}
}

// findHeight searches for the DNL segment that ends the first scan, whose
// entropy-coded data begins at from (T.81, B.2.5).
func findHeight(data []byte, from int) (int, error) {
	at := scanEnd(data, from)
	if at+2 > len(data) || data[at+1] == mDNL && at+6 > len(data) {
		return 0, truncated(len(data), "it gives no height, and ends in its first scan")
	}
	if data[at+1] != mDNL || binary.BigEndian.Uint16(data[at+2:]) != 4 {
		return 0, corrupt(at, "the height is 0 in the frame header and no DNL marker follows the first scan")
	}
	height := int(binary.BigEndian.Uint16(data[at+4:]))
	if height == 0 {
		return 0, corrupt(at, "a JPEG of height 0")
	}
	return height, nil
}

// scanEnd returns where the first marker other than RST stands from at on, or
// the end of data.
func scanEnd(data []byte, at int) int {
	for {
		skip := bytes.IndexByte(data[at:], 0xff)
		if skip < 0 || at+skip+1 >= len(data) {
			return len(data)
		}
		at += skip
		switch m := data[at+1]; {
		case m == 0xff:
			at++
		case m == 0, mRST0 <= m && m <= mRST7:
			at += 2
		default:
			return at
		}
	}
}

func fault(sentinel error, msg string, args ...any) error {
	return format.Errorf(sentinel, format.Nowhere, msg, args...)
}

func corrupt(at int, msg string, args ...any) error {
	return fault(format.ErrCorrupt, "byte "+strconv.Itoa(at)+" of the JPEG: "+msg, args...)
}

func unsupported(at int, msg string, args ...any) error {
	return fault(format.ErrUnsupported, "byte "+strconv.Itoa(at)+" of the JPEG: "+msg, args...)
}

func truncated(at int, msg string, args ...any) error {
	return fault(format.ErrTruncated, "byte "+strconv.Itoa(at)+" of the JPEG: "+msg, args...)
}
