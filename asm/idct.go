package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func init() {
	register("idct", func() {
		newIDCT().build8()
		newIDCT().build4()
	})
}

// The constants of the inverse DCT, in units of 2^-13.
const (
	f0298 = 2446
	f0390 = 3196
	f0541 = 4433
	f0765 = 6270
	f0899 = 7373
	f1175 = 9633
	f1501 = 12299
	f1847 = 15137
	f1961 = 16069
	f2053 = 16819
	f2562 = 20995
	f3072 = 25172
)

// idct writes idctAVX2. A 256-bit register holds a row of 8 coefficients of
// one block in its low half and the same row of the next block in its high
// half, and no instruction of the two passes crosses the halves. A sum needs
// 32 bits, so a pass goes over the upper 4 columns of each block first, puts
// those results away, and packs them with the results of the lower 4 columns.
type idct struct {
	*vectors

	// Pairs of factors for VPMADDWD.
	evenSum, evenDif Mem // of rows 2 and 6
	z3, z4           Mem // of 7+3 and 5+1
	o0, o3           Mem // of rows 7 and 1
	o1, o2           Mem // of rows 5 and 3

	round  [2]Mem // half of what a pass divides by
	center Mem

	dst, stride, stride3, coefs, quant, n Register
	next                                  Register // from a row of a block to that of the next block
	spill                                 Register // 8 vectors
}

func newIDCT() *idct {
	return &idct{
		vectors: newVectors(),
		evenSum: pairs("idctEvenSum", f0541+f0765, f0541),
		evenDif: pairs("idctEvenDif", f0541, f0541-f1847),
		z3:      pairs("idctZ3", f1175-f1961, f1175),
		z4:      pairs("idctZ4", f1175, f1175-f0390),
		o0:      pairs("idctOdd0", f0298-f0899, -f0899),
		o3:      pairs("idctOdd3", -f0899, f1501-f0899),
		o1:      pairs("idctOdd1", f2053-f2562, -f2562),
		o2:      pairs("idctOdd2", -f2562, f3072-f2562),
		round:   [2]Mem{dwords("idctRound1", 1<<10), dwords("idctRound2", 1<<17)},
		center:  bytesOf("idctCentre", 0x80),
	}
}

// begin loads the arguments and makes room for the spills, as the beginning of
// each of the transforms.
func (d *idct) begin(name, doc string) {
	TEXT(name, attr.NOSPLIT, "func(dst *byte, stride int, coefs *int16, quant *int16, n int)")
	Doc(doc)
	d.dst, d.stride = Load(Param("dst"), GP64()), Load(Param("stride"), GP64())
	d.coefs, d.quant = Load(Param("coefs"), GP64()), Load(Param("quant"), GP64())
	d.n = Load(Param("n"), GP64())
	d.stride3, d.next, d.spill = GP64(), GP64(), GP64()
	zero := GP64()
	LEAQ(Mem{Base: d.stride, Index: d.stride, Scale: 2}, d.stride3)
	XORQ(zero, zero)
	LEAQ(AllocLocal(8*32+32).Offset(31), d.spill)
	ANDQ(I8(-32), d.spill)

	Label("blocks")
	MOVQ(U32(128), d.next)
	CMPQ(d.n, U8(2))
	CMOVQLT(zero, d.next) // the last block stands in for the one that is not there
}

func (d *idct) build8() {
	d.begin("idctAVX2", "idctAVX2 is idctGeneric for n >= 1 blocks.")
	r, rare := d.dequantise(0, 1, 2, 3, 4, 5, 6, 7)
	r = d.pass(r, d.round[0], 11)
	r = d.transpose(r)
	r = d.pass(r, d.round[1], 18)
	rows := d.bytes(r)

	CMPQ(d.n, U8(2))
	JLT(LabelRef("single"))
	fifth := GP64()
	LEAQ(Mem{Base: d.dst, Index: d.stride, Scale: 4}, fifth)
	for i, v := range rows {
		VPERMQ(U8(0xD8), v, v)
		upper, lower := d.rows(fifth, i)
		VMOVDQU(v.AsX(), upper)
		VEXTRACTI128(U8(1), v, lower)
	}
	d.again(16)

	Label("single")
	LEAQ(Mem{Base: d.dst, Index: d.stride, Scale: 4}, fifth)
	for i, v := range rows {
		upper, lower := d.rows(fifth, i)
		VMOVQ(v.AsX(), upper)
		VMOVHPS(v.AsX(), lower)
	}
	VZEROUPPER()
	RET()

	rare()
}

