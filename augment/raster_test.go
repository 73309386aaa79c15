package augment

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/tensor"
)

// operations.json holds what torchvision gives on Pillow's images; the recipe
// is operations.py beside it.
type goldenFile struct {
	Sources map[string]string
	Cases   []struct {
		Op, Source, PNG string
		Width, Height   int
		Params          struct {
			Height, Width, Kernel, Size, Max int
			Filter, Mode, Choice             string
			Plain                            bool
			Value                            float64
			Edges                            [4]int
		}
	}
	Magnitudes []struct {
		Space, Choice string
		Signed        bool
		Values        []float64
	}
	Tensors struct {
		Height, Width                                      int
		PNG, Scaled, Normalized, Erased, Float16, BFloat16 string
	}
	Batches struct {
		Shape, Labels         []int
		Classes               int
		Images, MixUp, CutMix string
		Lambda                float64
		Box                   [4]int
		MixUpLabels           string `json:"mixup_labels"`
		CutMixLabels          string `json:"cutmix_labels"`
	}
}

var readGolden = sync.OnceValues(func() (*goldenFile, error) {
	text, err := os.ReadFile("testdata/operations.json")
	if err != nil {
		return nil, err
	}
	g := new(goldenFile)
	return g, json.Unmarshal(text, g)
})

