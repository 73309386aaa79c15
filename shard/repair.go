package shard

import (
	"context"
	"io"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/reader"
)

// RepairOptions says how a shard is repaired.
type RepairOptions struct {
	Options
	Compress *compress.Kind // of the output; nil: by the suffix of its name, else as the input
	Level    int
	Force    bool // replace an existing file
}

// Repair reads a shard over its faults and writes what is sound as a shard of
// the same format. The losses in the result say what is not in it. Records of
// a TFRecord shard are kept to the byte, whatever they hold. Of a tar shard
// the samples are kept: members that belong to none are left out and counted;
// of a field that a sample has twice the first is kept, unless
// o.Read.OnDuplicate says otherwise.
//
// The output appears when it is complete, or not at all.
func Repair(ctx context.Context, in, out string, o *RepairOptions) (*Conversion, error) {
	var d RepairOptions
	if o != nil {
		d = *o
	}
	d.Options = d.Options.orDefault()
	read := d.Read
	read.OnError, read.Type, read.Fields = format.Resync, reader.Raw, nil
	if read.OnDuplicate == format.DuplicateError {
		read.OnDuplicate = format.KeepFirst
	}
	result := &Conversion{}
	losses := &lossList{told: d.Read.OnLoss, to: &result.Reading}
	read.OnLoss = losses.add
	s, err := reader.OpenShard(ctx, d.Store, in, &read)
	if err != nil {
		return nil, err
	}
	defer s.Close()

	sink := NewSink(ctx, &SinkOptions{Store: d.Store, Force: d.Force, Level: d.Level})
	defer sink.Abort()
	w, err := NewWriter(sink, out, d.output(s, out))
	if err != nil {
		return nil, err
	}
	if err := copySamples(s, w, losses); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	result.gather(s)
	result.Outputs = w.Written()
	result.Samples = result.Outputs[0].Samples
	return result, sink.Commit()
}

func (o *RepairOptions) output(s *reader.Shard, out string) *OutputOptions {
	w := &OutputOptions{Format: s.Format(), Compress: o.Compress, Layout: RecordLayout{Type: reader.Raw}, LastDot: o.Read.LastDot}
	if k := s.Compression(); w.Compress == nil && CompressionOf(out) == compress.None {
		w.Compress = &k
	}
	return w
}

// copySamples writes the samples that are left of s. Where the data ends early
// that is one more loss.
func copySamples(s *reader.Shard, w *Writer, losses *lossList) error {
	first := true
	for {
		sample, err := s.Next()
		switch {
		case err == io.EOF:
			return nil
		case damaged(err):
			losses.add(format.Loss{Offset: s.End(), Records: format.Unknown, Err: err})
			return nil
		case err != nil:
			return err
		}
		if first && s.Format() == reader.Tar {
			w.SetLayout(layoutOf(s.Globals()))
		}
		first = false
		if err := w.Write(sample); err != nil {
			return err
		}
	}
}
