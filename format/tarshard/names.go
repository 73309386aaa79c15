package tarshard

import (
	"bytes"

	"shardtool/format"
)

// clean cuts off a leading "./" or "/", as often as there is one.
func clean(name []byte) []byte {
	for {
		switch {
		case len(name) > 0 && name[0] == '/':
			name = name[1:]
		case len(name) > 1 && name[0] == '.' && name[1] == '/':
			name = name[2:]
		default:
			return name
		}
	}
}

// split cuts a member's name into key and field. For a name that belongs to no
// sample it returns the reason.
func split(name []byte, lastDot bool) (key, field []byte, why reason) {
	base := bytes.LastIndexByte(name, '/') + 1
	if len(name) > base+1 && name[base] == '.' && name[base+1] == '_' {
		return nil, nil, appleDouble
	}
	if why := reserved(clean(name)); why != kept {
		return nil, nil, why
	}
	dot := bytes.IndexByte(name[base:], '.')
	if lastDot {
		dot = bytes.LastIndexByte(name[base:], '.')
	}
	switch {
	case dot <= 0 || name[base] == '.':
		return nil, nil, noKey
	case base+dot == len(name)-1:
		return nil, nil, noField
	}
	return name[:base+dot], name[base+dot+1:], kept
}

// reserved tells names that mean something else than a field by their first
// element.
func reserved(name []byte) reason {
	if len(name) == 0 || name[0] != '_' && name[0] != 'p' {
		return kept
	}
	first, _, inside := bytes.Cut(name, []byte{'/'})
	switch {
	case inside && string(first) == "__MACOSX":
		return appleDouble
	case !inside && string(first) == "pax_global_header":
		return globalHeader // a reader that did not know it wrote it to a file
	case isMeta(first):
		return meta
	case !inside && isMeta(first[:max(0, bytes.IndexByte(first, '.'))]):
		return meta
	}
	return kept
}

func isMeta(b []byte) bool {
	return len(b) >= 4 && string(b[:2]) == "__" && string(b[len(b)-2:]) == "__"
}

// fieldName is the name of a field as some member spells it. Members of one
// spelling share it, and it lasts.
type fieldName struct {
	name string
	fold *fieldFold
}

// fieldFold is what spellings that differ only in case share.
type fieldFold struct {
	name   string // in lower case
	wanted bool
	sample int64 // the last sample that has it, by number of group
	part   int   // where among the parts of that sample
}

// Bounds of a fieldTable, checked between samples. Datasets have a few dozen
// names of fields; a table that outgrows this is thrown away.
const (
	mostNames     = 4096
	mostNameBytes = 1 << 20
)

// fieldTable makes fieldNames of bytes, without allocating for those it knows.
type fieldTable struct {
	names map[string]*fieldName
	folds map[string]*fieldFold // by name in lower case
	asked [][]*fieldFold        // for each field asked for, its alternatives
	all   bool                  // every field is wanted
	bytes int
}

func (t *fieldTable) reset(asked []string) {
	t.names = make(map[string]*fieldName)
	t.folds = make(map[string]*fieldFold)
	t.bytes = 0
	t.all = asked == nil
	t.asked = t.asked[:0]
	for _, name := range asked {
		t.asked = append(t.asked, t.alternatives(name))
	}
}

func (t *fieldTable) alternatives(name string) []*fieldFold {
	var folds []*fieldFold
	for alt := range bytes.SplitSeq([]byte(name), []byte{';'}) {
		if len(alt) > 0 {
			f := t.fold(string(alt))
			f.wanted = true
			folds = append(folds, f)
		}
	}
	return folds
}

func (t *fieldTable) full() bool { return len(t.names) > mostNames || t.bytes > mostNameBytes }

func (t *fieldTable) get(b []byte) *fieldName {
	if n, ok := t.names[string(b)]; ok {
		return n
	}
	n := &fieldName{name: string(b)}
	n.fold = t.fold(n.name)
	t.names[n.name] = n
	t.bytes += len(b)
	return n
}

func (t *fieldTable) fold(name string) *fieldFold {
	low := lower(name)
	f, ok := t.folds[low]
	if !ok {
		f = &fieldFold{name: low, wanted: t.all, sample: format.Unknown}
		t.folds[low] = f
	}
	return f
}

// lower maps ASCII letters to lower case, and leaves all else, as
// format.EqualName does.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
