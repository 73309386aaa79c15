package tarshard

import (
	"io"
	"iter"

	"shardtool/format"
)

// Reader reads the samples of a shard in order, with their payloads. It is for
// one goroutine.
//
// In steady state it allocates nothing: payloads are lent from the buffer they
// were read into, which grows to little more than twice the largest sample.
type Reader struct {
	g      grouper
	sample format.Sample
}

// NewReader returns a Reader of a decompressed stream. o may be nil.
func NewReader(r io.Reader, o *Options) *Reader {
	rd := new(Reader)
	rd.Reset(r, o)
	return rd
}

// Reset makes the Reader read another shard, with the buffers it has.
func (r *Reader) Reset(src io.Reader, o *Options) {
	r.g.reset(o, true)
	r.g.w.Reset(src, o)
	r.sample = format.Sample{Shard: r.g.opts.Shard, Fields: r.sample.Fields[:0]}
}

// Next returns the next sample and lends it, with all it refers to, until the
// call after. At the end of the archive it returns io.EOF. Every error is
// final: under Stop that is the first fault, and under Skip one that leaves
// unknown where the next member begins; OnLoss was told of it, too. Under
// Resync a shard that is cut ends with io.EOF, after OnLoss was told.
//
// With Options.Fields the sample has one field for each of them, in their
// order. Sample.Offset is that of the first header of the sample's first
// member, extension headers included; Sample.Index counts all samples of the
// shard, also those that are left out.
func (r *Reader) Next() (*format.Sample, error) {
	g := &r.g
	if err := g.next(); err != nil {
		return nil, err
	}
	c, s := g.out, &r.sample
	s.Index, s.Offset, s.Key = c.index, c.offset, c.key
	s.Fields = s.Fields[:0]
	if g.table.all {
		for i := range c.parts {
			s.Fields = append(s.Fields, g.fieldOf(c, &c.parts[i]))
		}
		return s, nil
	}
	for i, at := range g.pick {
		if at < 0 {
			s.Fields = append(s.Fields, format.Field{Name: g.opts.Fields[i], Offset: format.Unknown})
			continue
		}
		s.Fields = append(s.Fields, g.fieldOf(c, &c.parts[at]))
	}
	return s, nil
}

// Resume leaves behind what Next returned an error about, under Stop, where the
// structure of the shard holds: a sample that has a field twice, lacks one or is
// over a limit, a member that comes too late. It reports whether Next goes on:
// what Skip does by itself, for who wants to see each error in its place.
func (r *Reader) Resume() bool { return r.g.resume() }

func (g *grouper) fieldOf(c *group, p *part) format.Field {
	return format.Field{Name: p.name.name, Data: g.payload(c, p), Offset: p.data}
}

// Samples yields what Next returns. An error other than io.EOF is the last
// element.
func (r *Reader) Samples() iter.Seq2[*format.Sample, error] {
	return func(yield func(*format.Sample, error) bool) {
		for {
			s, err := r.Next()
			if err == io.EOF || !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// Skipped returns how many members and samples were left out, by reason, as
// the Skip constants name them.
func (r *Reader) Skipped() map[string]int64 { return r.g.skipped() }

// Warnings returns the faults that were counted and read over. It is complete
// after Next returned io.EOF.
func (r *Reader) Warnings() map[format.Warning]int64 { return r.g.w.Warnings() }

// Links returns how many links were passed over because nothing was found that
// they lead to.
func (r *Reader) Links() int64 { return r.g.skips[hardlink] + r.g.skips[symlink] }

// KeyCheckStopped reports whether keys were no longer remembered from some
// sample on, because Limits.Keys was reached: a key that comes back later than
// that may have gone unnoticed.
func (r *Reader) KeyCheckStopped() bool { return r.g.keys.stopped }

// Globals returns a copy of the records of the global pax headers seen so far,
// up to Limits.Header bytes of them.
func (r *Reader) Globals() map[string]string { return r.g.w.Globals() }

// Members returns how many members were seen, those passed over included.
func (r *Reader) Members() int64 { return r.g.w.Members() }

// End returns how many bytes of the stream have been used up. It is ahead of
// the sample last returned by the header that ended it.
func (r *Reader) End() int64 { return r.g.w.Offset() }

func (g *grouper) skipped() map[string]int64 {
	m := g.skips.byName()
	if n := g.w.globals; n > 0 {
		m[SkipGlobal] += n
	}
	return m
}
