package augment_test

import (
	"bytes"
	"fmt"
	"image"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shardtool/augment"
	"shardtool/internal/asmtest"
	"shardtool/internal/simd"
	"shardtool/tensor"
)

// pictures are encoded images of every kind that there is a decoder for.
func pictures(t testing.TB) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, name := range []string{
		"444.jpg", "420.jpg", "422.jpg", "440.jpg", "411.jpg", "410.jpg", "441.jpg", "420-wide.jpg", "420-17x33.jpg", "420-1x1.jpg", "420-1x65.jpg", "420-65x1.jpg",
		"422-3x5.jpg", "3x2.jpg", "4x4.jpg", "fraction-3x1.jpg", "fraction-3x3.jpg", "chroma-finer.jpg", "gray.jpg", "gray-2x2.jpg", "cmyk-adobe.jpg",
		"progressive-420.jpg", "progressive-422.jpg", "progressive-gray.jpg", "progressive-restart.jpg",
	} {
		all[name] = load(t, jpegDir, name)
	}
	for _, name := range []string{"good_rgb8.png", "good_gray8.png", "good_palette8.png", "good_adam7.png", "good_lossy.webp", "good_alpha.webp", "good.gif", "good_ycck.jpg"} {
		all[name] = load(t, filepath.Join(casesDir, "image"), name)
	}
	return all
}

// lists are transforms whose geometry differs in what it needs of a picture.
func lists(t testing.TB) map[string]*augment.Transform {
	t.Helper()
	u8 := augment.ToTensor{DType: tensor.Uint8}
	return map[string]*augment.Transform{
		"train":       augment.ImageNetTrain(24),
		"train small": augment.ImageNetTrain(5).WithShrink(),
		"eval":        augment.ImageNetEval(16).WithShrink(),
		"bicubic":     compile(t, augment.RandomResizedCrop{Height: 21, Width: 33, Interpolation: augment.Bicubic}, augment.RandomVerticalFlip{}, u8),
		"lanczos":     compile(t, augment.Resize{Size: 60, Interpolation: augment.Lanczos}, augment.RandomCrop{Size: 8}, u8),
		"nearest":     compile(t, augment.RandomResizedCrop{Size: 9, Interpolation: augment.Nearest}, augment.RandomHorizontalFlip{}, u8),
		"plain":       compile(t, augment.RandomResizedCrop{Size: 31, NoAntialias: true}, u8).WithShrink(),
		"gray":        compile(t, augment.RandomResizedCrop{Size: 6}, augment.Grayscale{}, u8).WithShrink(),
		"general":     compile(t, augment.RandomCrop{Size: 12, PadIfNeeded: true}, augment.ColorJitter{Hue: 0.2, Contrast: 0.5}, u8),
		"part of it":  compile(t, augment.RandomCrop{Size: 7, PadIfNeeded: true}, augment.RandomHorizontalFlip{}, augment.ImageNetNormalize),
	}
}

// What is applied to a union of crops, kept compactly in memory beside a wall, is bit for bit what is applied to the crop alone.
func TestUnionIsTheCrops(t *testing.T) {
	for _, level := range []simd.Level{simd.AVX2, simd.Generic} {
		t.Run(level.String(), func(t *testing.T) {
			defer simd.SetLevel(level)()
			transforms := lists(t)
			workers := map[string]*augment.Worker{}
			for list, tr := range transforms {
				workers[list] = tr.NewWorker(nil)
			}
			var own, all, kept augment.Pixels
			for file, stored := range pictures(t) {
				t.Run(file, func(t *testing.T) {
					for o := byte(1); o <= 8; o++ {
						data := stored
						if strings.HasSuffix(file, ".jpg") {
							data = oriented(stored, o)
						}
						for i, list := range slices.Sorted(maps.Keys(transforms)) {
							copies := 1 + (i+int(o))%3*2
							unionIsTheCrops(t, fmt.Sprint(list, o), transforms[list], workers[list], data, copies, augment.Draws(100*o), &own, &all, &kept)
						}
					}
				})
			}
		})
	}
}

