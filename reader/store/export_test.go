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
