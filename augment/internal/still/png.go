package still

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zlib"

	"shardtool/format"
)

// The color types of PNG (11.2.1 of the specification, third edition).
const (
	pngGray      = 0
	pngRGB       = 2
	pngPalette   = 3
	pngGrayAlpha = 4
	pngRGBA      = 6
)

// pngFile is what the chunks of a PNG say:
//
//	magic 8 ( length 4 | kind 4 | body | CRC of kind and body 4 )*
//	IHDR: width 4 | height 4 | depth 1 | color type 1 | compression 1 | filter 1 | interlace 1
type pngFile struct {
	width, height int
	depth, kind   byte
	interlaced    bool
	palette       []byte // three bytes an entry
	alpha         []byte // tRNS: of the palette, or the color that is transparent
}

// samples is how many values a pixel is stored as.
func (f *pngFile) samples() int {
	return [...]int{pngGray: 1, pngRGB: 3, pngPalette: 1, pngGrayAlpha: 2, pngRGBA: 4}[f.kind]
}

func (f *pngFile) header() Header {
	h := Header{Encoding: "png", Width: f.width, Height: f.height, Channels: f.samples(), Bits: int(f.depth), Interlaced: f.interlaced}
	if f.kind == pngPalette {
		h.Channels = 3
	}
	if f.alpha != nil {
		h.Channels++
	}
	return h
}

// hasAlpha reports whether any pixel may be transparent.
func (f *pngFile) hasAlpha() bool {
	return f.alpha != nil || f.kind == pngGrayAlpha || f.kind == pngRGBA
}

// chunks walks the chunks of a PNG.
type chunks struct {
	data []byte
	at   int
}

type chunk struct {
	from   int // offset of its length
	kind   string
	body   []byte
	summed []byte // what the CRC is of
	sum    uint32
}

// sound reports whether the checksum holds.
func (c *chunk) sound() bool { return crc32.ChecksumIEEE(c.summed) == c.sum }

// critical reports whether a decoder must know the chunk (5.4).
func (c *chunk) critical() bool { return c.kind[0]&0x20 == 0 }

func (c *chunks) next() (k chunk, err error) {
	rest := c.data[c.at:]
	if len(rest) < 12 {
		return k, fault(format.ErrTruncated, "the PNG ends at byte %d, before its end chunk", len(c.data))
	}
	k.from, k.kind = c.at, chunkName(rest[4:8])
	length := binary.BigEndian.Uint32(rest)
	if k.kind == "" || length > 1<<31-1 {
		return k, fault(format.ErrCorrupt, "byte %d of the PNG: a chunk named %q of %d bytes", c.at, rest[4:8], length)
	}
	if int64(length) > int64(len(rest)-12) {
		return k, fault(format.ErrTruncated, "the PNG ends at byte %d, in its chunk %s that begins at byte %d", len(c.data), k.kind, c.at)
	}
	k.summed = rest[4 : 8+length]
	k.body = k.summed[4:]
	k.sum = binary.BigEndian.Uint32(rest[8+length:])
	c.at += 12 + int(length)
	return k, nil
}

// chunkName returns the name, without allocating it where it is one of those
// that are read; "" if it is none.
func chunkName(b []byte) string {
	for _, v := range b {
		if v |= 0x20; v < 'a' || v > 'z' {
			return ""
		}
	}
	switch string(b) {
	case "IHDR":
		return "IHDR"
	case "PLTE":
		return "PLTE"
	case "tRNS":
		return "tRNS"
	case "IDAT":
		return "IDAT"
	case "IEND":
		return "IEND"
	case "iCCP":
		return "iCCP"
	case "tEXt":
		return "tEXt"
	}
	return string(b)
}

