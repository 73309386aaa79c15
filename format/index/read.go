package index

import (
	"bufio"
	"bytes"
	"io"
	"math"

	"shardtool/format"
)

// Options says how an index is read. Nil and the zero value work.
type Options struct {
	Name   string         // of the index's file, for errors
	Limits *format.Limits // Index is used
}

// Sniff tells the dialect of an index by its first bytes, of which it wants
// 512 or all there are. No bytes at all are an index of no records.
func Sniff(prefix []byte) (Dialect, bool) {
	text := bytes.TrimLeft(prefix, " \t\r\n")
	switch {
	case bytes.HasPrefix(prefix, []byte("v1.1")):
		return WDS11, true
	case len(prefix) > 1 && prefix[0] == 'v' && '0' <= prefix[1] && prefix[1] <= '9':
		return WDS, true // of this version or another
	case len(text) > 0 && text[0] == '{':
		return WIDS, true
	case isNumbers(prefix):
		return DALI, true
	case len(prefix) >= 8 && prefix[7] == 0:
		return Energon, true
	default:
		return 0, false
	}
}

func isNumbers(b []byte) bool {
	for _, c := range b {
		if !isDigit(c) && !isSpace(c) && c != '-' {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isSpace is C's, by which DALI parts the words of an index.
func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// Read reads an index of one shard, whose dialect it tells by the content. An
// index of a dataset is ErrWrongFormat here: ReadDataset reads it.
//
// What stops short is ErrTruncated, what contradicts itself ErrCorrupt, more
// than Limits.Index bytes ErrLimit, another version of a dialect
// ErrUnsupported, anything else ErrWrongFormat. Record of an error is the
// number of the entry, Offset a place in the index.
func Read(r io.Reader, o *Options) (*Index, error) {
	p, prefix, err := newParser(r, o)
	if err != nil {
		return nil, err
	}
	d, ok := Sniff(prefix)
	switch {
	case !ok:
		what := format.LooksLike(prefix)
		if what == "" {
			what = "something else"
		}
		return nil, p.fault(format.ErrWrongFormat, "not an index, but %s", what)
	case d == WIDS:
		return nil, p.fault(format.ErrWrongFormat, "a JSON document: of a whole dataset, perhaps, and not of one shard")
	}
	p.x.Dialect = d
	switch d {
	case DALI:
		err = p.dali()
	case Energon:
		err = p.energon()
	default:
		err = p.wds()
	}
	if err != nil {
		return nil, err
	}
	return p.x, nil
}

// parser reads an index and counts what it reads and holds.
type parser struct {
	r      *bufio.Reader
	name   string
	limit  int64
	read   int64 // bytes taken from r
	held   int64 // bytes of memory that the index takes
	start  int64 // of the line, or of the number
	record int64 // the entry being read; format.Unknown before the first
	lineNo int64 // from 1; 0 where there are no lines
	line   []byte
	x      *Index
}

func newParser(r io.Reader, o *Options) (p *parser, prefix []byte, err error) {
	if o == nil {
		o = &Options{}
	}
	limits := o.Limits.OrDefault()
	p = &parser{
		r:      bufio.NewReaderSize(r, 64<<10),
		name:   o.Name,
		limit:  limits.Index,
		record: format.Unknown,
		x:      &Index{Name: o.Name, end: format.Unknown},
	}
	prefix, err = p.r.Peek(512)
	if err != nil && err != io.EOF {
		return nil, nil, p.readFault(err)
	}
	return p, prefix, nil
}

func (p *parser) fault(sentinel error, msg string, args ...any) error {
	at := format.Location{Shard: p.name, Offset: p.start, Record: p.record}
	if p.lineNo > 0 {
		msg, args = "line %d: "+msg, append([]any{p.lineNo}, args...)
	}
	return format.Errorf(sentinel, at, msg, args...)
}

func (p *parser) readFault(err error) error {
	return format.ReadError(err, format.Location{Shard: p.name, Offset: p.read, Record: format.Unknown})
}

// take counts bytes against the limit.
func (p *parser) take(n int) error {
	if p.read += int64(n); p.read > p.limit {
		return p.fault(format.ErrLimit, "the index has more than %d bytes", p.limit)
	}
	return nil
}

// hold counts memory against what the limit allows.
func (p *parser) hold(n int) error {
	if p.held += int64(n); p.held > 4*p.limit {
		return p.fault(format.ErrLimit, "the index would take more than %d bytes of memory", 4*p.limit)
	}
	return nil
}

// next reads the next line into p.line, without its end. At the end of the
// index it returns io.EOF.
func (p *parser) next() error {
	p.line = p.line[:0]
	p.start = p.read
	p.lineNo++
	for {
		part, err := p.r.ReadSlice('\n')
		if e := p.take(len(part)); e != nil {
			return e
		}
		p.line = append(p.line, part...)
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(p.line) == 0:
			return io.EOF
		case err != nil && err != io.EOF:
			return p.readFault(err)
		}
		p.line = bytes.TrimRight(p.line, "\r\n")
		return nil
	}
}

// blank reports whether nothing but empty lines is left.
func (p *parser) blank() error {
	for {
		switch err := p.next(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case len(bytes.TrimSpace(p.line)) > 0:
			return p.fault(format.ErrCorrupt, "goes on after the last sample")
		}
	}
}

// number reads a word as an offset or a size.
func (p *parser) number(word []byte, what string) (int64, error) {
	var n int64
	for i, c := range word {
		switch {
		case i == 0 && c == '-' && len(word) > 1:
			return 0, p.fault(format.ErrCorrupt, "a negative %s: %s", what, clip(word))
		case !isDigit(c):
			return 0, p.fault(format.ErrCorrupt, "%q is no %s", clip(word), what)
		case n > (math.MaxInt64-int64(c-'0'))/10:
			return 0, p.fault(format.ErrCorrupt, "a %s beyond all files: %s", what, clip(word))
		}
		n = n*10 + int64(c-'0')
	}
	if len(word) == 0 {
		return 0, p.fault(format.ErrCorrupt, "no %s", what)
	}
	return n, nil
}

func clip(b []byte) []byte {
	const most = 64
	if len(b) > most {
		return append(b[:most:most], "..."...)
	}
	return b
}

// word cuts the first word off s.
func word(s []byte) (first, rest []byte) {
	i := 0
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	j := i
	for j < len(s) && !isSpace(s[j]) {
		j++
	}
	return s[i:j], s[j:]
}
