package shard

import (
	"hash/maphash"
	"strings"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/format/tarshard"
	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
	"shardtool/reader"
)

// OutputOptions says how shards are written. The zero value is one shard whose
// format and compression its name tells.
type OutputOptions struct {
	Format   reader.Format  // AutoFormat: by the suffix of the name
	Compress *compress.Kind // nil: by the suffix of the name
	Level    int            // of compression; 0: the default of each
	Force    bool           // replace existing files
	Count    int64          // begin another shard after so many samples; 0: no bound
	Size     int64          // begin another shard before it would grow over so many bytes, before compression; 0: no bound
	Layout   RecordLayout   // of what is written; see RecordLayout
	LastDot  bool           // keys of a tar end at the last dot of a base name, as they do for a reader that is told so
}

// RecordLayout says what the records of a TFRecord shard hold. A tar shard
// that was made from one carries it in a global header, so that going back
// gives the same records.
type RecordLayout struct {
	Type reader.Type // Example, Sequence or Raw
	// ExplicitKeys: the features of a sample are exactly its fields. Without
	// it, an Example begins with the feature __key__, which is the sample's
	// key and no field.
	ExplicitKeys bool
}

// Names of the records in a tar's global header.
const (
	layoutType = "SHARDTOOL.records"
	layoutKeys = "SHARDTOOL.keys"
)

// records returns what a tar's global header says of the layout: nothing where
// it is the one that any tar shard is taken to have.
func (l RecordLayout) records() map[string]string {
	if l == (RecordLayout{Type: reader.Example}) {
		return nil
	}
	keys := "first"
	if l.ExplicitKeys {
		keys = "explicit"
	}
	return map[string]string{layoutType: l.Type.String(), layoutKeys: keys}
}

// layoutOf reads what records wrote.
func layoutOf(global map[string]string) RecordLayout {
	l := RecordLayout{Type: reader.Example}
	for _, t := range []reader.Type{reader.Example, reader.Sequence, reader.Raw} {
		if t.String() == global[layoutType] {
			l = RecordLayout{Type: t, ExplicitKeys: global[layoutKeys] == "explicit"}
		}
	}
	return l
}

// Written describes a shard that was written.
type Written struct {
	Name    string
	Samples int64
	Bytes   int64 // before compression
	Stored  int64 // after it
}

// Writer writes samples to one shard or, where the name of the output has a
// number, to as many as Count and Size ask for. The shards belong to a Sink
// and appear when it is committed.
type Writer struct {
	sink     *Sink
	part     func(i int) string
	numbered bool
	format   reader.Format
	compress compress.Kind
	o        OutputOptions

	out     *Output
	enc     encoder
	done    []Written
	samples int64 // of the open shard
}

// NewWriter begins shards of the name out, which may hold a number such as
// %06d.
func NewWriter(sink *Sink, out string, o *OutputOptions) (*Writer, error) {
	w := &Writer{sink: sink}
	if o != nil {
		w.o = *o
	}
	if w.o.Layout.Type == reader.AutoType {
		w.o.Layout.Type = reader.Example
	}
	var err error
	if w.part, w.numbered, err = Numbered(out); err != nil {
		return nil, err
	}
	if !w.numbered && (w.o.Count > 0 || w.o.Size > 0) {
		return nil, outputError(format.ErrUsage, out, "a bound on count or size makes several shards: the name needs a number such as %%06d")
	}
	if w.format = w.o.Format; w.format == reader.AutoFormat {
		w.format = reader.FormatOf(w.part(0))
	}
	if w.format == reader.AutoFormat {
		return nil, outputError(format.ErrUsage, out, "the name does not say whether to write tar or tfrecord: end it so, or choose the format")
	}
	w.compress = CompressionOf(out)
	if w.o.Compress != nil {
		w.compress = *w.o.Compress
	}
	return w, nil
}

// Format returns the format of the shards.
func (w *Writer) Format() reader.Format { return w.format }

// SetLayout says what the records are. It has an effect on shards that are
// begun later.
func (w *Writer) SetLayout(l RecordLayout) { w.o.Layout = l }

// Write adds a sample. Its fields must be what the format holds: byte strings
// for tar.
func (w *Writer) Write(s *format.Sample) error {
	if w.out != nil && w.full(s) {
		if err := w.end(); err != nil {
			return err
		}
	}
	if w.out == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	if err := w.enc.write(s); err != nil {
		return err
	}
	w.samples++
	return nil
}

func (w *Writer) full(s *format.Sample) bool {
	return w.o.Count > 0 && w.samples >= w.o.Count ||
		w.o.Size > 0 && w.samples > 0 && w.enc.grown(s) > w.o.Size
}

// Next ends the open shard, so that the next sample begins another. Without
// an open shard it makes an empty one.
func (w *Writer) Next() error {
	if w.out == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	return w.end()
}

