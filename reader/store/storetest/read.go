package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"shardtool/format"
	"shardtool/reader/store"
)

func closeAll(t testing.TB, closers ...io.Closer) {
	t.Helper()
	for _, c := range closers {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

func testReadAt(t *testing.T, f *Fixture) {
	f.put(t, "a.tar", []byte("alpha"))
	f.put(t, "empty.tar", nil)
	for _, tt := range []struct {
		key  string
		off  int64
		n    int
		want string
		err  error // io.EOF besides is fine where all was read
	}{
		{"a.tar", 0, 5, "alpha", nil},
		{"a.tar", 1, 3, "lph", nil},
		{"a.tar", 4, 1, "a", nil},
		{"a.tar", 2, 0, "", nil},
		{"a.tar", 5, 0, "", nil},
		{"a.tar", 3, 5, "ha", io.EOF},
		{"a.tar", 0, 4096, "alpha", io.EOF},
		{"a.tar", 5, 1, "", io.EOF},
		{"a.tar", 9, 1, "", io.EOF},
		{"a.tar", 1 << 40, 1, "", io.EOF},
		{"a.tar", -1, 1, "", format.ErrUsage},
		{"a.tar", -1 << 62, 1, "", format.ErrUsage},
		{"empty.tar", 0, 1, "", io.EOF},
		{"empty.tar", 0, 0, "", nil},
	} {
		o := f.open(t, tt.key)
		p := bytes.Repeat([]byte{0xee}, tt.n+1)
		n, err := o.ReadAt(t.Context(), p[:tt.n:tt.n], tt.off)
		whole := tt.err == nil && err == io.EOF
		if n < 0 || n > tt.n || string(p[:n]) != tt.want || !whole && !errors.Is(err, tt.err) || tt.err == io.EOF && err != io.EOF {
			t.Errorf("%s: ReadAt(%d, %d) = %q, %v; want %q, %v", tt.key, tt.n, tt.off, p[:max(n, 0)], err, tt.want, tt.err)
		}
		if p[tt.n] != 0xee {
			t.Errorf("%s: ReadAt(%d, %d) wrote past its slice", tt.key, tt.n, tt.off)
		}
		closeAll(t, o)
	}
}

func testReadAtTogether(t *testing.T, f *Fixture) {
	want := Content(1, 1<<20+77)
	f.put(t, "a.tar", want)
	o := f.open(t, "a.tar")
	defer closeAll(t, o)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for range 12 {
				off := random.IntN(len(want))
				n := random.IntN(min(len(want)-off, 100_000) + 1)
				p := make([]byte, n)
				m, err := o.ReadAt(t.Context(), p, int64(off))
				if m != n || err != nil && err != io.EOF || !bytes.Equal(p, want[off:off+n]) {
					t.Errorf("ReadAt(%d, %d): %d, %v; right bytes: %v", n, off, m, err, bytes.Equal(p, want[off:off+n]))
				}
			}
		})
	}
	wg.Wait()
}

// testNoOffsets is for stores that can only be read in order.
func testNoOffsets(t *testing.T, f *Fixture) {
	if f.can(Offsets) {
		t.Skip("the store reads at offsets")
	}
	f.put(t, "a.tar", []byte("alpha"))
	o := f.open(t, "a.tar")
	defer closeAll(t, o)
	if n, err := o.ReadAt(t.Context(), make([]byte, 1), 0); n != 0 || !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("ReadAt: %d, %v; want unsupported", n, err)
	}
}

