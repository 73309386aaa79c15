//go:build !linux

package store

import "os"

func adviseSequential(*os.File) {}
func adviseRandom(*os.File)     {}
