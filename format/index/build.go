package index

import (
	"io"

	"shardtool/format"
	"shardtool/format/tarshard"
	"shardtool/format/tfrecord"
)

// OfTFRecord builds the index of a TFRecord shard: where each record stands.
// Only lengths are read and checked. A faulty shard is an error: there is no
// index of half a shard.
func OfTFRecord(s Shard, limits *format.Limits) (*Index, error) {
	x := &Index{Dialect: DALI, offsets: []int64{}, sizes: []int64{}}
	for span, err := range tfrecord.Scan(s.At, s.Size, &tfrecord.Options{Shard: s.Name, Limits: limits}) {
		if err != nil {
			return nil, err
		}
		x.offsets = append(x.offsets, span.Offset)
		x.sizes = append(x.sizes, span.Size)
		x.end = span.Offset + span.Size
	}
	return x, nil
}

// OfTar builds the index of a tar shard: where each sample begins, and where
// the data of its members stands. Only headers are read. o says how names are
// grouped, and may be nil; faults are errors whatever it says. Members that are
// links are left out, as wds2idx and Energon leave them out, and counted: a
// reader that goes by the index finds no data under their names.
func OfTar(s Shard, o *tarshard.Options) (*Index, error) {
	var opts tarshard.Options
	if o != nil {
		opts = *o
	}
	opts.Shard, opts.OnError = s.Name, format.Stop
	x := &Index{Dialect: WDS, offsets: []int64{}, first: []int{}}
	scan := tarshard.NewScannerAt(s.At, s.Size, &opts)
	for {
		e, err := scan.Next()
		if err == io.EOF {
			return x, nil
		}
		if err != nil {
			return nil, err
		}
		x.add(e)
	}
}

// add adds a sample, unless all of its members are links.
func (x *Index) add(e *tarshard.Entry) {
	start := len(x.fields)
	for i := range e.Members {
		m := &e.Members[i]
		if m.Linked {
			x.Links++
			continue
		}
		if len(x.fields) == start {
			x.offsets = append(x.offsets, m.Offset)
			x.first = append(x.first, start)
		}
		x.fields = append(x.fields, Field{Name: m.Field, Member: string(m.Name), Offset: m.Data, Size: m.Size})
		x.end = padded(m.Data + m.Size)
	}
}