func unionIsTheCrops(t asmtest.TB, name string, tr *augment.Transform, w *augment.Worker, data []byte, copies int, first augment.Draws, own, all, kept *augment.Pixels) {
	t.Helper()
	h, err := w.Header(data)
	if err != nil {
		t.Fatal(name, err)
	}
	var u augment.Union
	var plans []augment.Plan
	for i := range copies {
		plans = append(plans, tr.Plan(h, first+augment.Draws(i)))
		u.Add(&plans[i])
	}
	if err := w.DecodeUnion(all, data, u); err != nil {
		t.Fatal(name, err)
	}
	mem := asmtest.Walled(t, all.CompactBytes(), copies%2 == 1)
	c := all.Compact(mem)
	c.View(kept)
	if kept.CompactBytes() != len(mem) {
		t.Fatal(name, "a copy of a copy is larger")
	}
	compare := func(what string, got, want tensor.Dense) {
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Fatal(fmt.Sprintf("%s: %s of the union %v differs from the crop alone", name, what, u))
		}
	}
	a, b := denseOf(tr), denseOf(tr)
	for i := range plans {
		p := &plans[i]
		if err := w.DecodeUnion(own, data, augment.Union{Crop: p.Crop, Shrink: u.Shrink}); err != nil {
			t.Fatal(name, err)
		}
		if err := w.Apply(b, own, p); err != nil {
			t.Fatal(name, err)
		}
		for what, px := range map[string]*augment.Pixels{"what is decoded": all, "what is kept": kept} {
			if err := w.Apply(a, px, p); err != nil {
				t.Fatal(name, what, err)
			}
			compare(what, a, b)
		}
		if !bytes.Equal(write(own, own.Rect), write(kept, own.Rect)) {
			t.Fatal(fmt.Sprintf("%s: other colors in the union %v", name, u))
		}
	}
	if !bytes.Equal(write(all, all.Rect), write(kept, all.Rect)) {
		t.Fatal(name, "other colors in what is kept")
	}
}

// Any crops of any picture.
func TestAnyUnion(t *testing.T) {
	files, err := filepath.Glob(jpegDir + "/*.jpg")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	var sound [][]byte
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil && !strings.Contains(name, "damaged") {
			if h, err := augment.ParseHeader(data); err == nil && augment.Standard(nil).Decode(new(augment.Pixels), data, image.Rect(0, 0, h.Width, h.Height)) == nil {
				sound = append(sound, data)
			}
		}
	}
	sound = append(sound, embeddedPhotos(t)[:3]...)
	var own, all, kept augment.Pixels
	rapid.Check(t, func(rt *rapid.T) {
		data := oriented(rapid.SampledFrom(sound).Draw(rt, "picture"), byte(rapid.IntRange(1, 8).Draw(rt, "orientation")))
		crop := augment.RandomResizedCrop{
			Height: rapid.IntRange(1, 40).Draw(rt, "height"), Width: rapid.IntRange(1, 40).Draw(rt, "width"), Scale: [2]float64{0.001, 1},
			Interpolation: augment.Interpolation(rapid.IntRange(0, 4).Draw(rt, "filter")), NoAntialias: rapid.Bool().Draw(rt, "plain"),
		}
		tr, err := augment.Compile(crop, augment.RandomHorizontalFlip{}, augment.RandomVerticalFlip{}, augment.ImageNetNormalize)
		if err != nil {
			rt.Skip(err)
		}
		if rapid.Bool().Draw(rt, "shrink") {
			tr = tr.WithShrink()
		}
		copies, first := rapid.IntRange(1, 5).Draw(rt, "copies"), augment.Draws(rapid.Uint64().Draw(rt, "draws"))
		unionIsTheCrops(rt, "any", tr, tr.NewWorker(nil), data, copies, first, &own, &all, &kept)
	})
}

