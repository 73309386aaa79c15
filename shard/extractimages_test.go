package shard

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/png"
	"slices"
	"testing"
	"testing/synctest"

	"shardtool/format"
)

// BenchmarkPNG writes photographs at both levels of compression.
func BenchmarkPNG(b *testing.B) {
	var photos []*image.NRGBA
	var pixels int64
	w := newPNGWriter(nil, nil, 1)
	r := w.images
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
		if err := r.decode(h, data); err != nil {
			b.Fatal(err)
		}
		w.fill(h)
		img := w.picture
		w.picture.Pix = nil // it is the photograph's
		photos, pixels = append(photos, &img), pixels+pixelsOf(h)
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
		"image%2Fencoded": "image%2Fencoded.png", "jpg.txt": "jpg.txt.png", "a;b.jpg": "a;b.png",
	} {
		if got := pngName(name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
}

func TestPNGFields(t *testing.T) {
	for name, want := range map[string]bool{"jpg": true, "seg.PNG": true, "image%2Fencoded": true, "image/encoded": true, "cls": false, "jpg.txt": false,
		"jpg.int64.json": false, "image%2Fencoded.bytes_list.json": false, "jpg.none": false} {
		if got := pngField(&format.Field{Name: name, Data: []byte("x")}); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestLargePicturesAreWrittenByRows writes pictures with no copy of them, of less
// and of more rows than are converted at a time, and reads them with image/png.
func TestLargePicturesAreWrittenByRows(t *testing.T) {
	for _, size := range []image.Point{{3, 2}, {1000, 100}} {
		img := image.NewNRGBA(image.Rectangle{Max: size})
		for i := range img.Pix {
			img.Pix[i] = uint8(i * i >> 3)
			if i%4 == 3 {
				img.Pix[i] = 255
			}
		}
		var in, out bytes.Buffer
		if err := png.Encode(&in, img); err != nil {
			t.Fatal(err)
		}
		w := newPNGWriter(nil, newPixelGate(1<<20), 1)
		w.images.keep = 0
		if err := w.encode(t.Context(), &out, in.Bytes()); err != nil {
			t.Fatal(err)
		}
		if w.picture.Pix != nil || w.images.decoder != nil {
			t.Error("memory for a large image was kept")
		}
		// In the header of a PNG, bytes 24 and 25 are the depth and the color type: 8 bits, RGB.
		if b := out.Bytes(); b[24] != 8 || b[25] != 2 {
			t.Errorf("%v: %d bits, color type %d", size, b[24], b[25])
		}
		back, err := png.Decode(&out)
		if err != nil {
			t.Fatal(err)
		}
		for i := range size.X * size.Y {
			x, y := i%size.X, i/size.X
			if got, want := color.NRGBAModel.Convert(back.At(x, y)), img.NRGBAAt(x, y); got != want {
				t.Fatalf("%v: at %d,%d %v, want %v", size, x, y, got, want)
			}
		}
	}
}

// TestPicturesEndWithTheContext ends what waits for room, and a PNG that is being
// written.
func TestPicturesEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := newPixelGate(10)
		if err := g.enter(ctx, 10); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- g.enter(ctx, 1) }()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("who waited for room: %v", err)
		}
		g.leave(10)
		if err := g.enter(ctx, 1); !errors.Is(err, context.Canceled) || g.free != 10 {
			t.Errorf("who comes later: %v, and room for %d", err, g.free)
		}
		w := newPNGWriter(nil, g, 1)
		if _, err := (endingWriter{ctx, new(bytes.Buffer)}).Write([]byte("x")); !errors.Is(err, context.Canceled) {
			t.Errorf("writing: %v", err)
		}
		var in bytes.Buffer
		if err := png.Encode(&in, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
			t.Fatal(err)
		}
		task := &pngTask{sample: &format.Sample{Fields: []format.Field{{Name: "png", Data: in.Bytes()}}}}
		if err := w.sample(ctx, task); !errors.Is(err, context.Canceled) || w.images.px.Rect != (image.Rectangle{}) {
			t.Errorf("a sample: %v, decoded %v", err, w.images.px.Rect)
		}
	})
}

func TestAbsentImagesAreTakenOut(t *testing.T) {
	s := &format.Sample{Fields: []format.Field{
		{Name: "png", Offset: format.Unknown}, {Name: "webp;gif", Offset: format.Unknown}, {Name: "cls;jpg", Offset: format.Unknown},
		{Name: "cls", Offset: format.Unknown}, {Name: "txt", Data: []byte("text")},
	}}
	w := newPNGWriter(nil, newPixelGate(1), 1)
	if err := w.sample(t.Context(), &pngTask{sample: s}); err != nil || !slices.Equal(s.Names(), []string{"cls", "txt"}) {
		t.Errorf("%v, %v", s.Names(), err)
	}
}
