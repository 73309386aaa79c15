//go:build unix

package resample

import (
	"os"

	"golang.org/x/sys/unix"
)

// walled returns n bytes between which and memory that may not be touched
// there is nothing, after their end or before their beginning. free gives them
// back.
func walled(n int, after bool) (b []byte, free func()) {
	page := os.Getpagesize()
	inner := max(1, (n+page-1)/page) * page
	mem, err := unix.Mmap(-1, 0, inner+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	for _, wall := range [][]byte{mem[:page], mem[page+inner:]} {
		if err := unix.Mprotect(wall, unix.PROT_NONE); err != nil {
			panic(err)
		}
	}
	free = func() { unix.Munmap(mem) }
	if after {
		return mem[page+inner-n : page+inner : page+inner], free
	}
	return mem[page : page+n : page+n], free
}
