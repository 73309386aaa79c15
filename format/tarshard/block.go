package tarshard

import (
	"bytes"
	"encoding/binary"
)

// block is a header.
type block [blockSize]byte

func (b *block) name() []byte    { return cString(b[0:100]) }
func (b *block) mode() []byte    { return b[100:108] }
func (b *block) size() []byte    { return b[124:136] }
func (b *block) mtime() []byte   { return b[136:148] }
func (b *block) chksum() []byte  { return b[148:156] }
func (b *block) link() []byte    { return cString(b[157:257]) }
func (b *block) magic() []byte   { return b[257:263] }
func (b *block) prefix() []byte  { return cString(b[345:500]) }
func (b *block) sparseExt() bool { return b[482] != 0 } // of a GNU sparse header

// cString returns what stands before the first NUL.
func cString(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}

// ustarPrefix returns what goes before the name with a slash between them. Only
// POSIX headers have one; GNU's hold times there. star's ends 24 bytes earlier,
// where times stand too.
func (b *block) ustarPrefix() []byte {
	if string(b.magic()) != "ustar\x00" {
		return nil
	}
	if string(b[508:512]) == "tar\x00" {
		return cString(b[345:476])
	}
	return b.prefix()
}

func (b *block) zero() bool { return *b == block{} }

// sound reports whether the checksum holds: the sum of all bytes, those of the
// checksum's own field taken as spaces. Some old writers summed signed bytes.
func (b *block) sound() bool {
	want, fault := parseNumber(b.chksum())
	if fault != numberOK {
		return false
	}
	have := b.sum()
	if have == want {
		return have != 8*' ' // a block of NUL has no checksum field at all
	}
	return have-256*b.high() == want
}

// sum adds 8 bytes at a time: the even and the odd bytes of each word as four
// lanes of 16 bits, which 64 words of 2*255 cannot overflow.
func (b *block) sum() int64 {
	const even = 0x00ff00ff00ff00ff
	var lanes uint64
	for i := 0; i < blockSize; i += 8 {
		w := binary.LittleEndian.Uint64(b[i : i+8])
		lanes += w&even + w>>8&even
	}
	own := binary.LittleEndian.Uint64(b[148:156])
	return fold(lanes) - fold(own&even+own>>8&even) + 8*' '
}

func fold(lanes uint64) int64 {
	return int64(lanes&0xffff + lanes>>16&0xffff + lanes>>32&0xffff + lanes>>48)
}

// high counts the bytes outside of the checksum field that are negative as
// signed ones.
func (b *block) high() int64 {
	var n int64
	for i, c := range b {
		if c >= 0x80 && (i < 148 || i >= 156) {
			n++
		}
	}
	return n
}

// plausible reports whether a block in the midst of damage is a header: more
// than the checksum has to hold, for payloads are searched too.
func (b *block) plausible() bool {
	if !b.sound() || b[0] == 0 {
		return false
	}
	if n, fault := parseNumber(b.size()); fault != numberOK || n < 0 {
		return false
	}
	switch m := string(b.magic()); {
	case m == "ustar\x00" || m == "ustar ":
		return true
	case b[156] != 0 && (b[156] < '0' || b[156] > '7'):
		return false
	}
	for _, c := range b.name() {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// extends reports whether a block, which may be damaged, looks like an
// extension header: by its type, or by the names that they have.
func (b *block) extends() bool {
	switch b[156] {
	case 'x', 'X', 'L', 'K':
		return true
	}
	return string(b[:5]) == "././@"
}

// short reports whether the name in a header may stand for another one in an
// extension header, which writers do where it is too long or not ASCII.
func (b *block) short() bool {
	name := b.name()
	return len(name) >= 100 || len(b.ustarPrefix()) > 0 || !isPlain(name) || bytes.IndexByte(name, '?') >= 0
}
