package tarshard

import (
	"bytes"
	"io"

	"shardtool/format"
)

// verdict says whether a sample beside damage has all its members, as the
// package comment defines it.
type verdict uint8

const (
	unknown verdict = iota
	whole
	half
)

// shape is the fields that all samples so far had.
type shape struct {
	folds []*fieldFold
	known bool
	mixed bool  // they differ
	base  int64 // number of groups before the first of this shard
}

// damage is what is known of a damaged place while samples beside it are
// looked at.
type damage struct {
	on       bool // there is a loss to tell of
	from     int64
	err      error
	suspect  bool // the next group may lack its first members
	headless bool // the next member lacks its extension header
	resume   bool // a sample was delivered before the search goes on

	// The first sample of a shard has none before it to be judged by. It is
	// kept aside until one after the damage shows whether it is whole.
	holding bool
	held    group
	fields  []*fieldFold // of held
	second  bool         // held was delivered, and the sample after it is to be
}

// verdict judges the sample that is being collected.
func (g *grouper) verdict() verdict {
	if !g.table.all {
		for _, alternatives := range g.table.asked {
			if g.present(alternatives) < 0 {
				return half
			}
		}
		return whole
	}
	if !g.shape.known || g.shape.mixed {
		return unknown
	}
	for _, f := range g.shape.folds {
		if f.sample != g.groups {
			return half
		}
	}
	if len(g.cur.parts) != len(g.shape.folds) {
		return unknown
	}
	return whole
}

// learn compares the fields of a sample with those before.
func (g *grouper) learn() {
	s := &g.shape
	if s.mixed || !g.table.all {
		return
	}
	if !s.known {
		s.known = true
		for i := range g.cur.parts {
			s.folds = append(s.folds, g.cur.parts[i].name.fold)
		}
		return
	}
	s.mixed = !g.curHas(s.folds)
}

// curHas reports whether the sample has these fields and no others.
func (g *grouper) curHas(folds []*fieldFold) bool {
	if len(g.cur.parts) != len(folds) {
		return false
	}
	for _, f := range folds {
		if f.sample != g.groups {
			return false
		}
	}
	return true
}

// broken decides what comes after a fault of the structure: whether the sample
// that was being collected is delivered, and how reading goes on.
func (g *grouper) broken(err error) (done bool, _ error) {
	g.foreign = false
	err = g.locate(err)
	if g.fatal(err) {
		g.open = false
		return false, err
	}
	intact := g.open && !g.within && g.cur.bad == nil && !g.damage.suspect
	judged := unknown
	if intact {
		g.cur.compact()
		judged = g.verdict()
		if g.w.marked && judged != half {
			judged = whole // the fault is behind the end of the archive
		}
		if g.foreign && (judged != half || g.table.all) {
			judged = whole // as without the fault
		}
	}
	if g.opts.OnError == format.Resync {
		return g.passOver(err, intact, judged)
	}
	from := g.offsetOf(err)
	if intact && judged != half {
		done, _ = g.close(from)
	} else if g.open {
		from = g.cur.offset
		err = g.mention(err)
	}
	g.open = false
	if g.opts.OnError == format.Skip {
		g.skips[classOf(err)]++
		g.lose(from, max(from, g.w.win.off), format.Unknown, err)
	}
	return done, err
}

// fatal reports whether an error is none of the bytes: reading failed, or a
// decompressor reached its limit.
func (g *grouper) fatal(err error) bool {
	w := &g.w.win
	if w.err == nil || w.err == io.EOF {
		return false
	}
	return !w.damaged() || format.Sentinel(err) == format.ErrLimit
}

// locate adds what the grouper knows to an error of the walker.
func (g *grouper) locate(err error) error {
	e, ok := err.(*format.Error)
	if !ok {
		return err
	}
	if g.within {
		e.Record, e.Key, e.Field = g.cur.index, string(g.cur.key), string(g.field)
		return e
	}
	if e.Offset == g.w.m.Offset {
		g.locateHeader(e)
	}
	return e
}

// locateHeader looks at the name that was read from a header which is bad
// otherwise.
func (g *grouper) locateHeader(e *format.Error) {
	name := g.w.m.Name
	if !g.opts.KeyRaw {
		name = clean(name)
	}
	key, field, why := split(name, g.opts.LastDot)
	if why != kept {
		return
	}
	e.Key, e.Field = string(key), string(field)
	g.foreign = !bytes.Equal(key, g.cur.key)
	if g.open && !g.foreign {
		g.within = true
		e.Record = g.cur.index
	}
}

func (g *grouper) offsetOf(err error) int64 {
	if e, ok := err.(*format.Error); ok && e.Offset >= 0 {
		return e.Offset
	}
	return g.w.win.off
}

// mention says of an error that it costs the sample before it, too.
func (g *grouper) mention(err error) error {
	e, ok := err.(*format.Error)
	if !ok || g.within {
		return err
	}
	e.Detail += "; sample " + quote(g.cur.key) + " before it may not be whole and is left out"
	return e
}

