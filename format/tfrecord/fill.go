package tfrecord

import "io"

// smallMove is what may be moved to the front at any time.
const smallMove = 4 << 10

// fill reads until the window has need bytes, and reports whether it has.
func (t *Reader) fill(need int) bool {
	for empty := 0; t.end-t.pos < need; {
		if t.readErr != nil {
			return false
		}
		t.room(need)
		free := t.buf[t.end:]
		// The rest of a large record is read exactly, together with the next
		// header: then nothing of its successor has to be moved to the front.
		if want := need - (t.end - t.pos); want >= len(t.buf)/2 && want+headerSize < len(free) {
			free = free[:want+headerSize]
		}
		n, err := t.r.Read(free)
		t.end += n
		if n > 0 {
			empty = 0
		} else if empty++; empty == 100 && err == nil {
			err = io.ErrNoProgress
		}
		t.readErr = err
	}
	return true
}

// room makes room behind the window, on the way to a window of need bytes. It
// moves no more than a few times what was used up since, and the buffer at
// most doubles, which takes as many bytes as it held: memory follows what has
// arrived, not what a length claims.
func (t *Reader) room(need int) {
	have := t.end - t.pos
	if t.pos > 0 && len(t.buf)-t.pos < need && (have <= smallMove || have/8 <= t.pos) {
		t.move(t.buf)
	}
	if t.end == len(t.buf) {
		t.move(make([]byte, min(2*len(t.buf), need+need/4)+headerSize))
	}
}

// move puts the window at the front of buf, which may be the one it is in.
func (t *Reader) move(buf []byte) {
	have := copy(buf, t.window())
	t.base += int64(t.pos)
	t.buf, t.pos, t.end = buf, 0, have
}
