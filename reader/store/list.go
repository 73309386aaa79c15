package store

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// List yields the regular files, and links to such, whose paths begin with
// prefix as it is written, descending into folders but not through links to
// them. A folder that is not there holds nothing. Files that Create is still
// writing are left out.
func (l *Local) List(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		found, err := list(ctx, prefix)
		if err != nil {
			yield(Entry{}, nameError(prefix, err))
			return
		}
		yieldAll(ctx, found, yield)
	}
}

// yieldAll yields entries until their context ends.
func yieldAll(ctx context.Context, found []Entry, yield func(Entry, error) bool) {
	for _, e := range found {
		if err := ctx.Err(); err != nil {
			yield(Entry{}, err)
			return
		}
		if !yield(e, nil) {
			return
		}
	}
}

// list gathers all entries before the first is yielded: a walk goes folder by
// folder, while in byte order "a.tar" stands before "a/b.tar".
func list(ctx context.Context, prefix string) ([]Entry, error) {
	scheme := prefix[:len(prefix)-len(localPath(prefix))]
	path := localPath(prefix)
	folder := path[:lastSeparator(path)+1] // as it is written, so that names begin with it
	root := folder
	if root == "" {
		root = "."
	}
	var found []Entry
	err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			if at == root && isNowhere(err) {
				return nil
			}
			return err
		}
		below, err := filepath.Rel(root, at)
		if err != nil {
			return err
		}
		name := folder + below
		switch {
		case d.IsDir():
			// A folder matters if it begins with the prefix, or leads to it.
			inside := name + string(filepath.Separator)
			if below != "." && !strings.HasPrefix(inside, path) && !strings.HasPrefix(path, inside) {
				return fs.SkipDir
			}
			return nil
		case !strings.HasPrefix(name, path) || isTemporary(d.Name()):
			return nil
		}
		st, err := describeListed(at, d)
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed while we walked, or a link to nothing
			return nil
		case err != nil:
			return err
		case st.Mode().IsRegular():
			found = append(found, entry(scheme+name, st))
		}
		return nil
	})
	slices.SortFunc(found, byName)
	return found, err
}

// describeListed follows a link.
func describeListed(path string, d fs.DirEntry) (fs.FileInfo, error) {
	if d.Type()&fs.ModeSymlink != 0 {
		return os.Stat(path)
	}
	return d.Info()
}

func lastSeparator(path string) int {
	for i := len(path) - 1; i >= 0; i-- {
		if os.IsPathSeparator(path[i]) {
			return i
		}
	}
	return -1
}

// isNowhere says that a folder is not there, be it that a file is in its place.
func isNowhere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
