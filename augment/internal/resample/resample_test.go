package resample

import (
	"bytes"
	"errors"
	"image"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/internal/asmtest"
	"shardtool/internal/simd"
	"shardtool/tensor"
)

// anyGeometry draws a part, a size and a window.
func anyGeometry(t *rapid.T, width, height int) *Geometry {
	ends := func(name string, n int) (low, high float64) {
		a := rapid.IntRange(0, n-1).Draw(t, name+"0")
		b := rapid.IntRange(a+1, n).Draw(t, name+"1")
		if rapid.IntRange(0, 3).Draw(t, name+"fraction") > 0 {
			return float64(a), float64(b)
		}
		c := rapid.Float64Range(0, 0.49).Draw(t, name+"cut")
		return float64(a) + c, float64(b) - c
	}
	g := &Geometry{
		Width:     rapid.IntRange(1, 70).Draw(t, "to width"),
		Height:    rapid.IntRange(1, 70).Draw(t, "to height"),
		FlipX:     rapid.Bool().Draw(t, "flip x"),
		FlipY:     rapid.Bool().Draw(t, "flip y"),
		Filter:    Filter(rapid.IntRange(0, int(Lanczos)).Draw(t, "filter")),
		Antialias: rapid.Bool().Draw(t, "antialias"),
	}
	g.Src[0], g.Src[2] = ends("x", width)
	g.Src[1], g.Src[3] = ends("y", height)
	if rapid.Bool().Draw(t, "window") {
		x := rapid.IntRange(0, g.Width-1).Draw(t, "window x")
		y := rapid.IntRange(0, g.Height-1).Draw(t, "window y")
		g.Window = image.Rect(x, y, rapid.IntRange(x+1, g.Width).Draw(t, "window right"), rapid.IntRange(y+1, g.Height).Draw(t, "window bottom"))
	}
	return g
}

// anyPlane draws a plane of which just what g needs is in memory, between
// walls.
func anyPlane(t *rapid.T, g *Geometry, x, y Axis) Plane {
	p := Plane{X: x, Y: y}
	for _, a := range []struct {
		axis     *Axis
		vertical bool
	}{{&p.X, false}, {&p.Y, true}} {
		r, err := g.request(*a.axis, a.vertical)
		if err != nil {
			t.Fatal(err)
		}
		first, last := r.needs()
		a.axis.First, a.axis.Held = first, last-first
	}
	p.Stride = p.X.Held + rapid.SampledFrom([]int{0, 0, 1, 13}).Draw(t, "slack")
	p.Pix = asmtest.Walled(t, (p.Y.Held-1)*p.Stride+p.X.Held, rapid.Bool().Draw(t, "wall after"))
	seed := rapid.Uint64().Draw(t, "seed")
	for i := range p.Pix {
		seed = seed*6364136223846793005 + 1442695040888963407
		p.Pix[i] = byte(seed >> 56)
		if seed>>54&3 == 0 { // extremes are met often
			p.Pix[i] = byte(int8(p.Pix[i]) >> 7)
		}
	}
	return p
}

var anyRatio = rapid.SampledFrom([]struct {
	num, den int
	smooth   bool
}{{1, 1, false}, {2, 1, true}, {2, 1, true}, {2, 1, false}, {4, 1, false}, {4, 1, true}, {3, 2, false}, {4, 3, false}, {3, 1, false}})

