//go:build !amd64 || noasm

package kernel

// noKernel is what the forms in assembly panic with where there are none. The
// level is Generic there, and none of them is called.
const noKernel = "kernel: no assembly in this build"

func (a *Across) fast(dst []int16, dstStride int, src []byte, srcStride, n int) { panic(noKernel) }

func (d *Down) fast(dst []int16, dstStride int, src []int16, srcStride int, first []int32, base, from, width int) {
	panic(noKernel)
}

func (a *Across) packGather()                                 { panic(noKernel) }
func (t *Triangle) fast(w *Weights, halved int)               { panic(noKernel) }
func colorFast(y, cb, cr []int16, center, limit int)          { panic(noKernel) }
func lumaFast(r, g, b []int16)                                { panic(noKernel) }
func limitFast(v []int16, limit int)                          { panic(noKernel) }
func interleaveFast(dst, r, g, b []int16)                     { panic(noKernel) }
func storeFloat32Fast(r *Rect, src []int16, n int, l *Lines)  { panic(noKernel) }
func storeFloat16Fast(r *Rect, src []int16, n int, l *Lines)  { panic(noKernel) }
func storeBFloat16Fast(r *Rect, src []int16, n int, l *Lines) { panic(noKernel) }
func storeBytesFast(r *Rect, src []int16, n, bits int)        { panic(noKernel) }
func storePixelsFast(dst []byte, r, g, b []int16, bits int)   { panic(noKernel) }
func streamed()                                               { panic(noKernel) }
