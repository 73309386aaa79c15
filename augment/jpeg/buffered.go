package jpeg

import (
	"strconv"

	"shardtool/format"
)

// buffered is the Source of a frame with several scans, progressive or not:
// the coefficients of the whole picture are kept, and each scan adds to them.
type buffered struct {
	f      *Frame
	quant  [4][64]int16 // as of the component's first scan
	seen   [4]bool      // whether a scan of the component came
	coefs  []int16
	comps  [4][]int16 // the part of coefs of each component
	known  []uint64   // by block: bit k is set if coefficient k, in the order of the file, is not zero (progressive)
	marks  [4][]uint64
	stride [4]int // coefficients in a row of blocks
	scans  int
	visits int64        // blocks gone through
	short  bool         // some data of a scan was missing or wrong (tolerant)
	now    bufferedScan // kept here, so that none is allocated
}

// Without tolerance, a frame has at most eight blocks for each byte of the file.
// With it, a part of them may be missing; a file of which nearly all is, and
// whose header claims much, is not worth the memory.
const (
	blocksPerByte = 64
	freeBlocks    = 1 << 15
)

// Bounds of work. A scan of a few bytes can go through all blocks of a large
// picture, so that a small file could keep a decoder busy for hours. Encoders
// write a dozen scans; blocks of one color cost a progressive file at least
// a byte for every 60 visits.
const (
	visitsPerByte = 1024
	freeVisits    = 1 << 20
)

// start makes room for the coefficients of a frame. at is where its first scan
// stands, in a file of so many bytes.
func (b *buffered) start(f *Frame, at, bytes int) error {
	if most := freeBlocks + blocksPerByte*int64(bytes); f.blocks() > most {
		return fault(format.ErrLimit, "byte %d of the JPEG: %dx%d pixels are %d blocks to keep, and %d bytes stand for at most %d", at, f.Width, f.Height, f.blocks(), bytes, most)
	}
	n := 0
	b.f, b.scans, b.visits, b.short, b.seen = f, 0, 0, false, [4]bool{}
	for i := range f.Count {
		b.stride[i] = 64 * f.Comps[i].H * f.Cols
		n += b.stride[i] * f.Comps[i].V * f.Rows
	}
	if cap(b.coefs) < n {
		b.coefs = make([]int16, n)
	}
	all := b.coefs[:n]
	clear(all)
	if cap(b.known) < n/64 {
		b.known = make([]uint64, n/64)
	}
	known := b.known[:n/64]
	clear(known)
	for i := range f.Count {
		m := b.stride[i] * f.Comps[i].V * f.Rows
		b.comps[i], all = all[:m], all[m:]
		b.marks[i], known = known[:m/64], known[m/64:]
	}
	return nil
}

func (b *buffered) Frame() *Frame             { return b.f }
func (b *buffered) Quant(comp int) *[64]int16 { return &b.quant[comp] }

func (b *buffered) Row(y, x0, _ int) (Strip, error) {
	var s Strip
	for i := range b.f.Count {
		c := &b.f.Comps[i]
		s.Stride[i] = b.stride[i]
		s.Coefs[i] = b.comps[i][y*c.V*b.stride[i]+64*c.H*x0 : (y+1)*c.V*b.stride[i]]
	}
	return s, nil
}

// scanHeader is what a scan says of itself (T.81, B.2.3).
type scanHeader struct {
	comps    [4]int // indexes into the frame's components
	count    int
	dc, ac   [4]int // numbers of tables, by place in the scan
	from, to int    // spectral selection
	high     int    // successive approximation: the bit before, 0 at first
	low      int
	at       int // where the marker stands
}

// parseScan reads a scan header:
//
//	components 1 | ( id 1, DC and AC table 4+4 bits )* | from 1 | to 1 | high and low 4+4 bits
func parseScan(h *Header, s []byte, at int) (scanHeader, error) {
	sh := scanHeader{at: at}
	if len(s) < 1 || s[0] < 1 || s[0] > 4 || len(s) != 4+2*int(s[0]) {
		return sh, corrupt(at, "a scan header of %d bytes", len(s))
	}
	sh.count = int(s[0])
	for i := range sh.count {
		id, tables := s[1+2*i], s[2+2*i]
		sh.comps[i] = -1
		for j := range h.Count {
			if h.Components[j].ID == id {
				sh.comps[i] = j
			}
		}
		if sh.comps[i] < 0 {
			return sh, corrupt(at, "a scan of a component %d that the frame does not have", id)
		}
		if i > 0 && sh.comps[i] <= sh.comps[i-1] {
			return sh, corrupt(at, "a scan has component %d twice, or not in the order of the frame", id)
		}
		sh.dc[i], sh.ac[i] = int(tables>>4), int(tables&15) // a scan may not use both
	}
	s = s[1+2*sh.count:]
	sh.from, sh.to, sh.high, sh.low = int(s[0]), int(s[1]), int(s[2]>>4), int(s[2]&15)
	if !h.Progressive {
		sh.from, sh.to, sh.high, sh.low = 0, 63, 0, 0 // other decoders do not mind either
		return sh, nil
	}
	bad := sh.low > 13 || sh.high != 0 && sh.low != sh.high-1
	if sh.from == 0 {
		bad = bad || sh.to != 0
	} else {
		bad = bad || sh.to < sh.from || sh.to > 63 || sh.count != 1
	}
	if bad {
		return sh, corrupt(at, "a progressive scan of %d components, coefficients %d to %d, bits %d to %d", sh.count, sh.from, sh.to, sh.high, sh.low)
	}
	return sh, nil
}

