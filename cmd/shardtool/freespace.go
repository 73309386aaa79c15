package main

import "path/filepath"

// freeSpace returns how many bytes may still be written where a folder is or
// will be made, and which folder that was asked of. ok is false where this
// system does not tell.
func freeSpace(dir string) (free int64, at string, ok bool) {
	at, err := filepath.Abs(dir)
	for err == nil {
		if free, ok = freeAt(at); ok {
			return free, at, true
		}
		up := filepath.Dir(at)
		if up == at {
			break
		}
		at = up
	}
	return 0, dir, false
}
