package store_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/faultstore"
	"shardtool/reader/store/storetest"
)

func newSpool(t tester, st store.Store, o store.SpoolOptions) *store.Spool {
	t.Helper()
	s := store.NewSpool(st, o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if now := s.Stats(); now.Objects != 0 || now.Memory != 0 || now.Disk != 0 {
			t.Errorf("closed, it holds %+v", now)
		}
	})
	return s
}

// holding holds every object that is opened, until one of its name is created or
// put there.
type holding struct {
	*store.Spool
	warm bool // objects are read once before they are given out

	mu   sync.Mutex
	held map[string]bool
}

func (h *holding) hold(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.held[name] {
		h.Hold(name)
		h.held[name] = true
	}
}

func (h *holding) letGo(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held[name] {
		h.Release(name)
		delete(h.held, name)
	}
}

func (h *holding) opened(ctx context.Context, name string, open func() (store.Object, error)) (store.Object, error) {
	h.hold(name)
	o, err := open()
	if err != nil {
		h.letGo(name) // it may be another one that is wanted
		return nil, err
	}
	if h.warm {
		if r, err := store.Stream(context.WithoutCancel(ctx), o, 0); err == nil {
			_, _ = io.Copy(io.Discard, r)
			r.Close()
		}
		o.Close()
		return open()
	}
	return o, nil
}

func (h *holding) Open(ctx context.Context, name string) (store.Object, error) {
	return h.opened(ctx, name, func() (store.Object, error) { return h.Spool.Open(ctx, name) })
}

func (h *holding) OpenEntry(ctx context.Context, e store.Entry) (store.Object, error) {
	return h.opened(ctx, e.Name, func() (store.Object, error) { return h.Spool.OpenEntry(ctx, e) })
}

func (h *holding) Create(ctx context.Context, name string) (store.Sink, error) {
	k, err := h.Spool.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	return &lettingGo{k, h, name}, nil
}

type lettingGo struct {
	store.Sink
	h    *holding
	name string
}

func (k *lettingGo) Commit() error {
	err := k.Sink.Commit()
	k.h.letGo(k.name)
	return err
}

// TestSpoolConformance runs the suite over objects that are not held, and over
// held ones that are read for the first and for the second time.
func TestSpoolConformance(t *testing.T) {
	const large = 3<<20 + 4567
	for name, o := range map[string]store.SpoolOptions{
		"files":  {},
		"memory": {Memory: 1 << 30},
		"both":   {Memory: 1 << 20},
		"none":   {Dir: filepath.Join(t.TempDir(), "none")}, // cannot be written
	} {
		if o.Dir == "" {
			o.Dir = t.TempDir()
		}
		for below, wrap := range map[string]func(store.Store) store.Store{
			"Local": same,
			"ReadAt": func(st store.Store) store.Store { // without streams
				return faultstore.New(st)
			},
		} {
			t.Run(name+"/plain/"+below, func(t *testing.T) {
				storetest.Run(t, func(t *testing.T) storetest.Fixture {
					f := localFixture(t, newSpool(t, wrap(&store.Local{}), o))
					f.Large = large
					return f
				})
				nothingLeft(t, o.Dir)
			})
			for _, warm := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/held/%s/warm=%t", name, below, warm), func(t *testing.T) {
					storetest.Run(t, func(t *testing.T) storetest.Fixture {
						h := &holding{Spool: newSpool(t, wrap(&store.Local{}), o), warm: warm, held: map[string]bool{}}
						f := localFixture(t, h)
						f.Large = large
						put := f.Put
						f.Put = func(t testing.TB, key string, data []byte) {
							put(t, key, data)
							h.letGo(f.Prefix + filepath.FromSlash(key))
						}
						return f
					})
					nothingLeft(t, o.Dir)
				})
			}
		}
	}
}

func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if len(left) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v are left, %v", left, err)
	}
}

// sizes are how a spool of a megabyte is kept.
var sizes = map[string]store.SpoolOptions{
	"files": {}, "memory": {Memory: 1 << 30}, "both": {Memory: 600_000},
}

