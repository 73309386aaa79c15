package kernel

import "shardtool/internal/simd"

//go:generate go -C ../../../asm run . -kernel color -out ../augment/internal/kernel/color_amd64.s -stubs ../augment/internal/kernel/color_amd64.go -pkg kernel

// The way from YCbCr of full range (ITU-T T.871, JFIF) to RGB is libjpeg's
// (jdcolor.c): with u and v the chroma less 128, in units of 2^-16,
//
//	R = Y                 + round(1.40200 v)
//	G = Y + round(-0.34414 u - 0.71414 v)
//	B = Y + round( 1.77200 u)
//
// rounded to the nearest, halves up, and saturated.
const (
	crToR, cbToB = 91881, 116130
	cbToG, crToG = -22554, -46802
	oneHalf      = 1 << 15
)

func rgb(y, cb, cr byte) (r, g, b byte) {
	v, u, w := int32(y), int32(cb)-128, int32(cr)-128
	return clamp(v + (crToR*w+oneHalf)>>16), clamp(v + (cbToG*u+crToG*w+oneHalf)>>16), clamp(v + (cbToB*u+oneHalf)>>16)
}

func clamp(v int32) byte { return byte(max(0, min(255, v))) }

// YCbCrToRGB writes n pixels of three bytes each. dst may not overlap y, cb
// and cr.
func YCbCrToRGB(dst, y, cb, cr []byte, n int) {
	dst, y, cb, cr = dst[:3*n], y[:n], cb[:n], cr[:n]
	if simd.Active() < simd.AVX2 || n < 32 {
		ycbcrGeneric(dst, y, cb, cr)
		return
	}
	whole := n &^ 31
	ycbcrAVX2(&dst[0], &y[0], &cb[0], &cr[0], whole)
	if at := n - 32; whole < n {
		ycbcrAVX2(&dst[3*at], &y[at], &cb[at], &cr[at], 32)
	}
}

func ycbcrGeneric(dst, y, cb, cr []byte) {
	cb, cr = cb[:len(y)], cr[:len(y)]
	for i, v := range y {
		if len(dst) < 3 {
			break // never; so dst needs no check of its bounds
		}
		dst[0], dst[1], dst[2] = rgb(v, cb[i], cr[i])
		dst = dst[3:]
	}
}

// YCbCrToPlanes writes n pixels into three planes. Any of them may be the
// memory of y, cb or cr.
func YCbCrToPlanes(r, g, b, y, cb, cr []byte, n int) {
	r, g, b = r[:n], g[:n], b[:n]
	y, cb, cr = y[:n], cb[:n], cr[:n]
	for i := range n {
		r[i], g[i], b[i] = rgb(y[i], cb[i], cr[i])
	}
}

// Sums upsamples chroma and converts to RGB a row at a time. It holds the rows
// of chroma between the two, so a value serves one caller at a time; the zero
// value is ready. Chroma must be at least one sample wide.
type Sums struct{ cb, cr []uint16 }

// RGB420 writes len(y) pixels of three bytes each of a row whose chroma is
// halved both ways: FancyH2V2, then YCbCrToRGB. near and far are as there, and
// of one length; y[i] goes with pixel off+i of the row that they make. dst may
// not overlap the others.
func (s *Sums) RGB420(dst, y, cbNear, cbFar, crNear, crFar []byte, off int) {
	s.row(dst, y, cbNear, cbFar, crNear, crFar, off, 8, 7)
}

// RGB422 is RGB420 where chroma is halved horizontally only: FancyH2, then
// YCbCrToRGB.
func (s *Sums) RGB422(dst, y, cb, cr []byte, off int) {
	// With 4 times the sample for 3*near+far, FancyH2 has 4 times its rounding.
	s.row(dst, y, cb, cb, cr, cr, off, 4, 8)
}

