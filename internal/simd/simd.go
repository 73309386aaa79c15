// Package simd decides, once, when a program starts, whether its assembly runs.
// It does where the CPU has AVX2, BMI1, BMI2, POPCNT, FMA and F16C and the operating
// system keeps the registers that these use, unless
//
//   - the program was built with the tag noasm, which leaves assembly out, or
//   - the environment variable SHARDTOOL_SIMD is "off".
//
// Then the generic Go runs, which gives the same bits: so a fault of an
// assembly kernel can be told from one elsewhere. Any other value of the
// variable is as none.
package simd

import "os"

// Level is a set of instructions that assembly uses.
type Level int

const (
	Generic Level = iota // none: generic Go
	AVX2                 // AVX2 with BMI1, BMI2, POPCNT, FMA and F16C
)

// String returns the level's name.
func (l Level) String() string { return [...]string{"generic", "avx2"}[l] }

// active is the level in use. Tests change it through SetLevel.
var active = min(supported(), allowed(os.Getenv("SHARDTOOL_SIMD")))

// Active returns the level in use.
func Active() Level { return active }

// SetLevel sets the level, for tests and benchmarks, and returns what undoes
// it. What the CPU lacks, or the build, is not used: see Active. It must not be
// called while kernels run.
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
