package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	f0211 = 1730
	f0509 = 4176
	f0601 = 4926
	f1061 = 8697
	f1451 = 11893
	f2172 = 17799
)

// build4 writes idct4AVX2, which has two blocks in hand as build8 does. Only
// its first pass has 8 columns and goes over them in two halves.
func (d *idct) build4() {
	d.begin("idct4AVX2", "idct4AVX2 is idct4Generic for n >= 1 blocks.")
	r, rare := d.dequantise(0, 1, 2, 3, 5, 6, 7)
	var rows [4]VecPhysical
	for _, upper := range []bool{true, false} {
		sums := d.pass4(upper, [2]VecPhysical{r[1], r[3]}, [2]VecPhysical{r[5], r[7]}, [2]VecPhysical{r[2], r[6]}, r[0], upper, dwords("idct4Round1", 1<<11), 12)
		for k, v := range sums {
			if upper {
				VMOVDQA(v, Mem{Base: d.spill, Disp: 32 * k})
				d.put(v)
				continue
			}
			VPACKSSDW(Mem{Base: d.spill, Disp: 32 * k}, v, v)
			rows[k] = v
		}
	}
	d.put(r[0], r[1], r[2], r[3], r[5], r[6], r[7])

	// Columns, 4 words each, two to each half of a register.
	lo01, hi01 := d.weave(VPUNPCKLWD, VPUNPCKHWD, rows[0], rows[1])
	lo23, hi23 := d.weave(VPUNPCKLWD, VPUNPCKHWD, rows[2], rows[3])
	c01, c23 := d.weave(VPUNPCKLDQ, VPUNPCKHDQ, lo01, lo23)
	c45, c67 := d.weave(VPUNPCKLDQ, VPUNPCKHDQ, hi01, hi23)
	s := d.pass4(true, [2]VecPhysical{c01, c23}, [2]VecPhysical{c45, c67}, [2]VecPhysical{c23, c67}, c01, false, dwords("idct4Round2", 1<<18), 19)
	d.put(c01, c23, c45, c67)

	// Columns 0 and 2 of words, and 1 and 3, to 4 by 4 bytes.
	VPACKSSDW(s[2], s[0], s[0])
	VPACKSSDW(s[3], s[1], s[1])
	d.put(s[2], s[3])
	left, right := d.weave(VPUNPCKLWD, VPUNPCKHWD, s[0], s[1]) // columns 0 and 1 of each row, and 2 and 3
	upper, lower := d.weave(VPUNPCKLDQ, VPUNPCKHDQ, left, right)
	VPACKSSWB(lower, upper, upper)
	VPXOR(d.center, upper, upper)

	CMPQ(d.n, U8(2))
	JLT(LabelRef("single"))
	next := lower
	VEXTRACTI128(U8(1), upper, next.AsX())
	both := d.take()
	VPUNPCKLDQ(next.AsX(), upper.AsX(), both.AsX())
	VPUNPCKHDQ(next.AsX(), upper.AsX(), next.AsX())
	VMOVQ(both.AsX(), Mem{Base: d.dst})
	VMOVHPS(both.AsX(), Mem{Base: d.dst, Index: d.stride, Scale: 1})
	VMOVQ(next.AsX(), Mem{Base: d.dst, Index: d.stride, Scale: 2})
	VMOVHPS(next.AsX(), Mem{Base: d.dst, Index: d.stride3, Scale: 1})
	d.again(8)

	Label("single")
	VMOVD(upper.AsX(), Mem{Base: d.dst})
	VPEXTRD(U8(1), upper.AsX(), Mem{Base: d.dst, Index: d.stride, Scale: 1})
	VPEXTRD(U8(2), upper.AsX(), Mem{Base: d.dst, Index: d.stride, Scale: 2})
	VPEXTRD(U8(3), upper.AsX(), Mem{Base: d.dst, Index: d.stride3, Scale: 1})
	VZEROUPPER()
	RET()

	rare()
}

// pass4 gives four rounded sums, as double words. odd13 and odd57 hold rows 1
// and 3, 5 and 7 where upper says, even26 rows 2 and 6, and first row 0 where
// upperEven says. In the second pass "rows" are columns.
func (d *idct) pass4(upper bool, odd13, odd57, even26 [2]VecPhysical, first VecPhysical, upperEven bool, round Mem, shift uint8) [4]VecPhysical {
	inner, outer := d.dots(upper, odd13[0], odd13[1], pairs("idct4Inner13", f1061, -f2172), pairs("idct4Outer13", f2562, f0899))
	p, q := d.dots(upper, odd57[0], odd57[1], pairs("idct4Inner57", f1451, -f0211), pairs("idct4Outer57", -f0601, -f0509))
	VPADDD(p, inner, inner)
	VPADDD(q, outer, outer)
	mix(upperEven, even26[0], even26[1], p)
	VPMADDWD(pairs("idct4Even", f1847, -f0765), p, p)
	a := d.scaled(upperEven, first, 14, round)
	VPSUBD(p, a, q)
	VPADDD(p, a, a)
	s := [4]VecPhysical{d.take(), p, q, a}
	VPADDD(outer, a, s[0])
	VPSUBD(outer, a, s[3])
	VPADDD(inner, q, s[1])
	VPSUBD(inner, q, s[2])
	d.put(inner, outer)
	for _, v := range s {
		VPSRAD(U8(shift), v, v)
	}
	return s
}
