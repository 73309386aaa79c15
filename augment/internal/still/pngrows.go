package still

import (
	"encoding/binary"

	"shardtool/format"
)

// pass is a part of the pixels that is stored as a picture of its own: those at
// x, y and every dx, dy from there.
type pass struct{ x, y, dx, dy int }

var (
	onePass = []pass{{0, 0, 1, 1}}
	adam7   = []pass{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}
)

func (f *pngFile) passes() []pass {
	if f.interlaced {
		return adam7
	}
	return onePass
}

// size returns the size of a pass, which may be empty.
func (p *pass) size(width, height int) (w, h int) {
	return (width - p.x + p.dx - 1) / p.dx, (height - p.y + p.dy - 1) / p.dy
}

// rowBytes is the length of a row of w pixels, without its filter byte.
func (f *pngFile) rowBytes(w int) int64 {
	return (int64(w)*int64(f.samples())*int64(f.depth) + 7) / 8
}

// rawBytes is the length of all rows with their filter bytes.
func (f *pngFile) rawBytes() (n int64) {
	for _, p := range f.passes() {
		if w, h := p.size(f.width, f.height); w > 0 && h > 0 {
			n += int64(h) * (1 + f.rowBytes(w))
		}
	}
	return n
}

// pngPasses reads all rows and puts those of the part into pic.
func (d *Decoder) pngPasses(pic *Picture) error {
	p, f := &d.png, &d.png.file
	most := int(f.rowBytes(f.width)) + 1
	for i := range p.rows {
		if cap(p.rows[i]) < most {
			p.rows[i] = make([]byte, most)
		}
	}
	distance := max(1, f.samples()*int(f.depth)/8)
	for _, pass := range f.passes() {
		w, h := pass.size(f.width, f.height)
		if w <= 0 || h <= 0 {
			continue
		}
		n := int(f.rowBytes(w)) + 1
		row, above := p.rows[0][:n], p.rows[1][:n]
		clear(above)
		for i := range h {
			if err := p.read(row); err != nil {
				return err
			}
			if row[0] > 4 {
				return fault(format.ErrCorrupt, "row %d of the PNG has the filter %d", i, row[0])
			}
			unfilter(row[0], row[1:], above[1:], distance)
			samples, err := d.expand(row[1:], w)
			if err != nil {
				return err
			}
			if y := pass.y + i*pass.dy; pic.Rect.Min.Y <= y && y < pic.Rect.Max.Y {
				d.putRow(pic, y, &pass, w, row[1:], samples)
			}
			row, above = above, row
		}
	}
	return nil
}

// unfilter undoes a row's filter (9.2). distance is from a byte to the one of
// the pixel before.
func unfilter(filter byte, row, above []byte, distance int) {
	above = above[:len(row)]
	switch filter {
	case 1:
		for i := distance; i < len(row); i++ {
			row[i] += row[i-distance]
		}
	case 2:
		for i, v := range above {
			row[i] += v
		}
	case 3:
		for i := range min(distance, len(row)) {
			row[i] += above[i] / 2
		}
		for i := distance; i < len(row); i++ {
			row[i] += uint8((uint(row[i-distance]) + uint(above[i])) / 2)
		}
	case 4:
		for i := range min(distance, len(row)) {
			row[i] += above[i]
		}
		for i := distance; i < len(row); i++ {
			row[i] += paeth(int(row[i-distance]), int(above[i]), int(above[i-distance]))
		}
	}
}

// paeth returns whichever of the bytes at the left, above, and above at the
// left is nearest to left + above - corner.
func paeth(left, above, corner int) uint8 {
	toLeft, toAbove := above-corner, left-corner // distances of the estimate
	toCorner := toLeft + toAbove
	toLeft, toAbove, toCorner = max(toLeft, -toLeft), max(toAbove, -toAbove), max(toCorner, -toCorner)
	switch {
	case toLeft <= toAbove && toLeft <= toCorner:
		return uint8(left)
	case toAbove <= toCorner:
		return uint8(above)
	default:
		return uint8(corner)
	}
}

