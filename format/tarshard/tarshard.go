// Package tarshard reads and writes WebDataset shards: tar archives whose
// adjacent members of one key are one sample.
//
//	offset   0   100  108  116  124   136   148   156 157   257      265 ... 345    500
//	         name mode uid  gid  size  mtime chksum type link ustar\0 00       prefix      one block of 512
//	         payload, padded with NUL to a multiple of 512
//	         ...
//	         two blocks of NUL: the end marker, then NUL to the end
//
//	train/0001.jpg       key train/0001, field jpg    ┐ one sample
//	train/0001.seg.png   key train/0001, field seg.png┘
//	train/0002.jpg       key train/0002: the next one
//
// [Reader] yields samples with their payloads in memory, lent from one large
// buffer. [Scanner], and [Scan] over an io.ReaderAt, yield the same samples
// without payloads: where each member stands, for indexes and checks of shards
// whose members do not fit into memory. [Walker] yields members as they are.
// [Writer] writes shards. [CheckAt] asks whether an index still fits.
//
// # Members
//
// The walker knows POSIX ustar and pax (per-file and global headers), GNU long
// names and base-256 numbers, star's and the old v7 headers. A member that can
// be no field is passed over and counted under one of the Skipped reasons:
// folders, devices, fifos, volume labels, global headers, AppleDouble files
// ("._x", "__MACOSX/"), WebDataset's "__x__" members, names without key or
// field. Hard and symbolic links are followed where Options.Source gives random
// access to the shard, else passed over. Sparse members are well formed and not
// read here: each is ErrUnsupported.
//
// # Samples
//
// The key is the path up to the first dot of its last element, the field what
// follows that dot, as in WebDataset. The spelling of fields is kept, and two
// that differ only in the case of ASCII letters are the same. Other than
// WebDataset, a leading "./" or "/" is cut off, and a name whose last element
// begins with a dot or ends with its only dot belongs to no sample.
//
// A key whose members are not adjacent, or that has a field twice, is
// ErrDuplicate; keys are remembered in at most 16 bytes each, up to
// Limits.Keys.
//
// # Half samples
//
// tar does not say how many members a sample has, so where a shard is damaged
// it is not sure that the sample beside the damage has all of them. Such a
// sample counts as whole if the caller asked for fields and it has them all,
// or, without such a request, if all samples of the shard so far had the same
// fields and it has them too, or if what is damaged is a header that still
// names another key. It counts as half if it lacks one of them. Else it is not
// known. Under Stop and Skip the damage ends reading, and the sample before it
// is delivered unless it is half; under Resync, which reads on, the samples on
// both sides of the damage are delivered only if they are whole. What is not
// delivered is part of the reported loss. A shard that ends without an end
// marker, but not within a member, is not taken for damage: its last sample is
// delivered unless it is half, and format.NoEndMarker is counted.
//
// The formats are described in POSIX.1-2017 (pax, "ustar Interchange Format"
// and "pax Header Block"), the GNU tar manual ("Basic Tar Format") and
// libarchive's tar(5).
package tarshard

import (
	"io"

	"shardtool/format"
)

const blockSize = 512

// Options says how a shard is read. The zero value and nil are good defaults.
type Options struct {
	Shard   string // name of the shard, for samples and errors
	Limits  *format.Limits
	OnError format.OnError
	OnLoss  func(format.Loss) // told of each part that Skip or Resync passed over; called within Next

	// Fields selects fields, in this order; nil selects all. Names are
	// compared without regard to case. A name may hold alternatives,
	// "jpg;jpeg;png": the first that is present is delivered. Payloads of other
	// fields are not read into memory.
	Fields    []string
	OnMissing format.OnMissing

	OnDuplicate  format.OnDuplicate
	KeyRaw       bool // keep a leading "./" or "/" of member names
	LastDot      bool // a key ends at the last dot of the last path element, not at the first
	Concatenated bool // read on after an end marker that another archive follows

	// Source is random access to the same bytes, if there is any; links are
	// followed through it. It is not used otherwise.
	Source io.ReaderAt

	// Base and First are for a stream that is the rest of a shard, from the
	// beginning of a sample on: the offset at which it begins, and the number
	// of its first sample. Offsets and numbers are then those in the shard. A
	// Source is of the whole shard all the same.
	Base, First int64
}

// Reasons for which a member, or a sample, is passed over and counted.
const (
	SkipDirectory   = "directory"
	SkipHardlink    = "hardlink" // its target is not in the shard, or there is no Source
	SkipSymlink     = "symlink"  // likewise
	SkipDevice      = "device"
	SkipFifo        = "fifo"
	SkipOther       = "other-type"        // volume labels, multi-volume pieces, unknown types
	SkipGlobal      = "pax-global-header" // its records are applied
	SkipAppleDouble = "apple-double"      // "._x" and all in "__MACOSX/"
	SkipMeta        = "meta"              // "__x__", "__x__/..." and "__x__.field"
	SkipNoKey       = "no-key"            // no dot in the last path element, or nothing before the first
	SkipNoField     = "no-field"          // nothing after the dot
	SkipSparse      = "sparse"            // under Skip and Resync
	SkipDuplicate   = "duplicate"         // a late or repeated member, or a sample with a repeated field
	SkipMissing     = "missing"           // a sample without a field that was asked for
	SkipLimit       = "limit"             // a sample that is over a limit
	SkipCorrupt     = "corrupt"           // a damaged place
	SkipTruncated   = "truncated"         // the stream ended too early
)

type reason uint8

const (
	kept reason = iota
	directory
	hardlink
	symlink
	device
	fifo
	otherType
	globalHeader
	appleDouble
	meta
	noKey
	noField
	sparse
	duplicate
	missing
	overLimit
	corrupt
	truncated
	reasons // how many there are
)

var reasonNames = [reasons]string{
	"", SkipDirectory, SkipHardlink, SkipSymlink, SkipDevice, SkipFifo, SkipOther, SkipGlobal,
	SkipAppleDouble, SkipMeta, SkipNoKey, SkipNoField, SkipSparse, SkipDuplicate, SkipMissing,
	SkipLimit, SkipCorrupt, SkipTruncated,
}

type tally [reasons]int64

func (t *tally) byName() map[string]int64 {
	m := make(map[string]int64)
	for r, n := range t {
		if n > 0 {
			m[reasonNames[r]] = n
		}
	}
	return m
}

// Sniff reports whether a stream that begins with prefix is a tar archive: its
// first block is a header whose checksum holds, or is all NUL, as in an empty
// archive. prefix should be 512 bytes or more; less is never a tar archive.
func Sniff(prefix []byte) bool {
	if len(prefix) < blockSize {
		return false
	}
	b := (*block)(prefix)
	return b.zero() || b.sound()
}
