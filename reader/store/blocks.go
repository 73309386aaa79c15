package store

import (
	"context"
	"io"
	"sync"
)

// Blocks binds an object to a context, as ReaderAt does, for who reads many
// small pieces near each other, such as the headers of a shard. Of an object
// behind a network, of which Gap says that requests cost more than bytes, it
// reads blocks of four times Gap and keeps the last two; of any other it is
// ReaderAt. It is safe for use by several goroutines.
func Blocks(ctx context.Context, o Object) io.ReaderAt {
	if Gap(o) <= nearGap {
		return ReaderAt(ctx, o)
	}
	return &blocks{ctx: ctx, o: o, size: 4 * Gap(o)}
}

// nearGap is the largest Gap of what is no network.
const nearGap = 256 << 10

type blocks struct {
	ctx  context.Context
	o    Object
	size int64

	mu   sync.Mutex
	kept [2]block // the one used last first
}

type block struct {
	off int64
	p   []byte // nil: nothing is kept
	end bool   // the object ends behind it
}

func (b *blocks) ReadAt(p []byte, off int64) (n int, err error) {
	if int64(len(p)) >= b.size || off < 0 {
		return b.o.ReadAt(b.ctx, p, off)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for n < len(p) {
		if err := b.load((off + int64(n)) / b.size * b.size); err != nil {
			return n, err
		}
		k := &b.kept[0]
		at := off + int64(n) - k.off
		if at < int64(len(k.p)) {
			n += copy(p[n:], k.p[at:])
		}
		if n < len(p) && k.end {
			return n, io.EOF
		}
	}
	return n, nil
}

// load makes the block at an offset the first that is kept.
func (b *blocks) load(off int64) error {
	if b.kept[0].p != nil && b.kept[0].off == off {
		return nil
	}
	b.kept[0], b.kept[1] = b.kept[1], b.kept[0]
	k := &b.kept[0]
	if k.p != nil && k.off == off {
		return nil
	}
	p := k.p[:0]
	if size := b.o.Stat().Size; int64(cap(p)) < b.size && size >= 0 {
		p = make([]byte, 0, min(b.size, max(1, size-off)))
	}
	k.p = nil // until it is read
	n, err := b.o.ReadAt(b.ctx, p[:min(int64(cap(p)), b.size)], off)
	if err != nil && err != io.EOF {
		return err
	}
	k.off, k.p, k.end = off, p[:n], err == io.EOF || off+int64(n) >= b.o.Stat().Size
	return nil
}
