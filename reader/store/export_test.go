package store

import (
	"os"
	"time"
)

// What tests of the cache replace and look at.
const (
	BlockSuffix = blockSuffix
	PartSuffix  = partSuffix
	Abandoned   = abandoned
	PauseFor    = pauseFor
)

// SetWriteBlock replaces how blocks are written, until the function that it
// returns is called.
func SetWriteBlock(write func(f *os.File, p []byte) (int, error)) (restore func()) {
	old := writeBlock
	writeBlock = write
	return func() { writeBlock = old }
}

// SetNow replaces the clock of a cache.
func (c *Cache) SetNow(now func() time.Time) { c.disk.now = now }

// Folder is where the blocks are.
func (c *Cache) Folder() string { return c.disk.dir }

// OpenFiles returns how many objects are open.
func (s *Handles) OpenFiles() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// What tests of the spool replace and look at.
type (
	SpoolFile = spoolFile
	Extents   struct{ extents }
)

// NewSpoolFile makes a file as a Spool does.
func NewSpoolFile(dir string) (SpoolFile, error) { return makeSpoolFile(dir) }

// SetNewSpoolFile replaces how files are made, until the function that it
// returns is called.
func SetNewSpoolFile(make func(dir string) (SpoolFile, error)) (restore func()) {
	old := newSpoolFile
	newSpoolFile = make
	return func() { newSpoolFile = old }
}

// Stubborn is a file that cannot be removed while it is used.
type Stubborn struct{ *os.File }

func (f Stubborn) discard() (string, error) {
	_ = f.Close()
	return f.Name(), os.ErrPermission
}

func (e *Extents) Add(from, to int64)    { e.add(from, to) }
func (e *Extents) Remove(from, to int64) { e.remove(from, to) }
func (e *Extents) Run(off int64) int64   { return e.run(off) }
func (e *Extents) Next(off int64) int64  { return e.next(off) }
func (e *Extents) Len() int              { return len(e.extents) }
