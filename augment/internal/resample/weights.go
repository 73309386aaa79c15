package resample

import (
	"math"

	"shardtool/augment/internal/kernel"
)

// request is all that the weights of one axis depend on.
type request struct {
	axis      Axis
	low, high float64 // the part, in pixels
	size      int     // to which it is resized
	from, to  int     // which of the results are wanted
	flip      bool
	filter    Filter
	antialias bool
}

func (g *Geometry) request(a Axis, vertical bool) (request, error) {
	win := g.window()
	r := request{axis: a, low: g.Src[0], high: g.Src[2], size: g.Width, from: win.Min.X, to: win.Max.X,
		flip: g.FlipX, filter: g.Filter, antialias: g.Antialias}
	if vertical {
		r.low, r.high, r.size, r.from, r.to, r.flip = g.Src[1], g.Src[3], g.Height, win.Min.Y, win.Max.Y, false
	}
	if !(0 <= r.low && r.low < r.high && r.high <= float64(a.Pixels)) {
		return r, usage("a part from %v to %v of a picture of %d pixels", r.low, r.high, a.Pixels)
	}
	return r, nil
}

// maxSize is the largest width or height of a resize.
const maxSize = 1 << 20

func (g *Geometry) check() error {
	if g.Width < 1 || g.Height < 1 || g.Width > maxSize || g.Height > maxSize {
		return usage("a resize to %d x %d", g.Width, g.Height)
	}
	if w := g.window(); w.Min.X < 0 || w.Min.Y < 0 || w.Max.X > g.Width || w.Max.Y > g.Height {
		return usage("a window %v of %d x %d", w, g.Width, g.Height)
	}
	if g.Filter > Lanczos {
		return usage("filter %d", g.Filter)
	}
	for _, v := range g.Src {
		if !finite(v) {
			return usage("a part %v", g.Src)
		}
	}
	return nil
}

// The shapes of filters: how far they reach, and their value at a distance.
var filters = [...]struct {
	support float64
	at      func(x float64) float64
}{
	Nearest:  {},
	Bilinear: {1, triangle},
	Bicubic:  {2, func(x float64) float64 { return cubic(x, -0.5) }},
	Lanczos:  {3, lanczos},
}

// Radius is how far from the center pixels have a weight, in pixels, where the
// filter is not widened; that of Nearest is 0.
func (f Filter) Radius() float64 { return filters[f].support }

// At is the weight at a distance of x, of all filters but Nearest. Without
// antialiasing the cubic is another.
func (f Filter) At(x float64, antialias bool) float64 {
	if f == Bicubic && !antialias {
		return cubic(x, -0.75)
	}
	return filters[f].at(x)
}

func triangle(x float64) float64 { return max(0, 1-math.Abs(x)) }

// cubic is Keys' (Cubic Convolution Interpolation for Digital Image
// Processing, 1981).
func cubic(x, a float64) float64 {
	switch x = math.Abs(x); {
	case x < 1:
		return float64(float64(float64((a+2)*x)-(a+3))*x*x) + 1
	case x < 2:
		return float64((float64((float64((x-5)*x)+8)*x) - 4) * a)
	}
	return 0
}

func lanczos(x float64) float64 {
	if x = math.Abs(x); x >= 3 {
		return 0
	}
	return sinc(x) * sinc(x/3)
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(x*math.Pi) / (x * math.Pi)
}

// spread is the geometry of a filter over the pixels of a part: output o is
// centered at center(o), in pixels from start on, of which there are count.
type spread struct {
	start, count int
	offset       float64 // of the part from start
	scale        float64 // pixels to an output
	widened      float64 // what distances are divided by
	support      float64 // in pixels
	neighbours   int     // taps of a filter that is not widened, or 0
	most         int     // pixels to an output
}

func (r *request) spread() spread {
	start := math.Floor(r.low)
	s := spread{
		start:   int(start),
		count:   int(math.Ceil(r.high) - start),
		offset:  r.low - start,
		scale:   (r.high - r.low) / float64(r.size),
		widened: 1,
	}
	switch {
	case r.filter == Nearest:
		s.neighbours = 1
	case r.filter == Bicubic && !r.antialias:
		s.neighbours = 4
	case r.filter != Bilinear || r.antialias:
		s.widened = max(1, s.scale)
	}
	s.support = float64(filters[r.filter].support * s.widened)
	s.most = s.neighbours
	if s.most == 0 {
		// Rounding may find one more, of which the weight is 0.
		s.most = int(math.Ceil(2 * s.support))
	}
	s.most = min(s.most, s.count)
	return s
}

