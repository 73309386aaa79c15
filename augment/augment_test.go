package augment_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	"shardtool/augment"
	"shardtool/format"
	"shardtool/tensor"
)

// The first outputs for seed 1234567, as published for SplitMix64 in several
// languages.
func TestStreamIsSplitMix64(t *testing.T) {
	s := augment.StreamOfState(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := s.Uint64(); got != want {
			t.Errorf("output %d is %d, want %d", i, got, want)
		}
	}
}

// On a square picture with ratio 1 the first try always fits: the area is
// uniform, the side its root, and the place uniform over what is left.
//
//	E[side]  = 1000 * integral of sqrt(s) / 0.92 over 0.08..1 = 1000 * (2/3)(1 - 0.08^1.5)/0.92 = 708.24
//	E[place] = (1000 - 708.24)/2 = 145.88
func TestCropsOfASquare(t *testing.T) {
	tr := compile(t, augment.RandomResizedCrop{Size: 8, Ratio: [2]float64{1, 1}})
	h := augment.Header{Width: 1000, Height: 1000}
	const n = 20000
	var area, side, left, top, flips float64
	for i := range n {
		p := tr.Plan(h, augment.Draws(i*7919))
		if !p.Crop.In(image.Rect(0, 0, 1000, 1000)) || p.Crop.Dx() != p.Crop.Dy() {
			t.Fatalf("crop %v", p.Crop)
		}
		area += float64(p.Crop.Dx()) * float64(p.Crop.Dy())
		side += float64(p.Crop.Dx())
		left += float64(p.Crop.Min.X)
		top += float64(p.Crop.Min.Y)
		if p.Flip {
			flips++
		}
	}
	for what, m := range map[string]struct{ got, want, within float64 }{
		"area": {area / n, 540_000, 10_000}, // standard error 265,600/sqrt(n) = 1878
		"side": {side / n, 708.24, 7},
		"left": {left / n, 145.88, 5},
		"top":  {top / n, 145.88, 5},
		"flip": {flips / n, 0.5, 0.018},
	} {
		if math.Abs(m.got-m.want) > m.within {
			t.Errorf("mean %s is %v, want %v", what, m.got, m.want)
		}
	}
}

// No part of an allowed ratio with 8% of the area fits into these, so that
// the central crop is taken; 10*4/3 = 13.33 and 10/(3/4) = 13.33.
func TestCentralCrop(t *testing.T) {
	tr := augment.ImageNetTrain(8)
	for _, tt := range []struct {
		width, height int
		want          image.Rectangle
	}{
		{1000, 10, image.Rect(493, 0, 506, 10)},
		{10, 1000, image.Rect(0, 493, 10, 506)},
		{65535, 1, image.Rect(32767, 0, 32768, 1)},
	} {
		for d := range augment.Draws(50) {
			if p := tr.Plan(augment.Header{Width: tt.width, Height: tt.height}, d); p.Crop != tt.want {
				t.Fatalf("crop of %dx%d is %v, want %v", tt.width, tt.height, p.Crop, tt.want)
			}
		}
	}
	if p := tr.Plan(augment.Header{Width: 1, Height: 1}, 0); p.Crop != image.Rect(0, 0, 1, 1) {
		t.Errorf("crop of one pixel is %v", p.Crop)
	}
}

func TestPlanDependsOnDrawsAlone(t *testing.T) {
	tr, h := augment.ImageNetTrain(224), augment.Header{Width: 500, Height: 375}
	if tr.Plan(h, 5) != augment.ImageNetTrain(224).Plan(h, 5) {
		t.Error("equal draws give different plans")
	}
	if tr.Plan(h, 5) == tr.Plan(h, 6) {
		t.Error("different draws give the same plan")
	}
	if n := testing.AllocsPerRun(100, func() { tr.Plan(h, 5) }); n != 0 {
		t.Errorf("Plan allocates %v times", n)
	}
}