// A kept picture is no larger than its samples, by hand: 50x38 of 4:2:0 has
// 50*38 of luma and twice 25*19 of chroma; of the part (10,8)-(21,15), 11*7 of
// luma, and of chroma samples 5 to 10 by 4 to 7 with one more on each side.
func TestCompactBytes(t *testing.T) {
	data := load(t, casesDir, "image/good_420.jpg")
	for _, tt := range []struct {
		name string
		part image.Rectangle
		want int
	}{
		{"image/good_420.jpg", image.Rect(0, 0, 50, 38), 50*38 + 2*25*19},
		{"image/good_420.jpg", image.Rect(10, 8, 21, 15), 11*7 + 2*8*6},
		{"image/good_420.jpg", image.Rect(49, 37, 50, 38), 1 + 2*2*2},
		{"image/good_gray.jpg", image.Rect(3, 5, 13, 7), 20},
		{"image/good_rgb8.png", image.Rect(3, 5, 13, 7), 60},
	} {
		var px augment.Pixels
		if err := augment.Standard(nil).Decode(&px, load(t, casesDir, tt.name), tt.part); err != nil {
			t.Fatal(err)
		}
		if got := px.CompactBytes(); got != tt.want {
			t.Errorf("%s: %v takes %d bytes, want %d", tt.name, tt.part, got, tt.want)
		}
	}
	var px augment.Pixels
	if px.CompactBytes() != 0 {
		t.Error("nothing is kept in no bytes")
	}
	if err := augment.Standard(nil).Decode(&px, data, image.Rect(0, 0, 50, 38)); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("memory that is too short is taken")
		}
	}()
	px.Compact(make([]byte, px.CompactBytes()-1))
}

// What is kept stays when the Pixels that it came from, and those that view it,
// decode other pictures; and those have their own memory back.
func TestCompactStandsAlone(t *testing.T) {
	dec := augment.Standard(nil)
	names := []string{"image/good_420.jpg", "image/d6_ii_6.jpg", "image/good_cmyk.jpg", "image/good_rgb8.png", "image/good_gray8.png"}
	decode := func(px *augment.Pixels, name string) {
		data := load(t, casesDir, name)
		h, err := dec.Header(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := dec.Decode(px, data, image.Rect(0, 0, h.Width, h.Height)); err != nil {
			t.Fatal(err)
		}
	}
	var px augment.Pixels
	var kept []augment.Compact
	var want [][]byte
	for _, name := range names {
		decode(&px, name)
		want = append(want, write(&px, px.Rect))
		kept = append(kept, px.Compact(make([]byte, px.CompactBytes())))
	}
	for round := range 2 {
		for i := range kept {
			kept[i].View(&px)
			if !bytes.Equal(write(&px, px.Rect), want[i]) {
				t.Errorf("round %d: %s has changed", round, names[i])
			}
			decode(&px, names[(i+1)%len(names)])
		}
	}
}

func TestKeepingAllocatesNothing(t *testing.T) {
	for name, data := range pictures(t) {
		tr := augment.ImageNetTrain(16)
		w, dst := tr.NewWorker(nil), slot(16)
		h, err := w.Header(data)
		if err != nil {
			t.Fatal(err)
		}
		if h.Encoding == "webp" || strings.Contains(h.Sampling, ",") { // its decoder is another's; the word for its sampling is made
			continue
		}
		var px, view augment.Pixels
		mem := make([]byte, 1<<20)
		run := func() {
			var u augment.Union
			a, b := tr.Plan(h, 1), tr.Plan(h, 2)
			u.Add(&a)
			u.Add(&b)
			if err := w.DecodeUnion(&px, data, u); err != nil {
				t.Fatal(err)
			}
			c := px.Compact(mem)
			for _, p := range []*augment.Plan{&a, &b} {
				c.View(&view)
				if err := w.Apply(dst, &view, p); err != nil {
					t.Fatal(err)
				}
			}
		}
		run()
		if n := testing.AllocsPerRun(3, run); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
