package augment

import (
	"fmt"
	"image"
)

// Compact is decoded pixels in memory of the caller's: what Pixels hold of their
// Rect, in the sampling of the picture, without scratch. A picture of 4:2:0 takes
// half of what it takes as RGB.
//
//	mem   ┌ plane 0 ─────────────┬ plane 1 ─┬ plane 2 ─┐  rows without gaps; of each plane
//	      └──────────────────────┴──────────┴──────────┘  no more than Rect is made from
//
// A Compact is a value: copies of it are over the same memory, which nothing
// here writes to any more. It may be viewed by several goroutines at a time.
type Compact struct {
	layout       Layout
	rect         image.Rectangle
	size, full   image.Point
	flipX, flipY bool
	shrink       int
	planes       [3]Plane
}

// CompactBytes returns how much memory Compact needs.
func (px *Pixels) CompactBytes() int {
	n := 0
	for i := range px.count() {
		p := px.needed(i)
		n += p.X.Held * p.Y.Held
	}
	return n
}

// Compact copies what px holds to mem, of at least CompactBytes bytes, which
// must stay as it is for as long as the result is used.
func (px *Pixels) Compact(mem []byte) Compact {
	if n := px.CompactBytes(); len(mem) < n {
		panic(fmt.Sprintf("augment: %d bytes for pixels of %d", len(mem), n))
	}
	c := Compact{layout: px.Layout, rect: px.Rect, size: px.Size, full: px.Full, flipX: px.FlipX, flipY: px.FlipY, shrink: px.Shrink}
	for i := range px.count() {
		p := px.needed(i)
		width, n := p.X.Held, p.X.Held*p.Y.Held
		dst := mem[:n:n]
		mem = mem[n:]
		for y := range p.Y.Held {
			copy(dst[y*width:(y+1)*width], p.Pix[y*p.Stride:])
		}
		p.Pix, p.Stride = dst, width
		c.planes[i] = p
	}
	return c
}

// View makes px the picture of c, over c's memory: it is good for as long as
// that is. What memory px has of its own it keeps for the next Decode.
func (c *Compact) View(px *Pixels) {
	px.Layout, px.Rect, px.Size, px.Full = c.layout, c.rect, c.size, c.full
	px.FlipX, px.FlipY, px.Shrink = c.flipX, c.flipY, c.shrink
	px.Planes = c.planes
}

// needed returns the part of a plane that px.Rect is made from. A decoder holds
// more: whole blocks.
func (px *Pixels) needed(i int) Plane {
	p, r := px.Planes[i], px.stored(px.Rect)
	x, y := madeFrom(p.X, r.Min.X, r.Max.X), madeFrom(p.Y, r.Min.Y, r.Max.Y)
	if x.Held > 0 && y.Held > 0 {
		p.Pix = p.Pix[(y.First-p.Y.First)*p.Stride+x.First-p.X.First:]
	}
	p.X, p.Y = x, y
	return p
}

// madeFrom returns an axis that holds the samples which the pixels from up to,
// and without, to are made from: those that lie upon them and, where samples are
// mixed, one beside.
func madeFrom(a Axis, from, to int) Axis {
	if a.Held == 0 {
		return a
	}
	first, end := from*a.Den/a.Num, (to*a.Den+a.Num-1)/a.Num
	if a.Num != a.Den {
		first, end = first-1, end+1
	}
	first, end = max(first, a.First), min(end, a.First+a.Held)
	a.First, a.Held = first, max(end-first, 0)
	return a
}