// The reference is computed here in float64 in one pass: the triangle filter,
// as wide as the reduction, over the cropped picture. The general path rounds
// to 8 bits after each of its two passes, hence one grey level and a little.
func TestApplyAgainstFloat64(t *testing.T) {
	const size = 31
	for name, img := range map[string]image.Image{
		"gray":     grayPicture(97, 61),
		"color":    colorPicture(97, 61),
		"ycbcr420": ycbcrPicture(97, 61, image.YCbCrSubsampleRatio420),
		"ycbcr422": ycbcrPicture(97, 61, image.YCbCrSubsampleRatio422),
		"small":    colorPicture(9, 7),
	} {
		t.Run(name, func(t *testing.T) {
			w := augment.ImageNetTrain(size).WithDecoder(fake(img)).NewWorker(nil)
			var px augment.Pixels
			if err := w.Decode(&px, nil, img.Bounds()); err != nil {
				t.Fatal(err)
			}
			b := img.Bounds()
			for _, crop := range []image.Rectangle{b, image.Rect(1, 1, b.Dx(), b.Dy()), image.Rect(3, 2, b.Dx()-2, b.Dy()-1), image.Rect(5, 5, 6, 6)} {
				plain, mirrored := slot(size), slot(size)
				if err := w.Apply(plain, &px, &augment.Plan{Crop: crop}); err != nil {
					t.Fatal(err)
				}
				if err := w.Apply(mirrored, &px, &augment.Plan{Crop: crop, Flip: true}); err != nil {
					t.Fatal(err)
				}
				compare(t, plain.Float32(), reference(img, crop, size), size)
				for i, v := range mirrored.Float32() {
					if x := i % size; v != plain.Float32()[i-x+size-1-x] {
						t.Fatalf("%v: mirrored element %d differs", crop, i)
					}
				}
			}
		})
	}
}

func compare(t *testing.T, got []float32, want []float64, size int) {
	t.Helper()
	std := [3]float64{0.229, 0.224, 0.225}
	for i, v := range got {
		within := 1.3 / (255 * std[i/(size*size)])
		if math.Abs(float64(v)-want[i]) > within {
			t.Fatalf("element %d is %v, want %v within %v", i, v, want[i], within)
		}
	}
}

func reference(img image.Image, crop image.Rectangle, size int) []float64 {
	mean, std := [3]float64{0.485, 0.456, 0.406}, [3]float64{0.229, 0.224, 0.225}
	xs, ys := triangle(crop.Dx(), size), triangle(crop.Dy(), size)
	out := make([]float64, 3*size*size)
	for y := range size {
		for x := range size {
			var sum [3]float64
			for v, wy := range ys[y] {
				for u, wx := range xs[x] {
					r, g, b, _ := img.At(crop.Min.X+u, crop.Min.Y+v).RGBA()
					for c, s := range []uint32{r, g, b} {
						sum[c] += wy * wx * float64(s>>8)
					}
				}
			}
			for c := range 3 {
				out[(c*size+y)*size+x] = (sum[c]/255 - mean[c]) / std[c]
			}
		}
	}
	return out
}

// triangle returns, for each place of the result, the weight of each source.
func triangle(from, to int) []map[int]float64 {
	ratio := float64(from) / float64(to)
	width := max(ratio, 1)
	out := make([]map[int]float64, to)
	for i := range out {
		center := (float64(i)+0.5)*ratio - 0.5
		out[i] = map[int]float64{}
		var sum float64
		for u := range from {
			if w := 1 - math.Abs(float64(u)-center)/width; w > 0 {
				out[i][u] = w
				sum += w
			}
		}
		for u := range out[i] {
			out[i][u] /= sum
		}
	}
	return out
}

// (v/255 - mean)/std by hand for a flat picture of (255, 0, 128).
func TestNormalizeByHand(t *testing.T) {
	flat := image.NewNRGBA(image.Rect(0, 0, 5, 5))
	for i := 0; i < len(flat.Pix); i += 4 {
		copy(flat.Pix[i:], []byte{255, 0, 128, 7})
	}
	var data bytes.Buffer
	if err := png.Encode(&data, flat); err != nil {
		t.Fatal(err)
	}
	dst := slot(4)
	var px augment.Pixels
	if err := augment.ImageNetTrain(4).NewWorker(nil).Run(dst, &px, data.Bytes(), 3); err != nil {
		t.Fatal(err)
	}
	for c, want := range []float64{2.2489083, -2.0357143, 0.4264924} {
		for _, v := range dst.Float32()[c*16 : (c+1)*16] {
			if math.Abs(float64(v)-want) > 1e-6 {
				t.Fatalf("channel %d has %v, want %v", c, v, want)
			}
		}
	}
}

func TestApplyRefusesACropOutside(t *testing.T) {
	img := colorPicture(9, 7)
	w := augment.ImageNetTrain(4).WithDecoder(fake(img)).NewWorker(nil)
	var px augment.Pixels
	_ = w.Decode(&px, nil, img.Bounds())
	for _, crop := range []image.Rectangle{{}, image.Rect(0, 0, 10, 7), image.Rect(-1, 0, 5, 5)} {
		if err := w.Apply(slot(4), &px, &augment.Plan{Crop: crop}); !errors.Is(err, format.ErrUsage) {
			t.Errorf("crop %v: %v", crop, err)
		}
	}
}

