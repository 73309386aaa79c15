//go:build !linux && !darwin && !windows

package main

func freeAt(string) (int64, bool) { return 0, false }
