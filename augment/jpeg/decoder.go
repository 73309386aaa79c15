package jpeg

import (
	"encoding/binary"
	"errors"
	"image"
	"sync"

	"shardtool/format"
)

// Options say how a Decoder decodes. The zero value and nil are fine.
type Options struct {
	Limits *format.Limits // Pixels and Scans; nil: defaults

	// Tolerant shows what there is of a truncated or damaged picture, as
	// libjpeg does with block smoothing off: blocks without data are mid-gray.
	// Decoder.Damaged then says that something was missing. Else the error says
	// what and where.
	Tolerant bool

	// Workers is how many goroutines decode one picture, where it has restart
	// markers that let them begin; 0: one.
	Workers int
}

// Decoder decodes JPEGs, one at a time. What it allocates is reused: once it
// has seen a picture of the kind and size, it allocates nothing, but for the
// goroutines of Workers. It is for one goroutine.
type Decoder struct {
	o      Options
	limits format.Limits

	w       walker
	fields  fields
	frame   Frame
	framed  bool
	quant   [4][64]int16
	defined [4]bool // which quantisation tables came
	dc, ac  [4]*table
	cache   tableCache
	std     [2][2]*table

	header   scanHeader
	scan     scan
	latched  [4][64]int16
	byComp   [4]*[64]int16
	one      sequential
	all      buffered
	others   []*sequential // of the further workers
	img      Image         // planes on the way to RGB
	colors   Colors
	turn     []byte // a picture on the way to be upright
	source   Source
	scaled   scaled
	damaged  bool
	interval int
}

// NewDecoder returns a decoder.
func NewDecoder(o *Options) *Decoder {
	d := &Decoder{}
	if o != nil {
		d.o = *o
	}
	d.limits = d.o.Limits.OrDefault()
	return d
}

// Damaged reports whether the last picture, decoded with Tolerant, was
// truncated or damaged in a part that was decoded.
func (d *Decoder) Damaged() bool { return d.damaged || d.one.short || d.all.short }

// Planes decodes the part r of a picture, in pixels as stored, and perhaps more
// around it, into planes. shrink is 1, or 2, 4 or 8 for a picture whose sides are
// that many times smaller, rounded up; r counts in its pixels then.
//
// A file is held against its structure up to its end; within the scans only
// what is decoded on the way to r is checked. data is not kept.
func (d *Decoder) Planes(img *Image, data []byte, r image.Rectangle, shrink int) error {
	defer func() { d.w.data, d.scan.file = nil, nil }()
	src, err := d.open(data)
	if err != nil {
		return err
	}
	m, err := d.scaled.begin(img, src, r, shrink)
	if err != nil {
		return err
	}
	return d.reconstruct(img, src, m)
}

// Coefficients decodes a picture up to its quantised coefficients. The Source
// is good until the next use of d, and data must stay as it is until then.
func (d *Decoder) Coefficients(data []byte) (Source, error) { return d.open(data) }

// open reads all up to the pixels, and of a picture of several scans those too.
func (d *Decoder) open(data []byte) (Source, error) {
	d.damaged, d.framed, d.interval = false, false, 0
	d.one.short, d.all.short = false, false
	d.fields.reset()
	d.defined = [4]bool{}
	d.dc, d.ac, d.scan.dc, d.scan.ac = [4]*table{}, [4]*table{}, [4]*table{}, [4]*table{}
	d.source = nil
	w := &d.w
	if err := w.start(data); err != nil {
		return nil, err
	}
	for {
		marker, s, err := w.next()
		if err == nil && marker != mEOI {
			err = d.segment(marker, s, data)
		}
		switch {
		case err != nil && d.o.Tolerant && d.source != nil && !errors.Is(err, format.ErrLimit):
			d.damaged = true
			return d.source, nil
		case err != nil:
			return nil, d.whereItEnds(err)
		case marker == mEOI && d.source == nil:
			return nil, corrupt(w.from, "the JPEG has no scan")
		case marker == mEOI:
			return d.source, d.complete()
		}
	}
}

// complete checks that every component had a scan.
func (d *Decoder) complete() error {
	if d.source != &d.all {
		return nil
	}
	for i := range d.frame.Count {
		if !d.all.seen[i] && d.o.Tolerant {
			d.damaged = true
		} else if !d.all.seen[i] {
			return corrupt(d.w.from, "no scan has component %d", d.frame.Components[i].ID)
		}
	}
	return nil
}