func TestSpoolFetchesOnce(t *testing.T) {
	for name, o := range sizes {
		t.Run(name, func(t *testing.T) {
			st, count, data := origin(1_000_000)
			o.Dir = t.TempDir()
			s := newSpool(t, st, o)
			s.Hold("x")
			reopened := func(do func(o store.Object)) func() {
				return func() {
					o, err := s.Open(t.Context(), "x")
					if err != nil {
						t.Fatal(err)
					}
					do(o)
					if err := o.Close(); err != nil {
						t.Error(err)
					}
				}
			}
			for _, tt := range []struct {
				name                  string
				do                    func()
				opens, reads, streams int64 // of the store below
				bytes                 int64
			}{
				{"a piece", reopened(func(o store.Object) { mustRead(t, o, 300_000, 1000, data) }), 1, 1, 0, 1000},
				{"it again", reopened(func(o store.Object) { mustRead(t, o, 300_000, 1000, data) }), 0, 0, 0, 0},
				{"a part of it", reopened(func(o store.Object) { mustRead(t, o, 300_500, 500, data) }), 0, 0, 0, 0},
				{"from within to behind", reopened(func(o store.Object) { mustRead(t, o, 300_500, 1000, data) }), 1, 1, 0, 500},
				{"over it", reopened(func(o store.Object) { mustRead(t, o, 299_000, 3000, data) }), 1, 1, 0, 3000}, // one request is better than two
				{"far around", reopened(func(o store.Object) { mustRead(t, o, 350_000, 100_000, data) }), 1, 1, 0, 100_000},
				{"all, by one stream up to what is long", reopened(func(o store.Object) { mustStream(t, o, 0, data) }), 2, 0, 2, 900_000},
				{"all again", reopened(func(o store.Object) {
					mustStream(t, o, 0, data)
					mustStream(t, o, 123_456, data)
					mustRead(t, o, 0, 1_000_000, data)
				}), 0, 0, 0, 0},
				{"the last bytes", reopened(func(o store.Object) {
					mustRead(t, o, 999_999, 1, data)
					mustStream(t, o, 1_000_000, data)
				}), 0, 0, 0, 0},
				{"let go of, one hold left", reopened(func(o store.Object) {
					s.Hold("x")
					s.Release("x")
					mustStream(t, o, 0, data)
				}), 0, 0, 0, 0},
			} {
				opens, reads, streams, n := count.Opens.Load(), count.Reads.Load(), count.Streams.Load(), count.Bytes.Load()
				tt.do()
				if p, r, m, n := count.Opens.Load()-opens, count.Reads.Load()-reads, count.Streams.Load()-streams, count.Bytes.Load()-n; p != tt.opens || r != tt.reads || m != tt.streams || n != tt.bytes {
					t.Errorf("%s: %d opens, %d reads, %d streams, %d bytes; want %d, %d, %d, %d", tt.name, p, r, m, n, tt.opens, tt.reads, tt.streams, tt.bytes)
				}
			}
			now := s.Stats()
			if now.Objects != 1 || now.Fetched != count.Bytes.Load() || now.Memory+now.Disk < 1_000_000 || now.Memory > o.Memory {
				t.Errorf("%+v", now)
			}
			s.Release("x")
			if now := s.Stats(); now.Objects != 0 || now.Memory != 0 || now.Disk != 0 {
				t.Errorf("let go of: %+v", now)
			}
			opens := count.Opens.Load()
			reopened(func(o store.Object) { mustStream(t, o, 0, data); mustRead(t, o, 77, 1000, data) })()
			if count.Opens.Load() != opens+1 || s.Stats().Fetched != now.Fetched {
				t.Error("what is not held is kept")
			}
		})
	}
}

// Whoever opened an object before it was held, and goes on after it was let go
// of, reads on, and what it reads meanwhile is kept.
func TestSpoolHoldsWhatIsOpen(t *testing.T) {
	st, count, data := origin(1_000_000)
	s := newSpool(t, st, store.SpoolOptions{Memory: 1 << 30})
	o := open(t, s, "x")
	mustRead(t, o, 0, 1000, data)
	for range 2 {
		s.Hold("x")
		r, err := store.Stream(t.Context(), o, 0)
		if err != nil {
			t.Fatal(err)
		}
		half := make([]byte, 500_000)
		if _, err := io.ReadFull(r, half); err != nil || !bytes.Equal(half, data[:500_000]) {
			t.Fatal("other bytes", err)
		}
		before := count.Bytes.Load()
		mustRead(t, o, 100, 400_000, data)
		if count.Bytes.Load() != before {
			t.Error("what a stream read was not kept")
		}
		s.Release("x")
		rest, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(rest, data[500_000:]) {
			t.Errorf("%d bytes after it was let go of, %v", len(rest), err)
		}
		mustRead(t, o, 100, 400_000, data)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if now := s.Stats(); now.Memory != 0 {
			t.Errorf("%+v", now)
		}
	}
}

