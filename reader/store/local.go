package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"shardtool/format"
)

// Local is the file system of this machine. Names are paths. The name "-" is
// standard input when opened and standard output when created; "file://" in
// front of a path is accepted.
type Local struct {
	Stdin  io.Reader // what "-" reads; nil: os.Stdin
	Stdout io.Writer // what "-" writes; nil: os.Stdout
	Sync   bool      // flush a committed file to the disk before it gets its name
}

// Open opens a file. One that is not regular (a pipe, a device) can only be
// read in order.
func (l *Local) Open(ctx context.Context, name string) (Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if name == "-" {
		in := l.Stdin
		if in == nil {
			in = os.Stdin
		}
		return &pipe{name: name, r: in}, nil
	}
	f, err := openFile(ctx, localPath(name), os.O_RDONLY)
	if err != nil {
		return nil, nameError(name, err)
	}
	st, err := describe(f, name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return &pipe{name: name, r: f, c: f}, nil
	}
	adviseSequential(f)
	return &file{f: f, entry: entry(name, st)}, nil
}

var errIsFolder = errors.New("is a folder")

func localPath(name string) string { return strings.TrimPrefix(name, "file://") }

// file reads with pread, never by mapping: a mapped file that is truncated
// under its reader kills the process.
type file struct {
	f     *os.File
	entry Entry
}

func (f *file) Stat() Entry { return f.entry }

func (f *file) Close() error { return nameError(f.entry.Name, f.f.Close()) }

func (f *file) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	n, err := f.f.ReadAt(p, off)
	switch {
	case err == nil:
		return n, nil
	case err == io.EOF && off+int64(n) < f.entry.Size:
		loc := format.Location{Shard: f.entry.Name, Offset: off + int64(n), Record: format.Unknown}
		return n, format.Errorf(format.ErrTruncated, loc, "the file had %d bytes when it was opened and is shorter now", f.entry.Size)
	case err == io.EOF:
		return n, io.EOF
	default:
		return n, nameError(f.entry.Name, err)
	}
}

// pipe is an object that can only be read in order, once.
type pipe struct {
	name string
	r    io.Reader
	c    io.Closer
	used bool
}

func (p *pipe) Stat() Entry { return Entry{Name: p.name, Size: format.Unknown} }

func (p *pipe) Close() error {
	if p.c == nil {
		return nil
	}
	return nameError(p.name, p.c.Close())
}

func (p *pipe) ReadAt(context.Context, []byte, int64) (int, error) {
	return 0, format.Errorf(format.ErrUnsupported, format.In(p.name), "a stream cannot be read at an offset")
}

func (p *pipe) Stream(ctx context.Context, off int64) (io.ReadCloser, error) {
	if p.used || off != 0 {
		return nil, format.Errorf(format.ErrUnsupported, format.In(p.name), "a stream can be read once, from its start")
	}
	p.used = true
	return &pipeReader{ctx: ctx, p: p, release: interrupt(ctx, p.r)}, nil
}

// interrupt ends a read that waits for the other end of a pipe when ctx ends,
// where the system can do that, until it is released.
func interrupt(ctx context.Context, r io.Reader) (release func() bool) {
	d, ok := r.(interface{ SetReadDeadline(time.Time) error })
	if !ok {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() { _ = d.SetReadDeadline(time.Unix(1, 0)) }) // long ago
}

type pipeReader struct {
	ctx     context.Context
	p       *pipe
	release func() bool
}

func (r *pipeReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.p.r.Read(b)
	if err != nil && err != io.EOF {
		if e := r.ctx.Err(); e != nil {
			return n, e
		}
		err = nameError(r.p.name, err)
	}
	return n, err
}

func (r *pipeReader) Close() error {
	r.release()
	return nil
}

// List yields the regular files whose paths begin with prefix, descending into
// folders. Files that Create is still writing are left out.
func (l *Local) List(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		found, err := list(ctx, localPath(prefix))
		if err != nil {
			yield(Entry{}, nameError(prefix, err))
			return
		}
		for _, e := range found {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// list gathers all entries before the first is yielded: a walk goes folder by
// folder, while in byte order "a.tar" stands before "a/b.tar".
func list(ctx context.Context, prefix string) ([]Entry, error) {
	root := prefix
	if st, err := os.Stat(prefix); err != nil || !st.IsDir() {
		root = filepath.Dir(prefix)
	}
	var found []Entry
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() || isTemporary(d.Name()) || !strings.HasPrefix(path, prefix) && root != filepath.Clean(prefix) {
			return nil
		}
		st, err := d.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed while we walked
			return nil
		case err != nil:
			return err
		}
		found = append(found, entry(path, st))
		return nil
	})
	slices.SortFunc(found, byName)
	return found, err
}

func entry(name string, st fs.FileInfo) Entry {
	return Entry{Name: name, Size: st.Size(), Version: fmt.Sprintf("%d-%d", st.Size(), st.ModTime().UnixNano())}
}
