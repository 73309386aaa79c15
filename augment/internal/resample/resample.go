// Package resample takes a part of a picture, resizes it, turns it to RGB and
// scales it for a network, in one pass from planes of bytes to a tensor:
//
//	planes ─▶ rows of the output's width ─▶ rows of the output ─▶ color ─▶ v*scale + bias
//	bytes     words: 7 fraction bits        words: 7 or 6         words     float32, float16,
//	each its own sampling                   all planes alike                bfloat16 or bytes
//
// The result is that of raising chroma to the picture's size by linear
// interpolation (libjpeg's "fancy upsampling" without its rounding), cropping,
// resizing as Pillow and torchvision do, and converting color. Raising and
// resizing are both linear and both separable, so they are one set of weights
// per axis and plane: no chroma is ever raised, and color is converted at the
// output's size. Nothing is rounded to 8 bits on the way; between the passes
// values are limited to 0..255, as Pillow's are.
//
// Arithmetic is in fixed point, so that all machines give the same bits up to
// the last step, whose product and sum are rounded one by one. Against exact
// arithmetic the words err by less than 0.1 gray level for the bilinear filter.
package resample

import (
	"image"
	"math"

	"shardtool/augment/internal/kernel"
	"shardtool/format"
	"shardtool/tensor"
)

// Filter is how pixels are weighted.
type Filter uint8

const (
	Nearest  Filter = iota // the pixel whose place holds the output's center
	Bilinear               // triangle, support 1
	Bicubic                // Keys' cubic, support 2: a is -0.5, without Antialias -0.75
	Lanczos                // sinc windowed by sinc, support 3; Antialias or not
)

// Geometry says which part of the picture goes where.
type Geometry struct {
	// Src is x0, y0, x1, y1 of the part, in pixels of the picture. What lies
	// outside has no weight: crop first, then resize. Ends within a pixel
	// weight it as Pillow's box argument does.
	Src [4]float64
	// Width, Height is the size to which the part is resized.
	Width, Height int
	// Window is the part of Width x Height that is wanted. Its size is that of
	// the output. Empty: all.
	Window image.Rectangle
	// FlipX and FlipY mirror the output.
	FlipX, FlipY bool
	Filter       Filter
	// Antialias widens the filter where the part is made smaller, as Pillow
	// always does. Without it the filter spans neighbouring pixels only, as
	// torchvision's with antialias=False.
	Antialias bool
}

func (g *Geometry) window() image.Rectangle {
	if g.Window.Empty() {
		return image.Rect(0, 0, g.Width, g.Height)
	}
	return g.Window
}

// Size returns the width and height of the output.
func (g *Geometry) Size() (width, height int) {
	w := g.window()
	return w.Dx(), w.Dy()
}

// Output is where the result goes, and as what: Float32, Float16 or BFloat16 of
// v*Scale[c] + Bias[c] for v of 0 to 255, in the machine's byte order, or Uint8
// of v rounded. Large outputs of floats are written past the caches, fastest at
// multiples of 32 bytes.
type Output struct {
	DType    tensor.DType
	NHWC     bool // the channels of a pixel side by side, not plane after plane; no gaps in either
	Channels int  // 3, or 1 for luma; 0 means 3
	Gray     bool // each of three channels is the luma
	Scale    [3]float32
	Bias     [3]float32
	Dst      []byte
}

// Resampler resizes pictures. It keeps its memory and its weights from one to
// the next; the zero value is ready. It is for one goroutine.
type Resampler struct {
	x, y  [3]axisWeights // chroma planes share theirs when they lie alike
	work  [2][]float64
	rows  [3]rowWindow
	strip [3][]int16 // output rows of each plane
	mixed []int16    // the same, interleaved
	lines [3]kernel.Lines
}

// axisWeights are the weights of one axis of one plane, kept for as long as
// the next picture needs the same.
type axisWeights struct {
	of     request
	across kernel.Across
	down   kernel.Down
}

// stripRows is how many rows of the output are made at a time: as many as keep
// what they are made from in the first cache.
const stripRows = 16

