package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/storetest"
)

// tracked is a store of objects that hold their own names, and counts which are
// open.
type tracked struct {
	mu     sync.Mutex
	open   map[string]int
	opened int
	most   int   // open at a time
	fails  error // of the next Open
	gate   chan struct{}
}

func (s *tracked) Open(ctx context.Context, name string) (store.Object, error) {
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fails; err != nil {
		s.fails = nil
		return nil, err
	}
	if s.open == nil {
		s.open = map[string]int{}
	}
	s.open[name]++
	s.opened++
	s.most = max(s.most, s.count())
	return &trackedObject{s: s, name: name, version: fmt.Sprint(s.opened)}, nil
}

func (s *tracked) count() (n int) {
	for _, k := range s.open {
		n += k
	}
	return n
}

func (s *tracked) List(context.Context, string) iter.Seq2[store.Entry, error] { panic("not asked") }
func (s *tracked) Create(context.Context, string) (store.Sink, error)         { panic("not asked") }

type trackedObject struct {
	s       *tracked
	name    string
	version string
	closed  atomic.Bool
}

func (o *trackedObject) Stat() store.Entry {
	return store.Entry{Name: o.name, Size: int64(len(o.name)), Version: o.version}
}

func (o *trackedObject) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	if o.closed.Load() {
		return 0, errors.New("read after Close")
	}
	return copy(p, o.name[off:]), nil
}

func (o *trackedObject) Close() error {
	if o.closed.Swap(true) {
		return errors.New("closed twice")
	}
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	o.s.open[o.name]--
	return nil
}

func get(t testing.TB, hs *store.Handles, name string) *store.Handle {
	t.Helper()
	h, err := hs.Get(t.Context(), store.Entry{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHandlesKeepWhatWasUsedLast(t *testing.T) {
	st := &tracked{}
	hs := store.NewHandles(st, 3)
	for _, step := range []struct {
		name   string
		opened int // by then
	}{
		{"a", 1}, {"b", 2}, {"c", 3}, {"a", 3}, {"d", 4}, // b is closed
		{"a", 4}, {"c", 4}, {"b", 5}, // d is closed
		{"c", 5}, {"a", 5}, {"d", 6},
	} {
		h := get(t, hs, step.name)
		p := make([]byte, 1)
		if n, err := h.ReadAt(t.Context(), p, 0); n != 1 || err != nil || string(p) != step.name {
			t.Errorf("%s: read %q, %v", step.name, p, err)
		}
		h.Release()
		if st.opened != step.opened || st.count() > 3 {
			t.Errorf("after %s: %d were opened, want %d; %d are open", step.name, st.opened, step.opened, st.count())
		}
	}
	if err := hs.Close(); err != nil || st.count() != 0 {
		t.Errorf("after Close %d are open, %v", st.count(), err)
	}
	if _, err := hs.Get(t.Context(), store.Entry{Name: "a"}); !errors.Is(err, format.ErrUsage) {
		t.Errorf("Get after Close: %v", err)
	}
}

func TestHandlesInUseStayOpen(t *testing.T) {
	st := &tracked{}
	hs := store.NewHandles(st, 2)
	var held []*store.Handle
	for i := range 5 { // more than the bound, and none waits
		held = append(held, get(t, hs, fmt.Sprint(i)))
	}
	if st.count() != 5 {
		t.Errorf("%d are open", st.count())
	}
	closed := get(t, hs, "0")
	if err := hs.Forget("0"); err != nil {
		t.Error(err)
	}
	again := get(t, hs, "0") // a new one
	if st.opened != 6 {
		t.Errorf("%d were opened, want 6", st.opened)
	}
	for _, h := range append(held, closed, again) {
		if _, err := h.ReadAt(t.Context(), make([]byte, 1), 0); err != nil {
			t.Error(err)
		}
		h.Release()
	}
	if st.count() > 2 {
		t.Errorf("%d are open and nobody uses them", st.count())
	}
	last := get(t, hs, "4")
	if err := hs.Close(); err != nil {
		t.Error(err)
	}
	if _, err := last.ReadAt(t.Context(), make([]byte, 1), 0); err != nil {
		t.Errorf("in use while all are closed: %v", err)
	}
	last.Release()
	if st.count() != 0 {
		t.Errorf("%d are open at the end", st.count())
	}
	defer func() {
		if recover() == nil {
			t.Error("a Release too many was not noticed")
		}
	}()
	last.Release()
}

// Readers of one object open it once, and an error is that of all who waited,
// but for the end of a context, which is only its own.
func TestHandlesOpenOnce(t *testing.T) {
	st := &tracked{gate: make(chan struct{})}
	hs := store.NewHandles(st, 3)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		_, err := hs.Get(ctx, store.Entry{Name: "a"})
		first <- err
	}()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			h, err := hs.Get(t.Context(), store.Entry{Name: "a"})
			if err != nil {
				t.Error(err)
				return
			}
			h.Release()
		})
	}
	cancel()
	err := <-first
	close(st.gate)
	wg.Wait()
	if st.opened != 1 && !(err == nil && st.opened == 1) {
		t.Errorf("%d were opened", st.opened)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	st.fails = format.Errorf(format.ErrDenied, format.In("b"), "no")
	if _, err := hs.Get(t.Context(), store.Entry{Name: "b"}); !errors.Is(err, format.ErrDenied) {
		t.Error(err)
	}
	get(t, hs, "b").Release() // an error is not kept
	if err := hs.Close(); err != nil || st.count() != 0 {
		t.Errorf("%d are open, %v", st.count(), err)
	}
}

