// Command asm writes the assembly of the project's kernels. Each kernel is an
// avo program in a file of its own, registered under its name; the packages
// that hold the results call it by go generate:
//
//	go -C ../../../asm run . -kernel idct -out ../augment/internal/kernel/idct_amd64.s -stubs ../augment/internal/kernel/idct_amd64.go -pkg kernel
//
// This is a module of its own, so that the library does not depend on avo.
// The generic Go beside each result is its specification.
//
// Every vector instruction of a kernel is one of AVX or AVX2, VEX encoded: one
// legacy SSE instruction among 256-bit ones costs a third of the speed on newer
// Intel cores. A test beside the results (internal/asmtest of the library)
// looks at them, as written and disassembled, and fails on any other.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"

	. "github.com/mmcloughlin/avo/build"
)

var kernels = map[string]func(){}

// register names a kernel. It is called from init of the kernel's file.
func register(name string, build func()) { kernels[name] = build }

func main() {
	name := flag.String("kernel", "", "which kernel to write")
	flag.Parse()
	build, ok := kernels[*name]
	if !ok {
		names := []string{}
		for n := range kernels {
			names = append(names, n)
		}
		slices.Sort(names)
		fmt.Fprintf(os.Stderr, "asm: -kernel must be one of %v\n", names)
		os.Exit(2)
	}
	ConstraintExpr("!noasm")
	build()
	Generate()
}
