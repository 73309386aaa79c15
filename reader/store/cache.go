package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"shardtool/format"
)

// CacheOptions of NewCache.
type CacheOptions struct {
	Dir   string       // folder on a local disk, made if it is not there; several processes may share it
	Size  int64        // bytes that the folder may hold; 0: 10 GB
	Block int64        // bytes fetched and kept as one; 0: 8 MiB, less if Size is small
	Log   *slog.Logger // is told once when the disk refuses to take more; nil: nobody is
}

// Cache is a store that keeps on a local disk what it has read from another
// one, in blocks, and reads it from there the next time. Those used longest ago
// make room for new ones.
//
// A block is kept under the SHA-256 of the object's name and version, so that
// another content never takes its place; objects without a version, or of
// unknown size, are not kept. It becomes visible whole, by a renaming, and is
// checked when it is first used: one that was cut or damaged, by a crash of the
// machine for example, is thrown away and fetched again. Where the disk is full
// or refuses, reading goes on without it.
//
// Readers of one block fetch it once, within one process. With n processes the
// folder holds up to n/16 more than Size, and some blocks being written.
type Cache struct {
	wrapped
	block   int64
	disk    *cacheDisk
	handles *Handles
	fetches chan struct{} // one element for each block that is being fetched
	buffers sync.Pool     // of *[]byte of block bytes

	mu      sync.Mutex
	flights map[string]*flight // by the name of the block

	hits, misses atomic.Int64
}

const (
	defaultCacheSize  = 10e9
	defaultCacheBlock = 8 << 20
	leastCacheBlock   = 64 << 10
	cacheFetches      = 16 // blocks fetched at a time, each into memory first
	cacheHandles      = 64 // block files kept open
)

// NewCache returns a cache of st. It fails if the folder cannot be used.
func NewCache(st Store, o CacheOptions) (*Cache, error) {
	if o.Dir == "" || o.Size < 0 || o.Block < 0 {
		return nil, format.Errorf(format.ErrUsage, format.Nowhere, "a cache needs a folder, and sizes that are not negative")
	}
	if o.Size == 0 {
		o.Size = defaultCacheSize
	}
	if o.Block == 0 {
		// Some blocks at least are kept. Where not even one of the least size
		// is, none is: smaller ones would each be a request for nothing.
		o.Block = min(defaultCacheBlock, max(o.Size/roomShare, leastCacheBlock))
	} else {
		o.Block = min(o.Block, o.Size) // one larger than the whole could never be kept
	}
	disk, err := openCacheDisk(&o)
	if err != nil {
		return nil, err
	}
	c := &Cache{
		wrapped: wrapped{st},
		block:   o.Block,
		disk:    disk,
		handles: NewHandles(disk, cacheHandles),
		fetches: make(chan struct{}, cacheFetches),
		flights: make(map[string]*flight),
	}
	c.buffers.New = func() any {
		b := make([]byte, c.block)
		return &b
	}
	disk.evicted = func(name string) { _ = c.handles.Forget(name) }
	return c, nil
}

// CacheStats are counts since NewCache.
type CacheStats struct {
	Hits      int64 // blocks that were there when they were asked for
	Misses    int64 // blocks that had to be fetched
	Evicted   int64 // blocks removed to make room
	Discarded int64 // blocks removed because they were damaged
	Failed    int64 // blocks that the disk did not take
}

// Stats returns the counts so far.
func (c *Cache) Stats() CacheStats {
	return CacheStats{c.hits.Load(), c.misses.Load(), c.disk.evictions.Load(), c.disk.discarded.Load(), c.disk.failed.Load()}
}

// Memory adds the blocks that may be in fetching to what the store below says.
func (c *Cache) Memory() int64 { return c.wrapped.Memory() + cacheFetches*c.block }

// Close closes the files of the cache, but not the store below. No reading may
// follow.
func (c *Cache) Close() error { return c.handles.Close() }

// Open asks the store below, so that the version is that of now.
func (c *Cache) Open(ctx context.Context, name string) (Object, error) {
	o, err := c.Store.Open(ctx, name)
	return c.keep(o, err)
}

// OpenEntry asks the store below only where something has to be fetched: an
// object that is in the cache whole is read without a request, even when
// another has replaced it since.
func (c *Cache) OpenEntry(ctx context.Context, e Entry) (Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if e.Version == "" || e.Size < 0 {
		o, err := OpenEntry(ctx, c.Store, e)
		return c.keep(o, err)
	}
	return c.object(e, nil), nil
}

func (c *Cache) keep(o Object, err error) (Object, error) {
	if err != nil {
		return nil, err
	}
	if e := o.Stat(); e.Version != "" && e.Size >= 0 {
		return c.object(e, o), nil
	}
	return o, nil
}

func (c *Cache) object(e Entry, below Object) *cachedObject {
	o := &cachedObject{c: c, lateObject: late(c.Store, e, below)}
	o.key = sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%d", e.Name, e.Version, e.Size, c.block))
	o.names = make(map[int64]string)
	return o
}

