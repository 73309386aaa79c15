package tarshard

import (
	"bytes"
	"io"

	"shardtool/format"
)

// farthest is how far before its payload the first block of a member is looked
// for, where its own header does not say name and size itself. An extension
// header of a member of a shard has a block for its header and one or two for
// its records; this leaves room for long paths and several of them.
const farthest = 64 * blockSize

// CheckAt asks whether a member's payload of that size begins at offset data of
// ra, under that name (not asked if it is ""; a leading "./" or "/" does not
// matter). If not, the error wraps ErrStale: an index that says so belongs to
// another shard. It reads one block, and more only before a member whose name
// or size stands in an extension header. size < 0 is not asked.
func CheckAt(ra io.ReaderAt, data, size int64, name string) error {
	at := format.Location{Offset: data, Record: format.Unknown, Field: name}
	if data < blockSize || data%blockSize != 0 {
		return format.Errorf(format.ErrStale, at, "no member's payload can begin at %d", data)
	}
	var b block
	if err := readBlock(ra, &b, data-blockSize, at); err != nil {
		return err
	}
	if !b.sound() {
		return format.Errorf(format.ErrStale, at, "no header stands before offset %d", data)
	}
	have := memberAt(ra, data-blockSize, data)
	if have.fits(size, name) || have.valid && extendedFits(ra, data, size, name) {
		return nil
	}
	if !have.valid {
		return format.Errorf(format.ErrStale, at, "the header before offset %d is not that of a file", data)
	}
	return format.Errorf(format.ErrStale, at, "at offset %d stands %q of %d bytes", data, clip(have.name), have.size)
}

// stood is what was found to stand somewhere.
type stood struct {
	name  []byte
	size  int64
	valid bool
}

func (s stood) fits(size int64, name string) bool {
	return s.valid && (size < 0 || size == s.size) && (name == "" || bytes.Equal(clean([]byte(name)), clean(s.name)))
}

// memberAt reads the member whose first block stands at start, and returns it
// if it is a file and its payload begins at data.
func memberAt(ra io.ReaderAt, start, data int64) stood {
	w := NewWalkerAt(io.NewSectionReader(ra, start, data-start), data-start, nil)
	w.win.usual = blockSize
	m, err := w.Next()
	if err != nil || m.Type != TypeFile || start+m.DataOffset != data {
		return stood{}
	}
	return stood{m.Name, m.Size, true}
}

// extendedFits looks for extension headers before the member's own.
func extendedFits(ra io.ReaderAt, data, size int64, name string) bool {
	last := max(0, data-farthest)
	for start := data - 2*blockSize; start >= last; start -= blockSize {
		var b block
		if _, err := ra.ReadAt(b[:], start); err != nil {
			return false
		}
		switch b[156] {
		case 'x', 'X', 'L', 'K', 'g':
			if b.sound() && memberAt(ra, start, data).fits(size, name) {
				return true
			}
		}
	}
	return false
}

func readBlock(ra io.ReaderAt, b *block, off int64, at format.Location) error {
	n, err := ra.ReadAt(b[:], off)
	switch {
	case n == blockSize:
		return nil
	case err == nil, err == io.EOF:
		return format.Errorf(format.ErrStale, at, "the shard ends before offset %d", off+blockSize)
	}
	return format.ReadError(err, at)
}
