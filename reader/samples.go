package reader

import (
	"context"
	"errors"
	"io"
	"iter"

	"shardtool/format"
)

// Samples yields the samples of all shards in order, each lent until the next
// iteration. An error stands in the place of what it is about: who goes on
// ranging gets the next sample where the framing allows it, and the next shard
// where it does not. The error of a context that ended is the last element.
func (d *Dataset) Samples(ctx context.Context) iter.Seq2[*format.Sample, error] {
	return func(yield func(*format.Sample, error) bool) {
		for i := range d.names {
			if !d.each(ctx, i, yield) {
				return
			}
		}
	}
}

// each yields the samples of one shard and reports whether to go on.
func (d *Dataset) each(ctx context.Context, shard int, yield func(*format.Sample, error) bool) bool {
	s, i := d.at(shard)
	in, err := s.shard(ctx, i, &s.opts)
	if err != nil {
		return yield(nil, err) && ctx.Err() == nil
	}
	defer in.Close()
	for {
		sample, err := in.Next()
		switch {
		case err == io.EOF:
			return true
		case !yield(sample, err) || err != nil && ctx.Err() != nil:
			return false
		case err != nil && !in.Resume():
			return true
		}
	}
}

// Sample returns one sample of a shard, by its number. It has its own memory.
// Where the places of the samples are known, or can be found out (see Places),
// it costs one read of the sample; otherwise, and for a tar sample that has
// links, the shard is read up to it. It may be called by several goroutines.
func (d *Dataset) Sample(ctx context.Context, shard int, index int64) (*format.Sample, error) {
	if shard < 0 || shard >= len(d.names) {
		return nil, format.Errorf(format.ErrUsage, format.Nowhere, "shard %d of %d", shard, len(d.names))
	}
	s, i := d.at(shard)
	at := format.Location{Shard: s.names[i], Offset: format.Unknown, Record: index}
	if index < 0 {
		return nil, format.Errorf(format.ErrUsage, at, "a sample of a negative number")
	}
	p, err := s.places(ctx, i)
	switch {
	case broken(err):
		return nil, err
	case err != nil:
		return s.readTo(ctx, i, at)
	case index >= int64(p.Len()):
		return nil, format.Errorf(format.ErrUsage, at, "the shard has %d samples", p.Len())
	}
	sample, err := s.fetch(ctx, i, index, p)
	if errors.Is(err, errLinked) {
		return s.readTo(ctx, i, at)
	}
	return sample, err
}

// readTo reads a shard from its start, or from the sample itself if its place
// is known.
func (s *set) readTo(ctx context.Context, i int, at format.Location) (*format.Sample, error) {
	in, err := s.openRun(ctx, i, at.Record, format.Unknown, &s.opts)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	sample, err := in.Next()
	switch {
	case err == io.EOF:
		return nil, format.Errorf(format.ErrUsage, at, "the shard has fewer samples")
	case err != nil:
		return nil, err
	}
	return sample.Clone(), nil
}

// fetched is what reading a single sample needs again and again.
type fetched struct {
	parser *shardParser
	data   []byte
}

// fetch reads a sample at its place.
func (s *set) fetch(ctx context.Context, i int, index int64, p *Places) (*format.Sample, error) {
	f, _ := s.fetchers.Get().(*fetched)
	if f == nil {
		f = &fetched{parser: newShardParser(s)}
	}
	defer s.fetchers.Put(f)
	off, end := p.At(int(index))
	at := format.Location{Shard: s.names[i], Offset: off, Record: index}
	object, err := s.open(ctx, i)
	if err != nil {
		return nil, err
	}
	defer object.Close()
	if most := s.opts.Limits.OrDefault().Sample; end-off > most+most/8 { // with its headers
		return nil, format.Errorf(format.ErrLimit, at, "the sample has %d bytes, over the limit of %d", end-off, most)
	}
	if int64(cap(f.data)) < end-off {
		f.data = make([]byte, end-off)
	}
	f.data = f.data[:end-off]
	if n, err := object.ReadAt(ctx, f.data, off); n < len(f.data) {
		if err == io.EOF || errors.Is(err, format.ErrTruncated) {
			return nil, format.Errorf(format.ErrStale, at, "the shard ends before the sample does")
		}
		return nil, format.ReadError(err, at)
	}
	sample, err := f.parser.sample(i, index, off, f.data)
	if err != nil {
		return nil, err
	}
	return sample.Clone(), nil
}