// TestSIMD compares assembly with the generic Go bit by bit, on planes of
// which nothing may be read but what is needed, and into outputs beside which
// nothing may be written.
func TestSIMD(t *testing.T) {
	var fast, plain Resampler
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SampledFrom([]int{70, 70, 70, 600})
		width := rapid.IntRange(1, sizes.Draw(t, "up to")).Draw(t, "width")
		height := rapid.IntRange(1, sizes.Draw(t, "up to")).Draw(t, "height")
		g := anyGeometry(t, width, height)
		p := &Picture{Count: rapid.SampledFrom([]int{1, 3, 3}).Draw(t, "planes")}
		p.YCbCr = p.Count == 3 && rapid.Bool().Draw(t, "ycbcr")
		for i := range p.Count {
			x, y := anyRatio.Draw(t, "x"), anyRatio.Draw(t, "y")
			p.Planes[i] = anyPlane(t, g, axis(width, x.num, x.den, x.smooth), axis(height, y.num, y.den, y.smooth))
		}
		if p.Count == 3 && rapid.Bool().Draw(t, "alike") {
			p.Planes[2] = p.Planes[1]
		}
		out := &Output{
			DType:    rapid.SampledFrom([]tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Uint8}).Draw(t, "dtype"),
			NHWC:     rapid.Bool().Draw(t, "nhwc"),
			Channels: rapid.SampledFrom([]int{0, 3, 1}).Draw(t, "channels"),
			Scale:    [3]float32{0.0171, 0.0175, -0.0174},
			Bias:     [3]float32{-2.12, -2.04, 1.8},
		}
		w, h := g.Size()
		n := w * h * max(out.Channels, 3) * out.DType.Size()
		if out.Channels == 1 {
			n /= 3
		}
		var got [2][]byte
		for i, l := range []simd.Level{simd.Generic, simd.AVX2} {
			out.Dst = asmtest.Walled(t, n, rapid.Bool().Draw(t, "wall after"))
			undo := simd.SetLevel(l)
			err := []*Resampler{&plain, &fast}[i].Run(p, g, out)
			undo()
			if err != nil {
				t.Fatal(err)
			}
			got[i] = out.Dst
		}
		if !bytes.Equal(got[0], got[1]) {
			k := 0
			for got[0][k] == got[1][k] {
				k++
			}
			t.Fatalf("byte %d of %d: generic % x, assembly % x", k, n, got[0][k:min(k+8, n)], got[1][k:min(k+8, n)])
		}
	})
}

// TestStreamed has outputs large enough to pass the caches by, at places that
// suit that and at others.
func TestStreamed(t *testing.T) {
	p := photo(408, 308)
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		for _, nhwc := range []bool{false, true} {
			for _, off := range []int{0, 16, dtype.Size()} {
				var got [2][]byte
				for i, l := range []simd.Level{simd.Generic, simd.AVX2} {
					undo := simd.SetLevel(l)
					out := normalised(dtype, 224)
					size := len(out.Dst)
					memory := make([]byte, size+64)
					out.NHWC, out.Dst = nhwc, memory[off:]
					var r Resampler
					if err := r.Run(p, crop(400, 300, 3), out); err != nil {
						t.Fatal(err)
					}
					undo()
					got[i] = memory
				}
				if !bytes.Equal(got[0], got[1]) {
					t.Errorf("%v, %d bytes off: generic Go and assembly differ", dtype, off)
				}
			}
		}
	}
}

// TestWindowOfPlanes compares what is said to be needed with whole planes.
func TestWindowOfPlanes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width, height := rapid.IntRange(1, 70).Draw(t, "width"), rapid.IntRange(1, 70).Draw(t, "height")
		g := anyGeometry(t, width, height)
		whole, part := &Picture{Count: 1}, &Picture{Count: 1}
		x, y := anyRatio.Draw(t, "x"), anyRatio.Draw(t, "y")
		p := anyPlane(t, g, axis(width, x.num, x.den, x.smooth), axis(height, y.num, y.den, y.smooth))
		part.Planes[0] = p
		all := Plane{X: p.X, Y: p.Y, Stride: p.X.Total, Pix: bytes.Repeat([]byte{byte(rapid.IntRange(0, 255).Draw(t, "elsewhere"))}, p.X.Total*p.Y.Total)}
		all.X.First, all.X.Held, all.Y.First, all.Y.Held = 0, p.X.Total, 0, p.Y.Total
		for row := range p.Y.Held {
			copy(all.Pix[(p.Y.First+row)*all.Stride+p.X.First:][:p.X.Held], p.Pix[row*p.Stride:])
		}
		whole.Planes[0] = all
		var got [2][]byte
		for i, pic := range []*Picture{whole, part} {
			out := gray(g)
			var r Resampler
			if err := r.Run(pic, g, out); err != nil {
				t.Fatal(err)
			}
			got[i] = out.Dst
		}
		if !bytes.Equal(got[0], got[1]) {
			t.Fatalf("samples outside of %d+%d x %d+%d took part", p.X.First, p.X.Held, p.Y.First, p.Y.Held)
		}
	})
}

