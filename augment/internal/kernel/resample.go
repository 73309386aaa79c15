package kernel

import "shardtool/internal/simd"

// The passes of a resize, in fixed point. Samples are bytes; what lies between
// the passes are words with 7 fraction bits, in rows padded to RowUnit:
//
//	bytes ──Across──▶ words, 7 fraction bits, 0..255 ──Down──▶ words, 7 or 6 fraction bits
//	      14 bits, sums in 32                         15 or 14 bits
//
// Down's weights have 15 fraction bits where they are never negative nor above
// 1, and the result has 7; with 14, which leave room for the negative lobes of
// bicubic and Lanczos, it has 6.

const (
	// AcrossOne is the weight 1 of Across.
	AcrossOne = 1 << 14
	// RowUnit is what the length of a row of words is a multiple of.
	RowUnit = 32

	acrossShift = 7
	acrossLimit = 255 << 7
	gatherBytes = 16 // what one load of the gathering form spans
	runLength   = 16 // samples of one load of the running form
	groupSize   = 8  // outputs that are made at a time
)

// Weights is what each output of one axis is made of: N samples, or rows, from
// First on. The weights lie tap by tap: weight k of output o is
// W[k*Stride+o]; there is an even number of such rows. Those that fall beyond
// the samples that exist are 0.
type Weights struct {
	N      int
	First  []int32
	W      []int32
	Stride int
}

// Reset makes room for that many outputs of n weights.
func (w *Weights) Reset(outputs, n int) {
	w.N, w.Stride = n, (outputs+groupSize-1)&^(groupSize-1)
	w.First = grow(w.First, w.Stride)[:outputs]
	w.W = grow(w.W, (n+1)&^1*w.Stride)
	if n%2 == 1 {
		clear(w.W[n*w.Stride:])
	}
}

// Across resizes rows of bytes: the horizontal pass. Fill Weights after Reset,
// then Pack.
type Across struct {
	Weights

	held   int // samples of a row
	form   acrossForm
	size   int // pairs of taps of the gathering form, runs of the running one
	starts []int32
	table  []uint32 // gathering: 8 shuffles and 8 pairs of weights for each pair
	runs   []int16  // running: the weights of each run, 8 outputs side by side; plain: those of each output
	pad    []byte   // rows that are too short to be loaded whole
}

type acrossForm uint8

const (
	plainForm  acrossForm = iota // the generic Go
	gatherForm                   // four neighbours' samples lie within 16 bytes
	runForm                      // each output loads its own samples
)

// Pack makes ready for rows of that many samples.
func (a *Across) Pack(held int) {
	a.held, a.form = held, plainForm
	if simd.Active() < simd.AVX2 {
		a.packPlain()
		return
	}
	if a.startQuads() {
		a.form, a.size = gatherForm, (a.N+1)/2
		a.table = grow(a.table, a.Stride*a.size*2)
		a.packGather()
		return
	}
	a.form = runForm
	a.packRuns()
}

// startQuads finds from where on each four outputs load their samples, and
// whether they fit. No load passes the end of a row of 16 bytes or more.
func (a *Across) startQuads() bool {
	const quad = groupSize / 2
	if a.N > gatherBytes {
		return false
	}
	a.starts = grow(a.starts, a.Stride/quad)
	last := int32(max(a.held-gatherBytes, 0))
	for q := range a.starts {
		// Outputs run one way, so the ends of a quad bound it.
		at := min(q*quad, len(a.First)-1)
		one, other := a.First[at], a.First[min(at+quad, len(a.First))-1]
		low, high := min(one, other), max(one, other)
		if int(high-low)+a.N > gatherBytes {
			return false
		}
		a.starts[q] = min(low, last)
	}
	return true
}

// packPlain lays the weights of an output side by side.
func (a *Across) packPlain() {
	a.runs = grow(a.runs, len(a.First)*a.N)
	for k := range a.N {
		for o, v := range a.W[k*a.Stride:][:len(a.First)] {
			a.runs[o*a.N+k] = int16(v)
		}
	}
}

