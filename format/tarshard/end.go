package tarshard

import (
	"io"

	"shardtool/format"
)

// endMarker stands at a block of NUL. It returns io.EOF where the archive ends
// here, nil where another one follows that is to be read, or the fault of what
// does follow. It reads to the end of a stream, so that what checks it further
// down gets to do so.
//
// Blocks of NUL may also be a hole: a part of the file that was never written
// or was zeroed. The archive goes on behind it, and what is an end and what is
// damage shows only there. See joined.
func (w *Walker) endMarker() error {
	from := w.win.off
	raw := w.zeroBlocks()
	zeros := (w.win.off - from) / blockSize
	w.marked = true
	switch {
	case allZero(raw): // nothing, or less than a block
		w.begun = true
		if zeros == 1 {
			return w.missingEnd()
		}
		w.win.advance(len(raw))
		return w.atEnd()
	case zeros == 1 && !w.begun:
		return w.wrongFormat(raw)
	case w.joined(raw, zeros) && (w.opts.Concatenated || w.opts.OnError != format.Resync):
		w.begun = true
		w.concatenated++
		if w.opts.Concatenated {
			w.marked = false
			w.global.reset()
			w.global.allMost = w.lim.Header
			w.archive = w.win.off
			return nil
		}
		return w.ignoreRest()
	}
	w.begun = true
	if w.searchHeader() {
		w.marked = false
		return w.corruptAt(from, "%d blocks of NUL stand before a header at %d: a hole, or the end of an archive to which another is joined", zeros, w.win.off)
	}
	w.garbage++
	if zeros == 1 {
		w.noEnd++ // half a marker
	}
	return w.atEnd()
}

// zeroBlocks passes over blocks of NUL and returns the block behind them, or
// what there is of one.
func (w *Walker) zeroBlocks() []byte {
	for {
		w.win.advance(blockSize)
		raw := w.win.peek(blockSize)
		if len(raw) < blockSize || !(*block)(raw).zero() {
			return raw
		}
	}
}

// usualRecord is what tar programs pad archives to, by default.
const usualRecord = 20 * blockSize

// joined reports whether an archive that ends with so many blocks of NUL is
// followed by another one: a header stands where programs end an archive,
// behind two blocks or at the end of a usual record. A hole that ends just
// there looks the same: who resynchronises, and does not know of several
// archives, does not take it for an end.
func (w *Walker) joined(raw []byte, zeros int64) bool {
	return zeros >= 2 && len(raw) == blockSize && (*block)(raw).plausible() &&
		(zeros == 2 || (w.win.off-w.archive)%usualRecord == 0)
}

// searchHeader passes over blocks until one is a header, before which it leaves
// the walker, and reports whether there was one.
func (w *Walker) searchHeader() bool {
	for {
		raw := w.win.peek(blockSize)
		if len(raw) < blockSize {
			w.win.advance(len(raw))
			return false
		}
		if (*block)(raw).plausible() {
			return true
		}
		w.win.advance(blockSize)
	}
}

// ignoreRest ends the archive before the end of the stream.
func (w *Walker) ignoreRest() error {
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