// Streams that meet read along with one another: in turns, each from where the
// other one stopped, and together.
func TestSpoolStreamsShare(t *testing.T) {
	for name, o := range sizes {
		t.Run(name, func(t *testing.T) {
			st, count, data := origin(2_000_000)
			o.Dir = t.TempDir()
			s := newSpool(t, st, o)
			s.Hold("x")
			ob := open(t, s, "x")
			var streams []io.ReadCloser
			var got [3][]byte
			for range got {
				r, err := store.Stream(t.Context(), ob, 0)
				if err != nil {
					t.Fatal(err)
				}
				streams = append(streams, r)
			}
			buf := make([]byte, 200_000)
			for turn := 0; len(got[0])+len(got[1])+len(got[2]) < 3*len(data); turn++ {
				i := turn * turn % 3 // some lag behind
				if turn%7 == 0 {
					i = 2
				}
				n, err := streams[i].Read(buf[:1+turn*7919%len(buf)])
				got[i] = append(got[i], buf[:n]...)
				if err == io.EOF && len(got[i]) == len(data) {
					i = (i + 1) % 3
					rest, err := io.ReadAll(streams[i])
					got[i] = append(got[i], rest...)
					if err != nil {
						t.Fatal(err)
					}
				} else if err != nil {
					t.Fatal(err)
				}
			}
			for i, r := range streams {
				if !bytes.Equal(got[i], data) {
					t.Errorf("stream %d gives other bytes", i)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
			if count.Bytes.Load() != int64(len(data)) || count.Streams.Load() != 1 {
				t.Errorf("%d bytes by %d streams", count.Bytes.Load(), count.Streams.Load())
			}

			s.Release("x")
			s.Hold("x")
			before := count.Bytes.Load()
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					if i%2 == 0 {
						mustStream(t, ob, 0, data)
					} else {
						mustRead(t, ob, 0, len(data), data)
					}
				})
			}
			wg.Wait()
			if n := count.Bytes.Load() - before; n > 2*int64(len(data)) { // once by streams, once by ReadAt
				t.Errorf("eight readers fetched %d bytes of %d", n, len(data))
			}
		})
	}
}

// An object that is replaced while it is held: what is kept is served, and what
// is not is ErrStale, never another's.
func TestSpoolIsOfOneVersion(t *testing.T) {
	files := fstest.MapFS{"x": {Data: storetest.Content(1, 500_000), ModTime: time.Unix(1, 0)}}
	old, renewed := storetest.Content(1, 500_000), storetest.Content(2, 500_000)
	s := newSpool(t, store.FS(files), store.SpoolOptions{Memory: 1 << 30})
	s.Hold("x")
	o := open(t, s, "x")
	mustRead(t, o, 0, 100_000, old)
	was := o.Stat()
	files["x"] = &fstest.MapFile{Data: renewed, ModTime: time.Unix(2, 0)}
	now, err := store.Stat(t.Context(), s, "x")
	if err != nil || now == was {
		t.Fatal(now, err)
	}
	again := open(t, s, "x")
	if again.Stat() != was {
		t.Errorf("opened again it is %+v", again.Stat())
	}
	mustRead(t, again, 5000, 90_000, old)
	for _, read := range []func() error{
		func() error { _, err := again.ReadAt(t.Context(), make([]byte, 10), 200_000); return err },
		func() error {
			r, err := store.Stream(t.Context(), again, 0)
			if err != nil {
				return err
			}
			defer r.Close()
			_, err = io.ReadAll(r)
			return err
		},
		func() error { _, err := s.OpenEntry(t.Context(), now); return err },
	} {
		if err := read(); !errors.Is(err, format.ErrStale) {
			t.Errorf("%v, want stale", err)
		}
	}
	if _, err := s.OpenEntry(t.Context(), was); err != nil {
		t.Error(err)
	}
	s.Release("x")
	s.Hold("x")
	mustStream(t, open(t, s, "x"), 0, renewed)
}

