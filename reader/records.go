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
	recordParser
	name     string
	r        *tfrecord.Reader
	lenient  bool // a record that does not parse is left out instead of an error
	unparsed bool
	onLoss   func(format.Loss)
	onType   func(Type) // told of the type once it is settled; may be nil

	ahead []record // records read ahead to guess the type, not yet given
	err   error    // what ended reading ahead
	unfit bool     // the last record was sound, and did not parse

	sample format.Sample
	skips  map[string]int64
	seen   int64
}

// recordParser finds the fields of records.
type recordParser struct {
	typ      Type
	pick     *selection
	example  tfexample.Example
	sequence tfexample.SequenceExample
}

type record struct {
	payload       []byte
	offset, index int64
}

func newRecordSource(name string, in io.Reader, o *Options) *recordSource {
	s := &recordSource{
		recordParser: recordParser{typ: o.Type, pick: newSelection(o)},
		name:         name,
		lenient:      o.OnError != format.Stop,
		unparsed:     o.Unparsed,
		onLoss:       o.OnLoss,
		onType:       o.onType,
		skips:        make(map[string]int64),
	}
	s.r = tfrecord.NewReader(in, &tfrecord.Options{
		Shard: name, Limits: o.Limits, OnError: o.OnError, OnLoss: s.lost, Base: o.base, First: o.first,
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

// resume goes on behind a record that does not parse, or one that its reader
// found faulty.
func (s *recordSource) resume() bool {
	switch {
	case s.unfit:
		s.unfit = false
		return true
	case !s.r.Resume():
		return false
	}
	s.err = nil
	return true
}

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
		s.sample = format.Sample{Shard: s.name, Index: rec.index, Offset: rec.offset, Record: rec.payload, Fields: s.sample.Fields[:0]}
		if s.unparsed {
			return &s.sample, nil
		}
		ok, err := s.parse(&s.sample)
		if err != nil && s.lenient {
			s.lost(format.Loss{Offset: rec.offset, Bytes: int64(len(rec.payload)) + tfrecord.Overhead, Records: 1, Err: err})
			continue
		}
		if err != nil {
			s.unfit = true
			return nil, err
		}
		if ok {
			return &s.sample, nil
		}
		s.skips[format.ErrMissing.Error()]++
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
	if s.onType != nil {
		s.onType(s.typ)
	}
}

// parse fills in the fields and the key of a sample from its Record. It reports
// false where the sample is to be left out because a field is missing.
func (p *recordParser) parse(s *format.Sample) (bool, error) {
	fields := s.Fields[:0]
	base := s.Offset + frameHeader
	var err error
	switch p.typ {
	case Example:
		if err = p.example.Parse(s.Record); err == nil {
			fields = p.example.AppendFields(fields, base)
		}
	case Sequence:
		if err = p.sequence.Parse(s.Record); err == nil {
			fields = p.sequence.AppendFields(fields, base)
		}
	default:
		fields = append(fields, format.Field{Name: RawField, Data: s.Record, Offset: base})
	}
	s.Key, s.Fields = nil, fields
	if err != nil {
		return false, format.ReadError(err, s.Location())
	}
	if key := s.Field(KeyFeature); key != nil && key.Kind == format.Bytes {
		s.Key = key.Data
	}
	return p.pick.apply(s)
}
