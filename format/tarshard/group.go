package tarshard

import (
	"bytes"
	"io"
	"math"
	"slices"

	"shardtool/format"
)

// part is a member that is a field of a sample.
type part struct {
	name    *fieldName // nil: given up for a later one of that name
	pos     int        // of the payload: in the window from hold, in group.linked, or in group.own
	linked  bool
	offset  int64 // of the member's first block
	data    int64 // of the payload in the stream
	size    int64
	seconds int64
	nanos   int32
	full    [2]int // name of the member in group.names, by Scanner
}

// group is the members of one key.
type group struct {
	key         []byte
	index       int64
	offset, end int64
	parts       []part
	seen        []*fieldName // of all members, those not wanted included
	names       []byte       // full names of members
	linked      []byte       // payloads that links led to
	own         []byte       // all payloads, once the window does not keep them
	size        int64        // bytes of names and payloads
	bad         error        // why it is not to be delivered
	why         reason
	forced      bool // it is the rest of a sample that damage cut in two
	given       bool // some part is given up
}

// compact removes parts that were given up.
func (c *group) compact() {
	if c.given {
		c.given = false
		c.parts = slices.DeleteFunc(c.parts, func(p part) bool { return p.name == nil })
	}
}

// grouper makes samples of members. It is what Reader and Scanner share.
type grouper struct {
	opts Options
	lim  format.Limits
	w    Walker
	keep bool // payloads

	table  fieldTable
	keys   keySet
	links  linkTable
	skips  tally
	shape  shape
	damage damage

	cur     group
	prev    []*fieldName // seen by the group before: most have the same
	open    bool         // cur is being collected
	late    bool         // cur.key came back; what else it has is late too
	groups  int64        // begun so far
	pending bool         // the member of w waits for the next group, as key and field say
	key     []byte
	field   []byte
	link    *target
	within  bool   // the member of w belongs to cur
	foreign bool   // the header that is bad belongs to another sample than cur
	out     *group // delivered
	pick    []int  // which parts of out the fields asked for are; -1: missing
	err     error  // sticky
	soft    error  // err, if the structure of the shard holds behind it
}

// resume leaves the sample, or the member, behind that err is about.
func (g *grouper) resume() bool {
	if g.err != nil && g.err == g.soft {
		g.err, g.soft = nil, nil
	}
	return g.err == nil
}

func (g *grouper) reset(o *Options, keep bool) {
	var opts Options
	if o != nil {
		opts = *o
	}
	known := g.table.names != nil && slices.Equal(opts.Fields, g.opts.Fields) && (opts.Fields == nil) == (g.opts.Fields == nil)
	*g = grouper{
		opts: opts, lim: opts.Limits.OrDefault(), w: g.w, keep: keep,
		table: g.table, keys: g.keys, links: linkTable{}, shape: shape{folds: g.shape.folds[:0]},
		cur: g.cur, prev: g.prev[:0], groups: g.groups, pick: g.pick[:0],
	}
	// The number of groups goes on, so that no field counts as seen already.
	g.shape.base = g.groups
	g.cur.begin()
	g.cur.seen = g.cur.seen[:0]
	g.keys.reset(g.lim.Keys)
	if !known {
		g.table.reset(opts.Fields)
	}
}

func (c *group) begin() {
	c.parts, c.names, c.linked = c.parts[:0], c.names[:0], c.linked[:0]
	c.size, c.bad, c.why, c.forced, c.given = 0, nil, kept, false, false
}

// next collects the next sample into g.out.
func (g *grouper) next() error {
	if g.damage.second {
		// A held sample went first.
		g.damage.second = false
		g.out = &g.cur
		return nil
	}
	g.w.win.unpin()
	if g.damage.resume && g.err == nil {
		g.damage.resume = false
		g.err = g.rescan()
	}
	for g.err == nil {
		done, err := g.step()
		if err != nil {
			g.err = err
		}
		if done {
			return nil
		}
	}
	return g.err
}