// bufferedScan is one scan's decoding into the kept coefficients.
type bufferedScan struct {
	*buffered
	place
	sh     *scanHeader
	eobrun int // blocks still to come that end at once (T.81, G.1.2.2)
	step   [1]step
}

// decode decodes a scan. Its tables are by place in the scan.
func (b *buffered) decode(sh *scanHeader, s *scan, bytes int, limits *format.Limits) error {
	if b.scans++; int64(b.scans) > limits.Scans {
		return fault(format.ErrLimit, "byte %d of the JPEG: more than %d scans", sh.at, limits.Scans)
	}
	q := &b.now
	*q = bufferedScan{buffered: b, sh: sh}
	q.begin(s)
	cols, rows := b.f.Cols, b.f.Rows
	if sh.count == 1 { // not interleaved: an MCU is one block, and only those with samples come
		c := &b.f.Comps[sh.comps[0]]
		cols, rows = c.Cols, c.Rows
	}
	work := int64(cols) * int64(rows)
	if sh.count > 1 {
		work = b.f.blocks()
	}
	b.visits += work
	if b.visits > freeVisits+visitsPerByte*int64(bytes) {
		return fault(format.ErrLimit, "byte %d of the JPEG: %d scans go through %d blocks, too many for %d bytes", sh.at, b.scans, b.visits, bytes)
	}
	for y := range rows {
		for x := 0; x < cols; {
			n, err := q.run(x, y, cols-x)
			if err != nil {
				return err
			}
			x += n
		}
	}
	b.short = b.short || q.place.short
	return nil
}

// run decodes up to n MCUs of row y from x on, and returns how many.
func (q *bufferedScan) run(x, y, n int) (int, error) {
	if q.left == 0 {
		if err := q.restart(y); err != nil {
			return 0, err
		}
	}
	n = min(n, q.left)
	if q.scan.tolerant {
		n = 1 // what follows missing data stays as it was
	}
	q.left -= n
	if q.empty {
		return n, nil
	}
	if q.sh.count == 1 {
		q.blocks(0, q.sh.comps[0], y*q.stride[q.sh.comps[0]]+64*x, n)
	} else {
		for m := range n {
			q.mcu(x+m, y)
		}
	}
	if q.scan.tolerant {
		q.damage()
	} else if q.faulty() {
		return n, q.fault(q.scanName(y), "more coefficients than a block has")
	}
	return n, nil
}

// mcu decodes an MCU of several components.
func (q *bufferedScan) mcu(x, y int) {
	for p := range q.sh.count {
		i := q.sh.comps[p]
		c := &q.f.Comps[i]
		for v := range c.V {
			q.blocks(p, i, (y*c.V+v)*q.stride[i]+64*x*c.H, c.H)
		}
	}
}

func (q *bufferedScan) scanName(y int) string {
	return "scan " + strconv.Itoa(q.scans) + " at row " + strconv.Itoa(y) + " of its blocks"
}

func (q *bufferedScan) restart(y int) error {
	q.eobrun = 0
	if q.scan.tolerant {
		q.resync()
		return nil
	}
	if want, ok := q.wanted(q.seg); !ok {
		at, all := q.endOf(q.seg)
		if all {
			return truncated(at, "the data ends, in %s", q.scanName(y))
		}
		return corrupt(at, "no restart marker FF%02X in %s", want, q.scanName(y))
	}
	q.enter(q.seg + 1)
	return nil
}

// blocks decodes what the scan says of n adjacent blocks of the component at
// place p of the scan, whose coefficients begin at at.
func (q *bufferedScan) blocks(p, comp, at, n int) {
	coefs, known := q.comps[comp][at:at+64*n], q.marks[comp][at/64:at/64+n]
	switch {
	case !q.f.Progressive:
		q.steps(p, comp, coefs)
	case q.sh.from == 0 && q.sh.high == 0:
		q.dcFirst(p, comp, coefs)
	case q.sh.from == 0:
		q.dcRefine(coefs)
	case q.sh.high == 0:
		q.acFirst(coefs, known)
	default:
		q.acRefine(coefs, known)
	}
}

func (q *bufferedScan) steps(p, comp int, coefs []int16) {
	q.step[0] = step{dc: q.scan.dc[p], ac: q.scan.ac[p], comp: comp, advance: 64}
	decodeBlocks(&q.cur, q.scan.data, q.step[:], coefs, len(coefs)/64)
}
