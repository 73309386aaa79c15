// Package kernel holds the inner loops of decoding and augmenting. Each has a
// generic form in Go, which is its specification, and assembly that gives the
// same bits faster. Assembly is written by the programs in the module asm.
//
// Which form runs is chosen once, at start: by what the CPU has, by the build
// tag noasm, and by the environment variable SHARDTOOL_SIMD: with "off" no
// assembly runs, so that a fault of a kernel can be told from one elsewhere.
package kernel

import "os"

// Level is a set of instructions that kernels use.
type Level int

const (
	Generic Level = iota
	AVX2          // AVX2 with BMI2, FMA and F16C
)

// String returns the level's name.
func (l Level) String() string { return [...]string{"generic", "avx2"}[l] }

// active is the level in use. Tests change it through SetLevel.
var active = min(supported(), allowed(os.Getenv("SHARDTOOL_SIMD")))

// Active returns the level in use.
func Active() Level { return active }

// SetLevel lowers the level, for tests and benchmarks, and returns what undoes
// it. A level that the CPU lacks leaves all as it is. It must not be called
// while kernels run.
func SetLevel(l Level) (undo func()) {
	before := active
	active = min(l, supported())
	return func() { active = before }
}

// allowed is the highest level that the value of SHARDTOOL_SIMD permits.
func allowed(value string) Level {
	if value == "off" {
		return Generic
	}
	return AVX2
}
