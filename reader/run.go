package reader

import (
	"context"
	"io"

	"shardtool/format"
	"shardtool/reader/store"
)

// run is the stretch of a shard that a Shard yields.
type run struct {
	from, to int64 // numbers of samples; to format.Unknown: to the end of the shard
	pos      int64 // number of the sample that comes next
	counting bool  // samples are left out: numbers are of those delivered
	places   *Places
	samples  int64 // that the shard should have; format.Unknown if nobody says so
	name     string
}

// Run opens a shard for its samples from number from up to, and without, number
// to, in order; a to of format.Unknown is the end of the shard. Their Index,
// and all offsets, are those in the shard. Where places of the samples are
// known, or can be found out (see Places), reading begins at the first and ends
// behind the last; else what stands before the first is read over.
//
// A shard that has fewer samples is ErrStale, for who asks for them has it from
// a count that no longer holds; so is one whose samples are not where they
// should be.
func (d *Dataset) Run(ctx context.Context, shard int, from, to int64) (*Shard, error) {
	s, i := d.at(shard)
	return s.openRun(ctx, i, from, to, &s.opts)
}

// RunUnparsed is Run with Options.Unparsed, for who finds the fields of records
// elsewhere, by Parser.FillOf. Options that leave samples out have records
// parsed all the same.
func (d *Dataset) RunUnparsed(ctx context.Context, shard int, from, to int64) (*Shard, error) {
	s, i := d.at(shard)
	opts := s.opts
	opts.Unparsed = opts.Unparsed || !opts.leavesOut(TFRecord)
	return s.openRun(ctx, i, from, to, &opts)
}

func (s *set) openRun(ctx context.Context, i int, from, to int64, o *Options) (*Shard, error) {
	if from < 0 || to < from && to != format.Unknown {
		return nil, format.Errorf(format.ErrUsage, format.In(s.names[i]), "samples %d to %d", from, to)
	}
	opts := *o
	a := &s.about[s.same(i)]
	p := a.places.Load()
	if p == nil && from > 0 && !opts.HeadersOnly {
		var err error
		if p, err = s.places(ctx, i); broken(err) {
			return nil, err
		}
	}
	r := &run{from: from, to: to, places: p, samples: format.Unknown, name: s.names[i]}
	if e := a.entry.Load(); e != nil {
		r.samples = e.Samples
	}
	var in *Shard
	var err error
	if p == nil || opts.HeadersOnly || from == 0 && to == format.Unknown {
		in, err = s.shard(ctx, i, &opts)
	} else {
		in, err = s.shardAt(ctx, i, r, &opts)
	}
	if err != nil {
		return nil, err
	}
	r.counting = opts.leavesOut(in.Format())
	in.run = r
	return in, nil
}

// shardAt opens a shard at the sample that a run begins with.
func (s *set) shardAt(ctx context.Context, i int, r *run, o *Options) (*Shard, error) {
	n := int64(r.places.Len())
	if r.from > n || r.to > n {
		return nil, r.fewer(n)
	}
	typ, err := s.typeOf(ctx, i, r.places.format)
	if err != nil {
		return nil, err
	}
	object, err := s.open(ctx, i)
	if err != nil {
		return nil, err
	}
	in := &Stream{Name: s.names[i], Entry: object.Stat(), Format: r.places.format, object: object}
	off, end := r.places.end(), int64(format.Unknown)
	if r.from < n {
		off, _ = r.places.At(int(r.from))
	}
	switch {
	case r.to > r.from:
		_, end = r.places.At(int(r.to - 1))
	case r.to == r.from:
		end = off
	}
	if in.raw, err = store.Stream(ctx, object, off); err != nil {
		in.Close()
		return nil, err
	}
	in.count = &counter{r: in.raw}
	in.r = in.count
	if end >= 0 {
		in.r = endAt(in.count, end-off, in.Format)
	}
	o.base, o.first, o.Type = off, r.from, typ
	r.pos = r.from
	return shardOf(ctx, in, o), nil
}

// nextOfRun is Next of a Shard that has a run.
func (s *Shard) nextOfRun() (*format.Sample, error) {
	r := s.run
	for r.to == format.Unknown || r.pos < r.to {
		sample, err := s.next()
		switch {
		case err == nil:
			var within bool
			if within, err = r.admit(sample); err != nil {
				return nil, s.end(err)
			}
			if within {
				return sample, nil
			}
		case err == io.EOF && r.short():
			return nil, s.end(r.fewer(r.pos))
		case err == io.EOF || r.concerns(err) || !s.Resume():
			return nil, err
		}
	}
	return nil, s.end(s.endOfRun())
}

// end ends a run for good.
func (s *Shard) end(err error) error {
	s.err, s.final = err, true
	return err
}

// endOfRun is what follows the last sample of a run: io.EOF. One that ends where
// the shard does by its count, without places that say so, looks whether it
// does.
func (s *Shard) endOfRun() error {
	r := s.run
	if r.places != nil || r.counting || r.to != r.samples || r.to == r.from {
		return io.EOF
	}
	sample, err := s.next()
	if err != nil {
		return err
	}
	at := sample.Location()
	return format.Errorf(format.ErrStale, at, "the shard has more samples than the %d that it should have", r.samples)
}

// short reports whether the shard has ended before the run did.
func (r *run) short() bool {
	if r.to == format.Unknown {
		return r.places != nil && !r.counting && r.pos < int64(r.places.Len())
	}
	return true
}

// admit numbers a sample and reports whether it is one of the run.
func (r *run) admit(s *format.Sample) (bool, error) {
	if r.counting {
		s.Index = r.pos
	}
	i := s.Index
	r.pos = i + 1
	if i < r.from || r.to != format.Unknown && i >= r.to {
		return false, nil
	}
	if r.places != nil && !r.places.holds(i, s.Offset) {
		return false, format.Errorf(format.ErrStale, s.Location(), "by its index another sample begins here")
	}
	return true, nil
}

// concerns reports whether a fault is one of the run's samples, and counts that
// as passed.
func (r *run) concerns(err error) bool {
	e := format.AsError(err)
	if e == nil || e.Record < 0 {
		return r.pos >= r.from
	}
	if !r.counting {
		r.pos = max(r.pos, e.Record+1)
	}
	return e.Record >= r.from && (r.to == format.Unknown || e.Record < r.to)
}

func (r *run) fewer(have int64) error {
	at := format.In(r.name)
	if r.samples >= 0 {
		return format.Errorf(format.ErrStale, at, "the shard has %d samples, and should have %d", have, max(r.samples, r.to))
	}
	return format.Errorf(format.ErrStale, at, "the shard has %d samples, and those from %d to %d were asked for", have, r.from, r.to)
}

const tarBlock = 512

// endAt cuts a stream behind its first n bytes. A tar gets an end marker there,
// without which its last sample would not be known to be whole.
func endAt(r io.Reader, n int64, f Format) io.Reader {
	b := &bounded{r: r, left: n}
	if f == Tar {
		b.zeros = markerFor(n)
	}
	return b
}

// markerFor returns how many bytes of NUL end a tar of n bytes: what is missing
// of its last block, and two blocks.
func markerFor(n int64) int { return int(-n&(tarBlock-1)) + 2*tarBlock }

type bounded struct {
	r     io.Reader
	left  int64
	zeros int // that follow
}

func (b *bounded) Read(p []byte) (int, error) {
	switch {
	case b.left > 0:
		n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
		b.left -= int64(n)
		return n, err
	case b.zeros > 0:
		n := min(len(p), b.zeros)
		clear(p[:n])
		b.zeros -= n
		return n, nil
	}
	return 0, io.EOF
}