func TestHandlesGiveUpWhatIsStale(t *testing.T) {
	st := &tracked{}
	hs := store.NewHandles(st, 3)
	defer hs.Close()
	h := get(t, hs, "a")
	same, err := hs.Get(t.Context(), h.Stat())
	if err != nil || same != h {
		t.Errorf("the same version: %v", err)
	}
	same.Release()
	h.Release()
	// This store has a new version at each opening.
	h, err = hs.Get(t.Context(), store.Entry{Name: "a", Size: 1, Version: "2"})
	if err != nil || h.Stat().Version != "2" || st.count() != 1 {
		t.Fatalf("a later version: %v, %d open", err, st.count())
	}
	h.Release()
	if _, err := hs.Get(t.Context(), store.Entry{Name: "a", Size: 1, Version: "9"}); !errors.Is(err, format.ErrStale) {
		t.Errorf("a version that is not there: %v", err)
	}
	if st.count() != 0 {
		t.Errorf("%d are open", st.count())
	}
}

func TestHandlesMakeRoomForFiles(t *testing.T) {
	st := &tracked{}
	hs := store.NewHandles(st, 100)
	defer hs.Close()
	for i := range 5 {
		get(t, hs, fmt.Sprint(i)).Release()
	}
	st.fails = format.ReadError(&os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}, format.In("x"))
	get(t, hs, "x").Release()
	if st.count() != 1 {
		t.Errorf("%d are open after the system had no more files, want x alone", st.count())
	}
}

func TestHandlesTogether(t *testing.T) {
	st := &tracked{}
	hs := store.NewHandles(st, 4)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 500 {
				name := string(rune('a' + (i*7+w)%9))
				h, err := hs.Get(t.Context(), store.Entry{Name: name})
				if err != nil {
					t.Error(err)
					return
				}
				p := make([]byte, 1)
				if _, err := h.ReadAt(t.Context(), p, 0); err != nil || string(p) != name {
					t.Errorf("%s: %q, %v", name, p, err)
				}
				if i%50 == 0 {
					_ = hs.Forget(name)
				}
				h.Release()
			}
		})
	}
	wg.Wait()
	if st.most > 4+8+8 { // those in use, and those being opened
		t.Errorf("%d were open at a time", st.most)
	}
	if err := hs.Close(); err != nil || st.count() != 0 {
		t.Errorf("%d are open at the end, %v", st.count(), err)
	}
}

