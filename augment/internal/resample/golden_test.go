package resample

import (
	"encoding/binary"
	"encoding/json"
	"image/png"
	"math"
	"os"
	"testing"

	"shardtool/tensor"
)

// golden is a part of testdata/picture.png as another program resized it; see
// testdata/golden.py.
type golden struct {
	Filter        string
	Box           [4]float64
	Width, Height int
	RGB           []byte
}

func readGolden(t *testing.T, name string) (cases []golden) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// goldenPicture is the picture of testdata as planes of RGB.
func goldenPicture(t *testing.T) *Picture {
	t.Helper()
	f, err := os.Open("testdata/picture.png")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	p := &Picture{Count: 3}
	for i := range p.Planes {
		p.Planes[i] = Plane{Pix: make([]byte, w*h), Stride: w, X: whole(w), Y: whole(h)}
	}
	for y := range h {
		for x := range w {
			r, g, b, _ := img.At(x, y).RGBA()
			for i, v := range [3]uint32{r, g, b} {
				p.Planes[i].Pix[y*w+x] = byte(v >> 8)
			}
		}
	}
	return p
}

var byName = map[string]Filter{"nearest": Nearest, "bilinear": Bilinear, "bicubic": Bicubic, "lanczos": Lanczos}

// TestPillow allows one gray level, for Pillow rounds to 8 bits after each
// pass, and none where nothing is computed.
func TestPillow(t *testing.T) {
	p := goldenPicture(t)
	var r Resampler
	for _, c := range readGolden(t, "pillow.json") {
		g := &Geometry{Src: c.Box, Width: c.Width, Height: c.Height, Filter: byName[c.Filter], Antialias: true}
		out := &Output{DType: tensor.Uint8, NHWC: true, Dst: make([]byte, len(c.RGB))}
		if err := r.Run(p, g, out); err != nil {
			t.Fatal(err)
		}
		may := 1
		if g.Filter == Nearest {
			may = 0
		}
		for i, v := range out.Dst {
			if d := int(v) - int(c.RGB[i]); d < -may || d > may {
				t.Errorf("%s, %v to %d x %d: value %d is %d, Pillow has %d", c.Filter, c.Box, c.Width, c.Height, i, v, c.RGB[i])
				break
			}
		}
	}
}

// TestWithoutAntialias compares with floats: what is off is fixed point.
func TestWithoutAntialias(t *testing.T) {
	p := goldenPicture(t)
	for i := range p.Planes {
		for k, v := range p.Planes[i].Pix {
			p.Planes[i].Pix[k] = v/2 + 64
		}
	}
	var r Resampler
	for _, c := range readGolden(t, "opencv.json") {
		g := &Geometry{Src: c.Box, Width: c.Width, Height: c.Height, Filter: byName[c.Filter]}
		out := gray(g)
		out.NHWC = true
		if err := r.Run(p, g, out); err != nil {
			t.Fatal(err)
		}
		most := 0.0
		for i := range len(c.RGB) / 4 {
			want := float64(math.Float32frombits(binary.LittleEndian.Uint32(c.RGB[4*i:])))
			most = max(most, math.Abs(float32At(out.Dst, i)-want))
		}
		if most > 0.1 {
			t.Errorf("%s, %v to %d x %d: off by %.3f", c.Filter, c.Box, c.Width, c.Height, most)
		}
	}
}
