package jpeg_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"shardtool/augment/jpeg"
	"shardtool/format"
	"shardtool/internal/simd"
)

const casesDir = "../../fixtures/cases/image"

// sound calls test for each file that is in order.
func sound(t *testing.T, test func(t *testing.T, name string, data []byte)) {
	for _, e := range readExpected(t) {
		if e.Kind != "damaged" && e.Warnings == 0 && e.Error == nil {
			t.Run(e.File, func(t *testing.T) { test(t, e.File, readFile(t, filepath.Join(jpegDir, e.File))) })
		}
	}
}

func whole(t *testing.T, d *jpeg.Decoder, data []byte, shrink int) (rgb []byte, w, h int) {
	t.Helper()
	hd, err := jpeg.ParseHeader(data)
	if err != nil {
		t.Fatal(err)
	}
	w, h = hd.Upright()
	w, h = (w+shrink-1)/shrink, (h+shrink-1)/shrink
	rgb = make([]byte, 3*w*h)
	err = d.RGB(rgb, 3*w, data, image.Rect(0, 0, w, h), shrink)
	if errors.Is(err, format.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rgb, w, h
}

// A part is what the whole has there, whatever lies around it.
func TestParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	sound(t, func(t *testing.T, _ string, data []byte) {
		d := jpeg.NewDecoder(nil)
		for _, shrink := range []int{1, 2, 4, 8} {
			rgb, w, h := whole(t, d, data, shrink)
			for range 12 {
				x0, y0 := rng.IntN(w), rng.IntN(h)
				r := image.Rect(x0, y0, x0+1+rng.IntN(w-x0), y0+1+rng.IntN(h-y0))
				got := make([]byte, 3*r.Dx()*r.Dy())
				if err := d.RGB(got, 3*r.Dx(), data, r, shrink); err != nil {
					t.Fatal(err)
				}
				for y := range r.Dy() {
					if a, b := got[3*y*r.Dx():][:3*r.Dx()], rgb[3*((y0+y)*w+x0):][:3*r.Dx()]; !bytes.Equal(a, b) {
						t.Fatalf("row %d of %v at 1/%d differs from the whole", y, r, shrink)
					}
				}
			}
		}
	})
}

// Several goroutines give the same picture as one.
func TestWorkers(t *testing.T) {
	sound(t, func(t *testing.T, _ string, data []byte) {
		one, w, h := whole(t, jpeg.NewDecoder(nil), data, 1)
		for _, workers := range []int{2, 3, 8} {
			d := jpeg.NewDecoder(&jpeg.Options{Workers: workers})
			if many, _, _ := whole(t, d, data, 1); !bytes.Equal(many, one) {
				t.Errorf("%d workers give another picture", workers)
			}
			r := image.Rect(w/3, h/3, w, h)
			part := make([]byte, 3*r.Dx()*r.Dy())
			if err := d.RGB(part, 3*r.Dx(), data, r, 1); err != nil {
				t.Fatal(err)
			}
			for y := range r.Dy() {
				if row := part[3*y*r.Dx():][:3*r.Dx()]; !bytes.Equal(row, one[3*((r.Min.Y+y)*w+r.Min.X):][:len(row)]) {
					t.Fatalf("%d workers give another row %d of %v", workers, y, r)
				}
			}
		}
	})
	// And of damaged files the same outcome, with the place of one fault.
	for _, e := range readExpected(t) {
		if e.Kind != "damaged" {
			continue
		}
		data := readFile(t, filepath.Join(jpegDir, e.File))
		var one, many jpeg.Image
		r := image.Rect(0, 0, e.Width, e.Height)
		a := jpeg.NewDecoder(nil).Planes(&one, data, r, 1)
		b := jpeg.NewDecoder(&jpeg.Options{Workers: 8}).Planes(&many, data, r, 1)
		if format.Sentinel(a) != format.Sentinel(b) {
			t.Errorf("%s: one worker %v, eight %v", e.File, a, b)
		}
	}
}

