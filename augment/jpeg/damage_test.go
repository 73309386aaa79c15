package jpeg_test

import (
	"bytes"
	"errors"
	"image"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"shardtool/augment/jpeg"
	"shardtool/format"
)

// marked returns a segment.
func marked(marker byte, content ...byte) []byte {
	return append([]byte{0xff, marker, byte((len(content) + 2) >> 8), byte(len(content) + 2)}, content...)
}

// before returns data with more put in before the n-th marker of a kind, from 0.
func before(t *testing.T, data []byte, marker byte, n int, more []byte) []byte {
	t.Helper()
	at := 0
	for ; ; n-- {
		next := bytes.Index(data[at:], []byte{0xff, marker})
		if next < 0 {
			t.Fatalf("no marker FF%02X", marker)
		}
		at += next
		if n == 0 {
			return append(append(bytes.Clone(data[:at]), more...), data[at:]...)
		}
		at += 2
	}
}

// A part of a damaged picture, with tolerance, is what the whole shows there.
func TestPartsOfDamagedPictures(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, e := range readExpected(t) {
		if e.Kind != "damaged" {
			continue
		}
		data := readFile(t, filepath.Join(jpegDir, e.File))
		d := jpeg.NewDecoder(&jpeg.Options{Tolerant: true})
		var all, part jpeg.Image
		if err := d.Planes(&all, data, image.Rect(0, 0, e.Width, e.Height), 1); err != nil {
			t.Fatal(err)
		}
		for range 8 {
			x, y := rng.IntN(e.Width), rng.IntN(e.Height)
			r := image.Rect(x, y, x+1+rng.IntN(e.Width-x), y+1+rng.IntN(e.Height-y))
			if err := d.Planes(&part, data, r, 1); err != nil {
				t.Fatal(err)
			}
			for i := range part.Count {
				p, q := &part.Planes[i], &all.Planes[i]
				for y := p.Rect.Min.Y; y < p.Rect.Max.Y; y++ {
					got := p.Pix[(y-p.Rect.Min.Y)*p.Stride:][:p.Rect.Dx()]
					if !bytes.Equal(got, q.Pix[y*q.Stride:][p.Rect.Min.X:p.Rect.Max.X]) {
						t.Fatalf("%s: %v, plane %d, row %d differs from the whole", e.File, r, i, y)
					}
				}
			}
		}
	}
}

// The first interval of 1024 blocks has no data, the second begins the part
// that is asked for: what is passed over must not move where it is put.
func TestEmptyIntervalBeforeAPart(t *testing.T) {
	data := []byte{0xff, 0xd8}
	data = append(data, marked(0xdb, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)...)...)
	data = append(data, marked(0xc0, 8, 0, 16, 32, 0, 1, 1, 0x11, 0)...)
	data = append(data, marked(0xdd, 4, 0)...)
	data = append(data, marked(0xda, 1, 1, 0, 0, 63, 0)...)
	data = append(data, 0xff, 0xd0)
	for range 256 { // four blocks, all zero, by annex K's tables: 00 1010 00 1010 00 1010 00 1010
		data = append(data, 0x28, 0xa2, 0x8a)
	}
	data = append(data, 0xff, 0xd9)
	var img jpeg.Image
	d := jpeg.NewDecoder(&jpeg.Options{Tolerant: true})
	if err := d.Planes(&img, data, image.Rect(0, 8, 8, 16), 1); err != nil {
		t.Fatal(err)
	}
	if !d.Damaged() || img.Planes[0].Pix[0] != 128 {
		t.Errorf("damaged %v, first sample %d", d.Damaged(), img.Planes[0].Pix[0])
	}
}

// What stands after the scan has no say in it: other quantisation, other codes,
// markers of color.
func TestSegmentsAfterTheScan(t *testing.T) {
	baseline := readFile(t, filepath.Join(jpegDir, "420.jpg"))
	progressive := readFile(t, filepath.Join(jpegDir, "progressive-420.jpg"))
	jfif := bytes.Index(progressive, []byte("JFIF"))
	progressive = append(bytes.Clone(progressive[:jfif-4]), progressive[jfif+12:]...)
	adobe := marked(0xee, []byte("Adobe\x00\x64\x00\x00\x00\x00\x00")...)
	var codes []byte
	for i := range 40 {
		counts := make([]byte, 16)
		counts[7] = 1
		codes = append(codes, marked(0xc4, append(append([]byte{byte(i & 1 << 4)}, counts...), byte(i))...)...)
	}
	for name, tt := range map[string]struct{ plain, changed []byte }{
		"quantisation": {baseline, before(t, baseline, 0xd9, 0, marked(0xdb, append([]byte{0}, bytes.Repeat([]byte{99}, 64)...)...))},
		"codes":        {baseline, before(t, baseline, 0xd9, 0, codes)},
		"color":        {progressive, before(t, progressive, 0xda, 1, adobe)},
	} {
		want, _, _ := whole(t, jpeg.NewDecoder(nil), tt.plain, 1)
		got, _, _ := whole(t, jpeg.NewDecoder(nil), tt.changed, 1)
		if !bytes.Equal(got, want) {
			t.Errorf("%s after the scan changes the picture", name)
		}
	}
}

