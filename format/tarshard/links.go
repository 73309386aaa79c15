package tarshard

import (
	"bytes"
	"io"
	"math"
	"path"

	"shardtool/format"
)

// target is what a name in the shard stands for.
type target struct {
	data, size int64
	link       string // another name, for a link
	file       bool
}

// linkTable finds the targets of links. It is made at the first link, by one
// pass over the headers of the whole shard, for a symbolic link may come before
// its target; shards without links pay nothing for it.
type linkTable struct {
	byName map[string]target
	bytes  int64
}

// entryBytes is about what a name in the table takes beside its letters.
const entryBytes = 128

// mostLinks is how long a chain of links may be.
const mostLinks = 16

// follow returns the file that a link leads to, or nil. The error is one of
// reading.
func (t *linkTable) follow(g *grouper, m *Member) (*target, error) {
	if g.opts.Source == nil {
		return nil, nil
	}
	if t.byName == nil {
		if err := t.fill(g); err != nil {
			return nil, err
		}
	}
	name := resolve(m.Type, string(m.Name), string(m.Link))
	for range mostLinks {
		switch to, ok := t.byName[name]; {
		case !ok || name == "":
			return nil, nil
		case to.file:
			return &to, nil
		default:
			name = to.link
		}
	}
	return nil, nil
}

func (t *linkTable) fill(g *grouper) error {
	t.byName = make(map[string]target)
	w := NewWalkerAt(g.opts.Source, sizeOf(g.opts.Source), &g.opts)
	for {
		m, err := w.Next()
		if err != nil && w.win.err != nil && !w.win.damaged() {
			return err
		}
		if err != nil {
			return nil // the end, or what is wrong is found by who reads the shard
		}
		name := string(clean(m.Name))
		var to target
		switch {
		case m.Type == TypeHardlink || m.Type == TypeSymlink:
			to.link = resolve(m.Type, name, string(m.Link))
		case m.Type == TypeFile && !m.Sparse:
			to = target{data: m.DataOffset, size: m.Size, file: true}
		default:
			continue
		}
		if t.bytes += int64(len(name)+len(to.link)) + entryBytes; t.bytes > g.lim.Links {
			return nil
		}
		if m.Type == TypeHardlink && to.link == name {
			continue
		}
		t.byName[name] = to
	}
}

// resolve returns the name that a link leads to, as the table spells names: a
// hard link gives it from the top of the archive, a symbolic link from its own
// folder. It is "" outside of the archive.
func resolve(kind byte, name, link string) string {
	if kind == TypeSymlink && !path.IsAbs(link) {
		link = path.Join(path.Dir(string(clean([]byte(name)))), link)
	}
	link = path.Clean(string(clean([]byte(link))))
	if link == "." || link == ".." || bytes.HasPrefix([]byte(link), []byte("../")) {
		return ""
	}
	return link
}

func sizeOf(ra io.ReaderAt) int64 {
	if s, ok := ra.(interface{ Size() int64 }); ok {
		return s.Size()
	}
	return math.MaxInt64
}

// read appends what a link leads to.
func (t *linkTable) read(g *grouper, dst []byte, off, size int64) ([]byte, error) {
	for size > 0 {
		// Memory grows with what arrives: the size is only claimed.
		n := min(size, int64(max(64<<10, len(dst))))
		at := len(dst)
		dst = append(dst, make([]byte, n)...)
		m, err := g.opts.Source.ReadAt(dst[at:], off)
		if int64(m) < n {
			if err == io.EOF || err == nil {
				return dst, format.Errorf(format.ErrTruncated, g.w.at(off), "what member %q links to is cut", clip(g.w.m.Name))
			}
			g.err = format.ReadError(err, g.w.at(off))
			return dst, g.err
		}
		off += n
		size -= n
	}
	return dst, nil
}
