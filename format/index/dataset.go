package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"shardtool/format"
)

// Dataset is a wids index: the shards of a data set. What wids itself does not
// read back (weights, nested data sets) is not kept.
type Dataset struct {
	Name   string         // of the data set
	Base   string         // what the URLs are relative to; "": the place of the index
	Info   string         // for people
	Shards []DatasetShard // wids sorts them by URL
}

// DatasetShard is one shard of a Dataset.
type DatasetShard struct {
	URL     string
	Samples int64
	Size    int64  // in bytes; format.Unknown if not told
	MD5     string // of the file, in hexadecimal; "" if not told

	// What follows is not wids', which passes over it. "" is not told.
	ETag        string // of the object that has been counted
	Format      string // tfrecord or tar
	Compression string // none, gzip, zlib or zstd
}

// Samples returns the number of samples of all shards.
func (d *Dataset) Samples() int64 {
	var n int64
	for _, s := range d.Shards {
		n += s.Samples
	}
	return n
}

const datasetKind = "wids-shard-index-v1"

// The members in the order and under the names that widsindex gives them.
type datasetJSON struct {
	Kind    string      `json:"__kind__"`
	Version int         `json:"wids_version"`
	Shards  []shardJSON `json:"shardlist"`
	Name    string      `json:"name,omitempty"`
	Base    string      `json:"base,omitempty"`
	Info    string      `json:"info,omitempty"`
}

type shardJSON struct {
	URL     *string `json:"url"`
	MD5     string  `json:"md5sum,omitempty"`
	Samples *int64  `json:"nsamples"`
	Size    *int64  `json:"filesize,omitempty"`

	ETag        string `json:"etag,omitempty"`
	Format      string `json:"format,omitempty"`
	Compression string `json:"compression,omitempty"`
}

// Write writes the index as widsindex does, indented by two.
func (d *Dataset) Write(w io.Writer) error {
	doc := datasetJSON{Kind: datasetKind, Version: 1, Shards: []shardJSON{}, Name: d.Name, Base: d.Base, Info: d.Info}
	for i := range d.Shards {
		s := &d.Shards[i]
		row := shardJSON{
			URL: &s.URL, MD5: s.MD5, Samples: &s.Samples, ETag: s.ETag, Format: s.Format, Compression: s.Compression,
		}
		if s.Size >= 0 {
			row.Size = &s.Size
		}
		doc.Shards = append(doc.Shards, row)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(doc)
}

// ReadDataset reads a wids index. Faults are those of Read; Record is the
// number of the shard in the list.
func ReadDataset(r io.Reader, o *Options) (*Dataset, error) {
	p, prefix, err := newParser(r, o)
	if err != nil {
		return nil, err
	}
	if d, ok := Sniff(prefix); !ok || d != WIDS {
		return nil, p.fault(format.ErrWrongFormat, "not a JSON document")
	}
	dec := json.NewDecoder(&limitedReader{p})
	doc := &datasetReader{p: p, dec: dec, d: &Dataset{}}
	if err := doc.object(doc.member); err != nil {
		return nil, doc.fault(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		if err == nil {
			err = errors.New("goes on after the document")
		}
		return nil, doc.fault(err)
	}
	switch {
	case doc.kind == "" && !doc.listed, doc.kind != "" && doc.kind != datasetKind:
		return nil, p.fault(format.ErrWrongFormat, "a JSON document, but no %s", datasetKind)
	case doc.version != 1:
		return nil, p.fault(format.ErrUnsupported, "wids_version %d; read is 1", doc.version)
	case !doc.listed:
		return nil, p.fault(format.ErrCorrupt, "no shardlist")
	}
	return doc.d, nil
}

// limitedReader counts what a decoder takes.
type limitedReader struct{ p *parser }

func (l *limitedReader) Read(b []byte) (int, error) {
	n, err := l.p.r.Read(b)
	if e := l.p.take(n); e != nil {
		return 0, e
	}
	if err != nil && err != io.EOF {
		err = l.p.readFault(err)
	}
	return n, err
}

// datasetReader goes through the document by its tokens, so that a list of
// shards need not be held twice.
type datasetReader struct {
	p       *parser
	dec     *json.Decoder
	d       *Dataset
	kind    string
	version int64
	listed  bool
}

// fault classes an error of the decoder.
func (r *datasetReader) fault(err error) error {
	var e *format.Error
	if errors.As(err, &e) || format.ReadError(err, format.Nowhere) == err {
		return err
	}
	r.p.start = r.dec.InputOffset()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.p.fault(format.ErrTruncated, "the document ends too early")
	}
	return r.p.fault(format.ErrCorrupt, "%v", err)
}

// object reads an object and lets each of its members be read.
func (r *datasetReader) object(member func(name string) error) error {
	if err := r.delim('{'); err != nil {
		return err
	}
	for r.dec.More() {
		t, err := r.dec.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		if err := member(name); err != nil {
			return err
		}
	}
	return r.delim('}')
}

func (r *datasetReader) delim(want json.Delim) error {
	t, err := r.dec.Token()
	if err == nil && t != want {
		err = errors.New("not the " + want.String() + " that belongs there")
	}
	return err
}

func (r *datasetReader) member(name string) error {
	switch name {
	case "__kind__":
		return r.dec.Decode(&r.kind)
	case "wids_version":
		return r.dec.Decode(&r.version)
	case "name":
		return r.dec.Decode(&r.d.Name)
	case "base":
		return r.dec.Decode(&r.d.Base)
	case "info":
		return r.dec.Decode(&r.d.Info)
	case "shardlist":
		return r.shardlist()
	default:
		return r.skip()
	}
}

// skip passes over a value by its tokens: what is not used is not held.
func (r *datasetReader) skip() error {
	depth := 0
	for {
		t, err := r.dec.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

func (r *datasetReader) shardlist() error {
	if r.listed {
		return errors.New("a second shardlist")
	}
	r.listed = true
	if err := r.delim('['); err != nil {
		return err
	}
	for r.dec.More() {
		r.p.record = int64(len(r.d.Shards))
		r.p.start = r.dec.InputOffset()
		var raw json.RawMessage
		if err := r.dec.Decode(&raw); err != nil {
			return err
		}
		if err := r.shard(raw); err != nil {
			return err
		}
	}
	r.p.record = format.Unknown
	return r.delim(']')
}

func (r *datasetReader) shard(raw []byte) error {
	var row shardJSON
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&row); err != nil {
		return err
	}
	switch {
	case row.URL == nil || *row.URL == "":
		return r.p.fault(format.ErrCorrupt, "a shard without url")
	case row.Samples == nil:
		return r.p.fault(format.ErrCorrupt, "the shard %q without nsamples", clip([]byte(*row.URL)))
	case *row.Samples < 0 || row.Size != nil && *row.Size < 0:
		return r.p.fault(format.ErrCorrupt, "the shard %q with a negative number", clip([]byte(*row.URL)))
	}
	s := DatasetShard{
		URL: *row.URL, Samples: *row.Samples, Size: format.Unknown, MD5: row.MD5,
		ETag: row.ETag, Format: row.Format, Compression: row.Compression,
	}
	if row.Size != nil {
		s.Size = *row.Size
	}
	if err := r.p.hold(112 + len(s.URL) + len(s.MD5) + len(s.ETag) + len(s.Format) + len(s.Compression)); err != nil {
		return err
	}
	r.d.Shards = append(r.d.Shards, s)
	return nil
}
