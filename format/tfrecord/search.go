package tfrecord

import (
	"encoding/binary"

	"shardtool/format"
)

// search passes over what follows until the next offset at which a frame
// holds, or the end of the stream, reports it as one loss because of err, and
// reports whether there is such a frame. records is what the loss counts if
// there is none.
func (t *Reader) search(records int64, err error) bool {
	start := t.End()
	var head [headerSize]byte
	copy(head[:], t.window())
	found := t.seek()
	if found || records == format.Unknown {
		records = spanned(head, t.End()-start)
	}
	t.lose(start, records, err)
	return found
}

// seek moves on to the next offset, after this one, at which a frame holds. If
// there is none it moves to the end of the stream and returns false.
func (t *Reader) seek() bool {
	for t.pos++; t.fill(Overhead); {
		if !t.candidate() {
			continue
		}
		n := binary.LittleEndian.Uint64(t.window())
		if t.fill(int(n)+Overhead) && t.holds(int(n)) {
			return true
		}
		t.pos++
	}
	t.pos = t.end
	return false
}

// candidate moves on to the next offset in the window at which a length has
// its checksum and is within the limit, and reports whether there is one.
// Otherwise fewer bytes than a frame has are left.
func (t *Reader) candidate() bool {
	w := t.window()
	for i := 0; i+Overhead <= len(w); i++ {
		if n := binary.LittleEndian.Uint64(w[i:]); n <= t.most && lengthSum(n) == binary.LittleEndian.Uint32(w[i+8:]) {
			t.pos += i
			return true
		}
	}
	t.pos += max(len(w)-Overhead+1, 0)
	return false
}

// spanned returns how many records a loss of size bytes is that begins with a
// damaged header: one, if the length or the checksum of the length says that
// its record is that long, and otherwise nobody knows.
func spanned(head [headerSize]byte, size int64) int64 {
	n := uint64(size - Overhead)
	if size >= Overhead && (binary.LittleEndian.Uint64(head[:]) == n || binary.LittleEndian.Uint32(head[8:]) == lengthSum(n)) {
		return 1
	}
	return format.Unknown
}