func (s *spread) center(o int) float64 {
	return s.offset + float64((float64(o)+0.5)*s.scale)
}

// pixels returns which pixels output o weights, from start on, as Pillow
// bounds them. Without widening, pixels beyond the ends stand for the last.
func (s *spread) pixels(o int) (low, high int) {
	c := s.center(o)
	if s.neighbours > 0 {
		low = s.nearest(c)
		return max(low, 0), min(low+s.neighbours, s.count)
	}
	low, high = int(c-s.support+0.5), int(c+s.support+0.5)
	low = min(max(low, 0), s.count-1)
	return low, max(low+1, min(high, s.count, low+s.most))
}

// nearest returns the first of the neighbours of a center; it may lie up to
// two pixels outside.
func (s *spread) nearest(c float64) int {
	if s.neighbours == 1 {
		return min(int(c), s.count-1)
	}
	return int(math.Floor(c-0.5)) - s.neighbours/2 + 1
}

// lying is where a pixel's center lies among the samples of an axis: between
// sample at and the next, at the fraction part / unit; walking from pixel to
// pixel adds step.
type lying struct {
	step, unit, part int
	at               int
	linear           bool
}

// lie returns where pixel p lies.
func (a *Axis) lie(p int) lying {
	if a.Num%a.Den == 0 && !(a.Smooth && a.Num > a.Den) {
		l := lying{step: a.Den, unit: a.Num}
		l.at, l.part = p*a.Den/a.Num, p*a.Den%a.Num
		return l
	}
	l := lying{step: 2 * a.Den, unit: 2 * a.Num, linear: true}
	t := (2*p+1)*a.Den - a.Num
	l.at = t / l.unit
	if t < 0 {
		l.at = -1
	}
	l.part = t - l.at*l.unit
	return l
}

func (l *lying) next() {
	for l.part += l.step; l.part >= l.unit; l.part -= l.unit {
		l.at++
	}
}

// needs returns which samples the request reads.
func (r *request) needs() (first, last int) {
	s := r.spread()
	low, _ := s.pixels(r.from)
	_, high := s.pixels(r.to - 1)
	a, b := r.axis.lie(s.start+low), r.axis.lie(s.start+high-1)
	last = b.at + 1
	if b.linear && b.part > 0 {
		last++
	}
	first = min(max(a.at, 0), r.axis.Total-1)
	return first, max(first+1, min(last, r.axis.Total))
}

// bound returns how many samples an output weights at most.
func (r *request) bound() int {
	s, a := r.spread(), &r.axis
	n := ((s.most-1)*a.Den+a.Num-1)/a.Num + 1
	if a.lie(0).linear {
		n++
	}
	return n
}

// weigh computes the weights, which sum to one for each output.
func (r *request) weigh(w *kernel.Weights, one int, work *[2][]float64) {
	n := r.bound()
	halved := r.axis.Num == 2 && r.axis.Den == 1 && r.axis.Smooth
	if r.filter == Bilinear && (halved || r.axis.Num == r.axis.Den) {
		w.Reset(r.to-r.from, n)
		r.triangle(w, one, halved)
		return
	}
	w.Reset(r.to-r.from, min(n, r.axis.Total))
	r.general(w, one, work)
}

// triangle is weigh for the usual filter and samplings.
func (r *request) triangle(w *kernel.Weights, one int, halved bool) {
	s := r.spread()
	t := kernel.Triangle{
		From: float64(r.from), Step: 1,
		Offset: s.offset, Scale: s.scale, Support: s.support,
		Inverse: float32(1 / s.support), One: float32(one), Sign: 1,
		Count: int32(s.count), Start: int32(s.start), Base: int32(r.axis.First),
	}
	if one < 0 {
		t.One, t.Sign = float32(-one), -1
	}
	if r.flip {
		t.From, t.Step = float64(r.to-1), -1
	}
	t.Fill(w, halved)
	if !halved {
		return
	}
	for o := range w.First {
		if first := int(w.First[o]) + r.axis.First; first < 0 || first+w.N > r.axis.Total {
			r.fold(w, o, first)
		}
	}
}

