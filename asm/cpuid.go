package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func init() { register("cpuid", cpuid) }

// cpuid writes the one look at the CPU that golang.org/x/sys/cpu leaves out.
func cpuid() {
	TEXT("cpuid1", NOSPLIT, "func() uint32")
	Doc("cpuid1 returns ECX of leaf 1 of CPUID.")
	MOVL(U32(1), EAX)
	XORL(ECX, ECX)
	CPUID()
	Store(ECX, ReturnIndex(0))
	RET()
}
