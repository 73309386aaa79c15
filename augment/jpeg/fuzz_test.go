package jpeg_test

import (
	"bytes"
	"image"
	stdjpeg "image/jpeg"
	"path/filepath"
	"testing"

	"shardtool/augment/jpeg"
	"shardtool/format"
)

func seeds(f *testing.F) {
	for _, dir := range []string{jpegDir, casesDir} {
		names, err := filepath.Glob(filepath.Join(dir, "*.jpg"))
		if err != nil || len(names) == 0 {
			f.Fatal("no seeds", err)
		}
		for _, name := range names {
			f.Add(readFile(f, name))
		}
	}
}

func FuzzHeader(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := jpeg.ParseHeader(data)
		if err != nil {
			if format.Sentinel(err) == nil {
				t.Fatalf("%v is of no class", err)
			}
			return
		}
		w, height := h.Upright()
		r := image.Rect(0, 0, w, height)
		if s := h.Orientation.Stored(r, h.Width, h.Height); s != image.Rect(0, 0, h.Width, h.Height) || r.Empty() {
			t.Fatalf("%v upright is %v stored, of %dx%d", r, s, h.Width, h.Height)
		}
	})
}

// FuzzDecode decodes whole and in part, strictly and with tolerance, and holds
// what image/jpeg decodes too against it: the same luma, but for rounding.
func FuzzDecode(f *testing.F) {
	seeds(f)
	limits := &format.Limits{Pixels: 1 << 18}
	strict := jpeg.NewDecoder(&jpeg.Options{Limits: limits})
	tolerant := jpeg.NewDecoder(&jpeg.Options{Limits: limits, Tolerant: true})
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := jpeg.ParseHeader(data)
		if err != nil {
			return
		}
		var whole, part jpeg.Image
		all := image.Rect(0, 0, h.Width, h.Height)
		err = strict.Planes(&whole, data, all, 1)
		if err != nil && format.Sentinel(err) == nil {
			t.Fatalf("%v is of no class", err)
		}
		if e := tolerant.Planes(&part, data, image.Rect(h.Width/2, h.Height/2, h.Width, h.Height), 1); e != nil && err == nil {
			t.Fatalf("with tolerance: %v", e)
		}
		if err != nil {
			return
		}
		p, q := &whole.Planes[0], &part.Planes[0]
		for y := q.Rect.Min.Y; y < q.Rect.Max.Y; y++ {
			a := p.Pix[y*p.Stride:][q.Rect.Min.X:q.Rect.Max.X]
			if b := q.Pix[(y-q.Rect.Min.Y)*q.Stride:][:q.Rect.Dx()]; !bytes.Equal(a, b) {
				t.Fatalf("row %d of the part differs from the whole", y)
			}
		}
		compareWithStandard(t, strict, &whole, data)
	})
}

func compareWithStandard(t *testing.T, d *jpeg.Decoder, whole *jpeg.Image, data []byte) {
	src, err := d.Coefficients(data)
	// Scans of a damaged progressive file that contradict each other have no one
	// meaning.
	if err != nil || src.Frame().Progressive || !ordinary(t, src) || oddCodes(data) {
		return
	}
	std, err := stdjpeg.Decode(bytes.NewReader(data))
	if err != nil {
		return
	}
	var luma []byte
	var stride int
	switch std := std.(type) {
	case *image.YCbCr:
		luma, stride = std.Y, std.YStride
	case *image.Gray:
		luma, stride = std.Pix, std.Stride
	default:
		return
	}
	if whole.Color == jpeg.RGB || std.Bounds() != image.Rect(0, 0, whole.Width, whole.Height) {
		return
	}
	p := &whole.Planes[0]
	if p.Width != whole.Width || p.Height != whole.Height {
		return
	}
	for y := range p.Height {
		for x := range p.Width {
			if a, b := int(p.Pix[y*p.Stride+x]), int(luma[y*stride+x]); a-b > 2 || b-a > 2 {
				t.Fatalf("luma %d,%d is %d, image/jpeg has %d", x, y, a, b)
			}
		}
	}
}

// ordinary reports whether the coefficients are such as an encoder makes of
// samples of 8 bits, so that no arithmetic overflows.
func ordinary(t *testing.T, src jpeg.Source) bool {
	f := src.Frame()
	for y := range f.Rows {
		s, err := src.Row(y, 0, f.Cols)
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Count {
			quant := src.Quant(i)
			for v := range f.Comps[i].V {
				for x := range f.Comps[i].H * f.Cols {
					block := s.Coefs[i][v*s.Stride[i]+64*x:][:64]
					total := 0
					for k, c := range block {
						q := int(uint16(quant[k])) // libjpeg's wraps around, image/jpeg's does not
						total += max(int(c)*q, -int(c)*q)
					}
					if total > 1<<12 { // beyond what samples of 8 bits can give, sums may overflow
						return false
					}
				}
			}
		}
	}
	return true
}

// oddCodes reports whether a code table has symbols that no encoder uses: DC
// differences of more than 11 bits, which may overflow 16 bits in one step, and
// in a sequential file those that end a run of blocks: libjpeg ends one block
// there, image/jpeg several.
func oddCodes(data []byte) bool {
	for {
		at := bytes.Index(data, []byte{0xff, 0xc4})
		if at < 0 || at+4 > len(data) {
			return false
		}
		length := int(data[at+2])<<8 | int(data[at+3])
		data = data[at+2:]
		for s := data[2:max(2, min(length, len(data)))]; len(s) >= 17; {
			n := 17
			for _, count := range s[1:17] {
				n += int(count)
			}
			n = min(n, len(s))
			for _, symbol := range s[17:n] {
				if s[0]>>4 == 0 && symbol > 11 || s[0]>>4 == 1 && symbol&15 == 0 && symbol != 0 && symbol != 0xf0 {
					return true
				}
			}
			s = s[n:]
		}
	}
}
