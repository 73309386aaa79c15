//go:build !amd64 || noasm

package kernel

// Without assembly the level is Generic, and none of these is called.

func (a *Across) fast(dst []int16, dstStride int, src []byte, srcStride, n int) {}

func (d *Down) fast(dst []int16, dstStride int, src []int16, srcStride int, first []int32, base, from, width int) {
}

func (a *Across) packGather()                   {}
func (t *Triangle) fast(w *Weights, halved int) {}

func colourFast(y, cb, cr []int16, centre, limit int)         {}
func lumaFast(r, g, b []int16)                                {}
func limitFast(v []int16, limit int)                          {}
func interleaveFast(dst, r, g, b []int16)                     {}
func storeFloat32Fast(r *Rect, src []int16, n int, l *Lines)  {}
func storeFloat16Fast(r *Rect, src []int16, n int, l *Lines)  {}
func storeBFloat16Fast(r *Rect, src []int16, n int, l *Lines) {}
func storeBytesFast(r *Rect, src []int16, n, bits int)        {}
func storePixelsFast(dst []byte, r, g, b []int16, bits int)   {}
func streamed()                                               {}