// failing is a disk that fails in one way.
type failing struct {
	store.SpoolFile
	write, read error
}

func (f *failing) WriteAt(p []byte, off int64) (int, error) {
	if f.write != nil {
		n, _ := f.SpoolFile.WriteAt(p[:len(p)/2], off)
		return n, f.write
	}
	return f.SpoolFile.WriteAt(p, off)
}

func (f *failing) ReadAt(p []byte, off int64) (int, error) {
	if f.read != nil {
		n, _ := f.SpoolFile.ReadAt(p[:len(p)/2], off)
		return n, f.read
	}
	return f.SpoolFile.ReadAt(p, off)
}

// A disk that fails costs nobody a byte, is told of once, and is tried again when
// it has room again.
func TestSpoolSurvivesTheDisk(t *testing.T) {
	for name, fail := range map[string]func(dir string) (store.SpoolFile, error){
		"no file": func(dir string) (store.SpoolFile, error) {
			return nil, &os.PathError{Op: "open", Path: dir, Err: syscall.EACCES}
		},
		"full":   func(dir string) (store.SpoolFile, error) { return disk(dir, &failing{write: syscall.ENOSPC}) },
		"broken": func(dir string) (store.SpoolFile, error) { return disk(dir, &failing{read: syscall.EIO}) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			defer store.SetNewSpoolFile(func(string) (store.SpoolFile, error) { return fail(dir) })()
			st, _, data := origin(2_000_000)
			var log bytes.Buffer
			s := newSpool(t, st, store.SpoolOptions{Memory: 600_000, Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
			s.Hold("x")
			o := open(t, s, "x")
			for range 2 {
				mustStream(t, o, 0, data)
				mustRead(t, o, 0, len(data), data)
				mustRead(t, o, 777_777, 300_000, data)
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() { mustStream(t, o, 1000, data); mustRead(t, o, 1000, 1_500_000, data) })
				}
				wg.Wait()
			}
			if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), dir) {
				t.Errorf("told %d times:\n%s", n, log.String())
			}
			if now := s.Stats(); now.Memory == 0 || now.Memory > 600_000 || now.Disk != 0 || now.Served == 0 {
				t.Errorf("%+v", now)
			}
			if name == "no file" {
				return
			}
			s.Hold("y") // has no file, so gives no room back
			s.Release("y")
			s.Release("x")
			store.SetNewSpoolFile(func(dir string) (store.SpoolFile, error) { return disk(dir, &failing{}) })
			s.Hold("x")
			mustStream(t, o, 0, data)
			if now := s.Stats(); name == "full" && now.Disk == 0 {
				t.Errorf("with room again: %+v", now)
			}
		})
	}
}

func disk(dir string, f *failing) (store.SpoolFile, error) {
	below, err := store.NewSpoolFile(dir)
	f.SpoolFile = below
	return f, err
}

// Faults of the store below come up as they are, keep nothing that is wrong, and
// reading goes on where it goes well again.
func TestSpoolPassesFaultsOn(t *testing.T) {
	broken := errors.New("the connection broke")
	_, _, data := origin(400_000)
	files := store.FS(fstest.MapFS{"x": {Data: data, ModTime: time.Unix(1, 0)}})
	for after := int64(0); after < 400_000; after += 65_000 {
		for _, op := range []faultstore.Op{faultstore.Read, faultstore.Open} {
			s := newSpool(t, faultstore.New(files, faultstore.Fault{Op: op, After: after, Times: 1, Err: broken}), store.SpoolOptions{Dir: t.TempDir(), Memory: 300_000})
			s.Hold("x")
			failed := 0
			for range 4 {
				got, err := readAll(t.Context(), s, "x")
				if err != nil {
					failed++
					if !errors.Is(err, broken) || !errors.Is(err, format.ErrIO) {
						t.Error(err)
					}
				}
				if !bytes.Equal(got, data[:len(got)]) || err == nil && len(got) != len(data) {
					t.Errorf("after %d: %d bytes, %v", after, len(got), err)
				}
			}
			if want := 1; failed != want && (op == faultstore.Read || after == 0) {
				t.Errorf("op %d, after %d: failed %d times", op, after, failed)
			}
			if now := s.Stats(); op == faultstore.Read && now.Fetched != int64(len(data)) {
				t.Errorf("after %d: %+v; want nothing to be fetched twice", after, now)
			}
		}
	}
}

