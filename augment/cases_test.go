package augment_test

import (
	"encoding/json"
	"image"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"shardtool/augment"
	"shardtool/format"
	"shardtool/tensor"
)

const casesDir = "../fixtures/cases"

type imageCase struct {
	Name   string
	Files  []string
	Expect struct {
		outcome
		AlsoOK       *outcome `json:"also_ok"`
		Alternatives []struct {
			Policy string
			outcome
		}
		Warnings   map[format.Warning]int64
		MaxAllocMB float64 `json:"max_alloc_mb"`
		Batch      *struct {
			Count, Channels int
			MeanRGB         [][]float64 `json:"mean_rgb"`
			Tol             float64
		}
		Requests []struct {
			Op      string
			Rect    [4]int    // left, top, width, height, upright
			MeanRGB []float64 `json:"mean_rgb"`
			Tol     float64
		}
	}
}

type outcome struct {
	Decoded *struct {
		Width, Height, Channels int
		MeanRGB                 []float64 `json:"mean_rgb"`
		Tol                     float64
		Pixels                  [][5]int
		PixelTol                int `json:"pixel_tol"`
	}
	Error *struct {
		Class  string
		AlsoOK []string `json:"also_ok"`
	}
	Orientation int
}

// policies are the options that stand for the policies of alternatives.
var policies = map[string]augment.Decoding{
	"truncated-image=keep": {Tolerant: true},
	"exif=ignore":          {AsStored: true},
}

func imageCases(t *testing.T) (cases []imageCase) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(casesDir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		var kind struct{ Kind string }
		var c imageCase
		if err := json.Unmarshal(one, &kind); err != nil {
			t.Fatal(err)
		}
		if kind.Kind != "image" {
			continue
		}
		if err := json.Unmarshal(one, &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

func TestImageCases(t *testing.T) {
	cases := imageCases(t)
	for _, c := range cases {
		if c.Expect.Batch != nil {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(casesDir, c.Files[0]))
			if err != nil {
				t.Fatal(err)
			}
			e := &c.Expect
			got := decode(augment.Decoding{}, data)
			miss := got.misses(&e.outcome)
			if miss != "" && (e.AlsoOK == nil || got.misses(e.AlsoOK) != "") {
				t.Error(miss)
			}
			if got.err == nil && !maps.Equal(got.warnings, e.Warnings) {
				t.Errorf("warnings %v, want %v", got.warnings, e.Warnings)
			}
			if e.MaxAllocMB > 0 && got.allocated > e.MaxAllocMB*1e6 {
				t.Errorf("%.1f MB were allocated, want at most %v", got.allocated/1e6, e.MaxAllocMB)
			}
			for _, a := range e.Alternatives {
				o, ok := policies[a.Policy]
				if !ok {
					t.Errorf("the policy %q is not known", a.Policy)
				}
				if miss := decode(o, data).misses(&a.outcome); miss != "" {
					t.Errorf("%s: %s", a.Policy, miss)
				}
			}
			for _, r := range e.Requests {
				if r.Op != "crop" {
					t.Fatalf("request %q", r.Op)
				}
				part := image.Rect(r.Rect[0], r.Rect[1], r.Rect[0]+r.Rect[2], r.Rect[1]+r.Rect[3])
				got := decodePart(augment.Decoding{}, data, part)
				if got.err != nil || !near(got.mean(part), r.MeanRGB, r.Tol) {
					t.Errorf("%v: mean %v, error %v, want %v", part, got.mean(part), got.err, r.MeanRGB)
				}
			}
		})
	}
	if len(cases) < 100 {
		t.Errorf("only %d cases", len(cases))
	}
}

// Pictures of all numbers of channels become batches of three.
func TestBatchCases(t *testing.T) {
	tr, err := augment.Compile(augment.Resize{Width: 224, Height: 224}, augment.ToTensor{DType: tensor.Uint8})
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, c := range imageCases(t) {
		b := c.Expect.Batch
		if b == nil {
			continue
		}
		ran++
		if len(c.Files) != b.Count || tr.Shape()[0] != b.Channels {
			t.Errorf("%s: %d files, shape %v", c.Name, len(c.Files), tr.Shape())
		}
		w := tr.NewWorker(nil)
		var px augment.Pixels
		for i, file := range c.Files {
			dst := denseOf(tr)
			if err := w.Run(dst, &px, load(t, casesDir, file), 0); err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			mean := make([]float64, b.Channels)
			area := len(dst.Bytes()) / b.Channels
			for at, v := range dst.Bytes() {
				mean[at/area] += float64(v) / float64(area)
			}
			if !near(mean, b.MeanRGB[i], b.Tol) {
				t.Errorf("%s: mean %v, want %v", file, mean, b.MeanRGB[i])
			}
		}
	}
	if ran == 0 {
		t.Error("no case")
	}
}

// outcomes is what came of decoding.
type outcomes struct {
	h         augment.Header
	px        augment.Pixels
	err       error
	warnings  map[format.Warning]int64
	allocated float64 // bytes
}

func decode(o augment.Decoding, data []byte) *outcomes {
	return decodePart(o, data, image.Rectangle{})
}

// decodePart decodes a part, or the whole of the picture if it is empty.
func decodePart(o augment.Decoding, data []byte, part image.Rectangle) *outcomes {
	var got outcomes
	var before, after runtime.MemStats
	dec := o.New(nil)
	runtime.ReadMemStats(&before)
	got.h, got.err = dec.Header(data)
	if part.Empty() {
		part = image.Rect(0, 0, got.h.Width, got.h.Height)
	}
	if got.err == nil {
		got.err = dec.Decode(&got.px, data, part)
	}
	runtime.ReadMemStats(&after)
	got.allocated = float64(after.TotalAlloc - before.TotalAlloc)
	got.warnings = dec.(augment.Warner).Warnings()
	return &got
}

// misses returns "" or how the outcome misses what is expected.
func (got *outcomes) misses(want *outcome) string {
	h := got.h
	if e := want.Error; e != nil {
		if class := format.Class(got.err); class != e.Class && !slices.Contains(e.AlsoOK, class) {
			return "error " + class + ", want " + e.Class
		}
		return ""
	}
	if got.err != nil {
		return got.err.Error()
	}
	d := want.Decoded
	switch {
	case d == nil:
		return "nothing to compare with"
	case h.Width != d.Width || h.Height != d.Height || d.Channels != 0 && h.Channels != d.Channels:
		return "another size or number of channels"
	case want.Orientation != 0 && h.Orientation != want.Orientation:
		return "another orientation"
	case d.MeanRGB != nil && !near(got.mean(got.px.Rect), d.MeanRGB, d.Tol):
		return "another mean"
	}
	for _, p := range d.Pixels {
		r, g, b := got.px.RGB(p[0], p[1])
		for c, v := range []uint8{r, g, b} {
			if diff := int(v) - p[2+c]; diff > d.PixelTol || -diff > d.PixelTol {
				return "another pixel"
			}
		}
	}
	return ""
}

// mean returns the means of a part.
func (got *outcomes) mean(part image.Rectangle) []float64 {
	rgb := make([]byte, 3*part.Dx()*part.Dy())
	got.px.WriteRGB(rgb, 3*part.Dx(), part)
	mean := make([]float64, 3)
	for i, v := range rgb {
		mean[i%3] += float64(v) / float64(len(rgb)/3)
	}
	return mean
}

func near(got, want []float64, tol float64) bool {
	if len(got) != len(want) {
		return false
	}
	for c := range got {
		if !(math.Abs(got[c]-want[c]) <= tol) {
			return false
		}
	}
	return true
}
