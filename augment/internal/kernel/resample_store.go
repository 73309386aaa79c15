package kernel

import (
	"encoding/binary"
	"math"

	"shardtool/internal/half"
	"shardtool/internal/simd"
)

// Lines holds the scale and the bias of each column of a row of words, which
// recur after 24 columns: of one channel they are all the same, of three
// interleaved ones they take turns.
type Lines [48]float32

// Set takes the scale and bias of one value or of three in turns. Scales are
// those of words with bits fraction bits.
func (l *Lines) Set(bits int, scale, bias []float32) {
	for i := range 24 {
		c := i % len(scale)
		l[i] = scale[c] / float32(int(1)<<bits)
		l[24+i] = bias[c]
	}
}

// at is v*scale + bias, the product rounded.
func (l *Lines) at(column int, v int16) float32 {
	c := uint(column) % 24
	return float32(float32(v)*l[c]) + l[24+c]
}

// Rect is where StoreFloat32 and its kin write: rows of Columns values.
type Rect struct {
	Dst       []byte // from Offset on
	Offset    int    // of the first row
	Stride    int    // bytes from row to row, negative for bottom to top
	Rows      int
	Columns   int
	SrcStride int // words from row to row of the source
	// Stream says that floats may pass the caches by, where Dst suits that.
	// Streamed must be called before another goroutine learns of them.
	Stream bool
}

// Streamed waits for what was stored past the caches.
func Streamed() {
	if simd.Active() >= simd.AVX2 {
		streamed()
	}
}

// simd returns how many columns assembly makes, a multiple of unit, and checks
// that all that it touches is there; the generic form makes the rest.
func (r *Rect) simd(src []int16, size, unit int) int {
	n := r.Columns &^ (unit - 1)
	if simd.Active() < simd.AVX2 || n == 0 {
		return 0
	}
	end := r.Offset + (r.Rows-1)*r.Stride
	_ = r.Dst[min(r.Offset, end):][:max(r.Offset, end)-min(r.Offset, end)+n*size]
	_ = src[(r.Rows-1)*r.SrcStride+n-1]
	return n
}

// rest returns the columns from n on of row y: the words, and where they go as
// values of size bytes.
func (r *Rect) rest(src []int16, y, n, size int) ([]int16, []byte) {
	words := src[y*r.SrcStride+n : y*r.SrcStride+r.Columns]
	return words, r.Dst[r.Offset+y*r.Stride+size*n:][:size*len(words)]
}

// StoreFloat32 writes v*scale + bias as binary32, in the machine's byte order.
func StoreFloat32(r *Rect, src []int16, l *Lines) {
	n := r.simd(src, 4, 8)
	if n > 0 {
		storeFloat32Fast(r, src, n, l)
	}
	for y := range r.Rows {
		words, dst := r.rest(src, y, n, 4)
		for i, v := range words {
			if len(dst) < 4 {
				break // never; so dst needs no check of its bounds
			}
			binary.NativeEndian.PutUint32(dst, math.Float32bits(l.at(n+i, v)))
			dst = dst[4:]
		}
	}
}

// StoreFloat16 writes v*scale + bias, rounded to binary16.
func StoreFloat16(r *Rect, src []int16, l *Lines) {
	n := r.simd(src, 2, 8)
	if n > 0 {
		storeFloat16Fast(r, src, n, l)
	}
	for y := range r.Rows {
		words, dst := r.rest(src, y, n, 2)
		for i, v := range words {
			if len(dst) < 2 {
				break // never; so dst needs no check of its bounds
			}
			binary.NativeEndian.PutUint16(dst, half.Float16(l.at(n+i, v)))
			dst = dst[2:]
		}
	}
}

// StoreBFloat16 writes v*scale + bias, rounded to the upper half of a
// binary32. The values must be finite.
func StoreBFloat16(r *Rect, src []int16, l *Lines) {
	n := r.simd(src, 2, 8)
	if n > 0 {
		storeBFloat16Fast(r, src, n, l)
	}
	for y := range r.Rows {
		words, dst := r.rest(src, y, n, 2)
		for i, v := range words {
			if len(dst) < 2 {
				break // never; so dst needs no check of its bounds
			}
			binary.NativeEndian.PutUint16(dst, half.BFloat16(l.at(n+i, v)))
			dst = dst[2:]
		}
	}
}

// StoreBytes writes words with that many fraction bits rounded to bytes.
func StoreBytes(r *Rect, src []int16, bits int) {
	n := r.simd(src, 1, 8)
	if n > 0 {
		storeBytesFast(r, src, n, bits)
	}
	for y := range r.Rows {
		words, dst := r.rest(src, y, n, 1)
		for i, v := range words[:len(dst)] {
			dst[i] = roundByte(v, bits)
		}
	}
}

// StorePixels writes three rows of words as interleaved bytes. Columns are
// pixels.
func StorePixels(r *Rect, c [3][]int16, bits int) {
	for y := range r.Rows {
		dst := r.Dst[r.Offset+y*r.Stride:][:3*r.Columns]
		red, green, blue := c[0][y*r.SrcStride:], c[1][y*r.SrcStride:], c[2][y*r.SrcStride:]
		n := 0
		if simd.Active() >= simd.AVX2 {
			n = r.Columns &^ 15
			if n > 0 {
				storePixelsFast(dst, red[:n], green[:n], blue[:n], bits)
			}
		}
		for x := n; x < r.Columns; x++ {
			dst[3*x] = roundByte(red[x], bits)
			dst[3*x+1] = roundByte(green[x], bits)
			dst[3*x+2] = roundByte(blue[x], bits)
		}
	}
}

func roundByte(v int16, bits int) byte {
	return byte(min(max(saturate(int32(v)+1<<(bits-1))>>bits, 0), 255))
}

// Interleave writes the words of r, g and b in turns. Their length is one, a
// multiple of RowUnit, and dst has three times that.
func Interleave(dst, r, g, b []int16) {
	dst, g, b = dst[:3*len(r)], g[:len(r)], b[:len(r)]
	if simd.Active() >= simd.AVX2 {
		interleaveFast(dst, r, g, b)
		return
	}
	for i := range r {
		dst[3*i], dst[3*i+1], dst[3*i+2] = r[i], g[i], b[i]
	}
}
