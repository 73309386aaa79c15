package tarshard

import (
	"io"
	"maps"
	"time"

	"shardtool/format"
)

// Types of members, as Member.Type gives them.
const (
	TypeFile      = '0'
	TypeHardlink  = '1'
	TypeSymlink   = '2'
	TypeChar      = '3'
	TypeBlock     = '4'
	TypeDirectory = '5'
	TypeFifo      = '6'
)

// Member is one member of a tar archive.
type Member struct {
	Name       []byte // as stored, from the extension header if there is one
	Link       []byte // target of a link
	Type       byte   // as stored; TypeFile or TypeDirectory for the old type NUL, TypeFile for the contiguous file '7'
	Mode       int64  // permission bits; 0 where the header does not hold a number
	Offset     int64  // of the first block, extension headers included
	DataOffset int64  // of the payload
	Size       int64  // of the payload as stored, in bytes; 0 for types that have none
	Seconds    int64  // modification time, since 1970
	Nanos      int32  // goes on from Seconds
	Sparse     bool   // the payload is not the file but a map of it and what is not zero
}

// End returns the offset of the block after the payload.
func (m *Member) End() int64 { return m.DataOffset + padded(m.Size) }

// ModTime returns the modification time.
func (m *Member) ModTime() time.Time { return time.Unix(m.Seconds, int64(m.Nanos)).UTC() }

func padded(n int64) int64 { return (n + blockSize - 1) &^ (blockSize - 1) }

// maxSize is more than any archive holds; a size over it is ErrLimit, and the
// sum of an offset and a size cannot overflow.
const maxSize = 1 << 60

// Walker walks the members of a tar archive in order. It is for one goroutine.
type Walker struct {
	opts Options
	lim  format.Limits
	win  window

	m            Member
	name, link   []byte // what m lends
	local        extension
	global       extension
	left         int64 // of the payload of m, not read yet
	pad          int64 // after it
	begun        bool  // something valid was seen
	marked       bool  // the archive ended with a block of NUL at least
	archive      int64 // where it begins: not 0 only behind another one
	cutPad       bool  // the stream ended in the padding of m
	extends      bool  // there are extension headers in this archive
	headless     bool  // the fault took an extension header: the header that comes next lacks it
	zeros        int64 // blocks of NUL before where resync is
	members      int64
	globals      int64
	noEnd        int64
	garbage      int64
	concatenated int64
	err          error // sticky
}

// NewWalker returns a Walker over a decompressed stream. Payloads that are not
// read are passed over by seeking where r is an io.Seeker and that pays, else by
// reading. Of o it uses Shard, Limits, OnError and Concatenated. o may be nil.
func NewWalker(r io.Reader, o *Options) *Walker {
	w := new(Walker)
	w.Reset(r, o)
	return w
}

// NewWalkerAt returns a Walker over the first size bytes of ra, which it reads
// only where headers stand: its cost is bounded by the number of members.
func NewWalkerAt(ra io.ReaderAt, size int64, o *Options) *Walker {
	w := new(Walker)
	w.init(o)
	w.win.resetAt(ra, size)
	return w
}

// Reset makes w read another stream, with the buffers it has.
func (w *Walker) Reset(r io.Reader, o *Options) {
	w.init(o)
	w.win.reset(r)
	w.win.off = w.opts.Base
}

func (w *Walker) init(o *Options) {
	local, global := w.local, w.global
	local.reset()
	global.reset()
	*w = Walker{win: w.win, name: w.name, link: w.link, local: local, global: global}
	if o != nil {
		w.opts = *o
	}
	w.lim = w.opts.Limits.OrDefault()
	w.global.allMost = w.lim.Header
}

// Next passes over what is left of the current member and returns the next
// one, lent until the call after. At the end of the archive it returns io.EOF,
// which then is final, as is every error.
func (w *Walker) Next() (*Member, error) {
	if w.err == nil {
		w.err = w.next()
	}
	if w.err != nil {
		return nil, w.err
	}
	return &w.m, nil
}

// Read reads from the payload of the current member. At its end it returns
// io.EOF, at an early end of the stream ErrTruncated.
func (w *Walker) Read(p []byte) (int, error) {
	if w.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), w.left)]
	if w.win.w == w.win.r {
		w.win.fill(1)
	}
	n := copy(p, w.win.buf[w.win.r:w.win.w])
	w.win.advance(n)
	w.left -= int64(n)
	if n == 0 && len(p) > 0 {
		return 0, w.early()
	}
	return n, nil
}

// Offset returns how many bytes of the stream have been passed.
func (w *Walker) Offset() int64 { return w.win.off }

// Members returns how many members were seen, those that Reader skips and
// global headers included.
func (w *Walker) Members() int64 { return w.members + w.globals }

