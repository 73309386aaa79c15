package shard

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/store"
)

// ConvertOptions says what shards are made into.
type ConvertOptions struct {
	Options
	Output  OutputOptions
	Shards  int // deal the samples to this many shards, the first of which are at most one larger; 0: no
	Mapping Mapping

	Keys  []string // keep samples whose key matches one of these patterns; nil: all
	Parts []Part   // split by the hash of the key; the output's name must hold {split}

	Shuffle bool   // across all inputs
	Seed    uint64 // of the shuffle
}

// Part is one part of a split.
type Part struct {
	Name   string
	Weight float64 // its share is its weight over the sum of weights
}

// Conversion says what was made.
type Conversion struct {
	Reading
	Samples  int64 // written
	Filtered int64 // left out by Keys
	Outputs  []Written
}

// splitMark in the name of an output stands for the name of a part.
const splitMark = "{split}"

// Convert reads shards in order and writes their samples as shards of the name
// out. The outputs appear together when all are complete, or not at all.
//
// Between tar and TFRecord, a tar field is a feature of one byte string and
// back. Features of other kinds become JSON texts under names that end in the
// kind (label.int64.json), and become what they were on the way back. A key is
// the feature __key__, the first one; an Example without it gets its number
// for a key. A tar shard made from records says in a global header what they
// were, so that features, kinds and order survive a round trip.
func Convert(ctx context.Context, names []string, out string, o *ConvertOptions) (*Conversion, error) {
	c, err := newConversion(ctx, names, out, o)
	if err != nil {
		return nil, err
	}
	defer c.sink.Abort()
	if c.o.Shuffle || c.o.Shards > 0 {
		err = c.twice()
	} else {
		err = c.once()
	}
	if err != nil {
		return nil, err
	}
	return &c.result, c.commit()
}

type conversion struct {
	ctx    context.Context
	names  []string
	o      ConvertOptions
	sink   *Sink
	match  func(key []byte) bool
	parts  []*part
	mapper mapper
	losses lossList
	begun  bool  // whether a sample was written
	number int64 // of the next sample of the inputs that is kept
	result Conversion
}

// part is one output of a split.
type part struct {
	upTo   float64 // its samples have a hash below this part of 1
	w      *Writer
	total  int64 // samples that it will get, where that is known
	shards int64 // into how many shards they go; 0: as the Writer sees fit
}

func newConversion(ctx context.Context, names []string, out string, o *ConvertOptions) (*conversion, error) {
	c := &conversion{ctx: ctx, names: names}
	if o != nil {
		c.o = *o
	}
	c.o.Options = c.o.Options.orDefault()
	c.mapper.Mapping = c.o.Mapping
	c.losses = lossList{told: c.o.Read.OnLoss, to: &c.result.Reading}
	var err error
	if c.match, err = keyMatcher(c.o.Keys); err != nil {
		return nil, err
	}
	if c.o.Shards > 0 && (c.o.Output.Count > 0 || c.o.Output.Size > 0) {
		return nil, outputError(format.ErrUsage, out, "a number of shards and a bound on their count or size exclude each other")
	}
	c.sink = NewSink(ctx, &SinkOptions{Store: c.o.Store, Force: c.o.Output.Force, Level: c.o.Output.Level})
	return c, c.split(out)
}

