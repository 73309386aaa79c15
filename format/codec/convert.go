package codec

import (
	"encoding/binary"
	"math"
	"unsafe"

	"shardtool/tensor"
)

var native = binary.NativeEndian

func isFloat(d tensor.DType) bool {
	switch d {
	case tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64:
		return true
	}
	return false
}

// converts tells whether elements of a type may become those of another, if
// their values allow it.
func converts(to, from tensor.DType) bool { return to == from || isFloat(to) || !isFloat(from) }

// chunk is how many elements are converted at a time, on the stack.
const chunk = 256

// convert writes elements of one type as another, both as a Dense has them, and
// returns -1, or which element does not fit. dst says how many they are.
func convert(dst []byte, to tensor.DType, src []byte, from tensor.DType) int {
	if to == from {
		copy(dst, src)
		return -1
	}
	if isFloat(from) {
		return convertFloats(dst, to, src, from)
	}
	var ints [chunk]int64
	wide, narrow := to.Size(), from.Size()
	for done := 0; len(dst) > 0; done += chunk {
		n := min(chunk, len(dst)/wide)
		bad := loadInts(ints[:n], src, from)
		if bad < 0 {
			bad = storeInts(dst, to, ints[:n])
		}
		if bad >= 0 {
			return done + bad
		}
		dst, src = dst[n*wide:], src[n*narrow:]
	}
	return -1
}

func convertFloats(dst []byte, to tensor.DType, src []byte, from tensor.DType) int {
	if to == tensor.Float32 && from.Size() == 2 { // as embeddings are kept
		into, ok1 := numbersIn[float32](dst)
		halves, ok2 := numbersIn[uint16](src)
		switch {
		case !ok1 || !ok2:
		case from == tensor.BFloat16:
			tensor.FromBFloat16(into, halves[:len(into)])
			return -1
		default:
			tensor.FromFloat16(into, halves[:len(into)])
			return -1
		}
	}
	var floats [chunk]float64
	wide, narrow := to.Size(), from.Size()
	for done := 0; len(dst) > 0; done += chunk {
		n := min(chunk, len(dst)/wide)
		loadFloats(floats[:n], src, from)
		if bad := storeFloats(dst, to, floats[:n]); bad >= 0 {
			return done + bad
		}
		dst, src = dst[n*wide:], src[n*narrow:]
	}
	return -1
}

// loadInts reads whole numbers. It returns -1, or which is no int64.
func loadInts(dst []int64, src []byte, from tensor.DType) int {
	switch from {
	case tensor.Int8:
		for i := range dst {
			dst[i] = int64(int8(src[i]))
		}
	case tensor.Uint8, tensor.Bool:
		for i := range dst {
			dst[i] = int64(src[i])
		}
	case tensor.Int16:
		for i := range dst {
			dst[i] = int64(int16(native.Uint16(src[2*i:])))
		}
	case tensor.Uint16:
		for i := range dst {
			dst[i] = int64(native.Uint16(src[2*i:]))
		}
	case tensor.Int32:
		for i := range dst {
			dst[i] = int64(int32(native.Uint32(src[4*i:])))
		}
	case tensor.Uint32:
		for i := range dst {
			dst[i] = int64(native.Uint32(src[4*i:]))
		}
	default:
		for i := range dst {
			dst[i] = int64(native.Uint64(src[8*i:]))
			if from == tensor.Uint64 && dst[i] < 0 {
				return i
			}
		}
	}
	return -1
}

// storeInts writes whole numbers as elements of a type. It returns -1, or which
// does not fit.
func storeInts(dst []byte, to tensor.DType, src []int64) int {
	switch to {
	case tensor.Int64:
		for i, v := range src {
			native.PutUint64(dst[8*i:], uint64(v))
		}
	case tensor.Uint64:
		for i, v := range src {
			if v < 0 {
				return i
			}
			native.PutUint64(dst[8*i:], uint64(v))
		}
	case tensor.Int32:
		for i, v := range src {
			if int64(int32(v)) != v {
				return i
			}
			native.PutUint32(dst[4*i:], uint32(v))
		}
	case tensor.Uint32:
		for i, v := range src {
			if int64(uint32(v)) != v {
				return i
			}
			native.PutUint32(dst[4*i:], uint32(v))
		}
	case tensor.Int16:
		for i, v := range src {
			if int64(int16(v)) != v {
				return i
			}
			native.PutUint16(dst[2*i:], uint16(v))
		}
	case tensor.Uint16:
		for i, v := range src {
			if int64(uint16(v)) != v {
				return i
			}
			native.PutUint16(dst[2*i:], uint16(v))
		}
	case tensor.Int8:
		for i, v := range src {
			if int64(int8(v)) != v {
				return i
			}
			dst[i] = byte(v)
		}
	case tensor.Uint8, tensor.Bool:
		most := int64(math.MaxUint8)
		if to == tensor.Bool {
			most = 1
		}
		for i, v := range src {
			if v < 0 || v > most {
				return i
			}
			dst[i] = byte(v)
		}
	default:
		return storeWhole(dst, to, src)
	}
	return -1
}

