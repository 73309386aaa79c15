package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func init() { register("entropy", entropy) }

// Fields of augment/jpeg's cursor, step and table; a test there holds them.
const (
	cursorBuf, cursorBits, cursorPos, cursorEnd, cursorPred, cursorBad        = 0, 8, 16, 24, 32, 48
	stepDC, stepAC, stepSkip, stepOut, stepAdvance, stepComp, stepSize        = 0, 8, 16, 24, 32, 40, 48
	tableLimit, tableFirst, tableSymbol                                       = 8192, 8264, 8332
	lookBits, skipBits                                                        = 11, 11
	noCode, beyondLast                                                        = 1, 2
	badCode                                                            uint64 = 17 | 17<<8
)

// entropyCode has the registers that both loops share. Physical ones, for
// there are just enough of them.
type entropyCode struct {
	buf, bits, p, k, table, out, natural, step GPPhysical
	e, t, u, x                                 GPPhysical
	coefs, ones                                GPPhysical
}

func entropy() {
	c := &entropyCode{
		buf: R8, bits: R9, p: R10, k: R11, table: R12, out: R13, natural: R15, step: RSI,
		e: RAX, t: RBX, u: RCX, x: RDX, coefs: RDI, ones: R14,
	}
	c.function("decodeBlocksBMI2", "decodes n MCUs of count steps into coefs.", "func(c *byte, data *byte, steps *byte, count int, coefs *int16, n int, natural *byte)", true)
	c.function("skipBlocksBMI2", "passes over n MCUs of count steps.", "func(c *byte, data *byte, steps *byte, count int, n int)", false)
}

func (c *entropyCode) function(name, doc, signature string, decode bool) {
	TEXT(name, NOSPLIT, signature)
	Doc(name + " " + doc)
	end, last, n := AllocLocal(8), AllocLocal(8), AllocLocal(8)

	// Positions become addresses.
	Load(Param("c"), RBP)
	MOVQ(Mem{Base: RBP, Disp: cursorBuf}, c.buf)
	MOVQ(Mem{Base: RBP, Disp: cursorBits}, c.bits)
	MOVQ(Mem{Base: RBP, Disp: cursorPos}, c.p)
	MOVQ(Mem{Base: RBP, Disp: cursorEnd}, c.t)
	Load(Param("data"), c.x)
	ADDQ(c.x, c.p)
	ADDQ(c.x, c.t)
	MOVQ(c.t, end)
	Load(Param("steps"), c.step)
	Load(Param("count"), c.t)
	IMUL3Q(Imm(stepSize), c.t, c.t)
	ADDQ(c.step, c.t)
	MOVQ(c.t, last)
	Load(Param("n"), c.t)
	MOVQ(c.t, n)
	if decode {
		Load(Param("coefs"), c.coefs)
		Load(Param("natural"), c.natural)
	}
	MOVQ(I32(-1), c.ones)
	CMPQ(c.bits, Imm(16)) // a new segment has nothing loaded
	JAE(LabelRef("mcu"))
	c.refill()

	Label("mcu")
	Load(Param("steps"), c.step)
	Label("block")
	if decode {
		MOVQ(Mem{Base: c.step, Disp: stepOut}, c.out)
		MOVQ(Mem{Base: c.step, Disp: stepAdvance}, c.t)
		ADDQ(c.out, c.t)
		MOVQ(c.t, Mem{Base: c.step, Disp: stepOut})
		LEAQ(Mem{Base: c.coefs, Index: c.out, Scale: 2}, c.out)
	}
	MOVQ(Mem{Base: c.step, Disp: stepDC}, c.table)
	c.look()
	c.refill()
	c.orLong("dc")
	MOVQ(Mem{Base: c.step, Disp: stepComp}, c.u)
	LEAQ(Mem{Base: RBP, Index: c.u, Scale: 4, Disp: cursorPred}, c.k)
	TESTL(U32(0x3f0000), c.e.As32())
	JZ(LabelRef("same"))
	c.value()
	ADDL(c.x.As32(), Mem{Base: c.k})
	Label("same")
	c.drop()
	if decode {
		MOVL(Mem{Base: c.k}, c.x.As32())
		MOVW(c.x.As16(), Mem{Base: c.out})
	}
	MOVQ(Mem{Base: c.step, Disp: stepAC}, c.table)
	if !decode {
		MOVQ(Mem{Base: c.step, Disp: stepSkip}, c.natural)
	}
	MOVL(U32(1), c.k.As32())
	if decode {
		c.coefficients()
	} else {
		c.places()
	}

	// More than 64 coefficients.
	CMPL(c.k.As32(), Imm(64))
	JBE(LabelRef("ended"))
	ORQ(Imm(beyondLast), Mem{Base: RBP, Disp: cursorBad})
	Label("ended")
	MOVQ(end, c.t)
	CMPQ(c.p, c.t)
	CMOVQHI(c.t, c.p)
	ADDQ(Imm(stepSize), c.step)
	CMPQ(c.step, last)
	JB(LabelRef("block"))
	DECQ(n)
	JNZ(LabelRef("mcu"))

	MOVQ(c.buf, Mem{Base: RBP, Disp: cursorBuf})
	MOVQ(c.bits, Mem{Base: RBP, Disp: cursorBits})
	Load(Param("data"), c.x)
	SUBQ(c.x, c.p)
	MOVQ(c.p, Mem{Base: RBP, Disp: cursorPos})
	RET()

	c.long("dc")
	c.long("ac")
}

