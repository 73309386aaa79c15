//go:build !noasm

package half

import "golang.org/x/sys/cpu"

// supported: every CPU with AVX2 has F16C, which x/sys/cpu does not tell.
func supported() bool { return cpu.X86.HasAVX2 }
