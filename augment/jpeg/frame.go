package jpeg

import "image"

// Frame is the geometry of a picture's coefficients:
//
//	picture ─▶ MCUs ─▶ blocks of 8x8, H x V of a component in each MCU
type Frame struct {
	Header
	HMax, VMax int // the largest sampling factors: an MCU is 8*HMax x 8*VMax pixels
	Cols, Rows int // MCUs
	Comps      [4]Comp
}

// Comp is the geometry of one component.
type Comp struct {
	H, V          int
	Width, Height int // samples
	Cols, Rows    int // blocks that hold samples; there are more up to whole MCUs
}

func (f *Frame) set(h Header) {
	*f = Frame{Header: h}
	for i := range h.Count {
		f.HMax = max(f.HMax, h.Components[i].H)
		f.VMax = max(f.VMax, h.Components[i].V)
	}
	f.Cols = ceilDiv(h.Width, 8*f.HMax)
	f.Rows = ceilDiv(h.Height, 8*f.VMax)
	for i := range h.Count {
		c := Comp{H: h.Components[i].H, V: h.Components[i].V}
		c.Width = ceilDiv(h.Width*c.H, f.HMax)
		c.Height = ceilDiv(h.Height*c.V, f.VMax)
		c.Cols, c.Rows = ceilDiv(c.Width, 8), ceilDiv(c.Height, 8)
		f.Comps[i] = c
	}
}

// blocks returns how many blocks the frame has, counted to whole MCUs.
func (f *Frame) blocks() int64 {
	n := 0
	for i := range f.Count {
		n += f.Comps[i].H * f.Comps[i].V
	}
	return int64(n) * int64(f.Cols) * int64(f.Rows)
}

// mcus returns the MCUs that cover r, a part of the picture, with margin
// pixels around it.
func (f *Frame) mcus(r image.Rectangle, margin int) image.Rectangle {
	w, h := 8*f.HMax, 8*f.VMax
	return image.Rect(
		max(0, r.Min.X-margin)/w, max(0, r.Min.Y-margin)/h,
		ceilDiv(min(f.Width, r.Max.X+margin), w), ceilDiv(min(f.Height, r.Max.Y+margin), h),
	)
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// Strip is the coefficients of some MCUs of one row, lent until the next call
// of whoever gave it. Each block has 64, in natural order, quantised.
type Strip struct {
	// By component: block (x, y) of the strip begins at y*Stride + 64*x.
	Coefs  [4][]int16
	Stride [4]int
}

// Source gives the coefficients of a picture. What comes after it, from the
// inverse DCT on, does not depend on how they were coded.
type Source interface {
	// Frame returns the geometry. It stays as it is.
	Frame() *Frame
	// Quant returns the quantisation table of a component, in natural order.
	// Values from 32768 on wrap around.
	Quant(comp int) *[64]int16
	// Row returns the MCUs x0 to x1-1 of row y. MCUs are asked for in the order
	// of the file, row by row from the left, each at most once; a source that
	// cannot go back fails with ErrUsage.
	Row(y, x0, x1 int) (Strip, error)
}
