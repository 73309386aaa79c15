//go:build unix

package store

import "golang.org/x/sys/unix"

// openFiles returns how many files this process may have open.
func openFiles() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 256 // the least that systems in use have
	}
	return int(min(uint64(l.Cur), 1<<20))
}
