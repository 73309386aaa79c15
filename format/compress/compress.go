// Package compress reads and writes the whole-stream compressions that shards
// come in: gzip, zlib and zstd. What a stream is compressed with is told by
// its content, never by its name.
//
//	gzip  1f 8b 08 flags mtime(4) xfl os [extra] [name] [comment] [crc16]
//	      deflate blocks, crc32(4) size(4); further members may follow (RFC 1952)
//	zlib  78 9c (or another header of RFC 1950), deflate blocks, adler32(4)
//	zstd  28 b5 2f fd header, blocks, [xxh64(4)]; further frames may follow,
//	      and skippable ones, 5x 2a 4d 18 size(4) (RFC 8878)
//
// A [Reader] delivers every byte that can be decompressed before it reports a
// fault, as an *format.Error whose Offset is the number of bytes delivered:
// ErrTruncated where the compressed stream ends before its structure does,
// ErrCorrupt where a checksum or the structure is wrong, ErrLimit where the
// output or a zstd window is over its bound of format.Limits. The checksums of
// a gzip or zlib trailer are known to be wrong only by whoever reads up to the
// error or to io.EOF.
//
// NUL bytes after the end of a stream are padding. Other bytes there that do
// not begin another member or frame are no error; [Reader.Trailing] tells of
// them.
//
// A format whose own first bytes may look like one of these (the length of a
// TFRecord may be 1f 8b or 78 9c) has to be asked before [Sniff] is.
package compress

// Kind is a compression of a whole stream.
type Kind uint8

const (
	None Kind = iota // not compressed
	Gzip             // RFC 1952, any number of members
	Zlib             // RFC 1950
	Zstd             // RFC 8878, any number of frames
)

var kinds = [...]struct{ name, suffix string }{
	None: {"none", ""},
	Gzip: {"gzip", ".gz"},
	Zlib: {"zlib", ".zz"},
	Zstd: {"zstd", ".zst"},
}

// String returns none, gzip, zlib or zstd.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k].name
	}
	return "unknown"
}

// Suffix returns what the name of a file so compressed ends in: "", .gz, .zz
// (as pigz has it) or .zst.
func (k Kind) Suffix() string {
	if int(k) < len(kinds) {
		return kinds[k].suffix
	}
	return ""
}

// ParseKind returns the kind whose String is name.
func ParseKind(name string) (Kind, bool) {
	for k := range kinds {
		if kinds[k].name == name {
			return Kind(k), true
		}
	}
	return None, false
}
