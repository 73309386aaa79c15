package store_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/faultstore"
	"shardtool/reader/store/storetest"
)

// origin is a store of one object "x" of n bytes, whose requests are counted.
func origin(n int) (st store.Store, c *store.Counters, data []byte) {
	data = storetest.Content(9, n)
	c = new(store.Counters)
	return store.Count(store.FS(fstest.MapFS{"x": {Data: data, ModTime: time.Unix(1, 0)}}), c), c, data
}

// tester is a test or a property test.
type tester interface {
	Helper()
	Cleanup(func())
	Error(...any)
	Errorf(string, ...any)
	Fatal(...any)
}

func open(t tester, st store.Store, name string) store.Object {
	t.Helper()
	o, err := st.Open(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

// mustRead reads a piece by ReadAt.
func mustRead(t tester, o store.Object, off, n int, data []byte) {
	t.Helper()
	p := make([]byte, n)
	if m, err := o.ReadAt(context.Background(), p, int64(off)); m != n || err != nil && err != io.EOF || !bytes.Equal(p, data[off:off+n]) {
		t.Errorf("ReadAt(%d, %d): %d, %v; right: %v", n, off, m, err, bytes.Equal(p, data[off:off+n]))
	}
}

// mustStream reads from an offset to the end.
func mustStream(t tester, o store.Object, off int, data []byte) {
	t.Helper()
	r, err := store.Stream(context.Background(), o, int64(off))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, data[off:]) {
		t.Errorf("Stream(%d): %d bytes of %d, %v", off, len(got), len(data)-off, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// files lists what the cache's folder holds, by suffix.
func files(t tester, c *store.Cache, suffix string) (names []string, bytes int64) {
	t.Helper()
	entries, err := os.ReadDir(c.Folder())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		st, err := e.Info()
		if err == nil && strings.HasSuffix(e.Name(), suffix) {
			names = append(names, filepath.Join(c.Folder(), e.Name()))
			bytes += st.Size()
		}
	}
	return names, bytes
}

func TestCacheAsksOnce(t *testing.T) {
	st, count, data := origin(1_000_000)
	dir := t.TempDir()
	c := newCache(t, st, store.CacheOptions{Dir: dir, Block: 100_000})
	o := open(t, c, "x")
	var entry store.Entry
	for _, tt := range []struct {
		name           string
		do             func()
		reads, streams int64 // made of the store below
		bytes          int64
	}{
		{"a piece of a block", func() { mustRead(t, o, 250_000, 100, data) }, 1, 0, 100_000},
		{"another one of it", func() { mustRead(t, o, 299_000, 1000, data) }, 0, 0, 0},
		{"across two blocks", func() { mustRead(t, o, 299_000, 1001, data) }, 1, 0, 100_000},
		{"all that is missing comes from few streams", func() { mustStream(t, o, 0, data) }, 0, 2, 800_000},
		{"all again", func() { mustStream(t, o, 0, data); mustStream(t, o, 123_456, data); mustRead(t, o, 0, 1_000_000, data) }, 0, 0, 0},
		{"the last bytes", func() { mustRead(t, o, 999_999, 1, data); mustStream(t, o, 1_000_000, data) }, 0, 0, 0},
		{"another cache of that folder, by an entry", func() {
			entry = o.Stat()
			c := newCache(t, st, store.CacheOptions{Dir: dir, Block: 100_000})
			opens := count.Opens.Load()
			o, err := c.OpenEntry(t.Context(), entry)
			if err != nil {
				t.Fatal(err)
			}
			mustStream(t, o, 0, data)
			if err := o.Close(); err != nil || count.Opens.Load() != opens {
				t.Errorf("%v, opened %d times", err, count.Opens.Load()-opens)
			}
		}, 0, 0, 0},
		{"other blocks are other files", func() {
			c := newCache(t, st, store.CacheOptions{Dir: dir, Block: 300_000})
			mustStream(t, open(t, c, "x"), 0, data)
		}, 0, 1, 1_000_000},
	} {
		reads, streams, n := count.Reads.Load(), count.Streams.Load(), count.Bytes.Load()
		tt.do()
		if r, s, n := count.Reads.Load()-reads, count.Streams.Load()-streams, count.Bytes.Load()-n; r != tt.reads || s != tt.streams || n != tt.bytes {
			t.Errorf("%s: %d reads, %d streams, %d bytes; want %d, %d, %d", tt.name, r, s, n, tt.reads, tt.streams, tt.bytes)
		}
	}
	if s := c.Stats(); s.Misses != 10 || s.Evicted+s.Discarded+s.Failed != 0 {
		t.Errorf("%+v", s)
	}
}

// unversioned is a store that cannot tell one content from another.
type unversioned struct{ store.Store }

func (s unversioned) Open(ctx context.Context, name string) (store.Object, error) {
	o, err := s.Store.Open(ctx, name)
	return unversionedObject{o}, err
}

type unversionedObject struct{ store.Object }

func (o unversionedObject) Stat() store.Entry {
	e := o.Object.Stat()
	e.Version = ""
	return e
}

func TestCacheKeepsOnlyVersions(t *testing.T) {
	st, count, data := origin(1000)
	c := newCache(t, unversioned{st}, store.CacheOptions{Block: 100})
	for range 2 {
		mustStream(t, open(t, c, "x"), 0, data)
	}
	if names, _ := files(t, c, ""); len(names) != 0 || count.Bytes.Load() != 2000 {
		t.Errorf("%q were kept, %d bytes read", names, count.Bytes.Load())
	}
}

func TestCacheFetchesForAll(t *testing.T) {
	st, count, data := origin(100_000)
	c := newCache(t, st, store.CacheOptions{Block: 50_000})
	o := open(t, c, "x")
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			if i%4 == 0 {
				mustStream(t, o, 0, data)
			} else {
				mustRead(t, o, i*100, 50_000, data)
			}
		})
	}
	wg.Wait()
	if n := count.Bytes.Load(); n != 100_000 {
		t.Errorf("%d bytes were read of 100,000", n)
	}
}