func TestHandlesAllocateNothing(t *testing.T) {
	hs := store.NewHandles(&tracked{}, 4)
	defer hs.Close()
	e := store.Entry{Name: "a"}
	p := make([]byte, 1)
	if n := testing.AllocsPerRun(100, func() {
		h, err := hs.Get(t.Context(), e)
		if err == nil {
			_, err = h.ReadAt(t.Context(), p, 0)
			h.Release()
		}
		if err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// requests records how an object is read.
type requests struct {
	store.Object
	gap  int64
	made []store.Span
}

func (r *requests) Gap() int64 { return r.gap }

func (r *requests) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	r.made = append(r.made, store.Span{Off: off, P: p})
	return r.Object.ReadAt(ctx, p, off)
}

func openContent(t testing.TB, data []byte) store.Object {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.tar")
	write(t, path, data)
	o, err := (&store.Local{}).Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

func TestReadSpans(t *testing.T) {
	want := storetest.Content(1, 4<<20)
	o := openContent(t, want)
	for _, tt := range []struct {
		name  string
		spans [][2]int // offset, length
		gap   int64
		made  string // requests: offset+length
	}{
		{"none", nil, 10, ""},
		{"one", [][2]int{{5, 7}}, 10, "5+7"},
		{"empty", [][2]int{{5, 0}, {9, 0}}, 10, ""},
		{"touching", [][2]int{{0, 5}, {5, 5}, {10, 1}}, 0, "0+11"},
		{"at the gap", [][2]int{{0, 5}, {15, 5}}, 10, "0+20"},
		{"over the gap", [][2]int{{0, 5}, {16, 5}}, 10, "0+5 16+5"},
		{"unsorted", [][2]int{{40, 5}, {0, 5}, {20, 10}, {6, 1}}, 10, "0+7 20+25"},
		{"overlapping", [][2]int{{0, 50}, {10, 10}, {30, 30}, {30, 30}, {0, 1}}, 10, "0+60"},
		{"within another", [][2]int{{0, 100}, {10, 10}, {105, 5}}, 10, "0+110"},
		{"bounded", [][2]int{{0, 900_000}, {900_000, 200_000}, {1_100_000, 5}}, 10, "0+900000 900000+200005"},
		{"large alone", [][2]int{{0, 3 << 20}, {3 << 20, 5}}, 10, "0+3145728 3145728+5"},
		{"far larger gap", [][2]int{{0, 10}, {1 << 20, 10}, {3 << 20, 10}}, 1 << 20, "0+1048586 3145728+10"},
	} {
		r := &requests{Object: o, gap: tt.gap}
		var spans []store.Span
		for _, s := range tt.spans {
			spans = append(spans, store.Span{Off: int64(s[0]), P: make([]byte, s[1])})
		}
		if err := store.ReadSpans(t.Context(), r, spans); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		for _, s := range spans {
			if !bytes.Equal(s.P, want[s.Off:int(s.Off)+len(s.P)]) {
				t.Errorf("%s: wrong bytes at %d", tt.name, s.Off)
			}
		}
		made := ""
		for i, m := range r.made {
			if i > 0 {
				made += " "
			}
			made += fmt.Sprintf("%d+%d", m.Off, len(m.P))
		}
		if made != tt.made {
			t.Errorf("%s: read by %s, want %s", tt.name, made, tt.made)
		}
	}
}

// Spans that lie side by side in memory as well are read straight into it.
func TestReadSpansIntoPlace(t *testing.T) {
	want := storetest.Content(1, 1000)
	o := openContent(t, want)
	arena := make([]byte, 100)
	limited := make([]byte, 100)
	for _, tt := range []struct {
		name   string
		spans  []store.Span
		direct bool
	}{
		{"in one slice", []store.Span{{Off: 200, P: arena[0:30]}, {Off: 230, P: arena[30:30]}, {Off: 230, P: arena[30:100]}}, true},
		{"capacity too small", []store.Span{{Off: 200, P: limited[0:30:30]}, {Off: 230, P: limited[30:100]}}, false},
		{"other order in memory", []store.Span{{Off: 200, P: arena[50:100]}, {Off: 250, P: arena[0:50]}}, false},
		{"gap in memory", []store.Span{{Off: 200, P: arena[0:30]}, {Off: 230, P: arena[40:100]}}, false},
		{"gap in the object", []store.Span{{Off: 200, P: arena[0:30]}, {Off: 231, P: arena[30:100]}}, false},
	} {
		clear(arena)
		r := &requests{Object: o, gap: 10}
		if err := store.ReadSpans(t.Context(), r, tt.spans); err != nil {
			t.Fatal(err)
		}
		for _, s := range tt.spans {
			if !bytes.Equal(s.P, want[s.Off:int(s.Off)+len(s.P)]) {
				t.Errorf("%s: wrong bytes at %d", tt.name, s.Off)
			}
		}
		if direct := &r.made[0].P[0] == &tt.spans[0].P[0]; len(r.made) != 1 || direct != tt.direct {
			t.Errorf("%s: %d requests, direct: %v", tt.name, len(r.made), direct)
		}
	}
}

func TestReadSpansFaults(t *testing.T) {
	o := openContent(t, make([]byte, 100))
	for _, tt := range []struct {
		off  int64
		n    int
		want error
	}{
		{99, 2, format.ErrTruncated}, {100, 1, format.ErrTruncated}, {1 << 62, 1, format.ErrTruncated}, {1<<63 - 1, 1, format.ErrTruncated}, {-1, 1, format.ErrUsage},
	} {
		for _, spans := range [][]store.Span{
			{{Off: tt.off, P: make([]byte, tt.n)}},
			{{Off: 0, P: make([]byte, 3)}, {Off: tt.off, P: make([]byte, tt.n)}},
		} {
			if err := store.ReadSpans(t.Context(), o, spans); !errors.Is(err, tt.want) {
				t.Errorf("%d+%d: %v, want %v", tt.off, tt.n, err, tt.want)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := store.ReadSpans(ctx, o, []store.Span{{Off: 0, P: make([]byte, 1)}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestReadSpansIsReadAt(t *testing.T) {
	want := storetest.Content(1, 100_000)
	o := openContent(t, want)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(t, "spans")
		r := &requests{Object: o, gap: int64(rapid.IntRange(0, 5000).Draw(t, "gap"))}
		arena := make([]byte, 100_000)
		var spans []store.Span
		for at := 0; len(spans) < n; {
			off := rapid.IntRange(0, len(want)).Draw(t, "offset")
			k := rapid.IntRange(0, min(len(want)-off, 3000)).Draw(t, "length")
			if at+k > len(arena) {
				break
			}
			spans = append(spans, store.Span{Off: int64(off), P: arena[at : at+k]})
			at += k
		}
		if err := store.ReadSpans(context.Background(), r, spans); err != nil {
			t.Fatal(err)
		}
		for _, s := range spans {
			if !bytes.Equal(s.P, want[s.Off:int(s.Off)+len(s.P)]) {
				t.Fatalf("wrong bytes at %d+%d", s.Off, len(s.P))
			}
		}
		for i := 1; i < len(r.made); i++ {
			if last := r.made[i-1]; r.made[i].Off-last.Off-int64(len(last.P)) <= r.gap && r.made[i].Off+int64(len(r.made[i].P))-last.Off <= 1<<20 {
				t.Fatalf("%d+%d and %d were read one by one", last.Off, len(last.P), r.made[i].Off)
			}
		}
	})
}

func TestReadingAllocatesNothing(t *testing.T) {
	o := openContent(t, storetest.Content(1, 1<<20))
	p := make([]byte, 50_000)
	spans := []store.Span{{Off: 90_000, P: p[:100]}, {Off: 10, P: p[200:700]}, {Off: 1000, P: p[1000:2000]}}
	for name, read := range map[string]func() error{
		"ReadAt":    func() error { _, err := o.ReadAt(t.Context(), p, 77); return err },
		"ReadSpans": func() error { return store.ReadSpans(t.Context(), o, spans) },
	} {
		if n := testing.AllocsPerRun(100, func() {
			if err := read(); err != nil {
				t.Fatal(err)
			}
		}); n >= 1 && !raceEnabled {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