// packRuns builds the tables of the running form.
func (a *Across) packRuns() {
	a.size = (a.N + runLength - 1) / runLength
	a.starts = grow(a.starts, a.Stride)
	a.runs = grow(a.runs, a.Stride*a.size*runLength)
	clear(a.starts)
	clear(a.runs)
	last := max(a.held-a.size*runLength, 0)
	for o, first := range a.First {
		start := min(int(first), last)
		a.starts[o] = int32(start)
		group := a.runs[o/groupSize*groupSize*a.size*runLength:]
		for k := range a.N {
			if at := int(first) - start + k; a.W[k*a.Stride+o] != 0 {
				group[(at/runLength*groupSize+o%groupSize)*runLength+at%runLength] = int16(a.W[k*a.Stride+o])
			}
		}
	}
}

// span is how many samples of a row a load must find.
func (a *Across) span() int {
	switch a.form {
	case gatherForm:
		return gatherBytes
	case runForm:
		return a.size * runLength
	}
	return 0
}

// Rows is how many rows Across makes at a time: more rows than asked for are
// never read or written, but a multiple of this wastes nothing.
const Rows = 4

// Run resizes rows rows of src into dst, whose rows have len(First) words each
// and room up to a multiple of RowUnit.
func (a *Across) Run(dst []int16, dstStride int, src []byte, srcStride, rows int) {
	if a.form == plainForm {
		for y := range rows {
			a.plain(dst[y*dstStride:][:len(a.First)], src[y*srcStride:][:a.held])
		}
		return
	}
	span := a.span()
	if a.held < span {
		a.pad = grow(a.pad, Rows*span)
	}
	for y := 0; y < rows; y += Rows {
		n := min(Rows, rows-y)
		from, stride := src[y*srcStride:], srcStride
		if a.held < span {
			for i := range n {
				copy(a.pad[i*span:][:a.held], from[i*srcStride:])
			}
			from, stride = a.pad, span
		}
		to := dst[y*dstStride:]
		// What assembly reads and writes is checked here.
		_ = from[(n-1)*stride+max(a.held, span)-1]
		_ = to[(n-1)*dstStride+(len(a.First)+groupSize-1)/groupSize*groupSize-1]
		a.fast(to, dstStride, from, stride, n)
	}
}

// plain is the specification of Across.
func (a *Across) plain(dst []int16, src []byte) {
	weights := a.runs
	for o, first := range a.First {
		from := src[first:]
		from = from[:min(a.N, len(from))]
		sum := int32(1 << (acrossShift - 1))
		for k, v := range weights[:len(from)] {
			sum += int32(v) * int32(from[k])
		}
		dst[o] = int16(min(max(sum>>acrossShift, 0), acrossLimit))
		weights = weights[a.N:]
	}
}

// narrowTaps is how many rows Down sums with each product rounded; more are
// summed in 32 bits.
const narrowTaps = 12

// Down sums rows of words: the vertical pass. Its weights are negated, for then
// a word holds the weight 1 of 15 fraction bits. Rows that a weight of 0 falls
// upon need not exist, but must be there.
type Down struct{ Weights }

// Run makes the outputs from to from+rows, each of width words, a multiple of
// RowUnit. The first row of src is row base. Strides are in words.
func (d *Down) Run(dst []int16, dstStride int, src []int16, srcStride, base, from, rows, width int) {
	first := d.First[from:][:rows]
	_ = dst[(rows-1)*dstStride+width-1]
	taps := (d.N + 1) &^ 1
	for _, row := range first {
		_ = src[(int(row)-base)*srcStride:][(taps-1)*srcStride+width-1]
	}
	if simd.Active() >= simd.AVX2 {
		d.fast(dst, dstStride, src, srcStride, first, base, from, width)
		return
	}
	for y, row := range first {
		d.plain(dst[y*dstStride:][:width], src[(int(row)-base)*srcStride:], srcStride, d.W[from+y:])
	}
}