func TestCompile(t *testing.T) {
	crop, flip, norm := augment.RandomResizedCrop{Size: 8}, augment.RandomHorizontalFlip{P: 0.5}, augment.ImageNetNormalize
	nan := math.NaN()
	for _, tt := range []struct {
		name string
		ops  []augment.Op
		want error
	}{
		{"train", []augment.Op{crop, flip, norm}, nil},
		{"no flip", []augment.Op{crop, norm}, nil},
		{"nothing", nil, format.ErrUnsupported},
		{"no normalise", []augment.Op{crop, flip}, format.ErrUnsupported},
		{"no crop", []augment.Op{flip, norm}, format.ErrUnsupported},
		{"order", []augment.Op{crop, norm, flip}, format.ErrUnsupported},
		{"twice", []augment.Op{crop, crop, norm}, format.ErrUnsupported},
		{"size", []augment.Op{augment.RandomResizedCrop{}, norm}, format.ErrUsage},
		{"huge", []augment.Op{augment.RandomResizedCrop{Size: 1 << 20}, norm}, format.ErrUsage},
		{"scale", []augment.Op{augment.RandomResizedCrop{Size: 8, Scale: [2]float64{0.5, 1.1}}, norm}, format.ErrUsage},
		{"scale nan", []augment.Op{augment.RandomResizedCrop{Size: 8, Scale: [2]float64{nan, 1}}, norm}, format.ErrUsage},
		{"ratio", []augment.Op{augment.RandomResizedCrop{Size: 8, Ratio: [2]float64{2, 1}}, norm}, format.ErrUsage},
		{"p", []augment.Op{crop, augment.RandomHorizontalFlip{P: nan}, norm}, format.ErrUsage},
		{"std", []augment.Op{crop, augment.Normalize{}}, format.ErrUsage},
	} {
		tr, err := augment.Compile(tt.ops...)
		if !errors.Is(err, tt.want) || err != nil && tt.want == nil {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if err == nil && (tr.Shape().String() != "[3 8 8]" || tr.DType() != tensor.Float32) {
			t.Errorf("%s: %v of %v", tt.name, tr.Shape(), tr.DType())
		}
	}
}

func TestLimits(t *testing.T) {
	var large bytes.Buffer
	if err := jpeg.Encode(&large, image.NewGray(image.Rect(0, 0, 100, 100)), nil); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		pixels int64
		want   error
	}{{9999, format.ErrLimit}, {10000, nil}} {
		var px augment.Pixels
		err := augment.Standard(&format.Limits{Pixels: tt.pixels}).Decode(&px, large.Bytes(), image.Rect(0, 0, 100, 100))
		if !errors.Is(err, tt.want) || err != nil && tt.want == nil {
			t.Errorf("limit %d: %v", tt.pixels, err)
		}
	}
}

