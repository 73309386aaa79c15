package reader

import (
	"bytes"
	"io"

	"shardtool/format"
	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
)

// frameHeader is the length and its CRC, which stand before a record's payload.
const frameHeader = 12

// guessRecords and guessBytes bound what is read ahead to tell what the
// records of a shard hold.
const (
	guessRecords = 16
	guessBytes   = 16 << 20
)

// recordSource makes samples of the records of a TFRecord shard.
type recordSource struct {
	name    string
	r       *tfrecord.Reader
	typ     Type
	pick    *selection
	lenient bool // a record that does not parse is left out instead of an error
	onLoss  func(format.Loss)

	ahead []record // records read ahead to guess the type, not yet given
	err   error    // what ended reading ahead

	example  tfexample.Example
	sequence tfexample.SequenceExample
	sample   format.Sample
	skips    map[string]int64
	seen     int64
}

type record struct {
	payload       []byte
	offset, index int64
}

func newRecordSource(name string, in io.Reader, o *Options) *recordSource {
	s := &recordSource{
		name:    name,
		typ:     o.Type,
		pick:    newSelection(o),
		lenient: o.OnError != format.Stop,
		onLoss:  o.OnLoss,
		skips:   make(map[string]int64),
	}
	s.r = tfrecord.NewReader(in, &tfrecord.Options{
		Shard: name, Limits: o.Limits, OnError: o.OnError, OnLoss: s.lost,
	})
	return s
}

// lost counts what the framing passed over.
func (s *recordSource) lost(l format.Loss) {
	s.skips[format.Class(l.Err)] += max(1, l.Records)
	if s.onLoss != nil {
		s.onLoss(l)
	}
}

func (s *recordSource) skipped() map[string]int64          { return s.skips }
func (s *recordSource) warnings() map[format.Warning]int64 { return nil }
func (s *recordSource) members() int64                     { return s.seen }
func (s *recordSource) end() int64                         { return s.r.End() }

func (s *recordSource) next() (*format.Sample, error) {
	if s.typ == AutoType {
		s.guess()
	}
	for {
		rec, err := s.read()
		if err != nil {
			return nil, err
		}
		s.seen++
		ok, err := s.parse(rec)
		if err != nil && s.lenient {
			s.lost(format.Loss{Offset: rec.offset, Bytes: int64(len(rec.payload)) + tfrecord.Overhead, Records: 1, Err: err})
			continue
		}
		if err != nil {
			return nil, err
		}
		if ok {
			return &s.sample, nil
		}
	}
}

func (s *recordSource) read() (record, error) {
	if len(s.ahead) > 0 {
		rec := s.ahead[0]
		s.ahead = s.ahead[1:]
		return rec, nil
	}
	if s.err != nil {
		return record{}, s.err
	}
	payload, err := s.r.Next()
	if err != nil {
		return record{}, err
	}
	return record{payload, s.r.Offset(), s.r.Index()}, nil
}

// guess reads ahead and settles the type: Examples or SequenceExamples if the
// first records all parse wholly, of one kind; else raw. Records that have no
// bytes parse as anything and do not count; without any other they are raw.
func (s *recordSource) guess() {
	var size int
	kinds := make(map[tfexample.Type]int)
	for len(s.ahead) < guessRecords && size < guessBytes {
		payload, err := s.r.Next()
		if err != nil {
			s.err = err
			break
		}
		s.ahead = append(s.ahead, record{bytes.Clone(payload), s.r.Offset(), s.r.Index()})
		size += len(payload)
		if len(payload) > 0 {
			kinds[tfexample.Classify(payload)]++
		}
	}
	switch {
	case kinds[tfexample.NotExample] > 0 || len(kinds) == 0:
		s.typ = Raw
	case kinds[tfexample.SequenceType] > 0:
		s.typ = Sequence
	default:
		s.typ = Example
	}
}

// parse fills the sample from a record. It reports false where the sample is
// to be left out because a field is missing.
func (s *recordSource) parse(rec record) (bool, error) {
	s.sample.Shard, s.sample.Index, s.sample.Offset = s.name, rec.index, rec.offset
	s.sample.Key, s.sample.Record = nil, rec.payload
	fields := s.sample.Fields[:0]
	base := rec.offset + frameHeader
	var err error
	switch s.typ {
	case Example:
		if err = s.example.Parse(rec.payload); err == nil {
			fields = s.example.AppendFields(fields, base)
		}
	case Sequence:
		if err = s.sequence.Parse(rec.payload); err == nil {
			fields = s.sequence.AppendFields(fields, base)
		}
	default:
		fields = append(fields, format.Field{Name: RawField, Data: rec.payload, Offset: base})
	}
	s.sample.Fields = fields
	if err != nil {
		return false, format.ReadError(err, s.sample.Location())
	}
	if key := s.sample.Field(KeyFeature); key != nil && key.Kind == format.Bytes {
		s.sample.Key = key.Data
	}
	ok, err := s.pick.apply(&s.sample)
	if err == nil && !ok {
		s.skips[format.ErrMissing.Error()]++
	}
	return ok, err
}
