package shard

import (
	"context"
	"io"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/reader"
)

// InspectOptions says how much of each shard is looked at.
type InspectOptions struct {
	Options
	Limit int64 // look at no more than the first samples; 0: all
	Keys  int   // how many first keys are kept; 0: 5
}

// Inspection says what a shard is and holds.
type Inspection struct {
	Shard       string
	Format      reader.Format
	Type        reader.Type // of a TFRecord shard's records
	Compression compress.Kind
	Size        int64 // stored bytes; format.Unknown for a pipe
	Samples     int64
	Whole       bool // whether the end of the shard was reached
	Fields      []FieldStats
	Keys        []string // of the first samples that have one
	Skipped     map[string]int64
	Errors      []error // the first faults seen
	ErrorsTotal int64
}

// FieldStats sums up one field over the samples looked at.
type FieldStats struct {
	Name     string
	Kind     format.Kind
	Samples  int64 // that have the field
	Bytes    int64 // of its data, over all of them
	MinBytes int64
	MaxBytes int64
	Mixed    bool // whether some samples have it with another Kind

	// Images is what the headers of the field's images say; nil where it holds
	// none, or where the shard is a tar that cannot be read at offsets
	// (compressed, or a pipe). A field holds images if its name promises one
	// (see StatsOptions), or if its content does where it is first seen.
	Images *ImageCounts
}

// Inspect looks at shards and passes an Inspection of each to out, in order.
// Faults are seen and read over; they are part of the Inspection. It returns
// an error only if ctx ended or out failed.
func Inspect(ctx context.Context, names []string, o *InspectOptions, out func(*Inspection) error) error {
	var d InspectOptions
	if o != nil {
		d = *o
	}
	d.Options = d.Options.orDefault()
	if d.Keys == 0 {
		d.Keys = 5
	}
	return inOrder(ctx, len(names), d.Jobs, func(ctx context.Context, i int, emit func(*Inspection) bool) {
		in := &Inspection{Shard: names[i], Size: format.Unknown}
		in.run(ctx, &d)
		if ctx.Err() == nil {
			emit(in)
		}
	}, out)
}

func (in *Inspection) run(ctx context.Context, o *InspectOptions) {
	faults := &faultList{most: 10}
	defer func() { in.Errors, in.ErrorsTotal = faults.kept, faults.total }()

	s := faults.open(ctx, &o.Options, in.Shard)
	if s == nil {
		return
	}
	defer s.Close()
	in.Format, in.Compression, in.Size = s.Format(), s.Compression(), s.Size()
	limits := o.Read.Limits.OrDefault()
	fields := fieldTable{most: limits.Fields, at: make(map[string]int)}
	headers, err := newHeaderReader(ctx, &o.Options, s)
	if err != nil {
		faults.add(err)
		return
	}
	defer headers.close()
	for o.Limit == 0 || in.Samples < o.Limit {
		sample, err := s.Next()
		if err == io.EOF {
			in.Whole = true
			break
		}
		if err != nil {
			faults.add(err)
			break
		}
		in.Samples++
		if len(sample.Key) > 0 && len(in.Keys) < o.Keys {
			in.Keys = append(in.Keys, string(sample.Key))
		}
		if err := fields.add(sample, headers); err != nil {
			faults.add(format.ReadError(err, sample.Location()))
			break
		}
	}
	in.Type, in.Fields, in.Skipped = s.Type(), fields.stats, s.Skipped()
	if in.Whole {
		for _, err := range warned(s, &o.Read) {
			faults.add(err)
		}
	}
}

// fieldTable gathers FieldStats in the order in which fields are first seen.
type fieldTable struct {
	most  int
	at    map[string]int
	stats []FieldStats
}

// add counts a sample. An error is of reading the shard.
func (t *fieldTable) add(s *format.Sample, headers *headerReader) error {
	for i := range s.Fields {
		f := &s.Fields[i]
		n := f.Size()
		k, ok := t.at[f.Name]
		if !ok {
			if len(t.stats) == t.most {
				continue
			}
			k = len(t.stats)
			t.at[f.Name] = k
			t.stats = append(t.stats, FieldStats{Name: f.Name, Kind: f.Kind, MinBytes: n})
			images, err := headers.holdsImages(f)
			if err != nil {
				return err
			}
			if images {
				t.stats[k].Images = new(ImageCounts)
			}
		}
		st := &t.stats[k]
		st.Samples++
		st.Bytes += n
		st.MinBytes, st.MaxBytes = min(st.MinBytes, n), max(st.MaxBytes, n)
		st.Mixed = st.Mixed || st.Kind != f.Kind
		if st.Images != nil {
			if err := headers.count(st.Images, f); err != nil {
				return err
			}
		}
	}
	return nil
}
