//go:build !unix

package store

func openFiles() int { return 1024 }