// Restart markers let a part begin near its first row: damage in an interval
// above it is not read.
func TestPartBeginsAtARestart(t *testing.T) {
	data := readFile(t, filepath.Join(jpegDir, "restart-row.jpg"))
	h, err := jpeg.ParseHeader(data)
	if err != nil {
		t.Fatal(err)
	}
	scan := bytes.Index(data, []byte{0xff, 0xda})
	first := scan + 2 + int(binary.BigEndian.Uint16(data[scan+2:]))
	rst := bytes.Index(data[first:], []byte{0xff, 0xd0}) + first
	damaged := bytes.Clone(data)
	for i := first; i < rst; i++ {
		damaged[i] = 0x55
	}
	d := jpeg.NewDecoder(nil)
	all := image.Rect(0, 0, h.Width, h.Height)
	if err := d.RGB(make([]byte, 3*h.Width*h.Height), 3*h.Width, damaged, all, 1); !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrTruncated) {
		t.Fatalf("the whole: %v", err)
	}
	lower := image.Rect(0, h.Height-8, h.Width, h.Height)
	got, want := make([]byte, 3*h.Width*8), make([]byte, 3*h.Width*8)
	if err := d.RGB(want, 3*h.Width, data, lower, 1); err != nil {
		t.Fatal(err)
	}
	if err := d.RGB(got, 3*h.Width, damaged, lower, 1); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the lower part: %v", err)
	}
}

