package index

import (
	"context"
	"errors"
	"io"

	"shardtool/format"
	"shardtool/format/tarshard"
	"shardtool/format/tfrecord"
)

// Check holds an index against a shard: what stands at each entry, that records
// follow each other, and that nothing follows the last one. What does not fit is ErrStale, naming the first
// sample for which it does not. No payload is read.
func (x *Index) Check(ctx context.Context, s Shard) error {
	end := int64(0)
	for i := range x.Len() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e := x.At(i); x.Dialect == DALI {
			if e.Offset != end {
				return format.Errorf(format.ErrStale, s.location(end, int64(i), ""), "the index does not fit the shard: it leaves out the bytes from here to %d", e.Offset)
			}
			end += e.Size
		}
		if err := x.CheckEntry(s, i); err != nil {
			return err
		}
	}
	return x.CheckRest(s)
}

// CheckEntry holds what an index tells of sample i against a shard, as Check
// does.
func (x *Index) CheckEntry(s Shard, i int) error {
	e := x.At(i)
	at := s.location(e.Offset, int64(i), e.Key())
	switch {
	case x.Dialect == DALI:
		return stale(checkRecord(s, e), at)
	case x.first == nil:
		return stale(checkStart(s, e), at)
	}
	for _, f := range e.Fields {
		at.Offset, at.Field = f.Offset, f.Name
		if f.Offset+f.Size > s.Size {
			return format.Errorf(format.ErrStale, at, "it would end at %d, and the shard has %d bytes", f.Offset+f.Size, s.Size)
		}
		if err := tarshard.CheckAt(s.At, f.Offset, f.Size, f.Member); err != nil {
			return stale(err, at)
		}
	}
	return nil
}

// stale says of what was found that the index does not fit the shard, unless
// the shard could not be read.
func stale(err error, at format.Location) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, format.ErrIO), errors.Is(err, format.ErrDenied), errors.Is(err, format.ErrNotFound), format.Sentinel(err) == nil:
		return format.ReadError(err, at)
	}
	detail := err.Error()
	if e := format.AsError(err); e != nil {
		detail = e.Detail
	}
	return format.Errorf(format.ErrStale, at, "the index does not fit the shard: %s", detail)
}

// checkRecord asks whether one record stands at an entry.
func checkRecord(s Shard, e Entry) error {
	if e.Offset+e.Size > s.Size {
		return format.Errorf(format.ErrStale, format.Nowhere, "the record would end at %d, and the shard has %d bytes", e.Offset+e.Size, s.Size)
	}
	// Scan of so much and no more finds a record that is whole, or a fault.
	record := io.NewSectionReader(s.At, e.Offset, e.Size)
	for span, err := range tfrecord.Scan(record, e.Size, &tfrecord.Options{Shard: s.Name}) {
		if err != nil {
			return err
		}
		if span.Size != e.Size {
			return format.Errorf(format.ErrStale, format.Nowhere, "a record of %d bytes stands there, not of %d", span.Size, e.Size)
		}
	}
	return nil
}

// checkStart asks whether a sample begins at an entry.
func checkStart(s Shard, e Entry) error {
	size := s.Size - e.Offset
	if e.Size >= 0 {
		size = e.Size
	}
	if size <= 0 || e.Offset+size > s.Size {
		return format.Errorf(format.ErrStale, format.Nowhere, "the sample would end at %d, and the shard has %d bytes", e.Offset+size, s.Size)
	}
	w := tarshard.NewWalkerAt(io.NewSectionReader(s.At, e.Offset, size), size, &tarshard.Options{Shard: s.Name})
	if _, err := w.Next(); err == io.EOF {
		return format.Errorf(format.ErrStale, format.Nowhere, "no member begins there")
	} else if err != nil {
		return err
	}
	return nil
}

// CheckRest holds the end of an index against that of the shard, as Check does:
// no other sample may follow its last.
func (x *Index) CheckRest(s Shard) error {
	end := x.endOf()
	at := s.location(end, int64(x.Len()), "")
	if x.Dialect == DALI {
		if end != s.Size {
			return format.Errorf(format.ErrStale, at, "the index does not fit the shard: it ends here, and the shard has %d bytes", s.Size)
		}
		return nil
	}
	if end > s.Size {
		return format.Errorf(format.ErrStale, at, "the index does not fit the shard: it ends here, and the shard has %d bytes", s.Size)
	}
	rest := tarshard.NewScannerAt(io.NewSectionReader(s.At, end, s.Size-end), s.Size-end, &tarshard.Options{Shard: s.Name, OnError: format.Skip})
	switch e, err := rest.Next(); {
	case err == io.EOF:
		return nil
	case err == nil:
		at.Key = string(e.Key)
		return format.Errorf(format.ErrStale, at, "the index does not fit the shard: it ends here, and the shard has another sample")
	default:
		return stale(err, at)
	}
}

// endOf returns where in the shard the last sample of the index ends.
func (x *Index) endOf() int64 {
	end := max(x.end, 0)
	for i := range x.fields {
		end = max(end, x.fields[i].Offset+padded(x.fields[i].Size))
	}
	return end
}