// A code table that no scan uses may be wrong.
func TestUnusedTables(t *testing.T) {
	data := readFile(t, filepath.Join(jpegDir, "420.jpg"))
	counts := make([]byte, 16)
	counts[0] = 3 // three codes of one bit
	over := marked(0xc4, append(append([]byte{0x03}, counts...), 1, 2, 3)...)
	counts[0] = 1
	large := marked(0xc4, append(append([]byte{0x02}, counts...), 0x21)...)
	want, _, _ := whole(t, jpeg.NewDecoder(nil), data, 1)
	got, _, _ := whole(t, jpeg.NewDecoder(nil), before(t, data, 0xda, 0, append(over, large...)), 1)
	if !bytes.Equal(got, want) {
		t.Error("they change the picture")
	}
	over[4] = 0x00 // now it is the one that luma uses
	var img jpeg.Image
	err := jpeg.NewDecoder(nil).Planes(&img, before(t, data, 0xda, 0, over), image.Rect(0, 0, 1, 1), 1)
	if !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), "codes of a length") {
		t.Errorf("used: %v", err)
	}
}

// Restart markers alone, a million of them, do not make segments without end.
func TestMarkersWithoutEnd(t *testing.T) {
	for _, name := range []string{"420.jpg", "restart-1.jpg"} {
		data := readFile(t, filepath.Join(jpegDir, name))
		data = before(t, data, 0xd9, 0, bytes.Repeat([]byte{0xff, 0xd0}, 1<<20))
		for _, tolerant := range []bool{false, true} {
			var first, second runtime.MemStats
			runtime.ReadMemStats(&first)
			var img jpeg.Image
			_ = jpeg.NewDecoder(&jpeg.Options{Tolerant: tolerant}).Planes(&img, data, image.Rect(0, 0, 8, 8), 1)
			runtime.ReadMemStats(&second)
			if n := second.TotalAlloc - first.TotalAlloc; n > 8<<20 {
				t.Errorf("%s, tolerant %v: %d bytes are allocated for a file of %d", name, tolerant, n, len(data))
			}
		}
	}
}

// All rows are there, and the last interval is full: only the end is missing.
func TestOnlyTheEndIsMissing(t *testing.T) {
	for _, name := range []string{"restart-row.jpg", "restart-1.jpg", "420.jpg"} {
		data := readFile(t, filepath.Join(jpegDir, name))
		data = data[:bytes.LastIndex(data, []byte{0xff, 0xd9})]
		var img jpeg.Image
		err := jpeg.NewDecoder(nil).Planes(&img, data, image.Rect(0, 0, 8, 8), 1)
		if !errors.Is(err, format.ErrTruncated) || !strings.Contains(err.Error(), "all rows are there") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A component of which no scan tells is damage.
func TestMissingComponent(t *testing.T) {
	data := readFile(t, filepath.Join(jpegDir, "scans-0-1-2.jpg"))
	last := bytes.LastIndex(data, []byte{0xff, 0xda})
	data = append(bytes.Clone(data[:last]), 0xff, 0xd9)
	var img jpeg.Image
	d := jpeg.NewDecoder(&jpeg.Options{Tolerant: true})
	if err := d.Planes(&img, data, image.Rect(0, 0, 8, 8), 1); err != nil || !d.Damaged() {
		t.Errorf("tolerant: %v, damaged %v", err, d.Damaged())
	}
	if err := jpeg.NewDecoder(nil).Planes(&img, data, image.Rect(0, 0, 8, 8), 1); !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("strict: %v", err)
	}
}

// The components of a scan come in the order of the frame (T.81, B.2.3), and
// once each.
func TestOrderOfComponents(t *testing.T) {
	data := readFile(t, filepath.Join(jpegDir, "420.jpg"))
	scan := bytes.Index(data, []byte{0xff, 0xda}) + 5 // of the first component
	for name, change := range map[string]func(b []byte){
		"another order": func(b []byte) { b[scan], b[scan+2] = b[scan+2], b[scan] },
		"one twice":     func(b []byte) { b[scan+2] = b[scan] },
	} {
		b := bytes.Clone(data)
		change(b)
		var img jpeg.Image
		if err := jpeg.NewDecoder(nil).Planes(&img, b, image.Rect(0, 0, 8, 8), 1); !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
