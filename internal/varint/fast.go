package varint

// Of the assembly.
const (
	stride = 60          // bytes from block to block
	reach  = 64 + 1 + 16 // bytes from the beginning of a block that are read
	usual  = 24          // places in dst that a block takes at least

	countStride = 54
	countReach  = 64
)

// decodeFast decodes some of the numbers that src begins with, perhaps none.
// All numbers of src end.
func decodeFast[T Int](dst []T, src []byte) (n, used int) {
	if len(src) >= reach && len(dst) >= usual {
		n, used = decodeBlocks(dst, src)
		dst, src = dst[n:], src[used:]
	}
	if len(src) >= reach+MaxLen || len(src) == 0 || len(dst) == 0 {
		return n, used
	}
	k, u := decodeLast(dst, src)
	return n + k, used + u
}

// decodeLast decodes the numbers of a src that is shorter than a block reaches,
// in a copy with zeros behind. If dst is short, through memory that is not.
func decodeLast[T Int](dst []T, src []byte) (n, used int) {
	var padded [stride + reach + MaxLen]byte
	copy(padded[:], src)
	size := reach
	if len(src) > 64 {
		size += stride
	}
	if len(dst) >= 2*64 {
		n, used = decodeBlocks(dst, padded[:size])
		return n - max(used-len(src), 0), min(used, len(src)) // less the zeros
	}
	var wide [2 * 64]T
	n, used = decodeBlocks(wide[:], padded[:size])
	n, used = n-max(used-len(src), 0), min(used, len(src))
	if n > len(dst) {
		return 0, 0
	}
	copy(dst, wide[:n])
	return n, used
}

func decodeBlocks[T Int](dst []T, src []byte) (n, used int) {
	switch d := any(dst).(type) {
	case []int64:
		return decode64AVX2(&d[0], len(d), &src[0], len(src))
	case []int32:
		return decode32AVX2(&d[0], len(d), &src[0], len(src))
	}
	panic("varint: no such type")
}