// step takes one member. It reports true where that made a sample complete; an
// error is what comes after it, if any.
func (g *grouper) step() (done bool, err error) {
	if g.pending {
		g.pending = false
		done, err = g.place(&g.w.m)
	} else {
		g.within = false
		if err = g.w.next(); err == nil {
			done, err = g.member(&g.w.m)
		}
	}
	switch {
	case err == nil:
		return done, nil
	case err == io.EOF:
		return g.atEnd()
	case err == g.err: // decided already
		return false, err
	default:
		return g.broken(err)
	}
}

// member sorts out what can be no field.
func (g *grouper) member(m *Member) (done bool, err error) {
	if g.damage.headless {
		g.damage.headless = false
		return false, g.w.finish()
	}
	why := kindOf(m)
	if why == kept || why == hardlink || why == symlink {
		name := m.Name
		if !g.opts.KeyRaw {
			name = clean(name)
		}
		var not reason
		if g.key, g.field, not = split(name, g.opts.LastDot); not != kept {
			why = not
		}
	}
	g.link = nil
	if why == hardlink || why == symlink {
		if g.link, err = g.links.follow(g, m); err != nil {
			g.err = err
			return false, err
		}
		if g.link != nil {
			why = kept
		}
	}
	if why != kept {
		g.skips[why]++
		return false, g.w.finish()
	}
	return g.place(m)
}

func kindOf(m *Member) reason {
	switch m.Type {
	case TypeFile, 'S':
		return kept
	case TypeHardlink:
		return hardlink
	case TypeSymlink:
		return symlink
	case TypeChar, TypeBlock:
		return device
	case TypeDirectory:
		return directory
	case TypeFifo:
		return fifo
	}
	return otherType
}

// place puts a member that has a key and a field where it belongs.
func (g *grouper) place(m *Member) (done bool, err error) {
	if (g.open || g.late) && bytes.Equal(g.key, g.cur.key) {
		if g.late {
			return false, g.tooLate(m)
		}
		return false, g.take(m)
	}
	if g.open {
		g.pending = true
		return g.close(m.Offset)
	}
	g.late = false
	cut := g.damage.suspect && bytes.Equal(g.key, g.cur.key)
	g.cur.key = append(g.cur.key[:0], g.key...)
	if g.keys.add(g.key) && !cut {
		return false, g.tooLate(m)
	}
	g.begin(m, cut)
	return false, g.take(m)
}

func (g *grouper) begin(m *Member, cut bool) {
	c := &g.cur
	c.begin()
	c.seen, g.prev = g.prev[:0], c.seen
	if g.table.full() {
		g.table.reset(g.opts.Fields)
		g.prev = g.prev[:0]
		g.shape.mixed = true
	}
	c.index, c.offset, c.forced = g.opts.First+g.groups-g.shape.base, m.Offset, cut
	g.groups++
	g.open = true
	g.w.win.pin()
}

// tooLate is about a member of a sample that was closed before.
func (g *grouper) tooLate(m *Member) error {
	g.late = true
	at := g.w.at(m.Offset)
	at.Key = string(g.key)
	err := format.Errorf(format.ErrDuplicate, at,
		"member %q comes after the end of its sample: the members of a key have to be adjacent", clip(m.Name))
	if g.opts.OnError == format.Stop {
		g.err, g.soft = err, err
		return err
	}
	g.flush(m.Offset)
	g.skips[duplicate]++
	g.lose(m.Offset, m.End(), format.Unknown, err)
	return g.w.finish()
}

// take adds a member to the sample.
func (g *grouper) take(m *Member) error {
	c := &g.cur
	g.within = true
	name := g.fieldName()
	c.seen = append(c.seen, name)
	if c.bad != nil {
		return g.w.finish()
	}
	if len(c.seen) > g.lim.Fields {
		return g.fault(overLimit, format.ErrLimit, "", "it has more than %d members", g.lim.Fields)
	}
	if m.Sparse && name.fold.wanted {
		return g.refuse(m)
	}
	if name.fold.sample == g.groups {
		if keep, err := g.repeated(m, name); err != nil || !keep {
			return err
		}
	}
	name.fold.sample, name.fold.part = g.groups, len(c.parts)
	if !name.fold.wanted {
		return g.w.finish()
	}
	p := part{name: name, offset: m.Offset, data: m.DataOffset, size: m.Size, seconds: m.Seconds, nanos: m.Nanos}
	if g.link != nil {
		p.data, p.size, p.linked = g.link.data, g.link.size, true
	}
	return g.add(m, p)
}

