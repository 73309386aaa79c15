package shard

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"testing"

	"shardtool/augment"
	"shardtool/format"
)

// BenchmarkPNG writes photographs at both levels of compression.
func BenchmarkPNG(b *testing.B) {
	var photos []*image.NRGBA
	var pixels int64
	r := imageReader{open: augment.Standard}
	o := new(Options).orDefault()
	for s, err := range samples(context.Background(), "../fixtures/photos/photos-000000.tar", &o) {
		if err != nil {
			b.Fatal(err)
		}
		data := s.Field("jpg").Data
		h, err := r.header(data)
		if err != nil {
			b.Fatal(err)
		}
		img := image.NewNRGBA(image.Rect(0, 0, h.Width, h.Height))
		err = r.each(h, data, func(rgb []byte, y int) error {
			opaque(img.Pix[y*img.Stride:], rgb)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		photos, pixels = append(photos, img), pixels+int64(h.Width*h.Height)
	}
	for name, level := range map[string]png.CompressionLevel{"default": png.DefaultCompression, "fast": png.BestSpeed} {
		b.Run(name, func(b *testing.B) {
			e := png.Encoder{CompressionLevel: level, BufferPool: new(oneBuffer)}
			var out bytes.Buffer
			for b.Loop() {
				out.Reset()
				for _, img := range photos {
					if err := e.Encode(&out, img); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(out.Len())/float64(pixels), "B/px")
			b.ReportMetric(float64(pixels)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpx/s")
		})
	}
}

func TestPNGName(t *testing.T) {
	for name, want := range map[string]string{
		"jpg": "png", "JPEG": "png", "png": "png", "seg.webp": "seg.png", "a.b.gif": "a.b.png", "image": "image.png", "x.y": "x.y.png",
		"image%2Fencoded": "image%2Fencoded.png", "jpg.txt": "jpg.txt.png",
	} {
		if got := pngName(name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
}

func TestPNGFields(t *testing.T) {
	for name, want := range map[string]bool{"jpg": true, "seg.PNG": true, "image%2Fencoded": true, "image/encoded": true, "cls": false, "jpg.txt": false} {
		if got := pngField(&format.Field{Name: name, Data: []byte("x")}); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
