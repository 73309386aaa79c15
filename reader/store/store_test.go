package store_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"shardtool/format"
	"shardtool/reader/store"
)

// stores is every store there is, each holding the objects a.tar ("alpha"),
// a/b.tar ("beta") and c.tar (no bytes) under a prefix.
func stores(t *testing.T) map[string]func() (store.Store, string) {
	content := map[string]string{"a.tar": "alpha", "a/b.tar": "beta", "c.tar": ""}
	return map[string]func() (store.Store, string){
		"Local": func() (store.Store, string) {
			dir := t.TempDir()
			for name, data := range content {
				path := filepath.Join(dir, filepath.FromSlash(name))
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(data), 0o666)); err != nil {
					t.Fatal(err)
				}
			}
			return &store.Local{}, dir + string(filepath.Separator)
		},
		"FS": func() (store.Store, string) {
			fsys := fstest.MapFS{}
			for name, data := range content {
				fsys["d/"+name] = &fstest.MapFile{Data: []byte(data)}
			}
			return store.FS(fsys), "d/"
		},
		"Meter": func() (store.Store, string) {
			fsys := fstest.MapFS{}
			for name, data := range content {
				fsys["d/"+name] = &fstest.MapFile{Data: []byte(data)}
			}
			return store.Meter(store.FS(fsys), func(int) {}), "d/"
		},
	}
}

// TestStore is the conformance suite that every store passes.
func TestStore(t *testing.T) {
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			st, prefix := open()
			t.Run("ReadAt", func(t *testing.T) { testReadAt(t, st, prefix) })
			t.Run("Stream", func(t *testing.T) { testStream(t, st, prefix) })
			t.Run("List", func(t *testing.T) { testList(t, st, prefix) })
			t.Run("Missing", func(t *testing.T) { testMissing(t, st, prefix) })
			t.Run("Cancelled", func(t *testing.T) { testCancelled(t, st, prefix) })
		})
	}
}

func testReadAt(t *testing.T, st store.Store, prefix string) {
	o, err := st.Open(t.Context(), prefix+"a.tar")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if e := o.Stat(); e.Size != 5 || e.Name != prefix+"a.tar" {
		t.Errorf("Stat is %+v", e)
	}
	for _, tt := range []struct {
		off  int64
		n    int
		want string
		err  error
	}{
		{0, 5, "alpha", nil}, {1, 3, "lph", nil}, {3, 5, "ha", io.EOF}, {5, 1, "", io.EOF}, {9, 1, "", io.EOF}, {2, 0, "", nil},
	} {
		p := make([]byte, tt.n)
		n, err := o.ReadAt(t.Context(), p, tt.off)
		if string(p[:n]) != tt.want || err != tt.err && !(n == tt.n && err == io.EOF) {
			t.Errorf("ReadAt(%d, %d) = %q, %v; want %q, %v", tt.n, tt.off, p[:n], err, tt.want, tt.err)
		}
	}
}

func testStream(t *testing.T, st store.Store, prefix string) {
	for name, want := range map[string]string{"a.tar": "alpha", "c.tar": ""} {
		o, err := st.Open(t.Context(), prefix+name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := store.Stream(t.Context(), o, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); string(got) != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
		if err := errors.Join(r.Close(), o.Close()); err != nil {
			t.Error(err)
		}
	}
}

func testList(t *testing.T, st store.Store, prefix string) {
	var got []string
	for e, err := range st.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, filepath.ToSlash(strings.TrimPrefix(e.Name, prefix)))
	}
	if want := []string{"a.tar", "a/b.tar", "c.tar"}; !slices.Equal(got, want) {
		t.Errorf("List yields %q, want %q", got, want)
	}
	for e, err := range st.List(t.Context(), prefix+"c") {
		if err != nil || e.Name != prefix+"c.tar" {
			t.Errorf("List(c) yields %q, %v", e.Name, err)
		}
	}
}

func testMissing(t *testing.T, st store.Store, prefix string) {
	_, err := st.Open(t.Context(), prefix+"none.tar")
	if !errors.Is(err, format.ErrNotFound) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "none.tar") {
		t.Errorf("opening what is not there: %v", err)
	}
	if _, err := st.Open(t.Context(), prefix+"a"); !errors.Is(err, format.ErrIO) {
		t.Errorf("opening a folder: %v", err)
	}
}

