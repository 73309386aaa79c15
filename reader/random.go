package reader

import (
	"context"
	"errors"
	"io"
	"slices"

	"shardtool/format"
	"shardtool/format/tarshard"
	"shardtool/format/tfrecord"
	"shardtool/reader/store"
)

// Random reads single samples of shards at known offsets. The shards must be
// objects that can be read at offsets, and not compressed. It is for one
// goroutine.
type Random struct {
	ctx  context.Context
	opts Options

	open    map[string]store.Object
	recent  []string // names of what is open, the one used last at the end
	tar     *tarshard.Reader
	records *recordSource
	data    []byte // of the fields that Fill read
}

// maxOpen bounds the objects that a Random keeps open.
const maxOpen = 64

// NewRandom returns a Random that reads as o says, but for OnLoss: who found
// the samples knows what is lost.
func NewRandom(ctx context.Context, o *Options) *Random {
	r := &Random{ctx: ctx, opts: o.orDefault(), open: make(map[string]store.Object)}
	r.opts.OnLoss = nil
	if r.opts.OnError == format.Resync {
		// Damage behind a sample does not put it in question again.
		r.opts.OnError = format.Skip
	}
	return r
}

// Place says where in which shard a sample stands.
type Place struct {
	Store  store.Store
	Name   string // of the shard
	Format Format // never AutoFormat
	Type   Type   // of records, not AutoType
	Offset int64  // of the sample, as Sample.Offset gives it
	End    int64  // no byte from here on belongs to the sample; the closer, the less is read in vain
}

// Sample reads the sample at a place and lends it until the next call. Its
// Index is not known. What is not a sample any more is ErrStale. Links of a tar
// are followed within the sample; see Fill for others.
func (r *Random) Sample(p Place) (*format.Sample, error) {
	o, err := r.object(p)
	if err != nil {
		return nil, err
	}
	section := io.NewSectionReader(store.ReaderAt(r.ctx, o), p.Offset, p.End-p.Offset)
	sample, err := r.source(section, p).next()
	if err != nil {
		return nil, p.fault(err)
	}
	sample.Index = format.Unknown
	sample.Offset += p.Offset
	for i := range sample.Fields {
		sample.Fields[i].Offset += p.Offset
	}
	return sample, nil
}

// fault makes of an error of reading a sample alone one that says where in the
// shard that was.
func (p *Place) fault(err error) error {
	at := format.Location{Shard: p.Name, Offset: p.Offset, Record: format.Unknown}
	switch e := format.AsError(err); {
	case err == io.EOF, errors.Is(err, format.ErrWrongFormat), errors.Is(err, format.ErrTruncated):
		return format.Errorf(format.ErrStale, at, "there is no whole sample here any more")
	case e != nil && e.Offset >= 0:
		moved := *e
		moved.Offset, moved.Record = moved.Offset+p.Offset, format.Unknown
		return &moved
	}
	return format.ReadError(err, at)
}

// Fill reads the data of the fields of s, by their Offset and Size, from the
// shard of p, whatever stands there, and lends it until the next call. It is for
// samples whose fields links lead to elsewhere in a tar shard, as a Shard found
// them. A field whose Offset is not known stays as it is.
func (r *Random) Fill(p Place, s *format.Sample) error {
	o, err := r.object(p)
	if err != nil {
		return err
	}
	r.data = r.data[:0]
	for i := range s.Fields {
		f := &s.Fields[i]
		if f.Offset < 0 {
			continue
		}
		from, n := len(r.data), int(f.Size())
		r.data = slices.Grow(r.data, max(n, 1))[:from+n] // an empty field is not nil
		f.Data = r.data[from : from+n : from+n]
		if m, err := o.ReadAt(r.ctx, f.Data, f.Offset); m < n {
			at := s.Location()
			at.Shard, at.Field = p.Name, f.Name
			if err == io.EOF {
				return format.Errorf(format.ErrStale, at, "the shard ends before the field does")
			}
			return format.ReadError(err, at)
		}
	}
	return nil
}

func (r *Random) source(section *io.SectionReader, p Place) source {
	opts := r.opts
	if p.Format == Tar {
		if r.tar == nil {
			r.tar = tarshard.NewReader(section, tarOptions(p.Name, section, &opts))
		} else {
			r.tar.Reset(section, tarOptions(p.Name, section, &opts))
		}
		return tarSource{r.tar}
	}
	opts.Type = p.Type
	if r.records == nil {
		r.records = newRecordSource(p.Name, section, &opts)
	} else {
		r.records.r.Reset(section, &tfrecord.Options{Shard: p.Name, Limits: opts.Limits})
		r.records.name, r.records.typ, r.records.err = p.Name, p.Type, nil
	}
	return r.records
}

func (r *Random) object(p Place) (store.Object, error) {
	for i, name := range r.recent {
		if name == p.Name {
			r.recent = append(append(r.recent[:i], r.recent[i+1:]...), name)
			return r.open[name], nil
		}
	}
	if len(r.recent) == maxOpen {
		err := r.open[r.recent[0]].Close()
		delete(r.open, r.recent[0])
		r.recent = r.recent[1:]
		if err != nil {
			return nil, err
		}
	}
	o, err := p.Store.Open(r.ctx, p.Name)
	if err != nil {
		return nil, err
	}
	r.open[p.Name] = o
	r.recent = append(r.recent, p.Name)
	return o, nil
}

// Close closes what is open.
func (r *Random) Close() error {
	var first error
	for _, o := range r.open {
		if err := o.Close(); first == nil {
			first = err
		}
	}
	clear(r.open)
	r.recent = nil
	return first
}
