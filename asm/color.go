package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func init() { register("color", color) }

// colorTables are what the conversion of 32 pixels takes. A pixel's place in a
// packed register is that of even ones first, then odd ones, in each half.
type colorTables struct {
	toR, toB Mem    // of twice the chroma, for VPMULHRSW
	toG, one Mem    // of twice the chroma, for VPMADDWD; half of 2^16
	shuffle  [3]Mem // of R, G and B
	lowByte  VecVirtual
	second   VecVirtual // every third byte, from the second
	third    VecVirtual
}

func newColorTables() *colorTables {
	t := &colorTables{
		// 1.402 and 1.772 times 2^14; the test tries every value of chroma.
		toR: words("colorToR", 22970),
		toB: words("colorToB", 29033),
		toG: pairs("colorToG", -22554/2, -46802/2),
		one: dwords("colorHalf", 1<<15),
	}
	for c := range t.shuffle {
		t.shuffle[c] = interleave("colorShuffle"+"RGB"[c:c+1], c)
	}
	t.lowByte, t.second, t.third = YMM(), YMM(), YMM()
	VMOVDQU(words("colorLowByte", 0xFF), t.lowByte)
	VMOVDQU(everyThird("colorSecond", 1), t.second)
	VMOVDQU(everyThird("colorThird", 2), t.third)
	return t
}

// interleave puts the bytes of a component where they stand in three registers
// of 16 bytes of pixels. No two of the 16 get the same place in a register, so
// one shuffle serves all three registers: byte j of register c' is used where
// (16c'+j) mod 3 is the component.
func interleave(name string, component int) Mem {
	var from [16]int
	for at := range 48 {
		if at%3 == component {
			pixel := at / 3
			from[at%16] = pixel%2*8 + pixel/2
		}
	}
	return table(name, func(i int) Constant { return U8(from[i%16]) })
}

func everyThird(name string, first int) Mem {
	return table(name, func(i int) Constant {
		if i%16%3 == first {
			return U8(0xFF)
		}
		return U8(0)
	})
}

// chroma is what half of the pixels, even or odd, add to luma, as words.
type chroma struct{ r, g, b VecVirtual }

// chromaOf takes twice the chroma less 256, as words. It overwrites cb and cr.
func (t *colorTables) chromaOf(cb, cr VecVirtual) chroma {
	var c chroma
	c.r, c.g, c.b = YMM(), YMM(), YMM()
	upper := YMM()
	VPUNPCKLWD(cr, cb, c.g)
	VPUNPCKHWD(cr, cb, upper)
	VPMADDWD(t.toG, c.g, c.g)
	VPMADDWD(t.toG, upper, upper)
	VPADDD(t.one, c.g, c.g)
	VPADDD(t.one, upper, upper)
	VPSRAD(U8(16), c.g, c.g)
	VPSRAD(U8(16), upper, upper)
	VPACKSSDW(upper, c.g, c.g)
	VPMULHRSW(t.toR, cr, c.r)
	VPMULHRSW(t.toB, cb, c.b)
	return c
}

// store writes 32 pixels, of which y holds the luma.
func (t *colorTables) store(dst Register, y Mem, even, odd chroma) {
	luma, oddLuma := YMM(), YMM()
	VMOVDQU(y, luma)
	VPSRLW(U8(8), luma, oddLuma)
	VPAND(t.lowByte, luma, luma)
	var c [3]VecVirtual
	for i, pair := range [][2]VecVirtual{{even.r, odd.r}, {even.g, odd.g}, {even.b, odd.b}} {
		c[i] = pair[0]
		VPADDW(luma, pair[0], pair[0])
		VPADDW(oddLuma, pair[1], pair[1])
		VPACKUSWB(pair[1], pair[0], c[i])
		VPSHUFB(t.shuffle[i], c[i], c[i])
	}
	for k := range 3 {
		v := YMM()
		VPBLENDVB(t.second, c[(k+1)%3], c[k], v)
		VPBLENDVB(t.third, c[(k+2)%3], v, v)
		VMOVDQU(v.AsX(), Mem{Base: dst, Disp: 16 * k})
		VEXTRACTI128(U8(1), v, Mem{Base: dst, Disp: 48 + 16*k})
	}
}

func color() {
	ycbcr()
	weigh()
	rgbH2()
}

