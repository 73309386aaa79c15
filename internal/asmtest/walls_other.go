//go:build !linux

package asmtest

// Walled returns n bytes, zero. On Linux, what lies beyond may not be touched.
func Walled(_ TB, n int, _ bool) []byte { return make([]byte, n) }
