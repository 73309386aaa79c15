package store

import (
	"io"
	"os"
)

// spoolFile is a file that nobody else sees.
type spoolFile interface {
	io.ReaderAt
	io.WriterAt
	// discard closes and removes it. After an error its name is to be removed
	// later.
	discard() (name string, err error)
}

// newSpoolFile is what tests replace to play a disk that fails.
var newSpoolFile = makeSpoolFile

// makeSpoolFile makes a file. Its name is removed at once where the system allows
// that, so that nothing is left behind by a process that is killed.
func makeSpoolFile(dir string) (spoolFile, error) {
	f, err := os.CreateTemp(dir, "shardtool-spool-*")
	if err != nil {
		return nil, err
	}
	return &tempFile{f, os.Remove(f.Name()) == nil}, nil
}

type tempFile struct {
	*os.File
	removed bool
}

func (f *tempFile) discard() (string, error) {
	_ = f.Close() // nobody needs what was written
	if f.removed {
		return "", nil
	}
	return f.Name(), os.Remove(f.Name())
}
