//go:build !amd64 || noasm

package jpeg

const noKernel = "jpeg: no assembly in this build"

func decodeBlocksBMI2(c, data, steps *byte, count int, coefs *int16, n int, natural *byte) {
	panic(noKernel)
}
func skipBlocksBMI2(c, data, steps *byte, count, n int) { panic(noKernel) }
