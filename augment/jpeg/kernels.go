package jpeg

//go:generate go -C ../../asm run . -kernel entropy -out ../augment/jpeg/entropy_amd64.s -stubs ../augment/jpeg/entropy_amd64.go -pkg jpeg

import (
	"unsafe"

	"shardtool/internal/simd"
)

// decodeBlocks decodes n MCUs: see decodeBlocksGeneric.
func decodeBlocks(c *cursor, data []byte, steps []step, coefs []int16, n int) {
	if simd.Active() < simd.AVX2 {
		decodeBlocksGeneric(c, data, steps, coefs, n)
		return
	}
	for i := range steps { // the assembly does not look
		_ = coefs[steps[i].out+(n-1)*steps[i].advance:][:64]
	}
	decodeBlocksBMI2((*byte)(unsafe.Pointer(c)), &data[0], (*byte)(unsafe.Pointer(&steps[0])), len(steps), &coefs[0], n, &natural[0])
}

// skipBlocks passes over n MCUs: see skipBlocksGeneric.
func skipBlocks(c *cursor, data []byte, steps []step, n int) {
	if simd.Active() < simd.AVX2 {
		skipBlocksGeneric(c, data, steps, n)
		return
	}
	skipBlocksBMI2((*byte)(unsafe.Pointer(c)), &data[0], (*byte)(unsafe.Pointer(&steps[0])), len(steps), n)
}
