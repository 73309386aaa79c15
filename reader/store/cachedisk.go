package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"shardtool/format"
)

// cacheDisk is the folder of a Cache: one file for each block, named by the key
// of its object and its number, whose time of modification says when it was
// used last.
//
//	payload  up to CacheOptions.Block bytes
//	footer   "shtblk01"  key: 32  number: u64  length: u64  CRC32C of payload: u32  CRC32C of all these: u32
//
// Numbers are little-endian. A file is written under another name and then
// renamed. It is not flushed to the disk: after a crash of the machine it may be
// any part of itself, which its checksums show.
type cacheDisk struct {
	dir     string
	size    int64
	log     *slog.Logger
	evicted func(name string) // closes a block that is removed
	now     func() time.Time

	mu       sync.Mutex
	verified map[string]struct{} // blocks that this process has checked, or written

	room  sync.Mutex // held by who makes room
	total int64      // bytes in the folder when it was last looked at, and what we have added
	added int64      // since then

	paused atomic.Int64 // in Unix nanoseconds: until when nothing is written, because that failed
	warned atomic.Bool

	evictions, discarded, failed atomic.Int64
}

const (
	blockSuffix = ".block"
	partSuffix  = ".block-part"
	blockMagic  = "shtblk01"
	footerSize  = 64

	abandoned   = time.Hour   // age of a part that nobody writes any more
	touchEvery  = time.Minute // how exact the time of last use is
	pauseFor    = time.Minute // after the disk has refused a block
	maxVerified = 1 << 17     // names kept in memory
	checkSize   = 256 << 10   // bytes read at a time to check a block
	roomShare   = 16          // 1/16 of the size is freed at a time, and added before looking again
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writeBlock is what tests replace to play a disk that fails.
var writeBlock = (*os.File).Write

func footer(key [sha256.Size]byte, i int64, payload []byte) []byte {
	b := make([]byte, 0, footerSize)
	b = append(b, blockMagic...)
	b = append(b, key[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(i))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, castagnoli))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// blockFile is an open block; its bytes are the payload.
type blockFile struct {
	file
	d    *cacheDisk
	used atomic.Int64 // in Unix nanoseconds, as the file's time says
}

// touch notes that the block is used.
func (b *blockFile) touch() {
	now := b.d.now()
	if used := b.used.Load(); now.UnixNano()-used > int64(touchEvery) && b.used.CompareAndSwap(used, now.UnixNano()) {
		_ = os.Chtimes(b.f.Name(), now, now) // it may have been removed
	}
}

// Open opens a block and checks it if this process has not done so. One that is
// not whole is ErrCorrupt. It makes the folder a Store, for Handles.
func (d *cacheDisk) Open(ctx context.Context, name string) (Object, error) {
	f, err := os.Open(filepath.Join(d.dir, name))
	if err != nil {
		return nil, nameError(name, err)
	}
	b, err := d.check(ctx, name, f)
	if err != nil {
		f.Close()
		return nil, nameError(name, err)
	}
	return b, nil
}

func (d *cacheDisk) check(ctx context.Context, name string, f *os.File) (*blockFile, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var foot [footerSize]byte
	length := st.Size() - footerSize
	if length < 0 {
		return nil, format.Errorf(format.ErrCorrupt, format.In(name), "a block of %d bytes has no footer", st.Size())
	}
	if _, err := f.ReadAt(foot[:], length); err != nil && err != io.EOF {
		return nil, err
	}
	sum := binary.LittleEndian.Uint32(foot[60:])
	number := binary.LittleEndian.Uint64(foot[40:])
	if string(foot[:8]) != blockMagic || crc32.Checksum(foot[:60], castagnoli) != sum ||
		binary.LittleEndian.Uint64(foot[48:]) != uint64(length) || blockName([sha256.Size]byte(foot[8:40]), int64(number)) != name {
		return nil, format.Errorf(format.ErrCorrupt, format.In(name), "the footer of a block does not fit it")
	}
	if !d.isVerified(name) {
		sum, err := checksum(ctx, f, length)
		if err != nil {
			return nil, err
		}
		if sum != binary.LittleEndian.Uint32(foot[56:]) {
			return nil, format.Errorf(format.ErrCorrupt, format.In(name), "the checksum of a block is wrong")
		}
		d.verify(name)
	}
	b := &blockFile{file: file{f: f, entry: Entry{Name: name, Size: length}}, d: d}
	b.used.Store(st.ModTime().UnixNano())
	return b, nil
}

var checkBuffers = sync.Pool{New: func() any { return new([checkSize]byte) }}

func checksum(ctx context.Context, f *os.File, length int64) (sum uint32, err error) {
	b := checkBuffers.Get().(*[checkSize]byte)
	defer checkBuffers.Put(b)
	for off := int64(0); off < length; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := f.ReadAt(b[:min(checkSize, length-off)], off)
		if n == 0 {
			return 0, err
		}
		sum = crc32.Update(sum, castagnoli, b[:n])
		off += int64(n)
	}
	return sum, nil
}

