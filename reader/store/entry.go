package store

import (
	"context"

	"shardtool/format"
)

// Entry describes an object.
type Entry struct {
	Name    string // as the store names it
	Size    int64  // in bytes; format.Unknown for a stream such as standard input
	Version string // differs when the content differs; "" where the store cannot tell
}

// known reports whether more than a name is known.
func (e Entry) known() bool { return e.Version != "" || e.Size > 0 }

// Unchanged returns ErrStale, saying what differs, if now describes another
// content than e. What either of them does not know is not compared: the
// Version if it is empty, the Size if it is format.Unknown. Of an entry without
// Version a Size of 0 is as good as unknown.
func (e Entry) Unchanged(now Entry) error {
	switch {
	case !e.known():
	case e.Size >= 0 && now.Size >= 0 && e.Size != now.Size:
		return format.Errorf(format.ErrStale, format.In(e.Name), "it had %d bytes and has %d now", e.Size, now.Size)
	case e.Version != "" && now.Version != "" && e.Version != now.Version:
		return format.Errorf(format.ErrStale, format.In(e.Name), "it has changed: its version was %s and is %s now", e.Version, now.Version)
	}
	return nil
}

// EntryOpener is an optional interface of a Store that opens what List or Stat
// has described without asking about it again. Where another object stands
// under the name now, that is ErrStale: at once, or at the first read. Of an
// entry that has no more than its Name nothing is expected.
type EntryOpener interface {
	OpenEntry(ctx context.Context, e Entry) (Object, error)
}

// OpenEntry opens what e describes, by the store's EntryOpener if it is one,
// else by Open and a comparison as Unchanged makes it.
func OpenEntry(ctx context.Context, st Store, e Entry) (Object, error) {
	if s, ok := st.(EntryOpener); ok {
		return s.OpenEntry(ctx, e)
	}
	o, err := st.Open(ctx, e.Name)
	if err != nil {
		return nil, err
	}
	if err := e.Unchanged(o.Stat()); err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

// Memory returns how many bytes a store may hold for reading ahead, of all its
// objects together: what its optional method Memory says, 0 if it has none.
func Memory(st Store) int64 {
	if m, ok := st.(interface{ Memory() int64 }); ok {
		return m.Memory()
	}
	return 0
}
