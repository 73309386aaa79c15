package asmtest

import (
	"os"

	"golang.org/x/sys/unix"
)

// Walled returns n bytes, zero, between which and memory that may not be
// touched there is nothing: after their end, or before their beginning. They
// are gone when the test ends. Systems other than Linux have no walls.
func Walled(t TB, n int, after bool) []byte {
	t.Helper()
	page := os.Getpagesize()
	inner := max(1, (n+page-1)/page) * page
	mem, err := unix.Mmap(-1, 0, inner+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	for _, wall := range [][]byte{mem[:page], mem[page+inner:]} {
		if err := unix.Mprotect(wall, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	if after {
		return mem[page+inner-n : page+inner : page+inner]
	}
	return mem[page : page+n : page+n]
}
