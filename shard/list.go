package shard

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/bmatcuk/doublestar/v4"

	"shardtool/format"
	"shardtool/format/tfexample"
	"shardtool/reader"
)

// ListOptions says which samples are listed.
type ListOptions struct {
	Options
	Index string   // an index that each shard has to fit; "": NAME.idx beside each, where there is one
	Skip  int64    // leave out the first samples of all
	Limit int64    // list no more than that many; 0: all
	Keys  []string // list samples whose key matches one of these patterns; nil: all
	Hash  bool     // compute Listed.Fields[i].SHA256
	Most  int      // how many values of a typed feature are kept; 0: 16
}

// Listed is a sample in words.
type Listed struct {
	Shard  string
	Index  int64
	Offset int64
	Key    []byte // nil where it has none
	Fields []ListedField
}

// ListedField is a field in words.
type ListedField struct {
	Name   string
	Kind   format.Kind
	Bytes  int64 // of its data
	Offset int64 // of its first data byte; format.Unknown for a field that is not there
	SHA256 [sha256.Size]byte
	Values []any // float32, int64 or []byte, at most Most of them; nil for format.Bytes
	Count  int   // of all values
}

var errEnough = errors.New("enough")

// List passes the samples of shards to out, in order. It returns the first
// error; what stood before it has been passed on.
func List(ctx context.Context, names []string, o *ListOptions, out func(*Listed) error) error {
	var d ListOptions
	if o != nil {
		d = *o
	}
	d.Options = d.Options.orDefault()
	if d.Most == 0 {
		d.Most = 16
	}
	match, err := keyMatcher(d.Keys)
	if err != nil {
		return err
	}
	if d.Skip > 0 || d.Limit > 0 {
		d.Jobs = 1 // later shards may not be wanted
	}
	type item struct {
		sample *Listed
		err    error
	}
	skip, left := d.Skip, d.Limit
	err = inOrder(ctx, len(names), d.Jobs, func(ctx context.Context, i int, emit func(item) bool) {
		if err := checkSidecar(ctx, &d.Options, d.Index, names[i]); err != nil {
			emit(item{err: err})
			return
		}
		for sample, err := range samples(ctx, names[i], &d.Options) {
			if err != nil {
				emit(item{err: err})
				return
			}
			if match(sample.Key) && !emit(item{sample: d.list(sample)}) {
				return
			}
		}
	}, func(it item) error {
		switch {
		case it.err != nil:
			return it.err
		case skip > 0:
			skip--
			return nil
		}
		if err := out(it.sample); err != nil {
			return err
		}
		if left--; left == 0 {
			return errEnough
		}
		return nil
	})
	if err == errEnough {
		return nil
	}
	return err
}

// samples yields the samples of one shard; an error is the last element.
func samples(ctx context.Context, name string, o *Options) func(func(*format.Sample, error) bool) {
	return reader.New(o.Store, []string{name}, &o.Read).Samples(ctx)
}

func (o *ListOptions) list(s *format.Sample) *Listed {
	l := &Listed{Shard: s.Shard, Index: s.Index, Offset: s.Offset, Fields: make([]ListedField, len(s.Fields))}
	if s.Key != nil {
		l.Key = append([]byte{}, s.Key...)
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		lf := &l.Fields[i]
		*lf = ListedField{Name: f.Name, Kind: f.Kind, Bytes: f.Size(), Offset: f.Offset}
		if o.Hash {
			lf.SHA256 = sha256.Sum256(f.Data)
		}
		if f.Kind != format.Bytes {
			lf.Values, lf.Count = values(f, o.Most)
		}
	}
	return l
}

// values returns the first values of a typed field, and how many it has.
func values(f *format.Field, most int) ([]any, int) {
	feature := tfexample.FeatureOf(f.Kind, f.Data)
	all := []any{}
	switch f.Kind {
	case format.Int64List:
		vs, _ := feature.AppendInt64(nil)
		for _, v := range vs[:min(most, len(vs))] {
			all = append(all, v)
		}
		return all, len(vs)
	case format.FloatList:
		vs, _ := feature.AppendFloat(nil)
		for _, v := range vs[:min(most, len(vs))] {
			all = append(all, v)
		}
		return all, len(vs)
	case format.BytesList:
		for v := range feature.Bytes() {
			if len(all) < most {
				all = append(all, append([]byte{}, v...))
			}
		}
		return all, feature.Len()
	}
	return all, feature.Len()
}

// keyMatcher returns a test of keys against patterns in which "*" does not
// cross a slash and "**" does. Without patterns everything matches.
func keyMatcher(patterns []string) (func(key []byte) bool, error) {
	for _, p := range patterns {
		if !doublestar.ValidatePattern(p) {
			return nil, format.Errorf(format.ErrUsage, format.Nowhere, "bad key pattern %q", p)
		}
	}
	return func(key []byte) bool {
		for _, p := range patterns {
			if doublestar.MatchUnvalidated(p, string(key)) {
				return true
			}
		}
		return len(patterns) == 0
	}, nil
}
