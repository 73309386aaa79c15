package reader

import (
	"log/slog"
	"path"
	"regexp"
	"strings"

	"shardtool/format"
	"shardtool/reader/store"
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

	// Unparsed leaves the samples of a TFRecord without fields and key: they
	// have Shard, Index, Offset and Record, and Parser.Fill adds the rest.
	Unparsed bool

	// The rest is for datasets.

	Store          store.Store      // that Open opens from; nil: stores.Default, which takes paths, s3:// and http(s)://
	Scan           Scan             // which shards are read to count their samples
	Index          string           // where the index of a shard stands; see below
	CacheDir       string           // of what was counted; "": shardtool in os.UserCacheDir, "-": none
	OnMissingShard format.OnMissing // MissingSkip: a shard that is not there has no samples

	// KeepFaulty gives a shard that turns out to be faulty when it is counted
	// the samples before its fault; else Manifest returns the fault.
	KeepFaulty bool

	Log      *slog.Logger          // told what Manifest.Warnings has; nil: nobody is
	Progress func(done, total int) // told how many shards of the manifest are done, by one goroutine at a time; may be nil

	// For the rest of a shard, from a sample on: where it begins, and the
	// number of that sample.
	base, first int64
	onType      func(Type)

	// Of Index, "" is the name of the shard with .idx added or, instead of its
	// last suffix, .idx: one that does not fit is passed over with a warning.
	// "-" is none. Anything else is the name of an index that has to be there
	// and fit, in which {name} stands for the name of the shard, {dir} for its
	// folder, {base} for its last element and {stem} for that without suffix:
	// "index/{base}.idx".
}

// Scan says which shards are read to count their samples where no index and no
// cache tells.
type Scan uint8

const (
	ScanAuto   Scan = iota // the headers of local files that are not compressed
	ScanNever              // none
	ScanAlways             // all but pipes: compressed and remote shards are read as a whole
)

// leavesOut reports whether samples of the format are left out, so that their
// numbers in the shard say nothing.
func (o *Options) leavesOut(f Format) bool {
	missing := o.OnMissing == format.MissingSkip && o.Fields != nil && !(f == TFRecord && o.Unparsed)
	return o.OnError != format.Stop || missing
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
	if i := strings.IndexByte(name, '?'); i >= 0 && strings.HasPrefix(strings.ToLower(name), "http") && strings.Contains(name, "://") {
		name = name[:i] // a query; in the key of an object it is a character as any other
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
