package augment

import (
	"image"
	"slices"

	"shardtool/format"
)

// raster is a picture of 8 bits, red, green and blue of each pixel in turn,
// its rows without gaps. Its memory is reused.
type raster struct {
	pix           []byte
	width, height int
}

// reset makes r a picture of that size, of any content.
func (r *raster) reset(width, height int) {
	n := 3 * width * height
	r.pix = slices.Grow(r.pix[:0], n)[:n]
	r.width, r.height = width, height
}

func (r *raster) row(y int) []byte {
	n := 3 * r.width
	return r.pix[y*n : (y+1)*n : (y+1)*n]
}

func (r *raster) mirrorX() {
	for y := range r.height {
		row := r.row(y)
		for i, j := 0, len(row)-3; i < j; i, j = i+3, j-3 {
			a, b := row[i:i+3:i+3], row[j:j+3:j+3]
			a[0], a[1], a[2], b[0], b[1], b[2] = b[0], b[1], b[2], a[0], a[1], a[2]
		}
	}
}

func (r *raster) mirrorY() {
	for y := range r.height / 2 {
		a, b := r.row(y), r.row(r.height-1-y)
		for i := range a {
			a[i], b[i] = b[i], a[i]
		}
	}
}

// canvas is where operations work: the picture as it is now, memory for the
// next one, and scratch. It is for one goroutine.
type canvas struct {
	now, next raster
	pixels    int64 // the limit of a picture's size

	taps   taps
	places []int32
	kernel []float32
	lines  []float32
	sums   []float32
}

// make gives next a size; what it holds is the operation's to write.
func (c *canvas) make(width, height int) error {
	if err := c.admit(width, height); err != nil {
		return err
	}
	c.next.reset(width, height)
	return nil
}

func (c *canvas) admit(width, height int) error {
	if c.pixels > 0 && int64(width)*int64(height) > c.pixels {
		return tooLarge(width, height, c.pixels)
	}
	return nil
}

// swap makes next the picture.
func (c *canvas) swap() { c.now, c.next = c.next, c.now }

// extended writes the part r of src, which may lie beyond its edges, to dst,
// which has r's size.
func extended(dst, src *raster, r image.Rectangle, mode PaddingMode, fill [3]uint8) {
	for y := range dst.height {
		row := dst.row(y)
		at := outside(y+r.Min.Y, src.height, mode)
		if at < 0 {
			fillRow(row, fill)
			continue
		}
		extendRow(row, src.row(at), r.Min.X, src.width, mode, fill)
	}
}

func extendRow(dst, src []byte, first, width int, mode PaddingMode, fill [3]uint8) {
	from, to := max(first, 0), min(first+len(dst)/3, width)
	if from < to {
		copy(dst[3*(from-first):], src[3*from:3*to])
	}
	for x := range len(dst) / 3 {
		if from-first <= x && x < to-first {
			continue
		}
		p := fill[:]
		if at := outside(x+first, width, mode); at >= 0 {
			p = src[3*at:]
		}
		copy(dst[3*x:3*x+3], p)
	}
}

func fillRow(row []byte, fill [3]uint8) {
	for i := 0; i+3 <= len(row); i += 3 {
		copy(row[i:i+3], fill[:])
	}
}

// outside returns which of n pixels stands at place i, or -1 for none.
func outside(i, n int, mode PaddingMode) int {
	switch {
	case 0 <= i && i < n:
		return i
	case mode == Constant:
		return -1
	case mode == Edge || n == 1:
		return min(max(i, 0), n-1)
	case mode == Reflect:
		i = floorMod(i, 2*n-2)
		return min(i, 2*n-2-i)
	default:
		i = floorMod(i, 2*n)
		return min(i, 2*n-1-i)
	}
}

func floorMod(i, n int) int { return ((i % n) + n) % n }

func tooLarge(width, height int, limit int64) error {
	return format.Errorf(format.ErrLimit, format.Nowhere, "a picture of %dx%d pixels on the way is more than %d", width, height, limit)
}
