//go:build amd64 && !noasm

package kernel

import "unsafe"

//go:generate go -C ../../../asm run . -kernel resample -out ../augment/internal/kernel/resample_amd64.s -stubs ../augment/internal/kernel/resample_amd64.go -pkg kernel

// fast resizes n rows, at most Rows. The assembly always makes Rows of them;
// where there are fewer, it makes the last one again.
func (a *Across) fast(dst []int16, dstStride int, src []byte, srcStride, n int) {
	groups := a.Stride / groupSize
	if a.form == runForm {
		for y := range n {
			resampleRuns(&dst[y*dstStride], &src[y*srcStride], &a.starts[0], &a.runs[0], groups, a.size)
		}
		return
	}
	var to [Rows]*int16
	var from [Rows]*byte
	for y := range Rows {
		row := min(y, n-1)
		to[y], from[y] = &dst[row*dstStride], &src[row*srcStride]
	}
	resampleGather(&to, &from, &a.starts[0], &a.table[0], groups, a.size)
}

func (a *Across) packGather() {
	resamplePack(&a.table[0], &a.starts[0], &a.First[0], &a.W[0], 4*a.Stride, a.Stride/groupSize, a.size)
}

func (t *Triangle) fast(w *Weights, halved int) {
	resampleTriangle((*byte)(unsafe.Pointer(t)), &w.First[0], &w.W[0], 4*w.Stride, w.Stride/groupSize, w.N, halved)
}

func (d *Down) fast(dst []int16, dstStride int, src []int16, srcStride int, first []int32, base, from, width int) {
	if d.N > narrowTaps {
		resampleVerticalWide(&dst[0], 2*dstStride, &src[0], 2*srcStride, &first[0], base, &d.W[from], 4*d.Stride, (d.N+1)&^1, len(first), width/RowUnit)
		return
	}
	resampleVertical(&dst[0], 2*dstStride, &src[0], 2*srcStride, &first[0], base, &d.W[from], 4*d.Stride, d.N, len(first), width/RowUnit)
}

func colorFast(y, cb, cr []int16, center, limit int) {
	resampleColor(&y[0], &cb[0], &cr[0], len(y)/16, center, limit)
}

func lumaFast(r, g, b []int16) { resampleGray(&r[0], &g[0], &b[0], len(r)/16) }

func limitFast(v []int16, limit int) { resampleLimit(&v[0], len(v)/16, limit) }

func interleaveFast(dst, r, g, b []int16) {
	resampleInterleave(&dst[0], &r[0], &g[0], &b[0], len(r)/8)
}

// streams reports whether r asks for and suits stores of size bytes that pass
// the caches by.
func (r *Rect) streams(size int) bool {
	at := uintptr(unsafe.Pointer(&r.Dst[r.Offset])) | uintptr(r.Stride)
	return r.Stream && at%uintptr(size) == 0
}

func storeFloat32Fast(r *Rect, src []int16, n int, l *Lines) {
	store := resampleStoreF32
	if r.streams(32) {
		store = resampleStreamF32
	}
	store(&r.Dst[r.Offset], r.Stride, &src[0], 2*r.SrcStride, r.Rows, n, (*[48]float32)(l))
}

func storeFloat16Fast(r *Rect, src []int16, n int, l *Lines) {
	store := resampleStoreF16
	if r.streams(16) {
		store = resampleStreamF16
	}
	store(&r.Dst[r.Offset], r.Stride, &src[0], 2*r.SrcStride, r.Rows, n, (*[48]float32)(l))
}

func storeBFloat16Fast(r *Rect, src []int16, n int, l *Lines) {
	store := resampleStoreBF16
	if r.streams(16) {
		store = resampleStreamBF16
	}
	store(&r.Dst[r.Offset], r.Stride, &src[0], 2*r.SrcStride, r.Rows, n, (*[48]float32)(l))
}

func streamed() { fence() }

func storeBytesFast(r *Rect, src []int16, n, bits int) {
	resampleStoreU8(&r.Dst[r.Offset], r.Stride, &src[0], 2*r.SrcStride, r.Rows, n, 1<<(bits-1), bits)
}

func storePixelsFast(dst []byte, r, g, b []int16, bits int) {
	resampleStoreU8x3(&dst[0], &r[0], &g[0], &b[0], len(r), 1<<(bits-1), bits)
}