// fieldName looks at what the sample before had in this place first.
func (g *grouper) fieldName() *fieldName {
	if i := len(g.cur.seen); i < len(g.prev) && g.prev[i].name == string(g.field) {
		return g.prev[i]
	}
	return g.table.get(g.field)
}

// repeated decides about a field that the sample has already: whether the
// later one is kept.
func (g *grouper) repeated(m *Member, name *fieldName) (keep bool, err error) {
	c := &g.cur
	switch g.opts.OnDuplicate {
	case format.KeepFirst:
		g.skips[duplicate]++
		return false, g.w.finish()
	case format.KeepLast:
		g.skips[duplicate]++
		if name.fold.wanted {
			c.parts[name.fold.part].name, c.given = nil, true
		}
		return true, nil
	}
	first := name.name
	for _, n := range c.seen {
		if n.fold == name.fold {
			first = n.name
			break
		}
	}
	return false, g.faultAt(m.Offset, duplicate, format.ErrDuplicate, first, "member %q is the second of that field", clip(m.Name))
}

// refuse passes over a sparse member.
func (g *grouper) refuse(m *Member) error {
	at := g.sampleAt(m.Offset)
	at.Field = string(g.field)
	err := format.Errorf(format.ErrUnsupported, at, "sparse member %q: pack it again without --sparse", clip(m.Name))
	if g.opts.OnError == format.Stop {
		g.err, g.soft = err, err
		g.cur.bad, g.cur.why = err, sparse
		return err
	}
	g.skips[sparse]++
	g.lose(m.Offset, m.End(), format.Unknown, err)
	return g.w.finish()
}

// add reads the payload of a part, or passes over it where only the place is
// wanted.
func (g *grouper) add(m *Member, p part) error {
	c := &g.cur
	c.size += int64(len(p.name.name))
	if g.keep {
		c.size += p.size
		switch {
		case p.size > min(g.lim.Record, math.MaxInt-blockSize):
			return g.faultAt(m.Offset, overLimit, format.ErrLimit, p.name.name, "member %q has %d bytes, over the limit of %d", clip(m.Name), p.size, g.lim.Record)
		case c.size > min(g.lim.Sample, math.MaxInt-blockSize):
			return g.faultAt(m.Offset, overLimit, format.ErrLimit, p.name.name, "the sample has %d bytes or more, over the limit of %d", c.size, g.lim.Sample)
		}
	}
	var err error
	switch {
	case !g.keep:
		c.size += int64(len(m.Name))
		at := len(c.names)
		c.names = append(c.names, m.Name...)
		p.full = [2]int{at, len(c.names)}
		if c.size > g.lim.Sample {
			return g.fault(overLimit, format.ErrLimit, "", "the names of its members have more than %d bytes", g.lim.Sample)
		}
		err = g.w.finish()
	case p.linked:
		p.pos = len(c.linked)
		c.linked, err = g.links.read(g, c.linked, p.data, p.size)
	default:
		p.pos, err = g.w.take()
	}
	if err == nil {
		c.parts = append(c.parts, p)
	}
	return err
}

// take keeps the payload of the current member in the window, and returns
// where.
func (w *Walker) take() (pos int, err error) {
	whole := int(w.left + w.pad)
	body := w.win.peek(whole)
	if int64(len(body)) < w.left {
		return 0, w.early()
	}
	n := int(w.left)
	pos = w.win.take(n)
	w.win.advance(len(body) - n)
	w.left, w.pad, w.cutPad = 0, 0, len(body) < whole
	return pos, nil
}