// Run resizes a part of p into out. It fails with ErrUsage, and writes
// nothing, if what is asked for is not there or makes no sense.
func (r *Resampler) Run(p *Picture, g *Geometry, out *Output) error {
	o := *out
	if err := o.complete(g); err != nil {
		return err
	}
	planes := p.Count
	if planes != 1 && planes != 3 || p.YCbCr && planes != 3 {
		return usage("a picture of %d planes", planes)
	}
	if p.YCbCr && (o.Channels == 1 || o.Gray) {
		planes = 1
	}
	j := job{p: p, planes: planes, out: &o, bits: bitsOf(g.Filter)}
	j.width, j.height = g.Size()
	j.row = j.width * o.DType.Size()
	if o.NHWC {
		j.row *= o.Channels
	}
	j.stride = (j.width + kernel.RowUnit - 1) &^ (kernel.RowUnit - 1)
	for i := range planes {
		if err := r.weigh(&j, i, g); err != nil {
			return err
		}
	}
	j.flipY = g.FlipY
	j.stream = o.DType != tensor.Uint8 && j.width*j.height*o.Channels*o.DType.Size() >= streamBytes
	r.prepare(&j)
	for y := 0; y < j.height; y += stripRows {
		n := min(stripRows, j.height-y)
		for i := range planes {
			r.rows[i].fill(&p.Planes[i], &r.x[j.like[i]].across, &r.y[j.like[i]].down, y, n)
			r.rows[i].down(&r.y[j.like[i]].down, r.strip[i], y, n)
		}
		r.finish(&j, y, n)
	}
	if j.stream {
		kernel.Streamed()
	}
	return nil
}

// job is what Run works on.
type job struct {
	p             *Picture
	out           *Output
	planes        int
	like          [3]int // which plane's weights a plane uses
	bits          int    // fraction bits of the output's words
	width, height int
	stride        int // words of a row
	row           int // bytes of a row of the output
	flipY         bool
	stream        bool // the output passes the caches by
}

// streamBytes is the size from which an output of floats passes the caches by:
// it is a part of a batch, which they can't hold. That takes a third off what
// BenchmarkBatch measures, and adds a tenth to BenchmarkCrop, whose output
// stays in the cache; a result that other operations go on with is of bytes.
const streamBytes = 64 << 10

// bitsOf is how many fraction bits the vertical pass leaves: filters with
// negative lobes need room.
func bitsOf(f Filter) int {
	if f == Bicubic || f == Lanczos {
		return 6
	}
	return 7
}

// weigh makes the weights of a plane, or finds which plane's are the same.
func (r *Resampler) weigh(j *job, i int, g *Geometry) error {
	plane := &j.p.Planes[i]
	if err := plane.check(i); err != nil {
		return err
	}
	x, err := g.request(plane.X, false)
	if err != nil {
		return err
	}
	y, err := g.request(plane.Y, true)
	if err != nil {
		return err
	}
	for k, want := range [2]*request{&x, &y} {
		if first, last := want.needs(); first < want.axis.First || last > want.axis.First+want.axis.Held {
			return usage("plane %d: samples %d to %d of the %s axis are needed, %d to %d are held", i, first, last,
				[2]string{"horizontal", "vertical"}[k], want.axis.First, want.axis.First+want.axis.Held)
		}
	}
	if i > 0 && r.x[j.like[i-1]].of == x && r.y[j.like[i-1]].of == y {
		j.like[i] = j.like[i-1]
		return nil
	}
	j.like[i] = i
	if a := &r.x[i]; a.of != x {
		a.of = request{}
		x.weigh(&a.across.Weights, kernel.AcrossOne, &r.work)
		a.across.Pack(x.axis.Held)
		a.of = x
	}
	if a := &r.y[i]; a.of != y {
		a.of = request{}
		y.weigh(&a.down.Weights, -1<<(8+j.bits), &r.work)
		a.of = y
	}
	return nil
}

// prepare sizes the memory between the passes.
func (r *Resampler) prepare(j *job) {
	for i := range j.planes {
		y := &r.y[j.like[i]]
		_, last := y.of.needs()
		r.rows[i].reset(&y.down, last-y.of.axis.First, j.height, j.stride)
		r.strip[i] = grow(r.strip[i], stripRows*j.stride)
	}
	o := j.out
	if o.NHWC && o.Channels == 3 && o.DType != tensor.Uint8 {
		r.mixed = grow(r.mixed, 3*stripRows*j.stride)
		r.lines[0].Set(j.bits, o.Scale[:], o.Bias[:])
		return
	}
	for c := range o.Channels {
		r.lines[c].Set(j.bits, o.Scale[c:c+1], o.Bias[c:c+1])
	}
}

