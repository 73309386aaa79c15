package kernel

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// walled returns n bytes between which and memory that may not be touched
// there is nothing, after their end or before their beginning.
func walled(t testing.TB, n int, after bool) []byte {
	page := os.Getpagesize()
	inner := max(1, (n+page-1)/page) * page
	mem, err := unix.Mmap(-1, 0, inner+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
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
