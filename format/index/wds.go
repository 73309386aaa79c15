package index

import (
	"io"
	"math"
	"strconv"
	"strings"

	"shardtool/format"
)

const blockSize = 512 // of a tar archive

// wds reads "v1.2 N" and N lines of samples. N is held against the lines and
// reserves nothing.
func (p *parser) wds() error {
	if err := p.next(); err != nil {
		return err
	}
	version, rest := word(p.line)
	switch string(version) {
	case "v1.1":
		p.x.Dialect = WDS11
	case "v1.2":
		p.x.Dialect = WDS
	default:
		return p.fault(format.ErrUnsupported, "version %s of wds2idx; read are v1.1 and v1.2", clip(version))
	}
	count, rest := word(rest)
	n, err := p.number(count, "number of samples")
	if err != nil {
		return err
	}
	if extra, _ := word(rest); len(extra) > 0 {
		return p.fault(format.ErrCorrupt, "more than a version and a number of samples")
	}
	p.x.first = []int{}
	end := int64(0)
	for i := range n {
		p.record = i
		err := p.next()
		if err == io.EOF {
			return p.fault(format.ErrTruncated, "ends after %d samples of %d", i, n)
		}
		if err != nil {
			return err
		}
		if end, err = p.sample(end); err != nil {
			return err
		}
	}
	return p.blank()
}

// sample reads a line of fields, which lie behind end, and returns their end.
func (p *parser) sample(end int64) (int64, error) {
	line := string(p.line) // the names of members are parts of it
	if err := p.hold(8 + len(line)); err != nil {
		return 0, err
	}
	p.x.first = append(p.x.first, len(p.x.fields))
	for rest := line; ; {
		f, after, err := p.field(rest)
		if err != nil {
			return 0, err
		}
		if f == nil {
			break
		}
		if err := p.place(f, &end); err != nil {
			return 0, err
		}
		if err := p.hold(48); err != nil {
			return 0, err
		}
		p.x.fields = append(p.x.fields, *f)
		rest = after
	}
	if len(p.x.fields) == p.x.first[len(p.x.first)-1] {
		return 0, p.fault(format.ErrCorrupt, "a sample without fields")
	}
	return end, nil
}

// place holds a field against the grid of a tar archive and the field before.
func (p *parser) place(f *Field, end *int64) error {
	switch {
	case f.Offset%blockSize != 0:
		return p.fault(format.ErrCorrupt, "offset %d of %q is not at a block of %d", f.Offset, f.Name, blockSize)
	case f.Offset < *end+blockSize:
		return p.fault(format.ErrCorrupt, "offset %d of %q leaves no room for its header behind %d, where the member before it ends", f.Offset, f.Name, *end)
	case f.Size > math.MaxInt64-2*blockSize-f.Offset:
		return p.fault(format.ErrCorrupt, "%q would end beyond all files", f.Name)
	}
	*end = padded(f.Offset + f.Size)
	return nil
}

// padded returns the start of the block at or behind off.
func padded(off int64) int64 { return (off + blockSize - 1) &^ (blockSize - 1) }

// field reads "ext offset size" and, in v1.2, " name". It returns nil at the
// end of the line.
//
// wds2idx writes names as they are, while DALI parts words at spaces and so
// refuses its own index of a name that has one. Here such a name ends where it
// ends in a dot and the field, and another field or the end of the line
// follows.
func (p *parser) field(s string) (*Field, string, error) {
	s = trimSpace(s)
	if s == "" {
		return nil, "", nil
	}
	ext, offset, size, rest := splitNumbers(s)
	if ext < 0 {
		first, _ := word([]byte(s))
		return nil, "", p.fault(format.ErrCorrupt, "no offset and size follow the field %q", clip(first))
	}
	f := &Field{Name: s[:ext]}
	var err error
	if f.Offset, err = p.number([]byte(offset), "offset"); err != nil {
		return nil, "", err
	}
	if f.Size, err = p.number([]byte(size), "size"); err != nil {
		return nil, "", err
	}
	if p.x.Dialect == WDS11 {
		return f, rest, nil
	}
	rest = trimSpace(rest)
	end := nameEnd(rest, f.Name)
	if end < 0 {
		return nil, "", p.fault(format.ErrCorrupt, "no name of a member that ends in the field follows %q", clip([]byte(f.Name)))
	}
	f.Member = rest[:end]
	return f, rest[end:], nil
}

func trimSpace(s string) string {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	return s
}

// Names are looked for in no more than this, so that time goes with the bytes.
const (
	maxFieldName  = 4 << 10
	maxMemberName = 1 << 20
)

// splitNumbers finds the first two adjacent words of s that are numbers. ext is
// the length of what stands before them, or -1.
func splitNumbers(s string) (ext int, offset, size, rest string) {
	for i := 0; i < min(len(s), maxFieldName); i++ {
		if !isSpace(s[i]) {
			continue
		}
		ext := i
		for i+1 < len(s) && isSpace(s[i+1]) {
			i++
		}
		a, after := numberAt(s, i+1)
		b, after := numberAt(s, after+1)
		if a != "" && b != "" {
			return ext, a, b, s[after:]
		}
	}
	return -1, "", "", ""
}

// numberAt returns the word at i of s if it looks like a number, and where it
// ends.
func numberAt(s string, i int) (string, int) {
	j := i
	for j < len(s) && (isDigit(s[j]) || j == i && s[j] == '-') {
		j++
	}
	if i >= len(s) || j == i || j < len(s) && !isSpace(s[j]) {
		return "", i
	}
	return s[i:j], j
}

// nameEnd returns where the member's name that s begins with ends, or -1.
func nameEnd(s, ext string) int {
	const most = 64 // places that look like the end and are not
	for i, tries := 0, 0; i <= min(len(s), maxMemberName) && tries < most; i++ {
		if i < len(s) && !isSpace(s[i]) || !strings.HasSuffix(s[:i], ext) {
			continue
		}
		tries++
		if !isNameOf(s[:i], ext) {
			continue
		}
		rest := trimSpace(s[i:])
		if rest == "" {
			return i
		}
		if n, _, _, _ := splitNumbers(rest); n > 0 {
			return i
		}
	}
	return -1
}

// isNameOf reports whether a member of that name has that field for wds2idx:
// what follows the first dot of the last path element, or the whole name, folder
// and all, where there is no such dot.
func isNameOf(name, ext string) bool {
	base := name[strings.LastIndexByte(name, '/')+1:]
	key, field, found := strings.Cut(base, ".")
	return found && key != "" && field == ext || !found && base != "" && name == ext
}

func (x *Index) appendWDS(dst []byte, i int, names bool) []byte {
	for k, f := range x.At(i).Fields {
		if k > 0 {
			dst = append(dst, ' ')
		}
		dst = append(dst, f.Name...)
		dst = append(dst, ' ')
		dst = strconv.AppendInt(dst, f.Offset, 10)
		dst = append(dst, ' ')
		dst = strconv.AppendInt(dst, f.Size, 10)
		if names {
			dst = append(dst, ' ')
			dst = append(dst, f.Member...)
		}
	}
	return append(dst, '\n')
}