func readAll(ctx context.Context, st store.Store, name string) ([]byte, error) {
	r, err := store.OpenStream(ctx, st, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// shaped is a store of one object, whose streams are as a test wants them.
type shaped struct {
	store.Store
	stream func(ctx context.Context, off int64) (io.ReadCloser, error)
	size   int64
}

func (s *shaped) Open(ctx context.Context, name string) (store.Object, error) {
	return &shapedObject{s}, nil
}

type shapedObject struct{ s *shaped }

func (o *shapedObject) Stat() store.Entry { return store.Entry{Name: "x", Size: o.s.size} }
func (o *shapedObject) Close() error      { return nil }
func (o *shapedObject) ReadAt(context.Context, []byte, int64) (int, error) {
	return 0, format.Errorf(format.ErrUnsupported, format.In("x"), "in order only")
}
func (o *shapedObject) Stream(ctx context.Context, off int64) (io.ReadCloser, error) {
	return o.s.stream(ctx, off)
}

// A server that serves no ranges is read from its start, once.
func TestSpoolOfWhatIsReadInOrder(t *testing.T) {
	data := storetest.Content(3, 900_000)
	opened := 0
	s := newSpool(t, &shaped{size: 900_000, stream: func(ctx context.Context, off int64) (io.ReadCloser, error) {
		if off > 0 {
			return nil, format.Errorf(format.ErrUnsupported, format.In("x"), "in order only")
		}
		opened++
		return io.NopCloser(bytes.NewReader(data)), nil
	}}, store.SpoolOptions{Memory: 1 << 20})
	s.Hold("x")
	o := open(t, s, "x")
	if _, err := o.ReadAt(t.Context(), make([]byte, 1), 500_000); !errors.Is(err, format.ErrUnsupported) {
		t.Error(err)
	}
	mustStream(t, o, 600_000, data)
	mustStream(t, o, 0, data)
	mustRead(t, o, 500_000, 400_000, data)
	if opened != 1 {
		t.Errorf("opened %d times", opened)
	}
}

// What comes behind the last byte: an end that comes early is ErrTruncated, and a
// checksum of the whole that is wrong throws away what was kept.
func TestSpoolAtTheEnd(t *testing.T) {
	data := storetest.Content(3, 300_000)
	wrong := format.Errorf(format.ErrCorrupt, format.In("x"), "its checksum is wrong")
	for name, tt := range map[string]struct {
		r    func() io.Reader
		want error
	}{
		"early":   {func() io.Reader { return bytes.NewReader(data[:299_999]) }, format.ErrTruncated},
		"corrupt": {func() io.Reader { return io.MultiReader(bytes.NewReader(data), failingReader{wrong}) }, format.ErrCorrupt},
		"at once": {func() io.Reader { return withLast{bytes.NewReader(data), io.EOF} }, nil},
		"more":    {func() io.Reader { return bytes.NewReader(append(data[:len(data):len(data)], 1)) }, nil},
	} {
		streams := 0
		s := newSpool(t, &shaped{size: 300_000, stream: func(ctx context.Context, off int64) (io.ReadCloser, error) {
			streams++
			r := tt.r()
			_, err := io.CopyN(io.Discard, r, off)
			return io.NopCloser(r), err
		}}, store.SpoolOptions{Memory: 1 << 20})
		s.Hold("x")
		for range 2 {
			got, err := readAll(t.Context(), s, "x")
			if !errors.Is(err, tt.want) || err != nil && tt.want == nil || !bytes.Equal(got, data[:len(got)]) {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
		}
		if want := map[bool]int{true: 1, false: 2}[tt.want == nil]; streams != want {
			t.Errorf("%s: %d streams, want %d", name, streams, want)
		}
		if now := s.Stats(); name == "corrupt" && now.Memory != 0 {
			t.Errorf("what is corrupt is kept: %+v", now)
		}
		s.Release("x")
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// withLast gives its error with the last bytes.
type withLast struct {
	r   *bytes.Reader
	err error
}

func (r withLast) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if r.r.Len() == 0 && err == nil {
		err = r.err
	}
	return n, err
}

// Readers that share a stream have contexts of their own: one whose context ends
// returns at once, and the others read on.
func TestSpoolContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := storetest.Content(3, 1_000_000)
		s := newSpool(t, &shaped{size: 1_000_000, stream: func(ctx context.Context, off int64) (io.ReadCloser, error) {
			return &slow{ctx, bytes.NewReader(data[off:])}, nil
		}}, store.SpoolOptions{Memory: 1 << 20})
		s.Hold("x")
		o := open(t, s, "x")
		var ended atomic.Int64
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*i+1)*10*time.Second+time.Second)
				defer cancel()
				begin := time.Now()
				r, err := store.Stream(ctx, o, 0)
				if err != nil {
					t.Error(err)
					return
				}
				defer r.Close()
				got, err := io.ReadAll(r)
				if !bytes.Equal(got, data[:len(got)]) || err == nil && len(got) != len(data) || err != nil && err != context.DeadlineExceeded {
					t.Errorf("reader %d: %d bytes, %v", i, len(got), err)
				}
				if deadline, _ := ctx.Deadline(); time.Now().After(deadline) {
					t.Errorf("reader %d takes %v", i, time.Since(begin))
				}
				if err != nil {
					ended.Add(1)
				}
			})
		}
		wg.Wait()
		if n := ended.Load(); n == 0 || n == 10 {
			t.Errorf("%d readers ended early", n)
		}
		if now := s.Stats(); now.Fetched != 1_000_000 {
			t.Errorf("%+v", now)
		}
	})
}