// testStream reads a stream to its end in ways that readers do, and asks again
// at the end.
func testStream(t *testing.T, f *Fixture) {
	want := Content(2, 300_001)
	f.put(t, "a.tar", want)
	f.put(t, "empty.tar", nil)
	for name, read := range map[string]func(io.Reader) ([]byte, error){
		"ReadAll": io.ReadAll,
		"bytes":   func(r io.Reader) ([]byte, error) { return readBy(r, func(int) int { return 7 }) },
		"growing": func(r io.Reader) ([]byte, error) { return readBy(r, func(i int) int { return i%4096 + 1 }) },
		"large":   func(r io.Reader) ([]byte, error) { return readBy(r, func(int) int { return 1 << 20 }) },
		"Copy": func(r io.Reader) ([]byte, error) {
			var b bytes.Buffer
			_, err := io.Copy(&b, r)
			return b.Bytes(), err
		},
	} {
		for key, want := range map[string][]byte{"a.tar": want, "empty.tar": nil} {
			o := f.open(t, key)
			r, err := store.Stream(t.Context(), o, 0)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := read(r); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s, %s: %d bytes of %d, right: %v; %v", key, name, len(got), len(want), bytes.Equal(got, want), err)
			}
			if n, err := r.Read(make([]byte, 8)); n != 0 || err != io.EOF {
				t.Errorf("%s, %s: a read after the end: %d, %v", key, name, n, err)
			}
			closeAll(t, r, o)
		}
	}
}

// readBy reads pieces of size(0), size(1), ... bytes.
func readBy(r io.Reader, size func(i int) int) ([]byte, error) {
	var got []byte
	buf := make([]byte, 1<<20)
	for i := 0; ; i++ {
		n, err := r.Read(buf[:size(i)])
		got = append(got, buf[:n]...)
		if err == io.EOF {
			return got, nil
		}
		if err != nil {
			return got, err
		}
	}
}

func testStreamAtOffsets(t *testing.T, f *Fixture) {
	want := Content(3, 200_000)
	f.put(t, "a.tar", want)
	o := f.open(t, "a.tar")
	defer closeAll(t, o)
	for _, off := range []int64{0, 1, 511, 65_536, 131_071, 199_999, 200_000, 200_001, 1 << 40} {
		r, err := store.Stream(t.Context(), o, off)
		if err != nil {
			t.Errorf("Stream(%d): %v", off, err)
			continue
		}
		rest := want[min(off, int64(len(want))):]
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, rest) {
			t.Errorf("Stream(%d): %d bytes of %d, %v", off, len(got), len(rest), err)
		}
		closeAll(t, r)
	}
	if r, err := store.Stream(t.Context(), o, -1); !errors.Is(err, format.ErrUsage) {
		t.Errorf("Stream(-1): %v, %v; want usage", r, err)
	}
}

// testStreamsTogether reads several streams of one object by turns in one
// goroutine, so that a stream that waits for another would hang.
func testStreamsTogether(t *testing.T, f *Fixture) {
	want := Content(4, 500_000)
	f.put(t, "a.tar", want)
	o := f.open(t, "a.tar")
	defer closeAll(t, o)
	var streams []io.ReadCloser
	got := make([][]byte, 4)
	for i := range got {
		r, err := store.Stream(t.Context(), o, int64(i)*100_000)
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, r)
	}
	buf := make([]byte, 10_000)
	for open := len(streams); open > 0; {
		open = 0
		for i, r := range streams {
			n, err := r.Read(buf)
			got[i] = append(got[i], buf[:n]...)
			if err == nil {
				open++
			} else if err != io.EOF {
				t.Fatal(err)
			}
		}
		p := make([]byte, 100)
		if n, err := o.ReadAt(t.Context(), p, 77); n != 100 || err != nil || !bytes.Equal(p, want[77:177]) {
			t.Fatalf("ReadAt between: %d, %v", n, err)
		}
	}
	for i, r := range streams {
		if !bytes.Equal(got[i], want[i*100_000:]) {
			t.Errorf("stream %d: %d bytes", i, len(got[i]))
		}
		closeAll(t, r)
	}
}

func testStreamClosedEarly(t *testing.T, f *Fixture) {
	want := Content(5, f.large())
	f.put(t, "a.tar", want)
	for _, n := range []int{0, 1, min(1<<20, len(want)/2)} {
		o := f.open(t, "a.tar")
		r, err := store.Stream(t.Context(), o, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, n)
		if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, want[:n]) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
		closeAll(t, r, o)
	}
}

func testLarge(t *testing.T, f *Fixture) {
	want := Content(6, f.large())
	f.put(t, "large.tar", want)
	got, err := f.read(t.Context(), "large.tar")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, right: %v; %v", len(got), len(want), bytes.Equal(got, want), err)
	}
}