// cachedObject reads blocks.
type cachedObject struct {
	*lateObject // of the store below
	c           *Cache
	key         [sha256.Size]byte

	mu    sync.Mutex
	names map[int64]string // of blocks that were asked for
}

// name returns the name of the file of block i.
func (o *cachedObject) name(i int64) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	name, ok := o.names[i]
	if !ok {
		name = blockName(o.key, i)
		o.names[i] = name
	}
	return name
}

func blockName(key [sha256.Size]byte, i int64) string {
	return fmt.Sprintf("%s-%d%s", hex.EncodeToString(key[:]), i, blockSuffix)
}

// length returns how many bytes block i has.
func (o *cachedObject) length(i int64) int64 { return min(o.c.block, o.entry.Size-i*o.c.block) }

func (o *cachedObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	p, end, err := o.within(ctx, p, off)
	if err != nil {
		return 0, err
	}
	done := 0
	for done < len(p) {
		at := off + int64(done)
		i := at / o.c.block
		from := at - i*o.c.block
		piece := p[done:min(int64(len(p)), int64(done)+o.length(i)-from)]
		n, err := o.readBlock(ctx, piece, i, from)
		done += n
		if n < len(piece) {
			return done, err
		}
	}
	return done, end
}

// readBlock fills p from within block i.
func (o *cachedObject) readBlock(ctx context.Context, p []byte, i, from int64) (int, error) {
	copied := false
	h, err := o.c.get(ctx, o, i, o.fetch, func(block []byte) {
		copy(p, block[from:])
		copied = true
	})
	switch {
	case err != nil:
		return 0, err
	case copied:
		if h != nil {
			h.Release()
		}
		return len(p), nil
	case h != nil:
		n, err := h.ReadAt(ctx, p, from)
		h.Release()
		if n == len(p) || ctx.Err() != nil {
			return n, err
		}
		o.c.disk.discard(o.name(i)) // the disk fails: fetch what is wanted
	}
	below, err := o.source(ctx)
	if err != nil {
		return 0, err
	}
	return below.ReadAt(ctx, p, i*o.c.block+from)
}

// fetch fills block i from the store below.
func (o *cachedObject) fetch(ctx context.Context, block []byte, i int64) error {
	below, err := o.source(ctx)
	if err != nil {
		return err
	}
	return readFull(ctx, below, block, i*o.c.block)
}

// flight is a block being fetched.
type flight struct {
	landed chan struct{}
	err    error
}

// get returns the file of block i, fetching it if need be; of what this call
// fetched, use sees all before get returns. Without an error the file is nil
// where the disk does not take the block.
func (c *Cache) get(ctx context.Context, o *cachedObject, i int64, fetch func(ctx context.Context, block []byte, i int64) error, use func(block []byte)) (*Handle, error) {
	name := o.name(i)
	for {
		h, err := c.lookUp(ctx, o, i)
		if h != nil {
			c.hits.Add(1)
			return h, nil
		}
		if err != nil {
			return nil, err
		}
		if c.disk.refuses() {
			return nil, nil
		}
		c.mu.Lock()
		f := c.flights[name]
		if f == nil {
			f = &flight{landed: make(chan struct{})}
			c.flights[name] = f
			c.mu.Unlock()
			h, f.err = c.fetch(ctx, o, i, fetch, use)
			c.mu.Lock()
			delete(c.flights, name)
			c.mu.Unlock()
			close(f.landed)
			return h, f.err
		}
		c.mu.Unlock()
		select {
		case <-f.landed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case errors.Is(f.err, context.Canceled), errors.Is(f.err, context.DeadlineExceeded): // of who fetched
		case f.err != nil:
			return nil, f.err
		}
	}
}

// lookUp returns the file of block i if there is one that is whole.
func (c *Cache) lookUp(ctx context.Context, o *cachedObject, i int64) (*Handle, error) {
	name := o.name(i)
	h, err := c.handles.Get(ctx, Entry{Name: name})
	switch {
	case err == nil && h.stat.Size == o.length(i):
		h.o.(*blockFile).touch()
		return h, nil
	case err == nil:
		h.Release()
		c.disk.discard(name)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, format.ErrUsage): // closed
		return nil, err
	case !errors.Is(err, format.ErrNotFound):
		c.disk.discard(name)
	}
	return nil, nil
}

// fetch fetches block i and keeps it.
func (c *Cache) fetch(ctx context.Context, o *cachedObject, i int64, fetch func(ctx context.Context, block []byte, i int64) error, use func(block []byte)) (*Handle, error) {
	// Another flight may have landed between the look and this one.
	if h, err := c.lookUp(ctx, o, i); h != nil || err != nil {
		return h, err
	}
	select {
	case c.fetches <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.fetches }()
	b := c.buffers.Get().(*[]byte)
	defer c.buffers.Put(b)
	block := (*b)[:o.length(i)]
	if err := fetch(ctx, block, i); err != nil {
		return nil, err
	}
	c.misses.Add(1)
	use(block)
	if !c.disk.write(o.key, i, block) {
		return nil, nil
	}
	return c.lookUp(ctx, o, i)
}