// storeWhole writes whole numbers as floats that are exactly them.
func storeWhole(dst []byte, to tensor.DType, src []int64) int {
	for i, v := range src {
		f := float64(v)
		fits := f < 1<<63 && int64(f) == v
		switch to {
		case tensor.Float64:
			native.PutUint64(dst[8*i:], math.Float64bits(f))
		case tensor.Float32:
			fits = fits && float64(float32(f)) == f
			native.PutUint32(dst[4*i:], math.Float32bits(float32(f)))
		default:
			h := toHalf(to, f)
			fits = fits && float64(fromHalf(to, h)) == f
			native.PutUint16(dst[2*i:], h)
		}
		if !fits {
			return i
		}
	}
	return -1
}

func loadFloats(dst []float64, src []byte, from tensor.DType) {
	switch from {
	case tensor.Float64:
		for i := range dst {
			dst[i] = math.Float64frombits(native.Uint64(src[8*i:]))
		}
	case tensor.Float32:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(native.Uint32(src[4*i:])))
		}
	default:
		loadHalves(dst, src, from)
	}
}

// loadHalves reads a chunk of a type of 16 bits.
func loadHalves(dst []float64, src []byte, from tensor.DType) {
	var halves [chunk]uint16
	var floats [chunk]float32
	h, f := halves[:len(dst)], floats[:len(dst)]
	for i := range h {
		h[i] = native.Uint16(src[2*i:])
	}
	if from == tensor.BFloat16 {
		tensor.FromBFloat16(f, h)
	} else {
		tensor.FromFloat16(f, h)
	}
	for i, v := range f {
		dst[i] = float64(v)
	}
}

// storeFloats writes floats as elements of a float type, rounded to the nearest.
// It returns -1, or which finite number would become an infinity.
func storeFloats(dst []byte, to tensor.DType, src []float64) int {
	switch to {
	case tensor.Float64:
		for i, v := range src {
			native.PutUint64(dst[8*i:], math.Float64bits(v))
		}
	case tensor.Float32:
		for i, v := range src {
			f := float32(v)
			if over(float64(f), v) {
				return i
			}
			native.PutUint32(dst[4*i:], math.Float32bits(f))
		}
	default:
		return storeHalves(dst, to, src)
	}
	return -1
}

// storeHalves writes a chunk as a type of 16 bits.
func storeHalves(dst []byte, to tensor.DType, src []float64) int {
	var halves [chunk]uint16
	var floats [chunk]float32
	h, f := halves[:len(src)], floats[:len(src)]
	for i, v := range src {
		f[i] = toOdd(v)
	}
	infinity := uint16(0x7c00)
	if to == tensor.BFloat16 {
		infinity = 0x7f80
		tensor.ToBFloat16(h, f)
	} else {
		tensor.ToFloat16(h, f)
	}
	for i, b := range h {
		if b&0x7fff == infinity && !math.IsInf(src[i], 0) {
			return i
		}
		native.PutUint16(dst[2*i:], b)
	}
	return -1
}

func over(rounded, v float64) bool { return math.IsInf(rounded, 0) && !math.IsInf(v, 0) }

// toHalf rounds to a type of 16 bits.
func toHalf(to tensor.DType, v float64) uint16 {
	f, h := [1]float32{toOdd(v)}, [1]uint16{}
	if to == tensor.BFloat16 {
		tensor.ToBFloat16(h[:], f[:])
	} else {
		tensor.ToFloat16(h[:], f[:])
	}
	return h[0]
}

func fromHalf(from tensor.DType, bits uint16) float32 {
	f, h := [1]float32{}, [1]uint16{bits}
	if from == tensor.BFloat16 {
		tensor.FromBFloat16(f[:], h[:])
	} else {
		tensor.FromFloat16(f[:], h[:])
	}
	return f[0]
}

// toOdd rounds to a float32 so that rounding that to the nearest of fewer bits
// gives what rounding v would: what is cut off stays visible in the last bit
// (Boldo and Melquiond, Emulation of a FMA and correctly rounded sums, 2008).
func toOdd(v float64) float32 {
	f := float32(v)
	if float64(f) == v || v != v || math.IsInf(float64(f), 0) {
		return f
	}
	b := math.Float32bits(f)
	switch {
	case b&1 == 1:
	case math.Abs(float64(f)) > math.Abs(v):
		b--
	default:
		b++
	}
	return math.Float32frombits(b)
}

// numbersIn returns memory as numbers, or false where it does not start at an
// address that suits them.
func numbersIn[T int64 | float32 | uint16](b []byte) ([]T, bool) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	switch {
	case len(b) < size:
		return nil, true
	case uintptr(unsafe.Pointer(&b[0]))%uintptr(size) != 0:
		return nil, false
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/size), true
}

// bytesOf returns numbers as their memory.
func bytesOf[T int64 | float32 | float64](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}
