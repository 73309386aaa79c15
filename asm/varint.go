package main

import (
	"math/bits"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func init() { register("varint", varint) }

// Of package varint, which says what they are.
const (
	varintStride   = 60
	varintReach    = 64 + 1 + 16 // bytes from the beginning of a block that may be read
	varintGroup    = 4           // numbers that one shuffle spreads
	varintShuffles = 1 << 12     // bytes before the shuffles
	varintUsual    = 6           // groups of a block that are done without a loop
	countStride    = 54
	countReach     = 64
)

// varint writes the inner loops of package varint.
//
// Of a block of 64 bytes the top bits are taken at once; their complement has a
// bit for the last byte of each number. Every fourth of these bits is picked by
// PDEP, which says where the next four numbers begin: nothing waits for the
// length of what comes before, except blocks for how many numbers it has. (PDEP
// is slow on AMD before Zen 3, about 5 cycles for each number, and so no slower
// than the generic form.) The 12 bits from there on tell how long each of the
// four is, and, by two tables, by what shuffle each of them comes into 4 bytes,
// where two multiplications close the gaps.
func varint() {
	patterns := varintPatterns()
	decodeVarints("decode64AVX2", "func(dst *int64, room int, src *byte, n int) (values, used int)", patterns, 8)
	decodeVarints("decode32AVX2", "func(dst *int32, room int, src *byte, n int) (values, used int)", patterns, 4)
	countVarints()
}

// varintPatterns returns twice the number of the pattern of lengths, 1 to 3
// bytes each, that 12 bits begin with, for all such bits, and behind them the
// shuffle of each pattern. What is left when the bits end is as of 1 byte, for it
// is not used.
func varintPatterns() Mem {
	patterns := GLOBL("varintPatterns", attr.RODATA|attr.NOPTR)
	for at := 0; at < 1<<12; at += 8 {
		var word uint64
		for i := range 8 {
			word |= uint64(2*varintPattern(uint(at+i))) << (8 * i)
		}
		DATA(at, U64(word))
	}
	for pattern := range 81 {
		from := uint64(0)
		for i, rest := 0, pattern; i < varintGroup; i, rest = i+1, rest/3 {
			control := uint32(0x80808080) // of zeros
			for k := range rest%3 + 1 {
				control = control&^(0xFF<<(8*k)) | uint32(from)<<(8*k)
				from++
			}
			DATA(varintShuffles+16*pattern+4*i, U32(control))
		}
	}
	return patterns
}

func varintPattern(ends uint) (pattern int) {
	for _, digit := range []int{1, 3, 9, 27} {
		n := bits.TrailingZeros(ends)
		if n >= 3 {
			n = 0
		}
		pattern += n * digit
		ends >>= n + 1
	}
	return pattern
}

// topBits sets c to the top bits of 64 bytes.
func topBits(c Register, at Mem) {
	lo, hi := YMM(), YMM()
	high := GP64()
	VMOVDQU(at, lo)
	VMOVDQU(at.Offset(32), hi)
	VPMOVMSKB(lo, c.(GPVirtual).As32())
	VPMOVMSKB(hi, high.As32())
	SHLQ(U8(32), high)
	ORQ(high, c)
}

func decodeVarints(name, signature string, patterns Mem, size int) {
	TEXT(name, attr.NOSPLIT, signature)
	Pragma("noescape")
	Doc(name+" decodes numbers of at most 3 bytes from the first of n bytes to the first of room places, and",
		"returns how many and of how many bytes. It stops before a block of 64 bytes that holds a longer one,",
		"of which 81 bytes are not there, or whose numbers, rounded up to a multiple of 4 and to 24, do not have room.")
	dst, room := Load(Param("dst"), GP64()), Load(Param("room"), GP64())
	base, n := Load(Param("src"), GP64()), Load(Param("n"), GP64())
	table := GP64()
	LEAQ(patterns, table)
	low7, by128, by16384 := XMM(), XMM(), XMM()
	VMOVDQU(bytesOf("varintLow7", 0x7F), low7)
	VMOVDQU(words("varintBy128", -0x7FFF), by128) // bytes 1 and 128
	VMOVDQU(pairs("varintBy16384", 1, 1<<14), by16384)
	start := GP64()
	XORQ(start, start)
	SUBQ(U8(varintReach), n)
	JL(LabelRef("done"))

	Label("block")
	c, ends, left, t := GP64(), GP64(), GP64(), GP64()
	topBits(c, Mem{Base: base})
	MOVQ(c, ends)
	NOTQ(ends)
	MOVQ(c, t)
	SHRQ(U8(1), t)
	ANDQ(c, t)
	SHRQ(U8(2), c)
	TESTQ(c, t)
	JNZ(LabelRef("done"))
	count := GP64()
	SHRXQ(start, ends, left)
	POPCNTQ(left, count)
	SHLXQ(start, left, left)

	// A group whose window of ends is w, and whose first byte is at from.
	group := func(w Register, from, out Mem) {
		x := XMM()
		ANDL(U32(0xFFF), w.(GPVirtual).As32())
		MOVBLZX(Mem{Base: table, Index: w, Scale: 1}, w.(GPVirtual).As32())
		VMOVDQU(from, x)
		VPSHUFB(Mem{Base: table, Index: w, Scale: 8, Disp: varintShuffles}, x, x)
		VPAND(low7, x, x)
		VPMADDUBSW(x, by128, x)
		VPMADDWD(by16384, x, x)
		if size == 4 {
			VMOVDQU(x, out)
			return
		}
		y := YMM()
		VPMOVZXDQ(x, y)
		VMOVDQU(y, out)
	}
	// The first group begins at start, others behind the end that pick picks.
	first := func(out Mem) {
		w := GP64()
		SHRXQ(start, ends, w)
		group(w, Mem{Base: base, Index: start, Scale: 1}, out)
	}
	behind := GP64()
	MOVQ(ends, behind)
	SHRQ(U8(1), behind)
	later := func(pick Register, out Mem) {
		e, w := GP64(), GP64()
		PDEPQ(left, pick, e)
		TZCNTQ(e, e)
		SHRXQ(e, behind, w)
		group(w, Mem{Base: base, Index: e, Scale: 1, Disp: 1}, out)
	}
	CMPQ(count, U8(varintUsual*varintGroup))
	JA(LabelRef("many"))
	CMPQ(room, U8(varintUsual*varintGroup))
	JL(LabelRef("done"))
	first(Mem{Base: dst})
	for i := 1; i < varintUsual; i++ {
		pick := GP64()
		MOVL(U32(1<<(i*varintGroup-1)), pick.As32())
		later(pick, Mem{Base: dst}.Offset(i*varintGroup*size))
	}

	Label("next")
	LEAQ(Mem{Base: dst, Index: count, Scale: uint8(size)}, dst)
	SUBQ(count, room)
	BSRQ(ends, start)
	SUBQ(U8(varintStride-1), start)
	ADDQ(U8(varintStride), base)
	SUBQ(U8(varintStride), n)
	JGE(LabelRef("block"))

	Label("done")
	VZEROUPPER()
	begin := Load(Param("dst"), GP64())
	SUBQ(begin, dst)
	SHRQ(U8(bits.TrailingZeros(uint(size))), dst)
	Store(dst, Return("values"))
	ADDQ(start, base)
	begin = Load(Param("src"), GP64())
	SUBQ(begin, base)
	Store(base, Return("used"))
	RET()

	Label("many")
	need, out := GP64(), GP64()
	LEAQ(Mem{Base: count}.Offset(varintGroup-1), need)
	ANDQ(I8(-varintGroup), need)
	CMPQ(need, room)
	JG(LabelRef("done"))
	MOVQ(dst, out)
	first(Mem{Base: out})
	pick := GP64()
	MOVL(U32(1<<(varintGroup-1)), pick.As32())
	SUBQ(U8(varintGroup), need)
	Label("group")
	ADDQ(U8(varintGroup*size), out)
	later(pick, Mem{Base: out})
	SHLQ(U8(varintGroup), pick)
	SUBQ(U8(varintGroup), need)
	JNZ(LabelRef("group"))
	JMP(LabelRef("next"))
}

// countVarints looks at 64 bytes and goes on by 54, so that any 10 bytes that
// belong together are seen at once.
func countVarints() {
	TEXT("countAVX2", attr.NOSPLIT, "func(src *byte, n int) (count int, long uint64)")
	Pragma("noescape")
	Doc("countAVX2 returns how many of the bytes have a clear top bit, and not 0 if there are 10 bytes in a row with a set one.",
		"It looks at blocks of 64 bytes, 54 apart, as many as n bytes have, at least one; of all but the first 54 of a block",
		"only the row is looked at.")
	base, n := Load(Param("src"), GP64()), Load(Param("n"), GP64())
	count, long := GP64(), GP64()
	XORQ(count, count)
	XORQ(long, long)
	Label("block")
	c, t, u, k := GP64(), GP64(), GP64(), GP64()
	topBits(c, Mem{Base: base})
	MOVQ(c, k)
	NOTQ(k)
	SHLQ(U8(64-countStride), k)
	POPCNTQ(k, k)
	ADDQ(k, count)
	// Rows of 2, 4, 8 and 10.
	MOVQ(c, t)
	SHRQ(U8(1), t)
	ANDQ(t, c)
	MOVQ(c, t)
	SHRQ(U8(2), t)
	ANDQ(c, t)
	MOVQ(t, u)
	SHRQ(U8(4), u)
	ANDQ(u, t)
	SHRQ(U8(8), c)
	ANDQ(c, t)
	ORQ(t, long)
	ADDQ(U8(countStride), base)
	SUBQ(U8(countStride), n)
	CMPQ(n, U8(countReach))
	JGE(LabelRef("block"))
	VZEROUPPER()
	Store(count, Return("count"))
	Store(long, Return("long"))
	RET()
}