// gated is a store whose reads wait.
type gated struct {
	store.Store
	began chan struct{}
	gate  chan struct{}
}

func (s *gated) Open(ctx context.Context, name string) (store.Object, error) {
	o, err := s.Store.Open(ctx, name)
	return gatedObject{o, s}, err
}

type gatedObject struct {
	store.Object
	s *gated
}

func (o gatedObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	select {
	case o.s.began <- struct{}{}:
	default:
	}
	select {
	case <-o.s.gate:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return o.Object.ReadAt(ctx, p, off)
}

// The reader that fetches gives up; those that wait for it do not.
func TestCacheOutlivesWhoFetches(t *testing.T) {
	st, _, data := origin(100_000)
	g := &gated{st, make(chan struct{}, 1), make(chan struct{})}
	c := newCache(t, g, store.CacheOptions{Block: 50_000})
	o := open(t, c, "x")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := o.ReadAt(ctx, make([]byte, 10), 0); !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up: %v", err)
		}
	})
	<-g.began
	for range 4 {
		wg.Go(func() { mustRead(t, o, 5, 10, data) })
	}
	waits, cancelWait := context.WithCancel(t.Context())
	cancelWait()
	if _, err := o.ReadAt(waits, make([]byte, 10), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("who waited and gave up: %v", err)
	}
	cancel()
	<-g.began
	close(g.gate)
	wg.Wait()
}

