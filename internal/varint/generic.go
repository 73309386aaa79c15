package varint

import (
	"encoding/binary"
	"math/bits"
)

// tops are the top bits of 8 bytes.
const tops = 0x8080808080808080

// decodeGeneric is Decode, where src may end within a number.
func decodeGeneric[T Int](dst []T, src []byte) (n, used int, err error) {
	for n < len(dst) && len(src)-used >= 64+8 {
		k, u := decodeBlock(dst[n:], (*[64 + 8]byte)(src[used:]))
		if n, used = n+k, used+u; k > 0 {
			continue
		}
		// Long numbers, or a fault.
		if k, u, err = decodeEach(dst[n:], src[used:], 8); err != nil {
			return n + k, used + u, err
		}
		n, used = n+k, used+u
	}
	k, u, err := decodeEach(dst[n:], src[used:], 0)
	return n + k, used + u, err
}

// decodeEach decodes one number after the other, until behind one of short bytes
// or less.
func decodeEach[T Int](dst []T, src []byte, short int) (n, used int, err error) {
	for n < len(dst) && used < len(src) {
		v, k := first(src[used:])
		switch {
		case k == 0 && len(src)-used >= MaxLen:
			return n, used, ErrLong
		case k == 0:
			return n, used, ErrTruncated
		case int64(T(v)) != v:
			return n, used, ErrRange
		}
		dst[n] = T(v)
		n, used = n+1, used+k
		if k <= short {
			break
		}
	}
	return n, used, nil
}

// decodeBlock decodes numbers of at most 8 bytes that end within the first 64.
// It finds where they end before it looks at any of them, so that it does not
// wait for one to know where the next begins, nor guess.
func decodeBlock[T Int](dst []T, p *[64 + 8]byte) (n, used int) {
	start := uint(0)
	for ends := lasts(p); ends != 0 && n < len(dst); ends &= ends - 1 {
		next := uint(bits.TrailingZeros64(ends)) + 1
		var v int64
		switch size := next - start; {
		case size <= 4:
			over := (32 - 8*size) % 32
			v = closed4(binary.LittleEndian.Uint32(p[start%64:]) << over >> over)
		case size <= 8:
			over := (64 - 8*size) % 64
			v = closed8(binary.LittleEndian.Uint64(p[start%64:]) << over >> over)
		default:
			return n, int(start)
		}
		if int64(T(v)) != v {
			return n, int(start)
		}
		dst[n] = T(v)
		n++
		start = next
	}
	return n, int(start)
}

// first returns the number that p begins with and how many bytes it takes, 0 if
// p does not begin with one.
func first(p []byte) (v int64, n int) {
	if len(p) < MaxLen {
		for k, b := range p {
			v |= int64(b&0x7F) << (7 * k)
			if b < 0x80 {
				return v, k + 1
			}
		}
		return 0, 0
	}
	w := binary.LittleEndian.Uint64(p)
	if end := ^w & tops; end != 0 {
		return closed8(w & (end ^ (end - 1))), bits.TrailingZeros64(end)/8 + 1
	}
	v = closed8(w) | int64(p[8]&0x7F)<<56
	switch {
	case p[8] < 0x80:
		return v, 9
	case p[9] < 0x80:
		return v | int64(p[9])<<63, 10
	}
	return 0, 0
}

// closed8 brings the lower 7 bits of 8 bytes together.
func closed8(w uint64) int64 {
	w = w&0x007F007F007F007F | w>>1&0x3F803F803F803F80
	w = w&0x00003FFF00003FFF | w>>2&0x0FFFC0000FFFC000
	return int64(w&0x0FFFFFFF | w>>4&0x00FFFFFFF0000000)
}

// closed4 brings those of 4 bytes together.
func closed4(w uint32) int64 {
	return int64(w&0x7F | w>>1&0x3F80 | w>>2&0x1FC000 | w>>3&0xFE00000)
}

// lasts returns a bit for each of the first 64 bytes of p: set for the last byte
// of a number.
func lasts(p *[64 + 8]byte) (m uint64) {
	for i := 0; i < 64; i += 8 {
		end := ^binary.LittleEndian.Uint64(p[i:]) & tops
		m |= end >> 7 * 0x0102040810204080 >> 56 << i // the product's top byte has all 8 bits
	}
	return m
}

// countGeneric is Count of src from place at on, where what stands before may
// end within a number.
//
// Eight bytes are looked at at once: a byte with a clear top bit ends a number,
// and a row of set ones longer than nine is a fault.
func countGeneric(src []byte, at int) (n int, ok bool) {
	row := 0 // set top bits right before p
	for row < at && src[at-row-1] >= 0x80 {
		row++
	}
	p := src[at:]
	for len(p) >= 8 {
		ends := ^binary.LittleEndian.Uint64(p) & tops
		n += bits.OnesCount64(ends)
		if row += bits.TrailingZeros64(ends) / 8; row >= MaxLen {
			return n, false
		}
		if ends != 0 {
			row = bits.LeadingZeros64(ends) / 8
		}
		p = p[8:]
	}
	for _, b := range p {
		if b < 0x80 {
			n++
			row = 0
		} else if row++; row >= MaxLen {
			return n, false
		}
	}
	return n, row == 0
}
