package remote

import (
	"context"
	"hash"
	"io"
	"sync"
	"sync/atomic"

	"shardtool/format"
)

// blockSize is the unit of memory that ranges are read into.
const blockSize = 256 << 10

type block [blockSize]byte

var blocks = sync.Pool{New: func() any { return new(block) }}

func newBlock() *block       { return blocks.Get().(*block) }
func (b *block) free()       { blocks.Put(b) }
func inBlocks(n int64) int64 { return (n + blockSize - 1) / blockSize }

// firstRanges is how many ranges a stream has under way or unread while nothing
// was read yet, for many are left early. Each byte that was read makes two more
// likely to be wanted.
const firstRanges = 8

// stream reads an object in order, some ranges ahead.
type stream struct {
	o      *object
	caller context.Context
	ctx    context.Context
	cancel context.CancelFunc
	end    int64 // the object's
	next   int64 // of the first byte that no span holds
	taken  int64 // bytes that were handed out
	spans  []*span
	at     int64 // of the next byte to hand out, in spans[0]
	last   *span // the one up to the end of the object, once all its bytes were read
	wake   chan struct{}
	all    sync.WaitGroup
	sum    *proof
	direct *inOrder // takes over where the server serves no ranges
	err    error    // what every further Read returns
}

// span is a range: its blocks are there from the start on, as far as came says.
type span struct {
	s      *stream
	off    int64
	size   int64
	open   bool // to the end of the object
	place  place
	blocks []*block
	filled atomic.Int64
	done   atomic.Bool // no more will come; err and whole are set
	waited atomic.Bool // the reader sleeps until something comes
	err    error
	whole  *answer
}

func newStream(ctx context.Context, o *object, off int64) *stream {
	s := &stream{o: o, caller: ctx, end: o.entry.Size, next: off, wake: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	if off == 0 {
		s.sum = &proof{o: o}
	}
	o.c.streams.Add(1)
	if o.entry.Size < 0 || o.inOrder && o.entry.Size > 0 {
		s.direct = newInOrder(s.ctx, o, nil)
		return s
	}
	s.ahead(false)
	return s
}

func (s *stream) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if err := s.caller.Err(); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := s.read(p)
	if err != nil {
		s.err = err
		if e := s.caller.Err(); e != nil {
			s.err = e
		}
		if n > 0 {
			return n, nil
		}
	}
	return n, s.err
}

func (s *stream) read(p []byte) (int, error) {
	for s.direct == nil {
		if len(s.spans) > 0 {
			if n := s.take(p); n > 0 {
				return n, nil
			}
			if err := s.wait(); err != nil {
				return 0, err
			}
			continue
		}
		if s.next >= s.end {
			return 0, s.over()
		}
		s.ahead(true)
	}
	n, err := s.direct.read(p)
	s.sum.add(p[:n])
	if err == io.EOF {
		err = s.sum.end(s.direct.off)
	}
	return n, err
}

// take hands out bytes of the current span that are there.
func (s *stream) take(p []byte) int {
	r := s.spans[0]
	have := r.filled.Load() - s.at
	if have <= 0 {
		return 0
	}
	i, in := s.at/blockSize, s.at%blockSize
	n := copy(p, r.blocks[i][in:min(in+have, blockSize)])
	s.at += int64(n)
	s.taken += int64(n)
	if in+int64(n) == blockSize || s.at == r.size {
		s.leave(r, i, in+int64(n))
	}
	return n
}

// leave gives back a block that was read, of which n bytes were used, and the
// span with its last one, and asks for more in their place.
func (s *stream) leave(r *span, i, n int64) {
	s.sum.add(r.blocks[i][:n])
	r.drop(i)
	if s.at == r.size {
		if r.open {
			s.last = r
		}
		s.pop()
	}
	s.ahead(false)
}

func (s *stream) pop() {
	copy(s.spans, s.spans[1:])
	s.spans[len(s.spans)-1] = nil
	s.spans = s.spans[:len(s.spans)-1]
	s.at = 0
}

// wait sleeps until the current span has more, and returns its error if it has
// not.
func (s *stream) wait() error {
	r := s.spans[0]
	if r.done.Load() && r.filled.Load() == s.at {
		return s.finished(r)
	}
	s.o.c.gate.promote(&r.place)
	if err := s.sleep(r, s.at); err != nil {
		return err
	}
	s.ahead(false) // the first answer may have told that ranges are served
	return nil
}

