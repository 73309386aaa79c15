package store

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
)

// SpoolOptions of NewSpool. The zero value keeps everything in files.
type SpoolOptions struct {
	Memory int64        // bytes kept in memory, of all objects together, beyond what Memory says of the store; what is more goes to files
	Dir    string       // folder of the files; "": os.TempDir()
	Log    *slog.Logger // is told once when the disk refuses to take more; nil: nobody is
}

// Spool is a store that keeps what it reads of some objects of another store,
// until they are let go of, so that they are fetched once however often they are
// read:
//
//	Hold("a.tar")    from now on, what is read of a.tar is kept
//	  read it        fetched from the store below
//	  read it again  from memory and files; the store below is not opened
//	Release("a.tar") memory and file are given back
//
// Any part of an object is kept as it comes, by ReadAt and by streams alike, and
// only what is missing is fetched. Who streams a part that another stream is
// fetching reads along instead of fetching it too.
//
// What is kept of an object is of the version that was first opened while it was
// held. Open gives that version, without asking the store below, and OpenEntry of
// another one is ErrStale; so is reading what is not kept where the store below
// has another one by now.
//
// Keeping never stands in the way of reading: where a file cannot be made,
// written or read, the bytes come from the store below. Objects that are not
// held, and those of unknown size, are read as without a Spool.
type Spool struct {
	wrapped
	memory int64
	dir    string
	log    *slog.Logger

	mu       sync.Mutex // of all that follows, and of every kept
	written  sync.Cond  // something that was coming is there, or is not
	held     map[string]*kept
	inMemory int64
	onDisk   int64
	refused  bool // the disk takes nothing more, until some of it is given back
	warned   bool
	left     []string // files that could not be removed

	served, fetched atomic.Int64
}

// NewSpool returns a Spool of what st reads. Nothing is made in the folder before
// it is needed.
func NewSpool(st Store, o SpoolOptions) *Spool {
	s := &Spool{wrapped: wrapped{st}, memory: o.Memory, dir: o.Dir, log: o.Log, held: make(map[string]*kept)}
	s.written.L = &s.mu
	return s
}

// SpoolStats are what a Spool holds now, and counts since NewSpool.
type SpoolStats struct {
	Objects int   // held
	Memory  int64 // bytes of memory that they take
	Disk    int64 // bytes of them in files
	Served  int64 // bytes read that had been kept
	Fetched int64 // bytes that the store below delivered of objects held
}

// Stats returns what is held now, and the counts so far.
func (s *Spool) Stats() SpoolStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return SpoolStats{len(s.held), s.inMemory, s.onDisk, s.served.Load(), s.fetched.Load()}
}

// Hold keeps what is read of an object from now on, also by who has opened it
// before. Each Hold is followed by one Release.
func (s *Spool) Hold(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.held[name]
	if k == nil {
		k = &kept{s: s, gap: localGap}
		s.held[name] = k
	}
	k.holds++
}

// Release undoes one Hold. The last one gives back memory and file. Who is still
// reading goes on, from the store below.
func (s *Spool) Release(name string) {
	s.mu.Lock()
	k := s.held[name]
	if k == nil {
		s.mu.Unlock()
		panic("store: an object of a Spool was released more often than it was held")
	}
	k.holds--
	var f spoolFile
	if k.holds == 0 {
		delete(s.held, name)
		f = k.drop()
	}
	s.mu.Unlock()
	if f != nil {
		s.closeFile(f)
	}
}

// Close gives back all memory and files, but does not close the store below.
// Readers go on from there. No Hold or Release may follow.
func (s *Spool) Close() error {
	s.mu.Lock()
	var files []spoolFile
	for _, k := range s.held {
		if f := k.drop(); f != nil {
			files = append(files, f)
		}
	}
	clear(s.held)
	s.mu.Unlock()
	for _, f := range files {
		s.closeFile(f)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, name := range s.left {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, nameError(name, err))
		}
	}
	s.left = nil
	return errors.Join(errs...)
}

func (s *Spool) closeFile(f spoolFile) {
	if name, err := f.discard(); err != nil {
		s.mu.Lock()
		s.left = append(s.left, name)
		s.mu.Unlock()
	}
}

// refuse writes no more files, after one has failed. It is called with the mutex
// held.
func (s *Spool) refuse(err error) {
	s.refused = true
	if s.log != nil && !s.warned {
		s.warned = true
		s.log.Warn("shards cannot be kept on the disk; they are fetched again for each pass", "folder", s.folder(), "error", err)
	}
}

func (s *Spool) folder() string {
	if s.dir == "" {
		return os.TempDir()
	}
	return s.dir
}

// Open opens an object: one that is held and was opened before, as it was then.
func (s *Spool) Open(ctx context.Context, name string) (Object, error) {
	return s.open(ctx, Entry{Name: name}, func() (Object, error) { return s.Store.Open(ctx, name) })
}

// OpenEntry opens what e describes. Of an object that is held and was opened
// before, the store below is asked only where something has to be fetched.
func (s *Spool) OpenEntry(ctx context.Context, e Entry) (Object, error) {
	return s.open(ctx, e, func() (Object, error) { return OpenEntry(ctx, s.Store, e) })
}

func (s *Spool) open(ctx context.Context, e Entry, open func() (Object, error)) (Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	k := s.held[e.Name]
	if k != nil && k.known {
		now := k.entry
		s.mu.Unlock()
		if err := e.Unchanged(now); err != nil {
			return nil, err
		}
		return s.object(now, nil), nil
	}
	s.mu.Unlock()
	below, err := open()
	if err != nil {
		return nil, err
	}
	now := below.Stat()
	if now.Size < 0 {
		return below, nil // it can be read once
	}
	o := s.object(now, below)
	o.kept() // this version is the one to keep
	return o, nil
}