func TestCacheIsBounded(t *testing.T) {
	fsys := fstest.MapFS{}
	for i := range 30 {
		fsys[fmt.Sprint(i)] = &fstest.MapFile{Data: storetest.Content(uint64(i), 10_000), ModTime: time.Unix(1, 0)}
	}
	var count store.Counters
	const size = 105_000 // ten blocks with their footers, and some
	c := newCache(t, store.Count(store.FS(fsys), &count), store.CacheOptions{Block: 10_000, Size: size})
	now := time.Now()
	c.SetNow(func() time.Time { now = now.Add(2 * time.Minute); return now })
	read := func(i int) (fetched bool) {
		before := count.Bytes.Load()
		mustStream(t, open(t, c, fmt.Sprint(i)), 0, fsys[fmt.Sprint(i)].Data)
		return count.Bytes.Load() > before
	}
	for i := range 30 {
		if !read(i) {
			t.Errorf("%d was there", i)
		}
		if i >= 5 && read(5) && i > 5 { // used all the time
			t.Errorf("after %d, 5 was evicted", i)
		}
		if _, n := files(t, c, ""); n > size {
			t.Fatalf("after %d the folder holds %d bytes of %d", i, n, size)
		}
	}
	if !read(20) || read(29) || read(28) {
		t.Error("what was used last was evicted")
	}
	if s := c.Stats(); s.Evicted < 20 || s.Discarded+s.Failed > 0 {
		t.Errorf("%+v", s)
	}
	// A block that is larger than all is not kept.
	tiny := newCache(t, store.FS(fsys), store.CacheOptions{Block: 10_000, Size: 10_010})
	mustStream(t, open(t, tiny, "1"), 0, fsys["1"].Data)
	if names, _ := files(t, tiny, ""); len(names) != 0 {
		t.Errorf("%q", names)
	}
}

// TestCacheDoubtsItsFiles damages the files between two processes.
// A small cache keeps some of what is read, and one too small for anything costs
// no more requests than a few.
func TestCacheIsSmall(t *testing.T) {
	for _, tt := range []struct{ size, most, kept int64 }{
		{1 << 20, 1 << 20, 1},
		{1, 32, 0},
	} {
		st, count, data := origin(1 << 20)
		dir := t.TempDir()
		c := newCache(t, st, store.CacheOptions{Dir: dir, Size: tt.size})
		mustStream(t, open(t, c, "x"), 0, data)
		blocks, err := filepath.Glob(filepath.Join(dir, "*", "*.block"))
		if err != nil || count.Reads.Load()+count.Streams.Load() > tt.most || int64(len(blocks)) < tt.kept {
			t.Errorf("size %d: %d requests, %d blocks kept, %v", tt.size, count.Reads.Load()+count.Streams.Load(), len(blocks), err)
		}
	}
}

