// Package format is the vocabulary that every other package shares: what a
// sample is, where in a shard it stands, what can be wrong with it, and how
// large things may get.
//
// A shard is one file of many samples. Its format is TFRecord (a sequence of
// framed records, see format/tfrecord) or WebDataset tar (a tar archive whose
// adjacent members of one key are one sample, see format/tarshard). Readers of
// both deliver a [Sample]; their faults are an [*Error] that wraps one of the
// sentinels of this package and says where it was found; every length that
// they take from input meets a bound of [Limits] first.
//
// This package imports nothing of the project.
package format

import (
	"bytes"
	"slices"
)

// Kind is the type of a field's value.
type Kind uint8

const (
	// Bytes is one byte string: Field.Data is the value. Every member of a
	// tar shard is Bytes.
	Bytes Kind = iota
	// BytesList is a list of byte strings: Field.Data is an encoded
	// tf.train.BytesList.
	BytesList
	// FloatList is a list of float32: Field.Data is an encoded
	// tf.train.FloatList.
	FloatList
	// Int64List is a list of int64: Field.Data is an encoded
	// tf.train.Int64List.
	Int64List
	// FeatureList is a list of features, one for each step of a sequence:
	// Field.Data is an encoded tf.train.FeatureList.
	FeatureList
	// NoKind is a tf.train.Feature in which no list is set: Field.Data is
	// empty.
	NoKind
)

// String returns the name used in the output of commands: bytes, bytes_list,
// float, int64, feature_list or none.
func (k Kind) String() string {
	switch k {
	case Bytes:
		return "bytes"
	case BytesList:
		return "bytes_list"
	case FloatList:
		return "float"
	case Int64List:
		return "int64"
	case FeatureList:
		return "feature_list"
	default:
		return "none"
	}
}

// Field is one named value of a sample: a member of a tar shard, or a feature
// of an Example. Package format/tfexample reads the lists of a field that is
// not Bytes.
type Field struct {
	Name   string // as stored: the suffix of a member's name after the key and its dot, or a feature's name
	Kind   Kind   // how Data is to be read
	Data   []byte // lent together with the sample; nil where the value is not there or was not read
	Length int64  // of a value that was not read, in bytes; see Size
	Offset int64  // of the field's first data byte in the decompressed stream, in bytes
}

// Size returns the size of the value in bytes, whether it was read or not.
func (f *Field) Size() int64 {
	if f.Data == nil {
		return f.Length
	}
	return int64(len(f.Data))
}

// Sample is one example of a shard.
//
// A reader that returns a *Sample owns it and all the memory it refers to, and
// lends both until its next call. Clone makes a copy that lasts. The names of
// fields are strings that last.
type Sample struct {
	Shard  string  // name of the shard, as it was opened
	Index  int64   // place among the samples of the shard, from 0
	Offset int64   // first byte of the sample in the decompressed stream: of its first header or frame
	Key    []byte  // a tar sample's key, or an Example's __key__ feature; nil where there is none
	Fields []Field // in the order of the shard
	Record []byte  // the whole payload of a TFRecord shard's record; nil for tar
}

// Field returns the first field whose name equals name without regard to case,
// or nil. The name may hold alternatives separated by semicolons, as in
// "jpg;jpeg;png": the first that is present is returned.
func (s *Sample) Field(name string) *Field {
	for name != "" {
		alt := name
		if i := indexSemicolon(name); i >= 0 {
			alt, name = name[:i], name[i+1:]
		} else {
			name = ""
		}
		for i := range s.Fields {
			if EqualName(s.Fields[i].Name, alt) {
				return &s.Fields[i]
			}
		}
	}
	return nil
}

func indexSemicolon(s string) int {
	for i := range len(s) {
		if s[i] == ';' {
			return i
		}
	}
	return -1
}

// EqualName reports whether two field names are the same without regard to the
// case of ASCII letters.
func EqualName(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// Names returns the names of the fields in the order of the shard.
func (s *Sample) Names() []string {
	names := make([]string, len(s.Fields))
	for i := range s.Fields {
		names[i] = s.Fields[i].Name
	}
	return names
}

// Bytes returns the sum of the sizes of the fields, in bytes.
func (s *Sample) Bytes() int64 {
	var n int64
	for i := range s.Fields {
		n += s.Fields[i].Size()
	}
	return n
}

// Clone returns a copy of s that shares no memory with it.
func (s *Sample) Clone() *Sample {
	c := *s
	c.Key = bytes.Clone(s.Key)
	c.Record = bytes.Clone(s.Record)
	c.Fields = slices.Clone(s.Fields)
	for i := range c.Fields {
		c.Fields[i].Data = bytes.Clone(s.Fields[i].Data)
	}
	return &c
}

// Location returns where the sample stands, for an error about it. Building it
// allocates.
func (s *Sample) Location() Location {
	return Location{Shard: s.Shard, Offset: s.Offset, Record: s.Index, Key: string(s.Key)}
}
