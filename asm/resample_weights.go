package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Where the fields of kernel.Triangle are.
const (
	triangleFrom    = 0
	triangleStep    = 8
	triangleOffset  = 16
	triangleScale   = 24
	triangleSupport = 32
	triangleInverse = 40
	triangleOne     = 44
	triangleSign    = 48
	triangleCount   = 52
	triangleStart   = 56
	triangleBase    = 60
)

// resampleTriangle makes the weights of eight outputs at a time. Positions are
// in float64, and what is left of them within an output's taps in float32.
func resampleTriangle() {
	doubles := func(name string, v func(i int) float64) Mem {
		return table(name, func(i int) Constant { return F64(v(i / 8)) })
	}
	floats := func(name string, v float32) Mem {
		return table(name, func(int) Constant { return F32(v) })
	}
	lanes := doubles("resampleLanes", func(i int) float64 { return float64(i) })
	halfDouble := doubles("resampleHalfDouble", func(int) float64 { return 0.5 })
	absolute := dwords("resampleAbsolute", 1<<31-1)
	one, half := floats("resampleOne", 1), floats("resampleHalf", 0.5)
	quarter, three := floats("resampleQuarter", 0.25), floats("resampleThree", 0.75)
	oneDword, threeDword := dwords("resampleOneDword", 1), dwords("resampleThreeDword", 3)

	TEXT("resampleTriangle", NOSPLIT, "func(t *byte, first, weights *int32, stride, groups, taps, halved int)")
	Pragma("noescape")
	Doc("resampleTriangle takes a Triangle and writes first and, in rows of stride bytes, taps weights of 8*groups outputs. halved is 0 or 1.")
	t, first, weights, stride := param("t"), param("first"), param("weights"), param("stride")
	groups, taps, halved := param("groups"), param("taps"), param("halved")
	field := func(at int) Mem { return Mem{Base: t, Disp: at} }
	q, n := GP64(), GP64()

	// Y14 and Y15 are the numbers of the outputs, Y13 eight steps.
	VBROADCASTSD(field(triangleStep), Y13)
	VBROADCASTSD(field(triangleFrom), Y15)
	VMULPD(lanes, Y13, Y14)
	VADDPD(Y15, Y14, Y14)
	VADDPD(Y13, Y13, Y13)
	VADDPD(Y13, Y13, Y13)
	VADDPD(Y13, Y14, Y15)
	VADDPD(Y13, Y13, Y13)
	VBROADCASTSS(field(triangleInverse), Y12)

	Label("group")
	VBROADCASTSD(field(triangleOffset), Y8)
	VBROADCASTSD(field(triangleScale), Y9)
	VBROADCASTSD(field(triangleSupport), Y10)
	VMOVUPD(halfDouble, Y11)
	for i := range 2 { // X0, X1: the first pixel; X2, X3: the center from it
		o, low, x := ymm[14+i], xmm[i], 2+i
		VADDPD(Y11, o, ymm[4])
		VMULPD(Y9, ymm[4], ymm[4])
		VADDPD(Y8, ymm[4], ymm[4])
		VSUBPD(Y10, ymm[4], ymm[5])
		VADDPD(Y11, ymm[5], ymm[5])
		VCVTTPD2DQY(ymm[5], low)
		VPXOR(xmm[6], xmm[6], xmm[6])
		VPMAXSD(xmm[6], low, low)
		VCVTDQ2PD(low, ymm[5])
		VSUBPD(Y11, ymm[4], ymm[4])
		VSUBPD(ymm[5], ymm[4], ymm[4])
		VCVTPD2PSY(ymm[4], xmm[x])
		VADDPD(Y13, o, o)
	}
	VINSERTI128(U8(1), X1, Y0, Y0)
	VINSERTF128(U8(1), X3, Y2, Y2)
	VPBROADCASTD(field(triangleCount), Y3)
	VPSUBD(Y0, Y3, Y3)
	VCVTDQ2PS(Y3, Y3) // pixels from the first on
	VPBROADCASTD(field(triangleStart), Y4)
	VPADDD(Y4, Y0, Y0)
	VPBROADCASTD(field(triangleBase), Y5)
	VMOVUPS(one, Y11)
	VXORPS(Y1, Y1, Y1) // the sum
	VXORPS(Y4, Y4, Y4) // which pixel
	MOVQ(weights, q)
	MOVQ(taps, n)
	TESTQ(halved, halved)
	JNZ(LabelRef("halved"))

	// value leaves the weight of pixel Y4 in v, unless it is beyond the end,
	// and goes on to the next.
	value := func(v VecPhysical) {
		VSUBPS(Y4, Y2, v)
		VANDPS(absolute, v, v)
		VMULPS(Y12, v, v)
		VSUBPS(v, Y11, v)
		VXORPS(Y10, Y10, Y10)
		VMAXPS(Y10, v, v)
		VCMPPS(U8(1), Y3, Y4, Y10)
		VANDPS(Y10, v, v)
	}
	next := func() { VADDPS(Y11, Y4, Y4) }

	VPSUBD(Y5, Y0, Y0)
	VMOVDQU(Y0, Mem{Base: first})
	Label("direct")
	value(Y6)
	next()
	VMOVUPS(Y6, Mem{Base: q})
	VADDPS(Y6, Y1, Y1)
	ADDQ(stride, q)
	DECQ(n)
	JNZ(LabelRef("direct"))
	JMP(LabelRef("quantize"))

	// With a sample for two pixels, sample s takes part in the pixels 2s-1 to
	// 2s+2. Y9 is how many of the pixels of the first sample are before the
	// first pixel.
	Label("halved")
	VPAND(oneDword, Y0, Y6)
	VMOVDQU(threeDword, Y9)
	VPSUBD(Y6, Y9, Y9)
	VCVTDQ2PS(Y9, Y9)
	VADDPS(Y9, Y2, Y2)
	VADDPS(Y9, Y3, Y3)
	VPSUBD(oneDword, Y0, Y0)
	VPSRAD(U8(1), Y0, Y0)
	VPSUBD(Y5, Y0, Y0)
	VMOVDQU(Y0, Mem{Base: first})
	within := func(v VecPhysical) {
		value(v)
		VCMPPS(U8(2), Y4, Y9, Y10)
		VANDPS(Y10, v, v)
		next()
	}
	within(Y5)
	within(Y6)
	Label("pairs")
	within(Y7)
	within(Y8)
	VADDPS(Y8, Y5, Y5)
	VMULPS(quarter, Y5, Y5)
	VADDPS(Y7, Y6, Y6)
	VMULPS(three, Y6, Y6)
	VADDPS(Y6, Y5, Y5)
	VMOVUPS(Y5, Mem{Base: q})
	VADDPS(Y5, Y1, Y1)
	VMOVAPS(Y7, Y5)
	VMOVAPS(Y8, Y6)
	ADDQ(stride, q)
	DECQ(n)
	JNZ(LabelRef("pairs"))

	// The sums from the first on are rounded, and the weights are their
	// differences.
	Label("quantize")
	VBROADCASTSS(field(triangleOne), Y2)
	VDIVPS(Y1, Y2, Y2)
	VPBROADCASTD(field(triangleSign), Y7)
	VMOVUPS(half, Y3)
	VPXOR(Y4, Y4, Y4)
	MOVQ(weights, q)
	MOVQ(taps, n)
	Label("tap")
	VMULPS(Mem{Base: q}, Y2, Y5)
	VADDPS(Y5, Y3, Y3)
	VCVTTPS2DQ(Y3, Y5)
	VPSUBD(Y4, Y5, Y6)
	VMOVDQA(Y5, Y4)
	VPSIGND(Y7, Y6, Y6)
	VMOVDQU(Y6, Mem{Base: q})
	ADDQ(stride, q)
	DECQ(n)
	JNZ(LabelRef("tap"))

	ADDQ(U8(32), first)
	ADDQ(U8(32), weights)
	DECQ(groups)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// resamplePack makes the table of resampleGather.
func resamplePack() {
	zeros := dwords("resampleZeros", 0x80018000) // a byte 0, a zero, a byte 1, a zero
	both := dwords("resampleBoth", 0x00010001)
	two := dwords("resampleTwo", 0x00020002)
	TEXT("resamplePack", NOSPLIT, "func(table *uint32, starts, first, weights *int32, stride, groups, pairs int)")
	Pragma("noescape")
	Doc("resamplePack writes 16*pairs dwords a group: 8 shuffles and 8 pairs of weights for each pair of taps.")
	to, starts, first, weights := param("table"), param("starts"), param("first"), param("weights")
	stride, groups, pairs := param("stride"), param("groups"), param("pairs")
	VMOVDQU(zeros, Y10)
	VMOVDQU(both, Y11)
	VMOVDQU(two, Y12)
	q, n := GP64(), GP64()
	Label("group")
	VPBROADCASTD(Mem{Base: starts}, X0)
	VPBROADCASTD(Mem{Base: starts, Disp: 4}, X1)
	VINSERTI128(U8(1), X1, Y0, Y0)
	VMOVDQU(Mem{Base: first}, Y1)
	VPSUBD(Y0, Y1, Y0)
	VPMULLD(Y11, Y0, Y0)
	VPADDD(Y10, Y0, Y0)
	MOVQ(weights, q)
	MOVQ(pairs, n)
	Label("pair")
	VMOVDQU(Y0, Mem{Base: to})
	VPADDD(Y12, Y0, Y0)
	VMOVDQU(Mem{Base: q, Index: stride, Scale: 1}, Y2)
	VPSLLD(U8(16), Y2, Y2)
	VPBLENDW(U8(0x55), Mem{Base: q}, Y2, Y2)
	VMOVDQU(Y2, Mem{Base: to, Disp: 32})
	LEAQ(Mem{Base: q, Index: stride, Scale: 2}, q)
	ADDQ(U8(64), to)
	DECQ(n)
	JNZ(LabelRef("pair"))
	ADDQ(U8(8), starts)
	ADDQ(U8(32), first)
	ADDQ(U8(32), weights)
	DECQ(groups)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}