// finish converts the color of n rows from y and stores them.
func (r *Resampler) finish(j *job, y, n int) {
	var c [3][]int16
	for i := range j.planes {
		c[i] = r.strip[i][:n*j.stride]
	}
	switch {
	case j.p.YCbCr && j.planes == 3:
		kernel.Color(c[0], c[1], c[2], j.bits)
	case j.planes == 3 && (j.out.Channels == 1 || j.out.Gray):
		kernel.Luma(c[0], c[1], c[2])
		kernel.Limit(c[0], j.bits)
		c[1], c[2] = c[0], c[0]
	default:
		for i := range j.planes {
			kernel.Limit(c[i], j.bits)
		}
	}
	if j.planes == 1 {
		c[1], c[2] = c[0], c[0]
	}
	o := j.out
	at := kernel.Rect{Dst: o.Dst, Offset: y * j.row, Stride: j.row, Rows: n, Columns: j.width, SrcStride: j.stride, Stream: j.stream}
	if j.flipY {
		at.Offset, at.Stride = (j.height-1-y)*j.row, -j.row
	}
	if o.Channels == 1 || !o.NHWC {
		for i := range o.Channels {
			at.Offset += min(i, 1) * j.height * j.row
			store(&at, o.DType, c[i], &r.lines[i], j.bits)
		}
		return
	}
	if o.DType == tensor.Uint8 {
		kernel.StorePixels(&at, c, j.bits)
		return
	}
	kernel.Interleave(r.mixed, c[0], c[1], c[2])
	at.Columns, at.SrcStride = 3*j.width, 3*j.stride
	store(&at, o.DType, r.mixed, &r.lines[0], j.bits)
}

func store(at *kernel.Rect, t tensor.DType, src []int16, lines *kernel.Lines, bits int) {
	switch t {
	case tensor.Float32:
		kernel.StoreFloat32(at, src, lines)
	case tensor.Float16:
		kernel.StoreFloat16(at, src, lines)
	case tensor.BFloat16:
		kernel.StoreBFloat16(at, src, lines)
	default:
		kernel.StoreBytes(at, src, bits)
	}
}

// complete fills in what zero stands for and checks the rest.
func (o *Output) complete(g *Geometry) error {
	if err := g.check(); err != nil {
		return err
	}
	w, h := g.Size()
	switch o.DType {
	case tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Uint8:
	default:
		return usage("an output of %v", o.DType)
	}
	if o.Channels == 0 {
		o.Channels = 3
	}
	if o.Channels != 1 && o.Channels != 3 {
		return usage("an output of %d channels", o.Channels)
	}
	for c := range o.Channels {
		if !finite(float64(o.Scale[c])) || !finite(float64(o.Bias[c])) {
			return usage("scale %v and bias %v of channel %d", o.Scale[c], o.Bias[c], c)
		}
	}
	if need := w * h * o.Channels * o.DType.Size(); len(o.Dst) < need {
		return usage("an output of %d bytes into memory of %d", need, len(o.Dst))
	}
	return nil
}

// check tells whether the samples that a plane says are held can be there.
func (p *Plane) check(i int) error {
	for _, a := range [2]*Axis{&p.X, &p.Y} {
		if a.Pixels < 1 || a.Num < 1 || a.Den < 1 || a.Total < 1 || a.First < 0 || a.Held < 1 || a.First+a.Held > a.Total || a.Num > 1<<16 || a.Den > 1<<16 || a.Pixels > 1<<30 || a.Total > 1<<30 {
			return usage("plane %d: axis %+v", i, *a)
		}
	}
	if p.Stride < p.X.Held || len(p.Pix) < (p.Y.Held-1)*p.Stride+p.X.Held {
		return usage("plane %d: %d x %d samples, %d bytes a row, in %d bytes", i, p.X.Held, p.Y.Held, p.Stride, len(p.Pix))
	}
	return nil
}

func usage(msg string, args ...any) error {
	return format.Errorf(format.ErrUsage, format.Nowhere, "resample: "+msg, args...)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// grow returns a slice of length n, s's memory if that is large enough. Its
// elements are what was left there.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}
