package reader

import (
	"context"
	"errors"
	"io"
	"iter"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/reader/store"
)

// Shard reads the samples of one shard in order, whatever its format and
// compression. It is for one goroutine.
type Shard struct {
	stream *Stream
	source source
	told   error // the last loss
	err    error // sticky
	final  bool  // nothing follows err, or faults are passed over unasked
	run    *run  // nil: the whole shard is read
}

// source is what a format's reader offers here.
type source interface {
	next() (*format.Sample, error)
	skipped() map[string]int64
	warnings() map[format.Warning]int64
	members() int64
	end() int64
	resume() bool // past the fault that next returned
}

// OpenShard opens a shard of a store and finds out what it is: the compression
// by its content, the format by o.Format, else the suffix of its name, else
// the content. A suffix that the content contradicts is ErrWrongFormat. The
// reader ends with the context's error when ctx ends.
func OpenShard(ctx context.Context, st store.Store, name string, o *Options) (*Shard, error) {
	in, err := OpenStream(ctx, st, name, o)
	if err != nil {
		return nil, err
	}
	return shardOf(ctx, in, o), nil
}

// shardOf takes over a stream.
func shardOf(ctx context.Context, in *Stream, o *Options) *Shard {
	opts := o.orDefault()
	s := &Shard{stream: in, final: opts.OnError != format.Stop}
	onLoss := opts.OnLoss
	opts.OnLoss = func(l format.Loss) {
		s.told = l.Err
		if onLoss != nil {
			onLoss(l)
		}
	}
	switch in.Format {
	case Tar:
		s.source = newTarSource(ctx, in, &opts)
	default:
		s.source = newRecordSource(in.Name, in, &opts)
	}
	return s
}

// Next returns the next sample and lends it until the call after. At the end
// of a shard whose every byte was read and checked it returns io.EOF. An error
// is returned again by every later call, unless Resume leaves it behind; what
// Skip and Resync read over is told to OnLoss instead.
func (s *Shard) Next() (*format.Sample, error) {
	if s.err != nil {
		return nil, s.err
	}
	if s.run != nil {
		return s.nextOfRun()
	}
	return s.next()
}

func (s *Shard) next() (*format.Sample, error) {
	sample, err := s.source.next()
	if err == io.EOF {
		// What is left in a compressed stream may still show a fault, unless
		// it was told of as what cut a sample short.
		if err = s.stream.drain(); err != io.EOF && s.knows(err) {
			err = io.EOF
		}
	}
	if err != nil {
		s.err = err
		return nil, err
	}
	return sample, nil
}

// Resume leaves the error behind that Next returned, and reports whether Next
// goes on with the sample after it: under OnError Stop, where the framing still
// says where that is.
func (s *Shard) Resume() bool {
	if s.err != nil && s.err != io.EOF && !s.final && s.source.resume() {
		s.err = nil
	}
	return s.err == nil
}

// knows reports whether the last loss was for that fault of the compressed
// data: it wraps the error, or is a copy that says more of where.
func (s *Shard) knows(err error) bool {
	told, fault := format.AsError(s.told), format.AsError(err)
	return errors.Is(s.told, err) || told != nil && fault != nil && told.Err == fault.Err && told.Detail == fault.Detail
}

// Samples yields the samples, each lent until the next iteration. An error is
// the last element.
func (s *Shard) Samples() iter.Seq2[*format.Sample, error] {
	return func(yield func(*format.Sample, error) bool) {
		for {
			sample, err := s.Next()
			if err == io.EOF || !yield(sample, err) || err != nil {
				return
			}
		}
	}
}

// Name returns the name under which the shard was opened.
func (s *Shard) Name() string { return s.stream.Name }

// Format returns the format, which is never AutoFormat.
func (s *Shard) Format() Format { return s.stream.Format }

// Compression returns the compression of the whole shard.
func (s *Shard) Compression() compress.Kind { return s.stream.Compression }

// Type returns what a TFRecord shard's records are read as: Example, Sequence
// or Raw. It is AutoType for tar and before the first Next.
func (s *Shard) Type() Type {
	if r, ok := s.source.(*recordSource); ok {
		return r.typ
	}
	return AutoType
}

// Globals returns a copy of the records of a tar shard's global pax headers
// seen so far.
func (s *Shard) Globals() map[string]string {
	if t, ok := s.source.(interface{ Globals() map[string]string }); ok {
		return t.Globals()
	}
	return nil
}

// Size returns the stored size of the shard in bytes, format.Unknown for a
// pipe.
func (s *Shard) Size() int64 { return s.stream.Entry.Size }

// End returns how many decompressed bytes have been used up.
func (s *Shard) End() int64 { return s.source.end() }

// BytesRead returns how many bytes of the stored, perhaps compressed, shard
// have been read.
func (s *Shard) BytesRead() int64 { return s.stream.BytesRead() }

// Records returns how many members or records have been seen, those passed
// over included.
func (s *Shard) Records() int64 { return s.source.members() }

// Skipped returns how many members or samples were left out, by reason.
func (s *Shard) Skipped() map[string]int64 { return s.source.skipped() }

// Warnings returns the faults that were counted and read over. It is complete
// after Next returned io.EOF.
func (s *Shard) Warnings() map[format.Warning]int64 {
	w := s.source.warnings()
	if s.stream.Trailing() {
		if w == nil {
			w = make(map[format.Warning]int64)
		}
		w[format.TrailingGarbage]++
	}
	return w
}

// KeyCheckStopped reports whether a tar shard had more keys than Limits.Keys
// allows to remember, so that one that came back later may have gone unnoticed.
func (s *Shard) KeyCheckStopped() bool {
	t, ok := s.source.(interface{ KeyCheckStopped() bool })
	return ok && t.KeyCheckStopped()
}

// Close releases the shard. Samples that it lent must not be used any more.
func (s *Shard) Close() error { return s.stream.Close() }
