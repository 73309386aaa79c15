package tarshard

import "io"

// streamBuffer is the size of the buffer over a stream. At each refill, on
// average half a sample is moved to the front; the larger the buffer, the less
// that is beside what is read. BenchmarkReader with samples of 100 KB reaches
// of a plain read loop's speed, by size: 256 KiB 0.74, 512 KiB 0.87, 1 MiB 0.92,
// 2 MiB 0.96. Shards are opened by the hundred, so 1 MiB.
const streamBuffer = 1 << 20

// firstBuffer is its size at first: small shards need no more.
const firstBuffer = 64 << 10

// scanBuffer is the size over an io.ReaderAt from which headers alone are
// wanted, leastAhead what is read at once after a payload was passed over: a
// page, for the next header is most of what will be used of it. It doubles
// while no payload is passed over.
const (
	scanBuffer = 64 << 10
	leastAhead = 4 << 10
)

// window is a buffer over a stream that can keep the payloads of a sample
// while reading on.
//
//	buf  [....| kept payloads |..dead..| not yet used |......]
//	          hold           keep      r              w
//
// Without a sample, hold = keep = r. What is dead (headers, payloads not
// wanted) is given up whenever room is made, so that what is kept decides how
// large the buffer has to be.
type window struct {
	src    io.Reader
	seeker io.Seeker   // src, if it is one
	at     io.ReaderAt // instead of src
	pos    int64       // at: of the next read
	size   int64       // at: where it ends
	ahead  int         // at: how much to read at once

	buf        []byte
	usual      int // as much of buf is used where a sample does not need more
	hold, keep int
	r, w       int
	pinned     bool
	waste      int   // how much of [hold:keep] is dead
	off        int64 // in the stream, of buf[r]
	err        error // what ended reading; io.EOF at the end
}

func (w *window) reset(src io.Reader) {
	seeker, _ := src.(io.Seeker)
	*w = window{src: src, seeker: seeker, buf: w.buf, usual: streamBuffer}
}

func (w *window) resetAt(at io.ReaderAt, size int64) {
	*w = window{at: at, size: size, ahead: leastAhead, buf: w.buf, usual: scanBuffer}
}

// pin begins to keep what will be kept.
func (w *window) pin() { w.hold, w.keep, w.waste, w.pinned = w.r, w.r, 0, true }

func (w *window) unpin() { w.pinned = false }

// peek returns the next n bytes, or fewer if reading has ended, without using
// them up. They are lent until the next call.
func (w *window) peek(n int) []byte {
	if w.w-w.r < n {
		w.fill(n)
	}
	return w.buf[w.r:min(w.r+n, w.w)]
}

// advance uses up n bytes that peek returned.
func (w *window) advance(n int) {
	w.r += n
	w.off += int64(n)
}

// take keeps n bytes that peek returned, uses them up and returns where they
// stand from hold.
func (w *window) take(n int) int {
	gap := w.r - w.keep
	if w.waste += gap; w.waste > w.usual {
		// Too much of what is kept would be headers: move the payload down.
		w.waste -= gap
		copy(w.buf[w.keep:], w.buf[w.r:w.r+n])
	} else {
		w.keep = w.r
	}
	pos := w.keep - w.hold
	w.advance(n)
	w.keep += n
	return pos
}

// kept returns what take kept.
func (w *window) kept(pos, n int) []byte {
	pos += w.hold
	return w.buf[pos : pos+n : pos+n]
}

// fill reads until n bytes are there or reading has ended.
func (w *window) fill(n int) {
	for empty := 0; w.w-w.r < n && w.err == nil; {
		w.makeRoom()
		end := len(w.buf)
		if most := max(w.usual, w.r+n+w.usual/4); end > most {
			end = most
		}
		if w.at != nil {
			end = min(end, w.w+max(w.ahead, n-(w.w-w.r)))
		}
		m, err := w.read(w.buf[w.w:end])
		w.w += m
		w.err = err
		if empty++; m > 0 {
			empty = 0
		} else if err == nil && empty == 100 {
			w.err = io.ErrNoProgress
		}
	}
}

// makeRoom sees to it that there is room behind what is read: it moves what is
// needed to the front where that frees something, and doubles a buffer that is
// full. Where many small reads fill one large need it moves once.
func (w *window) makeRoom() {
	if w.buf == nil {
		w.buf = make([]byte, firstBuffer)
	}
	front := 0
	if w.pinned {
		front = w.keep - w.hold
	}
	full := w.w == len(w.buf)
	if !full && (w.w < w.usual || w.r == front) {
		return
	}
	grow := full && len(w.buf) < w.usual
	if w.r > front {
		if w.pinned && w.hold > 0 {
			copy(w.buf, w.buf[w.hold:w.keep])
		}
		w.w = front + copy(w.buf[front:], w.buf[w.r:w.w])
		w.hold, w.keep, w.r = 0, front, front
	}
	if grow || len(w.buf)-w.w < len(w.buf)/8 {
		bigger := make([]byte, 2*len(w.buf))
		copy(bigger, w.buf[:w.w])
		w.buf = bigger
	}
}

func (w *window) read(p []byte) (int, error) {
	if w.at == nil {
		return w.src.Read(p)
	}
	p = p[:min(int64(len(p)), w.size-w.pos)]
	if len(p) == 0 {
		return 0, io.EOF
	}
	n, err := w.at.ReadAt(p, w.pos)
	w.pos += int64(n)
	w.ahead = min(2*w.ahead, w.usual)
	if err == io.EOF && n == len(p) {
		err = nil
	}
	return n, err
}

// skip uses up n bytes without keeping them, and returns how many there were.
func (w *window) skip(n int64) int64 {
	if here := int64(w.w - w.r); n <= here {
		w.advance(int(n))
		return n
	}
	done := int64(w.w - w.r)
	w.off += done
	w.w = w.r
	switch {
	case w.err != nil:
	case w.at != nil:
		step := min(n-done, w.size-w.pos)
		w.pos += step
		w.off += step
		w.ahead = leastAhead
		done += step
		if done < n {
			w.err = io.EOF
		}
	default:
		done += w.seek(n - done)
		done += w.discard(n - done)
	}
	return done
}

// seekFrom is how much has to be passed over to make the calls to seek pay.
const seekFrom = 256 << 10

// seek passes over as much of n bytes as there is in a stream that can seek.
func (w *window) seek(n int64) int64 {
	if w.seeker == nil || n < seekFrom {
		return 0
	}
	here, err1 := w.seeker.Seek(0, io.SeekCurrent)
	end, err2 := w.seeker.Seek(0, io.SeekEnd)
	if err1 != nil || err2 != nil || end < here {
		// A pipe or a device. Nothing has moved.
		w.seeker = nil
		return 0
	}
	step := min(n, end-here)
	if _, err := w.seeker.Seek(here+step, io.SeekStart); err != nil {
		w.err = err
		return 0
	}
	w.off += step
	return step
}

// discard reads n bytes and throws them away.
func (w *window) discard(n int64) int64 {
	done := int64(0)
	for done < n && w.err == nil {
		w.fill(1)
		m := min(n-done, int64(w.w-w.r))
		w.advance(int(m))
		done += m
	}
	return done
}

// damaged reports whether what ended reading is a fault of the bytes of the
// stream, such as a compressed stream that is cut, and not one of getting them.
func (w *window) damaged() bool {
	return w.err == io.EOF || streamFault(w.err) != nil
}

// readsAll reports whether passing over the rest of the stream means to read
// it, so that a decompressor in it checks its sum.
func (w *window) readsAll() bool { return w.at == nil && w.seeker == nil }