// slow delivers 30 kB every four seconds, and ends with its context.
type slow struct {
	ctx context.Context
	r   io.Reader
}

func (r *slow) Read(p []byte) (int, error) {
	select {
	case <-time.After(4 * time.Second):
		return r.r.Read(p[:min(len(p), 30_000)])
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}

func (r *slow) Close() error { return nil }

// Any mix of reads, holds and failures gives the bytes of the origin.
func TestSpoolAgainstItsOrigin(t *testing.T) {
	data := storetest.Content(9, 1_200_000)
	files := store.FS(fstest.MapFS{"x": {Data: data, ModTime: time.Unix(1, 0)}})
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		s := newSpool(rt, files, store.SpoolOptions{Dir: dir, Memory: int64(rapid.SampledFrom([]int{0, 300_000, 600_000, 1 << 30}).Draw(rt, "memory"))})
		var fail atomic.Int32
		defer store.SetNewSpoolFile(func(dir string) (store.SpoolFile, error) {
			f := &failing{}
			switch fail.Load() {
			case 1:
				f.write = syscall.ENOSPC
			case 2:
				f.read = syscall.EIO
			}
			return disk(dir, f)
		})()
		fail.Store(int32(rapid.IntRange(0, 2).Draw(rt, "disk")))
		o := open(rt, s, "x")
		holds := rapid.IntRange(0, 2).Draw(rt, "holds")
		for range holds {
			s.Hold("x")
		}
		type stream struct {
			r  io.Reader
			at int
		}
		var streams []*stream
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			off := rapid.IntRange(0, len(data)).Draw(rt, "offset")
			switch rapid.IntRange(0, 6).Draw(rt, "what") {
			case 0:
				s.Hold("x")
				holds++
			case 1:
				if holds > 0 {
					s.Release("x")
					holds--
				}
			case 2:
				r, err := store.Stream(context.Background(), o, int64(off))
				if err != nil {
					rt.Fatal(err)
				}
				rt.Cleanup(func() { r.Close() })
				streams = append(streams, &stream{r, off})
			case 3:
				fail.Store(0)
			case 4:
				mustRead(rt, o, off, rapid.IntRange(0, len(data)-off).Draw(rt, "length"), data)
			default:
				if len(streams) == 0 {
					continue
				}
				x := rapid.SampledFrom(streams).Draw(rt, "stream")
				p := make([]byte, rapid.IntRange(1, 500_000).Draw(rt, "size"))
				n, err := io.ReadFull(x.r, p)
				if want := min(len(p), len(data)-x.at); n != want || n == len(p) && err != nil || !bytes.Equal(p[:n], data[x.at:x.at+n]) {
					rt.Errorf("a stream at %d: %d of %d bytes, %v", x.at, n, want, err)
				}
				x.at += n
			}
		}
		for range holds {
			s.Release("x")
		}
		if now := s.Stats(); now.Memory != 0 || now.Disk != 0 {
			rt.Errorf("%+v", now)
		}
	})
}

