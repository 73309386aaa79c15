package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
	Random bool      // files are read at offsets: the kernel reads nothing ahead
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
	if l.Random {
		adviseRandom(f)
	}
	return &file{f: f, entry: entry(name, st), random: l.Random}, nil
}

// OpenEntry opens a file if it still has the size and the time of modification
// that e knows.
func (l *Local) OpenEntry(ctx context.Context, e Entry) (Object, error) {
	o, err := l.Open(ctx, e.Name)
	if err != nil {
		return nil, err
	}
	if err := e.Unchanged(o.Stat()); err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

var errIsFolder = errors.New("is a folder")

func localPath(name string) string { return strings.TrimPrefix(name, "file://") }

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

func entry(name string, st fs.FileInfo) Entry {
	return Entry{Name: name, Size: st.Size(), Version: fmt.Sprintf("%d-%d", st.Size(), st.ModTime().UnixNano())}
}