// TestConstant: weights sum to one, whatever the geometry, so that a picture
// of one color stays that color.
func TestConstant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width, height := rapid.IntRange(1, 300).Draw(t, "width"), rapid.IntRange(1, 300).Draw(t, "height")
		g := anyGeometry(t, width, height)
		x, y := anyRatio.Draw(t, "x"), anyRatio.Draw(t, "y")
		v := byte(rapid.IntRange(0, 255).Draw(t, "value"))
		p := &Picture{Count: 1}
		p.Planes[0].X, p.Planes[0].Y = axis(width, x.num, x.den, x.smooth), axis(height, y.num, y.den, y.smooth)
		p.Planes[0].Stride = p.Planes[0].X.Held
		p.Planes[0].Pix = bytes.Repeat([]byte{v}, p.Planes[0].X.Held*p.Planes[0].Y.Held)
		out := gray(g)
		var r Resampler
		if err := r.Run(p, g, out); err != nil {
			t.Fatal(err)
		}
		for i := range len(out.Dst) / 4 {
			if d := math.Abs(float32At(out.Dst, i) - float64(v)); d > 0.1 {
				t.Fatalf("value %d is off by %v", i, d)
			}
		}
	})
}

// TestOutputs has a picture of one pixel, whose values are known by hand:
// 200*0.5 - 100 = 0, 100*0.25 + 1 = 26, 7*-1 + 0.5 = -6.5.
func TestOutputs(t *testing.T) {
	p := &Picture{Count: 3}
	for i, v := range []byte{200, 100, 7} {
		p.Planes[i] = Plane{Pix: []byte{v}, Stride: 1, X: whole(1), Y: whole(1)}
	}
	g := &Geometry{Src: [4]float64{0, 0, 1, 1}, Width: 1, Height: 1, Filter: Bilinear, Antialias: true}
	for _, c := range []struct {
		dtype tensor.DType
		want  string
	}{
		{tensor.Float32, "\x00\x00\x00\x00\x00\x00\xd0\x41\x00\x00\xd0\xc0"},
		{tensor.Float16, "\x00\x00\x80\x4e\x80\xc6"},
		{tensor.BFloat16, "\x00\x00\xd0\x41\xd0\xc0"},
		{tensor.Uint8, "\xc8\x64\x07"},
	} {
		for _, nhwc := range []bool{false, true} {
			out := &Output{DType: c.dtype, NHWC: nhwc, Scale: [3]float32{0.5, 0.25, -1}, Bias: [3]float32{-100, 1, 0.5}, Dst: make([]byte, len(c.want))}
			var r Resampler
			if err := r.Run(p, g, out); err != nil {
				t.Fatal(err)
			}
			if string(out.Dst) != c.want {
				t.Errorf("%v: % x, want % x", c.dtype, out.Dst, c.want)
			}
		}
	}
}

// TestLuma: 0.299*200 + 0.587*100 + 0.114*7 = 119.298.
func TestLuma(t *testing.T) {
	p := &Picture{Count: 3}
	for i, v := range []byte{200, 100, 7} {
		p.Planes[i] = Plane{Pix: []byte{v}, Stride: 1, X: whole(1), Y: whole(1)}
	}
	g := &Geometry{Src: [4]float64{0, 0, 1, 1}, Width: 1, Height: 1, Filter: Bilinear}
	out := &Output{Channels: 1, Scale: [3]float32{1}, Dst: make([]byte, 4)}
	var r Resampler
	if err := r.Run(p, g, out); err != nil {
		t.Fatal(err)
	}
	if v := float32At(out.Dst, 0); math.Abs(v-119.298) > 0.02 {
		t.Errorf("luma %v", v)
	}
	p.YCbCr = true // plane 0 is it
	if err := r.Run(p, g, out); err != nil {
		t.Fatal(err)
	}
	if v := float32At(out.Dst, 0); v != 200 {
		t.Errorf("luma of YCbCr %v", v)
	}
}