func goldens(t *testing.T) *goldenFile {
	t.Helper()
	g, err := readGolden()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func unpack(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func picture(t *testing.T, text string) raster {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(unpack(t, text)))
	if err != nil {
		t.Fatal(err)
	}
	var r raster
	r.reset(img.Bounds().Dx(), img.Bounds().Dy())
	for y := range r.height {
		row := r.row(y)
		for x := range r.width {
			red, green, blue, _ := img.At(x, y).RGBA()
			row[3*x], row[3*x+1], row[3*x+2] = uint8(red>>8), uint8(green>>8), uint8(blue>>8)
		}
	}
	return r
}

func filterOf(t *testing.T, name string) Interpolation {
	for i, n := range interpolations {
		if n == name {
			return Interpolation(i)
		}
	}
	t.Fatalf("no filter %q", name)
	return 0
}

func choiceOf(t *testing.T, name string) Choice {
	for i, n := range choiceNames {
		if n == name {
			return Choice(i)
		}
	}
	t.Fatalf("no choice %q", name)
	return 0
}

// Everything that Pillow computes is equal bit for bit. What PyTorch computes
// in float32 in an order of its own may round the other way: one grey level,
// rarely.
func TestOperationsAreTorchvisions(t *testing.T) {
	g := goldens(t)
	black := [3]uint8{}
	for i, tt := range g.Cases {
		p := &tt.Params
		if tt.Op == "size" {
			continue
		}
		t.Run(fmt.Sprintf("%d %s %+v", i, tt.Op, *p), func(t *testing.T) {
			c := &canvas{now: picture(t, g.Sources[tt.Source])}
			size := image.Pt(c.now.width, c.now.height)
			var err error
			exact := true
			switch tt.Op {
			case "resize":
				exact = !p.Plain
				err = c.resize(image.Pt(p.Width, p.Height), filterOf(t, p.Filter), !p.Plain)
			case "centercrop":
				s := CenterCrop{Height: p.Height, Width: p.Width}.step()
				err = s.apply(c, s.draw(Stream{}, size))
			case "pad":
				mode := PaddingMode(0)
				for paddingModes[mode] != p.Mode {
					mode++
				}
				s := Pad{Edges{p.Edges[0], p.Edges[1], p.Edges[2], p.Edges[3]}, [3]uint8{9, 8, 7}, mode}.step()
				err = s.apply(c, s.draw(Stream{}, size))
			case "brightness":
				c.now.brightness(p.Value)
			case "contrast":
				c.now.contrast(p.Value)
			case "saturation":
				c.now.saturation(p.Value)
			case "sharpness":
				err = c.sharpness(p.Value)
			case "hue":
				c.now.hue(p.Value)
			case "grayscale":
				c.now.gray()
			case "posterize":
				c.now.posterize(int(p.Value))
			case "solarize":
				c.now.solarize(p.Value)
			case "autocontrast":
				c.now.autocontrast()
			case "equalize":
				c.now.equalize()
			case "rotate":
				err = c.rotate(p.Value, filterOf(t, p.Filter), [3]uint8{1, 2, 3})
			case "blur":
				exact = false
				err = c.blur(p.Kernel, p.Value)
			case "auto":
				// The angle whose tangent is the magnitude has another tangent.
				exact = p.Filter == "nearest" || p.Choice[0] != 'S'
				d := Drawn{Choice: choiceOf(t, p.Choice), Factor: [4]float64{p.Value}}
				err = applyChoice(filterOf(t, p.Filter), black)(c, d)
			default:
				t.Fatal("unknown operation")
			}
			if err != nil {
				t.Fatal(err)
			}
			sameRaster(t, &c.now, picture(t, tt.PNG), exact)
		})
	}
	if len(g.Cases) < 150 {
		t.Errorf("only %d cases", len(g.Cases))
	}
}

// rare is how many values there are at least for one that may differ.
const rare = 20

func sameRaster(t *testing.T, got *raster, want raster, exact bool) {
	t.Helper()
	if got.width != want.width || got.height != want.height {
		t.Fatalf("%dx%d pixels, want %dx%d", got.width, got.height, want.width, want.height)
	}
	unequal := 0
	for i, v := range got.pix {
		if v == want.pix[i] {
			continue
		}
		unequal++
		if diff := int(v) - int(want.pix[i]); exact || diff > 1 || diff < -1 {
			t.Fatalf("pixel (%d,%d) channel %d is %d, want %d", i/3%got.width, i/3/got.width, i%3, v, want.pix[i])
		}
	}
	if unequal*rare > len(got.pix) {
		t.Errorf("%d of %d values differ by one", unequal, len(got.pix))
	}
}

func TestResizeSizesAreTorchvisions(t *testing.T) {
	g := goldens(t)
	n := 0
	for _, tt := range g.Cases {
		if tt.Op != "size" {
			continue
		}
		n++
		src := picture(t, g.Sources[tt.Source])
		r := Resize{Size: tt.Params.Size, MaxSize: tt.Params.Max}
		if err := r.check(); err != nil {
			t.Error(err)
		}
		if got, want := r.size(image.Pt(src.width, src.height)), image.Pt(tt.Width, tt.Height); got != want {
			t.Errorf("%+v of %s: %v, want %v", r, tt.Source, got, want)
		}
	}
	if n != 10 {
		t.Errorf("%d cases", n)
	}
}

func TestMagnitudesAreTorchvisions(t *testing.T) {
	for _, tt := range goldens(t).Magnitudes {
		s := randSpace
		if tt.Space == "TrivialAugmentWide" {
			s = wideSpace
		}
		for i := range 31 {
			for _, negative := range []bool{false, true} {
				want := 0.0
				if tt.Values != nil {
					want = tt.Values[i]
				}
				if negative && tt.Signed {
					want = -want
				}
				d := s.drawn(choiceOf(t, tt.Choice), i, 31, negative, image.Pt(27, 21))
				if math.Abs(d.Factor[0]-want) > 1e-6*math.Abs(want) {
					t.Errorf("%s %s bin %d is %v, want %v", tt.Space, tt.Choice, i, d.Factor[0], want)
				}
			}
		}
	}
}

func floats(t *testing.T, text string) []float32 {
	b := unpack(t, text)
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func halves(t *testing.T, text string) []uint16 {
	b := unpack(t, text)
	out := make([]uint16, len(b)/2)
	for i := range out {
		out[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return out
}

func newDense(dtype tensor.DType, shape ...int) tensor.Dense {
	n, err := tensor.Bytes(dtype, shape)
	if err != nil {
		panic(err)
	}
	var p tensor.Pool
	return tensor.View(dtype, shape, p.Get(int(n)).Bytes()[:n])
}

// tailOf is the end of a transform, of fixed size.
func tailOf(t *testing.T, ops ...Op) *Transform {
	t.Helper()
	tr, err := Compile(append([]Op{Resize{Height: 6, Width: 7}}, ops...)...)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// Normalised values may differ by a unit in the last place: torchvision
// divides twice.
func TestTensorsAreTorchvisions(t *testing.T) {
	g := goldens(t).Tensors
	src := picture(t, g.PNG)
	scaled, normalized, erased := floats(t, g.Scaled), floats(t, g.Normalized), floats(t, g.Erased)
	norm := ImageNetNormalize
	box := Drawn{Active: true, Rect: image.Rect(2, 1, 6, 4)}
	for _, axes := range []Axes{NCHW, NHWC} {
		at := func(i int) int {
			if axes == NCHW {
				return i
			}
			c, rest := i/42, i%42
			return 3*rest + c
		}
		within := func(name string, got []float32, want []float32, tol float64) {
			t.Helper()
			for i, w := range want {
				if v := got[at(i)]; math.Abs(float64(v-w)) > tol {
					t.Fatalf("%s %v: element %d is %v, want %v", name, axes, i, v, w)
				}
			}
		}
		dst := newDense(tensor.Float32, tailOf(t, ToTensor{Axes: axes}).Shape()...)
		tailOf(t, ToTensor{Axes: axes}).tail.write(dst, &src)
		within("scaled", dst.Float32(), scaled, 0)
		tailOf(t, ToTensor{Axes: axes}, norm).tail.write(dst, &src)
		within("normalized", dst.Float32(), normalized, 1e-6)
		tr := tailOf(t, norm, ToTensor{Axes: axes}, RandomErasing{Value: [3]float64{1.5, -2, 0.25}})
		tr.tail.write(dst, &src)
		tr.tail.erased(dst, tr.size, box)
		within("erased", dst.Float32(), erased, 1e-6)

		for dtype, want := range map[tensor.DType][]uint16{tensor.Float16: halves(t, g.Float16), tensor.BFloat16: halves(t, g.BFloat16)} {
			dst := newDense(dtype, 3, 6, 7)
			tr := tailOf(t, norm, ToTensor{DType: dtype, Axes: axes})
			tr.tail.write(dst, &src)
			for i, w := range want {
				if v := dst.Half()[at(i)]; v != w && v != w+1 && v != w-1 {
					t.Fatalf("%v %v: element %d is %x, want %x", dtype, axes, i, v, w)
				}
			}
		}
		bytes := newDense(tensor.Uint8, 3, 6, 7)
		tailOf(t, ToTensor{DType: tensor.Uint8, Axes: axes}).tail.write(bytes, &src)
		for i := range bytes.Uint8() {
			if v, w := bytes.Uint8()[at(i)], src.pix[3*(i%42)+i/42]; v != w {
				t.Fatalf("uint8 %v: element %d is %d, want %d", axes, i, v, w)
			}
		}
	}
}

func TestOneChannel(t *testing.T) {
	src := picture(t, goldens(t).Tensors.PNG)
	tr := tailOf(t, Grayscale{}, ToTensor{DType: tensor.Uint8})
	if s := tr.Shape().String(); s != "[1 6 7]" {
		t.Fatalf("shape %s", s)
	}
	src.gray()
	dst := newDense(tensor.Uint8, 1, 6, 7)
	tr.tail.write(dst, &src)
	for i, v := range dst.Uint8() {
		if v != src.pix[3*i] {
			t.Fatalf("element %d is %d, want %d", i, v, src.pix[3*i])
		}
	}
}

func TestBatchesAreTorchvisions(t *testing.T) {
	g := goldens(t).Batches
	b := g.Box
	for _, tt := range []struct {
		name           string
		mix            Mix
		images, labels []float32
	}{
		{"MixUp", Mix{Lambda: g.Lambda}, floats(t, g.MixUp), floats(t, g.MixUpLabels)},
		{"CutMix", Mix{Lambda: 1 - 6.0/20, Box: image.Rect(b[0], b[1], b[2], b[3]), cut: true}, floats(t, g.CutMix), floats(t, g.CutMixLabels)},
	} {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
			for _, axes := range []Axes{NCHW, NHWC} {
				tol := map[tensor.DType]float64{tensor.Float32: 0, tensor.Float16: 2e-3, tensor.BFloat16: 2e-2}[dtype]
				checkMix(t, tt.name, tt.mix, dtype, axes, floats(t, g.Images), tt.images, tol)
			}
		}
		labels := newDense(tensor.Float32, 3, g.Classes)
		if err := OneHot(labels, []int64{int64(g.Labels[0]), int64(g.Labels[1]), int64(g.Labels[2])}); err != nil {
			t.Fatal(err)
		}
		if err := tt.mix.Labels(labels); err != nil {
			t.Fatal(err)
		}
		for i, w := range tt.labels {
			if v := labels.Float32()[i]; v != w {
				t.Errorf("%s: label %d is %v, want %v", tt.name, i, v, w)
			}
		}
	}
}

func checkMix(t *testing.T, name string, m Mix, dtype tensor.DType, axes Axes, images, want []float32, tol float64) {
	t.Helper()
	shape := tensor.Shape{3, 2, 4, 5}
	at := func(i int) int { return i }
	if axes == NHWC {
		shape = tensor.Shape{3, 4, 5, 2}
		at = func(i int) int { return i/40*40 + i%20*2 + i/20%2 }
	}
	batch := newDense(dtype, shape...)
	moved := make([]float32, len(images))
	for i, v := range images {
		moved[at(i)] = v
	}
	store(batch, 0, moved)
	if err := m.Images(batch, axes); err != nil {
		t.Fatal(err)
	}
	load(moved, batch, 0)
	for i, w := range want {
		if v := moved[at(i)]; math.Abs(float64(v-w)) > tol*(1+math.Abs(float64(w))) {
			t.Fatalf("%s %v %v: element %d is %v, want %v", name, dtype, axes, i, v, w)
		}
	}
}

// A batch larger than the blocks in which it is mixed, against the formula.
func TestMixInBlocks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, size := rapid.IntRange(1, 5).Draw(rt, "n"), rapid.IntRange(1, 60).Draw(rt, "size")
		batch := newDense(tensor.Float32, n, 2, size, size)
		for i := range batch.Float32() {
			batch.Float32()[i] = float32(math.Sin(float64(i)))
		}
		before := append([]float32(nil), batch.Float32()...)
		var m Mix
		if rapid.Bool().Draw(rt, "cut") {
			m, _ = CutMix{}.Draw(Draws(rapid.Uint64().Draw(rt, "draws")), size, size)
		} else {
			m, _ = MixUp{}.Draw(Draws(rapid.Uint64().Draw(rt, "draws")))
		}
		if err := m.Images(batch, NCHW); err != nil {
			rt.Fatal(err)
		}
		each := 2 * size * size
		for i, v := range batch.Float32() {
			other := before[(i+len(before)-each)%len(before)]
			want := float32(other*float32(1-m.Lambda)) + float32(before[i]*float32(m.Lambda))
			if m.cut {
				want = before[i]
				if (image.Point{i % size, i / size % size}).In(m.Box) {
					want = other
				}
			}
			if v != want {
				rt.Fatalf("element %d is %v, want %v", i, v, want)
			}
		}
	})
}

func TestMixUsage(t *testing.T) {
	ok, small := newDense(tensor.Float32, 2, 3, 4, 4), Mix{Box: image.Rect(0, 0, 5, 1), cut: true}
	for name, err := range map[string]error{
		"axes":      Mix{}.Images(newDense(tensor.Float32, 2, 3, 4), NCHW),
		"uint8":     Mix{}.Images(newDense(tensor.Uint8, 2, 3, 4, 4), NCHW),
		"int64":     Mix{cut: true}.Images(newDense(tensor.Int64, 2, 3, 4, 4), NCHW),
		"empty":     Mix{}.Images(newDense(tensor.Float32, 0, 3, 4, 4), NCHW),
		"box":       small.Images(ok, NCHW),
		"labels":    Mix{}.Labels(newDense(tensor.Float16, 2, 3)),
		"one hot":   OneHot(newDense(tensor.Float32, 2, 3), []int64{1}),
		"label":     OneHot(newDense(tensor.Float32, 2, 3), []int64{1, 3}),
		"minus one": OneHot(newDense(tensor.Float32, 2, 3), []int64{-1, 0}),
		"alpha":     second(MixUp{Alpha: -2}.Draw(0)),
		"nan":       second(CutMix{Alpha: math.NaN()}.Draw(0, 4, 4)),
		"width":     second(CutMix{}.Draw(0, 0, 4)),
	} {
		if !errors.Is(err, format.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := testing.AllocsPerRun(10, func() { _ = Mix{Lambda: 0.5}.Images(ok, NCHW) }); n != 0 {
		t.Errorf("mixing allocates %v times", n)
	}
}

func second(_ Mix, err error) error { return err }

// The weights of a place sum to one, as a flat picture shows, and no value
// leaves the bounds of its source where the filter has no negative weights.
func TestResizeKeepsFlatPictures(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		side := rapid.IntRange(1, 40)
		from := image.Pt(side.Draw(rt, "w"), side.Draw(rt, "h"))
		to := image.Pt(side.Draw(rt, "to w"), side.Draw(rt, "to h"))
		f := Interpolation(rapid.IntRange(int(Nearest), int(Lanczos)).Draw(rt, "filter"))
		anti := f == Lanczos || rapid.Bool().Draw(rt, "antialias")
		v := rapid.Byte().Draw(rt, "value")
		var c canvas
		c.now.reset(from.X, from.Y)
		for i := range c.now.pix {
			c.now.pix[i] = v
		}
		if err := c.resize(to, f, anti); err != nil {
			rt.Fatal(err)
		}
		if c.now.width != to.X || c.now.height != to.Y {
			rt.Fatalf("%dx%d", c.now.width, c.now.height)
		}
		for _, got := range c.now.pix {
			if got != v {
				rt.Fatalf("%d became %d", v, got)
			}
		}
	})
}

// Whatever is drawn, every operation gives a picture of the size it says.
func TestOperationsAtAnySize(t *testing.T) {
	ops := []Op{
		Resize{Size: 9}, Resize{Height: 3, Width: 11, Interpolation: Lanczos}, Resize{MaxSize: 12, Interpolation: Nearest},
		CenterCrop{Size: 6}, RandomCrop{Size: 6, PadIfNeeded: true}, RandomCrop{Size: 4, Padding: AllEdges(7), PaddingMode: Reflect},
		Pad{AllEdges(5), [3]uint8{1, 2, 3}, Symmetric}, RandomResizedCrop{Size: 5}, RandomHorizontalFlip{}, RandomVerticalFlip{},
		ColorJitter{Brightness: 0.4, Contrast: 0.4, Saturation: 0.4, Hue: 0.5}, Grayscale{Channels: 3}, RandomGrayscale{},
		GaussianBlur{KernelSize: 7}, RandomRotation{Degrees: 180}, RandomRotation{Degrees: 90, Interpolation: Bicubic},
		RandomRotation{Degrees: 90, Interpolation: Bilinear}, RandAugment{}, TrivialAugmentWide{Interpolation: Bilinear},
	}
	rapid.Check(t, func(rt *rapid.T) {
		op := ops[rapid.IntRange(0, len(ops)-1).Draw(rt, "op")]
		if err := op.check(); err != nil {
			rt.Fatal(err)
		}
		size := image.Pt(rapid.IntRange(1, 30).Draw(rt, "w"), rapid.IntRange(1, 30).Draw(rt, "h"))
		s := op.step()
		var c canvas
		c.now.reset(size.X, size.Y)
		for i := range c.now.pix {
			c.now.pix[i] = uint8(i * 37)
		}
		d := Drawn{Active: true}
		if s.draw != nil {
			d = s.draw(Draws(rapid.Uint64().Draw(rt, "draws")).Stream(0), size)
		}
		if d.Active {
			if err := s.apply(&c, d); err != nil {
				if errors.Is(err, format.ErrUsage) && d.Rect.Empty() {
					return
				}
				rt.Fatal(err)
			}
		}
		if want := s.result(size); c.now.width != want.X || c.now.height != want.Y || len(c.now.pix) != 3*want.X*want.Y {
			rt.Fatalf("%s of %v: %dx%d, want %v", s.name, size, c.now.width, c.now.height, want)
		}
	})
}

func TestCanvasHoldsToItsLimit(t *testing.T) {
	c := canvas{pixels: 100}
	c.now.reset(10, 10)
	if err := c.resize(image.Pt(10, 11), Bilinear, true); !errors.Is(err, format.ErrLimit) {
		t.Errorf("a larger picture: %v", err)
	}
	c.now.reset(1, 100)
	if err := c.resize(image.Pt(1, 2), Bilinear, true); err != nil {
		t.Error(err)
	}
}

// The resize of pictures of 8 bits that other operations have changed.
// benchmarks/images holds a resize against that of another package.
func BenchmarkResize(b *testing.B) {
	b.ReportAllocs()
	var c canvas
	for b.Loop() {
		c.now.reset(400, 300)
		if err := c.resize(image.Pt(224, 224), Bilinear, true); err != nil {
			b.Fatal(err)
		}
	}
}

// Both ways of walking give the same pixels where no place lies near an edge
// between two: here places are odd multiples of 1/4.
func TestStepsOfLargePictures(t *testing.T) {
	m := affine{0.5, -0.5, 2.25, 0.5, 0.5, -1}
	var src, a, b raster
	src.reset(31, 17)
	for i := range src.pix {
		src.pix[i] = uint8(i * 7)
	}
	a.reset(31, 17)
	b.reset(31, 17)
	clear(a.pix)
	clear(b.pix)
	steppedFixed(&a, &src, m)
	stepped(&b, &src, m)
	if !bytes.Equal(a.pix, b.pix) {
		t.Error("the pixels differ")
	}
	if !m.fits(31, 17) || m.fits(1<<17, 17) || (affine{1, 0, -1 << 15, 0, 1, 0}).fits(4, 4) {
		t.Error("what fits into 16 bits")
	}
}

func TestPlanReadsBack(t *testing.T) {
	for want, d := range map[string]Drawn{
		"RandomCrop (1,2)-(5,6)":                              {Op: "RandomCrop", Active: true, Rect: image.Rect(1, 2, 5, 6)},
		"RandomHorizontalFlip not":                            {Op: "RandomHorizontalFlip"},
		"RandomVerticalFlip":                                  {Op: "RandomVerticalFlip", Active: true},
		"GaussianBlur 1.25":                                   {Op: "GaussianBlur", Active: true, Factor: [4]float64{1.25}},
		"RandAugment ShearX -0.3":                             {Op: "RandAugment", Active: true, Choice: autoShearX, Factor: [4]float64{-0.3}},
		"ColorJitter hue -0.1 saturation 1.5 brightness 0.75": {Op: "ColorJitter", Active: true, Factor: [4]float64{0.75, 0, 1.5, -0.1}, Order: [4]uint8{3, 2, 1, 0}},
	} {
		if got := d.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	tr, err := Compile(CenterCrop{Size: 4}, RandomGrayscale{P: 1}, RandomErasing{P: math.SmallestNonzeroFloat64})
	if err != nil {
		t.Fatal(err)
	}
	p := tr.Plan(Header{Width: 8, Height: 6}, 1)
	if got, want := p.String(), "8x6, CenterCrop (2,1)-(6,5), RandomGrayscale"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if p.Ops()[2].Place != 2 || len(p.Ops()) != 3 || p.Crop != image.Rect(2, 1, 6, 5) {
		t.Errorf("%+v", p)
	}
}
