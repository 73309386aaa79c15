package still

import (
	"compress/lzw"
	"encoding/binary"
	"errors"
	"image"
	"io"

	"shardtool/format"
)

// gifFile is what a GIF says before the pixels of its first image (GIF89a, 17
// to 23):
//
//	"GIF89a" | screen: width 2, height 2, flags 1, background 1, aspect 1 | palette
//	( 0x21, label 1, blocks )*      0xF9: flags 1, delay 2, transparent index 1
//	0x2C | left 2, top 2, width 2, height 2, flags 1 | palette | code size 1 | blocks
//	blocks: ( length 1, bytes )* 0
//
// The picture is the screen, as Pillow has it: it grows to the first image
// where that is larger, and where the image does not reach it has the color
// that is transparent, or the palette's first.
type gifFile struct {
	width, height int             // of the picture
	image         image.Rectangle // of the first image
	palette       []byte          // three bytes an entry; nil if there is none
	bits          int             // of an index, as the palette has it
	transparent   int             // index; -1 if there is none
	interlaced    bool
	codeSize      int
	pixels        int // offset of the blocks with pixels
}

func (f *gifFile) header() Header {
	h := Header{Encoding: "gif", Width: f.width, Height: f.height, Channels: 3, Bits: f.bits, Interlaced: f.interlaced}
	if f.transparent >= 0 {
		h.Channels = 4
	}
	return h
}

func gifHeader(data []byte) (Header, error) {
	var f gifFile
	if err := f.read(data); err != nil {
		return Header{}, err
	}
	return f.header(), nil
}

// read reads up to the pixels of the first image.
func (f *gifFile) read(data []byte) error {
	*f = gifFile{transparent: -1}
	c := cursor{data: data, at: 6}
	screen := c.take(7)
	if screen == nil {
		return c.short()
	}
	f.width, f.height = word(screen), word(screen[2:])
	if err := f.takePalette(&c, screen[4]); err != nil {
		return err
	}
	for {
		from := c.at
		b := c.take(1)
		if b == nil {
			return c.short()
		}
		switch b[0] {
		case 0x21:
			if err := f.extension(&c); err != nil {
				return err
			}
		case 0x2c:
			return f.descriptor(&c)
		case 0x3b:
			return fault(format.ErrCorrupt, "the GIF has no image")
		case 0: // a stray end of blocks, which other decoders pass over
		default:
			return fault(format.ErrCorrupt, "byte %d of the GIF: a block that begins with %02X", from, b[0])
		}
	}
}

// extension reads one extension, of which only the transparent index counts.
func (f *gifFile) extension(c *cursor) error {
	label := c.take(1)
	if label == nil {
		return c.short()
	}
	for first := true; ; first = false {
		b, err := c.block()
		if err != nil || b == nil {
			return err
		}
		if label[0] == 0xf9 && first && len(b) >= 4 {
			f.transparent = -1
			if b[0]&1 != 0 {
				f.transparent = int(b[3])
			}
		}
	}
}

func (f *gifFile) descriptor(c *cursor) error {
	d := c.take(9)
	if d == nil {
		return c.short()
	}
	left, top := word(d), word(d[2:])
	f.image = image.Rect(left, top, left+word(d[4:]), top+word(d[6:]))
	f.width, f.height = max(f.width, f.image.Max.X), max(f.height, f.image.Max.Y)
	f.interlaced = d[8]&0x40 != 0
	if err := f.takePalette(c, d[8]); err != nil {
		return err
	}
	size := c.take(1)
	if size == nil {
		return c.short()
	}
	f.codeSize, f.pixels = int(size[0]), c.at
	switch {
	case f.width == 0 || f.height == 0:
		return fault(format.ErrCorrupt, "a GIF of %dx%d pixels", f.width, f.height)
	case f.codeSize < 2 || f.codeSize > 8:
		return fault(format.ErrCorrupt, "byte %d of the GIF: codes for %d bits", c.at-1, f.codeSize)
	case f.palette == nil:
		return fault(format.ErrCorrupt, "the GIF has no palette")
	}
	return nil
}

