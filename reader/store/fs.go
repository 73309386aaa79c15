package store

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"shardtool/format"
)

// FS returns a store that reads the regular files of fsys, embedded ones for
// example. Create fails with ErrUnsupported.
func FS(fsys fs.FS) Store { return fsStore{fsys} }

type fsStore struct{ fsys fs.FS }

func (s fsStore) Open(ctx context.Context, name string) (Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := s.fsys.Open(name)
	if err != nil {
		return nil, nameError(name, err)
	}
	st, err := describe(f, name)
	if err != nil {
		return nil, err
	}
	ra, ok := f.(io.ReaderAt)
	if !ok {
		return &pipe{name: name, r: f, c: f}, nil
	}
	return &fsFile{f: f, ra: ra, entry: entry(name, st)}, nil
}

func (s fsStore) List(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var found []Entry
		err := fs.WalkDir(s.fsys, ".", func(path string, d fs.DirEntry, err error) error {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil || !d.Type().IsRegular() || !strings.HasPrefix(path, prefix) {
				return err
			}
			st, err := d.Info()
			if err == nil {
				found = append(found, entry(path, st))
			}
			return err
		})
		if err != nil {
			yield(Entry{}, nameError(prefix, err))
			return
		}
		slices.SortFunc(found, byName)
		yieldAll(ctx, found, yield)
	}
}

func (s fsStore) Create(_ context.Context, name string) (Sink, error) {
	return nil, format.Errorf(format.ErrUnsupported, format.In(name), "these files can only be read")
}

type fsFile struct {
	f     fs.File
	ra    io.ReaderAt
	entry Entry
}

func (f *fsFile) Stat() Entry  { return f.entry }
func (f *fsFile) Close() error { return nameError(f.entry.Name, f.f.Close()) }

func (f *fsFile) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, negativeOffset(f.entry.Name, off)
	}
	if off > f.entry.Size { // embedded files call this invalid
		return 0, io.EOF
	}
	n, err := f.ra.ReadAt(p, off)
	if err != nil && err != io.EOF {
		err = nameError(f.entry.Name, err)
	}
	return n, err
}

// describe refuses what is a folder, and closes a file that it refuses.
func describe(f fs.File, name string) (fs.FileInfo, error) {
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: errIsFolder}
	}
	if err != nil {
		f.Close()
		return nil, nameError(name, err)
	}
	return st, nil
}