// Warnings returns the faults that were counted and read over. It is complete
// after Next returned io.EOF.
func (w *Walker) Warnings() map[format.Warning]int64 {
	m := make(map[format.Warning]int64)
	for k, n := range map[format.Warning]int64{
		format.NoEndMarker: w.noEnd, format.TrailingGarbage: w.garbage, format.Concatenated: w.concatenated,
	} {
		if n > 0 {
			m[k] = n
		}
	}
	return m
}

// Globals returns a copy of the records of the global pax headers seen so far,
// up to Limits.Header bytes of them.
func (w *Walker) Globals() map[string]string { return maps.Clone(w.global.all) }

// next reads headers up to that of the next member.
func (w *Walker) next() error {
	if err := w.finish(); err != nil {
		return err
	}
	if w.cutPad {
		return w.missingEnd()
	}
	w.headless = false
	start := w.win.off
	extended := false
	for {
		raw := w.win.peek(blockSize)
		if len(raw) < blockSize {
			return w.shortBlock(start, raw, extended)
		}
		b := (*block)(raw)
		if b[0] == 0 && b.zero() {
			if extended {
				return w.corruptAt(start, "an extension header without a member: the end marker follows at %d", w.win.off)
			}
			if err := w.endMarker(); err != nil {
				return err
			}
			start = w.win.off
			continue
		}
		if !b.sound() {
			return w.unsound(start, b)
		}
		w.begun = true
		var err error
		switch b[156] {
		case 'x', 'X', 'L', 'K':
			extended, w.extends = true, true
			err = w.extension(start, b)
		case 'g':
			err = w.extension(start, b)
			w.globals++
			if !extended {
				start = w.win.off
			}
		default:
			return w.header(start, b)
		}
		if err != nil {
			w.headless = true
			return err
		}
	}
}

// finish passes over what is left of the current member.
func (w *Walker) finish() error {
	if w.left > 0 {
		w.left -= w.win.skip(w.left)
		if w.left > 0 {
			return w.early()
		}
	}
	if w.pad > 0 {
		w.pad -= w.win.skip(w.pad)
		if w.pad > 0 {
			w.pad, w.cutPad = 0, true
		}
	}
	return nil
}

// early is the fault of a payload that the stream does not have to its end.
func (w *Walker) early() error {
	return w.ended(w.m.Offset, "member %q ends %d bytes early", clip(w.m.Name), w.left-int64(w.win.w-w.win.r))
}

// shortBlock is the end of a stream where less than a block is left.
func (w *Walker) shortBlock(start int64, raw []byte, extended bool) error {
	switch {
	case w.win.err != io.EOF:
		return w.ended(start, "no header, and no end marker")
	case extended:
		return w.ended(start, "the header that an extension header belongs to is missing")
	case len(raw) == 0, allZero(raw):
		return w.missingEnd()
	case !w.begun && !likeHeader(raw):
		return w.wrongFormat(raw)
	}
	return w.ended(start, "%d bytes of a header are missing", blockSize-len(raw))
}

// likeHeader reports whether the first bytes of a stream, less than a block,
// begin a header: a name and, as far as they go, NULs behind it.
func likeHeader(raw []byte) bool {
	name := cString(raw[:min(len(raw), 100)])
	if len(name) == 0 || len(name) == len(raw) {
		return false
	}
	for _, c := range name {
		if c < ' ' {
			return false
		}
	}
	return len(raw) < 108 || numberLike(raw[100:108])
}

func numberLike(b []byte) bool {
	_, fault := parseNumber(b)
	return fault == numberOK
}

// missingEnd ends an archive that has no end marker.
func (w *Walker) missingEnd() error {
	if w.win.err != io.EOF {
		return w.ended(w.win.off, "no end marker")
	}
	w.noEnd++
	return io.EOF
}

// unsound is the fault of a block that is no header.
func (w *Walker) unsound(start int64, b *block) error {
	w.headless = b.extends()
	if !w.begun && string(b.magic()[:5]) != "ustar" {
		return w.wrongFormat(b[:])
	}
	if w.win.off != start {
		return w.corruptAt(start, "the checksum of the header at %d, behind an extension header, does not hold", w.win.off)
	}
	return w.corruptAt(start, "the checksum of the header does not hold")
}

func (w *Walker) wrongFormat(raw []byte) error {
	if looks := format.LooksLike(raw); looks != "" {
		return format.Errorf(format.ErrWrongFormat, w.at(w.opts.Base), "not a tar archive: it looks like %s", looks)
	}
	return format.Errorf(format.ErrWrongFormat, w.at(w.opts.Base), "not a tar archive: it does not begin with a header")
}

