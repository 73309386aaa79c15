package kernel

import "shardtool/internal/simd"

//go:generate go -C ../../../asm run . -kernel idct -out ../augment/internal/kernel/idct_amd64.s -stubs ../augment/internal/kernel/idct_amd64.go -pkg kernel

// IDCT turns n horizontally adjacent blocks of 8 by 8 coefficients into
// samples:
//
//	coefs[64*i:]  block i, row-major (not in zigzag order)
//	quant         the quantisation table in the same order, wrapped to int16
//	dst           samples of block i in columns 8i to 8i+7 of 8 rows, the
//	              beginnings of which are stride bytes apart
//
// Nothing else of dst is written, and nothing beyond the n blocks is read.
//
// The transform is the accurate integer one of the Independent JPEG Group
// (jidctint.c: Loeffler, Ligtenberg and Moschytz, 13 bits of fraction, 2 more
// bits kept between the passes), in the arithmetic of libjpeg-turbo's SIMD
// form, which for all that an encoder writes gives the same samples, and which
// says what hostile coefficients give:
//   - dequantised values, and sums of two of them, wrap to 16 bits;
//   - what the first pass gives is saturated to 16 bits, what the second gives
//     to the range of a sample;
//   - in a block whose rows 1 to 7 are zero, row 0 wraps to 14 bits.
func IDCT(dst []byte, stride int, coefs []int16, quant *[64]int16, n int) {
	if n <= 0 {
		return
	}
	dst, coefs = dst[:7*stride+8*n], coefs[:64*n]
	if simd.Active() >= simd.AVX2 {
		idctAVX2(&dst[0], stride, &coefs[0], &quant[0], n)
		return
	}
	idctGeneric(dst, stride, coefs, quant, n)
}

func idctGeneric(dst []byte, stride int, coefs []int16, quant *[64]int16, n int) {
	var rows [64]int32
	for i := range n {
		idctColumns(&rows, (*[64]int16)(coefs[64*i:]), quant)
		for y := range 8 {
			idctRow((*[8]byte)(dst[y*stride+8*i:]), (*[8]int32)(rows[8*y:]))
		}
	}
}

// anyBelow tells whether rows 1 to 7 hold anything but zeros.
func anyBelow(block *[64]int16) bool {
	for _, c := range block[8:] {
		if c != 0 {
			return true
		}
	}
	return false
}

// idctColumns is the first pass, over the columns. What rows holds afterwards
// is 4 times larger than the samples are.
func idctColumns(rows *[64]int32, c, q *[64]int16) {
	unused := uint(0) // bits at the upper end of the first row
	if !anyBelow(c) {
		unused = 18
	}
	for x := range 8 {
		r0 := int32(c[x]*q[x]) << unused >> unused
		if c[8+x]|c[16+x]|c[24+x]|c[32+x]|c[40+x]|c[48+x]|c[56+x] == 0 {
			v := saturate16(r0 * 4) // what follows gives that, too
			rows[x], rows[8+x], rows[16+x], rows[24+x], rows[32+x], rows[40+x], rows[48+x], rows[56+x] = v, v, v, v, v, v, v, v
			continue
		}
		s0, s1, s2, s3, s4, s5, s6, s7 := idct8(r0, int32(c[8+x]*q[8+x]), int32(c[16+x]*q[16+x]), int32(c[24+x]*q[24+x]),
			int32(c[32+x]*q[32+x]), int32(c[40+x]*q[40+x]), int32(c[48+x]*q[48+x]), int32(c[56+x]*q[56+x]), 1<<10)
		rows[x], rows[8+x], rows[16+x], rows[24+x] = saturate16(s0>>11), saturate16(s1>>11), saturate16(s2>>11), saturate16(s3>>11)
		rows[32+x], rows[40+x], rows[48+x], rows[56+x] = saturate16(s4>>11), saturate16(s5>>11), saturate16(s6>>11), saturate16(s7>>11)
	}
}

// idctRow is the second pass, over a row.
func idctRow(dst *[8]byte, r *[8]int32) {
	s0, s1, s2, s3, s4, s5, s6, s7 := idct8(r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], 1<<17)
	dst[0], dst[1], dst[2], dst[3] = sample(s0>>18), sample(s1>>18), sample(s2>>18), sample(s3>>18)
	dst[4], dst[5], dst[6], dst[7] = sample(s4>>18), sample(s5>>18), sample(s6>>18), sample(s7>>18)
}

// idct8 is the one-dimensional transform of values of 16 bits, 2^13 times as
// large as the orthonormal one times the root of 8, plus round.
func idct8(r0, r1, r2, r3, r4, r5, r6, r7, round int32) (s0, s1, s2, s3, s4, s5, s6, s7 int32) {
	const (
		f0298, f0390, f0541, f0765, f0899, f1175 = 2446, 3196, 4433, 6270, 7373, 9633
		f1501, f1847, f1961, f2053, f2562, f3072 = 12299, 15137, 16069, 16819, 20995, 25172
	)
	sum, dif := wrap16(r0+r4)<<13+round, wrap16(r0-r4)<<13+round
	p0, p1 := r2*(f0541+f0765)+r6*f0541, r2*f0541+r6*(f0541-f1847)
	e0, e3, e1, e2 := sum+p0, sum-p0, dif+p1, dif-p1

	a, b := wrap16(r7+r3), wrap16(r5+r1)
	z3, z4 := a*(f1175-f1961)+b*f1175, a*f1175+b*(f1175-f0390)
	o0, o3 := r7*(f0298-f0899)-r1*f0899+z3, r1*(f1501-f0899)-r7*f0899+z4
	o1, o2 := r5*(f2053-f2562)-r3*f2562+z4, r3*(f3072-f2562)-r5*f2562+z3
	return e0 + o3, e1 + o2, e2 + o1, e3 + o0, e3 - o0, e2 - o1, e1 - o2, e0 - o3
}

func wrap16(v int32) int32 { return int32(int16(v)) }

func saturate16(v int32) int32 { return max(-1<<15, min(1<<15-1, v)) }

// sample moves the middle of the range from 0 to 128 and saturates.
func sample(v int32) byte { return byte(max(0, min(255, v+128))) }
