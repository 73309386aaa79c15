package tfrecord

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

const (
	// Overhead is how many bytes the framing of a record takes.
	Overhead = headerSize + footerSize

	headerSize = 12 // length and its checksum
	footerSize = 4  // checksum of the payload
)

var table = crc32.MakeTable(crc32.Castagnoli)

// mask turns a CRC into what is stored, so that a record within a record does
// not check itself. The rotation and the constant are those of LevelDB's log.
func mask(c uint32) uint32 { return bits.RotateLeft32(c, -15) + 0xa282ead8 }

// payloadSum returns the stored checksum of a payload.
func payloadSum(p []byte) uint32 { return mask(castagnoli(p)) }

// lengthTable[i][b] is what byte b at place i of a length adds to its CRC; the
// CRC of eight zero bytes is folded into the first row. A CRC is linear, so
// that eight look-ups give it without the call, which for eight bytes costs
// more than its work (BenchmarkLengthSum).
var lengthTable = func() (t [8][256]uint32) {
	var p [8]byte
	zero := crc32.Update(0, table, p[:])
	for i := range t {
		for b := range t[i] {
			p[i] = byte(b)
			t[i][b] = crc32.Update(0, table, p[:]) ^ zero
		}
		p[i] = 0
	}
	for b := range t[0] {
		t[0][b] ^= zero
	}
	return t
}()

// lengthSum returns the stored checksum of a length.
func lengthSum(n uint64) uint32 {
	t := &lengthTable
	c := t[0][byte(n)] ^ t[1][byte(n>>8)]
	if n > 0xffff {
		c ^= t[2][byte(n>>16)] ^ t[3][byte(n>>24)] ^
			t[4][byte(n>>32)] ^ t[5][byte(n>>40)] ^ t[6][byte(n>>48)] ^ t[7][byte(n>>56)]
	}
	return mask(c)
}

// header reads the length of the frame that p begins with and reports whether
// its checksum holds. p has at least headerSize bytes.
func header(p []byte) (n uint64, ok bool) {
	n = binary.LittleEndian.Uint64(p)
	return n, lengthSum(n) == binary.LittleEndian.Uint32(p[8:])
}

// Sniff reports whether prefix, of at least 12 bytes, begins with a length and
// the checksum of that length. One in 2^32 files of another kind does.
func Sniff(prefix []byte) bool {
	if len(prefix) < headerSize {
		return false
	}
	_, ok := header(prefix)
	return ok
}

// AppendFrame appends the record of a payload, framing and all, to dst.
func AppendFrame(dst, payload []byte) []byte {
	dst = appendHeader(dst, len(payload))
	dst = append(dst, payload...)
	return binary.LittleEndian.AppendUint32(dst, payloadSum(payload))
}

func appendHeader(dst []byte, n int) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(n))
	return binary.LittleEndian.AppendUint32(dst, lengthSum(uint64(n)))
}
