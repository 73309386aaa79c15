package index

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"shardtool/format"
)

// WriteTo writes the index in its own dialect.
func (x *Index) WriteTo(w io.Writer) (int64, error) {
	c := &counter{w: w}
	err := x.Write(c, x.Dialect)
	return c.n, err
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// Write writes the index in a dialect. One that asks for what the index does
// not tell, and a name that the dialect cannot hold, are ErrUnsupported, before
// anything is written.
func (x *Index) Write(w io.Writer, d Dialect) error {
	if err := x.writable(d); err != nil {
		return err
	}
	b := bufio.NewWriterSize(w, 64<<10)
	var line []byte
	if d == WDS || d == WDS11 {
		fmt.Fprintf(b, "%s %d\n", map[Dialect]string{WDS: "v1.2", WDS11: "v1.1"}[d], x.Len())
	}
	for i := range x.Len() {
		switch d {
		case DALI:
			line = x.appendDALI(line[:0], i)
		case Energon:
			line = binary.LittleEndian.AppendUint64(line[:0], uint64(x.offsets[i]))
		default:
			line = x.appendWDS(line[:0], i, d == WDS)
		}
		if _, err := b.Write(line); err != nil {
			return err
		}
	}
	if d == Energon {
		if _, err := b.Write(binary.LittleEndian.AppendUint64(line[:0], uint64(x.end))); err != nil {
			return err
		}
	}
	return b.Flush()
}

func (x *Index) writable(d Dialect) error {
	tar := x.first != nil || x.Dialect == Energon
	switch {
	case d == WIDS:
		return x.refuse("a wids index is of a dataset, not of one shard")
	case d == DALI && tar:
		return x.refuse("a dali index is of a TFRecord, and this one is of a tar")
	case d != DALI && !tar:
		return x.refuse("a %s index is of a tar, and this one is of a TFRecord", d)
	case d == Energon && (x.Dialect != Energon && x.offsets == nil || x.end < 0):
		return x.refuse("this index does not tell where samples begin, as an energon index does; build one from the shard")
	case d == Energon || d == DALI:
		return nil
	case x.first == nil:
		return x.refuse("this index does not tell the fields of samples, as a %s index does; build one from the shard", d)
	}
	for i := range x.fields {
		if err := x.spells(&x.fields[i], d); err != nil {
			return err
		}
	}
	return nil
}

// spells refuses what DALI could not read: it parts words at spaces.
func (x *Index) spells(f *Field, d Dialect) error {
	switch {
	case d == WDS && f.Member == "":
		return x.refuse("this index does not tell the names of members, as a wds index does; build one from the shard")
	case f.Name == "" || strings.IndexFunc(f.Name, isSpaceRune) >= 0:
		return x.refuse("the field %q of %q is no word, and a %s index parts its words at spaces; an energon index has no names", f.Name, f.Member, d)
	case d == WDS && strings.IndexFunc(f.Member, isSpaceRune) >= 0:
		return x.refuse("the name %q has a space, at which DALI would part it; a wds-1.1 or energon index has no names", f.Member)
	}
	return nil
}

func isSpaceRune(r rune) bool { return r < 0x80 && isSpace(byte(r)) }

func (x *Index) refuse(msg string, args ...any) error {
	return format.Errorf(format.ErrUnsupported, format.In(x.Name), msg, args...)
}
