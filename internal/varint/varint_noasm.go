//go:build !amd64 || noasm

package varint

const noKernel = "varint: no assembly in this build"

func decode64AVX2(dst *int64, room int, src *byte, n int) (values, used int) { panic(noKernel) }

func decode32AVX2(dst *int32, room int, src *byte, n int) (values, used int) { panic(noKernel) }

func countAVX2(src *byte, n int) (count int, long uint64) { panic(noKernel) }
