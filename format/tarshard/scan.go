package tarshard

import (
	"io"
	"iter"
	"time"

	"shardtool/format"
)

// Entry is a sample without its payloads.
type Entry struct {
	Key     []byte
	Index   int64 // place among the samples of the shard, from 0
	Offset  int64 // of the first block of the first member, extension headers included
	End     int64 // of what follows the sample
	Members []Part
}

// Part is a member of an Entry.
type Part struct {
	Field   string // empty for one that format.MissingFill stands in for
	Name    []byte // of the member, as stored
	Offset  int64  // of its first block, extension headers included
	Data    int64  // where the payload begins; for a link, that of its target
	Size    int64  // of the payload, in bytes
	Linked  bool   // Data and Size are those of another member
	Seconds int64  // modification time, since 1970
	Nanos   int32
}

// ModTime returns the modification time.
func (p *Part) ModTime() time.Time { return time.Unix(p.Seconds, int64(p.Nanos)).UTC() }

// Field returns the member whose field equals name without regard to case, or
// nil.
func (e *Entry) Field(name string) *Part {
	for i := range e.Members {
		if format.EqualName(e.Members[i].Field, name) {
			return &e.Members[i]
		}
	}
	return nil
}

// Scanner groups the members of a shard into samples as Reader does, but keeps
// no payload: it has no limit on the size of a member. It is for one
// goroutine.
type Scanner struct {
	g     grouper
	entry Entry
}

// NewScanner returns a Scanner of a decompressed stream. o may be nil.
func NewScanner(r io.Reader, o *Options) *Scanner {
	s := new(Scanner)
	s.g.reset(o, false)
	s.g.w.Reset(r, o)
	return s
}

// NewScannerAt returns a Scanner of the first size bytes of ra. It reads only
// where headers stand: its cost is bounded by the number of members. Links are
// followed through ra unless o names another Source.
func NewScannerAt(ra io.ReaderAt, size int64, o *Options) *Scanner {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Source == nil {
		opts.Source = io.NewSectionReader(ra, 0, size)
	}
	s := new(Scanner)
	s.g.reset(&opts, false)
	s.g.w.init(&opts)
	s.g.w.win.resetAt(ra, size)
	return s
}

// Next returns the next sample and lends it, with all it refers to, until the
// call after. Its errors are those of Reader.Next.
func (s *Scanner) Next() (*Entry, error) {
	g := &s.g
	if err := g.next(); err != nil {
		return nil, err
	}
	c, e := g.out, &s.entry
	e.Key, e.Index, e.Offset, e.End = c.key, c.index, c.offset, c.end
	e.Members = e.Members[:0]
	if g.table.all {
		for i := range c.parts {
			e.Members = append(e.Members, c.member(i))
		}
		return e, nil
	}
	for _, at := range g.pick {
		e.Members = append(e.Members, c.member(at))
	}
	return e, nil
}

func (c *group) member(i int) Part {
	if i < 0 {
		return Part{Offset: format.Unknown, Data: format.Unknown}
	}
	p := &c.parts[i]
	return Part{
		Field: p.name.name, Name: c.names[p.full[0]:p.full[1]],
		Offset: p.offset, Data: p.data, Size: p.size, Linked: p.linked,
		Seconds: p.seconds, Nanos: p.nanos,
	}
}

// Resume is as that of Reader.
func (s *Scanner) Resume() bool { return s.g.resume() }

// Entries yields what Next returns. An error other than io.EOF is the last
// element.
func (s *Scanner) Entries() iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for {
			e, err := s.Next()
			if err == io.EOF || !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Skipped, Warnings, KeyCheckStopped, Members and End are as those of Reader.
func (s *Scanner) Skipped() map[string]int64 { return s.g.skipped() }

// Warnings returns the faults that were counted and read over.
func (s *Scanner) Warnings() map[format.Warning]int64 { return s.g.w.Warnings() }

// KeyCheckStopped reports whether Limits.Keys was reached.
func (s *Scanner) KeyCheckStopped() bool { return s.g.keys.stopped }

// Globals returns a copy of the records of the global pax headers seen so far.
func (s *Scanner) Globals() map[string]string { return s.g.w.Globals() }

// Members returns how many members were seen, those passed over included.
func (s *Scanner) Members() int64 { return s.g.w.Members() }

// End returns how many bytes of the stream have been used up.
func (s *Scanner) End() int64 { return s.g.w.Offset() }

// Scan yields the samples of the first size bytes of ra without their payloads,
// as NewScannerAt does. Each is lent until the next. An error is the last
// element.
func Scan(ra io.ReaderAt, size int64, o *Options) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		NewScannerAt(ra, size, o).Entries()(yield)
	}
}