func testCancelled(t *testing.T, st store.Store, prefix string) {
	o, err := st.Open(t.Context(), prefix+"a.tar")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := st.Open(ctx, prefix+"a.tar"); !errors.Is(err, context.Canceled) {
		t.Errorf("Open: %v", err)
	}
	if _, err := o.ReadAt(ctx, make([]byte, 1), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("ReadAt: %v", err)
	}
}

func TestLocalFileThatShrinksIsTruncated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.tar")
	if err := os.WriteFile(path, []byte("0123456789"), 0o666); err != nil {
		t.Fatal(err)
	}
	o, err := (&store.Local{}).Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if err := os.Truncate(path, 4); err != nil {
		t.Skip("this system does not truncate open files:", err)
	}
	r, _ := store.Stream(t.Context(), o, 0)
	got, err := io.ReadAll(r)
	if string(got) != "0123" || !errors.Is(err, format.ErrTruncated) || !strings.Contains(err.Error(), "@ 4") {
		t.Errorf("read %q, %v; want 0123 and truncated @ 4", got, err)
	}
}

func TestCreateShowsNothingBeforeCommit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "out.tar")
	st := &store.Local{Sync: true}
	write := func(data string, end func(store.Sink) error) {
		t.Helper()
		sink, err := st.Create(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(sink, data); err != nil {
			t.Fatal(err)
		}
		if err := end(sink); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(sink.Abort(), sink.Commit()); err != nil {
			t.Errorf("a second end: %v", err)
		}
	}
	content := func() string {
		data, err := os.ReadFile(path)
		if err != nil {
			return "none"
		}
		return string(data)
	}
	steps := []struct {
		data string
		end  func(store.Sink) error
		want string
	}{
		{"one", store.Sink.Abort, "none"},
		{"two", store.Sink.Commit, "two"},
		{"three", store.Sink.Abort, "two"},
		{"four", store.Sink.Commit, "four"},
	}
	for _, s := range steps {
		write(s.data, s.end)
		if got := content(); got != s.want {
			t.Errorf("after %q: the file is %q, want %q", s.data, got, s.want)
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, want out.tar alone (%v)", left, err)
	}
}

func TestCreateKeepsLinksAndModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links and modes are not what they are elsewhere")
	}
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(real, []byte("old"), 0o600), os.Symlink("real", link)); err != nil {
		t.Fatal(err)
	}
	sink, err := (&store.Local{}).Create(t.Context(), link)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(sink, "new"); err != nil {
		t.Fatal(err)
	}
	if err := sink.Commit(); err != nil {
		t.Fatal(err)
	}
	st, err := os.Lstat(link)
	if err != nil || st.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", st, err)
	}
	data, _ := os.ReadFile(real)
	if st, _ := os.Stat(real); string(data) != "new" || st.Mode().Perm() != 0o600 {
		t.Errorf("the file is %q with mode %v", data, st.Mode())
	}
}

func TestCreateStopsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	sink, err := (&store.Local{}).Create(ctx, filepath.Join(dir, "x"))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := sink.Write([]byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("Write: %v", err)
	}
	if err := sink.Commit(); !errors.Is(err, context.Canceled) {
		t.Errorf("Commit: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestStandardStreams(t *testing.T) {
	var out bytes.Buffer
	st := &store.Local{Stdin: strings.NewReader("from a pipe"), Stdout: &out}
	o, err := st.Open(t.Context(), "-")
	if err != nil {
		t.Fatal(err)
	}
	if o.Stat().Size != format.Unknown {
		t.Errorf("a pipe has the size %d", o.Stat().Size)
	}
	if _, err := o.ReadAt(t.Context(), make([]byte, 1), 0); !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("ReadAt of a pipe: %v", err)
	}
	r, err := store.Stream(t.Context(), o, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); string(got) != "from a pipe" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := store.Stream(t.Context(), o, 0); !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("a pipe was opened twice: %v", err)
	}
	sink, err := st.Create(t.Context(), "-")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(sink, "to a pipe"); err != nil || sink.Commit() != nil || out.String() != "to a pipe" {
		t.Errorf("wrote %q, %v", out.String(), err)
	}
}

func TestMeterCountsWhatIsRead(t *testing.T) {
	var n atomic.Int64
	st := store.Meter(store.FS(fstest.MapFS{"x": {Data: make([]byte, 1000)}}), func(k int) { n.Add(int64(k)) })
	o, err := st.Open(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.ReadAt(t.Context(), make([]byte, 10), 5); err != nil {
		t.Fatal(err)
	}
	r, err := store.Stream(t.Context(), o, 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err)
	}
	if n.Load() != 910 {
		t.Errorf("counted %d bytes, want 910", n.Load())
	}
}