// takePalette reads the palette that flags announce.
func (f *gifFile) takePalette(c *cursor, flags byte) error {
	if flags&0x80 == 0 {
		return nil
	}
	f.bits = int(flags&7) + 1
	if f.palette = c.take(3 << f.bits); f.palette == nil {
		return c.short()
	}
	return nil
}

// colors fills in the color and the opacity of each index, and returns which
// indexes have one. The transparent index may be beyond the palette, as browsers
// have it: it is black.
func (f *gifFile) colors(table *[256][4]uint8) (known [256]bool) {
	*table = [256][4]uint8{}
	for i := range len(f.palette) / 3 {
		p := f.palette[3*i:]
		table[i] = [4]uint8{p[0], p[1], p[2], 255}
		known[i] = true
	}
	if f.transparent >= 0 {
		table[f.transparent][3] = 0
		known[f.transparent] = true
	}
	return known
}

func word(b []byte) int { return int(binary.LittleEndian.Uint16(b)) }

// cursor reads the parts of a GIF one after another.
type cursor struct {
	data []byte
	at   int
}

// take returns the next n bytes, or nil if there are fewer.
func (c *cursor) take(n int) []byte {
	if len(c.data)-c.at < n {
		return nil
	}
	c.at += n
	return c.data[c.at-n : c.at : c.at]
}

// block returns the next block, nil at the end of blocks.
func (c *cursor) block() ([]byte, error) {
	n := c.take(1)
	if n == nil {
		return nil, c.short()
	}
	if n[0] == 0 {
		return nil, nil
	}
	if b := c.take(int(n[0])); b != nil {
		return b, nil
	}
	return nil, c.short()
}

func (c *cursor) short() error {
	return fault(format.ErrTruncated, "the GIF ends at byte %d, in its first image", len(c.data))
}

// blocks is the bytes of consecutive blocks.
type blocks struct {
	cursor
	block []byte
	err   error // why there are no more: io.EOF or truncation
}

func (b *blocks) reset(data []byte, at int) { *b = blocks{cursor: cursor{data, at}} }

// ReadByte is what the LZW decoder calls.
func (b *blocks) ReadByte() (byte, error) {
	if len(b.block) == 0 {
		if err := b.next(); err != nil {
			return 0, err
		}
	}
	v := b.block[0]
	b.block = b.block[1:]
	return v, nil
}

func (b *blocks) next() error {
	if b.err == nil {
		b.block, b.err = b.cursor.block()
		if b.block == nil && b.err == nil {
			b.err = io.EOF
		}
	}
	return b.err
}

// Read makes blocks an io.Reader, which the LZW decoder takes.
func (b *blocks) Read(p []byte) (int, error) {
	if len(b.block) == 0 {
		if err := b.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.block)
	b.block = b.block[n:]
	return n, nil
}

// gifDecoder is what decoding GIFs needs from one to the next.
type gifDecoder struct {
	file   gifFile
	blocks blocks
	lzw    *lzw.Reader
	colors [256][4]uint8
}