func TestCacheDoubtsItsFiles(t *testing.T) {
	st, count, data := origin(25_000)
	for name, damage := range map[string]func(t *testing.T, files []string){
		"a flipped byte": func(t *testing.T, files []string) {
			for i, f := range files {
				edit(t, f, func(b []byte) []byte { b[i*2000] ^= 1; return b })
			}
		},
		"a flipped footer": func(t *testing.T, files []string) {
			for i, f := range files {
				edit(t, f, func(b []byte) []byte { b[len(b)-1-i*20] ^= 0x80; return b })
			}
		},
		"a torn end":  func(t *testing.T, files []string) { cut(t, files, 10) },
		"no footer":   func(t *testing.T, files []string) { cut(t, files, 64) },
		"half a file": func(t *testing.T, files []string) { cut(t, files, 3000) },
		"zeros at the end": func(t *testing.T, files []string) {
			for _, f := range files {
				edit(t, f, func(b []byte) []byte { clear(b[len(b)/2:]); return b })
			}
		},
		"nothing but zeros": func(t *testing.T, files []string) {
			for _, f := range files {
				edit(t, f, func(b []byte) []byte { clear(b); return b })
			}
		},
		"empty": func(t *testing.T, files []string) {
			for _, f := range files {
				edit(t, f, func([]byte) []byte { return nil })
			}
		},
		"more behind it": func(t *testing.T, files []string) {
			for _, f := range files {
				edit(t, f, func(b []byte) []byte { return append(b, 0) })
			}
		},
		"in each other's place": func(t *testing.T, files []string) {
			if err := errors.Join(os.Rename(files[0], files[0]+"x"), os.Rename(files[1], files[0]), os.Rename(files[2], files[1]), os.Rename(files[0]+"x", files[2])); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, by := range []string{"ReadAt", "Stream"} {
			t.Run(name+" "+by, func(t *testing.T) {
				dir := t.TempDir()
				c := newCache(t, st, store.CacheOptions{Dir: dir, Block: 10_000})
				mustStream(t, open(t, c, "x"), 0, data)
				names, _ := files(t, c, store.BlockSuffix)
				if len(names) != 3 {
					t.Fatalf("kept %q", names)
				}
				damage(t, names)
				c = newCache(t, st, store.CacheOptions{Dir: dir, Block: 10_000})
				for _, want := range []int64{25_000, 0} {
					before := count.Bytes.Load()
					if by == "Stream" {
						mustStream(t, open(t, c, "x"), 0, data)
					} else {
						mustRead(t, open(t, c, "x"), 0, len(data), data)
					}
					if fetched := count.Bytes.Load() - before; fetched != want {
						t.Errorf("fetched %d bytes, want %d", fetched, want)
					}
				}
				if s := c.Stats(); s != (store.CacheStats{Hits: 3, Misses: 3, Discarded: 3}) {
					t.Errorf("%+v", s)
				}
			})
		}
	}
}

func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func cut(t *testing.T, files []string, n int) {
	for _, f := range files {
		edit(t, f, func(b []byte) []byte { return b[:len(b)-n] })
	}
}

// A block that is truncated while it is open is fetched again as well.
func TestCacheLosesAnOpenFile(t *testing.T) {
	st, _, data := origin(25_000)
	c := newCache(t, st, store.CacheOptions{Block: 10_000})
	o := open(t, c, "x")
	mustStream(t, o, 0, data)
	for _, read := range []func(){
		func() { mustRead(t, o, 0, 25_000, data) },
		func() { mustStream(t, o, 0, data) },
	} {
		names, _ := files(t, c, store.BlockSuffix)
		for _, f := range names {
			if err := os.Truncate(f, 5); err != nil {
				t.Skip("this system does not truncate open files:", err)
			}
		}
		read()
		read()
	}
}

// TestCacheGoesOnWithoutDisk plays a disk that becomes full in the middle of a
// block, and has room again later.
func TestCacheGoesOnWithoutDisk(t *testing.T) {
	st, count, data := origin(100_000)
	var log bytes.Buffer
	c := newCache(t, st, store.CacheOptions{Block: 10_000, Log: slog.New(slog.NewTextHandler(&log, nil))})
	var skew atomic.Int64
	c.SetNow(func() time.Time { return time.Now().Add(time.Duration(skew.Load())) })
	var full atomic.Bool
	var wrote atomic.Int64
	defer store.SetWriteBlock(func(f *os.File, p []byte) (int, error) {
		wrote.Add(1)
		if full.Load() {
			n, _ := f.Write(p[:len(p)/2])
			return n, &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
		}
		return f.Write(p)
	})()
	o := open(t, c, "x")
	mustRead(t, o, 0, 10, data)
	full.Store(true)
	mustRead(t, o, 10_005, 10, data)
	before := count.Bytes.Load()
	wrote.Store(0)
	mustRead(t, o, 20_005, 10, data)
	if n := count.Bytes.Load() - before; n != 10 {
		t.Errorf("%d bytes were read for 10 that cannot be kept", n)
	}
	mustRead(t, o, 5, 10, data) // what is kept can be read
	mustStream(t, o, 0, data)
	mustStream(t, o, 33_333, data)
	if wrote.Load() != 0 {
		t.Errorf("the disk was tried %d times within a minute", wrote.Load())
	}
	skew.Add(int64(store.PauseFor))
	mustStream(t, o, 0, data) // tries once more
	if wrote.Load() != 1 {
		t.Errorf("the disk was tried %d times after a minute", wrote.Load())
	}
	if names, _ := files(t, c, store.PartSuffix); len(names) > 0 {
		t.Errorf("left behind: %q", names)
	}
	full.Store(false)
	skew.Add(int64(store.PauseFor))
	mustStream(t, o, 0, data)
	before = count.Bytes.Load()
	mustStream(t, o, 0, data)
	if n := count.Bytes.Load() - before; n != 0 {
		t.Errorf("%d bytes were read although the disk has room again", n)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "no space left") {
		t.Errorf("%d warnings: %s", n, log.String())
	}
	if s := c.Stats(); s.Failed != 2 {
		t.Errorf("%+v", s)
	}
	// The folder goes away altogether.
	if err := os.RemoveAll(c.Folder()); err != nil {
		t.Skip("open files cannot be removed here:", err)
	}
	fresh := newCache(t, st, store.CacheOptions{Block: 7000, Log: slog.New(slog.DiscardHandler)})
	if err := os.RemoveAll(fresh.Folder()); err != nil {
		t.Fatal(err)
	}
	mustStream(t, open(t, fresh, "x"), 0, data)
	mustRead(t, open(t, fresh, "x"), 1, 99_000, data)
}

func TestCacheNeedsAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, nil)
	for _, tt := range []struct {
		o    store.CacheOptions
		want error
	}{
		{store.CacheOptions{}, format.ErrUsage},
		{store.CacheOptions{Dir: t.TempDir(), Size: -1}, format.ErrUsage},
		{store.CacheOptions{Dir: t.TempDir(), Block: -1}, format.ErrUsage},
		{store.CacheOptions{Dir: file}, format.ErrIO},
	} {
		if _, err := store.NewCache(&store.Local{}, tt.o); !errors.Is(err, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.o, err, tt.want)
		}
	}
}

