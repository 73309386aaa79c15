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
	"strings"
	"testing"

	"shardtool/format"
	"shardtool/reader/store"
)

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
