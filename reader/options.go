package reader

import (
	"path"
	"regexp"
	"strings"

	"shardtool/format"
)

// Format is the format of a shard.
type Format uint8

const (
	AutoFormat Format = iota // the suffix of the name, else the content
	TFRecord                 // framed records
	Tar                      // WebDataset tar
)

// String returns the word that commands use: auto, tfrecord or tar.
func (f Format) String() string { return [...]string{"auto", "tfrecord", "tar"}[f] }

// Type is what the records of a TFRecord shard hold.
type Type uint8

const (
	AutoType Type = iota // Examples if the first 16 records parse wholly as such, else raw
	Example              // tf.train.Example: a field for each feature
	Sequence             // tf.train.SequenceExample: a field for each context feature and feature list
	Raw                  // anything: one field named RawField
)

// String returns the word that commands use: auto, example, sequence or raw.
func (t Type) String() string { return [...]string{"auto", "example", "sequence", "raw"}[t] }

// RawField names the only field of a sample that is a raw record.
const RawField = "record"

// KeyFeature names the feature of an Example that holds the sample's key.
const KeyFeature = "__key__"

// Options says how shards are read. The zero value and nil are good defaults.
type Options struct {
	Format  Format
	Type    Type
	Limits  *format.Limits
	OnError format.OnError
	OnLoss  func(format.Loss) // told of each part that Skip or Resync passed over; called by whoever calls Next

	// Fields selects fields, in this order; nil selects all. A name may hold
	// alternatives: "jpg;jpeg;png" is the first that is present.
	Fields    []string
	OnMissing format.OnMissing

	// The rest is for tar.

	// HeadersOnly leaves Field.Data nil; Field.Size is known. Members may be
	// of any size then, and of a shard that can be read at offsets only the
	// headers are read.
	HeadersOnly  bool
	OnDuplicate  format.OnDuplicate
	KeyRaw       bool // keep a leading "./" or "/" of member names
	LastDot      bool // a key ends at the last dot of the base name instead of the first
	Concatenated bool // read on behind an end marker that another tar follows
}

func (o *Options) orDefault() Options {
	if o == nil {
		return Options{}
	}
	return *o
}

// FormatOf tells the format from a name such as a/b.tar.gz,
// train.tfrecord-00001-of-00128 or s3://bucket/x.tfrec?version=3.
func FormatOf(name string) Format {
	if i := strings.IndexByte(name, '?'); i >= 0 && strings.Contains(name, "://") {
		name = name[:i]
	}
	base := trimPart(strings.ToLower(path.Base(strings.ReplaceAll(name, `\`, "/"))))
	for _, c := range []string{".gz", ".gzip", ".zst", ".zstd", ".zz", ".zlib"} {
		base = strings.TrimSuffix(base, c)
	}
	switch path.Ext(trimPart(base)) {
	case ".tar", ".tgz", ".tzst":
		return Tar
	case ".tfrecord", ".tfrecords", ".tfrec", ".tfr":
		return TFRecord
	}
	return AutoFormat
}

// partSuffix is how Beam and TFDS number the shards of one data set.
var partSuffix = regexp.MustCompile(`-\d+-of-\d+$`)

func trimPart(base string) string { return partSuffix.ReplaceAllString(base, "") }
