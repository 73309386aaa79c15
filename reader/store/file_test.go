package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/storetest"
)

// Reads of every size, alternating, give the bytes in order.
func TestFileStreamIsTheFile(t *testing.T) {
	want := storetest.Content(1, 3<<20+11)
	o := openContent(t, want)
	rapid.Check(t, func(t *rapid.T) {
		off := rapid.IntRange(0, len(want)).Draw(t, "offset")
		r, err := store.Stream(t.Context(), o, int64(off))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		buf := make([]byte, 1<<20)
		for at := off; ; {
			n := rapid.OneOf(rapid.IntRange(1, 100), rapid.IntRange(100, 70_000), rapid.IntRange(200_000, 300_000), rapid.Just(len(buf))).Draw(t, "size")
			m, err := r.Read(buf[:n])
			if !bytes.Equal(buf[:m], want[at:at+m]) {
				t.Fatalf("wrong bytes at %d", at)
			}
			at += m
			if err == io.EOF && at == len(want) {
				return
			}
			if err != nil || m == 0 {
				t.Fatalf("at %d: %d, %v", at, m, err)
			}
		}
	})
}

// A file that is cut under its reader is truncated, where it ends now and by
// whichever way it is read; what was appended is not part of it.
func TestFileChangesUnderItsReader(t *testing.T) {
	for _, size := range []int{10, 1 << 20} { // of reads: through the buffer and past it
		for _, keep := range []int64{0, 4, 1_500_000} {
			path := filepath.Join(t.TempDir(), "x.tar")
			want := storetest.Content(1, 2<<20)
			write(t, path, want)
			o, err := (&store.Local{}).Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			if err := os.Truncate(path, keep); err != nil {
				t.Skip("this system does not truncate open files:", err)
			}
			r, err := store.Stream(t.Context(), o, 0)
			if err != nil {
				t.Fatal(err)
			}
			got, err := readBy(r, size)
			if !bytes.Equal(got, want[:keep]) || !errors.Is(err, format.ErrTruncated) || !strings.Contains(err.Error(), fmt.Sprintf("@ %d", keep)) {
				t.Errorf("by %d: %d bytes, %v; want %d and truncated there", size, len(got), err, keep)
			}
			if _, err := readBy(r, size); !errors.Is(err, format.ErrTruncated) {
				t.Errorf("asked again: %v", err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if n, err := o.ReadAt(t.Context(), make([]byte, 10), keep-2); keep > 2 && (n != 2 || !errors.Is(err, format.ErrTruncated)) {
				t.Errorf("ReadAt: %d, %v", n, err)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "x.tar")
	write(t, path, []byte("alpha"))
	o, err := (&store.Local{}).Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("beta"); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	mustStream(t, o, 0, []byte("alpha"))
	p := make([]byte, 9)
	if n, err := o.ReadAt(t.Context(), p, 2); n != 3 || err != io.EOF {
		t.Errorf("ReadAt: %d, %v", n, err)
	}
}

func readBy(r io.Reader, size int) (got []byte, err error) {
	buf := make([]byte, size)
	for {
		n, err := r.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			return got, err
		}
	}
}

// List gives links to files, and not what they or folders lead around to.
func TestListFollowsLinksToFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, filepath.Join("d", "a.tar"), []byte("alpha"))
	if err := errors.Join(os.Symlink("a.tar", "d/link.tar"), os.Symlink("..", "d/up"), os.Symlink("nowhere", "d/dead.tar")); err != nil {
		t.Skip("no links here:", err)
	}
	for prefix, want := range map[string]string{"d/": "d/a.tar:5 d/link.tar:5", "./d/l": "./d/link.tar:5", "": "d/a.tar:5 d/link.tar:5", "file://d/a": "file://d/a.tar:5"} {
		var got []string
		for e, err := range (&store.Local{}).List(t.Context(), prefix) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s:%d", filepath.ToSlash(e.Name), e.Size))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: %s, want %s", prefix, s, want)
		}
	}
}

// benchFile is a file of 64 MiB.
func benchFile(b *testing.B) (path string, size int64) {
	path = filepath.Join(b.TempDir(), "x.tar")
	write(b, path, storetest.Content(1, 64<<20))
	return path, 64 << 20
}

// BenchmarkFileStream reads a cached file in order, beside a loop of preads of
// 1 MiB. See firstAhead, readAhead and directRead.
func BenchmarkFileStream(b *testing.B) {
	path, size := benchFile(b)
	b.Run("pread", func(b *testing.B) {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		buf := make([]byte, 1<<20)
		b.SetBytes(size)
		for b.Loop() {
			for off := int64(0); off < size; off += int64(len(buf)) {
				if _, err := f.ReadAt(buf, off); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	for _, n := range []int{512, 4 << 10, 32 << 10, 128 << 10, 256 << 10, 1 << 20, 4 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o, err := (&store.Local{}).Open(b.Context(), path)
			if err != nil {
				b.Fatal(err)
			}
			defer o.Close()
			buf := make([]byte, n)
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				r, err := store.Stream(b.Context(), o, 0)
				if err != nil {
					b.Fatal(err)
				}
				for err == nil {
					_, err = r.Read(buf)
				}
				if err != io.EOF {
					b.Fatal(err)
				}
				r.Close()
			}
		})
	}
}

// BenchmarkHandles opens, reads 4 KiB and gives back, with and without Handles.
func BenchmarkHandles(b *testing.B) {
	path, _ := benchFile(b)
	p := make([]byte, 4096)
	st := &store.Local{}
	b.Run("Open", func(b *testing.B) {
		for b.Loop() {
			o, err := st.Open(b.Context(), path)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := o.ReadAt(b.Context(), p, 8192); err != nil {
				b.Fatal(err)
			}
			o.Close()
		}
	})
	b.Run("Get", func(b *testing.B) {
		hs := store.NewHandles(st, 0)
		defer hs.Close()
		for b.Loop() {
			h, err := hs.Get(b.Context(), store.Entry{Name: path})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := h.ReadAt(b.Context(), p, 8192); err != nil {
				b.Fatal(err)
			}
			h.Release()
		}
	})
}

// BenchmarkCache reads a cached object in order and at offsets, beside the file
// itself.
func BenchmarkCache(b *testing.B) {
	path, size := benchFile(b)
	c, err := store.NewCache(&store.Local{}, store.CacheOptions{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 1<<20)
	for name, st := range map[string]store.Store{"Local": &store.Local{}, "Cache": c} {
		o, err := st.Open(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		defer o.Close()
		b.Run(name+"/Stream", func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				r, err := store.Stream(b.Context(), o, 0)
				for err == nil {
					_, err = r.Read(buf)
				}
				if err != io.EOF {
					b.Fatal(err)
				}
				r.Close()
			}
		})
		b.Run(name+"/ReadAt", func(b *testing.B) {
			p := buf[:100_000]
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				if _, err := o.ReadAt(b.Context(), p, i*7_654_321%(size-100_000)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