// coefficients decodes the AC coefficients of a block.
func (c *entropyCode) coefficients() {
	Label("ac")
	c.look()
	c.refill()
	TESTL(U32(0x3f0000), c.e.As32())
	JZ(LabelRef("none"))
	Label("some")
	MOVL(c.e.As32(), c.t.As32())
	SHRL(Imm(24), c.t.As32())
	ADDL(c.t.As32(), c.k.As32())
	c.value()
	c.drop()
	MOVBLZX(Mem{Base: c.natural, Index: c.k, Scale: 1}, c.t.As32())
	MOVW(c.x.As16(), Mem{Base: c.out, Index: c.t, Scale: 2})
	INCL(c.k.As32())
	CMPL(c.k.As32(), Imm(64))
	JB(LabelRef("ac"))
	JMP(LabelRef("all"))

	Label("none") // a long code, sixteen zeros, or the end
	c.orLong("ac")
	TESTL(U32(0x3f0000), c.e.As32())
	JNZ(LabelRef("some"))
	c.drop2()
	SHRL(Imm(24), c.e.As32())
	CMPL(c.e.As32(), Imm(15))
	JNE(LabelRef("ended"))
	ADDL(Imm(16), c.k.As32())
	CMPL(c.k.As32(), Imm(64))
	JB(LabelRef("ac"))
	Label("all")
}

// places passes over the AC coefficients of a block.
func (c *entropyCode) places() {
	Label("ac")
	MOVQ(c.buf, c.t)
	SHRQ(Imm(64-skipBits), c.t)
	MOVWLZX(Mem{Base: c.natural, Index: c.t, Scale: 2}, c.e.As32())
	c.refill()
	MOVL(c.e.As32(), c.t.As32())
	SHRL(Imm(8), c.t.As32())
	JZ(LabelRef("single"))
	ADDL(c.k.As32(), c.t.As32())
	CMPL(c.t.As32(), Imm(64))
	JA(LabelRef("single"))
	MOVL(c.t.As32(), c.k.As32())
	c.drop2()
	TESTL(U32(64), c.e.As32())
	JNZ(LabelRef("ended"))
	CMPL(c.k.As32(), Imm(64))
	JB(LabelRef("ac"))
	JMP(LabelRef("all"))

	Label("single")
	c.look()
	c.orLong("ac")
	MOVL(c.e.As32(), c.t.As32())
	SHRL(Imm(24), c.t.As32())
	LEAL(Mem{Base: c.k, Index: c.t, Scale: 1, Disp: 1}, c.k.As32())
	c.drop2()
	TESTL(U32(0x3f0000), c.e.As32())
	JNZ(LabelRef("more"))
	CMPL(c.t.As32(), Imm(15))
	JNE(LabelRef("ended"))
	Label("more")
	CMPL(c.k.As32(), Imm(64))
	JB(LabelRef("ac"))
	Label("all")
}