func (g *grouper) sampleAt(offset int64) format.Location {
	at := g.w.at(offset)
	at.Record, at.Key = g.cur.index, string(g.cur.key)
	return at
}

// fault is one of the sample that is being collected; the structure of the
// shard is sound. Under Stop it ends reading, else the sample is left out.
func (g *grouper) fault(why reason, sentinel error, field, msg string, args ...any) error {
	return g.faultAt(g.cur.offset, why, sentinel, field, msg, args...)
}

func (g *grouper) faultAt(offset int64, why reason, sentinel error, field, msg string, args ...any) error {
	at := g.sampleAt(offset)
	at.Field = field
	err := format.Errorf(sentinel, at, msg, args...)
	g.cur.bad, g.cur.why = err, why
	if g.opts.OnError == format.Stop {
		g.err, g.soft = err, err
		return err
	}
	return g.w.finish()
}

// close ends the sample that was being collected, at the offset of what comes
// next, and reports whether it is to be delivered.
func (g *grouper) close(end int64) (done bool, err error) {
	c := &g.cur
	g.open = false
	c.end = end
	c.compact()
	if g.damage.suspect {
		g.damage.suspect = false
		if c.bad != nil || c.forced || g.verdict() != whole {
			return false, nil // part of the loss, which ends with it
		}
	}
	first := g.damage.holding && c.bad == nil && g.curHas(g.damage.fields)
	if first {
		g.damage.holding = false
	}
	g.flush(c.offset)
	if c.bad != nil {
		g.skips[c.why]++
		g.lose(c.offset, c.end, 1, c.bad)
		return false, nil
	}
	if ok, err := g.choose(); !ok || err != nil {
		return false, err
	}
	g.learn()
	g.out = c
	if first {
		g.out, g.damage.second = &g.damage.held, true
	}
	return true, nil
}

// choose picks the parts that were asked for, and reports whether the sample
// is to be delivered with them.
func (g *grouper) choose() (bool, error) {
	if g.table.all {
		return true, nil
	}
	g.pick = g.pick[:0]
	for i, alternatives := range g.table.asked {
		at := g.present(alternatives)
		if at >= 0 || g.opts.OnMissing == format.MissingFill {
			g.pick = append(g.pick, at)
			continue
		}
		if g.opts.OnMissing == format.MissingSkip {
			g.skips[missing]++
			return false, nil
		}
		err := g.lacks(format.ErrMissing, i)
		if g.opts.OnError == format.Stop {
			g.err, g.soft = err, err
			return false, err
		}
		g.skips[missing]++
		g.lose(g.cur.offset, g.cur.end, 1, err)
		return false, nil
	}
	return true, nil
}

// present returns the place among the parts of the first alternative that the
// sample has, or -1.
func (g *grouper) present(alternatives []*fieldFold) int {
	for _, f := range alternatives {
		if f.sample == g.groups {
			// Parts before it may have been given up, which moves it.
			for i := min(f.part, len(g.cur.parts)-1); i >= 0; i-- {
				if g.cur.parts[i].name.fold == f {
					return i
				}
			}
		}
	}
	return -1
}

// lacks is the fault of a sample without the i-th field that was asked for.
func (g *grouper) lacks(sentinel error, i int) *format.Error {
	at := g.sampleAt(g.cur.offset)
	at.Field = g.opts.Fields[i]
	return format.Errorf(sentinel, at, "no field %q; the sample has %s", g.opts.Fields[i], g.has())
}

// has lists the fields of the sample for a message.
func (g *grouper) has() string {
	const most = 32
	var b bytes.Buffer
	for i, n := range g.cur.seen {
		if i == most {
			b.WriteString(", …")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.Write(clip([]byte(n.name)))
	}
	if b.Len() == 0 {
		return "none"
	}
	return b.String()
}

// lose tells of a part that was passed over.
func (g *grouper) lose(from, to, records int64, err error) {
	if g.opts.OnLoss != nil {
		g.opts.OnLoss(format.Loss{Offset: from, Bytes: to - from, Records: records, Err: err})
	}
}
