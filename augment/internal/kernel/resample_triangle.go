package kernel

import (
	"math"

	"shardtool/internal/simd"
)

// Triangle computes the weights of the triangle filter along one axis. Output i
// is centered at Offset + (From+i*Step+0.5)*Scale, in pixels of a part of Count
// pixels that begins at pixel Start of the picture; it weights the pixels that
// lie less than Support from there.
type Triangle struct {
	From, Step    float64
	Offset, Scale float64
	Support       float64
	Inverse       float32 // 1 / Support
	One           float32 // what the weights of an output sum to
	Sign          int32   // 1, or -1: weights are negated
	Count, Start  int32
	Base          int32 // the sample that Weights.First counts from
}

// Fill fills w with the weights of pixels, or, if halved, of the samples of a
// plane that has one for two pixels and is raised by libjpeg's triangle: pixel
// 2s takes 3/4 of sample s and 1/4 of the one before, pixel 2s+1 takes 3/4 of
// it and 1/4 of the one after. At its ends, a plane must be thought to go on:
// First may be one before it, and weights may fall beyond it.
func (t *Triangle) Fill(w *Weights, halved bool) {
	if simd.Active() >= simd.AVX2 {
		n := 0
		if halved {
			n = 1
		}
		t.fast(w, n)
	} else {
		for i := range w.First {
			t.plain(w, i, halved)
		}
	}
	// Assembly makes outputs up to a multiple of 8.
	for k := range w.N {
		clear(w.W[k*w.Stride+len(w.First) : (k+1)*w.Stride])
	}
}

// plain is the specification of Fill.
func (t *Triangle) plain(w *Weights, i int, halved bool) {
	c := float64((t.From+float64(float64(i)*t.Step)+0.5)*t.Scale) + t.Offset
	low := max(int32(c-t.Support+0.5), 0)
	x := float32(c - 0.5 - float64(low))
	count := float32(t.Count - low)
	pixel := t.Start + low
	sum := float32(0)
	if !halved {
		w.First[i] = pixel - t.Base
		for k := range w.N {
			v := t.at(x, float32(k), 0, count)
			w.W[k*w.Stride+i] = int32(math.Float32bits(v))
			sum += v
		}
	} else {
		w.First[i] = (pixel-1)>>1 - t.Base
		before := float32(3 - pixel&1)
		x, count = x+before, count+before
		value := func(k int) float32 { return t.at(x, float32(k), before, count) }
		for k := range w.N {
			outer := float32((value(2*k) + value(2*k+3)) * 0.25)
			v := outer + float32((value(2*k+1)+value(2*k+2))*0.75)
			w.W[k*w.Stride+i] = int32(math.Float32bits(v))
			sum += v
		}
	}
	// The sums from the first on are rounded, and the weights are their
	// differences.
	scale, total, last := t.One/sum, float32(0.5), int32(0)
	for k := range w.N {
		at := &w.W[k*w.Stride+i]
		total += float32(math.Float32frombits(uint32(*at)) * scale)
		*at = (int32(total) - last) * t.Sign
		last = int32(total)
	}
}

// at is the filter's value at pixel k, which is from low to high.
func (t *Triangle) at(x, k, low, high float32) float32 {
	if k < low || k >= high {
		return 0
	}
	return max(0, 1-float32(float32(math.Abs(float64(x-k)))*t.Inverse))
}
