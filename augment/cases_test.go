package augment_test

import (
	"encoding/json"
	"image"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"shardtool/augment"
	"shardtool/format"
)

const casesDir = "../fixtures/cases"

// laterCases are cases whose outcome image/jpeg and image/png do not give;
// decoders of our own are to give them. Patterns are of path.Match.
var laterCases = []struct{ names, why string }{
	{"jpeg_progressive_restart", "image/jpeg refuses restart markers in progressive scans of this kind"},
	{"png_palette_alpha", "the number of channels needs more than the first chunk"},
	{"webp_*", "no WebP yet"},
	{"truncated_webp", "no WebP yet"},
	{"d4_webp_named_jpg", "no WebP yet"},
	{"d8_webp_16383", "no WebP yet"},
	{"gif*", "no GIF yet"},
	{"truncated_gif", "no GIF yet"},
	{"d4_gif_named_jpg", "no GIF yet"},
	{"d8_gif_65535", "no GIF yet"},
	{"d12_gif_index_beyond", "no GIF yet"},
	{"d6_??_[2-8]", "EXIF orientation is not applied yet"},
	{"d6_two_*", "EXIF orientation is not applied yet"},
	{"d6_ifd1_differs", "EXIF orientation is not applied yet"},
	{"d6_after_jfif", "EXIF orientation is not applied yet"},
	{"d6_crop", "EXIF orientation is not applied yet"},
	{"d11_bad_iccp_crc", "image/png refuses a wrong checksum of a chunk that it does not use"},
	{"d11_bad_text_crc", "image/png refuses a wrong checksum of a chunk that it does not use"},
	{"d11_extra_pixels", "image/png refuses pixels beyond the last"},
}

func isLater(name string) bool {
	for _, l := range laterCases {
		if ok, _ := path.Match(l.names, name); ok {
			return true
		}
	}
	return false
}

type imageCase struct {
	Name   string
	Kind   string
	Files  []string
	Expect struct {
		decoded
		Error  *class
		AlsoOK *struct {
			decoded
			Error *class
		} `json:"also_ok"`
		Orientation int
		Batch       any
	}
}

type class struct {
	Class  string
	AlsoOK []string `json:"also_ok"`
}

type decoded struct {
	Decoded *struct {
		Width, Height, Channels int
		MeanRGB                 []float64 `json:"mean_rgb"`
		Tol                     float64
		Pixels                  [][5]int
		PixelTol                int `json:"pixel_tol"`
	}
}

func TestImageCases(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(casesDir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []imageCase
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, c := range cases {
		if c.Kind != "image" || c.Expect.Batch != nil {
			continue
		}
		ran++
		t.Run(c.Name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(casesDir, c.Files[0]))
			if err != nil {
				t.Fatal(err)
			}
			miss := c.judge(data)
			switch later := isLater(c.Name); {
			case miss != "" && !later:
				t.Error(miss)
			case miss == "" && later:
				t.Error("gives its outcome: take it off the list")
			}
		})
	}
	if ran < 80 {
		t.Errorf("only %d cases", ran)
	}
}

// judge returns "" or how the outcome misses what is expected.
func (c *imageCase) judge(data []byte) string {
	dec := augment.Standard(nil)
	var px augment.Pixels
	h, err := dec.Header(data)
	if err == nil {
		err = dec.Decode(&px, data, image.Rect(0, 0, h.Width, h.Height))
	}
	e := &c.Expect
	miss := c.match(h, &px, err, e.decoded, e.Error)
	if miss != "" && e.AlsoOK != nil && c.match(h, &px, err, e.AlsoOK.decoded, e.AlsoOK.Error) == "" {
		return ""
	}
	return miss
}

func (c *imageCase) match(h augment.Header, px *augment.Pixels, err error, want decoded, fails *class) string {
	if fails != nil {
		if got := format.Class(err); got != fails.Class && !slices.Contains(fails.AlsoOK, got) {
			return "error " + got + ", want " + fails.Class
		}
		return ""
	}
	if err != nil {
		return err.Error()
	}
	d := want.Decoded
	if d == nil {
		return "nothing to compare with"
	}
	if h.Width != d.Width || h.Height != d.Height || d.Channels != 0 && h.Channels != d.Channels {
		return "another size or number of channels"
	}
	var sum [3]float64
	for y := range h.Height {
		for x := range h.Width {
			r, g, b := px.RGB(x, y)
			for c, v := range []uint8{r, g, b} {
				sum[c] += float64(v)
			}
		}
	}
	for c, m := range d.MeanRGB {
		if math.Abs(sum[c]/float64(h.Width*h.Height)-m) > d.Tol {
			return "another mean"
		}
	}
	for _, p := range d.Pixels {
		r, g, b := px.RGB(p[0], p[1])
		for c, v := range []uint8{r, g, b} {
			if diff := int(v) - p[2+c]; diff > d.PixelTol || -diff > d.PixelTol {
				return "another pixel"
			}
		}
	}
	return ""
}
