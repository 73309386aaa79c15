//go:build !noasm

package kernel

import "golang.org/x/sys/cpu"

func supported() Level {
	// Every CPU with AVX2 has F16C, which x/sys/cpu does not tell.
	if x := &cpu.X86; x.HasAVX2 && x.HasBMI1 && x.HasBMI2 && x.HasFMA {
		return AVX2
	}
	return Generic
}
