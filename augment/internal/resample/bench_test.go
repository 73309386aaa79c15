package resample

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"shardtool/internal/simd"
	"shardtool/tensor"
)

// halved is the axis of a plane with a sample for two pixels.
func halved(pixels int) Axis {
	n := (pixels + 1) / 2
	return Axis{Pixels: pixels, Num: 2, Den: 1, Smooth: true, Total: n, Held: n}
}

func plane(r *rand.Rand, x, y Axis) Plane {
	p := Plane{Pix: make([]byte, x.Held*y.Held), Stride: x.Held, X: x, Y: y}
	for i := range p.Pix {
		p.Pix[i] = byte(r.Uint32())
	}
	return p
}

// photo is a picture of YCbCr 4:2:0.
func photo(width, height int) *Picture {
	r := rand.New(rand.NewPCG(1, 2))
	c := func() Plane { return plane(r, halved(width), halved(height)) }
	return &Picture{Planes: [3]Plane{plane(r, whole(width), whole(height)), c(), c()}, Count: 3, YCbCr: true}
}

// crop is a part to be resized to 224 x 224; its offset varies with i, so that
// no weights are those of the picture before.
func crop(width, height, i int) *Geometry {
	return &Geometry{
		Src:   [4]float64{float64(i % 8), float64(i / 8 % 8), float64(i%8 + width), float64(i/8%8 + height)},
		Width: 224, Height: 224, Filter: Bilinear, Antialias: true,
	}
}

var levels = []simd.Level{simd.Generic, simd.AVX2}

func eachLevel(b *testing.B, run func(b *testing.B)) {
	for _, l := range levels {
		undo := simd.SetLevel(l)
		if simd.Active() == l {
			b.Run(l.String(), run)
		}
		undo()
	}
}

func normalised(dtype tensor.DType, size int) *Output {
	return &Output{DType: dtype, Scale: [3]float32{0.017, 0.018, 0.017}, Bias: [3]float32{-2.1, -2, -1.8},
		Dst: make([]byte, size*size*3*dtype.Size())}
}

func BenchmarkCrop(b *testing.B) {
	for _, size := range [][2]int{{400, 300}, {150, 120}, {800, 600}, {2000, 1500}} {
		p := photo(size[0]+8, size[1]+8)
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			eachLevel(b, func(b *testing.B) {
				b.ReportAllocs()
				out := normalised(tensor.Float32, 224)
				var r Resampler
				i := 0
				for b.Loop() {
					if err := r.Run(p, crop(size[0], size[1], i), out); err != nil {
						b.Fatal(err)
					}
					i++
				}
			})
		})
	}
}

func BenchmarkOutput(b *testing.B) {
	p := photo(408, 308)
	for _, nhwc := range []bool{false, true} {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Uint8} {
			b.Run(fmt.Sprintf("%v/%s", dtype, map[bool]string{false: "nchw", true: "nhwc"}[nhwc]), func(b *testing.B) {
				out := normalised(dtype, 224)
				out.NHWC = nhwc
				var r Resampler
				for b.Loop() {
					r.Run(p, crop(400, 300, 0), out)
				}
			})
		}
	}
}

// BenchmarkWeights is what a crop costs before its first pixel.
func BenchmarkWeights(b *testing.B) {
	p := photo(408, 308)
	var r Resampler
	i := 0
	for b.Loop() {
		g := crop(400, 300, i)
		j := job{p: p, planes: 3, bits: 7}
		for k := range 3 {
			r.weigh(&j, k, g)
		}
		i++
	}
}

// BenchmarkBatch writes each picture to another place of a batch that no cache
// holds.
func BenchmarkBatch(b *testing.B) {
	p := photo(408, 308)
	out := normalised(tensor.Float32, 224)
	size := len(out.Dst)
	batch := make([]byte, 128*size)
	var r Resampler
	i := 0
	for b.Loop() {
		out.Dst = batch[i%128*size:][:size]
		if err := r.Run(p, crop(400, 300, i), out); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