// look takes the entry of what is at the top of buf.
func (c *entropyCode) look() {
	MOVQ(c.buf, c.t)
	SHRQ(Imm(64-lookBits), c.t)
	MOVL(Mem{Base: c.table, Index: c.t, Scale: 4}, c.e.As32())
}

// refill makes at least 56 bits valid.
func (c *entropyCode) refill() {
	MOVQ(Mem{Base: c.p}, c.x)
	BSWAPQ(c.x)
	SHRXQ(c.bits, c.x, c.x)
	ORQ(c.x, c.buf)
	MOVQ(c.bits, c.u)
	XORQ(Imm(63), c.u)
	SHRQ(Imm(3), c.u)
	ADDQ(c.u, c.p)
	ORQ(Imm(56), c.bits)
}

// orLong goes to decode a code that the look-up does not show.
func (c *entropyCode) orLong(name string) {
	TESTL(c.e.As32(), c.e.As32())
	JZ(LabelRef(name + "long"))
	Label(name + "known")
}

// value puts into x what follows the code: the bits as they are where the first
// is 1, and less 2^size-1 where it is 0.
func (c *entropyCode) value() {
	RORXL(Imm(8), c.e.As32(), c.u.As32())
	SHLXQ(c.u, c.buf, c.x)
	RORXL(Imm(16), c.e.As32(), c.u.As32())
	MOVQ(c.x, c.t)
	SARQ(Imm(63), c.t)
	SHRXQ(c.u, c.x, c.x)
	SHRXQ(c.u, c.ones, c.u)
	ANDNQ(c.u, c.t, c.t)
	SUBQ(c.t, c.x)
}

// drop takes the code and its value off. It changes t.
func (c *entropyCode) drop() {
	SHLXQ(c.e, c.buf, c.buf)
	MOVBLZX(c.e.As8(), c.t.As32())
	SUBQ(c.t, c.bits)
}

// drop2 is drop for an entry whose bits 6 and 7 may be set. It changes u.
func (c *entropyCode) drop2() {
	SHLXQ(c.e, c.buf, c.buf)
	MOVL(c.e.As32(), c.u.As32())
	ANDL(Imm(63), c.u.As32())
	SUBQ(c.u, c.bits)
}

// long is table.long. It goes back to name+"known".
func (c *entropyCode) long(name string) {
	Label(name + "long")
	MOVQ(c.buf, c.t)
	SHRQ(Imm(48), c.t)
	MOVL(U32(lookBits+1), c.u.As32())
	Label(name + "longer")
	CMPL(c.t.As32(), Mem{Base: c.table, Index: c.u, Scale: 4, Disp: tableLimit})
	JB(LabelRef(name + "length"))
	INCL(c.u.As32())
	CMPL(c.u.As32(), Imm(17))
	JB(LabelRef(name + "longer"))
	ORQ(Imm(noCode), Mem{Base: RBP, Disp: cursorBad})
	MOVL(U32(badCode), c.e.As32())
	JMP(LabelRef(name + "known"))

	Label(name + "length") // u
	MOVL(U32(16), c.x.As32())
	SUBL(c.u.As32(), c.x.As32())
	SHRXL(c.x.As32(), c.t.As32(), c.t.As32())
	ADDL(Mem{Base: c.table, Index: c.u, Scale: 4, Disp: tableFirst}, c.t.As32())
	ANDL(U32(255), c.t.As32())
	MOVBLZX(Mem{Base: c.table, Index: c.t, Scale: 1, Disp: tableSymbol}, c.t.As32())
	// makeEntry: t is the symbol
	MOVL(c.t.As32(), c.x.As32())
	ANDL(Imm(15), c.x.As32())
	LEAL(Mem{Base: c.u, Index: c.x, Scale: 1}, c.e.As32())
	SHLL(Imm(8), c.u.As32())
	ORL(c.u.As32(), c.e.As32())
	NEGL(c.x.As32())
	ANDL(Imm(63), c.x.As32())
	SHLL(Imm(16), c.x.As32())
	ORL(c.x.As32(), c.e.As32())
	SHRL(Imm(4), c.t.As32())
	SHLL(Imm(24), c.t.As32())
	ORL(c.t.As32(), c.e.As32())
	JMP(LabelRef(name + "known"))
}
