package reader

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/reader/store"
)

// countCache keeps what was found out about shards, a file for each:
//
//	offset  size  little endian
//	0       8     "shplaces"
//	8       4     version of this layout, 1
//	12      4     format, type, compression, what follows (1: offsets, 2: ends too)
//	16      8     bytes of the shard
//	24      8     n, the number of samples
//	32      32    SHA-256 of name, version and size of the shard, and of the options that count
//	64      4     CRC-32C of what follows the header
//	68      4     CRC-32C of the bytes before
//	72      8     of each sample, its offset; then the end of the last, or of each
//
// The name of the file is a hash of the shard's name and those options. A file
// that does not hold, or is of a shard as it was once, counts for nothing and is
// written anew; it is written beside its place and renamed.
type countCache struct {
	dir string // "": nothing is kept

	mu  sync.Mutex
	err error // the first failure to write
}

const (
	cacheMagic   = "shplaces"
	cacheVersion = 1
	cacheHeader  = 72
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// counted returns the cache of a set.
func (s *set) counted() *countCache {
	s.cacheOnce.Do(func() {
		s.counts = &countCache{dir: s.opts.CacheDir}
		switch s.opts.CacheDir {
		case "-":
			s.counts.dir = ""
		case "":
			if dir, err := os.UserCacheDir(); err == nil {
				s.counts.dir = filepath.Join(dir, "shardtool")
			}
		}
	})
	return s.counts
}

// cacheID is a shard as it is now.
type cacheID struct {
	path string // of the cache's file
	sum  [sha256.Size]byte
}

// identify returns what a shard is kept under. Without a version that goes with
// the content, or outside of file systems and networks, nothing is kept.
func (c *countCache) identify(e *Entry, file localFile, o *Options) (id cacheID, ok bool) {
	name := file.path
	if store.IsAddress(e.Name) {
		name = e.Name
	}
	if c.dir == "" || name == "" || e.Version == "" {
		return id, false
	}
	what := fmt.Sprintf("%q %d %t %t %t", name, o.Format, o.KeyRaw, o.LastDot, o.Concatenated)
	if o.leavesOut(Tar) || o.leavesOut(TFRecord) {
		what += fmt.Sprintf(" %d %d %d %d %t %q %+v", o.OnError, o.OnDuplicate, o.OnMissing, o.Type, o.Unparsed, o.Fields, o.Limits.OrDefault())
	}
	base := sha256.Sum256([]byte(what))
	hexed := hex.EncodeToString(base[:16])
	id.path = filepath.Join(c.dir, "counts", hexed[:2], hexed[2:])
	id.sum = sha256.Sum256(fmt.Appendf(nil, "%s %d %q", what, e.Size, e.Version))
	return id, true
}

// load returns what is kept, with the places if they are wanted, or nil.
func (c *countCache) load(id cacheID, e *Entry, want bool) *found {
	file, err := os.Open(id.path)
	if err != nil {
		return nil
	}
	defer file.Close()
	var h [cacheHeader]byte
	if _, err := io.ReadFull(file, h[:]); err != nil {
		return nil
	}
	f, rest := readCacheHeader(&h, id, e)
	if st, err := file.Stat(); f == nil || err != nil || st.Size() != cacheHeader+rest {
		return nil
	}
	if !want || !f.offsets {
		return f
	}
	body := make([]byte, rest)
	if _, err := io.ReadFull(file, body); err != nil || crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(h[64:]) {
		return nil
	}
	if f.places = readCachePlaces(f, body, e.Size, h[15] == 3); f.places == nil {
		return nil
	}
	return f
}

// readCacheHeader returns what a header tells and how many bytes follow it.
func readCacheHeader(h *[cacheHeader]byte, id cacheID, e *Entry) (f *found, rest int64) {
	le := binary.LittleEndian
	n, more := int64(le.Uint64(h[24:])), h[15]
	switch {
	case string(h[:8]) != cacheMagic, le.Uint32(h[8:]) != cacheVersion,
		le.Uint32(h[68:]) != crc32.Checksum(h[:68], castagnoli),
		[sha256.Size]byte(h[32:64]) != id.sum,
		int64(le.Uint64(h[16:])) != e.Size,
		n < 0 || more != 0 && more != 1 && more != 3 || n > e.Size && more != 0,
		Format(h[12]) != TFRecord && Format(h[12]) != Tar, Type(h[13]) > Raw, compress.Kind(h[14]) > compress.Zstd:
		return nil, 0
	}
	switch more {
	case 1:
		rest = 8 * (n + 1)
	case 3:
		rest = 16 * n
	}
	return &found{
		samples: n, format: Format(h[12]), typ: Type(h[13]), compression: compress.Kind(h[14]),
		offsets: more != 0, from: "cache", kept: true,
	}, rest
}

func readCachePlaces(f *found, body []byte, size int64, ends bool) *Places {
	p := &Places{format: f.format, offsets: make([]int64, len(body)/8)}
	for i := range p.offsets {
		p.offsets[i] = int64(binary.LittleEndian.Uint64(body[8*i:]))
	}
	if ends {
		n := len(p.offsets) / 2
		p.offsets, p.ends = p.offsets[:n:n], p.offsets[n:]
	}
	last := int64(0)
	for i := range p.Len() {
		off, end := p.At(i)
		if off < last || end < off || end > size {
			return nil
		}
		last = off
	}
	return p
}

// save keeps what was found, and reports whether the places can be had again.
func (c *countCache) save(ctx context.Context, id cacheID, e *Entry, f *found) bool {
	b := make([]byte, cacheHeader)
	copy(b, cacheMagic)
	le := binary.LittleEndian
	le.PutUint32(b[8:], cacheVersion)
	b[12], b[13], b[14] = byte(f.format), byte(f.typ), byte(f.compression)
	le.PutUint64(b[16:], uint64(e.Size))
	le.PutUint64(b[24:], uint64(f.samples))
	copy(b[32:], id.sum[:])
	if p := f.places; p != nil {
		b[15] = 1
		for _, off := range p.offsets {
			b = le.AppendUint64(b, uint64(off))
		}
		if p.ends != nil {
			b[15] = 3
			for _, end := range p.ends {
				b = le.AppendUint64(b, uint64(end))
			}
		}
	}
	le.PutUint32(b[64:], crc32.Checksum(b[cacheHeader:], castagnoli))
	le.PutUint32(b[68:], crc32.Checksum(b[:68], castagnoli))
	err := c.write(ctx, id.path, b)
	if err != nil && ctx.Err() == nil {
		c.mu.Lock()
		if c.err == nil {
			c.err = err
		}
		c.mu.Unlock()
	}
	return err == nil
}

func (c *countCache) write(ctx context.Context, path string, b []byte) error {
	out, err := (&store.Local{}).Create(ctx, path)
	if err != nil {
		return err
	}
	defer out.Abort()
	if _, err := out.Write(b); err != nil {
		return format.ReadError(err, format.In(path))
	}
	return out.Commit()
}

// failed returns the first failure to keep something.
func (c *countCache) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