// fold gives the weights of an output that fall before the first sample of the
// plane, or beyond its last, to that sample.
func (r *request) fold(w *kernel.Weights, o, first int) {
	at := func(k int) *int32 { return &w.W[k*w.Stride+o] }
	for k := first + w.N - r.axis.Total; k > 0 && w.N-k > 0; k-- {
		last := w.N - k
		*at(last - 1) += *at(last)
		*at(last) = 0
	}
	if first < 0 {
		*at(1) += *at(0)
		for k := 1; k < w.N; k++ {
			*at(k - 1) = *at(k)
		}
		*at(w.N - 1) = 0
		w.First[o]++
	}
}

// general is weigh for all filters and samplings. Mirrored, the last output
// comes first.
func (r *request) general(w *kernel.Weights, one int, work *[2][]float64) {
	s := r.spread()
	pixels, samples := grow(work[0], s.most), grow(work[1], w.N)
	work[0], work[1] = pixels, samples
	for i := range w.First {
		o, at := r.from+i, i
		if r.flip {
			at = len(w.First) - 1 - i
		}
		low, taps, sum := r.weighPixels(&s, o, pixels)
		start := s.start + low
		if r.axis.Num != r.axis.Den {
			start, taps = r.compose(start, taps, samples)
		}
		w.First[at] = int32(start - r.axis.First)
		quantize(w, at, taps, sum, one)
	}
	for k := range w.N {
		clear(w.W[k*w.Stride+len(w.First) : (k+1)*w.Stride])
	}
}

// weighPixels computes the weights of the pixels of output o, not yet
// divided by their sum.
func (r *request) weighPixels(s *spread, o int, room []float64) (low int, taps []float64, sum float64) {
	low, high := s.pixels(o)
	taps = room[:high-low]
	c := s.center(o)
	if s.neighbours > 0 {
		return low, r.weighNeighbours(s, c, low, taps), 1
	}
	x := float64(low) - c + 0.5
	inverse := 1 / s.widened
	at := filters[r.filter].at
	for k := range taps {
		taps[k] = at(float64((x + float64(k)) * inverse))
		sum += taps[k]
	}
	if sum == 0 { // the part of a pixel that rounding left out
		taps[0], sum = 1, 1
	}
	return low, taps, sum
}

// weighNeighbours is weighPixels for a filter that is not widened: pixels that
// lie outside count for the outermost.
func (r *request) weighNeighbours(s *spread, c float64, low int, taps []float64) []float64 {
	if s.neighbours == 1 {
		taps[0] = 1
		return taps
	}
	clear(taps)
	from := s.nearest(c)
	for k := range s.neighbours {
		v := Bicubic.At(float64(from+k)+0.5-c, false)
		taps[min(max(from+k-low, 0), len(taps)-1)] += v
	}
	return taps
}

// compose turns the weights of pixels into those of the samples between which
// the pixels lie. Sums stay as they are.
func (r *request) compose(pixel int, taps, room []float64) (int, []float64) {
	a := &r.axis
	l := a.lie(pixel)
	end := a.Total - 1
	start := min(max(l.at, 0), end)
	last := start
	clear(room)
	inverse := 1 / float64(l.unit)
	for _, v := range taps {
		at := min(max(l.at, 0), end)
		if l.linear && l.part > 0 && l.at >= 0 && l.at < end {
			part := float64(v * float64(float64(l.part)*inverse))
			room[at-start] += v - part
			room[at-start+1] += part
			last = max(last, at+1)
		} else {
			room[at-start] += v
			last = max(last, at)
		}
		l.next()
	}
	return start, room[:last-start+1]
}

// quantize rounds the taps of output o so that they sum to one. The sums from
// the first on are rounded, and the weights are their differences.
func quantize(w *kernel.Weights, o int, taps []float64, sum float64, one int) {
	const bias = 1 << 20 // above all sums, so that conversion rounds down
	scale := float64(one) / sum
	c, before := 0.5+bias, int32(bias)
	for k := range w.N {
		if k < len(taps) {
			c += float64(taps[k] * scale)
		}
		now := int32(c)
		w.W[k*w.Stride+o] = now - before
		before = now
	}
}