// Assembly and generic Go give the same, also for what is damaged.
func TestAssemblyIsGeneric(t *testing.T) {
	if simd.Active() == simd.Generic {
		t.Skip("no assembly here")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for _, e := range readExpected(t) {
		data := readFile(t, filepath.Join(jpegDir, e.File))
		for n := range 20 {
			mutated := bytes.Clone(data)
			for range n {
				at := len(mutated)/4 + rng.IntN(len(mutated)-len(mutated)/4)
				mutated[at] = byte(rng.Uint32())
			}
			for _, tolerant := range []bool{false, true} {
				a, errA := planesAt(mutated, tolerant, simd.AVX2)
				b, errB := planesAt(mutated, tolerant, simd.Generic)
				if !bytes.Equal(a, b) || (errA == nil) != (errB == nil) || errA != nil && errA.Error() != errB.Error() {
					t.Fatalf("%s, %d changes, tolerant %v: assembly and generic Go differ: %v and %v", e.File, n, tolerant, errA, errB)
				}
			}
		}
	}
}

// planesAt returns the samples of a part, and what the decoder is left with.
func planesAt(data []byte, tolerant bool, level simd.Level) ([]byte, error) {
	defer simd.SetLevel(level)()
	h, err := jpeg.ParseHeader(data)
	if err != nil {
		return nil, err
	}
	d := jpeg.NewDecoder(&jpeg.Options{Tolerant: tolerant, Limits: &format.Limits{Pixels: 1 << 20}})
	var img jpeg.Image
	if err := d.Planes(&img, data, image.Rect(h.Width/2, h.Height/2, h.Width, h.Height), 1); err != nil {
		return nil, err
	}
	var all []byte
	for i := range img.Count {
		all = append(all, samples(&img.Planes[i])...)
	}
	return all, nil
}

// The stored picture is 2 wide, 3 high:
//
//	a b
//	c d
//	e f
//
// and upright, by the definition of the tag (row 0 and column 0 of the stored
// picture are at the side that the table of EXIF names).
func TestOrientations(t *testing.T) {
	for o, want := range map[jpeg.Orientation][]string{
		1: {"ab", "cd", "ef"}, // top left
		2: {"ba", "dc", "fe"}, // top right
		3: {"fe", "dc", "ba"}, // bottom right
		4: {"ef", "cd", "ab"}, // bottom left
		5: {"ace", "bdf"},     // left top
		6: {"eca", "fdb"},     // right top
		7: {"fdb", "eca"},     // right bottom
		8: {"bdf", "ace"},     // left bottom
	} {
		stored := []string{"ab", "cd", "ef"}
		for y, row := range want {
			for x := range row {
				r := o.Stored(image.Rect(x, y, x+1, y+1), 2, 3)
				if got := stored[r.Min.Y][r.Min.X]; r.Dx() != 1 || r.Dy() != 1 || got != row[x] {
					t.Errorf("orientation %d: pixel %d,%d is %c, want %c", o, x, y, got, row[x])
				}
			}
		}
		var src, dst []byte
		for _, row := range stored {
			for i := range row {
				src = append(src, row[i], row[i], row[i])
			}
		}
		stride := 3*len(want[0]) + 5
		dst = make([]byte, stride*len(want))
		jpeg.Apply(o, dst, stride, src, 2, 3, 3)
		for y, row := range want {
			for x := range row {
				if got := dst[y*stride+3*x]; got != row[x] {
					t.Errorf("orientation %d turns pixel %d,%d into %c, want %c", o, x, y, got, row[x])
				}
			}
		}
	}
}

// At a ratio of 3 to 2 the centres of two samples lie at pixels 0.25 and 1.75
// of three, counted from the centre of the first: sample i at 1.5i + 0.25.
func TestFractionalRatio(t *testing.T) {
	p := jpeg.Plane{
		Pix: []byte{0, 90, 180, 30}, Stride: 4, Rect: image.Rect(0, 0, 4, 1), Width: 4, Height: 1,
		X: jpeg.Ratio{Num: 3, Den: 2}, Y: jpeg.Ratio{Num: 1, Den: 1},
	}
	// Pixel 1 is half way, pixel 2 is 1/6 beyond sample 1, and so on.
	want := []byte{0, 45, 105, 165, 105, 30}
	got := make([]byte, 6)
	jpeg.Upsample(&p, got, 0, 0)
	if !bytes.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	jpeg.Upsample(&p, got[:3], 0, 2)
	if !bytes.Equal(got[:3], want[2:5]) {
		t.Errorf("from pixel 2: %v, want %v", got[:3], want[2:5])
	}
}

// Pictures of uncommon ratios show what their twin at 4:4:4 shows, but for what
// is lost by coarser chroma: flat quarters, whose edges blur.
func TestUncommonRatiosBesideTheirTwin(t *testing.T) {
	d := jpeg.NewDecoder(nil)
	twin, _, _ := whole(t, d, readFile(t, filepath.Join(casesDir, "good_444.jpg")), 1)
	names, err := filepath.Glob(filepath.Join(casesDir, "d2_sample_*.jpg"))
	if err != nil || len(names) < 7 {
		t.Fatal(len(names), err)
	}
	for _, name := range names {
		got, _, _ := whole(t, d, readFile(t, name), 1)
		var sum int
		for i, v := range got {
			sum += max(int(v)-int(twin[i]), int(twin[i])-int(v))
		}
		if mean := float64(sum) / float64(len(got)); len(got) != len(twin) || mean > 6 {
			t.Errorf("%s: differs by %.1f grey levels in the mean", name, mean)
		}
	}
}

func TestBombs(t *testing.T) {
	large := bytes.Clone(readFile(t, filepath.Join(jpegDir, "progressive-gray.jpg")))
	sof := bytes.Index(large, []byte{0xff, 0xc2})
	for name, tt := range map[string]struct {
		data   []byte
		limits format.Limits
		want   error
	}{
		"scans":            {endlessScans(8, 600), format.Limits{}, format.ErrLimit},
		"pixels":           {resized(large, sof, 65535, 65535), format.Limits{}, format.ErrLimit},
		"more than bytes":  {resized(large, sof, 16000, 16000), format.Limits{}, format.ErrTruncated},
		"kept, tolerant":   {resized(large, sof, 16000, 16000), format.Limits{}, format.ErrLimit},
		"baseline, claims": {resized(readFile(t, filepath.Join(jpegDir, "gray.jpg")), -1, 16000, 16000), format.Limits{}, format.ErrTruncated},
	} {
		d := jpeg.NewDecoder(&jpeg.Options{Limits: &tt.limits, Tolerant: strings.HasSuffix(name, "tolerant")})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var img jpeg.Image
		err := d.Planes(&img, tt.data, image.Rect(0, 0, 1, 1), 1)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 256<<10 {
			t.Errorf("%s: %d bytes are allocated", name, allocated)
		}
	}
}

// resized returns the file with another size in its frame header, at sof.
func resized(data []byte, sof int, w, h uint16) []byte {
	if sof < 0 {
		sof = bytes.Index(data, []byte{0xff, 0xc0})
	}
	data = bytes.Clone(data)
	binary.BigEndian.PutUint16(data[sof+5:], h)
	binary.BigEndian.PutUint16(data[sof+7:], w)
	return data
}

// A progressive file whose scans of a few bytes go through many blocks, again
// and again, is stopped by the work that it makes.
func TestWorkIsBounded(t *testing.T) {
	data := endlessScans(2000, 400)
	d := jpeg.NewDecoder(nil)
	var img jpeg.Image
	err := d.Planes(&img, data, image.Rect(0, 0, 8, 8), 1)
	if !errors.Is(err, format.ErrLimit) || !strings.Contains(err.Error(), "blocks") {
		t.Errorf("%d bytes: %v", len(data), err)
	}
}

// endlessScans makes a gray progressive file of side x side pixels: a DC scan
// of all zeros, then scans of one AC coefficient which all blocks skip by runs
// of 2^14.
func endlessScans(side uint16, scans int) []byte {
	b := []byte{0xff, 0xd8}
	seg := func(marker byte, content ...byte) {
		b = append(b, 0xff, marker, byte((len(content)+2)>>8), byte(len(content)+2))
		b = append(b, content...)
	}
	seg(0xdb, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)...)
	seg(0xc2, 8, byte(side>>8), byte(side), byte(side>>8), byte(side), 1, 1, 0x11, 0)
	one := func(class, symbol byte) {
		seg(0xc4, append(append([]byte{class, 1}, make([]byte, 15)...), symbol)...)
	}
	one(0x00, 0)    // code 0: no difference
	one(0x10, 0xe0) // code 0: 2^14 blocks and the number in 14 bits end here
	blocks := (int(side) + 7) / 8 * ((int(side) + 7) / 8)
	seg(0xda, 1, 1, 0, 0, 0, 0)
	b = append(b, make([]byte, (blocks+7)/8)...)
	for i := range scans {
		at := byte(1 + i%63)
		seg(0xda, 1, 1, 0, at, at, 0)
		b = append(b, make([]byte, (blocks>>14+1)*15/8+1)...)
	}
	return append(b, 0xff, 0xd9)
}

