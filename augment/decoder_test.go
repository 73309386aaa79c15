package augment_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"shardtool/augment"
	"shardtool/format"
)

const jpegDir = "../fixtures/jpeg"

func load(t testing.TB, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// All layouts and samplings as libjpeg-turbo has them, at all scales: see
// fixtures/README.md.
func TestPixelsAsLibjpeg(t *testing.T) {
	var all struct {
		Files []struct {
			File, Kind, Space string
			Error             *string
			WithoutSimd       any `json:"without_simd"`
			Pixels            map[string]*struct {
				Width, Height, Channels int
				Sha256                  string
			}
		}
	}
	if err := json.Unmarshal(load(t, jpegDir, "expected.json"), &all); err != nil {
		t.Fatal(err)
	}
	dec := augment.Standard(nil).(augment.ShrinkDecoder)
	var px augment.Pixels
	compared := 0
	for _, f := range all.Files {
		if f.Kind == "damaged" || strings.HasSuffix(f.File, "no-end.jpg") || f.Error != nil || f.WithoutSimd != nil || f.Space == "CMYK" || f.Space == "YCCK" {
			continue
		}
		data := load(t, jpegDir, f.File)
		h, err := dec.Header(data)
		if err != nil {
			t.Errorf("%s: %v", f.File, err)
			continue
		}
		for shrink, scale := range map[int]string{1: "1", 2: "2", 4: "4", 8: "8"} {
			want := f.Pixels[scale]
			if want == nil {
				continue
			}
			if err := dec.DecodeShrunk(&px, data, image.Rect(0, 0, h.Width, h.Height), shrink); err != nil {
				t.Errorf("%s at 1/%d: %v", f.File, shrink, err)
				continue
			}
			if px.Shrink != shrink || px.Size != image.Pt(want.Width, want.Height) || px.Full != image.Pt(h.Width, h.Height) || px.Rect != (image.Rectangle{Max: px.Size}) {
				t.Errorf("%s at 1/%d: %v of %v reduced by %d", f.File, shrink, px.Rect, px.Size, px.Shrink)
				continue
			}
			rgb := write(&px, px.Rect)
			if want.Channels == 1 {
				for i := range len(rgb) / 3 {
					rgb[i] = rgb[3*i]
				}
				rgb = rgb[:len(rgb)/3]
			}
			if sum := sha256.Sum256(rgb); hex.EncodeToString(sum[:]) != want.Sha256 {
				t.Errorf("%s at 1/%d: other pixels", f.File, shrink)
			}
			compared++
		}
	}
	if compared < 200 {
		t.Errorf("only %d pictures were compared", compared)
	}
}

func write(px *augment.Pixels, r image.Rectangle) []byte {
	rgb := make([]byte, 3*r.Dx()*r.Dy())
	px.WriteRGB(rgb, 3*r.Dx(), r)
	return rgb
}

// oriented gives a JPEG an orientation.
func oriented(data []byte, orientation byte) []byte {
	exif := "\xff\xe1\x00\x22Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00" + string([]byte{orientation, 0, 0, 0, 0, 0, 0, 0})
	return slices.Concat(data[:2], []byte(exif), data[2:])
}

// where is where a pixel of the upright picture is stored, of width w and
// height h (EXIF 2.32, the figure of tag Orientation).
var where = [9]func(x, y, w, h int) (int, int){
	1: func(x, y, _, _ int) (int, int) { return x, y },
	2: func(x, y, w, _ int) (int, int) { return w - 1 - x, y },
	3: func(x, y, w, h int) (int, int) { return w - 1 - x, h - 1 - y },
	4: func(x, y, _, h int) (int, int) { return x, h - 1 - y },
	5: func(x, y, _, _ int) (int, int) { return y, x },
	6: func(x, y, _, h int) (int, int) { return y, h - 1 - x },
	7: func(x, y, w, h int) (int, int) { return w - 1 - y, h - 1 - x },
	8: func(x, y, w, _ int) (int, int) { return w - 1 - y, x },
}

func TestOrientations(t *testing.T) {
	plain := augment.Decoding{AsStored: true}.New(nil).(augment.ShrinkDecoder)
	upright := augment.Standard(nil).(augment.ShrinkDecoder)
	var stored, px augment.Pixels
	for _, name := range []string{"420.jpg", "422.jpg", "440.jpg", "411.jpg", "444.jpg", "gray.jpg", "420-17x33.jpg", "3x2.jpg", "cmyk-adobe.jpg"} {
		for o := byte(1); o <= 8; o++ {
			data := oriented(load(t, jpegDir, name), o)
			h, err := plain.Header(data)
			if err != nil || h.Orientation != 1 {
				t.Fatalf("%s: %+v, %v", name, h, err)
			}
			up, err := upright.Header(data)
			if err != nil || up.Orientation != int(o) || o > 4 && (up.Width != h.Height || up.Height != h.Width) {
				t.Fatalf("%s: %+v, %v", name, up, err)
			}
			// Rounding of chroma takes turns along the columns of a transposed
			// picture: one step of both, twice 1.772/2.
			tol := 0
			if o > 4 && strings.HasPrefix(name, "420") {
				tol = 2
			}
			for _, shrink := range []int{1, 2, 4, 8} {
				if err := plain.DecodeShrunk(&stored, data, image.Rect(0, 0, h.Width, h.Height), shrink); err != nil {
					t.Fatal(err)
				}
				whole := write(&stored, stored.Rect)
				for _, r := range []image.Rectangle{image.Rect(0, 0, up.Width, up.Height), image.Rect(up.Width/3, up.Height/4, up.Width/3+9, up.Height/4+5)} {
					if err := upright.DecodeShrunk(&px, data, r, shrink); err != nil {
						t.Fatal(err)
					}
					check(t, name, o, tol, &px, whole, stored.Size)
				}
			}
		}
	}
}

// check compares the part that px holds with the stored picture.
func check(t *testing.T, name string, o byte, tol int, px *augment.Pixels, stored []byte, size image.Point) {
	t.Helper()
	got := write(px, px.Rect)
	for y := px.Rect.Min.Y; y < px.Rect.Max.Y; y++ {
		for x := px.Rect.Min.X; x < px.Rect.Max.X; x++ {
			u, v := where[o](x, y, size.X, size.Y)
			want := stored[3*(v*size.X+u):][:3]
			for c, w := range want {
				if diff := int(got[c]) - int(w); diff > tol || -diff > tol {
					t.Errorf("%s, orientation %d, reduced by %d: pixel %d %d is %v, want %v", name, o, px.Shrink, x, y, got[:3], want)
					return
				}
			}
			got = got[3:]
		}
	}
}

// What a decoder put into a Pixels stays when it decodes into another one.
func TestPixelsOwnTheirMemory(t *testing.T) {
	dec := augment.Standard(nil)
	names := []string{"image/good_420.jpg", "image/d6_ii_6.jpg", "image/good_cmyk.jpg", "image/good_rgb8.png", "image/good.gif", "image/good_lossy.webp", "image/good_gray8.png"}
	held := make([]augment.Pixels, len(names))
	for round := range 2 {
		var want [][]byte
		for i, name := range names {
			data := load(t, casesDir, name)
			h, err := dec.Header(data)
			if err != nil {
				t.Fatal(err)
			}
			if err := dec.Decode(&held[i], data, image.Rect(0, 0, h.Width, h.Height)); err != nil {
				t.Fatal(err)
			}
			want = append(want, write(&held[i], held[i].Rect))
		}
		for i := range names {
			if !bytes.Equal(write(&held[i], held[i].Rect), want[i]) {
				t.Errorf("round %d: %s changed", round, names[i])
			}
		}
		slices.Reverse(names) // every Pixels gets another kind of image
	}
}

func TestDecodingAllocatesNothing(t *testing.T) {
	for _, name := range []string{"good_420.jpg", "good_progressive_420.jpg", "good_gray.jpg", "good_ycck.jpg", "d6_ii_6.jpg", "d6_ii_3.jpg", "good_rgb8.png", "good_adam7.png", "good_palette8.png", "good.gif"} {
		data := load(t, casesDir, "image/"+name)
		dec := augment.Standard(nil)
		var px augment.Pixels
		rgb := make([]byte, 3*64*64)
		n := testing.AllocsPerRun(20, func() {
			h, err := dec.Header(data)
			if err == nil {
				err = dec.Decode(&px, data, image.Rect(0, 0, h.Width, h.Height))
			}
			if err != nil {
				t.Fatal(err)
			}
			px.WriteRGB(rgb, 3*px.Size.X, px.Rect)
			if w := dec.(augment.Warner).Warnings(); w != nil {
				t.Error(w)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestDecodingErrors(t *testing.T) {
	for in, want := range map[string]error{
		"":                            format.ErrTruncated,
		"\xff":                        format.ErrTruncated,
		"\xff\xd8":                    format.ErrTruncated,
		"\x89PN":                      format.ErrTruncated,
		"GIF89a":                      format.ErrTruncated,
		"RIFF\x10\x00":                format.ErrTruncated,
		"hello, world":                format.ErrWrongFormat,
		"\x1f\x8b\x08\x00":            format.ErrWrongFormat,
		"II*\x00\x08\x00\x00\x00":     format.ErrUnsupported,
		"\xff\xd8\xff\xd9\xff\xd9":    format.ErrCorrupt,
		"\xff\xd8\xff\xe0\x00\x01..":  format.ErrCorrupt,
		"\xff\xd8\xff\xe0\x00\x10abc": format.ErrTruncated,
	} {
		var px augment.Pixels
		err := augment.Standard(nil).Decode(&px, []byte(in), image.Rect(0, 0, 1, 1))
		if !errors.Is(err, want) || format.Sentinel(err) != want {
			t.Errorf("%q: %v, want %v", in, err, want)
		}
	}
}

func TestPartOutside(t *testing.T) {
	for _, name := range []string{"d6_ii_6.jpg", "good_adam7.png"} { // 16x32 and 16x16
		data := load(t, casesDir, "image/"+name)
		for _, r := range []image.Rectangle{{}, image.Rect(0, 0, 17, 8), image.Rect(-1, 0, 5, 5), image.Rect(3, 3, 5, 33)} {
			var px augment.Pixels
			if err := augment.Standard(nil).Decode(&px, data, r); !errors.Is(err, format.ErrUsage) {
				t.Errorf("%s: part %v: %v", name, r, err)
			}
		}
		for _, shrink := range []int{-1, 0, 3, 16} {
			var px augment.Pixels
			if err := augment.Standard(nil).(augment.ShrinkDecoder).DecodeShrunk(&px, data, image.Rect(0, 0, 1, 1), shrink); !errors.Is(err, format.ErrUsage) {
				t.Errorf("%s: reduced by %d: %v", name, shrink, err)
			}
		}
	}
}

// A claim that its bytes cannot hold costs no memory, whatever the limit is.
func TestClaimsCostNothing(t *testing.T) {
	for name, limit := range map[string]int64{
		"d8_jpeg_65535.jpg": 0, "d8_jpeg_progressive_65535.jpg": 0, "d8_png_65535.png": math.MaxInt64, "d8_png_2p31.png": math.MaxInt64,
		"d8_gif_65535.gif": math.MaxInt64, "d8_webp_16383.webp": math.MaxInt64,
	} {
		data := load(t, casesDir, "image/"+name)
		dec := augment.Standard(&format.Limits{Pixels: limit})
		var px augment.Pixels
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := dec.Decode(&px, data, image.Rect(0, 0, 1, 1))
		runtime.ReadMemStats(&after)
		if format.Sentinel(err) == nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s: %d bytes are allocated", name, n)
		}
	}
}

// Options reach the decoders.
func TestDecodingOptions(t *testing.T) {
	half := image.NewNRGBA(image.Rect(0, 0, 1, 1))
	copy(half.Pix, []byte{200, 100, 0, 128})
	var data bytes.Buffer
	if err := png.Encode(&data, half); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		o    augment.Decoding
		want [3]uint8
	}{
		{augment.Decoding{}, [3]uint8{200, 100, 0}},
		{augment.Decoding{Background: &[3]uint8{255, 255, 255}}, [3]uint8{227, 177, 127}}, // 200*128/255 + 127 = 227.4 ...
	} {
		var px augment.Pixels
		if err := tt.o.New(nil).Decode(&px, data.Bytes(), half.Rect); err != nil {
			t.Fatal(err)
		}
		if got := [3]uint8(write(&px, half.Rect)); got != tt.want {
			t.Errorf("%v, want %v", got, tt.want)
		}
	}

	cut := load(t, casesDir, "image/d3_half.jpg")
	dec := augment.Decoding{Tolerant: true}.New(nil)
	var px augment.Pixels
	if err := dec.Decode(&px, cut, image.Rect(0, 0, 50, 38)); err != nil {
		t.Error(err)
	}
	if n := dec.(augment.Warner).Warnings()[augment.DamagedImage]; n != 1 {
		t.Errorf("%d damaged images are counted", n)
	}
	sound := load(t, casesDir, "image/good_420.jpg")
	if err := dec.Decode(&px, sound, image.Rect(0, 0, 50, 38)); err != nil || dec.(augment.Warner).Warnings() != nil {
		t.Error(err, dec.(augment.Warner).Warnings())
	}
}

func TestHeaders(t *testing.T) {
	for name, want := range map[string]augment.Header{
		"good_420.jpg":             {Encoding: "jpeg", Width: 50, Height: 38, Channels: 3, Bits: 8, Orientation: 1, Sampling: "4:2:0"},
		"good_progressive_444.jpg": {Encoding: "jpeg", Width: 50, Height: 38, Channels: 3, Bits: 8, Orientation: 1, Sampling: "4:4:4", Progressive: true},
		"good_gray.jpg":            {Encoding: "jpeg", Width: 40, Height: 30, Channels: 1, Bits: 8, Orientation: 1},
		"d6_ii_6.jpg":              {Encoding: "jpeg", Width: 16, Height: 32, Channels: 3, Bits: 8, Orientation: 6, Sampling: "4:4:4"},
		"good_rgb16.png":           {Encoding: "png", Width: 16, Height: 16, Channels: 3, Bits: 16, Orientation: 1},
		"good_adam7.png":           {Encoding: "png", Width: 16, Height: 16, Channels: 3, Bits: 8, Orientation: 1, Progressive: true},
		"good_palette_trns.png":    {Encoding: "png", Width: 16, Height: 16, Channels: 4, Bits: 8, Orientation: 1},
		"good.gif":                 {Encoding: "gif", Width: 16, Height: 16, Channels: 3, Bits: 2, Orientation: 1},
		"good_alpha.webp":          {Encoding: "webp", Width: 16, Height: 16, Channels: 4, Bits: 8, Orientation: 1},
	} {
		data := load(t, casesDir, "image/"+name)
		if h, err := augment.ParseHeader(data); err != nil || h != want {
			t.Errorf("%s: %+v, %v, want %+v", name, h, err, want)
		}
		if n := testing.AllocsPerRun(20, func() { _, _ = augment.ParseHeader(data) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	late := append([]byte("\x00\x01garbage"), load(t, casesDir, "image/good_420.jpg")...)
	if h, err := augment.ParseHeader(late); err != nil || h.Width != 50 {
		t.Errorf("a JPEG behind garbage: %+v, %v", h, err)
	}
	text := append([]byte("<html>"), load(t, casesDir, "image/good_420.jpg")...)
	if _, err := augment.ParseHeader(text); !errors.Is(err, format.ErrWrongFormat) {
		t.Errorf("a web page with a JPEG: %v", err)
	}
}