// whereItEnds adds to the error of a JPEG that ends before its end marker which
// rows are there.
func (d *Decoder) whereItEnds(err error) error {
	q := &d.one
	if d.source != q || format.Sentinel(err) != format.ErrTruncated {
		return err
	}
	last := d.frame.Cols*d.frame.Rows - 1
	if e := q.skipTo(last); e != nil {
		return e
	}
	if e := q.run(1, nil); e != nil {
		return e
	}
	return truncated(len(d.w.data), "all rows are there, but no end marker")
}

func (d *Decoder) segment(marker byte, s []byte, data []byte) error {
	at := d.w.from
	switch {
	case isFrame(marker):
		return d.startFrame(marker, s, data)
	case marker == mDHT:
		return d.defineCodes(s, at)
	case marker == mDQT:
		return d.defineQuant(s, at)
	case marker == mDRI:
		if len(s) != 2 {
			return corrupt(at, "a restart interval of %d bytes", len(s))
		}
		d.interval = int(binary.BigEndian.Uint16(s))
	case marker == mSOS:
		if !d.framed {
			return corrupt(at, "a scan without a frame header")
		}
		return d.startScan(s, data)
	case marker == mSOF55:
		return unsupported(at, "JPEG-LS (marker FFF7)")
	case marker == mDAC:
		return unsupported(at, "arithmetic coding (marker FFCC)")
	default:
		d.fields.app(marker, s)
	}
	return nil
}

func (d *Decoder) startFrame(marker byte, s, data []byte) error {
	at := d.w.from
	if d.framed {
		return corrupt(at, "a second frame header")
	}
	if err := d.fields.frame(marker, s, at); err != nil {
		return err
	}
	d.framed = true
	h := &d.fields.h
	if h.Height == 0 {
		scan := nextScan(data, d.w.at)
		height, err := findHeight(data, scan)
		if err != nil {
			return err
		}
		h.Height = height
	}
	d.frame.set(*h)
	return d.admit(data)
}

// admit refuses a picture that is too large, or that its bytes cannot hold: a
// block takes a bit at least.
func (d *Decoder) admit(data []byte) error {
	f, at := &d.frame, d.w.from
	if pixels := int64(f.Width) * int64(f.Height); pixels > d.limits.Pixels {
		return fault(format.ErrLimit, "byte %d of the JPEG: %dx%d pixels are more than %d", at, f.Width, f.Height, d.limits.Pixels)
	}
	if f.blocks()/8 > int64(len(data)) && !d.o.Tolerant {
		return truncated(len(data), "so many bytes cannot hold %dx%d pixels", f.Width, f.Height)
	}
	return nil
}

// nextScan returns where the entropy-coded data of the next scan begins.
func nextScan(data []byte, at int) int {
	w := walker{data: data, at: at}
	for {
		marker, _, err := w.next()
		if err != nil || marker == mSOS || marker == mEOI {
			return w.at
		}
	}
}

// defineCodes takes code tables: ( class and number 4+4 bits, counts 16, symbols )*.
func (d *Decoder) defineCodes(s []byte, at int) error {
	for len(s) > 0 {
		if len(s) < 17 {
			return corrupt(at, "a Huffman table of %d bytes", len(s))
		}
		class, number := s[0]>>4, s[0]&15
		n := 0
		for _, count := range s[1:17] {
			n += int(count)
		}
		if class > 1 || number > 3 || n > 256 || len(s) < 17+n {
			return corrupt(at, "Huffman table %02X of %d codes in %d bytes", s[0], n, len(s))
		}
		t := d.cache.get(s[1:17+n], &d.dc, &d.ac, &d.scan.dc, &d.scan.ac)
		if class == 0 {
			d.dc[number] = t
		} else {
			d.ac[number] = t
		}
		s = s[17+n:]
	}
	return nil
}

// defineQuant takes quantisation tables: ( precision and number 4+4 bits, 64 values of 1 or 2 bytes )*.
func (d *Decoder) defineQuant(s []byte, at int) error {
	for len(s) > 0 {
		wide, number := s[0]>>4, s[0]&15
		n := 64 << (wide & 1)
		if wide > 1 || number > 3 || len(s) < 1+n {
			return corrupt(at, "quantisation table %02X in %d bytes", s[0], len(s))
		}
		q := &d.quant[number]
		for k := range 64 {
			v := uint16(s[1+k])
			if wide == 1 {
				v = binary.BigEndian.Uint16(s[1+2*k:])
			}
			q[natural[k]] = int16(v)
		}
		d.defined[number] = true
		s = s[1+n:]
	}
	return nil
}

