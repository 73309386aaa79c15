//go:build !noasm

package tfrecord

import (
	"hash/crc32"

	"golang.org/x/sys/cpu"
)

// castagnoliThree is castagnoli without the inversions at both ends, for any
// length. The specification is hash/crc32; that package hashes what is left
// over by blocks of 504 bytes, up to half of a record of 1 KB, at a third of
// the speed, and TestCastagnoli and BenchmarkCastagnoli hold both side by side.
//
//go:noescape
func castagnoliThree(crc uint32, p []byte, shifts *uint32) uint32

var threeWay = cpu.X86.HasSSE42 && cpu.X86.HasPCLMULQDQ

// mostWords is how many words a run has at most; it is in the assembly too.
const mostWords = 168

// shifts[w] moves a CRC over w words of zeros: it is x^(64w-33) modulo the
// polynomial, bits reflected. 33 of the powers are made good by the product of
// two reflected numbers (1) and by its reduction with the CRC32 instruction
// (32). See Gopal et al., Fast CRC Computation for iSCSI Polynomial Using CRC32
// Instruction, Intel 2011.
var shifts = func() (s [2*mostWords + 1]uint32) {
	var zeros [8]byte
	s[1] = 1 // x^31
	for w := 2; w < len(s); w++ {
		s[w] = ^crc32.Update(^s[w-1], table, zeros[:]) // times x^64
	}
	return s
}()

// castagnoli returns the CRC-32C of p.
func castagnoli(p []byte) uint32 {
	if !threeWay {
		return crc32.Update(0, table, p)
	}
	return ^castagnoliThree(^uint32(0), p, &shifts[0])
}