// Readers of all kinds, some of whom give up, while the object is held and let go
// of.
func TestSpoolTogether(t *testing.T) {
	for name, o := range sizes {
		t.Run(name, func(t *testing.T) {
			st, _, data := origin(1_200_000)
			o.Dir = t.TempDir()
			s := newSpool(t, st, o)
			ob := open(t, s, "x")
			var wg sync.WaitGroup
			for w := range 6 {
				random := rand.New(rand.NewPCG(7, uint64(w)))
				wg.Go(func() {
					for range 40 {
						off := random.IntN(len(data))
						switch random.IntN(5) {
						case 0:
							s.Hold("x")
							mustStream(t, ob, off, data)
							s.Release("x")
						case 1:
							mustRead(t, ob, off, random.IntN(len(data)-off), data)
						case 2:
							ctx, cancel := context.WithCancel(t.Context())
							r, err := store.Stream(ctx, ob, int64(off))
							if err != nil {
								t.Error(err)
							}
							p := make([]byte, random.IntN(300_000)+1)
							if n, _ := io.ReadFull(r, p); !bytes.Equal(p[:n], data[off:off+n]) {
								t.Error("other bytes")
							}
							cancel()
							if n, err := r.Read(p); n > 0 || !errors.Is(err, context.Canceled) && off+len(p) < len(data) {
								t.Errorf("%d bytes, %v", n, err)
							}
							if err := r.Close(); err != nil {
								t.Error(err)
							}
						case 3:
							s.Hold("x")
							mustRead(t, ob, off, random.IntN(len(data)-off), data)
							s.Release("x")
						default:
							other, err := s.Open(t.Context(), "x")
							if err != nil {
								t.Error(err)
								continue
							}
							mustStream(t, other, off, data)
							other.Close()
						}
					}
				})
			}
			wg.Wait()
			if now := s.Stats(); now.Objects != 0 || now.Memory != 0 || now.Disk != 0 {
				t.Errorf("%+v", now)
			}
		})
	}
}

func TestExtents(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const n = 40
		var e store.Extents
		var set [n]bool
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			from := rapid.IntRange(0, n-1).Draw(rt, "from")
			to := rapid.IntRange(from+1, n).Draw(rt, "to")
			put := rapid.Bool().Draw(rt, "add")
			if put {
				e.Add(int64(from), int64(to))
			} else {
				e.Remove(int64(from), int64(to))
			}
			for i := from; i < to; i++ {
				set[i] = put
			}
			pieces := 0
			for i := range n {
				run := 0
				for i+run < n && set[i+run] {
					run++
				}
				next := i
				for next < n && !set[next] {
					next++
				}
				if i > 0 && run > 0 && set[i-1] {
					next = -1 // the beginning of an extent that reaches over i
				} else if run > 0 {
					pieces++
				}
				if got := e.Run(int64(i)); got != int64(run) {
					rt.Fatalf("%v: from %d on there are %d, want %d", e, i, got, run)
				}
				if got := e.Next(int64(i)); next >= 0 && next < n && got != int64(next) || next == n && got < n {
					rt.Fatalf("%v: after %d comes %d, want %d", e, i, got, next)
				}
			}
			if e.Len() != pieces {
				rt.Fatalf("%v are not %d extents", e, pieces)
			}
		}
	})
}

const spoolFolder = "SHARDTOOL_TEST_SPOOL_FOLDER"

