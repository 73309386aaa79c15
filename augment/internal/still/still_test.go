package still_test

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"path/filepath"
	"runtime"
	"testing"

	"shardtool/augment/internal/still"
	"shardtool/format"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func samples(t testing.TB) []string {
	t.Helper()
	var names []string
	for _, kind := range []string{"png", "gif", "webp"} {
		found, err := filepath.Glob(filepath.Join("testdata", "*."+kind))
		if err != nil || len(found) == 0 {
			t.Fatal("no images", err)
		}
		for _, name := range found {
			if filepath.Base(name) != "animated.webp" {
				names = append(names, filepath.Base(name))
			}
		}
	}
	return names
}

// Every beginning of an image is truncated, whatever part is asked for. What
// follows a GIF's first image is not looked at.
func TestEveryBeginningIsTruncated(t *testing.T) {
	for _, name := range samples(t) {
		data := load(t, name)
		need := len(data)
		if filepath.Ext(name) == ".gif" {
			need--
		}
		var d still.Decoder
		for n := range need {
			_, err := d.Decode(nil, data[:n:n], image.Rect(0, 0, 1, 1))
			if !errors.Is(err, format.ErrTruncated) {
				t.Errorf("%s: %d of %d bytes: %v", name, n, len(data), err)
				break
			}
		}
	}
}

func TestPartOutside(t *testing.T) {
	data := load(t, "rgb8.png") // 19x13
	for _, r := range []image.Rectangle{{}, image.Rect(0, 0, 20, 13), image.Rect(-1, 0, 3, 3), image.Rect(0, 0, 3, 14)} {
		if _, err := new(still.Decoder).Decode(nil, data, r); !errors.Is(err, format.ErrUsage) {
			t.Errorf("part %v: %v", r, err)
		}
	}
}

// One decoder and its memory go from image to image; what was before must not
// show.
func TestDecoderIsReused(t *testing.T) {
	var used still.Decoder
	var mem []byte
	for round := range 2 {
		for _, name := range samples(t) {
			data := load(t, name)
			h, err := still.ParseHeader(data)
			if err != nil {
				t.Fatal(err)
			}
			pic, err := used.Decode(mem, data, image.Rect(0, 0, h.Width, h.Height))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := interleaved(&pic), load(t, name+".rgb"); string(got) != string(want) {
				t.Errorf("round %d: %s differs", round, name)
			}
			mem = pic.Mem
			_, _ = used.Decode(mem, data[:len(data)/2], image.Rect(0, 0, 1, 1)) // a fault between
		}
	}
}

// The VP8 and VP8L decoders take their memory anew for each image.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, name := range samples(t) {
		if filepath.Ext(name) == ".webp" {
			continue
		}
		data := load(t, name)
		h, err := still.ParseHeader(data)
		if err != nil {
			t.Fatal(err)
		}
		var d still.Decoder
		var mem []byte
		n := testing.AllocsPerRun(20, func() {
			pic, err := d.Decode(mem, data, image.Rect(0, 0, h.Width, h.Height))
			if err != nil {
				t.Error(err)
			}
			mem = pic.Mem
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestHeaderAllocatesNothing(t *testing.T) {
	for _, name := range samples(t) {
		data := load(t, name)
		if n := testing.AllocsPerRun(20, func() { _, _ = still.ParseHeader(data) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// A picture of 500x375 with some noise, against image/png.
func BenchmarkPNG(b *testing.B) {
	img := image.NewNRGBA(image.Rect(0, 0, 500, 375))
	noise := uint32(1)
	for i := range img.Pix {
		noise = noise*1664525 + 1013904223
		img.Pix[i] = uint8(i/16+i%4*50) + uint8(noise>>29)
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	var data bytes.Buffer
	if err := png.Encode(&data, img); err != nil {
		b.Fatal(err)
	}
	b.Run("still", func(b *testing.B) {
		var d still.Decoder
		var mem []byte
		b.ReportAllocs()
		b.SetBytes(int64(len(img.Pix)))
		for b.Loop() {
			pic, err := d.Decode(mem, data.Bytes(), img.Rect)
			if err != nil {
				b.Fatal(err)
			}
			mem = pic.Mem
		}
	})
	b.Run("image-png", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(img.Pix)))
		for b.Loop() {
			if _, err := png.Decode(bytes.NewReader(data.Bytes())); err != nil {
				b.Fatal(err)
			}
		}
	})
}