func (w *Writer) begin() error {
	out, err := w.sink.Create(w.part(len(w.done)), w.compress)
	if err != nil {
		return err
	}
	w.out, w.samples = out, 0
	if w.format == reader.Tar {
		w.enc = newTarEncoder(out, &w.o)
	} else {
		w.enc = newRecordEncoder(out, w.o.Layout)
	}
	return nil
}

func (w *Writer) end() error {
	err := w.enc.close()
	if e := w.out.Close(); err == nil {
		err = e
	}
	w.done = append(w.done, Written{w.out.Name(), w.samples, w.out.Bytes(), w.out.Stored()})
	w.out = nil
	return err
}

// Close ends the last shard; without any sample it leaves one empty shard. The
// Sink still has to be committed.
func (w *Writer) Close() error {
	if w.out == nil && len(w.done) > 0 {
		return nil
	}
	return w.Next()
}

// Written describes the shards that are complete.
func (w *Writer) Written() []Written { return w.done }

// encoder writes the samples of one shard.
type encoder interface {
	write(*format.Sample) error
	grown(*format.Sample) int64 // bytes of the shard if the sample were added and the shard ended
	close() error
}

// tarEncoder remembers the keys of its shard: a key that comes again would be
// read as an error, or melt into the sample before it.
type tarEncoder struct {
	w    *tarshard.Writer
	keys map[uint64]struct{} // hashes
	seed maphash.Seed
}

// maxKeys bounds what is remembered, which is some 100 MB then. More samples
// than that are in no shard of a sensible size.
const maxKeys = 4 << 20

func newTarEncoder(out *Output, o *OutputOptions) *tarEncoder {
	w := tarshard.NewWriter(out, &tarshard.WriterOptions{GlobalRecords: o.Layout.records(), LastDot: o.LastDot})
	return &tarEncoder{w: w, keys: make(map[uint64]struct{}), seed: maphash.MakeSeed()}
}

func (e *tarEncoder) write(s *format.Sample) error {
	if len(s.Fields) == 0 {
		return format.Errorf(format.ErrUsage, s.Location(), "a sample without fields cannot be in a tar")
	}
	key := maphash.Bytes(e.seed, s.Key)
	if _, twice := e.keys[key]; twice {
		return format.Errorf(format.ErrDuplicate, s.Location(), "another sample of the same shard has the key %q: write them to different shards", s.Key)
	}
	if len(e.keys) < maxKeys {
		e.keys[key] = struct{}{}
	}
	return e.w.WriteSample(s)
}

func (e *tarEncoder) grown(s *format.Sample) int64 { return e.w.SizeWith(s) }
func (e *tarEncoder) close() error                 { return e.w.Close() }

// recordEncoder writes Examples, SequenceExamples or raw records.
type recordEncoder struct {
	w       *tfrecord.Writer
	typ     reader.Type
	example tfexample.Builder
	seq     tfexample.SequenceBuilder
	buf     []byte
	built   *format.Sample // what buf holds
}

func newRecordEncoder(out *Output, l RecordLayout) *recordEncoder {
	return &recordEncoder{w: tfrecord.NewWriter(out), typ: l.Type}
}

func (e *recordEncoder) write(s *format.Sample) error {
	if err := e.build(s); err != nil {
		return err
	}
	e.built = nil
	return e.w.Write(e.buf)
}

func (e *recordEncoder) grown(s *format.Sample) int64 {
	if e.build(s) != nil {
		return 0 // write will say
	}
	e.built = s
	return e.w.Offset() + int64(len(e.buf)) + tfrecord.Overhead
}

// build makes the record of s in buf, unless grown has done so just now.
func (e *recordEncoder) build(s *format.Sample) error {
	if e.built == s && s != nil {
		return nil
	}
	e.buf = e.buf[:0]
	switch e.typ {
	case reader.Raw:
		if len(s.Fields) != 1 || s.Fields[0].Kind != format.Bytes {
			return format.Errorf(format.ErrUsage, s.Location(), "a raw record is made of one field of bytes; this sample has %s", strings.Join(s.Names(), ", "))
		}
		e.buf = append(e.buf, s.Fields[0].Data...)
	case reader.Sequence:
		e.seq.Reset()
		for _, f := range s.Fields {
			e.seq.AddField(f)
		}
		e.buf = e.seq.AppendTo(e.buf)
	default:
		e.example.Reset()
		for _, f := range s.Fields {
			if f.Kind == format.FeatureList {
				at := s.Location()
				at.Field = f.Name
				return format.Errorf(format.ErrUsage, at, "an Example cannot hold a feature list")
			}
			e.example.AddField(f)
		}
		e.buf = e.example.AppendTo(e.buf)
	}
	return nil
}

func (e *recordEncoder) close() error { return e.w.Flush() }
