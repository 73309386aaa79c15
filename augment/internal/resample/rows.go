package resample

import "shardtool/augment/internal/kernel"

// rowWindow holds the rows of one plane, resized horizontally, that the next
// rows of the output need. Each is made once; rows that are done with make
// place when the end of the window is reached.
type rowWindow struct {
	words  []int16
	stride int // words of a row, those that are padding included
	room   int // rows
	base   int // which row of the plane, counted from the first held, is first
	have   int // rows that are there
	end    int // behind the last row that is needed at all
}

// reset makes room for what any strip of height outputs needs at once, of rows
// before end.
func (w *rowWindow) reset(d *kernel.Down, end, height, stride int) {
	most := 0
	for y := 0; y < height; y += stripRows {
		last := min(y+stripRows, height) - 1
		most = max(most, int(d.First[last]-d.First[y])+(d.N+1)&^1)
	}
	// Twice the room halves the moving; Rows more let rows be made in groups.
	w.stride, w.room, w.end = stride, 2*(most+kernel.Rows), end
	w.words = grow(w.words, w.room*stride)
	w.base, w.have = int(d.First[0]), 0
}

// fill makes the rows that outputs y to y+n need.
func (w *rowWindow) fill(p *Plane, a *kernel.Across, d *kernel.Down, y, n int) {
	first, need := int(d.First[y]), int(d.First[y+n-1])+(d.N+1)&^1
	next := w.base + w.have
	if need-w.base > w.room || next < first {
		drop := min(first-w.base, w.have)
		copy(w.words, w.words[drop*w.stride:w.have*w.stride])
		w.have -= drop
		w.base += drop
		if w.have == 0 {
			w.base, next = first, first
		}
	}
	// Rows are made in whole groups, ahead of need, while there are any.
	count := (min(need, w.end) - next + kernel.Rows - 1) / kernel.Rows * kernel.Rows
	if count = min(count, w.end-next, w.room-w.have); count <= 0 {
		return
	}
	a.Run(w.words[w.have*w.stride:], w.stride, p.Pix[next*p.Stride:], p.Stride, count)
	w.have += count
}

// down makes outputs y to y+n, into consecutive rows of dst.
func (w *rowWindow) down(d *kernel.Down, dst []int16, y, n int) {
	d.Run(dst, w.stride, w.words, w.stride, w.base, y, n, w.stride)
}