// plain is the specification of Down. It makes RowUnit columns at a time, whose
// sums stay in the cache.
func (d *Down) plain(dst, src []int16, stride int, w []int32) {
	for x := 0; x < len(dst); x += RowUnit {
		to := (*[RowUnit]int16)(dst[x:])
		if d.N > narrowTaps {
			d.plainWide(to, src[x:], stride, w)
			continue
		}
		*to = [RowUnit]int16{}
		for k := range d.N {
			w := int16(w[k*d.Stride])
			for i, v := range (*[RowUnit]int16)(src[k*stride+x:]) {
				to[i] -= int16(mulRound(v, w))
			}
		}
	}
}

func (d *Down) plainWide(dst *[RowUnit]int16, src []int16, stride int, w []int32) {
	var sums [RowUnit]int32
	for k := range d.N {
		w := w[k*d.Stride]
		for i, v := range (*[RowUnit]int16)(src[k*stride:]) {
			sums[i] -= w * int32(v)
		}
	}
	for i, sum := range sums {
		dst[i] = int16(saturate((sum + 1<<14) >> 15))
	}
}

// mulRound is the product of two fractions of 15 bits, rounded to the nearest
// and, between two, up.
func mulRound(a, b int16) int32 { return (int32(a)*int32(b) + 1<<14) >> 15 }

// The factors of Color and Luma, with 15 fraction bits: ITU-R BT.601, as
// JFIF has it. Factors above 1 are written as 1 and the rest.
const (
	redCr    = 13173 // 1.402 - 1
	greenCb  = 11277 // 0.344136
	greenCr  = 23401 // 0.714136
	blueCb   = 25297 // 1.772 - 1
	lumaRed  = 9798  // 0.299
	lumaBlue = 3735  // 0.114
	lumaRest = 1<<15 - lumaRed - lumaBlue
)

// Color turns words of luma and chroma with that many fraction bits into red,
// green and blue within 0..255, in place. The slices have one length, a
// multiple of RowUnit.
func Color(y, cb, cr []int16, bits int) {
	center, limit := int16(128<<bits), int32(255<<bits)
	cb, cr = cb[:len(y)], cr[:len(y)]
	if simd.Active() >= simd.AVX2 {
		colorFast(y, cb, cr, int(center), int(limit))
		return
	}
	for i, l := range y {
		b, r := cb[i]-center, cr[i]-center
		red := saturate(int32(l) + int32(r+int16(mulRound(r, redCr))))
		green := saturate(int32(l) - int32(int16(mulRound(b, greenCb))+int16(mulRound(r, greenCr))))
		blue := saturate(int32(l) + int32(b+int16(mulRound(b, blueCb))))
		y[i] = int16(min(max(red, 0), limit))
		cb[i] = int16(min(max(green, 0), limit))
		cr[i] = int16(min(max(blue, 0), limit))
	}
}

func saturate(v int32) int32 { return min(max(v, -1<<15), 1<<15-1) }

// Luma turns words of red, green and blue into their luma, in place of red.
// The slices have one length, a multiple of RowUnit.
func Luma(r, g, b []int16) {
	g, b = g[:len(r)], b[:len(r)]
	if simd.Active() >= simd.AVX2 {
		lumaFast(r, g, b)
		return
	}
	for i, v := range r {
		r[i] = int16(mulRound(v, lumaRed)) + int16(mulRound(g[i], lumaRest)) + int16(mulRound(b[i], lumaBlue))
	}
}

// Limit limits words with that many fraction bits to 0..255. The length of v
// is a multiple of RowUnit.
func Limit(v []int16, bits int) {
	limit := int16(255 << bits)
	if simd.Active() >= simd.AVX2 {
		limitFast(v, int(limit))
		return
	}
	for i, x := range v {
		v[i] = min(max(x, 0), limit)
	}
}

// grow returns a slice of length n, s's memory if that is large enough. Its
// elements are what was left there.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}
