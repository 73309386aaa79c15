package shard

import (
	"context"
	"io"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/reader"
)

// VerifyOptions says how shards are verified.
type VerifyOptions struct {
	Options
	Index     string // an index to check the shards against; "" for NAME.idx beside each, where there is one
	MaxErrors int    // how many faults of a shard are kept; 0: 100
}

// Verification is what a shard was found to be.
type Verification struct {
	Shard       string
	Format      reader.Format // AutoFormat where the shard could not be opened
	Compression compress.Kind
	Bytes       int64            // stored bytes that were read
	Records     int64            // records or members that are sound
	Samples     int64            // samples that a reader delivers
	Skipped     map[string]int64 // members or records left out for what they are, by reason
	// KeyCheckStopped: the shard has more keys than Limits.Keys allows to
	// remember, so that one that comes back late may have gone unnoticed.
	KeyCheckStopped bool
	Errors          []error // faults in the order found, at most MaxErrors
	ErrorsTotal     int64   // faults found
}

// OK reports whether no fault was found.
func (v *Verification) OK() bool { return v.ErrorsTotal == 0 }

// Verify reads shards from end to end, finds all of their faults, not only the
// first, and passes a Verification of each to out in the order of names. What
// a reader would only warn of counts as a fault. It returns an error only if
// ctx ended or out failed.
func Verify(ctx context.Context, names []string, o *VerifyOptions, out func(*Verification) error) error {
	var d VerifyOptions
	if o != nil {
		d = *o
	}
	d.Options = d.Options.orDefault()
	if d.MaxErrors == 0 {
		d.MaxErrors = 100
	}
	return inOrder(ctx, len(names), d.Jobs, func(ctx context.Context, i int, emit func(*Verification) bool) {
		v := &Verification{Shard: names[i]}
		v.run(ctx, &d)
		if ctx.Err() == nil {
			emit(v)
		}
	}, out)
}

func (v *Verification) run(ctx context.Context, o *VerifyOptions) {
	faults := &faultList{most: o.MaxErrors}
	defer func() { v.Errors, v.ErrorsTotal = faults.kept, faults.total }()

	s := faults.open(ctx, &o.Options, v.Shard)
	if s == nil {
		return
	}
	defer s.Close()
	v.Format, v.Compression = s.Format(), s.Compression()
	for {
		_, err := s.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			faults.add(err)
			break
		}
		v.Samples++
	}
	v.Records, v.Skipped = s.Records(), s.Skipped()
	if v.Bytes = s.Size(); v.Bytes == format.Unknown {
		v.Bytes = s.BytesRead()
	}
	v.KeyCheckStopped = s.KeyCheckStopped()
	for _, err := range warned(s, &o.Read) {
		faults.add(err)
	}
	if err := checkSidecar(ctx, &o.Options, o.Index, v.Shard); err != nil {
		faults.add(err)
	}
}

// warned returns as errors what a lenient read only counts, unless o asked for
// it.
func warned(s *reader.Shard, o *reader.Options) []error {
	at := format.Location{Shard: s.Name(), Offset: s.End(), Record: format.Unknown}
	var errs []error
	warnings := s.Warnings()
	if warnings[format.NoEndMarker] > 0 {
		errs = append(errs, format.Errorf(format.ErrTruncated, at, "the end marker is missing: the stream ends after %d bytes", s.End()))
	}
	if warnings[format.TrailingGarbage] > 0 {
		errs = append(errs, format.Errorf(format.ErrCorrupt, at, "bytes follow the end that belong to nothing"))
	}
	if n := warnings[format.Concatenated]; n > 0 && !o.Concatenated {
		errs = append(errs, format.Errorf(format.ErrCorrupt, at, "another archive follows the end marker (%d in all): most readers stop before it", n))
	}
	return errs
}

// faultList keeps the first of the faults it is given.
type faultList struct {
	most  int
	kept  []error
	total int64
	last  error
}

// open opens a shard to be read over its faults, which f takes, without
// payloads. It returns nil, and has taken the fault, where that cannot be.
func (f *faultList) open(ctx context.Context, o *Options, name string) *reader.Shard {
	read := o.Read
	read.OnError, read.HeadersOnly = format.Resync, true
	read.OnLoss = func(l format.Loss) { f.add(l.Err) }
	s, err := reader.OpenShard(ctx, o.Store, name, &read)
	if err != nil {
		f.add(err)
		return nil
	}
	return s
}

// add takes a fault. A reader may report a fault as a loss and then end with
// it: that is one.
func (f *faultList) add(err error) {
	if f.last != nil && (err == f.last || err.Error() == f.last.Error()) {
		return
	}
	f.last = err
	f.total++
	switch class := format.Sentinel(err); {
	case len(f.kept) < f.most:
		f.kept = append(f.kept, err)
	case class == nil, class == format.ErrIO, class == format.ErrDenied, class == format.ErrNotFound:
		f.kept[f.most-1] = err // that the shard could not be read is worse than any fault in it
	}
}