// extension reads an extension header and its payload.
func (w *Walker) extension(start int64, b *block) error {
	kind := b[156]
	size, fault := parseNumber(b.size())
	w.win.advance(blockSize)
	switch {
	case fault == numberJunk || size < 0:
		return w.corruptAt(start, "the size of an extension header is no size")
	case fault == numberHuge || size > w.lim.Header:
		return format.Errorf(format.ErrLimit, w.at(start), "an extension header of %d bytes, over the limit of %d", size, w.lim.Header)
	}
	payload := w.win.peek(int(padded(size)))
	if int64(len(payload)) < size {
		return w.ended(start, "an extension header ends %d bytes early", size-int64(len(payload)))
	}
	body := payload[:size]
	w.win.advance(len(payload))
	var wrong string
	var huge bool
	switch kind {
	case 'L':
		w.local.longName(body)
	case 'K':
		w.local.longLink(body)
	case 'g':
		wrong, huge = w.global.records(body)
	default:
		wrong, huge = w.local.records(body)
	}
	if huge {
		return format.Errorf(format.ErrLimit, w.at(start), "%s is over any limit", wrong)
	}
	if wrong != "" {
		return w.corruptAt(start, "%s", wrong)
	}
	return nil
}

// header makes the member of its header.
func (w *Walker) header(start int64, b *block) error {
	m := &w.m
	m.Offset, m.Type, m.Sparse = start, b[156], false
	m.Mode, _ = parseNumber(b.mode())
	m.Seconds, _ = parseNumber(b.mtime())
	m.Nanos = 0
	size, fault := parseNumber(b.size())
	w.name = append(w.name[:0], b.ustarPrefix()...)
	if len(w.name) > 0 {
		w.name = append(w.name, '/')
	}
	w.name = append(w.name, b.name()...)
	w.link = w.link[:0]
	if m.Type == TypeHardlink || m.Type == TypeSymlink {
		w.link = append(w.link, b.link()...)
	}
	more := m.Type == 'S' && string(b.magic()) == "ustar " && b.sparseExt()
	w.win.advance(blockSize)

	if w.global.any {
		size, fault = w.apply(&w.global, size, fault)
	}
	if w.local.any {
		size, fault = w.apply(&w.local, size, fault)
		w.local.reset()
	}
	m.Name, m.Link = w.name, w.link
	m.Sparse = m.Sparse || m.Type == 'S'
	w.normalise()
	m.DataOffset = w.win.off
	m.Size, w.left, w.pad = 0, 0, 0
	switch {
	case fault == numberJunk, size < 0:
		return w.corruptAt(start, "the size of member %q is no size", clip(m.Name))
	case fault == numberHuge || size > maxSize:
		return format.Errorf(format.ErrLimit, w.at(start), "member %q claims more bytes than any archive holds", clip(m.Name))
	}
	if more {
		if err := w.sparseHeaders(start); err != nil {
			return err
		}
	}
	if m.Type >= TypeHardlink && m.Type <= TypeFifo {
		size = 0 // whatever the header says, these have no payload
	}
	w.members++
	m.DataOffset = w.win.off
	m.Size, w.left, w.pad = size, size, padded(size)-size
	return nil
}

// apply lets an extension header override what the plain one says.
func (w *Walker) apply(e *extension, size int64, fault numberFault) (int64, numberFault) {
	if e.pathIs == set {
		w.name = append(w.name[:0], e.path...)
	}
	if e.linkIs == set {
		w.link = append(w.link[:0], e.link...)
	}
	if e.timeIs == set {
		w.m.Seconds, w.m.Nanos = e.sec, e.nsec
	}
	w.m.Sparse = w.m.Sparse || e.sparse
	if e.sizeIs == set {
		return e.size, numberOK
	}
	return size, fault
}

// normalise maps the types of older headers to the common ones.
func (w *Walker) normalise() {
	m := &w.m
	switch m.Type {
	case 0:
		// v7 has no type for folders but a slash behind the name.
		m.Type = TypeFile
		if n := len(m.Name); n > 0 && m.Name[n-1] == '/' {
			m.Type = TypeDirectory
		}
	case '7':
		m.Type = TypeFile
	}
}

// sparseHeaders passes over the blocks that continue the map of a GNU sparse
// member; they stand before the payload and do not count in its size.
func (w *Walker) sparseHeaders(start int64) error {
	for more := true; more; {
		b := w.win.peek(blockSize)
		if len(b) < blockSize {
			return w.ended(start, "the map of sparse member %q is cut", clip(w.m.Name))
		}
		more = b[504] != 0
		w.win.advance(blockSize)
	}
	return nil
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// clip keeps a long name from flooding a message.
func clip(name []byte) []byte {
	if len(name) > 256 {
		return name[:256]
	}
	return name
}
