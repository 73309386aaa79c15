package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// adviseSequential doubles the kernel's read-ahead. A refusal is no fault.
func adviseSequential(f *os.File) {
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_SEQUENTIAL)
}

// adviseRandom ends the kernel's read-ahead.
func adviseRandom(f *os.File) {
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM)
}
