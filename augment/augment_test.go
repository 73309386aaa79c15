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
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shardtool/augment"
	"shardtool/format"
	"shardtool/tensor"
)

// On a square picture with ratio 1 the first try always fits: the area is
// uniform, the side its root, and the place uniform over what is left.
//
//	E[side]  = 1000 * integral of sqrt(s) / 0.92 over 0.08..1 = 1000 * (2/3)(1 - 0.08^1.5)/0.92 = 708.24
//	E[place] = (1000 - 708.24)/2 = 145.88
func TestCropsOfASquare(t *testing.T) {
	tr := compile(t, augment.RandomResizedCrop{Size: 8, Ratio: [2]float64{1, 1}}, augment.RandomHorizontalFlip{P: 0.5}, augment.ImageNetNormalize)
	h := augment.Header{Width: 1000, Height: 1000}
	const n = 20000
	var area, side, left, top, flips float64
	for i := range n {
		p := tr.Plan(h, augment.Draws(i*7919))
		if !p.Crop.In(image.Rect(0, 0, 1000, 1000)) || p.Crop.Dx() != p.Crop.Dy() || p.Crop != p.Ops()[0].Rect {
			t.Fatalf("crop %v", p.Crop)
		}
		area += float64(p.Crop.Dx()) * float64(p.Crop.Dy())
		side += float64(p.Crop.Dx())
		left += float64(p.Crop.Min.X)
		top += float64(p.Crop.Min.Y)
		if p.Ops()[1].Active {
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

var everything = []augment.Op{
	augment.RandomResizedCrop{Size: 40}, augment.RandomVerticalFlip{}, augment.RandomCrop{Size: 32, Padding: augment.AllEdges(4)},
	augment.ColorJitter{Brightness: 0.4, Contrast: 0.3, Saturation: 0.2, Hue: 0.1}, augment.RandomGrayscale{P: 0.2},
	augment.GaussianBlur{KernelSize: 5}, augment.RandomRotation{Degrees: 30}, augment.RandAugment{NumOps: 3},
	augment.TrivialAugmentWide{}, augment.ImageNetNormalize, augment.RandomErasing{P: 0.7, Random: true},
}

func TestPlanDependsOnDrawsAlone(t *testing.T) {
	h := augment.Header{Width: 500, Height: 375}
	for _, ops := range [][]augment.Op{{augment.RandomResizedCrop{Size: 224}, augment.RandomHorizontalFlip{}}, everything} {
		tr := compile(t, ops...)
		if tr.Plan(h, 5) != compile(t, ops...).Plan(h, 5) {
			t.Error("equal draws give different plans")
		}
		if tr.Plan(h, 5) == tr.Plan(h, 6) {
			t.Error("different draws give the same plan")
		}
		if n := testing.AllocsPerRun(100, func() { tr.Plan(h, 5) }); n != 0 {
			t.Errorf("Plan allocates %v times", n)
		}
	}
}

// Means of what is drawn, with bounds of four standard errors, by hand: a
// uniform number from a to b has a variance of (b-a)^2/12, a yes or no of
// p(1-p).
func TestDraws(t *testing.T) {
	tr := compile(t,
		augment.RandomCrop{Size: 32},
		augment.ColorJitter{Brightness: 0.4, ContrastBetween: [2]float64{1, 3}, Hue: 0.5},
		augment.RandomGrayscale{}, augment.GaussianBlur{KernelSize: 3}, augment.RandomRotation{Degrees: 30},
		augment.TrivialAugmentWide{}, augment.RandAugment{}, augment.RandomErasing{Scale: [2]float64{0.1, 0.2}, Ratio: [2]float64{1, 1}},
	)
	const n = 20000
	sums := map[string]float64{}
	for i := range n {
		p := tr.Plan(augment.Header{Width: 132, Height: 62}, augment.Draws(i)*0x9e3779b97f4a7c15)
		ops := p.Ops()
		for what, v := range map[string]float64{
			"left":       float64(ops[0].Rect.Min.X),
			"top":        float64(ops[0].Rect.Min.Y),
			"brightness": ops[1].Factor[0],
			"contrast":   ops[1].Factor[1],
			"saturation": ops[1].Factor[2],
			"hue":        ops[1].Factor[3],
			"first":      float64(ops[1].Order[0]),
			"last":       float64(ops[1].Order[3]),
			"gray":       yes(ops[2].Active),
			"sigma":      ops[3].Factor[0],
			"angle":      ops[4].Factor[0],
			"wide":       float64(ops[5].Choice),
			"rand 1":     float64(ops[6].Choice),
			"rand 2":     float64(ops[7].Choice),
			"rand same":  yes(ops[6].Choice == ops[7].Choice),
			"erase":      yes(ops[8].Active),
			"erase area": float64(ops[8].Rect.Dx()*ops[8].Rect.Dy()) / (32 * 32),
		} {
			sums[what] += v
		}
	}
	root := math.Sqrt(n)
	for what, m := range map[string][2]float64{ // mean, standard deviation
		"left":       {50, 101 / math.Sqrt(12)},
		"top":        {15, 31 / math.Sqrt(12)},
		"brightness": {1, 0.8 / math.Sqrt(12)},
		"contrast":   {2, 2 / math.Sqrt(12)},
		"saturation": {0, 0},
		"hue":        {0, 1 / math.Sqrt(12)},
		"first":      {1.5, math.Sqrt(1.25)},
		"last":       {1.5, math.Sqrt(1.25)},
		"gray":       {0.1, 0.3},
		"sigma":      {1.05, 1.9 / math.Sqrt(12)},
		"angle":      {0, 60 / math.Sqrt(12)},
		"wide":       {6.5, math.Sqrt(195.0 / 12)},
		"rand 1":     {6.5, math.Sqrt(195.0 / 12)},
		"rand 2":     {6.5, math.Sqrt(195.0 / 12)},
		"rand same":  {1.0 / 14, math.Sqrt(13) / 14},
		"erase":      {0.5, 0.5},
		"erase area": {0.075, 0.09}, // half of 0.15; rounding to whole pixels moves it less than that
	} {
		if got := sums[what] / n; math.Abs(got-m[0]) > 4*m[1]/root {
			t.Errorf("mean %s is %v, want %v within %v", what, got, m[0], 4*m[1]/root)
		}
	}
}

// Never is zero where zero is the default.
func TestNever(t *testing.T) {
	tr := compile(t, augment.CenterCrop{Size: 8},
		augment.RandomHorizontalFlip{P: augment.Never}, augment.RandomVerticalFlip{P: augment.Never}, augment.RandomGrayscale{P: augment.Never},
		augment.RandAugment{Magnitude: augment.Never}, augment.RandomErasing{P: augment.Never})
	none := compile(t, augment.CenterCrop{Size: 8}, augment.RandAugment{NumOps: augment.Never})
	for d := range augment.Draws(2000) {
		p := tr.Plan(augment.Header{Width: 20, Height: 20}, d)
		for _, op := range p.Ops()[1:] {
			switch {
			case op.Op != "RandAugment" && op.Active:
				t.Fatalf("%v is done", op)
			case op.Op != "RandAugment" || op.Choice.String() == "Posterize" && op.Factor[0] == 8 || op.Choice.String() == "Solarize" && op.Factor[0] == 1:
			case op.Factor[0] != 0:
				t.Fatalf("%v has a strength", op)
			}
		}
		if p := none.Plan(augment.Header{Width: 20, Height: 20}, d); len(p.Ops()) != 1 {
			t.Fatalf("operations %v", p.Ops())
		}
		mixed, err := augment.MixUp{Alpha: augment.Never}.Draw(d)
		cut, err2 := augment.CutMix{Alpha: augment.Never}.Draw(d, 9, 7)
		if err := errors.Join(err, err2); err != nil || mixed.Lambda != 1 || cut.Lambda != 1 || !cut.Box.Empty() {
			t.Fatal(mixed, cut, err)
		}
	}
}

// A size that is within the bounds of results is one of the presets'; 7500 for
// the result is 8571 for the shorter side.
func TestPresetSizes(t *testing.T) {
	for _, preset := range []func(int) *augment.Transform{augment.ImageNetTrain, augment.ImageNetEval} {
		for size, panics := range map[int]bool{-1: true, 0: true, 1: false, 7500: false, 8192: false, 8193: true, math.MaxInt: true} {
			func() {
				defer func() {
					if got := recover() != nil; got != panics {
						t.Errorf("size %d: panic %v", size, got)
					}
				}()
				if tr := preset(size); !slices.Equal(tr.Shape(), tensor.Shape{3, size, size}) {
					t.Errorf("size %d: %v", size, tr.Shape())
				}
			}()
		}
	}
	p := augment.ImageNetEval(7500).Plan(augment.Header{Width: 1200, Height: 800}, 0)
	// (12856-7500)/2 = 2678 of 12856 columns and (8571-7500)/2 = 535.5 of 8571
	// rows are left at each side; 10.71 of them are a pixel of the picture. The
	// filter reaches a little further.
	if want := image.Rect(250, 50, 950, 750); !want.In(p.Crop) || !p.Crop.In(want.Inset(-4)) {
		t.Errorf("crop %v, want about %v", p.Crop, want)
	}
}

func yes(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Beta(a, a) has the mean 1/2 and the variance 1/(4(2a+1)); a normal deviate 0
// and 1.
func TestDeviates(t *testing.T) {
	const n = 20000
	for _, a := range []float64{1e-3, 0.2, 1, 2, 30} {
		var sum, square float64
		s := augment.Draws(9).Stream(0)
		for range n {
			v := s.Beta(a)
			if !(v >= 0 && v <= 1) {
				t.Fatalf("Beta(%v) is %v", a, v)
			}
			sum += v
			square += (v - 0.5) * (v - 0.5)
		}
		variance := 1 / (4 * (2*a + 1))
		if math.Abs(sum/n-0.5) > 4*math.Sqrt(variance/n) || math.Abs(square/n-variance) > 0.05*variance {
			t.Errorf("Beta(%v): mean %v, variance %v, want 0.5, %v", a, sum/n, square/n, variance)
		}
	}
	var sum, square float64
	s := augment.Draws(10).Stream(0)
	for range n {
		v := s.Normal()
		sum += v
		square += v * v
	}
	// The square of a normal deviate has a variance of 2.
	if math.Abs(sum/n) > 4/math.Sqrt(n) || math.Abs(square/n-1) > 4*math.Sqrt(2.0/n) {
		t.Errorf("normal: mean %v, variance %v", sum/n, square/n)
	}
}

// The share that CutMix leaves is what its rectangle does.
func TestCutMixDraw(t *testing.T) {
	for d := range augment.Draws(500) {
		m, err := augment.CutMix{}.Draw(d, 50, 30)
		if err != nil {
			t.Fatal(err)
		}
		if !m.Box.In(image.Rect(0, 0, 50, 30)) {
			t.Fatalf("rectangle %v", m.Box)
		}
		if want := 1 - float64(m.Box.Dx()*m.Box.Dy())/1500; math.Abs(m.Lambda-want) > 1e-12 {
			t.Fatalf("lambda %v, want %v", m.Lambda, want)
		}
	}
}

// The reference is computed here in float64 in one pass: the triangle filter,
// as wide as the reduction, over the cropped picture as it is in RGB of 8 bits.
// Where chroma is subsampled or colors lie beyond RGB, upsampling and clamping
// before or after the filter make a difference.
func TestApplyAgainstFloat64(t *testing.T) {
	const size = 31
	for name, tt := range map[string]struct {
		img    image.Image
		within float64 // grey levels
	}{
		"gray":     {grayPicture(97, 61), 0.2},
		"color":    {colorPicture(97, 61), 0.2},
		"ycbcr444": {ycbcrPicture(97, 61, image.YCbCrSubsampleRatio444), 1},
		"ycbcr420": {ycbcrPicture(97, 61, image.YCbCrSubsampleRatio420), 1.6},
		"ycbcr422": {ycbcrPicture(97, 61, image.YCbCrSubsampleRatio422), 1.6},
		"small":    {colorPicture(9, 7), 0.2},
	} {
		t.Run(name, func(t *testing.T) {
			b := tt.img.Bounds()
			px := pixelsOf(tt.img)
			rgb := image.NewNRGBA(b)
			line := make([]byte, 3*b.Dx())
			for y := range b.Dy() {
				px.WriteRGB(line, 3*b.Dx(), image.Rect(0, y, b.Dx(), y+1))
				for x := range b.Dx() {
					rgb.SetNRGBA(x, y, color.NRGBA{line[3*x], line[3*x+1], line[3*x+2], 255})
				}
			}
			for d := range augment.Draws(12) {
				tr := augment.ImageNetTrain(size)
				p := tr.Plan(augment.Header{Width: b.Dx(), Height: b.Dy()}, d)
				dst := slot(size)
				if err := tr.NewWorker(nil).Apply(dst, px, &p); err != nil {
					t.Fatal(err)
				}
				compare(t, dst.Float32(), reference(rgb, p.Crop, size, p.Ops()[1].Active), size, tt.within)
			}
		})
	}
}

func compare(t *testing.T, got []float32, want []float64, size int, levels float64) {
	t.Helper()
	std := [3]float64{0.229, 0.224, 0.225}
	for i, v := range got {
		within := levels / (255 * std[i/(size*size)])
		if math.Abs(float64(v)-want[i]) > within {
			t.Fatalf("element %d is %v, want %v within %v", i, v, want[i], within)
		}
	}
}

func reference(img image.Image, crop image.Rectangle, size int, flip bool) []float64 {
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
			at := x
			if flip {
				at = size - 1 - x
			}
			for c := range 3 {
				out[(c*size+y)*size+at] = (sum[c]/255 - mean[c]) / std[c]
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

// Whether planes lie mirrored in memory changes nothing.
func TestPathsAgree(t *testing.T) {
	lists := map[string][]augment.Op{
		"train":    {augment.RandomResizedCrop{Size: 24}, augment.RandomHorizontalFlip{}},
		"eval":     {augment.Resize{Size: 32}, augment.CenterCrop{Size: 28}},
		"flips":    {augment.RandomVerticalFlip{}, augment.RandomCrop{Size: 30}, augment.RandomHorizontalFlip{}, augment.Resize{Height: 17, Width: 23}, augment.RandomVerticalFlip{}, augment.CenterCrop{Size: 15}},
		"bicubic":  {augment.RandomResizedCrop{Height: 21, Width: 33, Interpolation: augment.Bicubic}},
		"lanczos":  {augment.Resize{Height: 20, Width: 70, Interpolation: augment.Lanczos}},
		"nearest":  {augment.Resize{Height: 20, Width: 25, Interpolation: augment.Nearest}, augment.RandomHorizontalFlip{P: 1}},
		"plain":    {augment.Resize{Height: 20, Width: 25, NoAntialias: true}},
		"plain up": {augment.Resize{Height: 80, Width: 90, NoAntialias: true, Interpolation: augment.Bicubic}},
		"cut":      {augment.RandomCrop{Size: 30}},
		"one gray": {augment.RandomResizedCrop{Size: 24}, augment.Grayscale{}},
		"gray":     {augment.Grayscale{Channels: 3}, augment.RandomResizedCrop{Size: 24}, augment.RandomHorizontalFlip{}},
		"turned":   {augment.Grayscale{Channels: 3}, augment.RandomResizedCrop{Size: 24}, augment.RandomRotation{Between: [2]float64{90, 90}}},
		"cut gray": {augment.RandomCrop{Size: 30}, augment.RandomGrayscale{P: 0.7}},
	}
	for name, ops := range lists {
		for kind, img := range map[string]image.Image{
			"gray": grayPicture(61, 47), "color": colorPicture(61, 47), "420": ycbcrPicture(61, 47, image.YCbCrSubsampleRatio420),
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				u8 := augment.ToTensor{DType: tensor.Uint8}
				one := compile(t, append(ops[:len(ops):len(ops)], u8)...)
				var sum, most, count float64
				for d := range augment.Draws(10) {
					px := pixelsOf(img)
					px.FlipX, px.FlipY = d&1 != 0, d&2 != 0
					h := augment.Header{Width: px.Size.X, Height: px.Size.Y}
					a, b := bytesOf(one), bytesOf(one)
					p := one.Plan(h, d)
					if err := one.NewWorker(nil).Apply(a, px, &p); err != nil {
						t.Fatal(err)
					}
					p.Unfold()
					if err := one.NewWorker(nil).Apply(b, px, &p); err != nil {
						t.Fatal(err)
					}
					for i, v := range a.Uint8() {
						diff := math.Abs(float64(v) - float64(b.Uint8()[i]))
						sum += diff
						most = max(most, diff)
						count++
					}
				}
				if most > 3 || sum/count > 0.5 {
					t.Errorf("differ by %v grey levels, %v in the mean", most, sum/count)
				}
			})
		}
	}
}

// A worker that is given the parts alone gives the same as with the whole
// picture.
func TestPartsAreEnough(t *testing.T) {
	var data bytes.Buffer
	if err := png.Encode(&data, colorPicture(200, 150)); err != nil {
		t.Fatal(err)
	}
	for name, ops := range map[string][]augment.Op{
		"train":   {augment.RandomResizedCrop{Size: 24}, augment.RandomHorizontalFlip{}},
		"eval":    {augment.Resize{Size: 64}, augment.CenterCrop{Size: 8}},
		"lanczos": {augment.Resize{Size: 300, Interpolation: augment.Lanczos}, augment.RandomCrop{Size: 8}},
		"bicubic": {augment.Resize{Size: 50, Interpolation: augment.Bicubic}, augment.CenterCrop{Height: 3, Width: 60}},
		"color":   {augment.RandomCrop{Size: 20}, augment.ColorJitter{Hue: 0.2}},
	} {
		tr := compile(t, append(ops, augment.ImageNetNormalize)...)
		w := tr.NewWorker(nil)
		for d := range augment.Draws(5) {
			h, err := w.Header(data.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			p := tr.Plan(h, d)
			if whole := h.Width * h.Height; p.Crop.Dx()*p.Crop.Dy() > whole*3/4 && name != "train" {
				t.Errorf("%s needs %v", name, p.Crop)
			}
			var part, whole augment.Pixels
			if err := w.Decode(&part, data.Bytes(), p.Crop); err != nil {
				t.Fatal(err)
			}
			if err := w.Decode(&whole, data.Bytes(), image.Rect(0, 0, h.Width, h.Height)); err != nil {
				t.Fatal(err)
			}
			a, b := denseOf(tr), denseOf(tr)
			if err := errors.Join(w.Apply(a, &part, &p), w.Apply(b, &whole, &p)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(a.Bytes(), b.Bytes()) {
				t.Errorf("%s: the part gives something else", name)
			}
		}
	}
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
	for _, tr := range []*augment.Transform{augment.ImageNetTrain(4), augment.ImageNetEval(4),
		compile(t, augment.TrivialAugmentWide{}, augment.Resize{Height: 4, Width: 4}, augment.ImageNetNormalize).WithoutRandom()} {
		dst := slot(4)
		var px augment.Pixels
		if err := tr.NewWorker(nil).Run(dst, &px, data.Bytes(), 3); err != nil {
			t.Fatal(err)
		}
		for c, want := range []float64{2.2489083, -2.0357143, 0.4264924} {
			for _, v := range dst.Float32()[c*16 : (c+1)*16] {
				if math.Abs(float64(v)-want) > 2e-4 { // a hundredth of a grey level
					t.Fatalf("channel %d has %v, want %v", c, v, want)
				}
			}
		}
	}
}

func TestWithoutRandom(t *testing.T) {
	tr := compile(t, everything...).WithoutRandom()
	h := augment.Header{Width: 500, Height: 300}
	p := tr.Plan(h, 1)
	if p != tr.Plan(h, 2) {
		t.Error("the draws matter")
	}
	// 300*4/3 = 400 columns, (500-400)/2 to the left; 40+8-32 = 16 to choose
	// from on both axes.
	want := map[string]image.Rectangle{"RandomResizedCrop": image.Rect(50, 0, 450, 300), "RandomCrop": image.Rect(4, 4, 36, 36)}
	for _, d := range p.Ops() {
		if r, crop := want[d.Op]; crop != d.Active || r != d.Rect {
			t.Errorf("%v", d)
		}
	}
	fixed := compile(t, augment.CenterCrop{Size: 9}, augment.GaussianBlur{KernelSize: 3, Sigma: [2]float64{1, 1}},
		augment.RandomRotation{Between: [2]float64{90, 90}}).WithoutRandom().Plan(h, 0)
	if d := fixed.Ops(); d[1].Factor[0] != 1 || d[2].Factor[0] != 90 {
		t.Errorf("what draws nothing: %v", d)
	}
}

func TestApplyRefuses(t *testing.T) {
	px := pixelsOf(colorPicture(9, 7))
	tr := augment.ImageNetTrain(4)
	h := augment.Header{Width: 9, Height: 7}
	good := tr.Plan(h, 0)
	for name, tt := range map[string]struct {
		dst  tensor.Dense
		plan func() augment.Plan
	}{
		"no plan":      {slot(4), func() augment.Plan { return augment.Plan{} }},
		"empty crop":   {slot(4), func() augment.Plan { p := good; p.Crop = image.Rectangle{}; return p }},
		"crop outside": {slot(4), func() augment.Plan { p := good; p.Crop = image.Rect(0, 0, 10, 7); return p }},
		"crop before":  {slot(4), func() augment.Plan { p := good; p.Crop = image.Rect(-1, 0, 5, 5); return p }},
		"another size": {slot(4), func() augment.Plan { return tr.Plan(augment.Header{Width: 9, Height: 8}, 0) }},
		"another list": {slot(4), func() augment.Plan { return augment.ImageNetEval(4).WithoutRandom().Plan(h, 0) }},
		"as many steps": {slot(4), func() augment.Plan {
			return compile(t, augment.CenterCrop{Size: 4}, augment.RandomHorizontalFlip{}).Plan(h, 0)
		}},
		"another size of": {slot(4), func() augment.Plan { return augment.ImageNetTrain(8).Plan(h, 0) }},
		"another array":   {slot(5), func() augment.Plan { return good }},
		"another element": {tensor.View(tensor.Uint8, tensor.Shape{192}, make([]byte, 192)), func() augment.Plan { return good }},
	} {
		p := tt.plan()
		if err := tr.NewWorker(nil).Apply(tt.dst, px, &p); !errors.Is(err, format.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The list is what counts: transforms that decode or draw in another way, or
	// are compiled anew, understand the plan.
	for name, same := range map[string]*augment.Transform{
		"anew": augment.ImageNetTrain(4), "another decoder": tr.WithDecoder(augment.Decoding{AsStored: true}.New),
		"not random": tr.WithoutRandom(), "reduced": tr.WithShrink(),
	} {
		p := same.Plan(h, 0)
		if err := errors.Join(same.NewWorker(nil).Apply(slot(4), px, &good), tr.NewWorker(nil).Apply(slot(4), px, &p)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	crop, center := compile(t, augment.CenterCrop{Size: 4}), compile(t, augment.CenterCrop{Size: 8}).Plan(h, 0)
	if err := crop.NewWorker(nil).Apply(slot(4), px, &center); !errors.Is(err, format.ErrUsage) {
		t.Errorf("the plan of another crop: %v", err)
	}
	small := compile(t, augment.RandomCrop{Size: 8})
	p := small.Plan(h, 0)
	if err := small.NewWorker(nil).Apply(slot(8), px, &p); !errors.Is(err, format.ErrUsage) || !strings.Contains(err.Error(), "RandomCrop") {
		t.Errorf("a picture smaller than its crop: %v", err)
	}
	large := compile(t, augment.Resize{Size: 8000}, augment.TrivialAugmentWide{}, augment.CenterCrop{Size: 8})
	p = large.Plan(h, 0)
	if err := large.NewWorker(&format.Limits{Pixels: 1 << 20}).Apply(slot(8), px, &p); !errors.Is(err, format.ErrLimit) {
		t.Errorf("a picture that grows: %v", err)
	}
}

func TestCompile(t *testing.T) {
	crop, flip, norm := augment.RandomResizedCrop{Size: 8}, augment.RandomHorizontalFlip{P: 0.5}, augment.ImageNetNormalize
	nan, inf := math.NaN(), math.Inf(1)
	u8 := augment.ToTensor{DType: tensor.Uint8}
	var many []augment.Op
	for range 17 {
		many = append(many, augment.CenterCrop{Size: 8})
	}
	for _, tt := range []struct {
		name string
		ops  []augment.Op
		want error
	}{
		{"train", []augment.Op{crop, flip, norm}, nil},
		{"no flip", []augment.Op{crop, norm}, nil},
		{"no normalise", []augment.Op{crop, flip}, nil},
		{"flip first", []augment.Op{flip, crop, norm}, nil},
		{"two crops", []augment.Op{crop, crop, norm}, nil},
		{"padded", []augment.Op{augment.CenterCrop{Size: 6}, augment.Pad{Padding: augment.AllEdges(1)}}, nil},
		{"resized", []augment.Op{augment.CenterCrop{Size: 6}, augment.Resize{Size: 8}}, nil},
		{"erasing", []augment.Op{crop, norm, augment.RandomErasing{}}, nil},
		{"nothing", nil, format.ErrUsage},
		{"no size", []augment.Op{flip, norm}, format.ErrUsage},
		{"no shape", []augment.Op{augment.Resize{Size: 8}, norm}, format.ErrUsage},
		{"order", []augment.Op{crop, norm, flip}, format.ErrUnsupported},
		{"after tensor", []augment.Op{crop, augment.ToTensor{}, flip}, format.ErrUnsupported},
		{"normalise twice", []augment.Op{crop, norm, norm}, format.ErrUsage},
		{"tensor twice", []augment.Op{crop, augment.ToTensor{}, norm, augment.ToTensor{}}, format.ErrUsage},
		{"after erasing", []augment.Op{crop, augment.RandomErasing{}, norm}, format.ErrUnsupported},
		{"crop after erasing", []augment.Op{augment.RandomErasing{}, crop}, format.ErrUnsupported},
		{"erasing twice", []augment.Op{crop, augment.RandomErasing{}, augment.RandomErasing{}}, format.ErrUsage},
		{"no operation", []augment.Op{crop, nil}, format.ErrUsage},
		{"a pointer", []augment.Op{crop, &norm}, format.ErrUsage},
		{"embedded", []augment.Op{crop, struct{ augment.Normalize }{norm}}, format.ErrUsage},
		{"large resize", []augment.Op{augment.Resize{Size: 1 << 14}, augment.CenterCrop{Size: 8}}, nil},
		{"huge resize", []augment.Op{augment.Resize{Size: 1<<14 + 1}, augment.CenterCrop{Size: 8}}, format.ErrUsage},
		{"large result", []augment.Op{augment.Resize{Height: 1 << 14, Width: 8}}, format.ErrUsage},
		{"large longest", []augment.Op{augment.Resize{MaxSize: 1<<14 + 1}, crop}, format.ErrUsage},
		{"never", []augment.Op{crop, augment.RandomHorizontalFlip{P: augment.Never}, augment.RandAugment{NumOps: augment.Never}}, nil},
		{"normalised bytes", []augment.Op{crop, norm, u8}, format.ErrUsage},
		{"noisy bytes", []augment.Op{crop, u8, augment.RandomErasing{Random: true}}, format.ErrUsage},
		{"many", many, format.ErrUsage},
		{"many of one", []augment.Op{crop, augment.RandAugment{NumOps: 16}}, format.ErrUsage},
		{"grows", []augment.Op{augment.CenterCrop{Size: 8000}, augment.Pad{Padding: augment.AllEdges(100)}}, format.ErrUsage},
		{"size", []augment.Op{augment.RandomResizedCrop{}, norm}, format.ErrUsage},
		{"negative", []augment.Op{augment.CenterCrop{Size: -1}}, format.ErrUsage},
		{"half a size", []augment.Op{augment.CenterCrop{Height: 8}}, format.ErrUsage},
		{"two sizes", []augment.Op{augment.RandomCrop{Size: 8, Height: 8, Width: 8}}, format.ErrUsage},
		{"huge", []augment.Op{augment.RandomResizedCrop{Size: 1 << 20}, norm}, format.ErrUsage},
		{"scale", []augment.Op{augment.RandomResizedCrop{Size: 8, Scale: [2]float64{0.5, 1.1}}, norm}, format.ErrUsage},
		{"scale nan", []augment.Op{augment.RandomResizedCrop{Size: 8, Scale: [2]float64{nan, 1}}, norm}, format.ErrUsage},
		{"ratio", []augment.Op{augment.RandomResizedCrop{Size: 8, Ratio: [2]float64{2, 1}}, norm}, format.ErrUsage},
		{"ratio inf", []augment.Op{augment.RandomResizedCrop{Size: 8, Ratio: [2]float64{1, inf}}, norm}, format.ErrUsage},
		{"lanczos", []augment.Op{augment.RandomResizedCrop{Size: 8, Interpolation: augment.Lanczos, NoAntialias: true}}, format.ErrUsage},
		{"filter", []augment.Op{augment.Resize{Height: 8, Width: 8, Interpolation: 9}}, format.ErrUsage},
		{"longest", []augment.Op{augment.Resize{Size: 8, MaxSize: 8}, crop}, format.ErrUsage},
		{"longest exact", []augment.Op{augment.Resize{Height: 8, Width: 8, MaxSize: 9}}, format.ErrUsage},
		{"no resize", []augment.Op{augment.Resize{}, crop}, format.ErrUsage},
		{"padding", []augment.Op{augment.RandomCrop{Size: 8, Padding: augment.AllEdges(-1)}}, format.ErrUsage},
		{"padding mode", []augment.Op{augment.RandomCrop{Size: 8, PaddingMode: 4}}, format.ErrUsage},
		{"p", []augment.Op{crop, augment.RandomHorizontalFlip{P: nan}, norm}, format.ErrUsage},
		{"p above", []augment.Op{crop, augment.RandomVerticalFlip{P: 1.5}, norm}, format.ErrUsage},
		{"gray p", []augment.Op{crop, augment.RandomGrayscale{P: -0.5}}, format.ErrUsage},
		{"channels", []augment.Op{crop, augment.Grayscale{Channels: 2}}, format.ErrUsage},
		{"jitter", []augment.Op{crop, augment.ColorJitter{Brightness: -1}}, format.ErrUsage},
		{"hue", []augment.Op{crop, augment.ColorJitter{Hue: 0.6}}, format.ErrUsage},
		{"hue between", []augment.Op{crop, augment.ColorJitter{HueBetween: [2]float64{0.1, -0.1}}}, format.ErrUsage},
		{"jitter twice", []augment.Op{crop, augment.ColorJitter{Contrast: 1, ContrastBetween: [2]float64{1, 2}}}, format.ErrUsage},
		{"kernel", []augment.Op{crop, augment.GaussianBlur{KernelSize: 4}}, format.ErrUsage},
		{"no kernel", []augment.Op{crop, augment.GaussianBlur{}}, format.ErrUsage},
		{"sigma", []augment.Op{crop, augment.GaussianBlur{KernelSize: 3, Sigma: [2]float64{-1, 1}}}, format.ErrUsage},
		{"degrees", []augment.Op{crop, augment.RandomRotation{Degrees: -1}}, format.ErrUsage},
		{"degrees nan", []augment.Op{crop, augment.RandomRotation{Between: [2]float64{nan, 1}}}, format.ErrUsage},
		{"rotation lanczos", []augment.Op{crop, augment.RandomRotation{Degrees: 1, Interpolation: augment.Lanczos}}, format.ErrUsage},
		{"negative magnitude", []augment.Op{crop, augment.RandAugment{Magnitude: -2}}, format.ErrUsage},
		{"magnitude", []augment.Op{crop, augment.RandAugment{Magnitude: 31}}, format.ErrUsage},
		{"operations", []augment.Op{crop, augment.RandAugment{NumOps: -2}}, format.ErrUsage},
		{"bins", []augment.Op{crop, augment.TrivialAugmentWide{Bins: 1}}, format.ErrUsage},
		{"std", []augment.Op{crop, augment.Normalize{}}, format.ErrUsage},
		{"dtype", []augment.Op{crop, augment.ToTensor{DType: tensor.Int64}}, format.ErrUsage},
		{"axes", []augment.Op{crop, augment.ToTensor{Axes: 2}}, format.ErrUsage},
		{"erasing scale", []augment.Op{crop, augment.RandomErasing{Scale: [2]float64{0, 2}}}, format.ErrUsage},
		{"erasing ratio", []augment.Op{crop, augment.RandomErasing{Ratio: [2]float64{-1, 2}}}, format.ErrUsage},
		{"erasing value", []augment.Op{crop, augment.RandomErasing{Value: [3]float64{nan}}}, format.ErrUsage},
	} {
		tr, err := augment.Compile(tt.ops...)
		if !errors.Is(err, tt.want) || err != nil && tt.want == nil {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if err == nil && (tr.Shape().String() != "[3 8 8]" || tr.DType() != tensor.Float32) {
			t.Errorf("%s: %v of %v", tt.name, tr.Shape(), tr.DType())
		}
	}
	wide := compile(t, augment.Resize{Height: 5, Width: 9}, augment.ToTensor{DType: tensor.BFloat16, Axes: augment.NHWC})
	if wide.Shape().String() != "[5 9 3]" || wide.DType() != tensor.BFloat16 {
		t.Errorf("%v of %v", wide.Shape(), wide.DType())
	}
}

func TestExplain(t *testing.T) {
	for _, tt := range []struct {
		name string
		tr   *augment.Transform
		want string
	}{
		{"train", augment.ImageNetTrain(224), `one pass from the decoded planes of the part that is needed to the tensor:
  RandomResizedCrop (224x224, bilinear antialiased)
  RandomHorizontalFlip (p 0.5)
at the end:
  Normalize to float32 [3 224 224]
`},
		{"eval", augment.ImageNetEval(224).WithShrink(), `one pass from the decoded planes of the part that is needed to the tensor:
  Resize (shorter side 256, bilinear antialiased)
  CenterCrop (224x224); a smaller picture is padded, on pictures of 8 bits
at the end:
  Normalize to float32 [3 224 224]
the decoder may reduce the picture by 2, 4 or 8 before a resize
`},
		{"colors", compile(t, augment.RandomResizedCrop{Size: 96}, augment.RandAugment{}, augment.Pad{Padding: augment.AllEdges(2)},
			augment.ToTensor{DType: tensor.Float16}, augment.RandomErasing{}).WithoutRandom(), `one pass from the decoded planes of the part that is needed to a picture of 8 bits:
  RandomResizedCrop (96x96, bilinear antialiased)
  RandAugment (2 operations, magnitude 9 of 31): left out, without randomness
on pictures of 8 bits, because Pad reaches beyond the picture:
  Pad (constant {2 2 2 2})
at the end:
  values divided by 255 to float16 [3 100 100]
  RandomErasing (p 0.5, value [0 0 0]): left out, without randomness
`},
		{"jitter", compile(t, augment.RandomCrop{Size: 32}, augment.ColorJitter{Brightness: 0.4, Hue: 0.1}, augment.RandomHorizontalFlip{P: 1}, augment.ImageNetNormalize), `one pass from the decoded planes of the part that is needed to a picture of 8 bits:
  RandomCrop (32x32)
on pictures of 8 bits, because ColorJitter changes pixels:
  ColorJitter (brightness 0.6 to 1.4, hue -0.1 to 0.1)
  RandomHorizontalFlip (p 1)
at the end:
  Normalize to float32 [3 32 32]
`},
		{"resizes", compile(t, augment.Resize{Size: 40}, augment.Resize{Height: 20, Width: 20}, augment.ToTensor{DType: tensor.Uint8, Axes: augment.NHWC}), `one pass from the decoded planes of the part that is needed to the tensor or a picture of 8 bits:
  Resize (shorter side 40, bilinear antialiased)
on pictures of 8 bits where Resize changes the size again, else as before:
  Resize (20x20, bilinear antialiased)
at the end:
  values as they are to uint8 [20 20 3]
`},
		{"padding", compile(t, augment.Pad{Padding: augment.AllEdges(2)}, augment.CenterCrop{Size: 20}), `on pictures of 8 bits, because Pad reaches beyond the picture:
  Pad (constant {2 2 2 2})
  CenterCrop (20x20)
at the end:
  values divided by 255 to float32 [3 20 20]
`},
		{"padded crop", compile(t, augment.RandomCrop{Size: 32, Padding: augment.AllEdges(4)}, augment.RandomHorizontalFlip{},
			augment.TrivialAugmentWide{}, augment.ImageNetNormalize), `on pictures of 8 bits where RandomCrop reaches beyond the picture, else in one pass from the decoded planes of the part that is needed:
  RandomCrop (32x32, padding constant {4 4 4 4})
  RandomHorizontalFlip (p 0.5)
on pictures of 8 bits, because TrivialAugmentWide changes pixels:
  TrivialAugmentWide (31 bins)
at the end:
  Normalize to float32 [3 32 32]
`},
		// 20+8-20 = 8 to choose from, 4 in the middle: just the picture.
		{"padded center", compile(t, augment.RandomResizedCrop{Size: 20}, augment.RandomCrop{Size: 20, Padding: augment.AllEdges(4)}).WithoutRandom(), `one pass from the decoded planes of the part that is needed to the tensor:
  RandomResizedCrop (20x20, bilinear antialiased)
  RandomCrop (20x20, padding constant {4 4 4 4})
at the end:
  values divided by 255 to float32 [3 20 20]
`},
		{"two that depend", compile(t, augment.Resize{Size: 40}, augment.RandomCrop{Size: 32, Padding: augment.AllEdges(4)}, augment.RandomResizedCrop{Size: 24}), `one pass from the decoded planes of the part that is needed to the tensor or a picture of 8 bits:
  Resize (shorter side 40, bilinear antialiased)
on pictures of 8 bits where RandomCrop reaches beyond the picture, else as before:
  RandomCrop (32x32, padding constant {4 4 4 4})
on pictures of 8 bits where RandomResizedCrop changes the size again, else as before:
  RandomResizedCrop (24x24, bilinear antialiased)
at the end:
  values divided by 255 to float32 [3 24 24]
`},
		{"padded if needed", compile(t, augment.RandomCrop{Size: 32, PadIfNeeded: true}, augment.CenterCrop{Size: 24}, augment.RandomCrop{Size: 28, PadIfNeeded: true}), `one pass from the decoded planes of the part that is needed to a picture of 8 bits:
  RandomCrop (32x32, padding constant {0 0 0 0}); a smaller picture is padded, on pictures of 8 bits
  CenterCrop (24x24)
on pictures of 8 bits, because RandomCrop reaches beyond the picture:
  RandomCrop (28x28, padding constant {0 0 0 0})
at the end:
  values divided by 255 to float32 [3 28 28]
`},
		{"gray", compile(t, augment.RandomGrayscale{P: augment.Never}, augment.ColorJitter{}, augment.CenterCrop{Size: 24}, augment.Grayscale{}), `one pass from the decoded planes of the part that is needed to the tensor:
  RandomGrayscale (p 0)
  ColorJitter (nothing)
  CenterCrop (24x24); a smaller picture is padded, on pictures of 8 bits
  Grayscale (1 channels)
at the end:
  values divided by 255 to float32 [1 24 24]
`},
	} {
		if got := tt.tr.Explain(); got != tt.want {
			t.Errorf("%s:\n%s", tt.name, got)
		}
	}
}

// In steady state nothing is allocated for a picture, on either path.
func TestApplyAllocatesNothing(t *testing.T) {
	px := pixelsOf(ycbcrPicture(200, 150, image.YCbCrSubsampleRatio420))
	h := augment.Header{Width: 200, Height: 150}
	for name, tr := range map[string]*augment.Transform{
		"train": augment.ImageNetTrain(64), "eval": augment.ImageNetEval(64), "everything": compile(t, everything...),
		"half": compile(t, augment.RandomResizedCrop{Size: 64}, augment.ImageNetNormalize, augment.ToTensor{DType: tensor.Float16, Axes: augment.NHWC}),
	} {
		w, dst := tr.NewWorker(nil), denseOf(tr)
		run := func() {
			for d := range augment.Draws(40) {
				p := tr.Plan(h, d)
				if err := w.Apply(dst, px, &p); err != nil {
					t.Fatal(err)
				}
			}
		}
		run()
		if n := testing.AllocsPerRun(3, run); n != 0 {
			t.Errorf("%s: %v allocations for 40 pictures", name, n)
		}
	}
}

// Any list on any picture gives finite values within the bounds of its
// normalisation, and the same ones again.
func TestAnyPicture(t *testing.T) {
	tr := compile(t, append([]augment.Op{augment.Resize{Size: 24}, augment.RandomCrop{Size: 30, PadIfNeeded: true}}, everything[:10]...)...)
	w := tr.NewWorker(nil)
	rapid.Check(t, func(rt *rapid.T) {
		width, height := rapid.IntRange(1, 90).Draw(rt, "width"), rapid.IntRange(1, 90).Draw(rt, "height")
		ratio := image.YCbCrSubsampleRatio(rapid.IntRange(0, 3).Draw(rt, "ratio"))
		d := augment.Draws(rapid.Uint64().Draw(rt, "draws"))
		px := pixelsOf(ycbcrPicture(width, height, ratio))
		p := tr.Plan(augment.Header{Width: width, Height: height}, d)
		a, b := denseOf(tr), denseOf(tr)
		for _, dst := range []tensor.Dense{a, b} {
			if err := w.Apply(dst, px, &p); err != nil {
				rt.Fatal(err)
			}
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			rt.Fatal("twice the same is not the same")
		}
		for _, v := range a.Float32() {
			if !(v >= -2.2 && v <= 2.7) {
				rt.Fatalf("value %v", v)
			}
		}
	})
}

// The parts are as large as the picture, 400x300, so that they are reduced by
// the largest of 2, 4, 8 that leaves no less than the result: 36 for the
// shorter side is 300/8.33.
func TestShrink(t *testing.T) {
	img := image.NewYCbCr(image.Rect(0, 0, 400, 300), image.YCbCrSubsampleRatio420)
	for i := range img.Y {
		img.Y[i] = uint8(128 + 90*math.Sin(float64(i%400)/40)*math.Cos(float64(i/400)/30))
	}
	for i := range img.Cb {
		img.Cb[i], img.Cr[i] = 100, uint8(110+i%200/10)
	}
	var data bytes.Buffer
	if err := jpeg.Encode(&data, img, &jpeg.Options{Quality: 95}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		ops  []augment.Op
		want int
	}{
		{[]augment.Op{augment.Resize{Size: 36}, augment.CenterCrop{Size: 32}}, 8},
		{[]augment.Op{augment.Resize{Size: 38}, augment.CenterCrop{Size: 32}}, 4},
		{[]augment.Op{augment.Resize{Height: 150, Width: 10}}, 2},
		{[]augment.Op{augment.Resize{Height: 151, Width: 10}}, 1},
		{[]augment.Op{augment.Resize{Height: 20, Width: 20, NoAntialias: true}}, 1},
		{[]augment.Op{augment.Resize{Height: 20, Width: 20, Interpolation: augment.Nearest}}, 1},
		{[]augment.Op{augment.CenterCrop{Size: 20}}, 1},
	} {
		whole := compile(t, append(tt.ops, augment.ToTensor{DType: tensor.Uint8})...)
		less := whole.WithShrink()
		p := less.Plan(augment.Header{Width: 400, Height: 300}, 0)
		if p.Shrink != tt.want || whole.Plan(augment.Header{Width: 400, Height: 300}, 0).Shrink != 1 {
			t.Errorf("%+v: reduced by %d, want %d", tt.ops, p.Shrink, tt.want)
		}
		a, b := denseOf(whole), denseOf(less)
		var px augment.Pixels
		if err := errors.Join(whole.NewWorker(nil).Run(a, &px, data.Bytes(), 0), less.NewWorker(nil).Run(b, &px, data.Bytes(), 0)); err != nil {
			t.Fatal(err)
		}
		if px.Shrink != tt.want {
			t.Errorf("%+v: decoded reduced by %d, want %d", tt.ops, px.Shrink, tt.want)
		}
		var sum float64
		for i, v := range a.Uint8() {
			sum += math.Abs(float64(v) - float64(b.Uint8()[i]))
		}
		if mean := sum / float64(len(a.Uint8())); mean > 2 || tt.want == 1 && mean > 0 {
			t.Errorf("%+v: differs by %v grey levels in the mean", tt.ops, mean)
		}
	}
}

func TestDecodeRGB(t *testing.T) {
	img := colorPicture(9, 7).(*image.NRGBA)
	var data bytes.Buffer
	if err := png.Encode(&data, img); err != nil {
		t.Fatal(err)
	}
	var px augment.Pixels
	pix, w, h, err := augment.DecodeRGB([]byte("x"), augment.Standard(nil), &px, data.Bytes())
	if err != nil || w != 9 || h != 7 || len(pix) != 1+3*63 || pix[0] != 'x' {
		t.Fatal(len(pix), w, h, err)
	}
	for i := range 63 {
		if !bytes.Equal(pix[1+3*i:][:3], img.Pix[4*i:][:3]) {
			t.Fatalf("pixel %d", i)
		}
	}
	if _, _, _, err := augment.DecodeRGB(nil, augment.Standard(nil), &px, []byte("no image")); !errors.Is(err, format.ErrWrongFormat) {
		t.Error(err)
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

func FuzzRun(f *testing.F) {
	for _, pattern := range []string{"../fixtures/cases/image/*.*", "internal/still/testdata/*.*"} {
		files, err := filepath.Glob(pattern)
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
	}
	u8 := augment.ToTensor{DType: tensor.Uint8, Axes: augment.NHWC}
	var workers []*augment.Worker
	var results []tensor.Dense
	for _, tr := range []*augment.Transform{
		augment.ImageNetTrain(16), augment.ImageNetEval(16), augment.ImageNetTrain(16).WithShrink(),
		compile(f, augment.CenterCrop{Size: 30}, augment.Grayscale{}, augment.Resize{Size: 16, Interpolation: augment.Lanczos}, u8),
		compile(f, augment.Resize{Size: 20}, augment.Pad{Padding: augment.AllEdges(3), PaddingMode: augment.Reflect},
			augment.ColorJitter{Brightness: 0.4, Contrast: 0.4, Saturation: 0.4, Hue: 0.1}, augment.Resize{Size: 24, NoAntialias: true, Interpolation: augment.Bicubic},
			augment.RandomRotation{Degrees: 90, Interpolation: augment.Bilinear}, augment.RandomCrop{Size: 16, Padding: augment.AllEdges(2)}, u8),
		compile(f, augment.RandomCrop{Height: 40, Width: 30, PadIfNeeded: true}, augment.GaussianBlur{KernelSize: 5}, augment.RandomResizedCrop{Size: 16},
			augment.RandAugment{}, augment.TrivialAugmentWide{Interpolation: augment.Bicubic}, augment.ImageNetNormalize,
			augment.ToTensor{DType: tensor.BFloat16}, augment.RandomErasing{Random: true}),
	} {
		workers = append(workers, tr.NewWorker(&format.Limits{Pixels: 1 << 18}))
		results = append(results, denseOf(tr), denseOf(tr))
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		for i, w := range workers {
			var px augment.Pixels
			dst, again := results[2*i], results[2*i+1]
			err := w.Run(dst, &px, data, augment.Draws(seed))
			if err != nil && format.Sentinel(err) == nil {
				t.Errorf("%v is of no class", err)
			}
			if err != nil {
				continue
			}
			if err := w.Run(again, &px, data, augment.Draws(seed)); err != nil || !bytes.Equal(dst.Bytes(), again.Bytes()) {
				t.Fatalf("worker %d: twice the same is not the same, %v", i, err)
			}
			inBounds(t, dst)
		}
	})
}

// inBounds wants the values of ImageNet's normalisation, and of halves, of which
// some may be deviates, that they are numbers.
func inBounds(t *testing.T, dst tensor.Dense) {
	t.Helper()
	switch dst.DType() {
	case tensor.Float32:
		for i, v := range dst.Float32() {
			if !(v >= -2.2 && v <= 2.7) {
				t.Fatalf("element %d is %v", i, v)
			}
		}
	case tensor.BFloat16:
		for i, v := range dst.Half() {
			if v&0x7f80 == 0x7f80 {
				t.Fatalf("element %d is %#x", i, v)
			}
		}
	}
}

func BenchmarkApply(b *testing.B) {
	px := pixelsOf(ycbcrPicture(500, 375, image.YCbCrSubsampleRatio420))
	h := augment.Header{Width: 500, Height: 375}
	for _, bench := range []struct {
		name string
		ops  []augment.Op
	}{
		{"train", []augment.Op{augment.RandomResizedCrop{Size: 224}, augment.RandomHorizontalFlip{}, augment.ImageNetNormalize}},
		{"steps", []augment.Op{augment.RandomResizedCrop{Size: 224}, augment.RandomHorizontalFlip{}, augment.ColorJitter{BrightnessBetween: [2]float64{1.1, 1.1}}, augment.ImageNetNormalize}},
		{"gray", []augment.Op{augment.RandomResizedCrop{Size: 224}, augment.RandomHorizontalFlip{}, augment.Grayscale{Channels: 3}, augment.ImageNetNormalize}},
		{"trivial", []augment.Op{augment.RandomResizedCrop{Size: 224}, augment.RandomHorizontalFlip{}, augment.TrivialAugmentWide{}, augment.ImageNetNormalize}},
		{"jitter", []augment.Op{augment.RandomResizedCrop{Size: 224}, augment.ColorJitter{Brightness: 0.4, Contrast: 0.4, Saturation: 0.4, Hue: 0.1}, augment.ImageNetNormalize}},
		{"blur", []augment.Op{augment.RandomResizedCrop{Size: 224}, augment.GaussianBlur{KernelSize: 23}, augment.ImageNetNormalize}},
		{"rasters", []augment.Op{augment.Pad{Padding: augment.AllEdges(1)}, augment.RandomResizedCrop{Size: 224}, augment.ImageNetNormalize}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			tr, err := augment.Compile(bench.ops...)
			if err != nil {
				b.Fatal(err)
			}
			w, dst := tr.NewWorker(nil), slot(224)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				p := tr.Plan(h, augment.Draws(i%64))
				if err := w.Apply(dst, px, &p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("plan", func(b *testing.B) {
		tr := augment.ImageNetTrain(224)
		for i := 0; b.Loop(); i++ {
			tr.Plan(h, augment.Draws(i))
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

// pixelsOf holds a picture in the layout it has.
func pixelsOf(img image.Image) *augment.Pixels {
	b := img.Bounds()
	px := &augment.Pixels{Rect: b, Size: b.Size(), Full: b.Size(), Shrink: 1}
	axis := func(pixels, by int) augment.Axis {
		n := (pixels + by - 1) / by
		return augment.Axis{Pixels: pixels, Num: by, Den: 1, Smooth: by == 2, Total: n, Held: n}
	}
	// After a plane some bytes may be read.
	plane := func(pix []byte, stride, byX, byY int) augment.Plane {
		return augment.Plane{Pix: append(pix, make([]byte, 64)...)[:len(pix)], Stride: stride, X: axis(b.Dx(), byX), Y: axis(b.Dy(), byY)}
	}
	switch img := img.(type) {
	case *image.Gray:
		px.Layout = augment.Gray
		px.Planes[0] = plane(img.Pix, img.Stride, 1, 1)
	case *image.YCbCr:
		x, y := 1, 1
		switch img.SubsampleRatio {
		case image.YCbCrSubsampleRatio422:
			x = 2
		case image.YCbCrSubsampleRatio420:
			x, y = 2, 2
		case image.YCbCrSubsampleRatio440:
			y = 2
		}
		px.Layout = augment.YCbCr
		px.Planes = [3]augment.Plane{plane(img.Y, img.YStride, 1, 1), plane(img.Cb, img.CStride, x, y), plane(img.Cr, img.CStride, x, y)}
	case *image.NRGBA:
		px.Layout = augment.RGB
		for c := range 3 {
			pix := make([]byte, b.Dx()*b.Dy())
			for i := range pix {
				pix[i] = img.Pix[4*i+c]
			}
			px.Planes[c] = plane(pix, b.Dx(), 1, 1)
		}
	}
	return px
}

func compile(t testing.TB, ops ...augment.Op) *augment.Transform {
	t.Helper()
	tr, err := augment.Compile(ops...)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func dense(dtype tensor.DType, shape tensor.Shape) tensor.Dense {
	n := shape.Elems() * dtype.Size()
	var p tensor.Pool
	return tensor.View(dtype, shape, p.Get(n).Bytes())
}

func denseOf(tr *augment.Transform) tensor.Dense { return dense(tr.DType(), tr.Shape()) }
func bytesOf(tr *augment.Transform) tensor.Dense { return dense(tensor.Uint8, tr.Shape()) }
func slot(size int) tensor.Dense                 { return dense(tensor.Float32, tensor.Shape{3, size, size}) }

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

// ycbcrPicture has colors that lie within RGB.
func ycbcrPicture(w, h int, ratio image.YCbCrSubsampleRatio) image.Image {
	img := image.NewYCbCr(image.Rect(0, 0, w, h), ratio)
	for y := range h {
		for x := range w {
			img.Y[img.YOffset(x, y)] = 64 + wave(x, y, 0)/2
			img.Cb[img.COffset(x, y)] = 112 + wave(x, y, 1)/8
			img.Cr[img.COffset(x, y)] = 112 + wave(x, y, 2)/8
		}
	}
	return img
}
