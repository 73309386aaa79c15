package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func init() { register("half", half) }

// half writes the conversions of package half, 8 numbers at a time.
func half() {
	toHalf("toFloat16AVX2", func(dst, src Mem) {
		v := YMM()
		VMOVUPS(src, v)
		VCVTPS2PH(U8(0), v, dst) // to the nearest, ties to even, whatever MXCSR says
	})
	fromHalf("fromFloat16AVX2", func(dst, src Mem) {
		v := YMM()
		VCVTPH2PS(src, v)
		VMOVUPS(v, dst)
	})
	toHalf("toBFloat16AVX2", toBFloat16)
	fromHalf("fromBFloat16AVX2", func(dst, src Mem) {
		v := YMM()
		VPMOVZXWD(src, v)
		VPSLLD(U8(16), v, v)
		VMOVDQU(v, dst)
	})
}

// toBFloat16 adds half of what is cut off, less the least bit where that makes
// the result odd, and cuts; a NaN, to which nothing may be added, gets its
// quiet bit instead.
func toBFloat16(dst, src Mem) {
	v, odd, nan := YMM(), YMM(), YMM()
	VMOVDQU(src, v)
	VCMPPS(U8(3), v, v, nan) // unordered
	VPSRLD(U8(16), v, odd)
	VPAND(dwords("halfOne", 1), odd, odd)
	VPADDD(dwords("halfBelow", 0x7FFF), odd, odd)
	VPADDD(v, odd, odd)
	VPOR(dwords("halfQuiet", 0x40<<16), v, v)
	VPBLENDVB(nan, v, odd, v)
	VPSRLD(U8(16), v, v)
	VPACKUSDW(v, v, v)
	VPERMQ(U8(0xD8), v, v)
	VMOVDQU(v.AsX(), dst)
}

func toHalf(name string, body func(dst, src Mem)) {
	loop8(name, "func(dst *uint16, src *float32, n int)", 2, 4, body)
}

func fromHalf(name string, body func(dst, src Mem)) {
	loop8(name, "func(dst *float32, src *uint16, n int)", 4, 2, body)
}

// loop8 goes over n elements of the given sizes.
func loop8(name, signature string, dstSize, srcSize int, body func(dst, src Mem)) {
	TEXT(name, attr.NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + " converts n numbers, a multiple of 8 and not 0.")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64())
	Label("numbers")
	body(Mem{Base: dst}, Mem{Base: src})
	for _, p := range []struct {
		at   Register
		size int
	}{{dst, dstSize}, {src, srcSize}} {
		ADDQ(U8(8*p.size), p.at)
	}
	SUBQ(U8(8), n)
	JNZ(LabelRef("numbers"))
	VZEROUPPER()
	RET()
}
