package store

import (
	"context"
	"crypto/rand"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Create begins a file beside its place, under a hidden name, and renames it
// on Commit, so that the name holds the old content or the new one and never a
// part. Missing folders are made. What exists and is no regular file (a pipe,
// a device such as /dev/null) and standard output are written in place.
func (l *Local) Create(ctx context.Context, name string) (Sink, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if name == "-" {
		out := l.Stdout
		if out == nil {
			out = os.Stdout
		}
		return &inPlace{ctx: ctx, name: name, w: out}, nil
	}
	path := filepath.Clean(localPath(name)) // as the folder of the hidden file is found
	mode := fs.FileMode(0o666)
	switch st, err := os.Stat(path); {
	case err == nil && st.IsDir():
		return nil, nameError(name, &fs.PathError{Op: "create", Path: path, Err: errIsFolder})
	case err == nil && !st.Mode().IsRegular():
		f, err := openFile(ctx, path, os.O_WRONLY)
		if err != nil {
			return nil, nameError(name, err)
		}
		return &inPlace{ctx: ctx, name: name, w: f, c: f}, nil
	case err == nil:
		mode = st.Mode().Perm()
		// A symbolic link keeps pointing: what it names is replaced.
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, nameError(name, err)
	}
	temp := filepath.Join(dir, temporaryName(filepath.Base(path)))
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, nameError(name, err)
	}
	return &newFile{ctx: ctx, name: name, path: path, f: f, sync: l.Sync}, nil
}

const temporarySuffix = ".shardtool-part"

// temporaryName leaves room for names near the 255 bytes that file systems allow.
func temporaryName(base string) string {
	if len(base) > 200 {
		base = base[:200]
	}
	return "." + base + "." + rand.Text()[:12] + temporarySuffix
}

func isTemporary(base string) bool {
	return strings.HasPrefix(base, ".") && strings.HasSuffix(base, temporarySuffix)
}

type newFile struct {
	ctx    context.Context
	name   string
	path   string
	f      *os.File
	sync   bool
	closed bool // by Finish
	ended  bool
}

func (n *newFile) Write(p []byte) (int, error) {
	if err := n.ctx.Err(); err != nil {
		return 0, err
	}
	w, err := n.f.Write(p)
	return w, nameError(n.name, err)
}

// Finish closes the file, which waits under its hidden name.
func (n *newFile) Finish() error {
	if n.ended || n.closed {
		return nil
	}
	n.closed = true
	err := n.ctx.Err()
	if err == nil && n.sync {
		err = n.f.Sync()
	}
	if e := n.f.Close(); err == nil {
		err = e
	}
	return nameError(n.name, err)
}

func (n *newFile) Commit() error {
	if n.ended {
		return nil
	}
	err := n.Finish()
	n.ended = true
	if err == nil {
		err = os.Rename(n.f.Name(), n.path)
	}
	if err != nil {
		os.Remove(n.f.Name())
	}
	return nameError(n.name, err)
}

func (n *newFile) Abort() error {
	if n.ended {
		return nil
	}
	n.ended = true
	if !n.closed {
		n.f.Close()
	}
	return nameError(n.name, os.Remove(n.f.Name()))
}

// inPlace writes to what is no regular file; there Abort can take nothing back.
type inPlace struct {
	ctx  context.Context
	name string
	w    io.Writer
	c    io.Closer
}

func (s *inPlace) Write(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.w.Write(p)
	return n, nameError(s.name, err)
}

func (s *inPlace) Commit() error { return s.close() }
func (s *inPlace) Abort() error  { return s.close() }

func (s *inPlace) close() error {
	c := s.c
	s.c = nil
	if c == nil {
		return nil
	}
	return nameError(s.name, c.Close())
}