// start reads the first chunk.
func (f *pngFile) start(c *chunks) error {
	*f = pngFile{}
	c.at = len(pngMagic)
	k, err := c.next()
	switch {
	case err != nil:
		return err
	case k.kind == "CgBI":
		return fault(format.ErrUnsupported, "a PNG in the form of iOS")
	case k.kind != "IHDR" || len(k.body) != 13:
		return fault(format.ErrCorrupt, "the PNG does not begin with its header")
	case !k.sound():
		return badSum(&k)
	}
	width, height := binary.BigEndian.Uint32(k.body), binary.BigEndian.Uint32(k.body[4:])
	f.depth, f.kind = k.body[8], k.body[9]
	f.interlaced = k.body[12] == 1
	if width == 0 || height == 0 || width > 1<<31-1 || height > 1<<31-1 {
		return fault(format.ErrCorrupt, "a PNG of %dx%d pixels", width, height)
	}
	if !allowedDepth(f.kind, f.depth) {
		return fault(format.ErrCorrupt, "a PNG of color type %d with %d bits", f.kind, f.depth)
	}
	if k.body[10] != 0 || k.body[11] != 0 || k.body[12] > 1 {
		return fault(format.ErrUnsupported, "a PNG of compression method %d, filter method %d, interlace method %d", k.body[10], k.body[11], k.body[12])
	}
	f.width, f.height = int(width), int(height)
	return nil
}

func allowedDepth(kind, depth byte) bool {
	switch kind {
	case pngGray:
		return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16
	case pngPalette:
		return depth == 1 || depth == 2 || depth == 4 || depth == 8
	case pngRGB, pngGrayAlpha, pngRGBA:
		return depth == 8 || depth == 16
	}
	return false
}

// take reads a chunk that stands before the pixels. Transparency of a length
// that makes no sense is none, as for libpng.
func (f *pngFile) take(k *chunk) error {
	switch {
	case k.kind == "IHDR", k.kind == "PLTE" && f.palette != nil:
		return fault(format.ErrCorrupt, "byte %d of the PNG: a second chunk %s", k.from, k.kind)
	case k.kind == "PLTE" && f.kind == pngPalette:
		if len(k.body) == 0 || len(k.body)%3 != 0 || len(k.body) > 768 {
			return fault(format.ErrCorrupt, "byte %d of the PNG: a palette of %d bytes", k.from, len(k.body))
		}
		f.palette = k.body
	case k.kind == "tRNS":
		n := len(k.body)
		if f.kind == pngGray && n == 2 || f.kind == pngRGB && n == 6 || f.kind == pngPalette && 0 < n && n <= 256 {
			f.alpha = k.body
		}
	}
	return nil
}

func badSum(k *chunk) error {
	return fault(format.ErrCorrupt, "byte %d of the PNG: the checksum of chunk %s is wrong", k.from, k.kind)
}

// pngHeader reads the chunks before the pixels. Of those that it passes over it
// does not test the checksums.
func pngHeader(data []byte) (Header, error) {
	var f pngFile
	c := chunks{data: data}
	if err := f.start(&c); err != nil {
		return Header{}, err
	}
	for {
		k, err := c.next()
		switch {
		case k.kind == "IDAT" || k.kind == "IEND":
			return f.header(), nil
		case errors.Is(err, format.ErrTruncated) && !f.hasAlpha():
			return Header{}, err // transparency may follow
		case err != nil: // the header stands; decoding will tell what is wrong
			return f.header(), nil
		case k.kind == "PLTE" || k.kind == "tRNS" && k.sound():
			if err := f.take(&k); err != nil {
				return Header{}, err
			}
		}
	}
}

// pngDecoder is what decoding PNGs needs from one to the next.
type pngDecoder struct {
	file   pngFile
	joined []byte // the pixel stream of chunks that are many
	in     bytes.Reader
	inflow io.ReadCloser
	rows   [2][]byte // this row and the one above, with their filter bytes
	probe  [1]byte
}

// decodePNG decodes the part r.
func (d *Decoder) decodePNG(mem, data []byte, r image.Rectangle) (Picture, error) {
	p := &d.png
	f := &p.file
	stream, err := d.readPNG(data)
	if err != nil {
		return Picture{}, err
	}
	// Deflate expands by at most 1032, and a pixel has at least one bit.
	if pixels := int64(f.width) * int64(f.height); pixels/(8*1032) > int64(len(stream)) || f.rawBytes()/1032 > int64(len(stream)) {
		return Picture{}, fault(format.ErrTruncated, "%d bytes cannot hold the %dx%d pixels of the PNG", len(stream), f.width, f.height)
	}
	p.in.Reset(stream)
	defer p.forget()
	if err := p.inflate(); err != nil {
		return Picture{}, pngError(err)
	}
	gray := f.kind == pngGray || f.kind == pngGrayAlpha
	pic := newPicture(mem, gray && (d.Background == nil || !f.hasAlpha()), r)
	if err := d.pngPasses(&pic); err != nil {
		return Picture{Mem: pic.Mem}, err
	}
	more, err := p.surplus()
	if err != nil {
		return Picture{Mem: pic.Mem}, pngError(err)
	}
	if more {
		d.warnings.ExtraData = 1
	}
	return pic, nil
}

