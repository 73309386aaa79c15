package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func init() {
	register("resample", func() {
		resampleTriangle()
		resamplePack()
		resampleGather()
		resampleRuns()
		resampleVertical()
		resampleVerticalWide()
		resampleColor()
		resampleGray()
		resampleLimit()
		for _, stream := range []bool{false, true} {
			resampleStore("F32", 4, stream, storeF32)
			resampleStore("F16", 2, stream, storeF16)
			resampleStore("BF16", 2, stream, storeBF16)
		}
		fence()
		resampleStoreU8()
		resampleStoreU8x3()
		resampleInterleave()
	})
}

var ymm = []VecPhysical{Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15}
var xmm = []VecPhysical{X0, X1, X2, X3, X4, X5, X6, X7, X8, X9, X10, X11, X12, X13, X14, X15}

// fillWords and fillDwords fill a register with one value.
func fillWords(v int32, r int) {
	t := GP32()
	MOVL(U32(uint32(v)), t)
	VMOVD(t, xmm[r])
	VPBROADCASTW(xmm[r], ymm[r])
}

func fillDwords(v int32, r int) {
	t := GP32()
	MOVL(U32(uint32(v)), t)
	VMOVD(t, xmm[r])
	VPBROADCASTD(xmm[r], ymm[r])
}

func param(name string) GPVirtual { return Load(Param(name), GP64()).(GPVirtual) }

// fillWordsOf fills a register with the low word of a parameter.
func fillWordsOf(name string, r int) {
	VMOVD(param(name).As32(), xmm[r])
	VPBROADCASTW(xmm[r], ymm[r])
}

// The horizontal pass has 14 fraction bits in its weights and leaves 7.
const (
	acrossShift = 7
	acrossLimit = 255 << 7
)

// maxPairs is how many pairs of samples 16 bytes hold.
const maxPairs = 8

// resampleGather resizes four rows. A group is eight outputs, four to each
// lane of 128 bits, whose samples lie within 16 bytes; for each pair of taps a
// shuffle puts the two samples of each output side by side as words.
func resampleGather() {
	TEXT("resampleGather", NOSPLIT, "func(dst *[4]*int16, src *[4]*byte, starts *int32, table *uint32, groups, pairs int)")
	Pragma("noescape")
	Doc("resampleGather resizes four rows to 8*groups words each, from starts (two a group) and table (16*pairs a group).")
	dst, src := param("dst"), param("src")
	starts, table, groups, pairs := param("starts"), param("table"), param("groups"), param("pairs")
	var s, d [4]GPVirtual
	for r := range 4 {
		s[r], d[r] = GP64(), GP64()
		MOVQ(Mem{Base: src, Disp: 8 * r}, s[r])
		MOVQ(Mem{Base: dst, Disp: 8 * r}, d[r])
	}
	fillDwords(1<<(acrossShift-1), 14)
	fillWords(acrossLimit, 15)
	for p := 1; p < maxPairs; p++ {
		CMPQ(pairs, U8(p))
		JE(LabelRef(fmt.Sprintf("pairs%d", p)))
	}
	left, right := GP64(), GP64()
	for p := maxPairs; p >= 1; p-- {
		Label(fmt.Sprintf("pairs%d", p))
		MOVLQSX(Mem{Base: starts}, left)
		MOVLQSX(Mem{Base: starts, Disp: 4}, right)
		for r := range 4 {
			VMOVDQU(Mem{Base: s[r], Index: left, Scale: 1}, xmm[r])
			VINSERTI128(U8(1), Mem{Base: s[r], Index: right, Scale: 1}, ymm[r], ymm[r])
		}
		for k := range p {
			VMOVDQU(Mem{Base: table, Disp: 64 * k}, Y8)
			VMOVDQU(Mem{Base: table, Disp: 64*k + 32}, Y9)
			for r := range 4 {
				sum, t := ymm[4+r], ymm[10+r]
				VPSHUFB(Y8, ymm[r], t)
				VPMADDWD(Y9, t, t)
				if k == 0 {
					VPADDD(Y14, t, sum)
				} else {
					VPADDD(sum, t, sum)
				}
			}
		}
		for r := range 4 {
			VPSRAD(U8(acrossShift), ymm[4+r], ymm[4+r])
		}
		for r := 0; r < 4; r += 2 {
			VPACKUSDW(ymm[5+r], ymm[4+r], ymm[4+r])
			VPMINUW(Y15, ymm[4+r], ymm[4+r])
			VPERMQ(U8(0xd8), ymm[4+r], ymm[4+r])
			VMOVDQU(xmm[4+r], Mem{Base: d[r]})
			VEXTRACTI128(U8(1), ymm[4+r], Mem{Base: d[r+1]})
		}
		for r := range 4 {
			ADDQ(U8(16), d[r])
		}
		ADDQ(U8(8), starts)
		ADDQ(U32(64*p), table)
		DECQ(groups)
		JNZ(LabelRef(fmt.Sprintf("pairs%d", p)))
		VZEROUPPER()
		RET()
	}
}

