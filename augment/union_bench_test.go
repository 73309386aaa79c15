package augment_test

import (
	"fmt"
	"image"
	"os"
	"path/filepath"
	"testing"

	"shardtool/augment"
)

// BenchmarkUnion decodes for 2 to 8 copies of a photograph: each copy's crop for
// itself, the rectangle about them at once, or the whole picture, each with all
// that the copies then cost (compact pixels, and Apply). What is reported besides
// the time is the mean share of the picture that the rectangle is, and how many
// bytes are kept.
func BenchmarkUnion(b *testing.B) {
	files := benchPhotos(b)
	for _, bench := range []struct {
		name string
		tr   *augment.Transform
	}{
		{"train", augment.ImageNetTrain(224)},
		{"shrink", augment.ImageNetTrain(64).WithShrink()},
		{"small crops", compile(b, augment.RandomResizedCrop{Size: 96, Scale: [2]float64{0.02, 0.1}}, augment.RandomHorizontalFlip{}, augment.ImageNetNormalize)},
	} {
		for _, copies := range []int{2, 3, 4, 8} {
			for _, way := range []string{"own", "union", "whole"} {
				b.Run(fmt.Sprintf("%s/e=%d/%s", bench.name, copies, way), func(b *testing.B) {
					benchUnion(b, bench.tr, files, copies, way)
				})
			}
		}
	}
}

func benchUnion(b *testing.B, tr *augment.Transform, files [][]byte, copies int, way string) {
	w, dst := tr.NewWorker(nil), denseOf(tr)
	var px, view augment.Pixels
	mem := make([]byte, 64<<20)
	plans := make([]augment.Plan, copies)
	var share, bytes float64
	n := 0
	for b.Loop() {
		data := files[n%len(files)]
		h, err := w.Header(data)
		if err != nil {
			b.Fatal(err)
		}
		var u augment.Union
		for i := range plans {
			plans[i] = tr.Plan(h, augment.Draws(n*100+i))
			u.Add(&plans[i])
		}
		n++
		if way == "whole" {
			u.Crop = image.Rect(0, 0, h.Width, h.Height)
		}
		if way != "own" {
			if err := w.DecodeUnion(&px, data, u); err != nil {
				b.Fatal(err)
			}
			c := px.Compact(mem)
			c.View(&view)
			share += float64(u.Crop.Dx()*u.Crop.Dy()) / float64(h.Width*h.Height)
			bytes += float64(px.CompactBytes())
		}
		for i := range plans {
			from := &view
			if way == "own" {
				from = &px
				if err := w.DecodePlan(&px, data, &plans[i]); err != nil {
					b.Fatal(err)
				}
			}
			if err := w.Apply(dst, from, &plans[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n*copies), "µs/copy")
	if way != "own" {
		b.ReportMetric(share/float64(n), "share")
		b.ReportMetric(bytes/float64(n), "bytes")
	}
}

// BenchmarkCompact is what keeping a decoded photograph costs.
func BenchmarkCompact(b *testing.B) {
	data := benchPhotos(b)[0]
	var px, view augment.Pixels
	dec := augment.Standard(nil)
	h, err := dec.Header(data)
	if err != nil {
		b.Fatal(err)
	}
	if err := dec.Decode(&px, data, image.Rect(0, 0, h.Width, h.Height)); err != nil {
		b.Fatal(err)
	}
	mem := make([]byte, px.CompactBytes())
	b.SetBytes(int64(len(mem)))
	b.ReportAllocs()
	for b.Loop() {
		c := px.Compact(mem)
		c.View(&view)
	}
}

// benchPhotos are the photographs of the folder that SHARDTOOL_PHOTOS names, or
// the embedded ones.
func benchPhotos(b *testing.B) (all [][]byte) {
	dir := os.Getenv("SHARDTOOL_PHOTOS")
	if dir == "" {
		return embeddedPhotos(b)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.jpg"))
	if err != nil || len(names) == 0 {
		b.Fatal("no photographs", err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, data)
	}
	return all
}

// BenchmarkCorners decodes two crops in opposite corners of a photograph, the
// worst that can be for the rectangle about them, of sides that are such a share
// of the picture's.
func BenchmarkCorners(b *testing.B) {
	files := benchPhotos(b)
	w := augment.ImageNetTrain(224).NewWorker(nil)
	var px augment.Pixels
	for _, part := range []int{16, 8, 4, 3, 2} {
		for _, corner := range []string{"main", "other"} {
			for _, way := range []string{"own", "union"} {
				b.Run(fmt.Sprintf("1:%d/%s/%s", part, corner, way), func(b *testing.B) {
					for n := 0; b.Loop(); n++ {
						data := files[n%len(files)]
						h, err := w.Header(data)
						if err != nil {
							b.Fatal(err)
						}
						crop := image.Rect(0, 0, h.Width/part, h.Height/part)
						first, second := crop, crop.Add(image.Pt(h.Width, h.Height)).Sub(crop.Max)
						if corner == "other" {
							first, second = crop.Add(image.Pt(h.Width-crop.Max.X, 0)), crop.Add(image.Pt(0, h.Height-crop.Max.Y))
						}
						crops := []image.Rectangle{first, second}
						if way == "union" {
							crops = []image.Rectangle{first.Union(second)}
						}
						for _, r := range crops {
							if err := w.Decode(&px, data, r); err != nil {
								b.Fatal(err)
							}
						}
					}
				})
			}
		}
	}
}