func (d *cacheDisk) isVerified(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.verified[name]
	return ok
}

func (d *cacheDisk) verify(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.verified) >= maxVerified {
		clear(d.verified) // they will be checked again
	}
	d.verified[name] = struct{}{}
}

// List and Create are not used: blocks are written by write.
func (d *cacheDisk) List(context.Context, string) iter.Seq2[Entry, error] {
	return func(func(Entry, error) bool) {}
}

func (d *cacheDisk) Create(_ context.Context, name string) (Sink, error) {
	return nil, format.Errorf(format.ErrUnsupported, format.In(name), "blocks are not created so")
}

// remove removes a block, and closes it.
func (d *cacheDisk) remove(name string) error {
	d.mu.Lock()
	delete(d.verified, name)
	d.mu.Unlock()
	d.evicted(name)
	return os.Remove(filepath.Join(d.dir, name))
}

// discard removes a block that is no good.
func (d *cacheDisk) discard(name string) {
	if d.remove(name) == nil {
		d.discarded.Add(1)
	}
}

// refuses reports whether the disk did not take a block a short while ago.
func (d *cacheDisk) refuses() bool {
	until := d.paused.Load()
	return until != 0 && d.now().UnixNano() < until
}

// write keeps a block. A disk that does not take it is left alone for a while.
func (d *cacheDisk) write(key [sha256.Size]byte, i int64, payload []byte) bool {
	name := blockName(key, i)
	ok, err := d.reserve(int64(len(payload)) + footerSize)
	if ok && err == nil {
		err = d.writeFile(name, payload, footer(key, i, payload))
	}
	if err == nil {
		return ok
	}
	d.failed.Add(1)
	d.paused.Store(d.now().Add(pauseFor).UnixNano())
	if d.log != nil && !d.warned.Swap(true) {
		d.log.Warn("the cache cannot be written; reading goes on without it", "folder", d.dir, "error", err)
	}
	return false
}

func (d *cacheDisk) writeFile(name string, payload, foot []byte) error {
	temp := filepath.Join(d.dir, strings.TrimSuffix(name, blockSuffix)+"."+rand.Text()[:12]+partSuffix)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	for _, p := range [][]byte{payload, foot} {
		if err == nil {
			_, err = writeBlock(f, p)
		}
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(temp, filepath.Join(d.dir, name))
	}
	if err != nil {
		os.Remove(temp)
		return err
	}
	d.verify(name)
	return nil
}

// reserve makes room for n bytes. It reports whether there is.
func (d *cacheDisk) reserve(n int64) (bool, error) {
	d.room.Lock()
	defer d.room.Unlock()
	if n > d.size {
		return false, nil
	}
	if d.total+n > d.size || d.added+n > d.size/roomShare {
		// Other processes add and remove as well.
		if err := d.makeRoom(n); err != nil {
			return false, err
		}
		if d.total+n > d.size {
			return false, nil
		}
	}
	d.total += n
	d.added += n
	return true, nil
}

// stored is a file in the folder.
type stored struct {
	name string
	size int64
	used time.Time
}

// makeRoom looks at the folder, removes parts that were left behind and, if n
// more bytes would not go in, the blocks used longest ago.
func (d *cacheDisk) makeRoom(n int64) error {
	blocks, total, err := d.look()
	if err != nil {
		return err
	}
	if total+n > d.size {
		slices.SortFunc(blocks, func(a, b stored) int {
			return cmp.Or(a.used.Compare(b.used), strings.Compare(a.name, b.name))
		})
		for _, b := range blocks {
			if total+n <= d.size-d.size/roomShare {
				break
			}
			err := d.remove(b.name)
			if err == nil {
				d.evictions.Add(1)
			}
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				total -= b.size
			}
		}
	}
	d.total, d.added = total, 0
	return nil
}

// look returns the blocks in the folder and how many bytes it holds.
func (d *cacheDisk) look() (blocks []stored, total int64, err error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		part := strings.HasSuffix(e.Name(), partSuffix)
		if !part && !strings.HasSuffix(e.Name(), blockSuffix) {
			continue
		}
		st, err := e.Info()
		if err != nil { // another process was faster
			continue
		}
		if part && d.now().Sub(st.ModTime()) > abandoned && os.Remove(filepath.Join(d.dir, e.Name())) == nil {
			continue
		}
		total += st.Size()
		if !part {
			blocks = append(blocks, stored{e.Name(), st.Size(), st.ModTime()})
		}
	}
	return blocks, total, nil
}