// kept is what is there of an object that is held.
//
//	object  ├────────┼────────┼────────┼─────┤  pages, in memory or in the file at their offset
//	there   ███████████   ████████             what can be read
//	coming              ▒▒                     what somebody is writing
type kept struct {
	s     *Spool
	holds int
	gone  bool // nothing more is kept

	known bool
	entry Entry // once known
	gap   int64 // of the object below

	there, coming extents
	pages         map[int64][]byte // by number; nil: it is in the file
	memory, disk  int64            // bytes
	file          spoolFile        // nil until it is needed

	fetches []*spoolFetch
	taps    []*tap
}

// spoolPage is the unit of memory that is kept: small beside a shard, and large
// beside what keeping costs.
const spoolPage = 256 << 10

// drop forgets all that is there. It returns the file, to be closed without the
// mutex, which is held.
func (k *kept) drop() spoolFile {
	s, f := k.s, k.file
	s.inMemory -= k.memory
	s.onDisk -= k.disk
	if f != nil {
		s.refused = false // there is room again
	}
	k.gone, k.there, k.pages, k.file, k.memory, k.disk = true, nil, nil, nil, 0, 0
	return f
}

// keeps reports whether more may be kept. The mutex is held.
func (k *kept) keeps() bool {
	return !k.gone && (!k.s.refused || k.s.inMemory+spoolPage <= k.s.memory)
}

// keep takes what was read at an offset. When it returns, all of it is there, or
// refused.
func (k *kept) keep(p []byte, off int64) {
	s := k.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for end := off + int64(len(p)); off < end && !k.gone; {
		if k.coming.run(off) > 0 { // somebody was faster
			s.written.Wait()
			continue
		}
		if n := k.there.run(off); n > 0 {
			p, off = p[min(n, int64(len(p))):], off+n
			continue
		}
		n := min(end, k.there.next(off), k.coming.next(off), (off/spoolPage+1)*spoolPage) - off
		if page, f, ok := k.page(off / spoolPage); ok {
			k.write(page, f, p[:n], off)
		}
		p, off = p[n:], off+n
	}
}

// write puts bytes to their place within a page. It gives the mutex back
// meanwhile: the place is nobody else's to write, and not there to be read.
func (k *kept) write(page []byte, f spoolFile, p []byte, off int64) {
	s, end := k.s, off+int64(len(p))
	k.coming.add(off, end)
	s.mu.Unlock()
	var err error
	if page != nil {
		copy(page[off%spoolPage:], p)
	} else {
		_, err = f.WriteAt(p, off)
	}
	s.mu.Lock()
	s.written.Broadcast()
	k.coming.remove(off, end)
	switch {
	case k.gone, page == nil && f != k.file:
	case err != nil:
		s.refuse(err)
	default:
		k.there.add(off, end)
		if page == nil {
			k.disk += int64(len(p))
			s.onDisk += int64(len(p))
		}
	}
}

// page returns where a page is kept: in memory while there is room, else in the
// file. It reports false where it cannot be.
func (k *kept) page(i int64) (page []byte, f spoolFile, ok bool) {
	s := k.s
	page, ok = k.pages[i]
	if page != nil {
		return page, nil, true
	}
	n := min(spoolPage, k.entry.Size-i*spoolPage)
	switch {
	case !ok && s.inMemory+n <= s.memory:
		page = make([]byte, n)
		s.inMemory += n
		k.memory += n
	case s.refused:
		return nil, nil, false
	case k.file == nil:
		f, err := newSpoolFile(s.folder())
		if err != nil {
			s.refuse(err)
			return nil, nil, false
		}
		k.file = f
	}
	if k.pages == nil {
		k.pages = make(map[int64][]byte)
	}
	k.pages[i] = page
	return page, k.file, true
}

// piece returns what is there from an offset on, up to most bytes: n bytes of a
// page, or of the file from that offset on. The mutex is held.
func (k *kept) piece(off, most int64) (page []byte, f spoolFile, n int64) {
	n = min(k.there.run(off), most)
	if n <= 0 {
		return nil, nil, 0
	}
	if page = k.pages[off/spoolPage]; page != nil {
		page = page[off%spoolPage:]
		n = min(n, int64(len(page)))
		return page[:n:n], nil, n
	}
	for at := (off/spoolPage + 1) * spoolPage; at < off+n; at += spoolPage {
		if k.pages[at/spoolPage] != nil {
			n = at - off
		}
	}
	return nil, k.file, n
}

// lose forgets what is in a file that cannot be read.
func (k *kept) lose(f spoolFile, err error) {
	s := k.s
	s.mu.Lock()
	if k.gone || k.file != f { // it was closed
		s.mu.Unlock()
		return
	}
	for i, page := range k.pages {
		if page == nil {
			k.there.remove(i*spoolPage, (i+1)*spoolPage)
			delete(k.pages, i)
		}
	}
	s.onDisk -= k.disk
	k.disk, k.file = 0, nil
	s.refuse(err)
	s.mu.Unlock()
	s.closeFile(f)
}

// poison forgets what is there and keeps nothing more: it is not what it should
// be.
func (k *kept) poison() {
	k.s.mu.Lock()
	f := k.drop()
	k.s.mu.Unlock()
	if f != nil {
		k.s.closeFile(f)
	}
}
