package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// decodedImage is what a case says of a picture as 8-bit RGB.
type decodedImage struct {
	Width    int          `json:"width"`
	Height   int          `json:"height"`
	Channels int          `json:"channels"`
	Mean     []float64    `json:"mean_rgb"`
	Tol      float64      `json:"tol"`
	Pixels   [][5]float64 `json:"pixels"` // x, y, red, green, blue
	PixelTol float64      `json:"pixel_tol"`
}

type imageOutcome struct {
	Decoded *decodedImage `json:"decoded"`
	Error   *struct {
		Class  string   `json:"class"`
		AlsoOK []string `json:"also_ok"`
	} `json:"error"`
}

// TestImageCases runs stats, and extract --images png, on each image of the
// cases, as the one image of a tar.
func TestImageCases(t *testing.T) {
	dir := filepath.Join(fixturesFolder(t), "cases")
	text, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		caseInputs
		Expect json.RawMessage `json:"expect"`
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, c := range cases {
		if c.Kind != "image" || len(c.Files) != 1 || c.Compose != nil {
			continue
		}
		var want struct {
			imageOutcome
			AlsoOK json.RawMessage `json:"also_ok"`
		}
		if err := json.Unmarshal(c.Expect, &want); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		outcomes := []imageOutcome{want.imageOutcome}
		var other imageOutcome
		if json.Unmarshal(want.AlsoOK, &other) == nil {
			outcomes = append(outcomes, other)
		}
		outcomes = slices.DeleteFunc(outcomes, func(o imageOutcome) bool { return o.Decoded == nil && o.Error == nil })
		if len(outcomes) == 0 {
			continue
		}
		ran++
		t.Run(c.Name, func(t *testing.T) {
			var misses []string
			for _, o := range outcomes {
				miss := o.miss(t, filepath.Join(dir, c.Files[0]))
				if miss == "" {
					return
				}
				misses = append(misses, miss)
			}
			t.Error(strings.Join(misses, "; or "))
		})
	}
	if ran < 100 {
		t.Errorf("%d cases ran", ran)
	}
}

// miss says in what the command's outcome is another; "" where it is the same.
func (o *imageOutcome) miss(t *testing.T, path string) string {
	in := tarOfImage(t, path)
	code, out, _ := runCommand(t, "", "stats", "--json", "--each", in)
	rows := rowsOf[struct {
		Key                     string
		Width, Height, Channels *int
		Mean                    *[3]float64
		Error                   *struct{ Class, Message string }
	}](t, out)
	if len(rows) != 1 || rows[0].Key != "case" {
		t.Fatalf("rows: %s", out)
	}
	r := rows[0]
	if fault := r.Error != nil; code != map[bool]int{false: 0, true: 1}[fault] {
		t.Errorf("exit %d: %s", code, out)
	}
	d := o.Decoded
	switch {
	case d == nil && (r.Error == nil || r.Error.Class != o.Error.Class && !slices.Contains(o.Error.AlsoOK, r.Error.Class)):
		return fmt.Sprintf("%s want the error %+v", out, *o.Error)
	case d == nil:
		return ""
	case r.Error != nil || *r.Width != d.Width || *r.Height != d.Height || d.Channels > 0 && *r.Channels != d.Channels:
		return fmt.Sprintf("%s want %dx%d, %d channels", out, d.Width, d.Height, d.Channels)
	}
	for c, mean := range d.Mean {
		if math.Abs(r.Mean[c]-mean) > d.Tol {
			return fmt.Sprintf("mean %v want %v", *r.Mean, d.Mean)
		}
	}
	return d.missPixels(t, in)
}

// missPixels compares single pixels of the picture that is extracted.
func (d *decodedImage) missPixels(t *testing.T, in string) string {
	dir := t.TempDir()
	if code, _, stderr := runCommand(t, "", "extract", "--images", "png", in, dir); code != 0 {
		return fmt.Sprintf("extract: exit %d, %s", code, stderr)
	}
	data, err := os.ReadFile(filepath.Join(dir, "case.png"))
	if err != nil {
		return err.Error()
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return err.Error()
	}
	if size := img.Bounds().Size(); size.X != d.Width || size.Y != d.Height || data[24] != 8 || data[25] != 2 {
		return fmt.Sprintf("the PNG is of %v, depth %d, color type %d", size, data[24], data[25])
	}
	for _, p := range d.Pixels {
		r, g, b, _ := img.At(int(p[0]), int(p[1])).RGBA()
		for c, v := range []uint32{r, g, b} {
			if math.Abs(float64(v>>8)-p[2+c]) > d.PixelTol {
				return fmt.Sprintf("pixel %v, %v is %d %d %d, want %v", p[0], p[1], r>>8, g>>8, b>>8, p[2:])
			}
		}
	}
	return ""
}

// tarOfImage writes a tar with one sample, "case", of one image.
func tarOfImage(t *testing.T, path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "case" + filepath.Ext(path), Size: int64(len(data)), Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	in := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(in, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return in
}