// startScan takes a scan's header and finds where it ends. The only scan of a
// frame is decoded as its rows are asked for, others at once.
func (d *Decoder) startScan(s, data []byte) error {
	at := d.w.from
	f := &d.frame
	if d.source == nil { // what comes later has no say
		f.Orientation, f.Color, f.Adobe = d.fields.h.Orientation, d.fields.colorSpace(), d.fields.h.Adobe
		f.RestartInterval = d.interval
	}
	sh := &d.header
	var err error
	if *sh, err = parseScan(&f.Header, s, at); err != nil {
		return err
	}
	if d.source == &d.one {
		return corrupt(at, "a further scan, where the first had all components")
	}
	buffer := f.Progressive || sh.count < f.Count
	if err := d.tables(sh, buffer); err != nil {
		return err
	}
	sc := &d.scan
	sc.file, sc.interval, sc.tolerant = data, d.interval, d.o.Tolerant
	pad := padStrict
	if d.o.Tolerant {
		pad = padTolerant
	}
	sc.data, sc.segs, d.w.at = unstuff(sc.data, sc.segs[:0], data, d.w.at, pad, d.mostSegments())
	if !buffer {
		for i := range f.Count {
			d.latched[i] = d.quant[f.Components[i].tq] // as it is now
			d.byComp[i] = &d.latched[i]
		}
		d.one.start(f, &d.byComp, sc)
		d.source = &d.one
		return nil
	}
	if d.source == nil {
		if err := d.all.start(f, at, len(data)); err != nil {
			return err
		}
		d.source = &d.all
	}
	for _, i := range sh.comps[:sh.count] {
		if !d.all.seen[i] {
			d.all.seen[i] = true
			d.all.quant[i] = d.quant[f.Components[i].tq]
		}
	}
	return d.all.decode(sh, sc, len(data), &d.limits)
}

// mostSegments is how many segments a scan can be made of: one for each restart
// interval, and some that are surplus. An interval that is longer than the scan
// has none after the first.
func (d *Decoder) mostSegments() int {
	if d.interval == 0 {
		return 1
	}
	const surplus = 64
	return int(min(d.frame.blocks()/int64(d.interval), 1<<40)) + surplus
}

// tables finds the tables of a scan: by component of the frame for a source
// that is not buffered, by place in the scan otherwise.
func (d *Decoder) tables(sh *scanHeader, buffer bool) error {
	progressive := d.frame.Progressive
	for p, i := range sh.comps[:sh.count] {
		if n := d.frame.Components[i].tq; !d.defined[n] {
			return corrupt(sh.at, "component %d uses quantisation table %d, which is not there", d.frame.Components[i].ID, n)
		}
		at := i
		if buffer {
			at = p
		}
		if !progressive || sh.from == 0 && sh.high == 0 {
			t := d.code(0, sh.dc[p])
			if err := t.usable(true, sh.dc[p], sh.at); err != nil {
				return err
			}
			d.scan.dc[at] = t
		}
		if !progressive || sh.from > 0 {
			t := d.code(1, sh.ac[p])
			if err := t.usable(false, sh.ac[p], sh.at); err != nil {
				return err
			}
			d.scan.ac[at] = t
		}
	}
	return nil
}

// code returns a code table: one of annex K where the file has none.
func (d *Decoder) code(class, number int) *table {
	if number > 3 {
		return nil
	}
	t := d.dc[number]
	if class == 1 {
		t = d.ac[number]
	}
	if t == nil && number < 2 {
		if d.std[class][number] == nil {
			d.std[class][number] = new(table)
			d.std[class][number].build(standardTables[class][number])
		}
		t = d.std[class][number]
	}
	return t
}

// reconstruct fills the planes, by several goroutines where restart markers
// let them begin.
func (d *Decoder) reconstruct(img *Image, src Source, m image.Rectangle) error {
	s := &d.scaled
	workers := min(d.o.Workers, m.Dy())
	if src == &d.one {
		if d.interval == 0 || d.o.Tolerant {
			workers = 1
		}
	}
	if workers <= 1 {
		return s.reconstruct(img, src, m, m.Min.Y, m.Max.Y)
	}
	if src == &d.one {
		for i := range d.frame.Count {
			d.scan.ac[i].skipTable() // made here, for the workers share it
		}
	}
	for len(d.others) < workers {
		d.others = append(d.others, new(sequential))
	}
	var all sync.WaitGroup
	errs := make([]error, workers)
	for i := range workers {
		from, to := m.Min.Y+i*m.Dy()/workers, m.Min.Y+(i+1)*m.Dy()/workers
		part := src
		if src == &d.one {
			d.others[i].start(&d.frame, &d.byComp, &d.scan)
			part = d.others[i]
		}
		all.Go(func() { errs[i] = s.reconstruct(img, part, m, from, to) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
