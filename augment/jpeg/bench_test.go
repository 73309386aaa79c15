package jpeg_test

import (
	"image"
	"os"
	"path/filepath"
	"testing"

	"shardtool/augment/jpeg"
)

// photos returns the photographs to measure with: those of the environment
// variable SHARDTOOL_PHOTOS, a folder, or the corpus beside the tree, or those
// that are embedded in the project.
func photos(tb testing.TB) [][]byte {
	dir := os.Getenv("SHARDTOOL_PHOTOS")
	if dir == "" {
		dir = "../../../shared/corpus/photos"
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*.jpg"))
	var all [][]byte
	for _, name := range names {
		all = append(all, readFile(tb, name))
	}
	if len(all) == 0 {
		tb.Skip("no photographs")
	}
	return all
}

func BenchmarkEntropy(b *testing.B) {
	files := photos(b)
	d := jpeg.NewDecoder(nil)
	var bytes, n int64
	for b.Loop() {
		data := files[n%int64(len(files))]
		n++
		bytes += int64(len(data))
		src, err := d.Coefficients(data)
		if err != nil {
			b.Fatal(err)
		}
		f := src.Frame()
		for y := range f.Rows {
			if _, err := src.Row(y, 0, f.Cols); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.SetBytes(bytes / n)
}

func BenchmarkSkip(b *testing.B) {
	files := photos(b)
	d := jpeg.NewDecoder(nil)
	var bytes, n int64
	for b.Loop() {
		data := files[n%int64(len(files))]
		n++
		bytes += int64(len(data))
		src, err := d.Coefficients(data)
		if err != nil {
			b.Fatal(err)
		}
		f := src.Frame()
		if _, err := src.Row(f.Rows-1, f.Cols-1, f.Cols); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(bytes / n)
}

func BenchmarkPlanes(b *testing.B) {
	files := photos(b)
	d := jpeg.NewDecoder(nil)
	var img jpeg.Image
	var bytes, n int64
	b.ReportAllocs()
	for b.Loop() {
		data := files[n%int64(len(files))]
		n++
		bytes += int64(len(data))
		h, err := jpeg.ParseHeader(data)
		if err != nil {
			b.Fatal(err)
		}
		if err := d.Planes(&img, data, image.Rect(0, 0, h.Width, h.Height), 1); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(bytes / n)
}
