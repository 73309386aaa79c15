package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// makeCold asks the kernel to forget what it holds of a file, so that reading
// it shows the disk. It reports whether the kernel was asked.
func makeCold(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) == nil
}