func testLargeInPieces(t *testing.T, f *Fixture) {
	want := Content(7, f.large())
	f.put(t, "large.tar", want)
	o := f.open(t, "large.tar")
	defer closeAll(t, o)
	for _, n := range []int{len(want), len(want)/6 + 1, 100} {
		for _, off := range []int{0, min(1<<20, len(want)/3) - 50, len(want)/2 - 1, len(want) - 200} {
			p := make([]byte, n)
			m, err := o.ReadAt(t.Context(), p, int64(off))
			rest := want[off:min(off+n, len(want))]
			if m != len(rest) || !bytes.Equal(p[:m], rest) || m < n && err != io.EOF || m == n && err != nil && err != io.EOF {
				t.Errorf("ReadAt(%d, %d): %d, %v; want %d", n, off, m, err, len(rest))
			}
		}
	}
}

func testCancelled(t *testing.T, f *Fixture) {
	f.put(t, "a.tar", Content(8, 100_000))
	o := f.open(t, "a.tar")
	defer closeAll(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := map[string]func() error{
		"Open": func() error { _, err := f.Store.Open(ctx, f.name("a.tar")); return err },
		"Stat": func() error { _, err := store.Stat(ctx, f.Store, f.name("a.tar")); return err },
		"Stream": func() error {
			r, err := store.Stream(ctx, o, 0)
			if err != nil {
				return err
			}
			defer r.Close()
			_, err = io.ReadAll(r)
			return err
		},
	}
	if f.can(Offsets) {
		calls["ReadAt"] = func() error { _, err := o.ReadAt(ctx, make([]byte, 1), 0); return err }
	}
	if f.can(Create) {
		calls["Create"] = func() error {
			k, err := f.Store.Create(ctx, f.name("b.tar"))
			if err == nil {
				err = errors.Join(k.Commit(), k.Abort())
			}
			return err
		}
	}
	if f.can(List) {
		calls["List"] = func() error {
			for _, err := range f.Store.List(ctx, f.Prefix) {
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func testCancelledStream(t *testing.T, f *Fixture) {
	want := Content(9, f.large())
	f.put(t, "a.tar", want)
	o := f.open(t, "a.tar")
	defer closeAll(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := store.Stream(ctx, o, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, r)
	head := make([]byte, 100)
	if _, err := io.ReadFull(r, head); err != nil {
		t.Fatal(err)
	}
	cancel()
	rest, err := io.ReadAll(r)
	if !errors.Is(err, context.Canceled) || !bytes.HasPrefix(want[100:], rest) {
		t.Errorf("%d bytes more, %v; want the context's error", len(rest), err)
	}
}

func testCancelledReads(t *testing.T, f *Fixture) {
	want := Content(10, f.large())
	f.put(t, "a.tar", want)
	o := f.open(t, "a.tar")
	defer closeAll(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			off := i * (len(want) / 8)
			p := make([]byte, len(want)/8)
			n, err := o.ReadAt(ctx, p, int64(off))
			switch {
			case !bytes.Equal(p[:n], want[off:off+n]):
				t.Errorf("reader %d: wrong bytes", i)
			case err == nil || err == io.EOF:
				if n != len(p) {
					t.Errorf("reader %d: %d bytes of %d and %v", i, n, len(p), err)
				}
			case !errors.Is(err, context.Canceled):
				t.Errorf("reader %d: %v", i, err)
			}
			cancel() // the first that is done ends the others
		})
	}
	wg.Wait()
}

func testStat(t *testing.T, f *Fixture) {
	for i, n := range []int{0, 1, 70_000} {
		key := fmt.Sprintf("d/%d.tar", i)
		f.put(t, key, Content(uint64(i), n))
		o := f.open(t, key)
		opened := o.Stat()
		closeAll(t, o)
		size := int64(n)
		if !f.can(Sizes) {
			size = format.Unknown
		}
		if opened.Name != f.name(key) || opened.Size != size || f.can(Versions) != (opened.Version != "") {
			t.Errorf("%s: an open object is %+v", key, opened)
		}
		asked, err := store.Stat(t.Context(), f.Store, f.name(key))
		if err != nil || asked != opened {
			t.Errorf("%s: Stat gives %+v, %v; opening it %+v", key, asked, err, opened)
		}
	}
}
