package remote

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"shardtool/format"
	"shardtool/reader/store"
)

// object is what Client.Open makes.
type object struct {
	c       *Client
	name    string // redacted
	entry   store.Entry
	g       Getter
	inOrder bool        // the server is known to serve no ranges
	ranged  atomic.Bool // the server has served a range

	mu       sync.Mutex
	version  string // of the entry, or of the first answer
	size     int64
	checksum Checksum
}

func (o *object) Stat() store.Entry { return o.entry }

func (o *object) Close() error { return nil }

// Gap is how many unwanted bytes are better read than left out by a request of
// their own: about what a connection of 50 MB/s moves in the 20 ms that a
// request takes.
func (o *object) Gap() int64 { return mib }

func (o *object) at(off int64) format.Location {
	return format.Location{Shard: o.name, Offset: off, Record: format.Unknown}
}

func (o *object) errInOrder(off int64, why string) error {
	return format.Errorf(format.ErrUnsupported, o.at(off), "this object can only be read in order, from its start: %s", why)
}

func (o *object) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case off < 0:
		return 0, format.Errorf(format.ErrUsage, o.at(format.Unknown), "a read at the offset %d", off)
	case o.entry.Size < 0:
		return 0, o.errInOrder(off, "the server does not tell its size")
	case o.inOrder:
		return 0, o.errInOrder(off, "the server ignores Range")
	case len(p) == 0:
		return 0, nil
	case off >= o.entry.Size:
		return 0, io.EOF
	}
	want := min(int64(len(p)), o.entry.Size-off)
	t := transfer{o: o, off: off, end: off + want}
	err := t.run(ctx, &memory{p[:want]})
	if err == nil && want < int64(len(p)) {
		err = io.EOF
	}
	return int(t.off - off), err
}

// memory is the caller's, to be filled from its start.
type memory struct{ left []byte }

func (m *memory) room() []byte { return m.left }
func (m *memory) came(n int)   { m.left = m.left[n:] }

// known returns what is known of the object by now.
func (o *object) known() (version string, size int64, sum Checksum) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.version, o.size, o.checksum
}

// meet holds an answer against what is known of the object, and learns from the
// first one.
func (o *object) meet(r *Response) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	same := r.Version != "" && r.Version == o.version
	switch {
	case o.version == "":
		o.version = r.Version
	case r.Version != "" && !same:
		return format.Errorf(format.ErrStale, o.at(r.Offset), "the object was replaced: it was %s and is %s now",
			describe(o.version, o.size), describe(r.Version, r.Size))
	}
	switch {
	case r.Size < 0:
	case o.size < 0:
		o.size = r.Size
	case r.Size == o.size:
	case same && r.Size < o.size:
		// The same version cannot have two sizes: somebody between cut the
		// answer. It is resumed like any other that ends early.
	default:
		return format.Errorf(format.ErrStale, o.at(r.Offset), "the object was replaced: it was %s and is %s now",
			describe(o.version, o.size), describe(r.Version, r.Size))
	}
	if o.checksum.Algorithm == NoChecksum {
		o.checksum = r.Checksum
	}
	return nil
}

// replaced makes ErrStale of an answer 412, with the version that is there now:
// as the answer tells it, else by one more request.
func (o *object) replaced(ctx context.Context, off int64, status *StatusError) error {
	was, size, _ := o.known()
	now, nowSize := status.Version, int64(format.Unknown)
	if now == "" {
		if r, err := o.g.Get(ctx, Request{Length: 1}); err == nil {
			now, nowSize = r.Version, r.Size
			_ = r.Body.Close()
		}
	}
	return format.Errorf(format.ErrStale, o.at(off), "the object was replaced: it was %s and is %s now: %w",
		describe(was, size), describe(now, nowSize), plain(status))
}

func describe(version string, size int64) string {
	if version == "" {
		version = "one of an unknown version"
	}
	if size < 0 {
		return version
	}
	return fmt.Sprintf("%s of %d bytes", version, size)
}

// strong reports whether a version stands for the same bytes each time: an ETag
// that is not marked weak (RFC 9110, section 8.8.1).
func strong(version string) bool { return strings.HasPrefix(version, `"`) }

// Stream reads the object in order. Close it, or end ctx, to give back what it
// holds; Read and Close are for one goroutine.
func (o *object) Stream(ctx context.Context, off int64) (io.ReadCloser, error) {
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case off < 0:
		return nil, format.Errorf(format.ErrUsage, o.at(format.Unknown), "a read from the offset %d", off)
	case o.entry.Size < 0 && off > 0:
		return nil, o.errInOrder(off, "the server does not tell its size")
	case o.inOrder && off > 0 && off < o.entry.Size:
		return nil, o.errInOrder(off, "the server ignores Range")
	}
	return newStream(ctx, o, off), nil
}
