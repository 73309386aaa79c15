package kernel

import "shardtool/internal/simd"

// The reduced transforms give a block of 4 by 4, 2 by 2 or one sample for each
// block of 8 by 8 coefficients: a picture at 1/2, 1/4 or 1/8 of its size. The
// arguments are those of IDCT, with dst of fewer rows and columns. They are
// those of the Independent JPEG Group (jidctred.c), which leave out the
// coefficients that a smaller picture cannot show, in the arithmetic of
// libjpeg-turbo's SIMD forms; see IDCT.

// IDCT4 turns n adjacent blocks into 4 by 4 samples each. Row and column 4 of
// the coefficients have no part in it.
func IDCT4(dst []byte, stride int, coefs []int16, quant *[64]int16, n int) {
	if n <= 0 {
		return
	}
	dst, coefs = dst[:3*stride+4*n], coefs[:64*n]
	if simd.Active() >= simd.AVX2 {
		idct4AVX2(&dst[0], stride, &coefs[0], &quant[0], n)
		return
	}
	idct4Generic(dst, stride, coefs, quant, n)
}

func idct4Generic(dst []byte, stride int, coefs []int16, quant *[64]int16, n int) {
	for i := range n {
		block := (*[64]int16)(coefs[64*i:])
		at := func(y, x int) int32 { return int32(block[8*y+x] * quant[8*y+x]) }
		wrap := !anyBelow4(block)
		var rows [4][8]int32
		for x := range 8 {
			if x == 4 {
				continue
			}
			first := at(0, x)
			if wrap {
				first = first << 18 >> 18
			}
			s := idct4(first, at(1, x), at(2, x), at(3, x), at(5, x), at(6, x), at(7, x))
			for y := range s {
				rows[y][x] = saturate16((s[y] + 1<<11) >> 12)
			}
		}
		for y := range 4 {
			r := &rows[y]
			s := idct4(r[0], r[1], r[2], r[3], r[5], r[6], r[7])
			d := (*[4]byte)(dst[y*stride+4*i:])
			for x := range s {
				d[x] = sample((s[x] + 1<<18) >> 19)
			}
		}
	}
}

// anyBelow4 tells whether the rows from 1 on that IDCT4 uses hold anything but
// zeros.
func anyBelow4(block *[64]int16) bool {
	for y := 1; y < 8; y++ {
		if y != 4 && *(*[8]int16)(block[8*y:]) != [8]int16{} {
			return true
		}
	}
	return false
}

// idct4 is one dimension of IDCT4, 2^14 times as large as what it returns for
// a picture of half the size.
func idct4(r0, r1, r2, r3, r5, r6, r7 int32) [4]int32 {
	const (
		f0211, f0509, f0601, f0765, f0899 = 1730, 4176, 4926, 6270, 7373
		f1061, f1451, f1847, f2172, f2562 = 8697, 11893, 15137, 17799, 20995
	)
	e := r2*f1847 - r6*f0765
	outer := r1*f2562 + r3*f0899 - r5*f0601 - r7*f0509
	inner := r1*f1061 - r3*f2172 + r5*f1451 - r7*f0211
	a, b := r0<<14+e, r0<<14-e
	return [4]int32{a + outer, b + inner, b - inner, a - outer}
}

// IDCT2 turns n adjacent blocks into 2 by 2 samples each, from the first and
// the odd rows and columns of the coefficients.
func IDCT2(dst []byte, stride int, coefs []int16, quant *[64]int16, n int) {
	if n <= 0 {
		return
	}
	dst, coefs = dst[:stride+2*n], coefs[:64*n]
	for i := range n {
		block := (*[64]int16)(coefs[64*i:])
		column := func(x int) (upper, lower int32) {
			at := func(y int) int32 { return int32(block[8*y+x] * quant[8*y+x]) }
			upper, lower = idct2(at(0), at(1), at(3), at(5), at(7))
			return (upper + 1<<12) >> 13, (lower + 1<<12) >> 13
		}
		var u, l [8]int32
		u[0], l[0] = column(0) // not saturated, unlike the others
		for x := 1; x < 8; x += 2 {
			u[x], l[x] = column(x)
			u[x], l[x] = saturate16(u[x]), saturate16(l[x])
		}
		for y, r := range [2]*[8]int32{&u, &l} {
			left, right := idct2(r[0], r[1], r[3], r[5], r[7])
			d := (*[2]byte)(dst[y*stride+2*i:])
			d[0], d[1] = sample((left+1<<19)>>20), sample((right+1<<19)>>20)
		}
	}
}

// idct2 is one dimension of IDCT2.
func idct2(r0, r1, r3, r5, r7 int32) (a, b int32) {
	const f0720, f0850, f1272, f3624 = 5906, 6967, 10426, 29692
	odd := r1*f3624 - r3*f1272 + r5*f0850 - r7*f0720
	return r0<<15 + odd, r0<<15 - odd
}

// IDCT1 turns n adjacent blocks into one sample each, the mean of the block.
// A mean beyond the range of a sample by more than 384 wraps, as the tables of
// libjpeg have it; no encoder writes one.
func IDCT1(dst []byte, stride int, coefs []int16, quant *[64]int16, n int) {
	for i := range n {
		mean := (int32(coefs[64*i])*int32(quant[0]) + 4) >> 3
		dst[i] = sample(mean << 22 >> 22)
	}
}