// ycbcr writes ycbcrAVX2: 32 pixels whose chroma is as dense as their luma.
func ycbcr() {
	TEXT("ycbcrAVX2", attr.NOSPLIT, "func(dst, y, cb, cr *byte, n int)")
	Doc("ycbcrAVX2 is ycbcrGeneric for n pixels, a multiple of 32 and not 0.")
	dst, y := Load(Param("dst"), GP64()), Load(Param("y"), GP64())
	cb, cr := Load(Param("cb"), GP64()), Load(Param("cr"), GP64())
	n := Load(Param("n"), GP64())
	t := newColorTables()
	middle := words("colorMiddle", 256)
	twice := words("colorTwice", 0x1FE)
	Label("pixels")
	// Twice the chroma, of even and odd pixels.
	split := func(from Register) (even, odd VecVirtual) {
		even, odd = YMM(), YMM()
		VMOVDQU(Mem{Base: from}, even)
		VPSRLW(U8(7), even, odd)
		VPAND(t.lowByte, even, even)
		VPAND(twice, odd, odd)
		VPADDW(even, even, even)
		VPSUBW(middle, even, even)
		VPSUBW(middle, odd, odd)
		return even, odd
	}
	cbEven, cbOdd := split(cb)
	crEven, crOdd := split(cr)
	t.store(dst, Mem{Base: y}, t.chromaOf(cbEven, crEven), t.chromaOf(cbOdd, crOdd))
	for _, p := range []Register{y, cb, cr} {
		ADDQ(U8(32), p)
	}
	ADDQ(U8(96), dst)
	SUBQ(U8(32), n)
	JNZ(LabelRef("pixels"))
	VZEROUPPER()
	RET()
}

// weigh writes weighAVX2, 16 sums at a time.
func weigh() {
	TEXT("weighAVX2", attr.NOSPLIT, "func(sums *uint16, near, far *byte, n int)")
	Doc("weighAVX2 is weighGeneric for n sums, a multiple of 16 and not 0.")
	sums := Load(Param("sums"), GP64())
	near, far := Load(Param("near"), GP64()), Load(Param("far"), GP64())
	n := Load(Param("n"), GP64())
	Label("sums16")
	a, b, v := YMM(), YMM(), YMM()
	VPMOVZXBW(Mem{Base: near}, a)
	VPMOVZXBW(Mem{Base: far}, b)
	VPADDW(a, a, v)
	VPADDW(a, b, b)
	VPADDW(b, v, v)
	VMOVDQU(v, Mem{Base: sums})
	ADDQ(U8(16), near)
	ADDQ(U8(16), far)
	ADDQ(U8(32), sums)
	SUBQ(U8(16), n)
	JNZ(LabelRef("sums16"))
	VZEROUPPER()
	RET()
}

// rgbH2 writes rgbH2AVX2: 32 pixels from 16 sums of chroma and their
// neighbours. Even pixels lean to the left, odd ones to the right, and so the
// two kinds come apart, as the conversion wants them, without a shuffle.
func rgbH2() {
	TEXT("rgbH2AVX2", attr.NOSPLIT, "func(dst, y *byte, cb, cr *uint16, even, odd int16, n int)")
	Doc("rgbH2AVX2 is rgbPairs for n pixels, a multiple of 32 and not 0, of which the",
		"first is even; cb and cr are the sums to the left of its own.")
	dst, y := Load(Param("dst"), GP64()), Load(Param("y"), GP64())
	cb, cr := Load(Param("cb"), GP64()), Load(Param("cr"), GP64())
	n := Load(Param("n"), GP64())
	t := newColorTables()
	middle := words("colorMiddle16", 128*16)
	var round [2]VecVirtual // less 128, so that a shift gives the signed chroma
	for i, name := range []string{"even", "odd"} {
		p, err := Param(name).Resolve()
		if err != nil {
			panic(err)
		}
		round[i] = YMM()
		VPBROADCASTW(p.Addr, round[i])
		VPSUBW(middle, round[i], round[i])
	}
	Label("pixels")
	spread := func(from Register) (even, odd VecVirtual) {
		v := YMM()
		even, odd = YMM(), YMM()
		VMOVDQU(Mem{Base: from, Disp: 2}, v)
		VPADDW(v, v, even)
		VPADDW(even, v, v)
		VPADDW(Mem{Base: from, Disp: 4}, v, odd)
		VPADDW(Mem{Base: from}, v, even)
		for i, w := range []VecVirtual{even, odd} {
			VPADDW(round[i], w, w)
			VPSRAW(U8(4), w, w)
			VPADDW(w, w, w)
		}
		return even, odd
	}
	cbEven, cbOdd := spread(cb)
	crEven, crOdd := spread(cr)
	t.store(dst, Mem{Base: y}, t.chromaOf(cbEven, crEven), t.chromaOf(cbOdd, crOdd))
	ADDQ(U8(32), y)
	ADDQ(U8(32), cb)
	ADDQ(U8(32), cr)
	ADDQ(U8(96), dst)
	SUBQ(U8(32), n)
	JNZ(LabelRef("pixels"))
	VZEROUPPER()
	RET()
}