func quote(key []byte) string { return `"` + string(clip(key)) + `"` }

func classOf(err error) reason {
	switch format.Sentinel(err) {
	case format.ErrTruncated:
		return truncated
	case format.ErrLimit:
		return overLimit
	}
	return corrupt
}

// passOver goes on behind damage.
func (g *grouper) passOver(err error, intact bool, judged verdict) (done bool, _ error) {
	d := &g.damage
	g.skips[classOf(err)]++
	from := g.offsetOf(err)
	d.drop()
	switch {
	case intact && judged == whole:
		done, _ = g.close(from)
	case intact && g.table.all && !g.shape.known && !g.shape.mixed && !d.on:
		d.hold(g)
	case g.open:
		from = g.cur.offset
	}
	g.open = false
	if !d.on {
		d.on, d.from, d.err = true, from, err
	}
	if done {
		d.resume = true
		return true, nil
	}
	return false, g.rescan()
}

// rescan searches for the next header.
func (g *grouper) rescan() error {
	d := &g.damage
	if g.w.resync() {
		d.headless, d.suspect = g.w.headless, true
		return nil
	}
	if format.Sentinel(d.err) == format.ErrWrongFormat {
		return d.err // not one header in it
	}
	if !g.w.win.damaged() {
		return format.ReadError(g.w.win.err, g.w.at(g.w.win.off))
	}
	g.flush(g.w.lastByte())
	return io.EOF
}

// flush tells of the loss, which ends where something sound begins. A sample
// that is still held is part of it.
func (g *grouper) flush(to int64) {
	d := &g.damage
	if !d.on {
		return
	}
	d.drop()
	d.on = false
	g.lose(d.from, to, format.Unknown, d.err)
}

// hold keeps the sample that was being collected aside.
func (d *damage) hold(g *grouper) {
	c, h := &g.cur, &d.held
	d.holding = true
	h.key = append(h.key[:0], c.key...)
	h.index, h.offset, h.end = c.index, c.offset, g.w.m.End()
	h.parts = append(h.parts[:0], c.parts...)
	h.names = append(h.names[:0], c.names...)
	h.own = h.own[:0]
	d.fields = d.fields[:0]
	for i := range h.parts {
		p := &h.parts[i]
		if g.keep {
			payload := g.payload(c, p)
			p.pos = len(h.own)
			h.own = append(h.own, payload...)
		}
		d.fields = append(d.fields, p.name.fold)
	}
}

// drop gives up the sample that is held: it is part of the loss.
func (d *damage) drop() {
	if d.holding {
		d.holding = false
		d.from = d.held.offset
	}
}

// nothing is an empty payload; nil stands for a field that is missing.
var nothing = []byte{}

// payload returns the bytes of a part, lent.
func (g *grouper) payload(c *group, p *part) []byte {
	n := int(p.size)
	switch {
	case n == 0:
		return nothing
	case c == &g.damage.held:
		return c.own[p.pos : p.pos+n : p.pos+n]
	case p.linked:
		return c.linked[p.pos : p.pos+n : p.pos+n]
	}
	return g.w.win.kept(p.pos, n)
}

// atEnd ends the last sample.
func (g *grouper) atEnd() (done bool, err error) {
	end := min(g.w.m.End(), g.w.win.off)
	if g.open && !g.w.marked {
		g.damage.drop() // the last sample may be half, and does not show what is whole
		if err := g.unended(end); err != nil {
			return false, err
		}
	}
	if g.open {
		if done, err = g.close(end); err != nil {
			return false, err
		}
	}
	if !done {
		g.flush(end)
	}
	return done, io.EOF
}

// unended looks whether the last sample of an archive without end marker lacks
// what the others had, or what was asked for.
func (g *grouper) unended(end int64) error {
	c := &g.cur
	c.compact()
	if c.bad != nil || g.damage.suspect || g.verdict() != half || !g.table.all && g.opts.OnMissing != format.MissingError {
		return nil
	}
	err := format.Errorf(format.ErrTruncated, g.sampleAt(c.offset),
		"no end marker: the stream ends at %d, and the sample lacks %s; it has %s", g.w.win.off, g.lacking(), g.has())
	if g.opts.OnError == format.Stop {
		return err
	}
	g.open = false
	g.flush(c.offset)
	g.skips[truncated]++
	g.lose(c.offset, end, 1, err)
	if g.opts.OnError == format.Skip {
		return err
	}
	return nil
}

// lacking names a field that a half sample does not have.
func (g *grouper) lacking() string {
	for i, alternatives := range g.table.asked {
		if g.present(alternatives) < 0 {
			return quote([]byte(g.opts.Fields[i]))
		}
	}
	for _, f := range g.shape.folds {
		if f.sample != g.groups {
			return quote([]byte(f.name))
		}
	}
	return "a field"
}
