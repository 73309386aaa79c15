package shard

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/reader/store"
	"shardtool/reader/store/faultstore"
)

// filesIn returns name=content of all files of a folder, hidden ones too.
func filesIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Name()+"="+string(b))
	}
	return strings.Join(all, " ")
}

func TestSinkIsAllOrNothing(t *testing.T) {
	full := syscall.ENOSPC
	for _, tt := range []struct {
		name     string
		faults   []faultstore.Fault
		force    bool
		cancel   string // before which step: "write", "commit", "second" (commit of the store)
		sentinel error  // nil: it goes well
		says     string
		left     string
	}{
		{name: "good", force: true, left: "a=A b=B index=I old=O"},
		{name: "existing file", sentinel: format.ErrUsage, says: "b: usage: exists already; --force replaces it", left: "b=before old=O"},
		{name: "full disk", force: true, faults: []faultstore.Fault{{Op: faultstore.Write, Name: "b", Err: full}},
			sentinel: format.ErrIO, says: "no space left", left: "b=before old=O"},
		{name: "closed pipe", force: true, faults: []faultstore.Fault{{Op: faultstore.Write, After: 2, Err: syscall.EPIPE}},
			sentinel: syscall.EPIPE, says: "io: broken pipe", left: "b=before old=O"},
		{name: "denied", force: true, faults: []faultstore.Fault{{Op: faultstore.Create, Name: "index", Err: os.ErrPermission}},
			sentinel: format.ErrDenied, says: "index: denied", left: "b=before old=O"},
		{name: "flush fails", force: true, faults: []faultstore.Fault{{Op: faultstore.Finish, Name: "b", Err: full}},
			sentinel: format.ErrIO, says: "no space left", left: "b=before old=O"},
		{name: "first rename fails", force: true, faults: []faultstore.Fault{{Op: faultstore.Commit, Err: os.ErrPermission}},
			sentinel: format.ErrDenied, says: "in place already: none; not written: a, b, index", left: "b=before old=O"},
		{name: "last rename fails", force: true, faults: []faultstore.Fault{{Op: faultstore.Commit, Name: "index", Err: errors.New("gone")}},
			sentinel: format.ErrIO, says: "in place already: a, b; not written: index", left: "a=A b=B old=O"},
		{name: "interrupted while writing", force: true, cancel: "write", sentinel: context.Canceled, left: "b=before old=O"},
		{name: "interrupted before the end", force: true, cancel: "commit", sentinel: context.Canceled, left: "b=before old=O"},
		{name: "interrupted while naming", force: true, cancel: "second", left: "a=A b=B index=I old=O"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			write(t, "b", "before")
			write(t, "old", "O")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			fault := faultstore.New(&store.Local{}, tt.faults...)
			var st store.Store = fault
			if tt.cancel == "second" {
				st = commitHook{fault, cancel}
			}
			err := writeSet(ctx, &SinkOptions{Store: st, Force: tt.force}, func(step string) {
				if step == tt.cancel {
					cancel()
				}
				if got := filesIn(t, dir); step == "commit" && strings.Contains(got, "a=A") {
					t.Errorf("before Commit there is %s", got)
				}
			})
			if !errors.Is(err, tt.sentinel) || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %v saying %s", err, tt.sentinel, tt.says)
			}
			if err != nil && format.Sentinel(err) == nil && !errors.Is(err, context.Canceled) {
				t.Errorf("error %v has no class", err)
			}
			if got := filesIn(t, dir); got != tt.left {
				t.Errorf("left %s\nwant %s", got, tt.left)
			}
		})
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

