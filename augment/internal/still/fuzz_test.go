package still_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"shardtool/augment/internal/still"
	"shardtool/format"
)

// FuzzStill decodes whatever comes: no panic, no error without a class, and the
// pixels of image/png and image/gif where those accept the image, too. Checksums
// of PNGs may be made right, so that what they guard is tried.
func FuzzStill(f *testing.F) {
	for _, name := range samples(f) {
		f.Add(load(f, name), true)
	}
	for _, kind := range []string{"png", "gif", "webp"} {
		found, err := filepath.Glob(filepath.Join("..", "..", "..", "fixtures", "cases", "image", "*."+kind))
		if err != nil || len(found) == 0 {
			f.Fatal("no seeds", err)
		}
		for _, name := range found {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data, false)
		}
	}
	var d, over still.Decoder
	d.Pixels, over.Pixels = 1<<16, 1<<16
	over.Background = &background
	f.Fuzz(func(t *testing.T, data []byte, mended bool) {
		if mended {
			data = mend(bytes.Clone(data))
		}
		h, err := still.ParseHeader(data)
		if err != nil {
			classed(t, err)
			return
		}
		if h.Width <= 0 || h.Height <= 0 {
			t.Fatalf("header %+v", h)
		}
		whole := image.Rect(0, 0, h.Width, h.Height)
		pic, err := d.Decode(nil, data, whole)
		blended, again := over.Decode(nil, data, whole)
		if err != nil || again != nil {
			classed(t, err)
			classed(t, again)
			// Only alpha may be read for one and not for the other.
			if h.Encoding != "webp" && (err == nil) != (again == nil) {
				t.Fatalf("%v without a background, %v with one", err, again)
			}
			return
		}
		switch h.Encoding {
		case "png":
			if img, err := png.Decode(bytes.NewReader(data)); err == nil {
				same(t, &pic, &blended, img)
			}
		case "gif":
			if img, err := gif.Decode(bytes.NewReader(data)); err == nil {
				same(t, &pic, &blended, img)
			}
		}
	})
}

// mend corrects the checksums of a PNG's chunks.
func mend(data []byte) []byte {
	for at := 8; at+12 <= len(data); {
		n := int(binary.BigEndian.Uint32(data[at:]))
		if n > len(data)-at-12 {
			break
		}
		binary.BigEndian.PutUint32(data[at+8+n:], crc32.ChecksumIEEE(data[at+4:at+8+n]))
		at += 12 + n
	}
	return data
}

func classed(t testing.TB, err error) {
	t.Helper()
	if err != nil && format.Sentinel(err) == nil {
		t.Fatalf("%v is of no class", err)
	}
}

var background = [3]uint8{200, 100, 50}

// same compares with an image of the standard library, which may be a part of
// the picture and forgets the colors of a GIF that are transparent.
func same(t rapid.TB, pic, over *still.Picture, img image.Image) {
	t.Helper()
	plain, blended := interleaved(pic), interleaved(over)
	r := img.Bounds()
	if !r.In(pic.Rect) {
		t.Fatalf("size %v, want %v", pic.Rect, r)
	}
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			c := upper(img.At(x, y))
			at := 3 * (y*pic.Rect.Dx() + x)
			for k, v := range []uint8{c.R, c.G, c.B} {
				if _, isGIF := img.(*image.Paletted); (c.A != 0 || !isGIF) && plain[at+k] != v {
					t.Fatalf("pixel %d %d is %v, want %v", x, y, plain[at:at+3], c)
				}
				mixed := (uint32(v)*uint32(c.A) + uint32(background[k])*uint32(255-c.A) + 127) / 255
				if blended[at+k] != uint8(mixed) {
					t.Fatalf("pixel %d %d over the background is %v, want %d of %v", x, y, blended[at:at+3], mixed, c)
				}
			}
		}
	}
}

// upper returns the upper bytes of a color, not multiplied by its alpha.
func upper(c color.Color) color.NRGBA {
	switch c := c.(type) {
	case color.NRGBA:
		return c
	case color.NRGBA64:
		return color.NRGBA{R: uint8(c.R >> 8), G: uint8(c.G >> 8), B: uint8(c.B >> 8), A: uint8(c.A >> 8)}
	default: // opaque, or a transparent color of a GIF
		r, g, b, a := c.RGBA()
		return color.NRGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: uint8(a >> 8)}
	}
}