// A claim that its bytes cannot hold costs no memory.
func TestClaimsCostNothing(t *testing.T) {
	for _, name := range []string{"d8_jpeg_65535.jpg", "d8_png_65535.png"} {
		data := read(t, name)
		dec := augment.Standard(&format.Limits{Pixels: math.MaxInt64})
		var px augment.Pixels
		n := testing.AllocsPerRun(10, func() {
			if err := dec.Decode(&px, data, image.Rect(0, 0, 1, 1)); !errors.Is(err, format.ErrTruncated) {
				t.Errorf("%s: %v", name, err)
			}
		})
		if n > 10 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestHeaderAllocatesNothing(t *testing.T) {
	for _, name := range []string{"d7_rgb.jpg", "d7_rgba.png"} {
		data, dec := read(t, name), augment.Standard(nil)
		if n := testing.AllocsPerRun(100, func() { _, _ = dec.Header(data) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for in, want := range map[string]error{
		"":                            format.ErrTruncated,
		"\xff":                        format.ErrTruncated,
		"\xff\xd8":                    format.ErrTruncated,
		"\x89PN":                      format.ErrTruncated,
		"hello, world":                format.ErrWrongFormat,
		"\x1f\x8b\x08\x00":            format.ErrWrongFormat,
		"GIF89a":                      format.ErrUnsupported,
		"\xff\xd8\xff\xd9\xff\xd9":    format.ErrCorrupt,
		"\xff\xd8\xff\xe0\x00\x01..":  format.ErrCorrupt,
		"\xff\xd8\xff\xe0\x00\x10abc": format.ErrTruncated,
	} {
		var px augment.Pixels
		err := augment.Standard(nil).Decode(&px, []byte(in), image.Rect(0, 0, 1, 1))
		if !errors.Is(err, want) || format.Sentinel(err) != want {
			t.Errorf("%q: %v, want %v", in, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(casesDir, "image", "*.[jp][pn]g"))
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint64(len(data)))
	}
	w := augment.ImageNetTrain(16).NewWorker(&format.Limits{Pixels: 1 << 20})
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		var px augment.Pixels
		dst := slot(16)
		err := w.Run(dst, &px, data, augment.Draws(seed))
		if err != nil && format.Sentinel(err) == nil {
			t.Errorf("%v is of no class", err)
		}
		if err != nil {
			return
		}
		for i, v := range dst.Float32() {
			if !(v >= -2.2 && v <= 2.7) {
				t.Fatalf("element %d is %v", i, v)
			}
		}
	})
}

func BenchmarkRun(b *testing.B) {
	var data bytes.Buffer
	if err := jpeg.Encode(&data, ycbcrPicture(500, 375, image.YCbCrSubsampleRatio420), &jpeg.Options{Quality: 92}); err != nil {
		b.Fatal(err)
	}
	w := augment.ImageNetTrain(224).NewWorker(nil)
	var px augment.Pixels
	dst := slot(224)
	b.ReportAllocs()
	b.SetBytes(int64(data.Len()))
	for i := 0; b.Loop(); i++ {
		if err := w.Run(dst, &px, data.Bytes(), augment.Draws(i)); err != nil {
			b.Fatal(err)
		}
	}
}

// fakeDecoder gives one picture, in the layout it has.
type fakeDecoder struct{ img image.Image }

func fake(img image.Image) augment.NewDecoder {
	return func(*format.Limits) augment.Decoder { return fakeDecoder{img} }
}

func (f fakeDecoder) Header([]byte) (augment.Header, error) {
	return augment.Header{Width: f.img.Bounds().Dx(), Height: f.img.Bounds().Dy()}, nil
}

func (f fakeDecoder) Decode(px *augment.Pixels, _ []byte, _ image.Rectangle) error {
	px.Rect, px.Planes = f.img.Bounds(), [3]augment.Plane{}
	switch img := f.img.(type) {
	case *image.Gray:
		px.Layout, px.Planes[0] = augment.Gray, augment.Plane{Pix: img.Pix, Stride: img.Stride}
	case *image.YCbCr:
		px.Layout, px.Ratio = augment.YCbCr, img.SubsampleRatio
		px.Planes = [3]augment.Plane{{Pix: img.Y, Stride: img.YStride}, {Pix: img.Cb, Stride: img.CStride}, {Pix: img.Cr, Stride: img.CStride}}
	case *image.NRGBA:
		px.Layout, px.Planes[0] = augment.RGBX, augment.Plane{Pix: img.Pix, Stride: img.Stride}
	}
	return nil
}

func compile(t *testing.T, crop augment.Op) *augment.Transform {
	t.Helper()
	tr, err := augment.Compile(crop, augment.RandomHorizontalFlip{P: 0.5}, augment.ImageNetNormalize)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func slot(size int) tensor.Dense {
	var p tensor.Pool
	return tensor.View(tensor.Float32, tensor.Shape{3, size, size}, p.Get(12*size*size).Bytes())
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(casesDir, "image", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func wave(x, y, k int) uint8 {
	return uint8(127.5 + 127.4*math.Sin(float64(x*(k+1))/7+float64(y*(3-k))/5))
}

func grayPicture(w, h int) image.Image {
	img := image.NewGray(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.SetGray(x, y, color.Gray{Y: wave(x, y, 1)})
		}
	}
	return img
}

func colorPicture(w, h int) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.SetNRGBA(x, y, color.NRGBA{R: wave(x, y, 0), G: wave(x, y, 1), B: wave(x, y, 2), A: 255})
		}
	}
	return img
}

func ycbcrPicture(w, h int, ratio image.YCbCrSubsampleRatio) image.Image {
	img := image.NewYCbCr(image.Rect(0, 0, w, h), ratio)
	for y := range h {
		for x := range w {
			img.Y[img.YOffset(x, y)] = wave(x, y, 0)
			img.Cb[img.COffset(x, y)] = wave(x, y, 1)
			img.Cr[img.COffset(x, y)] = wave(x, y, 2)
		}
	}
	return img
}