// resampleRuns resizes one row: each output sums its own runs of 16 samples.
func resampleRuns() {
	TEXT("resampleRuns", NOSPLIT, "func(dst *int16, src *byte, starts *int32, weights *int16, groups, runs int)")
	Pragma("noescape")
	Doc("resampleRuns resizes a row to 8*groups words, from starts (8 a group) and weights (8*16*runs a group).")
	dst, src, starts, weights := param("dst"), param("src"), param("starts"), param("weights")
	groups, runs := param("groups"), param("runs")
	fillDwords(1<<(acrossShift-1), 14)
	fillWords(acrossLimit, 15)
	n, from, at := GP64(), GP64(), GP64()

	Label("group")
	for k := range 8 {
		VPXOR(ymm[k], ymm[k], ymm[k])
	}
	MOVQ(runs, n)
	MOVQ(src, from)
	Label("run")
	for k := range 8 {
		MOVLQSX(Mem{Base: starts, Disp: 4 * k}, at)
		VPMOVZXBW(Mem{Base: from, Index: at, Scale: 1}, Y8)
		VPMADDWD(Mem{Base: weights, Disp: 32 * k}, Y8, Y8)
		VPADDD(Y8, ymm[k], ymm[k])
	}
	ADDQ(U8(16), from)
	ADDQ(U32(256), weights)
	DECQ(n)
	JNZ(LabelRef("run"))

	for k := 0; k < 8; k += 2 {
		VPHADDD(ymm[k+1], ymm[k], ymm[k])
	}
	VPHADDD(Y2, Y0, Y0)
	VPHADDD(Y6, Y4, Y4)
	VPERM2I128(U8(0x20), Y4, Y0, Y1)
	VPERM2I128(U8(0x31), Y4, Y0, Y2)
	VPADDD(Y1, Y2, Y0)
	VPADDD(Y14, Y0, Y0)
	VPSRAD(U8(acrossShift), Y0, Y0)
	VPACKUSDW(Y0, Y0, Y0)
	VPERMQ(U8(0xd8), Y0, Y0)
	VPMINUW(X15, X0, X0)
	VMOVDQU(X0, Mem{Base: dst})
	ADDQ(U8(16), dst)
	ADDQ(U8(32), starts)
	DECQ(groups)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// maxNarrow is how many weights the narrow vertical pass keeps in registers.
const maxNarrow = 12

// resampleVertical sums rows, each product rounded to a word by VPMULHRSW.
// The weights are negated, so that 1 is among their values.
func resampleVertical() {
	TEXT("resampleVertical", NOSPLIT, "func(dst *int16, dstStride int, src *int16, srcStride int, first *int32, base int, weights *int32, weightStride int, taps, rows, blocks int)")
	Pragma("noescape")
	Doc("resampleVertical makes rows of 32*blocks words, each the weighted sum of taps rows of src. Strides are in bytes.")
	dst, dstStride, src, stride := param("dst"), param("dstStride"), param("src"), param("srcStride")
	first, weights, taps, rows := param("first"), param("weights"), param("taps"), param("rows")
	weightStride := param("weightStride")
	for t := 1; t < maxNarrow; t++ {
		CMPQ(taps, U8(t))
		JE(LabelRef(fmt.Sprintf("taps%d", t)))
	}
	d, n := GP64(), GP64()
	for t := maxNarrow; t >= 1; t-- {
		row, col := fmt.Sprintf("taps%d", t), fmt.Sprintf("block%d", t)
		Label(row)
		var at []GPVirtual // every third tap's row
		b := GP64()
		MOVLQSX(Mem{Base: first}, b)
		SUBQ(NewParamAddr("base", 40), b)
		IMULQ(stride, b)
		ADDQ(src, b)
		at = append(at, b)
		for k := 3; k < t; k += 3 {
			next := GP64()
			LEAQ(Mem{Base: at[len(at)-1], Index: stride, Scale: 2}, next)
			ADDQ(stride, next)
			at = append(at, next)
		}
		MOVQ(weights, d)
		for k := range t {
			VPBROADCASTW(Mem{Base: d}, ymm[4+k])
			if k < t-1 {
				ADDQ(weightStride, d)
			}
		}
		MOVQ(dst, d)
		MOVQ(NewParamAddr("blocks", 80), n)
		Label(col)
		for k := range t {
			for half := range 2 {
				m := Mem{Base: at[k/3], Disp: 32 * half}
				if k%3 > 0 {
					m.Index, m.Scale = stride, uint8(k%3)
				}
				if k == 0 {
					VPMULHRSW(m, ymm[4], ymm[half])
					continue
				}
				VPMULHRSW(m, ymm[4+k], ymm[2+half])
				VPADDW(ymm[2+half], ymm[half], ymm[half])
			}
		}
		VPXOR(Y2, Y2, Y2)
		for half := range 2 {
			VPSUBW(ymm[half], Y2, ymm[half])
			VMOVDQU(ymm[half], Mem{Base: d, Disp: 32 * half})
		}
		for _, b := range at {
			ADDQ(U8(64), b)
		}
		ADDQ(U8(64), d)
		DECQ(n)
		JNZ(LabelRef(col))
		ADDQ(dstStride, dst)
		ADDQ(U8(4), first)
		ADDQ(U8(4), weights)
		DECQ(rows)
		JNZ(LabelRef(row))
		VZEROUPPER()
		RET()
	}
}

// resampleVerticalWide sums pairs of rows in 32 bits.
func resampleVerticalWide() {
	TEXT("resampleVerticalWide", NOSPLIT, "func(dst *int16, dstStride int, src *int16, srcStride int, first *int32, base int, weights *int32, weightStride int, taps, rows, blocks int)")
	Pragma("noescape")
	Doc("resampleVerticalWide is resampleVertical for any even number of taps, with sums in 32 bits that are rounded once.")
	dst, src, stride := param("dst"), param("src"), param("srcStride")
	first, weights, rows := param("first"), param("weights"), param("rows")
	weightStride := param("weightStride")
	fillDwords(1<<14, 14)
	d, n, from, b, w, k := GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	Label("row")
	MOVLQSX(Mem{Base: first}, from)
	SUBQ(NewParamAddr("base", 40), from)
	IMULQ(stride, from)
	ADDQ(src, from)
	MOVQ(dst, d)
	MOVQ(NewParamAddr("blocks", 80), n)
	Label("block")
	for i := range 4 {
		VMOVDQA(Y14, ymm[i])
	}
	MOVQ(from, b)
	MOVQ(weights, w)
	MOVQ(NewParamAddr("taps", 64), k)
	Label("pair")
	VPBROADCASTW(Mem{Base: w}, Y8)
	VPBROADCASTW(Mem{Base: w, Index: weightStride, Scale: 1}, Y9)
	VPBLENDW(U8(0xaa), Y9, Y8, Y8)
	for half := range 2 {
		VMOVDQU(Mem{Base: b, Disp: 32 * half}, Y4)
		VMOVDQU(Mem{Base: b, Index: stride, Scale: 1, Disp: 32 * half}, Y5)
		VPUNPCKLWD(Y5, Y4, Y6)
		VPUNPCKHWD(Y5, Y4, Y7)
		VPMADDWD(Y8, Y6, Y6)
		VPMADDWD(Y8, Y7, Y7)
		VPSUBD(Y6, ymm[2*half], ymm[2*half])
		VPSUBD(Y7, ymm[2*half+1], ymm[2*half+1])
	}
	LEAQ(Mem{Base: b, Index: stride, Scale: 2}, b)
	LEAQ(Mem{Base: w, Index: weightStride, Scale: 2}, w)
	SUBQ(U8(2), k)
	JNZ(LabelRef("pair"))
	for i := range 4 {
		VPSRAD(U8(15), ymm[i], ymm[i])
	}
	for half := range 2 {
		VPACKSSDW(ymm[2*half+1], ymm[2*half], Y4)
		VMOVDQU(Y4, Mem{Base: d, Disp: 32 * half})
	}
	ADDQ(U8(64), d)
	ADDQ(U8(64), from)
	DECQ(n)
	JNZ(LabelRef("block"))
	ADDQ(NewParamAddr("dstStride", 8), dst)
	ADDQ(U8(4), first)
	ADDQ(U8(4), weights)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// resampleColor converts YCbCr to RGB in place, in words of fixed point.
func resampleColor() {
	TEXT("resampleColor", NOSPLIT, "func(y, cb, cr *int16, blocks int, center, limit int)")
	Pragma("noescape")
	Doc("resampleColor turns 16*blocks of luma and chroma into red, green and blue, limited to 0..limit, in place.")
	y, cb, cr, blocks := param("y"), param("cb"), param("cr"), param("blocks")
	fillWordsOf("center", 8)
	fillWordsOf("limit", 9)
	fillWords(13173, 10) // 0.402
	fillWords(25297, 11) // 0.772
	fillWords(11277, 12) // 0.344136
	fillWords(23401, 13) // 0.714136
	VPXOR(Y14, Y14, Y14)
	Label("loop")
	VMOVDQU(Mem{Base: y}, Y0)
	VMOVDQU(Mem{Base: cb}, Y1)
	VMOVDQU(Mem{Base: cr}, Y2)
	VPSUBW(Y8, Y1, Y1)
	VPSUBW(Y8, Y2, Y2)
	VPMULHRSW(Y10, Y2, Y3)
	VPMULHRSW(Y11, Y1, Y4)
	VPMULHRSW(Y12, Y1, Y5)
	VPMULHRSW(Y13, Y2, Y6)
	VPADDW(Y2, Y3, Y3)
	VPADDW(Y1, Y4, Y4)
	VPADDW(Y5, Y6, Y5)
	VPADDSW(Y0, Y3, Y3)
	VPSUBSW(Y5, Y0, Y5)
	VPADDSW(Y0, Y4, Y4)
	for i, m := range []GPVirtual{y, cb, cr} {
		v := []VecPhysical{Y3, Y5, Y4}[i]
		VPMAXSW(Y14, v, v)
		VPMINSW(Y9, v, v)
		VMOVDQU(v, Mem{Base: m})
		ADDQ(U8(32), m)
	}
	DECQ(blocks)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// resampleGray weights red, green and blue to luma, in place of red.
func resampleGray() {
	TEXT("resampleGray", NOSPLIT, "func(red, green, blue *int16, blocks int)")
	Pragma("noescape")
	Doc("resampleGray turns 16*blocks of red, green and blue into luma, in place of red.")
	r, g, b, blocks := param("red"), param("green"), param("blue"), param("blocks")
	fillWords(9798, 10)  // 0.299
	fillWords(19235, 11) // 0.587
	fillWords(3735, 12)  // 0.114
	Label("loop")
	VPMULHRSW(Mem{Base: r}, Y10, Y0)
	VPMULHRSW(Mem{Base: g}, Y11, Y1)
	VPMULHRSW(Mem{Base: b}, Y12, Y2)
	VPADDW(Y1, Y0, Y0)
	VPADDW(Y2, Y0, Y0)
	VMOVDQU(Y0, Mem{Base: r})
	ADDQ(U8(32), r)
	ADDQ(U8(32), g)
	ADDQ(U8(32), b)
	DECQ(blocks)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

func resampleLimit() {
	TEXT("resampleLimit", NOSPLIT, "func(v *int16, blocks int, limit int)")
	Pragma("noescape")
	Doc("resampleLimit limits 16*blocks words to 0..limit.")
	v, blocks := param("v"), param("blocks")
	fillWordsOf("limit", 9)
	VPXOR(Y14, Y14, Y14)
	Label("loop")
	VPMAXSW(Mem{Base: v}, Y14, Y0)
	VPMINSW(Y9, Y0, Y0)
	VMOVDQU(Y0, Mem{Base: v})
	ADDQ(U8(32), v)
	DECQ(blocks)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// resampleStore writes rows of words as v*scale + bias. Scale and bias recur
// after 24 columns, which is a multiple of both one channel and three.
// Streaming, it passes the caches by; then dst and dstStride are multiples of
// what is stored at a time, 8*size bytes.
func resampleStore(kind string, size int, stream bool, store func(v int, at Mem, stream bool)) {
	name, note := "resampleStore"+kind, ""
	if stream {
		name, note = "resampleStream"+kind, fmt.Sprintf(", past the caches, to places that are multiples of %d", 8*size)
	}
	TEXT(name, NOSPLIT, "func(dst *byte, dstStride int, src *int16, srcStride int, rows, n int, lines *[48]float32)")
	Pragma("noescape")
	Doc(name + " writes rows of n columns, a multiple of 8, as v*lines[i%24] + lines[24+i%24]" + note + ". Strides are in bytes.")
	dst, dstStride, src, srcStride := param("dst"), param("dstStride"), param("src"), param("srcStride")
	rows, columns, lines := param("rows"), param("n"), param("lines")
	for k := range 6 {
		VMOVUPS(Mem{Base: lines, Disp: 32 * k}, ymm[10+k])
	}
	if kind == "BF16" {
		fillDwords(1, 8)
		fillDwords(0x7fff, 9)
	}
	d, s, n := GP64(), GP64(), GP64()
	block := func(k int) {
		VPMOVSXWD(Mem{Base: s, Disp: 16 * k}, ymm[k])
		VCVTDQ2PS(ymm[k], ymm[k])
		VMULPS(ymm[10+k], ymm[k], ymm[k])
		VADDPS(ymm[13+k], ymm[k], ymm[k])
		store(k, Mem{Base: d, Disp: 8 * size * k}, stream)
	}
	Label("row")
	MOVQ(dst, d)
	MOVQ(src, s)
	MOVQ(columns, n)
	SUBQ(U8(24), n)
	JB(LabelRef("tail"))
	Label("loop")
	for k := range 3 {
		block(k)
	}
	ADDQ(U8(48), s)
	ADDQ(U8(24*size), d)
	SUBQ(U8(24), n)
	JAE(LabelRef("loop"))
	Label("tail")
	ADDQ(U8(24), n)
	JZ(LabelRef("next"))
	block(0)
	SUBQ(U8(8), n)
	JZ(LabelRef("next"))
	block(1)
	Label("next")
	ADDQ(dstStride, dst)
	ADDQ(srcStride, src)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

func storeF32(v int, at Mem, stream bool) {
	if stream {
		VMOVNTPS(ymm[v], at)
	} else {
		VMOVUPS(ymm[v], at)
	}
}

func storeF16(v int, at Mem, stream bool) {
	VCVTPS2PH(U8(0), ymm[v], xmm[v])
	store128(v, at, stream)
}

func store128(v int, at Mem, stream bool) {
	if stream {
		VMOVNTDQ(xmm[v], at)
	} else {
		VMOVDQU(xmm[v], at)
	}
}

// fence orders the stores that passed the caches by before all later ones.
func fence() {
	TEXT("fence", NOSPLIT, "func()")
	Doc("fence orders the stores of the Stream functions before all later ones.")
	SFENCE()
	RET()
}

// storeBF16 rounds to the nearest, of two equally near to the even one.
func storeBF16(v int, at Mem, stream bool) {
	t := ymm[3+v]
	VPSRLD(U8(16), ymm[v], t)
	VPAND(Y8, t, t)
	VPADDD(Y9, t, t)
	VPADDD(ymm[v], t, t)
	VPSRLD(U8(16), t, t)
	VEXTRACTI128(U8(1), t, xmm[v])
	VPACKUSDW(xmm[v], xmm[3+v], xmm[v])
	store128(v, at, stream)
}

func resampleStoreU8() {
	TEXT("resampleStoreU8", NOSPLIT, "func(dst *byte, dstStride int, src *int16, srcStride int, rows, n int, half, shift int)")
	Pragma("noescape")
	Doc("resampleStoreU8 writes rows of n columns, a multiple of 8, as (v+half)>>shift. Strides are in bytes.")
	dst, dstStride, src, srcStride := param("dst"), param("dstStride"), param("src"), param("srcStride")
	rows, columns := param("rows"), param("n")
	fillWordsOf("half", 8)
	VMOVQ(param("shift"), X9)
	d, s, n := GP64(), GP64(), GP64()
	Label("row")
	MOVQ(dst, d)
	MOVQ(src, s)
	MOVQ(columns, n)
	SUBQ(U8(32), n)
	JB(LabelRef("tail"))
	Label("loop")
	for k := range 2 {
		VPADDSW(Mem{Base: s, Disp: 32 * k}, Y8, ymm[k])
		VPSRAW(X9, ymm[k], ymm[k])
	}
	VPACKUSWB(Y1, Y0, Y0)
	VPERMQ(U8(0xd8), Y0, Y0)
	VMOVDQU(Y0, Mem{Base: d})
	ADDQ(U8(64), s)
	ADDQ(U8(32), d)
	SUBQ(U8(32), n)
	JAE(LabelRef("loop"))
	Label("tail")
	ADDQ(U8(32), n)
	JZ(LabelRef("next"))
	Label("eight")
	VPADDSW(Mem{Base: s}, X8, X0)
	VPSRAW(X9, X0, X0)
	VPACKUSWB(X0, X0, X0)
	VMOVQ(X0, Mem{Base: d})
	ADDQ(U8(16), s)
	ADDQ(U8(8), d)
	SUBQ(U8(8), n)
	JNZ(LabelRef("eight"))
	Label("next")
	ADDQ(dstStride, dst)
	ADDQ(srcStride, src)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// interleave3 makes the shuffles that take element i of three registers to
// place 3i of their interleaving: mask[o][c] picks for output register o from
// input c. size is that of an element in bytes.
func interleave3(name string, size int) (mask [3][3]Mem) {
	for o := range 3 {
		for c := range 3 {
			m := GLOBL(fmt.Sprintf("%s%d%d", name, o, c), RODATA|NOPTR)
			for half := range 2 {
				var v uint64
				for i := range 8 {
					at := 16*o + 8*half + i // byte of the interleaving
					b := uint64(0x80)
					if at/size%3 == c {
						b = uint64(at/size/3*size + at%size)
					}
					v |= b << (8 * i)
				}
				DATA(8*half, U64(v))
			}
			mask[o][c] = m
		}
	}
	return mask
}

// merge interleaves the registers in of 16 bytes each and stores the 48 bytes.
func merge(in [3]VecPhysical, mask [3][3]Mem, d GPVirtual) {
	for o := range 3 {
		for c := range 3 {
			VPSHUFB(mask[o][c], in[c], xmm[12+c])
		}
		VPOR(X13, X12, X12)
		VPOR(X14, X12, X12)
		VMOVDQU(X12, Mem{Base: d, Disp: 16 * o})
	}
}

func resampleStoreU8x3() {
	mask := interleave3("interleaveBytes", 1)
	TEXT("resampleStoreU8x3", NOSPLIT, "func(dst *byte, red, green, blue *int16, n int, half, shift int)")
	Pragma("noescape")
	Doc("resampleStoreU8x3 writes n pixels of three bytes, n a multiple of 16, as (v+half)>>shift.")
	dst, r, g, b, n := param("dst"), param("red"), param("green"), param("blue"), param("n")
	fillWordsOf("half", 8)
	VMOVQ(param("shift"), X9)
	Label("loop")
	for c, s := range []GPVirtual{r, g, b} {
		for k := range 2 {
			VPADDSW(Mem{Base: s, Disp: 16 * k}, X8, xmm[3+k])
			VPSRAW(X9, xmm[3+k], xmm[3+k])
		}
		VPACKUSWB(X4, X3, xmm[c])
		ADDQ(U8(32), s)
	}
	merge([3]VecPhysical{X0, X1, X2}, mask, dst)
	ADDQ(U8(48), dst)
	SUBQ(U8(16), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

func resampleInterleave() {
	mask := interleave3("interleaveWords", 2)
	TEXT("resampleInterleave", NOSPLIT, "func(dst, red, green, blue *int16, blocks int)")
	Pragma("noescape")
	Doc("resampleInterleave writes 8*blocks words of each of red, green and blue in turns.")
	dst, r, g, b, blocks := param("dst"), param("red"), param("green"), param("blue"), param("blocks")
	Label("loop")
	for c, s := range []GPVirtual{r, g, b} {
		VMOVDQU(Mem{Base: s}, xmm[c])
		ADDQ(U8(16), s)
	}
	merge([3]VecPhysical{X0, X1, X2}, mask, dst)
	ADDQ(U8(48), dst)
	DECQ(blocks)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
