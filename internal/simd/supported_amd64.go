//go:build !noasm

package simd

//go:generate go -C ../../asm run . -kernel cpuid -out ../internal/simd/cpuid_amd64.s -stubs ../internal/simd/cpuid_amd64.go -pkg simd

import "golang.org/x/sys/cpu"

// f16c is the bit of CPUID.01H:ECX that tells of F16C, of which x/sys/cpu does
// not. A virtual machine may lack it beside AVX2.
const f16c = 1 << 29

func supported() Level {
	if x := &cpu.X86; x.HasAVX2 && x.HasBMI1 && x.HasBMI2 && x.HasPOPCNT && x.HasFMA && cpuid1()&f16c != 0 {
		return AVX2
	}
	return Generic
}
