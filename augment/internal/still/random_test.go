package still_test

import (
	"bytes"
	"image"
	"image/png"
	"testing"

	"pgregory.net/rapid"

	"shardtool/augment/internal/still"
)

// PNGs of every kind and of random pixels, filters, palettes and transparency
// are as image/png has them, with and without a background.
func TestAsImagePNG(t *testing.T) {
	type kind struct{ color, depth byte }
	kinds := []kind{{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1}, {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}}
	samples := [...]int{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(kinds).Draw(t, "kind")
		width, height := rapid.IntRange(1, 20).Draw(t, "width"), rapid.IntRange(1, 12).Draw(t, "height")
		interlaced := rapid.Bool().Draw(t, "interlaced")
		bytesOf := func(n int, name string) []byte { return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, name) }

		h := head(uint32(width), uint32(height), k.depth, k.color)
		passes := [][4]int{{0, 0, 1, 1}}
		if interlaced {
			h.body = h.body[:12] + "\x01"
			passes = [][4]int{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}
		}
		parts := []part{h}
		if k.color == 3 {
			parts = append(parts, part{kind: "PLTE", body: string(bytesOf(3<<k.depth, "palette"))})
		}
		if n := map[byte]int{0: 2, 2: 6, 3: 1}[k.color]; n > 0 && rapid.Bool().Draw(t, "transparency") {
			body := bytesOf(n, "transparent")
			if k.color != 3 {
				// image/png compares the stretched values of low depths.
				body[0], body[1] = body[0]&1, body[1]&(1<<min(k.depth, 8)-1)
			}
			parts = append(parts, part{kind: "tRNS", body: string(body)})
		}
		var raw []byte
		for _, p := range passes {
			w, rows := (width-p[0]+p[2]-1)/p[2], (height-p[1]+p[3]-1)/p[3]
			if w <= 0 {
				continue
			}
			for range rows {
				raw = append(raw, byte(rapid.IntRange(0, 4).Draw(t, "filter")))
				raw = append(raw, bytesOf((w*samples[k.color]*int(k.depth)+7)/8, "row")...)
			}
		}
		data := pngOf(append(parts, idat(string(raw)), iend)...)

		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		plain, over := still.Decoder{}, still.Decoder{Background: &background}
		whole := image.Rect(0, 0, width, height)
		pic, err := plain.Decode(nil, data, whole)
		if err != nil {
			t.Fatal(err)
		}
		blended, err := over.Decode(nil, data, whole)
		if err != nil {
			t.Fatal(err)
		}
		same(t, &pic, &blended, img)
	})
}