// sleep waits until a span has other than have bytes, or ends.
func (s *stream) sleep(r *span, have int64) error {
	r.waited.Store(true)
	defer r.waited.Store(false)
	if r.filled.Load() != have || r.done.Load() {
		return nil
	}
	select {
	case <-s.wake:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// over returns io.EOF, or what the last answer and the checksum have to say
// when all bytes were read: an object may turn out to go on.
func (s *stream) over() error {
	for s.last != nil && !s.last.done.Load() {
		if err := s.sleep(s.last, s.last.size); err != nil {
			return err
		}
	}
	if s.last != nil && s.last.err != nil {
		return s.last.err
	}
	return s.sum.end(s.end)
}

// finished looks at a span that ended before its last byte.
func (s *stream) finished(r *span) error {
	if r.err != errWhole {
		return r.err
	}
	s.direct = newInOrder(s.ctx, s.o, r.whole)
	r.whole = nil
	r.dropAll()
	s.pop()
	return nil
}

// ahead asks for as many ranges as there should be. blocked says that the
// reader has nothing else to read: then one is asked for whatever memory is
// held, for a stream that waits for others' readers might wait for ever.
func (s *stream) ahead(blocked bool) {
	for s.next < s.end && s.direct == nil {
		size, room := s.plan()
		n := min(size, s.end-s.next)
		if own := s.own(); own > 0 && own+n > room {
			return
		}
		if !s.o.c.reserve(inBlocks(n) * blockSize) {
			if !blocked || len(s.spans) > 0 {
				return
			}
			n = min(n, minRange)
			s.o.c.held.Add(inBlocks(n) * blockSize)
		}
		s.start(n)
	}
}

// own is how many bytes are unread or under way.
func (s *stream) own() int64 {
	if len(s.spans) == 0 {
		return 0
	}
	return s.next - s.spans[0].off - s.at
}

// plan returns the size of the next range, and how many bytes there should be
// unread and under way: an equal share of the memory, or half of what others
// leave, if that is more. Before the first answer there is one range: it tells
// the version, and whether there are ranges at all.
//
// A stream that has several connections for itself needs ranges for all of
// them, twice, so that none idles while the reader drains another; where there
// are streams enough for all connections, ranges are as large as the memory
// allows. One that is alone needs smaller ones towards its end, to share the
// rest among the connections, which others would have work for.
func (s *stream) plan() (size, room int64) {
	c := s.o.c
	streams := max(c.streams.Load(), 1)
	share := c.o.ReadAhead / streams
	lanes := max(int64(c.o.Connections)/streams, 1)
	size = min(c.o.Range*c.pace.times(), max(share/(2*lanes), c.o.Range))
	room = max(share, s.own()+(c.o.ReadAhead-c.held.Load())/2)
	room = min(room, firstRanges*size+2*s.taken)
	size = min(size, max(room/2, minRange))
	if streams == 1 {
		size = max(min(size, (s.end-s.next)/(2*min(lanes, max(room/size, 1)))), min(size, c.o.Range))
	}
	if !s.o.ranged.Load() {
		room = 0
	}
	if size > blockSize {
		size -= size % blockSize
	}
	return size, room
}

func (s *stream) start(n int64) {
	r := &span{s: s, off: s.next, size: n, blocks: make([]*block, inBlocks(n))}
	s.next += n
	r.open = s.next == s.end
	s.spans = append(s.spans, r)
	s.all.Add(1)
	go r.fetch()
}

func (r *span) fetch() {
	defer r.s.all.Done()
	t := transfer{o: r.s.o, off: r.off, end: r.off + r.size, open: r.open, place: &r.place, hand: r.off == 0}
	r.err = t.run(r.s.ctx, r)
	r.whole = t.whole
	r.done.Store(true)
	r.tell()
}

// room and came make a span the destination of its transfer.
func (r *span) room() []byte {
	have := r.filled.Load()
	i := have / blockSize
	if r.blocks[i] == nil {
		r.blocks[i] = newBlock()
	}
	return r.blocks[i][have%blockSize:]
}

func (r *span) came(n int) {
	r.filled.Add(int64(n))
	r.tell()
}

func (r *span) tell() {
	if r.waited.Load() {
		select {
		case r.s.wake <- struct{}{}:
		default:
		}
	}
}

// drop gives back a block and what was reserved for it.
func (r *span) drop(i int64) {
	if r.blocks[i] != nil {
		r.blocks[i].free()
		r.blocks[i] = nil
	}
	r.s.o.c.held.Add(-blockSize)
}

// dropAll gives back the blocks that were not read.
func (r *span) dropAll() {
	first := int64(0)
	if len(r.s.spans) > 0 && r.s.spans[0] == r {
		first = r.s.at / blockSize
	}
	for i := first; i < int64(len(r.blocks)); i++ {
		r.drop(i)
	}
}

// reserve takes memory of ReadAhead if there is so much.
func (c *Client) reserve(n int64) bool {
	for {
		held := c.held.Load()
		if held+n > c.o.ReadAhead {
			return false
		}
		if c.held.CompareAndSwap(held, held+n) {
			return true
		}
	}
}

// Close ends what is under way and waits for it.
func (s *stream) Close() error {
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	s.cancel = nil
	s.err = format.Errorf(format.ErrUsage, s.o.at(format.Unknown), "a read after Close")
	s.all.Wait()
	for _, r := range s.spans {
		r.dropAll()
		if r.whole != nil {
			r.whole.close()
		}
	}
	s.spans = nil
	if s.direct != nil {
		s.direct.close()
	}
	s.o.c.streams.Add(-1)
	return nil
}

// proof holds the bytes of a whole read against the checksum that the server
// sent. A nil one proves nothing.
type proof struct {
	o     *object
	begun bool
	want  Checksum
	sum   hash.Hash
}

func (f *proof) add(p []byte) {
	if f == nil || len(p) == 0 {
		return
	}
	if !f.begun {
		// With the first bytes the first answer has come, and with it what
		// the server says.
		f.begun = true
		_, _, f.want = f.o.known()
		f.sum = f.want.verifier()
	}
	if f.sum != nil {
		f.sum.Write(p)
	}
}

// end returns io.EOF, or what is wrong with the size bytes that were read.
func (f *proof) end(size int64) error {
	if f == nil || f.sum == nil {
		return io.EOF
	}
	if got := encodeSum(f.sum); got != f.want.Value {
		return format.Errorf(format.ErrCorrupt, f.o.at(size), "the bytes have the %v checksum %s, the server says %s", f.want.Algorithm, got, f.want.Value)
	}
	return io.EOF
}
