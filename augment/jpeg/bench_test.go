package jpeg_test

import (
	"archive/tar"
	"errors"
	"image"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"shardtool/augment/jpeg"
	"shardtool/fixtures"
)

// photos returns the photographs to measure with: those of the folder that the
// environment variable SHARDTOOL_PHOTOS names, or one of the embedded shards.
func photos(tb testing.TB) (all [][]byte) {
	if dir := os.Getenv("SHARDTOOL_PHOTOS"); dir != "" {
		names, err := filepath.Glob(filepath.Join(dir, "*.jpg"))
		if err != nil || len(names) == 0 {
			tb.Fatalf("SHARDTOOL_PHOTOS: %d photographs, %v", len(names), err)
		}
		for _, name := range names {
			all = append(all, readFile(tb, name))
		}
		return all
	}
	f, err := fixtures.Photos.Open(fixtures.PhotoShards[0])
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			tb.Fatal(err)
		}
		if filepath.Ext(h.Name) == ".jpg" {
			data, err := io.ReadAll(r)
			if err != nil {
				tb.Fatal(err)
			}
			all = append(all, data)
		}
	}
}

// each measures what newTask makes over the photographs, on one core and on all.
func each(b *testing.B, newTask func() func(data []byte) error) {
	files := photos(b)
	var bytes int64
	for _, data := range files {
		bytes += int64(len(data))
	}
	b.Run("one core", func(b *testing.B) {
		b.SetBytes(bytes / int64(len(files)))
		b.ReportAllocs()
		do := newTask()
		for i := 0; b.Loop(); i++ {
			if err := do(files[i%len(files)]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("all cores", func(b *testing.B) {
		b.SetBytes(bytes / int64(len(files)))
		var next atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			do := newTask()
			for pb.Next() {
				if err := do(files[int(next.Add(1))%len(files)]); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

func BenchmarkEntropy(b *testing.B) {
	each(b, func() func([]byte) error {
		d := jpeg.NewDecoder(nil)
		return func(data []byte) error {
			src, err := d.Coefficients(data)
			if err != nil {
				return err
			}
			f := src.Frame()
			for y := range f.Rows {
				if _, err := src.Row(y, 0, f.Cols); err != nil {
					return err
				}
			}
			return nil
		}
	})
}

func BenchmarkSkip(b *testing.B) {
	each(b, func() func([]byte) error {
		d := jpeg.NewDecoder(nil)
		return func(data []byte) error {
			src, err := d.Coefficients(data)
			if err != nil {
				return err
			}
			_, err = src.Row(src.Frame().Rows-1, src.Frame().Cols-1, src.Frame().Cols)
			return err
		}
	})
}

func BenchmarkPlanes(b *testing.B) {
	each(b, func() func([]byte) error {
		d := jpeg.NewDecoder(nil)
		var img jpeg.Image
		return func(data []byte) error {
			h, err := jpeg.ParseHeader(data)
			if err != nil {
				return err
			}
			return d.Planes(&img, data, image.Rect(0, 0, h.Width, h.Height), 1)
		}
	})
}

// A whole picture, and its central quarter.
func BenchmarkRGB(b *testing.B) {
	for name, crop := range map[string]bool{"whole": false, "crop": true} {
		b.Run(name, func(b *testing.B) {
			each(b, func() func([]byte) error {
				d := jpeg.NewDecoder(nil)
				var dst []byte
				return func(data []byte) error {
					h, err := jpeg.ParseHeader(data)
					if err != nil {
						return err
					}
					r := image.Rect(0, 0, h.Width, h.Height)
					if crop {
						r = image.Rect(h.Width/4, h.Height/4, h.Width*3/4, h.Height*3/4)
					}
					if n := 3 * r.Dx() * r.Dy(); cap(dst) < n {
						dst = make([]byte, n)
					}
					return d.RGB(dst[:3*r.Dx()*r.Dy()], 3*r.Dx(), data, r, 1)
				}
			})
		})
	}
}

// One large picture with a restart marker for each row of MCUs, by goroutines.
func BenchmarkWorkers(b *testing.B) {
	data := large(b, photos(b)[0], 8)
	h, err := jpeg.ParseHeader(data)
	if err != nil {
		b.Fatal(err)
	}
	for workers := 1; workers <= runtime.GOMAXPROCS(0); workers *= 2 {
		b.Run(strconv.Itoa(workers), func(b *testing.B) {
			d := jpeg.NewDecoder(&jpeg.Options{Workers: workers})
			var img jpeg.Image
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := d.Planes(&img, data, image.Rect(0, 0, h.Width, h.Height), 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
