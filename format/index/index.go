// Package index reads, writes, builds and checks the indexes that other tools
// keep beside shards.
//
//	dali      "0 28\n28 16\n..."               TFRecord: offset and size of each record, framing
//	          (DALI and tfrecord2idx)          included, a line each
//	wds       "v1.2 2\n                        tar: number of samples, then a line for each: field,
//	           jpg 512 187 a.jpg cls ...\n     offset and size of its data, and name of each member
//	           jpg 2560 187 b.jpg cls ...\n"   (DALI's wds2idx)
//	wds-1.1   the same without names           (wds2idx of older DALI)
//	energon   u64 u64 ... u64, little endian   tar: first header block of each sample, then the end
//	          (Megatron-Energon, .tar.idx)     of the last
//	wids      {"__kind__":                     a whole dataset: url, number of samples, size and
//	          "wids-shard-index-v1", ...}      MD5 of each shard (wids and widsindex)
//
// [Read] tells the first four by their content and gives an [Index];
// [ReadDataset] reads the last. [Of] builds an index from a shard.
//
// An index is never believed. It says where things were when it was made, and
// the shard may have changed since, or be another one: [Index.Check] holds all
// of it against the shard, [Index.CheckEntry] one entry, by what stands at its
// offsets: the framing of a record, the header of a member. What does not fit
// is ErrStale. An index that cannot fit any shard (entries that overlap, go
// back or are negative) is ErrCorrupt already when it is read, naming the
// line. Offsets are into uncompressed shards: a compressed one is
// ErrUnsupported.
//
// Memory grows with the bytes that arrive, up to four times Limits.Index.
package index

import (
	"io"
	"strings"
	"sync"

	"shardtool/format"
)

// Dialect is a way to write an index.
type Dialect uint8

const (
	DALI    Dialect = iota // offsets and sizes of records, as text
	WDS                    // wds2idx v1.2
	WDS11                  // wds2idx v1.1
	Energon                // .tar.idx
	WIDS                   // wids-shard-index-v1, of a dataset
)

var dialects = [...]string{"dali", "wds", "wds-1.1", "energon", "wids"}

// String returns the word that commands use: dali, wds, wds-1.1, energon or
// wids.
func (d Dialect) String() string {
	if int(d) < len(dialects) {
		return dialects[d]
	}
	return "unknown"
}

// ParseDialect returns the dialect whose String is name.
func ParseDialect(name string) (Dialect, bool) {
	for d, n := range dialects {
		if n == name {
			return Dialect(d), true
		}
	}
	return 0, false
}

// Index says where the samples of one shard stand.
type Index struct {
	Dialect Dialect // that it was read in, or is written in by WriteTo
	Name    string  // of its file, for errors; "" for one that was built
	Links   int64   // members left out of one that was built, for being links

	// Each of the first two is nil where the dialect does not tell it.
	offsets []int64 // of each sample's first byte
	sizes   []int64 // of each sample, framing included; made up from offsets and end if nil
	end     int64   // of the last sample; format.Unknown if not told
	first   []int   // of each sample's fields in fields; nil if there are none
	fields  []Field

	once  sync.Once
	byKey map[string]int
}

// Entry is what an index tells of one sample.
type Entry struct {
	Offset int64   // of the record, or of the sample's first header block; format.Unknown if not told
	Size   int64   // from Offset, framing included; format.Unknown if not told
	Fields []Field // of a tar sample, if told; lent by the index
}

// Field is what an index tells of one member of a tar sample.
type Field struct {
	Name   string // of the field: "jpg"
	Member string // full name of the member; "" if not told
	Offset int64  // of its data, in bytes
	Size   int64  // of its data, in bytes
}

// Key returns the key of a tar sample, "" if it is not told: the name of its
// first member without the field and its dot. A leading "./" or "/" is cut off.
func (e Entry) Key() string {
	if len(e.Fields) == 0 {
		return ""
	}
	return e.Fields[0].key()
}

func (f Field) key() string {
	key := strings.TrimSuffix(strings.TrimSuffix(f.Member, f.Name), ".")
	if len(key) == len(f.Member) {
		return ""
	}
	for {
		clean := strings.TrimPrefix(strings.TrimPrefix(key, "./"), "/")
		if clean == key {
			return key
		}
		key = clean
	}
}

// Len returns the number of samples.
func (x *Index) Len() int {
	if x.first != nil {
		return len(x.first)
	}
	return len(x.offsets)
}

// At returns what is told of sample i, from 0.
func (x *Index) At(i int) Entry {
	e := Entry{Offset: format.Unknown, Size: format.Unknown}
	if x.first != nil {
		next := len(x.fields)
		if i+1 < len(x.first) {
			next = x.first[i+1]
		}
		e.Fields = x.fields[x.first[i]:next:next]
	}
	if x.offsets == nil {
		return e
	}
	e.Offset = x.offsets[i]
	switch {
	case x.sizes != nil:
		e.Size = x.sizes[i]
	case i+1 < len(x.offsets):
		e.Size = x.offsets[i+1] - e.Offset
	case x.end >= 0:
		e.Size = x.end - e.Offset
	}
	return e
}

// Lookup returns the number of the first sample of that key, where the index
// tells keys. It may be called by several goroutines.
func (x *Index) Lookup(key string) (int, bool) {
	x.once.Do(func() {
		x.byKey = make(map[string]int, len(x.first))
		for i := range x.first {
			if k := x.At(i).Key(); k != "" {
				if _, twice := x.byKey[k]; !twice {
					x.byKey[k] = i
				}
			}
		}
	})
	i, ok := x.byKey[key]
	return i, ok
}

// Shard is an uncompressed shard that an index is built from or held against.
type Shard struct {
	Name string
	At   io.ReaderAt
	Size int64 // in bytes
}

func (s Shard) location(offset, record int64, key string) format.Location {
	return format.Location{Shard: s.Name, Offset: offset, Record: record, Key: key}
}