// split makes a Writer for each part.
func (c *conversion) split(out string) error {
	parts := c.o.Parts
	if marked := strings.Contains(out, splitMark); marked != (len(parts) > 0) {
		return outputError(format.ErrUsage, out, "a split needs %s in the output's name, and the other way round", splitMark)
	}
	if len(parts) == 0 {
		parts = []Part{{Weight: 1}}
	}
	var sum, upTo float64
	for _, p := range parts {
		if p.Name == ".." || strings.ContainsAny(p.Name, `/\`) {
			return outputError(format.ErrUsage, out, "the name of the part %q is no word", p.Name)
		}
		if !(p.Weight > 0) || math.IsInf(p.Weight, 0) {
			return outputError(format.ErrUsage, out, "the part %q has the weight %v", p.Name, p.Weight)
		}
		sum += p.Weight
	}
	for i, p := range parts {
		w, err := NewWriter(c.sink, strings.ReplaceAll(out, splitMark, p.Name), &c.o.Output)
		if err != nil {
			return err
		}
		if c.o.Shards > 0 && !w.numbered {
			return outputError(format.ErrUsage, out, "several shards need a number such as %%06d in the name")
		}
		if upTo += p.Weight / sum; i == len(parts)-1 {
			upTo = math.Inf(1)
		}
		c.parts = append(c.parts, &part{upTo: upTo, w: w, shards: int64(c.o.Shards)})
	}
	return nil
}

// partOf returns the number of the part that a key belongs to: the first 8 bytes of the
// SHA-256 of the key, as a big-endian fraction of 1, against the sums of the
// shares. It depends on nothing else, so a key is always in the same part.
func (c *conversion) partOf(key []byte) int {
	if len(c.parts) == 1 {
		return 0
	}
	sum := sha256.Sum256(key)
	at := float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
	return slices.IndexFunc(c.parts, func(p *part) bool { return at < p.upTo }) // the last one's is without bound
}

// once reads the inputs and writes as it goes.
func (c *conversion) once() error {
	for _, name := range c.names {
		err := c.shard(c.o.Store, name, c.losses.add, func(in *input, _ *reader.Shard, sample *format.Sample) error {
			return c.put(in, sample, c.parts[c.partOf(c.keyed(sample))])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// shard passes the samples of one input that are kept to each, and its losses
// to lost.
func (c *conversion) shard(st store.Store, name string, lost func(format.Loss), each func(in *input, s *reader.Shard, sample *format.Sample) error) error {
	read := c.o.Read
	read.OnLoss = lost
	s, err := reader.OpenShard(c.ctx, st, name, &read)
	if err != nil {
		return err
	}
	defer s.Close()
	var in *input // what it is shows with the first sample
	for sample, err := range s.Samples() {
		if err != nil {
			return err
		}
		if !c.match(sample.Key) {
			c.result.Filtered++
			continue
		}
		if in == nil {
			in = &input{s.Name(), s.Format(), s.Type(), s.Globals()}
		}
		if err := each(in, s, sample); err != nil {
			return err
		}
	}
	c.result.gather(s)
	return nil
}

// keyWidth pads the numbers that stand in for keys, so that they sort.
const keyWidth = 9

// keyed gives a sample of the inputs that has no key its number for one, and
// returns the key.
func (c *conversion) keyed(s *format.Sample) []byte {
	if s.Key == nil {
		s.Key = fmt.Appendf(nil, "%0*d", keyWidth, c.number)
	}
	c.number++
	return s.Key
}

// input is what decides how the samples of a shard are mapped.
type input struct {
	name    string
	format  reader.Format
	typ     reader.Type
	globals map[string]string
}

// put maps a sample and writes it to its part.
func (c *conversion) put(from *input, s *format.Sample, p *part) error {
	layout, mapped := c.route(from, s, p.w.format)
	switch have := c.parts[0].w.o.Layout; {
	case !c.begun:
		c.begun = true
		c.mapper.explicitKeys = layout.ExplicitKeys
		for _, p := range c.parts {
			p.w.SetLayout(layout)
			p.w.o.LastDot = c.o.Read.LastDot && from.format == reader.Tar
		}
	case have.Type != layout.Type:
		return format.Errorf(format.ErrUsage, s.Location(), "its records are of type %s, those before it of type %s: convert them apart, or choose one type", layout.Type, have.Type)
	}
	out, err := mapped(s)
	if err != nil {
		return err
	}
	if p.shards > 0 && p.w.out != nil && p.w.samples >= p.quota() {
		if err := p.w.Next(); err != nil {
			return err
		}
	}
	c.result.Samples++
	return p.w.Write(out)
}

// route says what the records on the side of TFRecord are, and how samples are
// mapped.
func (c *conversion) route(from *input, s *format.Sample, to reader.Format) (RecordLayout, func(*format.Sample) (*format.Sample, error)) {
	switch {
	case to == reader.Tar && from.format == reader.Tar:
		return layoutOf(from.globals), c.mapper.same
	case to == reader.Tar:
		return RecordLayout{Type: from.typ, ExplicitKeys: !startsWithKey(s)}, c.mapper.toTar
	case from.format == reader.Tar:
		return layoutOf(from.globals), c.mapper.toRecord
	case c.mapper.idle() && len(c.o.Read.Fields) == 0:
		return RecordLayout{Type: reader.Raw}, c.mapper.verbatim
	default:
		return RecordLayout{Type: from.typ}, c.mapper.same
	}
}

// quota returns how many samples the open shard of the part gets.
func (p *part) quota() int64 {
	n := p.total / p.shards
	if int64(len(p.w.done)) < p.total%p.shards {
		n++
	}
	return n
}

// commit ends the outputs and lets them appear.
func (c *conversion) commit() error {
	for _, p := range c.parts {
		if err := p.w.Close(); err != nil {
			return err
		}
		for int64(len(p.w.done)) < p.shards {
			if err := p.w.Next(); err != nil {
				return err
			}
		}
		c.result.Outputs = append(c.result.Outputs, p.w.Written()...)
	}
	return c.sink.Commit()
}
