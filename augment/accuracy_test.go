package augment_test

import (
	"archive/tar"
	"errors"
	"image"
	"io"
	"math"
	"path"
	"slices"
	"testing"

	"shardtool/augment"
	"shardtool/augment/jpeg"
	"shardtool/fixtures"
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

// The fused path on photographs, against what training on exact pixels would
// see: the RGB of libjpeg (which package jpeg gives bit for bit; its tests show
// that), cropped, resized in float64 with the antialiased triangle, and not
// rounded. The differences come of chroma, which is clipped to the range of
// colors after the resize instead of before, and of fixed point.
func TestFusedPathOnPhotographs(t *testing.T) {
	const size = 224
	tr := augment.ImageNetTrain(size)
	w := tr.NewWorker(nil)
	dec := jpeg.NewDecoder(nil)
	var px augment.Pixels
	dst := slot(size)
	var differences []float64
	for n, data := range embeddedPhotos(t) {
		h, err := w.Header(data)
		if err != nil {
			t.Fatal(err)
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
			differences = append(differences, math.Abs(level-want[(c*size+y)*size+x]))
		}
	}
	slices.Sort(differences)
	var sum float64
	for _, d := range differences {
		sum += d
	}
	mean, most := sum/float64(len(differences)), differences[len(differences)*999/1000]
	t.Logf("differences in grey levels: mean %.3f, 99.9%% within %.2f, most %.1f", mean, most, differences[len(differences)-1])
	if mean > 0.5 || most > 6 {
		t.Errorf("the mean difference is %.3f grey levels, 99.9%% are within %.2f; 0.5 and 6 are allowed", mean, most)
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
