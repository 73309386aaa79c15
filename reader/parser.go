package reader

import (
	"errors"
	"io"

	"shardtool/format"
	"shardtool/format/tarshard"
	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
)

// Parser reads samples out of bytes that were fetched already. It is for one
// goroutine and, in steady state, allocates nothing.
type Parser struct {
	d    *Dataset
	sets map[*set]*shardParser

	name  string // of the shard that Fill looked up last
	shard int
}

// NewParser returns a Parser of the dataset's samples.
func (d *Dataset) NewParser() *Parser {
	return &Parser{d: d, sets: make(map[*set]*shardParser), shard: -1}
}

// Sample returns the one sample that data is: the bytes of a shard from offset
// off to its end, as Places gave them for the sample of that number. It is lent
// until the next call, and so is data. The fields are those that the options
// ask for.
//
// What is not that sample any more is ErrStale or ErrCorrupt, with its place in
// the shard. A tar sample with links is ErrUnsupported, for they lead out of
// data: Dataset.Sample reads it. Before the first sample of a shard its Places
// must have been asked for, else the error is ErrUsage.
func (p *Parser) Sample(shard int, index, off int64, data []byte) (*format.Sample, error) {
	s, i := p.d.at(shard)
	return p.of(s).sample(i, index, off, data)
}

// Fill adds the fields and the key to a sample that was read under
// Options.Unparsed, from its Record. They are views of that; the slice of
// fields is used again. Errors are those that reading it parsed gives, but for
// faults within a list of int64, which are found when its values are; a field
// that was asked for and is missing is ErrMissing under MissingSkip, too. The
// shard is the first of the dataset that has the name; FillOf takes its number.
func (p *Parser) Fill(s *format.Sample) error {
	if p.shard < 0 || s.Shard != p.name {
		shard, ok := p.d.byName(s.Shard)
		if !ok {
			return format.Errorf(format.ErrUsage, s.Location(), "no such shard is in the dataset")
		}
		p.name, p.shard = s.Shard, shard
	}
	return p.FillOf(p.shard, s)
}

// FillOf is Fill for a sample of the shard of that number.
func (p *Parser) FillOf(shard int, s *format.Sample) error {
	set, i := p.d.at(shard)
	return p.of(set).fill(i, s)
}

func (p *Parser) of(s *set) *shardParser {
	q := p.sets[s]
	if q == nil {
		q = newShardParser(s)
		p.sets[s] = q
	}
	return q
}

// shardParser is a Parser of the shards of one set.
type shardParser struct {
	s       *set
	tar     *tarshard.Reader
	options tarshard.Options
	in      section
	frame   tfrecord.Options
	records recordParser
	out     format.Sample
}

func newShardParser(s *set) *shardParser {
	o := s.opts
	o.OnError, o.OnLoss = format.Stop, nil
	return &shardParser{
		s:       s,
		options: *tarOptions("", nil, &o),
		frame:   tfrecord.Options{Limits: o.Limits},
		records: recordParser{pick: newSelection(&o), example: tfexample.Example{Lazy: true}},
	}
}

// errLinked is the cause of an error about a sample that has links.
var errLinked = errors.New("it has links, which lead out of its bytes: read it by Dataset.Sample")

func (p *shardParser) sample(i int, index, off int64, data []byte) (*format.Sample, error) {
	a := &p.s.about[p.s.same(i)]
	places := a.places.Load()
	if places == nil {
		at := format.Location{Shard: p.s.names[i], Offset: off, Record: index}
		return nil, format.Errorf(format.ErrUsage, at, "the places of the shard were not asked for")
	}
	if places.format == Tar {
		return p.member(i, index, off, data)
	}
	p.frame.Shard, p.frame.Base, p.frame.First = p.s.names[i], off, index
	payload, err := tfrecord.Payload(data, &p.frame)
	if err != nil {
		return nil, err
	}
	p.out = format.Sample{Shard: p.s.names[i], Index: index, Offset: off, Record: payload, Fields: p.out.Fields[:0]}
	if p.s.opts.Unparsed {
		return &p.out, nil
	}
	if err := p.fill(i, &p.out); err != nil {
		return nil, err
	}
	return &p.out, nil
}

// member reads a tar sample.
func (p *shardParser) member(i int, index, off int64, data []byte) (*format.Sample, error) {
	at := format.Location{Shard: p.s.names[i], Offset: off, Record: index}
	p.options.Shard, p.options.Base, p.options.First = p.s.names[i], off, index
	p.in = section{data: data, zeros: markerFor(int64(len(data)))}
	if p.tar == nil {
		p.tar = tarshard.NewReader(&p.in, &p.options)
	} else {
		p.tar.Reset(&p.in, &p.options)
	}
	s, err := p.tar.Next()
	switch {
	case p.tar.Links() > 0:
		return nil, format.Errorf(format.ErrUnsupported, at, "%w", errLinked)
	case err == io.EOF, errors.Is(err, format.ErrWrongFormat), errors.Is(err, format.ErrTruncated):
		return nil, format.Errorf(format.ErrStale, at, "there is no whole sample here any more")
	case err != nil:
		return nil, err
	case p.tar.End() <= off+int64(len(data)) || s.Index != index:
		// It ended at the header of another one, not at the end marker.
		return nil, format.Errorf(format.ErrStale, at, "there is more than one sample here now")
	}
	for i := range s.Fields {
		// What is missing of data was read as NUL.
		if f := &s.Fields[i]; f.Offset+int64(len(f.Data)) > off+int64(len(data)) {
			return nil, format.Errorf(format.ErrStale, at, "there is no whole sample here any more")
		}
	}
	return s, nil
}

// fill adds the fields of a record.
func (p *shardParser) fill(i int, s *format.Sample) error {
	typ, ok := p.s.settled(i)
	if !ok {
		return format.Errorf(format.ErrUsage, s.Location(), "what the records of the shard are is not known: neither were its places asked for nor its samples read")
	}
	p.records.typ = typ
	ok, err := p.records.parse(s)
	if err == nil && !ok {
		at := s.Location()
		return format.Errorf(format.ErrMissing, at, "the sample has not all the fields that were asked for")
	}
	return err
}

// section is the bytes of a tar sample and an end marker.
type section struct {
	data  []byte
	zeros int
}

func (s *section) Read(p []byte) (int, error) {
	n := copy(p, s.data)
	s.data = s.data[n:]
	if z := min(len(p)-n, s.zeros); len(s.data) == 0 && z > 0 {
		clear(p[n : n+z])
		s.zeros -= z
		n += z
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}