// Faults of the store below are those of the cache, and nothing is kept of what
// they cut short.
func TestCachePassesFaultsOn(t *testing.T) {
	for _, by := range []string{"ReadAt", "Stream"} {
		st, _, data := origin(50_000)
		broken := errors.New("the line is cut")
		faulty := faultstore.New(st, faultstore.Fault{Op: faultstore.Read, After: 25_000, Times: 1, Err: broken}, faultstore.Fault{Op: faultstore.Read, After: 5_000, Times: 1, Err: broken})
		c := newCache(t, faulty, store.CacheOptions{Block: 10_000})
		o := open(t, c, "x")
		failed := 0
		for range 10 {
			var err error
			var got []byte
			if by == "Stream" {
				r, e := store.Stream(t.Context(), o, 0)
				if e != nil {
					t.Fatal(e)
				}
				got, err = io.ReadAll(r)
				r.Close()
			} else {
				got = make([]byte, len(data))
				var n int
				n, err = o.ReadAt(t.Context(), got, 0)
				got = got[:n]
			}
			if !bytes.HasPrefix(data, got) {
				t.Errorf("%s: wrong bytes", by)
			}
			if err == nil && len(got) == len(data) {
				break
			}
			if failed++; !errors.Is(err, format.ErrIO) || !errors.Is(err, broken) {
				t.Errorf("%s: %v", by, err)
			}
		}
		if failed == 0 || failed > 2 {
			t.Errorf("%s: failed %d times", by, failed)
		}
		mustStream(t, o, 0, data)
	}
}

// checked is a store that finds a wrong checksum at the end of a whole read.
type checked struct{ store.Store }

func (s checked) Open(ctx context.Context, name string) (store.Object, error) {
	o, err := s.Store.Open(ctx, name)
	return checkedObject{o}, err
}

type checkedObject struct{ store.Object }

func (o checkedObject) Stream(ctx context.Context, off int64) (io.ReadCloser, error) {
	r, err := store.Stream(ctx, o.Object, off)
	return checkedReader{r}, err
}

type checkedReader struct{ io.ReadCloser }

func (r checkedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err == io.EOF {
		err = format.Errorf(format.ErrCorrupt, format.In("x"), "the checksum of the object is wrong")
	}
	return n, err
}

func TestCacheKeepsNothingCorrupt(t *testing.T) {
	st, _, _ := origin(50_000)
	c := newCache(t, checked{st}, store.CacheOptions{Block: 10_000})
	for range 2 {
		r, err := store.Stream(t.Context(), open(t, c, "x"), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); !errors.Is(err, format.ErrCorrupt) || len(got) >= 50_000 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		r.Close()
		if names, _ := files(t, c, ""); len(names) > 0 {
			t.Errorf("kept %q", names)
		}
	}
}

// ordered is a store whose objects can only be read from their start.
type ordered struct{ store.Store }

