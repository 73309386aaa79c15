package reader

import (
	"context"
	"io"

	"shardtool/format"
	"shardtool/format/tarshard"
)

func tarOptions(name string, links io.ReaderAt, o *Options) *tarshard.Options {
	return &tarshard.Options{
		Shard:        name,
		Limits:       o.Limits,
		OnError:      o.OnError,
		OnLoss:       o.OnLoss,
		Fields:       o.Fields,
		OnMissing:    o.OnMissing,
		OnDuplicate:  o.OnDuplicate,
		KeyRaw:       o.KeyRaw,
		LastDot:      o.LastDot,
		Concatenated: o.Concatenated,
		Source:       links,
		Base:         o.base,
		First:        o.first,
	}
}

func newTarSource(ctx context.Context, in *Stream, o *Options) source {
	ra, size, seekable := in.ReaderAt(ctx)
	opts := tarOptions(in.Name, ra, o)
	switch {
	case o.HeadersOnly && seekable:
		return &tarHeaders{Scanner: tarshard.NewScannerAt(ra, size, opts), name: in.Name, fields: o.Fields}
	case o.HeadersOnly:
		return &tarHeaders{Scanner: tarshard.NewScanner(in, opts), name: in.Name, fields: o.Fields}
	default:
		return tarSource{tarshard.NewReader(in, opts)}
	}
}

// tarSource makes samples of the members of a tar shard.
type tarSource struct{ *tarshard.Reader }

func (s tarSource) next() (*format.Sample, error)      { return s.Next() }
func (s tarSource) skipped() map[string]int64          { return s.Skipped() }
func (s tarSource) warnings() map[format.Warning]int64 { return s.Warnings() }
func (s tarSource) members() int64                     { return s.Members() }
func (s tarSource) end() int64                         { return s.End() }
func (s tarSource) resume() bool                       { return s.Resume() }

// tarHeaders makes samples without payloads.
type tarHeaders struct {
	*tarshard.Scanner
	name   string
	fields []string // that were asked for
	sample format.Sample
}

func (s *tarHeaders) next() (*format.Sample, error) {
	e, err := s.Next()
	if err != nil {
		return nil, err
	}
	s.sample = format.Sample{Shard: s.name, Index: e.Index, Offset: e.Offset, Key: e.Key, Fields: s.sample.Fields[:0]}
	for i := range e.Members {
		m := &e.Members[i]
		f := format.Field{Name: m.Field, Length: m.Size, Offset: m.Data}
		if f.Offset == format.Unknown && i < len(s.fields) { // format.MissingFill stands in for it
			f.Name = s.fields[i]
		}
		s.sample.Fields = append(s.sample.Fields, f)
	}
	return &s.sample, nil
}

func (s *tarHeaders) skipped() map[string]int64          { return s.Skipped() }
func (s *tarHeaders) warnings() map[format.Warning]int64 { return s.Warnings() }
func (s *tarHeaders) members() int64                     { return s.Members() }
func (s *tarHeaders) end() int64                         { return s.End() }
func (s *tarHeaders) resume() bool                       { return s.Resume() }
