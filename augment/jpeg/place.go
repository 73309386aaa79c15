package jpeg

import "math"

// place is where the decoding of a scan stands: in which segment, and at which
// of its restarts.
type place struct {
	scan  *scan
	cur   cursor
	seg   int  // the segment that cur is in
	due   int  // number of the RST marker that comes next (tolerant)
	left  int  // MCUs until the next restart
	empty bool // nothing more comes of this segment: blocks stay as they are (tolerant)
	short bool // some data was missing or wrong (tolerant)
}

// begin goes to the first segment. Without restarts, what is left never ends.
func (p *place) begin(s *scan) {
	*p = place{scan: s, left: s.interval}
	if s.interval == 0 {
		p.left = math.MaxInt
	}
	p.cur.reset(&s.segs[0])
}

// wanted returns the marker that must end a segment at a restart, and whether
// it does.
func (p *place) wanted(seg int) (marker byte, ok bool) {
	marker = mRST0 + byte(seg&7)
	return marker, seg+1 < len(p.scan.segs) && p.scan.segs[seg].marker == marker
}

// enter goes to the beginning of a segment.
func (p *place) enter(seg int) {
	p.seg, p.left = seg, p.scan.interval
	p.cur.reset(&p.scan.segs[seg])
}

// damage takes note of what was wrong in a segment, and that nothing more comes
// of it if its data ran out.
func (p *place) damage() {
	p.empty = p.cur.overrun(&p.scan.segs[p.seg])
	if p.cur.bad != 0 || p.empty {
		p.short, p.cur.bad = true, 0
	}
}

// faulty reports whether bits were no code, or were taken that are not there.
func (p *place) faulty() bool { return p.cur.bad != 0 || p.cur.overrun(&p.scan.segs[p.seg]) }

// fault says what was wrong, where being the part of the picture or of the scan.
// beyond says that there were too many coefficients.
func (p *place) fault(where, beyond string) error {
	seg := &p.scan.segs[p.seg]
	used := min(p.cur.pos-int(p.cur.bits)/8, seg.to) - seg.from
	at := seg.sourceOf(p.scan.file, used)
	switch {
	case p.cur.overrun(seg) && (seg.marker == 0 || seg.marker == mEOI):
		return truncated(at, "the data ends, in %s", where)
	case p.cur.overrun(seg):
		return corrupt(at, "a marker FF%02X in %s", seg.marker, where)
	case p.cur.bad&noCode != 0:
		return corrupt(at, "near here, in %s, bits that are no Huffman code", where)
	}
	return corrupt(at, "near here, in %s, %s", where, beyond)
}

// endOf returns where in the file a segment ends, and whether the file does.
func (p *place) endOf(seg int) (at int, all bool) {
	s := &p.scan.segs[seg]
	at = s.sourceOf(p.scan.file, s.to-s.from)
	return at, at >= len(p.scan.file)
}

// resync goes on at a restart of a damaged scan as libjpeg does (jdmarker.c,
// jpeg_resync_to_restart), by the marker after the segment that was read: an RST
// marker that is due a little later leaves this interval without data, one that
// was due a little earlier is passed over, and any other is taken for the one
// that is due.
func (p *place) resync() {
	segs, due := p.scan.segs, p.due
	p.due = (due + 1) & 7
	p.left = p.scan.interval
	for {
		marker := segs[p.seg].marker
		n := int(marker) - mRST0
		switch {
		case p.seg+1 == len(segs), n == (due+1)&7, n == (due+2)&7:
			p.cur.reset(&segs[p.seg])
			p.cur.pos = segs[p.seg].to
			p.short = true
			return
		case marker < mSOF0, n == (due-1)&7, n == (due-2)&7:
			p.short = true
			p.seg++
			continue
		}
		p.short = p.short || n != due
		p.enter(p.seg + 1)
		p.empty = false
		return
	}
}