func TestHeaders(t *testing.T) {
	for name, want := range map[string]struct {
		w, h     int
		sampling string
		o        jpeg.Orientation
	}{
		"good_420.jpg": {50, 38, "4:2:0", 1}, "good_411.jpg": {50, 38, "4:1:1", 1}, "good_gray.jpg": {40, 30, "", 1},
		"d6_ii_6.jpg": {32, 16, "4:4:4", 6}, "d6_mm_8.jpg": {32, 16, "4:4:4", 8}, "d6_two_exif.jpg": {32, 16, "4:4:4", 6},
		"d6_ifd1_only.jpg": {32, 16, "4:4:4", 1}, "d6_value_9.jpg": {32, 16, "4:4:4", 1}, "good_410.jpg": {50, 38, "4:1:0", 1},
		"d2_sample_2x2_1x1_1x2.jpg": {50, 38, "2x2,1x1,1x2", 1},
	} {
		h, err := jpeg.ParseHeader(readFile(t, filepath.Join(casesDir, name)))
		if err != nil || h.Width != want.w || h.Height != want.h || h.Sampling() != want.sampling || h.Orientation != want.o {
			t.Errorf("%s: %+v (%s), %v, want %v", name, h, h.Sampling(), err, want)
		}
	}
}

// Gray is luma: the samples that libjpeg has for it, and of RGB what the usual
// weights give.
func TestGray(t *testing.T) {
	d := jpeg.NewDecoder(nil)
	var img jpeg.Image
	sound(t, func(t *testing.T, name string, data []byte) {
		rgb, w, h := whole(t, d, data, 1)
		got := make([]byte, w*h)
		all := image.Rect(0, 0, w, h)
		if err := d.Gray(got, w, data, all, 1); err != nil {
			t.Fatal(err)
		}
		if err := d.Planes(&img, data, all, 1); err != nil {
			t.Fatal(err)
		}
		p := &img.Planes[0]
		for y := range h {
			for x := range w {
				switch v := got[y*w+x]; {
				case img.Color == jpeg.Gray || img.Color == jpeg.YCbCr && p.Width == w && p.Height == h:
					if v != p.Pix[y*p.Stride+x] {
						t.Fatalf("%d,%d is %d, luma is %d", x, y, v, p.Pix[y*p.Stride+x])
					}
				case img.Color != jpeg.YCbCr:
					at := rgb[3*(y*w+x):]
					if want := 0.299*float64(at[0]) + 0.587*float64(at[1]) + 0.114*float64(at[2]); math.Abs(float64(v)-want) > 0.51 {
						t.Fatalf("%d,%d is %d, want %v", x, y, v, want)
					}
				}
			}
		}
	})
}

// stored is a Source that has all coefficients at hand, as another layout of
// shards may.
type stored struct {
	jpeg.Source
	rows []jpeg.Strip
}

func (s *stored) Row(y, x0, _ int) (jpeg.Strip, error) {
	strip := s.rows[y]
	for i := range s.Frame().Count {
		strip.Coefs[i] = strip.Coefs[i][64*s.Frame().Comps[i].H*x0:]
	}
	return strip, nil
}