func (s ordered) Open(ctx context.Context, name string) (store.Object, error) {
	o, err := s.Store.Open(ctx, name)
	return orderedObject{o}, err
}

type orderedObject struct{ store.Object }

func (o orderedObject) ReadAt(context.Context, []byte, int64) (int, error) {
	return 0, format.Errorf(format.ErrUnsupported, format.In("x"), "no ranges")
}

func (o orderedObject) Stream(ctx context.Context, off int64) (io.ReadCloser, error) {
	if off > 0 {
		return nil, format.Errorf(format.ErrUnsupported, format.In("x"), "no ranges")
	}
	return store.Stream(ctx, o.Object, off)
}

func TestCacheOfWhatHasNoOffsets(t *testing.T) {
	st, count, data := origin(50_000)
	c := newCache(t, ordered{st}, store.CacheOptions{Block: 10_000})
	o := open(t, c, "x")
	if _, err := o.ReadAt(t.Context(), make([]byte, 1), 15_000); !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("ReadAt: %v", err)
	}
	mustStream(t, o, 0, data)
	names, _ := files(t, c, store.BlockSuffix)
	slices.Sort(names)
	for _, f := range names[1:] {
		if strings.HasSuffix(f, "-3"+store.BlockSuffix) || strings.HasSuffix(f, "-4"+store.BlockSuffix) {
			if err := os.Remove(f); err != nil {
				t.Skip("open files cannot be removed here:", err)
			}
		}
	}
	before := count.Bytes.Load()
	mustStream(t, open(t, newCache(t, ordered{st}, store.CacheOptions{Dir: filepath.Dir(c.Folder()), Block: 10_000}), "x"), 0, data)
	if n := count.Bytes.Load() - before; n != 50_000 { // passes over what is there
		t.Errorf("%d bytes were read", n)
	}
	mustRead(t, o, 15_000, 30_000, data)
}

func TestCacheAllocatesNothing(t *testing.T) {
	st, _, data := origin(100_000)
	o := open(t, newCache(t, st, store.CacheOptions{Block: 10_000}), "x")
	mustStream(t, o, 0, data)
	p := make([]byte, 15_000)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := o.ReadAt(t.Context(), p, 5000); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Several caches of one folder, as several processes have them, under pressure.
func TestCacheIsShared(t *testing.T) {
	st, _, data := origin(300_000)
	dir := t.TempDir()
	const size = 150_000
	var wg sync.WaitGroup
	for w := range 4 {
		c := newCache(t, st, store.CacheOptions{Dir: dir, Block: 10_000, Size: size})
		o := open(t, c, "x")
		wg.Go(func() {
			for i := range 40 {
				off := (i*77_777 + w*31_337) % 280_000
				mustRead(t, o, off, 20_000, data)
				if i%10 == 0 {
					mustStream(t, o, off, data)
				}
			}
			if s := c.Stats(); s.Discarded+s.Failed > 0 {
				t.Errorf("%+v", s)
			}
		})
	}
	wg.Wait()
	if _, n := files(t, newCache(t, st, store.CacheOptions{Dir: dir, Size: size}), ""); n > size {
		t.Errorf("the folder holds %d bytes of %d", n, size)
	}
}

func TestCacheAgainstItsOrigin(t *testing.T) {
	st, _, data := origin(60_000)
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		size := int64(rapid.IntRange(1, 100_000).Draw(rt, "size"))
		c := newCache(t, st, store.CacheOptions{Dir: dir, Block: 20_000, Size: size})
		o := open(t, c, "x")
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			off := rapid.IntRange(0, len(data)).Draw(rt, "offset")
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				mustStream(rt, o, off, data)
			case 1: // damage, met by a new cache
				names, _ := files(rt, c, store.BlockSuffix)
				if len(names) > 0 {
					f := names[off%len(names)]
					b, err := os.ReadFile(f)
					if err == nil && len(b) > 0 {
						b[off%len(b)] ^= 1
						_ = os.WriteFile(f+"x", b, 0o600)
						_ = os.Rename(f+"x", f)
					}
				}
				c = newCache(t, st, store.CacheOptions{Dir: dir, Block: 20_000, Size: size})
				o = open(t, c, "x")
			default:
				mustRead(rt, o, off, rapid.IntRange(0, len(data)-off).Draw(rt, "length"), data)
			}
		}
	})
}