// TestSpoolChild is the process that TestSpoolIsGone kills.
func TestSpoolChild(t *testing.T) {
	dir := os.Getenv(spoolFolder)
	if dir == "" {
		t.Skip("for the test beside it")
	}
	st, _, data := origin(2_000_000)
	s := newSpool(t, st, store.SpoolOptions{Dir: dir})
	s.Hold("x")
	o := open(t, s, "x")
	mustStream(t, o, 0, data)
	fmt.Println("kept", s.Stats().Disk)
	for {
		mustStream(t, o, 0, data)
	}
}

// A process that is killed leaves nothing behind, where files can be removed
// while they are open.
func TestSpoolIsGone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("open files cannot be removed")
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestSpoolChild$")
	cmd.Env = append(os.Environ(), spoolFolder+"="+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if lines.Text() != "kept 2000000" {
		t.Errorf("the child says %q", lines.Text())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// Files whose names cannot be removed while they are open are removed in the end.
func TestSpoolRemovesItsFiles(t *testing.T) {
	dir := t.TempDir()
	defer store.SetNewSpoolFile(func(dir string) (store.SpoolFile, error) {
		f, err := os.CreateTemp(dir, "x")
		return store.Stubborn{File: f}, err
	})()
	st, _, data := origin(500_000)
	s := store.NewSpool(st, store.SpoolOptions{Dir: dir})
	s.Hold("x")
	o := open(t, s, "x")
	mustStream(t, o, 0, data)
	s.Release("x")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Error(left, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Error(left, err)
	}
	mustStream(t, o, 0, data)
}

func TestSpoolMisuse(t *testing.T) {
	st, _, _ := origin(10)
	s := newSpool(t, st, store.SpoolOptions{})
	defer func() {
		if recover() == nil {
			t.Error("a Release too many goes unnoticed")
		}
	}()
	s.Release("x")
}

// What is kept is read without allocating, by ReadAt and by streams.
func TestSpoolAllocatesNothing(t *testing.T) {
	for name, o := range sizes {
		st, _, data := origin(1_000_000)
		o.Dir = t.TempDir()
		s := newSpool(t, st, o)
		s.Hold("x")
		ob := open(t, s, "x")
		mustStream(t, ob, 0, data)
		p := make([]byte, 300_000)
		if n := testing.AllocsPerRun(50, func() {
			if _, err := ob.ReadAt(context.Background(), p, 123_456); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: ReadAt: %v allocations", name, n)
		}
		r, err := store.Stream(context.Background(), ob, 0)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(50, func() {
			if _, err := r.Read(p[:2000]); err != nil {
				t.Fatal(err)
			}
		}); n != 0 && !raceEnabled {
			t.Errorf("%s: a stream: %v allocations", name, n)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkSpool reads a shard of 64 MiB that is in the system's cache in pieces
// of 64 KiB: as it is, while it is kept, and from what was kept.
func BenchmarkSpool(b *testing.B) {
	path := filepath.Join(b.TempDir(), "x.tar")
	data := storetest.Content(1, 64<<20)
	write(b, path, data)
	for _, bench := range []struct {
		name   string
		o      store.SpoolOptions
		hold   bool
		kept   bool
		direct bool
	}{
		{name: "local", direct: true},
		{name: "not held"},
		{name: "keeping in memory", o: store.SpoolOptions{Memory: 1 << 30}, hold: true},
		{name: "keeping in a file", hold: true},
		{name: "kept in memory", o: store.SpoolOptions{Memory: 1 << 30}, hold: true, kept: true},
		{name: "kept in a file", hold: true, kept: true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			bench.o.Dir = b.TempDir()
			s := store.NewSpool(&store.Local{}, bench.o)
			defer s.Close()
			var st store.Store = s
			if bench.direct {
				st = &store.Local{}
			}
			buf := make([]byte, 64<<10)
			pass := func() {
				r, err := store.OpenStream(b.Context(), st, path)
				if err == nil {
					_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, buf)
				}
				if err != nil {
					b.Fatal(err)
				}
				r.Close()
			}
			if bench.kept {
				s.Hold(path)
				pass()
			}
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if bench.hold && !bench.kept {
					s.Hold(path)
				}
				pass()
				if bench.hold && !bench.kept {
					s.Release(path)
				}
			}
		})
	}
}
