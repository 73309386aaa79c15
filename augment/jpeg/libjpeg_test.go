package jpeg_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"image"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"shardtool/augment/jpeg"
	"shardtool/format"
)

const jpegDir = "../../fixtures/jpeg"

// expected is what libjpeg-turbo makes of the files of fixtures/jpeg: see
// fixtures/README.md.
type expected struct {
	File                      string
	Kind                      string
	Width, Height, Components int
	Space                     string
	Progressive               bool
	Sampling                  []string
	Warnings                  int
	Error                     *string
	Coefs                     []struct {
		Width, Height int
		Sha256        string
	}
	Planes      map[string][]plane
	Pixels      map[string]*pixels
	WithoutSimd *struct {
		Planes map[string][]plane
	} `json:"without_simd"`
}

type plane struct {
	Width, Height int
	Sha256        string
}

type pixels struct {
	Width, Height, Channels int
	Sha256                  string
}

func readExpected(t testing.TB) []expected {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(jpegDir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Files []expected }
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Files) < 100 {
		t.Fatalf("only %d files", len(all.Files))
	}
	return all.Files
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// eachFile calls test for each file that libjpeg reads, with a decoder that
// goes on over damage, as libjpeg does.
func eachFile(t *testing.T, test func(t *testing.T, e *expected, data []byte, d *jpeg.Decoder)) {
	d := jpeg.NewDecoder(&jpeg.Options{Tolerant: true})
	for _, e := range readExpected(t) {
		t.Run(e.File, func(t *testing.T) {
			test(t, &e, readFile(t, filepath.Join(jpegDir, e.File)), d)
		})
	}
}

func TestCoefficients(t *testing.T) {
	eachFile(t, func(t *testing.T, e *expected, data []byte, d *jpeg.Decoder) {
		src, err := d.Coefficients(data)
		if err != nil {
			t.Fatal(err)
		}
		f := src.Frame()
		if f.Width != e.Width || f.Height != e.Height || f.Count != e.Components || f.Color.String() != spaces[e.Space] || f.Progressive != e.Progressive {
			t.Errorf("header %+v, want %+v", f.Header, e)
		}
		for i, got := range coefficients(t, src) {
			want := e.Coefs[i]
			c := &f.Comps[i]
			if c.Cols != want.Width || c.Rows != want.Height {
				t.Errorf("component %d has %dx%d blocks, want %dx%d", i, c.Cols, c.Rows, want.Width, want.Height)
			} else if sum(got) != want.Sha256 {
				t.Errorf("component %d has other coefficients", i)
			}
		}
	})
}

var spaces = map[string]string{"gray": "Gray", "YCbCr": "YCbCr", "RGB": "RGB", "CMYK": "CMYK", "YCCK": "YCCK"}

// coefficients returns the blocks of each component that have samples, row by row.
func coefficients(t *testing.T, src jpeg.Source) [][]byte {
	f := src.Frame()
	out := make([][]byte, f.Count)
	for y := range f.Rows {
		s, err := src.Row(y, 0, f.Cols)
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Count {
			c := &f.Comps[i]
			for v := range c.V {
				if y*c.V+v < c.Rows {
					for _, x := range s.Coefs[i][v*s.Stride[i]:][:64*c.Cols] {
						out[i] = binary.LittleEndian.AppendUint16(out[i], uint16(x))
					}
				}
			}
		}
	}
	return out
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func TestPlanes(t *testing.T) {
	var img jpeg.Image
	eachFile(t, func(t *testing.T, e *expected, data []byte, d *jpeg.Decoder) {
		for scale, want := range e.Planes {
			shrink, _ := strconv.Atoi(scale)
			if e.WithoutSimd != nil && e.WithoutSimd.Planes[scale] != nil {
				continue // coefficients beyond the range of the inverse DCT
			}
			r := image.Rect(0, 0, (e.Width+shrink-1)/shrink, (e.Height+shrink-1)/shrink)
			if err := d.Planes(&img, data, r, shrink); err != nil {
				t.Fatal(err)
			}
			for i, w := range want {
				p := &img.Planes[i]
				if p.Rect != image.Rect(0, 0, w.Width, w.Height) || p.Width != w.Width || p.Height != w.Height {
					t.Errorf("at 1/%s plane %d has %v of %dx%d samples, want %dx%d", scale, i, p.Rect, p.Width, p.Height, w.Width, w.Height)
					continue
				}
				if sum(samples(p)) != w.Sha256 {
					t.Errorf("at 1/%s plane %d has other samples", scale, i)
				}
			}
		}
	})
}

// samples returns the samples of a plane without gaps.
func samples(p *jpeg.Plane) (all []byte) {
	for y := range p.Rect.Dy() {
		all = append(all, p.Pix[y*p.Stride:][:p.Rect.Dx()]...)
	}
	return all
}

func TestRGB(t *testing.T) {
	eachFile(t, func(t *testing.T, e *expected, data []byte, d *jpeg.Decoder) {
		for scale, want := range e.Pixels {
			shrink, _ := strconv.Atoi(scale)
			if want == nil || want.Channels == 4 || e.WithoutSimd != nil {
				continue
			}
			got := make([]byte, 3*want.Width*want.Height)
			if err := d.RGB(got, 3*want.Width, data, image.Rect(0, 0, want.Width, want.Height), shrink); err != nil {
				t.Fatal(err)
			}
			if want.Channels == 1 {
				for i := range want.Width * want.Height {
					got[i] = got[3*i]
				}
				got = got[:want.Width*want.Height]
			}
			if sum(got) != want.Sha256 {
				t.Errorf("at 1/%s other pixels", scale)
			}
		}
	})
}

// surplus names files of which libjpeg only says that bytes are left over at the
// end of a scan or of a restart interval. That alone is no error here: there
// are encoders that leave some.
var surplus = map[string]bool{"damaged-bit-420.jpg": true, "damaged-zeros.jpg": true, "damaged-rst-late.jpg": true}

// Strictly, sound files are as good, and damaged ones are errors or the same
// picture.
func TestStrict(t *testing.T) {
	d := jpeg.NewDecoder(nil)
	for _, e := range readExpected(t) {
		t.Run(e.File, func(t *testing.T) {
			data := readFile(t, filepath.Join(jpegDir, e.File))
			var img jpeg.Image
			err := d.Planes(&img, data, image.Rect(0, 0, e.Width, e.Height), 1)
			switch {
			case err == nil && e.Kind == "damaged" && e.Warnings > 0 && !surplus[e.File]:
				t.Errorf("no error, and libjpeg counts %d warnings", e.Warnings)
			case err != nil && e.Warnings == 0 && e.Kind != "damaged":
				t.Error(err)
			case err != nil && !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrTruncated):
				t.Error(err)
			case err == nil && e.WithoutSimd == nil:
				for i, w := range e.Planes["1"] {
					if sum(samples(&img.Planes[i])) != w.Sha256 {
						t.Errorf("plane %d has other samples", i)
					}
				}
			}
		})
	}
}
