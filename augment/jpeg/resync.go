package jpeg

// resyncer finds where a damaged scan goes on at a restart.
type resyncer struct {
	segs  []segment
	seg   int  // that was read
	due   int  // number of the RST marker that should follow
	empty bool // the data of the segment ran out
	cur   *cursor
}

// resync does as libjpeg does (jdmarker.c, jpeg_resync_to_restart), by the
// marker after the segment that was read: an RST marker that is due a little
// later leaves this interval without data, one that was due a little earlier
// is passed over, and any other is taken for the one that is due. It reports
// whether anything was wrong.
func (r *resyncer) resync() (wrong bool) {
	due := r.due
	r.due = (due + 1) & 7
	for {
		marker := r.segs[r.seg].marker
		n := int(marker) - mRST0
		switch {
		case r.seg+1 == len(r.segs), n == (due+1)&7, n == (due+2)&7:
			seg := &r.segs[r.seg]
			r.cur.reset(seg)
			r.cur.pos = seg.to
			return true
		case marker < mSOF0, n == (due-1)&7, n == (due-2)&7:
			wrong = true
			r.seg++
			continue
		}
		r.seg++
		r.cur.reset(&r.segs[r.seg])
		r.empty = false
		return wrong || n != due
	}
}