// again goes on to the next two blocks, whose samples are step bytes further.
func (d *idct) again(step int) {
	ADDQ(U32(256), d.coefs)
	ADDQ(U8(step), d.dst)
	SUBQ(U8(2), d.n)
	JNZ(LabelRef("blocks"))
	VZEROUPPER()
	RET()
}

// rows are the places of rows 2i and 2i+1.
func (d *idct) rows(fifth Register, i int) (upper, lower Mem) {
	at := []Register{d.dst, fifth}[i/2]
	if i%2 == 0 {
		return Mem{Base: at}, Mem{Base: at, Index: d.stride, Scale: 1}
	}
	return Mem{Base: at, Index: d.stride, Scale: 2}, Mem{Base: at, Index: d.stride3, Scale: 1}
}

// load loads a row of two blocks.
func (d *idct) load(row int) VecPhysical {
	v := d.take()
	VMOVDQU(Mem{Base: d.coefs, Disp: 16 * row}, v.AsX())
	VINSERTI128(U8(1), Mem{Base: d.coefs, Disp: 16 * row, Index: d.next, Scale: 1}, v, v)
	return v
}

// dequantise loads rows, the first of which is row 0.
func (d *idct) dequantise(rows ...int) (r [8]VecPhysical, rare func()) {
	q := d.take()
	for _, row := range rows {
		r[row] = d.load(row)
		VBROADCASTI128(Mem{Base: d.quant, Disp: 16 * row}, q)
		VPMULLW(q, r[row], r[row])
		if row == 0 {
			rare = d.wide(r[0], rows[1:])
		}
	}
	d.put(q)
	return r, rare
}

// wide sends blocks whose first row holds a value that does not fit 14 bits,
// which no encoder writes, to the code that the function it returns makes, out
// of the way: it wraps that row where nothing is in the rows below it.
func (d *idct) wide(row0 VecPhysical, below []int) (rare func()) {
	wrapped, diff := d.take(), d.take()
	VPSLLW(U8(2), row0, wrapped)
	VPSRAW(U8(2), wrapped, wrapped)
	VPXOR(row0, wrapped, diff)
	VPTEST(diff, diff)
	JNZ(LabelRef("wide"))
	Label("back")
	d.put(wrapped, diff)
	return func() {
		*d.vectors = *newVectors()
		d.free = d.free[:8] // the upper ones: all that is in use at "back" is among the lower
		Label("wide")
		any := d.load(below[0])
		for _, row := range below[1:] {
			v := d.load(row)
			VPOR(v, any, any)
			d.put(v)
		}
		v := d.take()
		VPXOR(v, v, v)
		VPCMPEQQ(v, any, any)
		VPSHUFD(U8(0x4E), any, v)
		VPAND(v, any, any)
		VPBLENDVB(any, wrapped, row0, row0)
		JMP(LabelRef("back"))
	}
}

// mix interleaves the upper or lower words of a and b.
func mix(upper bool, a, b, to VecPhysical) {
	if upper {
		VPUNPCKHWD(b, a, to)
	} else {
		VPUNPCKLWD(b, a, to)
	}
}

// dots puts two sums of products of a and b into new registers.
func (d *idct) dots(upper bool, a, b VecPhysical, f, g Mem) (VecPhysical, VecPhysical) {
	p, q := d.take(), d.take()
	mix(upper, a, b, q)
	VPMADDWD(f, q, p)
	VPMADDWD(g, q, q)
	return p, q
}

// scaled puts 2^bits times a row, and the rounding, into a new register.
func (d *idct) scaled(upper bool, row VecPhysical, bits uint8, round Mem) VecPhysical {
	v := d.take()
	VPXOR(v, v, v)
	mix(upper, v, row, v)
	VPSRAD(U8(16-bits), v, v)
	VPADDD(round, v, v)
	return v
}

