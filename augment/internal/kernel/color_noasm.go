//go:build !amd64 || noasm

package kernel

func ycbcrAVX2(dst, y, cb, cr *byte, n int) { panic(noKernel) }

func weighAVX2(sums *uint16, near, far *byte, n int) { panic(noKernel) }

func rgbH2AVX2(dst, y *byte, cb, cr *uint16, even, odd int16, n int) {
	panic(noKernel)
}