// Stream reads block by block. Blocks that follow each other and are not there
// come from one stream of the store below, so that it can read ahead.
func (o *cachedObject) Stream(ctx context.Context, off int64) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if off < 0 {
		return nil, negativeOffset(o.entry.Name, off)
	}
	return &cacheStream{ctx: ctx, o: o, off: off}, nil
}

type cacheStream struct {
	ctx context.Context
	o   *cachedObject
	off int64 // of the next byte delivered

	h     *Handle       // of the block that off is in
	block io.ReadCloser // over h, from off

	below  io.ReadCloser // of the store below
	at     int64         // of the next byte of below
	direct bool          // deliver below as it is: the disk takes nothing
}

func (s *cacheStream) Read(p []byte) (int, error) {
	for {
		if err := s.ctx.Err(); err != nil {
			return 0, err
		}
		switch {
		case s.off >= s.o.entry.Size:
			return 0, io.EOF
		case len(p) == 0:
			return 0, nil
		case s.direct:
			return s.readBelow(p)
		case s.block == nil:
			if err := s.open(); err != nil {
				return 0, err
			}
			continue
		}
		n, err := s.block.Read(p)
		s.off += int64(n)
		if n > 0 {
			return n, nil
		}
		if err != io.EOF { // the disk fails: fetch it again
			s.o.c.disk.discard(s.h.name)
		}
		s.leave()
	}
}

// open opens the block that off is in.
func (s *cacheStream) open() error {
	i := s.off / s.o.c.block
	h, err := s.o.c.get(s.ctx, s.o, i, s.fetch, func([]byte) {})
	if err != nil {
		return err
	}
	if h == nil {
		s.direct = true
		return s.seek(s.off)
	}
	s.h = h
	s.block, err = Stream(s.ctx, h.o, s.off-i*s.o.c.block)
	return err
}

func (s *cacheStream) leave() {
	if s.h != nil {
		s.block.Close()
		s.h.Release()
		s.h, s.block = nil, nil
	}
}

// fetch fills a block from the stream below. Behind the last block it reads on
// to the end, where a checksum of the whole object may be found wrong.
func (s *cacheStream) fetch(_ context.Context, block []byte, i int64) error {
	if err := s.seek(i * s.o.c.block); err != nil {
		return err
	}
	n, err := io.ReadFull(s.below, block)
	s.at += int64(n)
	if err == nil && s.at == s.o.entry.Size {
		_, err = io.ReadFull(s.below, make([]byte, 1))
		if err == io.EOF {
			return nil
		}
		if errors.Is(err, format.ErrCorrupt) {
			s.o.purge()
		}
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = pastEnd(s.o, s.at)
	}
	return err
}

// purge throws away all blocks of an object.
func (o *cachedObject) purge() {
	for i := range (o.entry.Size + o.c.block - 1) / o.c.block {
		o.c.disk.discard(blockName(o.key, i))
	}
}

// seek lets the stream below stand at an offset.
func (s *cacheStream) seek(off int64) error {
	if s.below != nil && s.at == off {
		return nil
	}
	if s.below != nil {
		s.below.Close()
		s.below = nil
	}
	source, err := s.o.source(s.ctx)
	if err != nil {
		return err
	}
	s.at = off
	s.below, err = Stream(s.ctx, source, off)
	if off > 0 && errors.Is(err, format.ErrUnsupported) { // only from its start
		if s.below, err = Stream(s.ctx, source, 0); err == nil {
			_, err = io.CopyN(io.Discard, s.below, off)
		}
	}
	return err
}

func (s *cacheStream) readBelow(p []byte) (int, error) {
	n, err := s.below.Read(p)
	s.off += int64(n)
	s.at += int64(n)
	if err == io.EOF && s.off < s.o.entry.Size {
		err = pastEnd(s.o, s.off)
	}
	return n, err
}

func (s *cacheStream) Close() error {
	s.leave()
	s.off = s.o.entry.Size
	if s.below == nil {
		return nil
	}
	below := s.below
	s.below = nil
	return below.Close()
}

// Gap is that of a local disk; within a block nothing else is asked.
func (o *cachedObject) Gap() int64 { return localGap }

// openCacheDisk makes the folder and looks at what it holds.
func openCacheDisk(o *CacheOptions) (*cacheDisk, error) {
	d := &cacheDisk{
		// The number changes with the layout, so that versions do not meet.
		dir:      filepath.Join(o.Dir, "shardtool-blocks-1"),
		size:     o.Size,
		log:      o.Log,
		verified: make(map[string]struct{}),
		evicted:  func(string) {},
		now:      time.Now,
	}
	err := os.MkdirAll(d.dir, 0o700)
	if err == nil {
		d.room.Lock()
		defer d.room.Unlock()
		err = d.makeRoom(0)
	}
	if err != nil {
		return nil, nameError(o.Dir, err)
	}
	return d, nil
}