// writeSet creates the index first, though it is to be named last.
func writeSet(ctx context.Context, o *SinkOptions, at func(step string)) error {
	s := NewSink(ctx, o)
	defer s.Abort()
	index, err := s.CreateLast("index", compress.None)
	if err != nil {
		return err
	}
	for _, name := range []string{"a", "b"} {
		out, err := s.Create(name, compress.None)
		if err != nil {
			return err
		}
		at("write")
		if _, err := io.WriteString(out, strings.ToUpper(name)); err != nil {
			return err
		}
		if err := out.Close(); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(index, "I"); err != nil {
		return err
	}
	at("commit")
	return s.Commit()
}

// commitHook calls done when the first object is committed.
type commitHook struct {
	*faultstore.Store
	done func()
}

func (c commitHook) Create(ctx context.Context, name string) (store.Sink, error) {
	k, err := c.Store.Create(ctx, name)
	return hookedSink{k, c.done}, err
}

type hookedSink struct {
	store.Sink
	done func()
}

func (h hookedSink) Commit() error {
	h.done()
	return h.Sink.Commit()
}

func TestSinkNamesIndexLast(t *testing.T) {
	t.Chdir(t.TempDir())
	st := faultstore.New(&store.Local{})
	if err := writeSet(t.Context(), &SinkOptions{Store: st}, func(string) {}); err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, c := range st.Calls() {
		if c.Op == "commit" {
			order = append(order, c.Name)
		}
	}
	if !slices.Equal(order, []string{"a", "b", "index"}) {
		t.Errorf("named in the order %v", order)
	}
}

func TestSinkRefusesOneNameTwice(t *testing.T) {
	t.Chdir(t.TempDir())
	s := NewSink(t.Context(), nil)
	defer s.Abort()
	if _, err := s.Create("a", compress.None); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create("a", compress.None); !errors.Is(err, format.ErrUsage) || !strings.Contains(err.Error(), "%06d") {
		t.Errorf("a name twice: %v", err)
	}
	s.Abort()
	if _, err := s.Create("b", compress.None); !errors.Is(err, format.ErrUsage) && !errors.Is(err, context.Canceled) {
		t.Errorf("a name after the end: %v", err)
	}
	if got := filesIn(t, "."); got != "" {
		t.Errorf("left %s", got)
	}
}

func TestSinkWritesStreamsInPlace(t *testing.T) {
	var stdout strings.Builder
	s := NewSink(t.Context(), &SinkOptions{Store: &store.Local{Stdout: &stdout}})
	defer s.Abort()
	names := []string{"-"}
	if _, err := os.Stat(os.DevNull); err == nil && os.DevNull == "/dev/null" {
		names = append(names, os.DevNull)
	}
	for _, name := range names {
		out, err := s.Create(name, compress.None)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(out, "text"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Commit(); err != nil || stdout.String() != "text" {
		t.Errorf("%q, %v", stdout.String(), err)
	}
}

func TestSinkCompresses(t *testing.T) {
	t.Chdir(t.TempDir())
	s := NewSink(t.Context(), &SinkOptions{Level: 9})
	defer s.Abort()
	out, err := s.Create("a.gz", CompressionOf("a.gz"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("many words ", 1000)
	if _, err := io.WriteString(out, text); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("a.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, _ := f.Stat()
	if out.Bytes() != int64(len(text)) || out.Stored() != st.Size() || out.Name() != "a.gz" {
		t.Errorf("%s: %d bytes, %d stored, %d in the file", out.Name(), out.Bytes(), out.Stored(), st.Size())
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestNumbered(t *testing.T) {
	for _, tt := range []struct {
		name, part3, part12345 string
		numbered               bool
	}{
		{"train-%06d.tar", "train-000003.tar", "train-012345.tar", true},
		{"%d", "3", "12345", true},
		{"a%03d.tar", "a003.tar", "a12345.tar", true},
		{"%3d", "  3", "12345", true},
		{"50%.tar", "50%.tar", "50%.tar", false},
		{"100%%d", "100%3", "100%12345", true},
		{"plain", "plain", "plain", false},
	} {
		part, numbered, err := Numbered(tt.name)
		if err != nil || numbered != tt.numbered || part(3) != tt.part3 || part(12345) != tt.part12345 {
			t.Errorf("%s: %q, %q, %v, %v", tt.name, part(3), part(12345), numbered, err)
		}
	}
	if _, _, err := Numbered("%d-%04d"); !errors.Is(err, format.ErrUsage) {
		t.Errorf("two numbers: %v", err)
	}
}

func TestCompressionOf(t *testing.T) {
	for name, want := range map[string]compress.Kind{
		"a.tar": compress.None, "a.tar.gz": compress.Gzip, "A.TGZ": compress.Gzip, "a.zst": compress.Zstd,
		"x/a.tfrecord.zz": compress.Zlib, "gz": compress.None, "a.gz.tar": compress.None, "a.zlib": compress.Zlib,
	} {
		if got := CompressionOf(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
