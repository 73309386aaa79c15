package tarshard

import "bytes"

// override is what an extension header says about one property of the member
// after it.
type override uint8

const (
	unset override = iota
	set
	cleared // set to nothing: the plain header holds, whatever a global header said
)

// extension is what pax and GNU extension headers say.
type extension struct {
	any                        bool // anything is set
	pathIs, linkIs, sizeIs     override
	timeIs                     override
	path, link                 []byte
	size, sec                  int64
	nsec                       int32
	sparse, sparseName, gnuSet bool
	all                        map[string]string // of a global header
	allBytes, allMost          int64
}

func (e *extension) reset() {
	*e = extension{path: e.path[:0], link: e.link[:0], all: e.all}
	clear(e.all)
}

// longName takes the payload of a GNU 'L' header, which goes before what pax
// says.
func (e *extension) longName(b []byte) {
	e.any, e.pathIs, e.gnuSet = true, set, true
	e.path = append(e.path[:0], cString(b)...)
}

// longLink takes the payload of a GNU 'K' header.
func (e *extension) longLink(b []byte) {
	e.any, e.linkIs = true, set
	e.link = append(e.link[:0], cString(b)...)
}

// records takes the payload of a pax header: records of "%d %s=%s\n". It
// returns in words what is wrong, or "".
func (e *extension) records(b []byte) (wrong string, huge bool) {
	e.any = true
	for len(b) > 0 {
		key, value, rest, ok := cutRecord(b)
		if !ok {
			return "a record of a pax header is malformed", false
		}
		if wrong, huge = e.record(key, value); wrong != "" {
			return wrong, huge
		}
		if e.allMost > 0 {
			e.remember(string(key), string(value))
		}
		b = rest
	}
	return "", false
}

// remember keeps the records of global headers, up to a bound; nothing depends
// on them here.
func (e *extension) remember(key, value string) {
	if e.allBytes += int64(len(key) + len(value)); e.allBytes > e.allMost {
		return
	}
	if e.all == nil {
		e.all = make(map[string]string)
	}
	if e.all[key] = value; value == "" {
		delete(e.all, key)
	}
}

func cutRecord(b []byte) (key, value, rest []byte, ok bool) {
	sp := bytes.IndexByte(b[:min(len(b), 20)], ' ')
	if sp <= 0 {
		return nil, nil, nil, false
	}
	n, fault := parseDecimal(b[:sp])
	if fault != numberOK || n > int64(len(b)) || n < int64(sp)+4 || b[n-1] != '\n' {
		return nil, nil, nil, false
	}
	key, value, ok = bytes.Cut(b[sp+1:n-1], []byte{'='})
	return key, value, b[n:], ok && len(key) > 0
}

func (e *extension) record(key, value []byte) (wrong string, huge bool) {
	is := set
	if len(value) == 0 {
		is = cleared
	}
	switch string(key) {
	case "path":
		if bytes.IndexByte(value, 0) >= 0 {
			return "a path in a pax header holds a NUL", false
		}
		if !e.gnuSet && !e.sparseName {
			e.pathIs, e.path = is, append(e.path[:0], value...)
		}
	case "linkpath":
		if bytes.IndexByte(value, 0) >= 0 {
			return "a linkpath in a pax header holds a NUL", false
		}
		e.linkIs, e.link = is, append(e.link[:0], value...)
	case "size":
		if e.sizeIs = is; is == cleared {
			return "", false
		}
		var fault numberFault
		if e.size, fault = parseDecimal(value); fault == numberJunk {
			return "the size in a pax header is no number", false
		} else if fault == numberHuge {
			return "the size in a pax header", true
		}
	case "mtime":
		if e.timeIs = is; is == cleared {
			return "", false
		}
		var ok bool
		if e.sec, e.nsec, ok = parseTime(value); !ok {
			return "the mtime in a pax header is no time", false
		}
	case "GNU.sparse.name":
		// path is a made-up name then.
		e.sparse, e.sparseName = true, true
		e.pathIs, e.path = is, append(e.path[:0], value...)
	default:
		if bytes.HasPrefix(key, []byte("GNU.sparse.")) {
			e.sparse = true
		}
	}
	return "", false
}