const childFolder = "SHARDTOOL_TEST_CACHE_FOLDER"

// TestCacheChild is the process that TestCacheSurvivesKilling kills. It reads
// for ever, and says when a block is half written.
func TestCacheChild(t *testing.T) {
	dir := os.Getenv(childFolder)
	if dir == "" {
		t.Skip("for the test beside it")
	}
	store.SetWriteBlock(func(f *os.File, p []byte) (int, error) {
		n, err := f.Write(p[:len(p)/2])
		if err != nil {
			return n, err
		}
		fmt.Println("half")
		m, err := f.Write(p[n:])
		return n + m, err
	})
	st, _, data := origin(2_000_000)
	c := newCache(t, st, store.CacheOptions{Dir: dir, Block: 50_000, Size: 1_000_000})
	o := open(t, c, "x")
	for i := 0; ; i++ {
		mustRead(t, o, (i*777_777)%1_900_000, 100_000, data)
	}
}

func TestCacheSurvivesKilling(t *testing.T) {
	st, _, data := origin(2_000_000)
	dir := t.TempDir()
	for round := range 6 {
		var children []*exec.Cmd
		for range 2 { // they share the folder
			cmd := exec.Command(os.Args[0], "-test.run=^TestCacheChild$")
			cmd.Env = append(os.Environ(), childFolder+"="+dir)
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			children = append(children, cmd)
			lines := bufio.NewScanner(out)
			for n := 0; n < 1+round*9 && lines.Scan(); n++ {
			}
		}
		for _, cmd := range children {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil {
				t.Error("the child ended by itself")
			}
		}
		c := newCache(t, st, store.CacheOptions{Dir: dir, Block: 50_000, Size: 1_000_000})
		mustStream(t, open(t, c, "x"), 0, data)
		if s := c.Stats(); s.Discarded > 0 {
			t.Errorf("round %d: a killed process left a block that is not whole: %+v", round, s)
		}
	}
	// What they were writing is removed when it is old.
	c := newCache(t, st, store.CacheOptions{Dir: dir, Block: 50_000})
	long := time.Now().Add(-store.Abandoned - time.Minute)
	left, _ := files(t, c, store.PartSuffix)
	for i, f := range left {
		if i > 0 { // one is as if it were being written
			if err := os.Chtimes(f, long, long); err != nil {
				t.Fatal(err)
			}
		}
	}
	c = newCache(t, st, store.CacheOptions{Dir: dir, Block: 50_000})
	if now, _ := files(t, c, store.PartSuffix); len(now) != min(len(left), 1) {
		t.Errorf("%d parts were left behind and %d are there now", len(left), len(now))
	}
	t.Logf("%d parts were left behind", len(left))
}

// FuzzCacheBlock lets any bytes be a file of the cache: the cache never serves
// anything but what it would have fetched.
func FuzzCacheBlock(f *testing.F) {
	st, _, data := origin(300)
	seed := newCache(f, st, store.CacheOptions{Dir: f.TempDir(), Block: 300})
	mustStream(f, open(f, seed, "x"), 0, data)
	names, _ := files(f, seed, store.BlockSuffix)
	good, err := os.ReadFile(names[0])
	if err != nil {
		f.Fatal(err)
	}
	base := filepath.Base(names[0])
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(good[64:])
	f.Add(make([]byte, 364))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, file []byte) {
		dir := t.TempDir()
		c := newCache(t, st, store.CacheOptions{Dir: dir, Block: 300})
		if err := os.WriteFile(filepath.Join(c.Folder(), base), file, 0o600); err != nil {
			t.Fatal(err)
		}
		o := open(t, c, "x")
		mustRead(t, o, 7, 250, data)
		mustStream(t, o, 0, data)
		if s := c.Stats(); (s.Misses == 0) != bytes.Equal(file, good) {
			t.Errorf("%+v of a file of %d bytes", s, len(file))
		}
	})
}
