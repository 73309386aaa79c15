package jpeg_test

import (
	"image"
	"path/filepath"
	"testing"

	"shardtool/augment/jpeg"
)

// A decoder that has seen pictures of a kind allocates nothing for the next.
func TestNoAllocation(t *testing.T) {
	names := []string{"420.jpg", "444.jpg", "422.jpg", "gray.jpg", "optimize.jpg", "restart-3.jpg", "progressive-420.jpg", "scans-0-1-2.jpg", "cmyk-adobe.jpg"}
	var files [][]byte
	for _, name := range names {
		files = append(files, readFile(t, filepath.Join(jpegDir, name)))
	}
	d := jpeg.NewDecoder(nil)
	var img jpeg.Image
	dst := make([]byte, 3*200*200)
	all := func() {
		for i, data := range files {
			h, err := jpeg.ParseHeader(data)
			if err != nil {
				t.Fatal(names[i], err)
			}
			if err := d.Planes(&img, data, image.Rect(h.Width/3, h.Height/3, h.Width, h.Height), 1); err != nil {
				t.Fatal(names[i], err)
			}
			if err := d.RGB(dst, 600, data, image.Rect(0, 0, h.Width, h.Height), 1); err != nil {
				t.Fatal(names[i], err)
			}
		}
	}
	all()
	if n := testing.AllocsPerRun(20, all); n != 0 {
		t.Errorf("%v allocations for %d files", n, len(files))
	}
}
