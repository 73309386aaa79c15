//go:build !amd64 || noasm

package kernel

func supported() Level { return Generic }
