//go:build !amd64 || noasm

package half

const noKernel = "half: no assembly in this build"

func toFloat16AVX2(dst *uint16, src *float32, n int) { panic(noKernel) }

func fromFloat16AVX2(dst *float32, src *uint16, n int) { panic(noKernel) }

func toBFloat16AVX2(dst *uint16, src *float32, n int) { panic(noKernel) }

func fromBFloat16AVX2(dst *float32, src *uint16, n int) { panic(noKernel) }