// pass is one pass over rows (of which each register holds one): eight sums of
// products, rounded by adding round and shifting, saturated to 16 bits.
func (d *idct) pass(r [8]VecPhysical, round Mem, shift uint8) (out [8]VecPhysical) {
	sum, dif := d.take(), r[4]
	VPADDW(r[4], r[0], sum)
	VPSUBW(r[4], r[0], dif)
	d.put(r[0])
	for _, upper := range []bool{true, false} {
		done := func(rs ...VecPhysical) { // with them, after the second half
			if !upper {
				d.put(rs...)
			}
		}
		emit := func(k int, v VecPhysical) {
			VPSRAD(U8(shift), v, v)
			if upper {
				VMOVDQA(v, Mem{Base: d.spill, Disp: 32 * k})
				d.put(v)
				return
			}
			VPACKSSDW(Mem{Base: d.spill, Disp: 32 * k}, v, v)
			out[k] = v
		}
		butterfly := func(k int, even, odd VecPhysical) {
			v := d.take()
			VPADDD(odd, even, v)
			VPSUBD(odd, even, even)
			d.put(odd)
			emit(k, v)
			emit(7-k, even)
		}
		dots := func(a, b VecPhysical, f, g Mem) (VecPhysical, VecPhysical) { return d.dots(upper, a, b, f, g) }
		a, b := d.take(), d.take()
		VPADDW(r[3], r[7], a)
		VPADDW(r[1], r[5], b)
		z3, z4 := dots(a, b, d.z3, d.z4)
		d.put(a, b)
		o0, o3 := dots(r[7], r[1], d.o0, d.o3)
		done(r[7], r[1])
		o1, o2 := dots(r[5], r[3], d.o1, d.o2)
		done(r[5], r[3])
		VPADDD(z3, o0, o0)
		VPADDD(z3, o2, o2)
		VPADDD(z4, o1, o1)
		VPADDD(z4, o3, o3)
		d.put(z3, z4)

		scaled := func(row VecPhysical) VecPhysical { return d.scaled(upper, row, 13, round) }
		p, q := dots(r[2], r[6], d.evenSum, d.evenDif)
		done(r[2], r[6])
		x, y := scaled(sum), d.take()
		done(sum)
		VPADDD(p, x, y)
		VPSUBD(p, x, x)
		d.put(p)
		butterfly(0, y, o3)
		butterfly(3, x, o0)
		x, y = scaled(dif), d.take()
		done(dif)
		VPADDD(q, x, y)
		VPSUBD(q, x, x)
		d.put(q)
		butterfly(1, y, o2)
		butterfly(2, x, o1)
	}
	return out
}

// weave interleaves a and b, which end here.
func (d *idct) weave(lo, hi func(...Op), a, b VecPhysical) (l, h VecPhysical) {
	l = d.take()
	lo(b, a, l)
	hi(b, a, a)
	d.put(b)
	return l, a
}

// transpose transposes 8 by 8 words in each half of the registers.
func (d *idct) transpose(r [8]VecPhysical) [8]VecPhysical {
	for range 3 {
		var next [8]VecPhysical
		for i := range 4 {
			next[2*i], next[2*i+1] = d.weave(VPUNPCKLWD, VPUNPCKHWD, r[i], r[i+4])
		}
		r = next
	}
	return r
}

// bytes takes the columns of 8 by 8 words in each half, saturates them to
// signed bytes, adds 128, and returns the rows, two to each half.
func (d *idct) bytes(c [8]VecPhysical) [4]VecPhysical {
	p := c[:4] // columns i and i+4
	for i := range p {
		VPACKSSWB(c[i+4], c[i], p[i])
		VPXOR(d.center, p[i], p[i]) // adding 128 to a byte turns its highest bit over
		d.put(c[i+4])
	}
	c01, c45 := d.weave(VPUNPCKLBW, VPUNPCKHBW, p[0], p[1])
	c23, c67 := d.weave(VPUNPCKLBW, VPUNPCKHBW, p[2], p[3])
	left0, left4 := d.weave(VPUNPCKLWD, VPUNPCKHWD, c01, c23) // columns 0 to 3 of rows 0 to 3, and of 4 to 7
	right0, right4 := d.weave(VPUNPCKLWD, VPUNPCKHWD, c45, c67)
	r01, r23 := d.weave(VPUNPCKLDQ, VPUNPCKHDQ, left0, right0)
	r45, r67 := d.weave(VPUNPCKLDQ, VPUNPCKHDQ, left4, right4)
	return [4]VecPhysical{r01, r23, r45, r67}
}