// decodeGIF decodes the part r.
func (d *Decoder) decodeGIF(mem, data []byte, r image.Rectangle) (Picture, error) {
	g := &d.gif
	f := &g.file
	if err := f.read(data); err != nil {
		return Picture{}, err
	}
	defer func() { f.palette, g.blocks = nil, blocks{} }()
	// A code of 12 bits is at most 4096 pixels.
	if pixels := int64(f.image.Dx()) * int64(f.image.Dy()); pixels/4096 > int64(len(data)-f.pixels) {
		return Picture{}, fault(format.ErrTruncated, "%d bytes cannot hold the %dx%d pixels of the GIF", len(data)-f.pixels, f.image.Dx(), f.image.Dy())
	}
	known := f.colors(&g.colors)
	if d.Background != nil {
		for i := range g.colors {
			for c, v := range d.Background {
				g.colors[i][c] = blend(g.colors[i][c], g.colors[i][3], v)
			}
		}
	}
	pic := newPicture(mem, false, r)
	if !r.In(f.image) {
		d.gifRest(&pic)
	}
	g.blocks.reset(data, f.pixels)
	if g.lzw == nil {
		g.lzw = lzw.NewReader(&g.blocks, lzw.LSB, f.codeSize).(*lzw.Reader)
	} else {
		g.lzw.Reset(&g.blocks, lzw.LSB, f.codeSize)
	}
	if err := d.gifRows(&pic, &known); err != nil {
		return Picture{Mem: pic.Mem}, err
	}
	return pic, g.finish(&d.warnings)
}

// gifRest fills the part with what stands where the image does not reach.
func (d *Decoder) gifRest(pic *Picture) {
	color := d.gif.colors[max(0, d.gif.file.transparent)]
	for c := range 3 {
		plane := pic.Plane(c)
		for i := range plane {
			plane[i] = color[c]
		}
	}
}

// gifRows reads the rows of the image and puts those of the part into pic.
func (d *Decoder) gifRows(pic *Picture, known *[256]bool) error {
	f := &d.gif.file
	w, h := f.image.Dx(), f.image.Dy()
	row := d.scratch(w)
	// Columns of the image that are within the part.
	first := min(max(0, pic.Rect.Min.X-f.image.Min.X), w)
	end := max(first, min(w, pic.Rect.Max.X-f.image.Min.X))
	at := f.image.Min.X + first - pic.Rect.Min.X
	for i := range h {
		if err := d.gif.read(row); err != nil {
			return err
		}
		for _, v := range row {
			if !known[v] {
				return fault(format.ErrCorrupt, "row %d of the GIF has color %d of a palette of %d", i, v, len(f.palette)/3)
			}
		}
		y := i
		if f.interlaced {
			y = interlacedRow(i, h)
		}
		if y += f.image.Min.Y; y < pic.Rect.Min.Y || y >= pic.Rect.Max.Y || first == end {
			continue
		}
		to := pic.rows(y)
		red, green, blue := to[0][at:], to[1][at:], to[2][at:]
		for x, v := range row[first:end] {
			color := &d.gif.colors[v]
			red[x], green[x], blue[x] = color[0], color[1], color[2]
		}
	}
	return nil
}

// interlacedRow returns where the row that is stored as number i belongs: every
// eighth from 0, from 4, every fourth from 2, every second from 1 (Appendix E).
func interlacedRow(i, height int) int {
	for _, p := range [...]struct{ from, step int }{{0, 8}, {4, 8}, {2, 4}, {1, 2}} {
		n := (height - p.from + p.step - 1) / p.step
		if i < n {
			return p.from + i*p.step
		}
		i -= n
	}
	return i
}

// read fills row.
func (g *gifDecoder) read(row []byte) error {
	_, err := io.ReadFull(g.lzw, row)
	switch {
	case err == nil:
		return nil
	case g.blocks.err != nil && g.blocks.err != io.EOF:
		return g.blocks.err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fault(format.ErrCorrupt, "the GIF has too few pixels")
	}
	return fault(format.ErrCorrupt, "the pixels of the GIF: %w", err)
}

// finish reads to the end of the image's blocks. Some encoders leave out the
// code that ends the pixels, and some add a byte.
func (g *gifDecoder) finish(w *Warnings) error {
	var b [1]byte
	if n, _ := g.lzw.Read(b[:]); n > 0 {
		w.ExtraData = 1
	}
	left := len(g.blocks.block)
	for g.blocks.err == nil {
		_ = g.blocks.next()
		left += len(g.blocks.block)
	}
	if g.blocks.err != io.EOF {
		return g.blocks.err
	}
	if left > 1 {
		w.ExtraData = 1
	}
	return nil
}
