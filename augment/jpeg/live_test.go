package jpeg_test

import (
	"bytes"
	"fmt"
	"image"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"shardtool/augment/jpeg"
)

// TestBesideLibjpeg compares coefficients, planes and RGB with those of
// libjpeg-turbo itself, on the photographs at hand and on the files of
// fixtures/jpeg. SHARDTOOL_LIBJPEG is the program that
// benchmarks/peers/libjpeg builds.
func TestBesideLibjpeg(t *testing.T) {
	ref := os.Getenv("SHARDTOOL_LIBJPEG")
	if ref == "" {
		t.Skip("SHARDTOOL_LIBJPEG names no program that runs libjpeg")
	}
	var names []string
	for _, dir := range []string{os.Getenv("SHARDTOOL_PHOTOS"), jpegDir} {
		found, _ := filepath.Glob(filepath.Join(dir, "*.jpg"))
		names = append(names, found...)
	}
	unequal := map[string]bool{} // beyond the range of the inverse DCT, libjpeg has no one result
	refused := map[string]bool{}
	for _, e := range readExpected(t) {
		unequal[filepath.Join(jpegDir, e.File)] = e.WithoutSimd != nil
		refused[filepath.Join(jpegDir, e.File)] = e.Error != nil
	}
	d := jpeg.NewDecoder(&jpeg.Options{Tolerant: true})
	var img jpeg.Image
	compared := 0
	for _, name := range names {
		if refused[name] {
			continue
		}
		data := readFile(t, name)
		src, err := d.Coefficients(data)
		if err != nil {
			t.Fatal(name, err)
		}
		f := src.Frame()
		var coefs, planes bytes.Buffer
		for i, c := range coefficients(t, src) {
			fmt.Fprintf(&coefs, "component %d %d %d\n", i, f.Comps[i].Cols, f.Comps[i].Rows)
			coefs.Write(c)
		}
		equal(t, name, "coefficients", coefs.Bytes(), run(t, ref, "coefs", name))
		compared++
		if unequal[name] {
			continue
		}
		r := image.Rect(0, 0, f.Width, f.Height)
		if err := d.Planes(&img, data, r, 1); err != nil {
			t.Fatal(name, err)
		}
		for i, p := range img.Planes[:img.Count] {
			fmt.Fprintf(&planes, "component %d %d %d\n", i, p.Width, p.Height)
			for y := range p.Height {
				planes.Write(p.Pix[y*p.Stride:][:p.Width])
			}
		}
		equal(t, name, "planes", planes.Bytes(), run(t, ref, "planes", name))
		if f.Count != 3 || filepath.Dir(name) == filepath.Clean(jpegDir) {
			continue // TestRGB has those of fixtures
		}
		rgb := make([]byte, 3*f.Width*f.Height)
		if err := d.RGB(rgb, 3*f.Width, data, r, 1); err != nil {
			t.Fatal(name, err)
		}
		want := run(t, ref, "rgb", name)
		equal(t, name, "pixels", rgb, want[bytes.IndexByte(want, '\n')+1:])
	}
	if compared < 100 {
		t.Errorf("only %d files", compared)
	}
	t.Logf("%d files", compared)
}

func run(t *testing.T, program string, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		t.Fatal(program, args, err)
	}
	return out
}

func equal(t *testing.T, name, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		at := 0
		for at < len(got) && at < len(want) && got[at] == want[at] {
			at++
		}
		t.Errorf("%s: the %s differ from byte %d of %d and %d on", name, what, at, len(got), len(want))
	}
}

// TestDamageBesideLibjpeg changes bytes of the scans at random: with tolerance,
// the coefficients are those that libjpeg goes on with.
func TestDamageBesideLibjpeg(t *testing.T) {
	ref := os.Getenv("SHARDTOOL_LIBJPEG")
	if ref == "" {
		t.Skip("SHARDTOOL_LIBJPEG names no program that runs libjpeg")
	}
	rng := rand.New(rand.NewPCG(7, 8))
	d := jpeg.NewDecoder(&jpeg.Options{Tolerant: true})
	name := filepath.Join(t.TempDir(), "damaged.jpg")
	compared := 0
	for _, e := range readExpected(t) {
		if e.Kind == "damaged" || e.Error != nil {
			continue
		}
		data := readFile(t, filepath.Join(jpegDir, e.File))
		for range 8 {
			damaged := bytes.Clone(data)
			first := bytes.Index(damaged, []byte{0xff, 0xda}) + 14
			if first >= len(damaged)-2 {
				continue
			}
			for range 1 + rng.IntN(4) {
				damaged[first+rng.IntN(len(damaged)-first)] = byte(rng.Uint32())
			}
			if rng.IntN(3) == 0 {
				damaged = damaged[:first+rng.IntN(len(damaged)-first)]
			}
			if err := os.WriteFile(name, damaged, 0o644); err != nil {
				t.Fatal(err)
			}
			want, err := exec.Command(ref, "coefs", name).Output()
			if err != nil {
				continue // libjpeg gives up
			}
			src, err := d.Coefficients(damaged)
			if err != nil {
				t.Errorf("%s damaged: libjpeg goes on, and here: %v", e.File, err)
				continue
			}
			var coefs bytes.Buffer
			for i, c := range coefficients(t, src) {
				fmt.Fprintf(&coefs, "component %d %d %d\n", i, src.Frame().Comps[i].Cols, src.Frame().Comps[i].Rows)
				coefs.Write(c)
			}
			if !bytes.Equal(coefs.Bytes(), want) {
				keep := filepath.Join(os.TempDir(), "damaged-"+e.File)
				_ = os.WriteFile(keep, damaged, 0o644)
				t.Errorf("%s damaged (%s): other coefficients", e.File, keep)
			}
			compared++
		}
	}
	t.Logf("%d damaged files", compared)
	if compared < 300 {
		t.Errorf("only %d", compared)
	}
}
