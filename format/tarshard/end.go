package tarshard

import (
	"io"

	"shardtool/format"
)

// endMarker stands at a block of NUL. It returns io.EOF where the archive ends
// here, nil where another one follows that is to be read, or the fault of what
// does follow. It reads to the end of a stream, so that what checks it further
// down gets to do so.
func (w *Walker) endMarker() error {
	w.win.advance(blockSize)
	w.marked = true
	raw := w.win.peek(blockSize)
	switch {
	case len(raw) == 0, len(raw) < blockSize && allZero(raw):
		w.begun = true
		return w.missingEnd()
	case len(raw) == blockSize && (*block)(raw).zero():
		w.begun = true
		w.win.advance(blockSize)
	case !w.begun:
		return w.wrongFormat(raw)
	default:
		w.noEnd++ // half a marker, then something else
	}
	return w.afterEnd()
}

// afterEnd looks at what follows an end marker.
func (w *Walker) afterEnd() error {
	for {
		raw := w.win.peek(blockSize)
		switch {
		case len(raw) == blockSize && (*block)(raw).zero():
			w.win.advance(blockSize)
			continue
		case allZero(raw): // less than a block
			w.win.advance(len(raw))
			return w.atEnd()
		case len(raw) == blockSize && (*block)(raw).sound():
			w.concatenated++
			if w.opts.Concatenated {
				w.marked = false
				w.global.reset()
				w.global.allMost = w.lim.Header
				return nil
			}
		default:
			w.garbage++
		}
		break
	}
	if w.win.readsAll() {
		w.win.skip(1 << 62)
		return w.atEnd()
	}
	return io.EOF
}

// atEnd is the end of the stream, behind the end marker: io.EOF, or what a
// decompressor found wrong there.
func (w *Walker) atEnd() error {
	if w.win.err == io.EOF {
		return io.EOF
	}
	return format.ReadError(w.win.err, w.at(w.win.off))
}

// resync passes over blocks until one is a header again, and reports whether
// there was one, before which it leaves the walker, or the stream has ended.
// Payloads are searched, too: where damage hits a member that is an archive
// itself, members of that archive may be taken for the shard's.
//
// If the header that it finds lacks an extension header, its name and size are
// not to be believed: it sets headless if the fault took one, or if the header
// is none itself, in an archive that has them or with a name that may be cut.
func (w *Walker) resync() bool {
	w.left, w.pad, w.cutPad = 0, 0, false
	w.local.reset()
	for w.zeros = 0; ; {
		raw := w.win.peek(blockSize)
		if len(raw) < blockSize {
			w.win.advance(len(raw))
			w.marked = w.zeros >= 2
			return false
		}
		b := (*block)(raw)
		switch {
		case b.zero():
			w.zeros++
		case b.plausible():
			w.headless = w.headless || !b.extends() && (w.extends || b.short())
			return true
		default:
			w.zeros = 0
		}
		w.win.advance(blockSize)
	}
}

// lastByte returns the offset behind what resync passed over at the end of the
// stream, without the end marker.
func (w *Walker) lastByte() int64 {
	if w.zeros < 2 {
		return w.win.off
	}
	return w.win.off&^(blockSize-1) - w.zeros*blockSize
}