// expand makes a row of w pixels bytes: one a sample, indexes as they are. It
// refuses indexes beyond the palette.
func (d *Decoder) expand(row []byte, w int) ([]byte, error) {
	f := &d.png.file
	n := w * f.samples()
	out := row
	switch {
	case f.depth == 16:
		out = d.scratch(n)
		for i := range out {
			out[i] = row[2*i]
		}
	case f.depth < 8:
		out = d.scratch(n)
		scale := byte(1)
		if f.kind == pngGray {
			scale = f.stretch()
		}
		perByte, mask := 8/int(f.depth), byte(1)<<f.depth-1
		for i := range out {
			shift := 8 - int(f.depth)*(1+i%perByte)
			out[i] = row[i/perByte] >> shift & mask * scale
		}
	}
	if f.kind == pngPalette {
		entries := len(f.palette) / 3
		for i, v := range out {
			if int(v) >= entries {
				return nil, fault(format.ErrCorrupt, "pixel %d of a row of the PNG is color %d of a palette of %d", i, v, entries)
			}
		}
	}
	return out, nil
}

// stretch is what a gray value is multiplied by.
func (f *pngFile) stretch() byte {
	return [...]byte{1: 0xff, 2: 0x55, 4: 0x11, 8: 1, 16: 1}[f.depth]
}

func (d *Decoder) scratch(n int) []byte {
	if cap(d.line) < n {
		d.line = make([]byte, n)
	}
	return d.line[:n]
}

// putRow puts the w pixels of one row of a pass where they belong.
func (d *Decoder) putRow(pic *Picture, y int, p *pass, w int, raw, samples []byte) {
	f := &d.png.file
	// Of the pixels i at p.x + i*p.dx, those from first on to before end are
	// within the part.
	first := max(0, (pic.Rect.Min.X-p.x+p.dx-1)/p.dx)
	end := min(w, (pic.Rect.Max.X-p.x+p.dx-1)/p.dx)
	if first >= end {
		return
	}
	to := pic.rows(y)
	at := p.x + first*p.dx - pic.Rect.Min.X
	n := f.samples()
	switch {
	case d.Background != nil && f.hasAlpha():
		for i := first; i < end; i++ {
			v, a := f.color(raw, samples, i)
			for c := range to {
				to[c][at] = blend(v[c], a, d.Background[c])
			}
			at += p.dx
		}
	case f.kind == pngPalette:
		for _, v := range samples[first:end] {
			color := f.palette[3*int(v):][:3]
			to[0][at], to[1][at], to[2][at] = color[0], color[1], color[2]
			at += p.dx
		}
	case pic.Gray && n == 1 && p.dx == 1:
		copy(to[0][at:], samples[first:end])
	case pic.Gray:
		for i := first; i < end; i++ {
			to[0][at] = samples[i*n]
			at += p.dx
		}
	default:
		red, green, blue := to[0], to[1], to[2]
		for i := first * n; i < end*n; i += n {
			v := samples[i:][:3]
			red[at], green[at], blue[at] = v[0], v[1], v[2]
			at += p.dx
		}
	}
}

// color returns the color and the opacity of pixel i of a row.
func (f *pngFile) color(raw, samples []byte, i int) (v [3]uint8, a uint8) {
	a = 255
	switch s := samples[i*f.samples():]; f.kind {
	case pngPalette:
		copy(v[:], f.palette[3*int(s[0]):])
		if int(s[0]) < len(f.alpha) {
			a = f.alpha[s[0]]
		}
	case pngGray, pngGrayAlpha:
		v = [3]uint8{s[0], s[0], s[0]}
		if f.kind == pngGrayAlpha {
			a = s[1]
		}
	default:
		copy(v[:], s[:3])
		if f.kind == pngRGBA {
			a = s[3]
		}
	}
	if (f.kind == pngGray || f.kind == pngRGB) && f.isKey(raw, samples, i) {
		a = 0
	}
	return v, a
}

// isKey reports whether all samples of pixel i are those of the color that is
// transparent, compared in full depth.
func (f *pngFile) isKey(raw, samples []byte, i int) bool {
	n := f.samples()
	for c := range n {
		key := binary.BigEndian.Uint16(f.alpha[2*c:])
		at := i*n + c
		if f.depth == 16 {
			if binary.BigEndian.Uint16(raw[2*at:]) != key {
				return false
			}
		} else if byte(key)&(1<<f.depth-1)*f.stretch() != samples[at] {
			return false
		}
	}
	return true
}
