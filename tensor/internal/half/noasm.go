//go:build !amd64 || noasm

package half

func supported() bool { return false }

func toFloat16AVX2(dst *uint16, src *float32, n int) { panic("half: not on this CPU") }

func fromFloat16AVX2(dst *float32, src *uint16, n int) { panic("half: not on this CPU") }

func toBFloat16AVX2(dst *uint16, src *float32, n int) { panic("half: not on this CPU") }

func fromBFloat16AVX2(dst *float32, src *uint16, n int) { panic("half: not on this CPU") }