// forget lets go of the image's bytes.
func (p *pngDecoder) forget() {
	p.in.Reset(nil)
	p.file.palette, p.file.alpha = nil, nil
}

// readPNG reads all chunks into d.png.file and returns the compressed pixels.
// It is a part of data where they are one chunk.
func (d *Decoder) readPNG(data []byte) (stream []byte, err error) {
	f := &d.png.file
	c := chunks{data: data}
	if err := f.start(&c); err != nil {
		return nil, err
	}
	pieces, last := 0, ""
	for {
		k, err := c.next()
		switch {
		case err != nil:
			return nil, err
		case !k.sound() && k.critical():
			return nil, badSum(&k)
		case !k.sound():
			d.warnings.AncillaryCRC++
		case k.kind == "IEND":
			if pieces == 0 {
				return nil, fault(format.ErrCorrupt, "the PNG has no pixels")
			}
			return stream, nil
		case k.kind != "IDAT" && k.critical() && k.kind != "IHDR" && k.kind != "PLTE":
			return nil, fault(format.ErrUnsupported, "byte %d of the PNG: the chunk %s is critical and not known", k.from, k.kind)
		case k.kind != "IDAT":
			if pieces > 0 && k.critical() {
				return nil, fault(format.ErrCorrupt, "byte %d of the PNG: the chunk %s follows pixels", k.from, k.kind)
			}
			if pieces == 0 {
				if err := f.take(&k); err != nil {
					return nil, err
				}
			}
		case pieces == 0:
			if f.kind == pngPalette && f.palette == nil {
				return nil, fault(format.ErrCorrupt, "the PNG has no palette before its pixels")
			}
			stream, pieces = k.body, 1
		case last != "IDAT": // pixels are consecutive chunks
			d.warnings.ExtraData = 1
		case pieces == 1:
			d.png.joined = append(append(d.png.joined[:0], stream...), k.body...)
			stream, pieces = d.png.joined, 2
		default:
			d.png.joined = append(d.png.joined, k.body...)
			stream = d.png.joined
		}
		last = k.kind
	}
}

// inflate begins to inflate p.in.
func (p *pngDecoder) inflate() error {
	if p.inflow != nil {
		return p.inflow.(zlib.Resetter).Reset(&p.in, nil)
	}
	z, err := zlib.NewReader(&p.in)
	if err == nil {
		p.inflow = z
	}
	return err
}

// surplus reports whether there is more in the stream than its pixels. If there
// is not, the stream's checksum holds.
func (p *pngDecoder) surplus() (bool, error) {
	switch n, err := io.ReadFull(p.inflow, p.probe[:]); {
	case n > 0:
		return true, nil
	case err == io.EOF:
		return p.in.Len() > 0, nil
	default:
		return false, err
	}
}

// read fills row.
func (p *pngDecoder) read(row []byte) error {
	_, err := io.ReadFull(p.inflow, row)
	if err == io.ErrUnexpectedEOF {
		_, err = p.inflow.Read(row[:1]) // io.EOF if the stream has ended as it should
	}
	if err != nil {
		return pngError(err)
	}
	return nil
}

// pngError classifies an error of inflating.
func pngError(err error) error {
	var bad flate.CorruptInputError
	switch {
	case errors.Is(err, io.EOF): // the stream is sound, and short
		return fault(format.ErrCorrupt, "the PNG has too few pixels")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fault(format.ErrTruncated, "the compressed pixels of the PNG end early")
	case errors.As(err, &bad), errors.Is(err, zlib.ErrHeader), errors.Is(err, zlib.ErrChecksum), errors.Is(err, zlib.ErrDictionary):
		return fault(format.ErrCorrupt, "the compressed pixels of the PNG: %w", err)
	}
	return fault(format.ErrCorrupt, "the PNG: %w", err)
}