// What comes after the entropy decoder takes coefficients of any source.
func TestReconstructFromAnySource(t *testing.T) {
	sound(t, func(t *testing.T, name string, data []byte) {
		d := jpeg.NewDecoder(nil)
		src, err := d.Coefficients(data)
		if err != nil {
			t.Fatal(err)
		}
		f := src.Frame()
		kept := &stored{Source: src}
		for y := range f.Rows {
			s, err := src.Row(y, 0, f.Cols)
			if err != nil {
				t.Fatal(err)
			}
			for i := range f.Count {
				s.Coefs[i] = slices.Clone(s.Coefs[i])
			}
			kept.rows = append(kept.rows, s)
		}
		var got, want jpeg.Image
		r := image.Rect(f.Width/2, f.Height/2, f.Width, f.Height)
		if err := got.Reconstruct(kept, r, 1); err != nil {
			t.Fatal(err)
		}
		if err := jpeg.NewDecoder(nil).Planes(&want, data, r, 1); err != nil {
			t.Fatal(err)
		}
		for i := range f.Count {
			a, b := &got.Planes[i], &want.Planes[i]
			for y := range a.Rect.Dy() {
				if a.Rect != b.Rect || !bytes.Equal(a.Pix[y*a.Stride:][:a.Rect.Dx()], b.Pix[y*b.Stride:][:b.Rect.Dx()]) {
					t.Fatalf("plane %d differs", i)
				}
			}
		}
	})
}

// Damage is told of whichever way a picture was decoded.
func TestDamaged(t *testing.T) {
	d := jpeg.NewDecoder(&jpeg.Options{Tolerant: true})
	for name, want := range map[string]bool{"420.jpg": false, "damaged-cut-50.jpg": true, "damaged-ones.jpg": true, "damaged-cut-progressive-ac.jpg": true} {
		data := readFile(t, filepath.Join(jpegDir, name))
		src, err := d.Coefficients(data)
		if err != nil {
			t.Fatal(err)
		}
		f := src.Frame()
		var img jpeg.Image
		if err := img.Reconstruct(src, image.Rect(0, 0, f.Width, f.Height), 1); err != nil {
			t.Fatal(err)
		}
		if d.Damaged() != want {
			t.Errorf("%s: damaged is %v", name, d.Damaged())
		}
	}
}

// A source that cannot go back says so, instead of giving other blocks.
func TestRowsComeInOrder(t *testing.T) {
	d := jpeg.NewDecoder(nil)
	src, err := d.Coefficients(readFile(t, filepath.Join(jpegDir, "420.jpg")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Row(1, 0, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := src.Row(0, 0, 2); !errors.Is(err, format.ErrUsage) {
		t.Errorf("an earlier row: %v", err)
	}
}

func TestRefusedByName(t *testing.T) {
	for data, want := range map[string]string{
		"\xff\xd8\xff\xf7\x00\x0b\x08\x00\x10\x00\x10\x01\x01\x11\x00": "JPEG-LS",
		"\xff\xd8\xff\xc3\x00\x0b\x08\x00\x10\x00\x10\x01\x01\x11\x00": "lossless",
		"\xff\xd8\xff\xc9\x00\x0b\x08\x00\x10\x00\x10\x01\x01\x11\x00": "arithmetic",
		"\xff\xd8\xff\xc5\x00\x0b\x08\x00\x10\x00\x10\x01\x01\x11\x00": "hierarchical",
		"\xff\xd8\xff\xc1\x00\x0b\x0c\x00\x10\x00\x10\x01\x01\x11\x00": "12 bits",
	} {
		_, err := jpeg.ParseHeader([]byte(data))
		var img jpeg.Image
		e := jpeg.NewDecoder(nil).Planes(&img, []byte(data), image.Rect(0, 0, 1, 1), 1)
		for _, err := range []error{err, e} {
			if !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		}
	}
}

// Planes use the caller's memory where there is enough.
func TestMemoryOfTheCaller(t *testing.T) {
	mem := make([]byte, 1<<16)
	img := jpeg.Image{Mem: mem}
	if err := jpeg.NewDecoder(nil).Planes(&img, readFile(t, filepath.Join(jpegDir, "420.jpg")), image.Rect(0, 0, 16, 16), 1); err != nil {
		t.Fatal(err)
	}
	if &img.Planes[0].Pix[0] != &mem[0] {
		t.Error("the memory given was not used")
	}
}
