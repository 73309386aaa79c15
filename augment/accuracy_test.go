package augment_test

import (
	"archive/tar"
	"errors"
	"image"
	"io"
	"iter"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"shardtool/augment"
	"shardtool/augment/jpeg"
	"shardtool/fixtures"
	"shardtool/tensor"
)

// embeddedPhotos returns the photographs of one of the embedded shards.
func embeddedPhotos(t testing.TB) [][]byte {
	t.Helper()
	f, err := fixtures.Photos.Open(fixtures.PhotoShards[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all [][]byte
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if path.Ext(h.Name) != ".jpg" {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data)
	}
	if len(all) < 15 {
		t.Fatalf("%d photographs", len(all))
	}
	return all
}

// onPhotos runs a test on the embedded photographs, and on the JPEGs of the
// folder that the environment variable SHARDTOOL_PHOTOS names.
func onPhotos(t *testing.T, test func(t *testing.T, photos iter.Seq2[int, []byte])) {
	t.Run("embedded", func(t *testing.T) { test(t, slices.All(embeddedPhotos(t))) })
	t.Run("folder", func(t *testing.T) {
		dir := os.Getenv("SHARDTOOL_PHOTOS")
		if dir == "" {
			t.Skip("SHARDTOOL_PHOTOS is not set")
		}
		var names []string
		for _, ext := range []string{"*.jpg", "*.jpeg", "*.JPEG"} {
			more, _ := filepath.Glob(filepath.Join(dir, ext))
			names = append(names, more...)
		}
		if len(names) == 0 {
			t.Fatalf("no photographs in %s", dir)
		}
		test(t, func(yield func(int, []byte) bool) {
			for n, name := range names {
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if !yield(n, data) {
					return
				}
			}
		})
	})
}

// differences counts how far values are from what they should be, in grey
// levels.
type differences struct {
	hundredths [256 * 100]int
	count      int
	sum, most  float64
}

func (d *differences) add(v float64) {
	v = math.Abs(v)
	d.hundredths[min(int(v*100), len(d.hundredths)-1)]++
	d.count++
	d.sum += v
	d.most = max(d.most, v)
}

// check holds the mean and 99.9% of the values to bounds.
func (d *differences) check(t *testing.T, mean, most float64) {
	t.Helper()
	at, seen := 0, 0
	for ; seen < d.count-d.count/1000; at++ {
		seen += d.hundredths[at]
	}
	t.Logf("differences in grey levels: mean %.3f, 99.9%% within %.2f, most %.1f", d.sum/float64(d.count), float64(at)/100, d.most)
	if !(d.sum/float64(d.count) <= mean && float64(at)/100 <= most) {
		t.Errorf("a mean of %v and %v for 99.9%% of the values are allowed", mean, most)
	}
}

// The fused path on photographs, against what training on exact pixels would
// see: the RGB of libjpeg (which package jpeg gives bit for bit; its tests show
// that), cropped, resized in float64 with the antialiased triangle, and not
// rounded. The differences come of chroma, which is clipped to the range of
// colours after the resize instead of before, and of fixed point.
func TestFusedPathOnPhotographs(t *testing.T) {
	const size = 224
	onPhotos(t, func(t *testing.T, photos iter.Seq2[int, []byte]) {
		tr := augment.ImageNetTrain(size)
		w := tr.NewWorker(nil)
		dec := jpeg.NewDecoder(nil)
		var px augment.Pixels
		dst := slot(size)
		var diffs differences
		for n, data := range photos {
			h, err := w.Header(data)
			if err != nil {
				t.Fatal(err)
			}
			if h.Orientation > 1 {
				continue // package jpeg gives it as stored
			}
			rgb := make([]byte, 3*h.Width*h.Height)
			if err := dec.RGB(rgb, 3*h.Width, data, image.Rect(0, 0, h.Width, h.Height), 1); err != nil {
				t.Fatal(err)
			}
			plan := tr.Plan(h, augment.Draws(n))
			if err := w.Run(dst, &px, data, augment.Draws(n)); err != nil {
				t.Fatal(err)
			}
			drawn := plan.Ops()
			want := resized(rgb, h.Width, drawn[0].Rect, size)
			std := augment.ImageNetNormalize.Std
			mean := augment.ImageNetNormalize.Mean
			for i, v := range dst.Float32() {
				c, y, x := i/(size*size), i/size%size, i%size
				if drawn[1].Active {
					x = size - 1 - x
				}
				level := (float64(v)*std[c] + mean[c]) * 255
				diffs.add(level - want[(c*size+y)*size+x])
			}
		}
		diffs.check(t, 0.5, 6)
	})
}

// What the package comment says of the first pass and of the way over pictures
// of 8 bits, whose results are Pillow's.
func TestPathsOnPhotographs(t *testing.T) {
	for name, ops := range map[string][]augment.Op{
		"color": {augment.RandomResizedCrop{Size: 224}, augment.RandomHorizontalFlip{}},
		"gray":  {augment.RandomResizedCrop{Size: 224}, augment.Grayscale{}},
	} {
		t.Run(name, func(t *testing.T) {
			onPhotos(t, func(t *testing.T, photos iter.Seq2[int, []byte]) {
				tr := compile(t, append(ops, augment.ToTensor{DType: tensor.Uint8})...)
				w := tr.NewWorker(nil)
				var px augment.Pixels
				one, steps := denseOf(tr), denseOf(tr)
				var diffs differences
				for n, data := range photos {
					h, err := w.Header(data)
					if err != nil {
						t.Fatal(err)
					}
					plan := tr.Plan(h, augment.Draws(n))
					for _, dst := range []tensor.Dense{one, steps} {
						if err := errors.Join(w.DecodePlan(&px, data, &plan), w.Apply(dst, &px, &plan)); err != nil {
							t.Fatal(err)
						}
						plan.Unfold()
					}
					for i, v := range one.Uint8() {
						diffs.add(float64(v) - float64(steps.Uint8()[i]))
					}
				}
				diffs.check(t, 0.5, 6)
			})
		})
	}
}

// resized returns the part crop of a picture of interleaved RGB, size x size,
// channel after channel, in grey levels.
func resized(rgb []byte, width int, crop image.Rectangle, size int) []float64 {
	xs, ys := triangle(crop.Dx(), size), triangle(crop.Dy(), size)
	rows := make([]float64, crop.Dy()*size*3)
	for v := range crop.Dy() {
		row := rgb[3*((crop.Min.Y+v)*width+crop.Min.X):]
		for x := range size {
			for u, weight := range xs[x] {
				for c := range 3 {
					rows[(v*size+x)*3+c] += weight * float64(row[3*u+c])
				}
			}
		}
	}
	out := make([]float64, 3*size*size)
	for y := range size {
		for v, weight := range ys[y] {
			for x := range size {
				for c := range 3 {
					out[(c*size+y)*size+x] += weight * rows[(v*size+x)*3+c]
				}
			}
		}
	}
	return out
}
