package resample

import (
	"encoding/binary"
	"image"
	"math"
	"math/rand/v2"
	"testing"

	"shardtool/tensor"
)

// matrix is a linear map in float64, row by row.
type matrix [][]float64

func newMatrix(rows, columns int) matrix {
	m := make(matrix, rows)
	for i := range m {
		m[i] = make([]float64, columns)
	}
	return m
}

func (m matrix) times(n matrix) matrix {
	out := newMatrix(len(m), len(n[0]))
	for i, row := range m {
		for k, v := range row {
			if v == 0 {
				continue
			}
			for j, w := range n[k] {
				out[i][j] += v * w
			}
		}
	}
	return out
}

func (m matrix) transposed() matrix {
	out := newMatrix(len(m[0]), len(m))
	for i, row := range m {
		for j, v := range row {
			out[j][i] = v
		}
	}
	return out
}

// raised maps the samples of an axis to pixels, written from the words of
// libjpeg's jdsample.c for 2 to 1 and from the definition for the rest.
func raised(a Axis) matrix {
	m := newMatrix(a.Pixels, a.Total)
	for p := range m {
		switch {
		case a.Num == 1 && a.Den == 1:
			m[p][p] = 1
		case a.Num == 2 && a.Den == 1 && a.Smooth:
			near, far := p/2, p/2-1
			if p%2 == 1 {
				far = p/2 + 1
			}
			if far < 0 || far >= a.Total {
				far = near
			}
			m[p][near] += 0.75
			m[p][far] += 0.25
		case a.Num%a.Den == 0 && !a.Smooth:
			m[p][p/(a.Num/a.Den)] = 1
		default:
			at := (float64(p)+0.5)*float64(a.Den)/float64(a.Num) - 0.5
			at = min(max(at, 0), float64(a.Total-1))
			k := min(int(at), a.Total-1)
			m[p][k] += 1 - (at - float64(k))
			if at > float64(k) {
				m[p][k+1] += at - float64(k)
			}
		}
	}
	return m
}

// resized maps a part low to high of pixels to size, as Pillow's Resample.c
// does.
func resized(pixels, low, high, size int, f Filter) matrix {
	m := newMatrix(size, pixels)
	scale := float64(high-low) / float64(size)
	widened := max(scale, 1)
	support := map[Filter]float64{Bilinear: 1, Bicubic: 2, Lanczos: 3}[f] * widened
	for o := range m {
		center := (float64(o) + 0.5) * scale
		if f == Nearest {
			m[o][low+int(center)] = 1
			continue
		}
		first := max(int(center-support+0.5), 0)
		last := min(int(center+support+0.5), high-low)
		sum := 0.0
		for x := first; x < last; x++ {
			d := math.Abs(float64(x)-center+0.5) / widened
			v := 0.0
			switch {
			case f == Bilinear && d < 1:
				v = 1 - d
			case f == Bicubic && d < 1:
				v = 1.5*d*d*d - 2.5*d*d + 1
			case f == Bicubic && d < 2:
				v = -0.5*d*d*d + 2.5*d*d - 4*d + 2
			case f == Lanczos && d == 0:
				v = 1
			case f == Lanczos && d < 3:
				v = 3 * math.Sin(math.Pi*d) * math.Sin(math.Pi*d/3) / (math.Pi * math.Pi * d * d)
			}
			m[o][low+x] = v
			sum += v
		}
		for x := range m[o] {
			m[o][x] /= sum
		}
	}
	return m
}

func values(p *Plane) matrix {
	m := newMatrix(p.Y.Total, p.X.Total)
	for y := range p.Y.Held {
		for x := range p.X.Held {
			m[p.Y.First+y][p.X.First+x] = float64(p.Pix[y*p.Stride+x])
		}
	}
	return m
}

// exact is Run in float64 without a rounding and without limiting values
// before color is converted: three planes of the window.
func exact(p *Picture, g *Geometry) [3]matrix {
	var c [3]matrix
	for i := range p.Count {
		plane := &p.Planes[i]
		across := resized(plane.X.Pixels, int(g.Src[0]), int(g.Src[2]), g.Width, g.Filter).times(raised(plane.X))
		down := resized(plane.Y.Pixels, int(g.Src[1]), int(g.Src[3]), g.Height, g.Filter).times(raised(plane.Y))
		c[i] = down.times(values(plane)).times(across.transposed())
	}
	if p.Count == 1 {
		c[1], c[2] = c[0], c[0]
	}
	win := g.window()
	var out [3]matrix
	for i := range out {
		out[i] = newMatrix(win.Dy(), win.Dx())
		for y := range out[i] {
			for x := range out[i][y] {
				sy, sx := win.Min.Y+y, win.Min.X+x
				if g.FlipX {
					sx = win.Max.X - 1 - x
				}
				if g.FlipY {
					sy = win.Max.Y - 1 - y
				}
				v := c[i][sy][sx]
				if p.YCbCr {
					l, b, r := c[0][sy][sx], c[1][sy][sx]-128, c[2][sy][sx]-128
					v = [3]float64{l + 1.402*r, l - 0.344136*b - 0.714136*r, l + 1.772*b}[i]
				}
				out[i][y][x] = min(max(v, 0), 255)
			}
		}
	}
	return out
}

// gray is an output of Float32 in gray levels, plane after plane.
func gray(g *Geometry) *Output {
	w, h := g.Size()
	return &Output{DType: tensor.Float32, Scale: [3]float32{1, 1, 1}, Dst: make([]byte, 4*3*w*h)}
}