func (s *Sums) row(dst, y, cbNear, cbFar, crNear, crFar []byte, off int, even, odd int16) {
	if len(y) == 0 {
		return
	}
	dst = dst[:3*len(y)]
	lo, hi := max(0, off/2-1), min(len(cbNear), (off+len(y)-1)/2+2)
	s.cb = weigh(s.cb, cbNear[lo:hi], cbFar[lo:hi])
	s.cr = weigh(s.cr, crNear[lo:hi], crFar[lo:hi])
	off -= 2 * lo
	if off%2 == 1 {
		rgbPixel(dst, y[0], s.cb, s.cr, off, odd)
		dst, y, off = dst[3:], y[1:], off+1
	}
	if simd.Active() < simd.AVX2 || len(y) < 32 {
		rgbPairs(dst, y, s.cb, s.cr, off, even, odd)
		return
	}
	whole := len(y) &^ 31
	rgbH2AVX2(&dst[0], &y[0], &s.cb[off/2], &s.cr[off/2], even, odd, whole)
	if at := len(y)&^1 - 32; len(y)&^1 > whole {
		rgbH2AVX2(&dst[3*at], &y[at], &s.cb[(off+at)/2], &s.cr[(off+at)/2], even, odd, 32)
	}
	if last := len(y) - 1; last%2 == 0 {
		rgbPixel(dst[3*last:], y[last], s.cb, s.cr, off+last, even)
	}
}

// weigh returns 3*near+far, with the first and the last repeated.
func weigh(sums []uint16, near, far []byte) []uint16 {
	n := len(near)
	far = far[:n]
	if cap(sums) < n+2 {
		sums = make([]uint16, n+2+n/4)
	}
	sums = sums[:n+2]
	if simd.Active() >= simd.AVX2 && n >= 16 {
		whole := n &^ 15
		weighAVX2(&sums[1], &near[0], &far[0], whole)
		if at := n - 16; whole < n {
			weighAVX2(&sums[1+at], &near[at], &far[at], 16)
		}
	} else {
		weighGeneric(sums[1:], near, far)
	}
	sums[0], sums[n+1] = sums[1], sums[n]
	return sums
}

func weighGeneric(sums []uint16, near, far []byte) {
	far, sums = far[:len(near)], sums[:len(near)]
	for i, v := range near {
		sums[i] = 3*uint16(v) + uint16(far[i])
	}
}

// rgbPairs converts pixels from an even one on.
func rgbPairs(dst, y []byte, cb, cr []uint16, off int, even, odd int16) {
	first := off / 2
	pairs := len(y) / 2
	cb, cr = cb[first:], cr[first:]
	cb, cr = cb[:pairs+2], cr[:pairs+2]
	u0, u1, v0, v1 := uint32(cb[0]), uint32(cb[1]), uint32(cr[0]), uint32(cr[1])
	nextU, nextV := cb[2:][:pairs], cr[2:][:pairs]
	d, l := dst, y
	for i := range nextU {
		if len(d) < 6 || len(l) < 2 {
			break // never; so they need no check of their bounds
		}
		u2, v2 := uint32(nextU[i]), uint32(nextV[i])
		d[0], d[1], d[2] = rgb(l[0], byte((3*u1+u0+uint32(even))>>4), byte((3*v1+v0+uint32(even))>>4))
		d[3], d[4], d[5] = rgb(l[1], byte((3*u1+u2+uint32(odd))>>4), byte((3*v1+v2+uint32(odd))>>4))
		d, l = d[6:], l[2:]
		u0, u1, v0, v1 = u1, u2, v1, v2
	}
	if last := 2 * pairs; last < len(y) {
		rgbPixel(dst[3*last:], y[last], cb, cr, last, even)
	}
}

// rgbPixel converts pixel p. What lies between samples is rounded by adding
// round before the division by 16.
func rgbPixel(dst []byte, y byte, cb, cr []uint16, p int, round int16) {
	at := p>>1 + 1
	side := at - 1 + p&1*2
	u := (3*cb[at] + cb[side] + uint16(round)) >> 4
	v := (3*cr[at] + cr[side] + uint16(round)) >> 4
	d := (*[3]byte)(dst)
	d[0], d[1], d[2] = rgb(y, byte(u), byte(v))
}
