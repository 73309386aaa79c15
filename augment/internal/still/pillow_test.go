package still_test

import (
	"bytes"
	"errors"
	"image"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"shardtool/augment/internal/still"
	"shardtool/format"
)

// What Pillow 13.0.0 reads in the images of testdata; see make.py there.
func TestAsPillow(t *testing.T) {
	table, err := os.ReadFile(filepath.Join("testdata", "expected.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(table)), "\n")
	if len(lines) < 40 {
		t.Errorf("only %d images", len(lines))
	}
	for _, line := range lines {
		f := strings.Split(line, "\t")
		t.Run(f[0], func(t *testing.T) {
			data := load(t, f[0])
			want := still.Header{
				Encoding: filepath.Ext(f[0])[1:], Width: number(t, f[1]), Height: number(t, f[2]),
				Channels: number(t, f[3]), Bits: number(t, f[4]), Interlaced: f[5] == "1",
			}
			if h, err := still.ParseHeader(data); err != nil || h != want {
				t.Errorf("header %+v, %v, want %+v", h, err, want)
			}
			whole := image.Rect(0, 0, want.Width, want.Height)
			var d still.Decoder
			compare(t, &d, data, whole, load(t, f[0]+".rgb"))
			if d.Warnings() != (still.Warnings{}) {
				t.Errorf("warnings %v", d.Warnings())
			}
			if over, err := os.ReadFile(filepath.Join("testdata", f[0]+".over.rgb")); err == nil {
				d.Background = &[3]uint8{200, 100, 50}
				compare(t, &d, data, whole, over)
			}
		})
	}
}

// compare decodes the whole and parts of it, which must be the same pixels.
func compare(t *testing.T, d *still.Decoder, data []byte, whole image.Rectangle, want []byte) {
	t.Helper()
	parts := []image.Rectangle{whole}
	for _, cut := range []image.Rectangle{image.Rect(1, 0, 0, 0), image.Rect(0, 1, 0, 0), image.Rect(0, 0, 1, 0), image.Rect(0, 0, 0, 1), image.Rect(7, 5, 3, 4)} {
		r := image.Rectangle{Min: whole.Min.Add(cut.Min), Max: whole.Max.Sub(image.Pt(cut.Max.X, cut.Max.Y))}
		// image.Rect would exchange corners in the wrong order.
		if r.Min.X < r.Max.X && r.Min.Y < r.Max.Y {
			parts = append(parts, r)
		}
	}
	for _, r := range parts {
		pic, err := d.Decode(nil, data, r)
		if err != nil {
			t.Errorf("part %v: %v", r, err)
			continue
		}
		got := interleaved(&pic)
		for y := range r.Dy() {
			row := want[3*((r.Min.Y+y)*whole.Dx()+r.Min.X):][:3*r.Dx()]
			if !bytes.Equal(got[3*y*r.Dx():][:3*r.Dx()], row) {
				t.Errorf("part %v: row %d is %v, want %v", r, y, got[3*y*r.Dx():][:3*r.Dx()], row)
				break
			}
		}
	}
}

// interleaved returns the pixels as three bytes each.
func interleaved(pic *still.Picture) []byte {
	out := make([]byte, 0, 3*pic.Rect.Dx()*pic.Rect.Dy())
	for i := range pic.Rect.Dx() * pic.Rect.Dy() {
		for c := range 3 {
			if pic.Gray {
				c = 0
			}
			out = append(out, pic.Plane(c)[i])
		}
	}
	return out
}

func TestRefusedByName(t *testing.T) {
	for _, tt := range []struct {
		data, says string
		want       error
	}{
		{string(load(t, "refused.avif")), "AVIF", format.ErrUnsupported},
		{string(load(t, "refused.bmp")), "BMP", format.ErrUnsupported},
		{string(load(t, "refused.tiff")), "TIFF", format.ErrUnsupported},
		{string(load(t, "refused.ico")), "ICO", format.ErrUnsupported},
		{string(load(t, "refused.ppm")), "PNM", format.ErrUnsupported},
		{string(load(t, "refused.jpeg2000")), "JPEG 2000", format.ErrUnsupported},
		{string(load(t, "animated.webp")), "animated WebP", format.ErrUnsupported},
		{"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", "HEIC", format.ErrUnsupported},
		{"\x00\x00\x00\x18ftypmif1\x00\x00\x00\x00mif1heic", "HEIC", format.ErrUnsupported},
		{"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1miafavif", "AVIF", format.ErrUnsupported},
		{"\x00\x00\x00\x14ftypmif1\x00\x00\x00\x00mif1", "HEIF", format.ErrUnsupported},
		{"\x00\x00\x00\x14ftypisom\x00\x00\x00\x00isom", "", format.ErrWrongFormat}, // a video
		{"\x00\x00\x00\x0cJXL \r\n\x87\n", "JPEG XL", format.ErrUnsupported},
		{"\xff\x0a\xfa\x1f", "JPEG XL", format.ErrUnsupported},
		{"MM\x00*\x00\x00\x00\x08", "TIFF", format.ErrUnsupported},
		{"8BPS\x00\x01", "Photoshop", format.ErrUnsupported},
		{"BMW is a maker of cars and of motorcycles", "", format.ErrWrongFormat},
		{"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", "gzip", format.ErrWrongFormat},
		{"<!DOCTYPE html><html>", "HTML", format.ErrWrongFormat},
		{"RIFF\x24\x00\x00\x00WAVEfmt ", "RIFF", format.ErrWrongFormat},
		{"", "", format.ErrTruncated},
		{"\x89PN", "", format.ErrTruncated},
		{"GIF8", "", format.ErrTruncated},
		{"GIF89a", "", format.ErrTruncated},
		{"RIFF\x24", "", format.ErrTruncated},
		{"ab", "", format.ErrWrongFormat},
	} {
		_, err := still.ParseHeader([]byte(tt.data))
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%.20q: %v, want %v that says %q", tt.data, err, tt.want, tt.says)
		}
	}
}

func load(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
