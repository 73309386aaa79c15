//go:build !amd64 || noasm

package simd

func supported() Level { return Generic }
