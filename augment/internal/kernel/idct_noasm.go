//go:build !amd64 || noasm

package kernel

func idctAVX2(dst *byte, stride int, coefs, quant *int16, n int) { panic(noKernel) }

func idct4AVX2(dst *byte, stride int, coefs, quant *int16, n int) { panic(noKernel) }