func TestRefused(t *testing.T) {
	p, g, o := photo(20, 16), crop(8, 8, 0), normalised(tensor.Float32, 224)
	for _, c := range []struct {
		name string
		do   func(p *Picture, g *Geometry, o *Output)
		want string
	}{
		{"part outside", func(p *Picture, g *Geometry, o *Output) { g.Src[2] = 21 }, "a part from 0 to 21 of a picture of 20 pixels"},
		{"part empty", func(p *Picture, g *Geometry, o *Output) { g.Src[2] = 0 }, "a part from 0 to 0"},
		{"part not a number", func(p *Picture, g *Geometry, o *Output) { g.Src[1] = math.NaN() }, "a part [0 NaN"},
		{"no size", func(p *Picture, g *Geometry, o *Output) { g.Width = 0 }, "a resize to 0 x 224"},
		{"huge size", func(p *Picture, g *Geometry, o *Output) { g.Height = maxSize + 1 }, "a resize to 224 x"},
		{"window", func(p *Picture, g *Geometry, o *Output) { g.Window = image.Rect(0, 0, 225, 3) }, "a window (0,0)-(225,3)"},
		{"filter", func(p *Picture, g *Geometry, o *Output) { g.Filter = 9 }, "filter 9"},
		{"samples missing", func(p *Picture, g *Geometry, o *Output) { p.Planes[1].X.First, p.Planes[1].X.Held = 1, 9 }, "plane 1: samples 0 to 5 of the horizontal axis are needed, 1 to 10 are held"},
		{"rows missing", func(p *Picture, g *Geometry, o *Output) { p.Planes[0].Y.Held = 4 }, "plane 0: samples 0 to 8 of the vertical axis"},
		{"plane short", func(p *Picture, g *Geometry, o *Output) { p.Planes[2].Pix = p.Planes[2].Pix[1:] }, "plane 2: 10 x 8 samples"},
		{"stride", func(p *Picture, g *Geometry, o *Output) { p.Planes[0].Stride = 19 }, "plane 0: 20 x 16 samples, 19 bytes a row"},
		{"axis", func(p *Picture, g *Geometry, o *Output) { p.Planes[0].Y.Den = 0 }, "plane 0: axis"},
		{"planes", func(p *Picture, g *Geometry, o *Output) { p.Count = 2 }, "a picture of 2 planes"},
		{"output short", func(p *Picture, g *Geometry, o *Output) { o.Dst = o.Dst[1:] }, "an output of 602112 bytes into memory of 602111"},
		{"dtype", func(p *Picture, g *Geometry, o *Output) { o.DType = tensor.Int64 }, "an output of int64"},
		{"channels", func(p *Picture, g *Geometry, o *Output) { o.Channels = 4 }, "an output of 4 channels"},
		{"scale", func(p *Picture, g *Geometry, o *Output) { o.Scale[2] = float32(math.Inf(1)) }, "scale +Inf"},
	} {
		p, g, o := *p, *g, *o
		c.do(&p, &g, &o)
		var r Resampler
		err := r.Run(&p, &g, &o)
		if !errors.Is(err, format.ErrUsage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		for _, v := range o.Dst {
			if v != 0 {
				t.Errorf("%s: something was written", c.name)
				break
			}
		}
	}
}

func TestAllocatesNothing(t *testing.T) {
	p, o := photo(408, 308), normalised(tensor.Float32, 224)
	var r Resampler
	for _, filter := range []Filter{Nearest, Bilinear, Bicubic, Lanczos} {
		for _, nhwc := range []bool{false, true} {
			o.NHWC = nhwc
			i := 0
			run := func() {
				g := crop(400-i%50, 300-i%40, i)
				g.Filter = filter
				if err := r.Run(p, g, o); err != nil {
					t.Fatal(err)
				}
				i++
			}
			run()
			if n := testing.AllocsPerRun(20, run); n > 0 {
				t.Errorf("filter %d: %v allocations a picture", filter, n)
			}
		}
	}
}

// TestLongest has axes of the largest JPEG, of which one output weights all
// samples.
func TestLongest(t *testing.T) {
	for _, filter := range []Filter{Nearest, Bilinear, Bicubic, Lanczos} {
		for _, long := range []Axis{whole(65535), axis(65535, 2, 1, true), axis(65535, 4, 3, false)} {
			for _, upright := range []bool{false, true} {
				p := &Picture{Count: 1}
				p.Planes[0] = Plane{Pix: bytes.Repeat([]byte{200}, long.Held), Stride: long.Held, X: long, Y: whole(1)}
				g := &Geometry{Src: [4]float64{0, 0, 65535, 1}, Width: 1, Height: 1, Filter: filter, Antialias: true}
				if upright {
					p.Planes[0].Stride, p.Planes[0].X, p.Planes[0].Y = 1, whole(1), long
					g.Src = [4]float64{0, 0, 1, 65535}
				}
				out := gray(g)
				var r Resampler
				if err := r.Run(p, g, out); err != nil {
					t.Fatal(err)
				}
				if v := float32At(out.Dst, 0); math.Abs(v-200) > 0.1 {
					t.Errorf("filter %d, upright %v, %+v: %v", filter, upright, long, v)
				}
			}
		}
	}
}
