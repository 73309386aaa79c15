package reader

import (
	"context"
	"errors"
	"io"
	"math"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/format/tarshard"
	"shardtool/format/tfrecord"
	"shardtool/reader/store"
)

// scan counts the samples of a shard, and finds where they stand, by reading as
// much of it as the options allow: headers alone where that is enough.
func (s *set) scan(ctx context.Context, i int, e *Entry) (*found, error) {
	unknown := &found{samples: format.Unknown}
	if s.opts.Scan == ScanNever || s.opts.Scan == ScanAuto && store.IsAddress(e.Name) {
		return unknown, nil
	}
	object, err := s.open(ctx, i)
	if err != nil {
		return nil, err
	}
	opts := s.opts
	opts.OnLoss = nil
	in, err := streamOf(ctx, object, e.Name, &opts)
	if err != nil {
		if broken(err) {
			return nil, err
		}
		return &found{fault: err, from: "scan"}, nil
	}
	defer in.Close()
	f := &found{samples: format.Unknown, format: in.Format, compression: in.Compression}
	leaves := opts.leavesOut(in.Format)
	headers := in.Compression == compress.None && !store.IsAddress(e.Name) && opts.OnError == format.Stop && (in.Format == Tar || !leaves)
	if !headers && s.opts.Scan != ScanAlways {
		return f, nil
	}
	f.from = "scan"
	c := &counting{format: in.Format, leaves: leaves}
	switch {
	case headers:
		err = c.headers(ctx, in, &opts)
	case in.Format == Tar && opts.OnError == format.Stop:
		if err = c.tar(tarshard.NewScanner(in, c.tarOptions(ctx, in, &opts))); err == nil {
			if err = in.drain(); err == io.EOF {
				err = nil
			}
		}
	default:
		err = c.through(shardOf(ctx, in, c.throughOptions(&opts)))
	}
	if broken(err) {
		return nil, err
	}
	f.fault = err
	f.samples = c.n
	if in.Compression == compress.None && opts.OnError == format.Stop {
		f.places, f.offsets = c.places(), true
	}
	return f, nil
}

// counting gathers samples. Its methods return the fault that ended them.
type counting struct {
	format  Format
	leaves  bool // samples are left out, so that others than those counted lie between
	n       int64
	offsets []int64
	ends    []int64 // kept only if leaves
	last    int64   // end of the last sample
	lost    []int64 // where samples begin that were passed over
	fault   error   // that passing over does not heal
}

// add counts the sample of that number, and those that were passed over before
// it: reading them gives an error, but they have their numbers.
func (c *counting) add(index, offset int64) {
	if !c.leaves {
		for c.n < index && len(c.lost) > 0 {
			c.take(c.lost[0])
			c.lost = c.lost[1:]
		}
	}
	c.lost = c.lost[:0]
	c.take(offset)
}

func (c *counting) take(offset int64) {
	c.offsets = append(c.offsets, offset)
	c.n++
}

// lose is told of what is passed over.
func (c *counting) lose(l format.Loss) {
	switch {
	case l.Records == 1:
		c.lost = append(c.lost, l.Offset)
		c.last = max(c.last, l.Offset+l.Bytes)
	case errors.Is(l.Err, format.ErrDuplicate) && c.fault == nil:
		// Who begins to read behind the first part of that sample takes the
		// second for one of its own: no number behind it can be relied on.
		c.fault = l.Err
	}
}

// done ends counting.
func (c *counting) done() {
	if !c.leaves {
		for _, off := range c.lost {
			c.take(off)
		}
	}
}

func (c *counting) places() *Places {
	if c.leaves {
		return &Places{offsets: c.offsets, ends: append([]int64{}, c.ends...), format: c.format}
	}
	return &Places{offsets: append(c.offsets, c.last), format: c.format}
}

// headers reads no payload.
func (c *counting) headers(ctx context.Context, in *Stream, o *Options) error {
	ra, size, _ := in.ReaderAt(ctx)
	if in.Format == Tar {
		return c.tar(tarshard.NewScannerAt(ra, size, c.tarOptions(ctx, in, o)))
	}
	limits := o.Limits.OrDefault()
	limits.Record = math.MaxInt64 // a record over the limit is an error in its place
	for span, err := range tfrecord.Scan(ra, size, &tfrecord.Options{Shard: in.Name, Limits: &limits}) {
		if err != nil {
			return err
		}
		c.take(span.Offset)
		c.last = span.Offset + span.Size
	}
	return nil
}

// tarOptions passes over what reading in place passes over.
func (c *counting) tarOptions(ctx context.Context, in *Stream, o *Options) *tarshard.Options {
	ra, _, _ := in.ReaderAt(ctx)
	t := tarOptions(in.Name, ra, o)
	t.OnError, t.OnLoss = format.Skip, c.lose
	if !c.leaves {
		t.Fields = nil // a sample that lacks one is an error in its place
		t.OnDuplicate = format.KeepFirst
	}
	return t
}

func (c *counting) tar(s *tarshard.Scanner) error {
	for {
		e, err := s.Next()
		switch {
		case c.fault != nil:
			return c.fault
		case err == io.EOF:
			c.done()
			return nil
		case err != nil:
			return err
		}
		c.add(e.Index, e.Offset)
		c.last = e.End
		if c.leaves {
			c.ends = append(c.ends, e.End)
		}
	}
}

// throughOptions is for reading all of a shard without parsing more of it than
// counting needs.
func (c *counting) throughOptions(o *Options) *Options {
	t := *o
	t.HeadersOnly = true
	if !c.leaves {
		t.Unparsed, t.Type = true, Raw
	}
	return &t
}

// through reads all of a shard.
func (c *counting) through(s *Shard) error {
	for {
		sample, err := s.Next()
		switch {
		case err == io.EOF:
			c.done()
			if !c.leaves {
				c.last = s.End()
			}
			return nil
		case err == nil:
			c.add(sample.Index, sample.Offset)
			c.last = s.End()
			if c.leaves {
				c.ends = append(c.ends, s.End())
			}
		case !s.Resume():
			return err
		default:
			if e := format.AsError(err); e != nil {
				c.lose(format.Loss{Offset: e.Offset, Records: 1, Err: err})
			}
		}
	}
}