func float32At(b []byte, i int) float64 {
	return float64(math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:])))
}

// furthest returns the largest difference from the exact result.
func furthest(t *testing.T, p *Picture, g *Geometry) float64 {
	t.Helper()
	out := gray(g)
	var r Resampler
	if err := r.Run(p, g, out); err != nil {
		t.Fatalf("%+v: %v", g, err)
	}
	want := exact(p, g)
	most, i := 0.0, 0
	for c := range want {
		for y := range want[c] {
			for x := range want[c][y] {
				most = max(most, math.Abs(float32At(out.Dst, i)-want[c][y][x]))
				i++
			}
		}
	}
	return most
}

// whole is the axis of a plane that has one sample to a pixel.
func whole(pixels int) Axis { return axis(pixels, 1, 1, false) }

func axis(pixels, num, den int, smooth bool) Axis {
	n := (pixels*den + num - 1) / num
	return Axis{Pixels: pixels, Num: num, Den: den, Smooth: smooth, Total: n, Held: n}
}

// noise is a picture of random samples, sampled by each of the ratios.
func noise(r *rand.Rand, width, height int, ycbcr bool, x, y [2]int) *Picture {
	p := &Picture{Count: 3, YCbCr: ycbcr}
	p.Planes[0] = plane(r, whole(width), whole(height))
	for i := 1; i < 3; i++ {
		p.Planes[i] = plane(r, axis(width, x[0], x[1], x == [2]int{2, 1}), axis(height, y[0], y[1], y == [2]int{2, 1}))
	}
	return p
}

func TestAgainstFloat64(t *testing.T) {
	ratios := [][2]int{{1, 1}, {2, 1}, {4, 1}, {3, 1}, {3, 2}, {4, 3}}
	sizes := []struct {
		width, height int
		src           [4]float64
		to            [2]int
	}{
		{40, 30, [4]float64{0, 0, 40, 30}, [2]int{22, 22}},
		{61, 47, [4]float64{3, 5, 60, 46}, [2]int{23, 31}},
		{61, 47, [4]float64{20, 11, 31, 22}, [2]int{37, 40}},
		{33, 20, [4]float64{5, 0, 33, 20}, [2]int{28, 20}},
		{200, 150, [4]float64{1, 1, 199, 148}, [2]int{9, 5}},
		{300, 300, [4]float64{7, 0, 300, 299}, [2]int{40, 33}},
		{9, 5, [4]float64{0, 0, 9, 5}, [2]int{70, 33}},
		{1, 1, [4]float64{0, 0, 1, 1}, [2]int{3, 2}},
		{7, 3, [4]float64{2, 1, 3, 2}, [2]int{1, 1}},
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, filter := range []Filter{Nearest, Bilinear} {
		for _, x := range ratios {
			for _, y := range ratios {
				for _, s := range sizes {
					p := noise(r, s.width, s.height, x != y || x[0] > 1, x, y)
					g := &Geometry{Src: s.src, Width: s.to[0], Height: s.to[1], Filter: filter, Antialias: true, FlipX: r.IntN(2) == 0, FlipY: r.IntN(2) == 0}
					if d := furthest(t, p, g); d > 0.1 {
						t.Errorf("filter %d, ratios %v %v, %+v: off by %.3f", filter, x, y, s, d)
					}
				}
			}
		}
	}
}

// TestLobes compares the filters that overshoot, which keep one bit fewer, on
// planes from 96 to 160, for which nothing is limited on the way.
func TestLobes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, filter := range []Filter{Bicubic, Lanczos} {
		for _, size := range [][4]int{{40, 30, 22, 22}, {61, 47, 90, 70}, {100, 300, 9, 10}, {5, 4, 33, 34}} {
			p := noise(r, size[0], size[1], true, [2]int{2, 1}, [2]int{2, 1})
			for i := range p.Planes {
				for k, v := range p.Planes[i].Pix {
					p.Planes[i].Pix[k] = 96 + v/4
				}
			}
			w, h := size[0], size[1]
			g := &Geometry{Src: [4]float64{0, 0, float64(w), float64(h)}, Width: size[2], Height: size[3], Filter: filter, Antialias: true}
			if d := furthest(t, p, g); d > 0.15 {
				t.Errorf("filter %d, %v: off by %.3f", filter, size, d)
			}
		}
	}
}

// TestExact has parts that are not resized: each sample comes out as it is.
func TestExact(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	p := noise(r, 53, 37, false, [2]int{1, 1}, [2]int{1, 1})
	for _, filter := range []Filter{Nearest, Bilinear, Bicubic, Lanczos} {
		for _, antialias := range []bool{false, true} {
			g := &Geometry{Src: [4]float64{2, 3, 50, 31}, Width: 48, Height: 28, Filter: filter, Antialias: antialias,
				Window: image.Rect(1, 2, 40, 27)}
			out := gray(g)
			var s Resampler
			if err := s.Run(p, g, out); err != nil {
				t.Fatal(err)
			}
			i := 0
			for c := range 3 {
				for y := 5; y < 30; y++ {
					for x := 3; x < 42; x++ {
						if got, want := float32At(out.Dst, i), float64(p.Planes[c].Pix[y*53+x]); got != want {
							t.Fatalf("filter %d: channel %d at %d,%d: %v, want %v", filter, c, x, y, got, want)
						}
						i++
					}
				}
			}
		}
	}
}
