package store

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"shardtool/format"
)

// spoolObject is an object of a Spool, held or not.
type spoolObject struct {
	*lateObject // of the store below
	s           *Spool
}

func (s *Spool) object(e Entry, below Object) *spoolObject {
	return &spoolObject{s: s, lateObject: late(s.Store, e, below)}
}

// kept returns what is kept of this object, and nil if it is not held, or if
// what is kept is of another version.
func (o *spoolObject) kept() *kept {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	k := o.s.held[o.entry.Name]
	switch {
	case k == nil || k.gone:
		return nil
	case !k.known:
		k.known, k.entry = true, o.entry
		if below := o.opened(); below != nil {
			k.gap = Gap(below)
		}
	case k.entry != o.entry:
		return nil
	}
	return k
}

// Gap is that of the object below, but that of a local disk once all is there.
func (o *spoolObject) Gap() int64 {
	k := o.kept()
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	switch {
	case k != nil && k.there.run(0) < o.entry.Size:
		return k.gap
	case k == nil && o.opened() != nil:
		return Gap(o.opened())
	}
	return localGap
}

func (o *spoolObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	p, end, err := o.within(ctx, p, off)
	if err != nil {
		return 0, err
	}
	done := 0
	for done < len(p) {
		n, err := o.readSome(ctx, o.kept(), p[done:], off+int64(done))
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, end
}

// spoolFetch is a ReadAt of the store below that has not come back yet.
type spoolFetch struct {
	extent
	landed chan struct{}
}

// readSome reads the first bytes of p, or none where it is to be called again.
func (o *spoolObject) readSome(ctx context.Context, k *kept, p []byte, off int64) (int, error) {
	if k == nil {
		return o.readBelow(ctx, p, off)
	}
	s := o.s
	s.mu.Lock()
	page, f, n := k.piece(off, int64(len(p)))
	if n > 0 {
		s.mu.Unlock()
		return k.serve(p[:n], page, f, off), nil
	}
	end := k.missing(off, off+int64(len(p)))
	if k.keeps() { // else there is nothing to wait for
		for _, other := range k.fetches {
			if other.from <= off && off < other.to {
				s.mu.Unlock()
				select {
				case <-other.landed:
					return 0, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			}
			if off < other.from {
				end = min(end, other.from)
			}
		}
	}
	fetch := &spoolFetch{extent{off, end}, make(chan struct{})}
	k.fetches = append(k.fetches, fetch)
	s.mu.Unlock()
	m, err := o.readBelow(ctx, p[:end-off], off)
	s.fetched.Add(int64(m))
	k.keep(p[:m], off)
	s.mu.Lock()
	k.fetches = slices.DeleteFunc(k.fetches, func(f *spoolFetch) bool { return f == fetch })
	s.mu.Unlock()
	close(fetch.landed)
	return m, err
}

// readBelow fills p, which lies within the object, from the store below.
func (o *spoolObject) readBelow(ctx context.Context, p []byte, off int64) (int, error) {
	below, err := o.source(ctx)
	if err != nil {
		return 0, err
	}
	n, err := below.ReadAt(ctx, p, off)
	switch {
	case n == len(p):
		return n, nil
	case err == io.EOF:
		return n, pastEnd(o, off+int64(n))
	}
	return n, err
}

// serve copies a piece to p. It returns 0 if the file fails, after which the
// piece is there no more.
func (k *kept) serve(p, page []byte, f spoolFile, off int64) int {
	if page != nil {
		copy(p, page)
	} else if n, err := f.ReadAt(p, off); n < len(p) {
		k.lose(f, err)
		return 0
	}
	k.s.served.Add(int64(len(p)))
	return len(p)
}

// missing returns up to where one request fetches what is not there of off to
// end: also over what is there, where that is short and not the last. The mutex
// is held.
func (k *kept) missing(off, end int64) int64 {
	for at := off; at < end; at = k.there.next(at) {
		n := k.there.run(at)
		if n > k.gap || n > 0 && at+n >= end {
			return at
		}
		at += n
	}
	return end
}

// Stream reads what is there, and what is missing by a stream of the store below
// that all who read there share.
func (o *spoolObject) Stream(ctx context.Context, off int64) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if off < 0 {
		return nil, negativeOffset(o.entry.Name, off)
	}
	k := o.kept()
	if k == nil {
		below, err := o.source(ctx)
		if err != nil {
			return nil, err
		}
		return Stream(ctx, below, off)
	}
	return &spoolStream{ctx: ctx, o: o, k: k, off: off}, nil
}

// tap is a stream of the store below. Whoever of its users needs the byte that
// comes next draws it, so that none waits for another that does not read.
type tap struct {
	drawing chan struct{} // one element while somebody reads r

	// Of who draws.
	below  Object
	r      io.ReadCloser // nil until it is open
	ctx    context.Context
	cancel context.CancelFunc

	// Under the mutex of the Spool.
	at    int64 // of the byte that comes next
	users int   // streams
	dead  bool  // it has failed
}

func (t *tap) close() error {
	var errs []error
	if t.r != nil {
		errs = append(errs, t.r.Close())
	}
	if t.below != nil {
		errs = append(errs, t.below.Close())
	}
	if t.cancel != nil {
		t.cancel()
	}
	t.r, t.below, t.cancel = nil, nil, nil
	return errors.Join(errs...)
}

// spoolStream reads an object in order.
type spoolStream struct {
	ctx context.Context
	o   *spoolObject
	k   *kept
	off int64 // of what comes after left

	left []byte // read and not delivered: of buf, or of a page
	buf  *[spoolPage]byte
	tap  *tap // the one used last
	err  error
}

var spoolBuffers = sync.Pool{New: func() any { return new([spoolPage]byte) }}

func (s *spoolStream) Read(p []byte) (int, error) {
	for {
		if err := s.ctx.Err(); err != nil {
			return 0, err
		}
		switch {
		case len(p) == 0:
			return 0, nil
		case len(s.left) > 0:
			n := copy(p, s.left)
			s.left = s.left[n:]
			return n, nil
		case s.err != nil:
			return 0, s.err
		case s.off >= s.o.entry.Size:
			s.finish()
			continue
		}
		if n := s.more(p); n > 0 {
			return n, nil
		}
	}
}

// more reads what comes next, to p, or to left where p is small: it returns 0
// then, as it does after an error, which is in err, and where it is to be called
// again.
func (s *spoolStream) more(p []byte) int {
	k, sp := s.k, s.k.s
	sp.mu.Lock()
	page, f, n := k.piece(s.off, max(int64(len(p)), spoolPage))
	t := s.tap
	if n == 0 || t != nil && t.at == s.off && k.missing(s.off, s.o.entry.Size) > s.off {
		return s.draw(p) // unlocks
	}
	behind := t != nil && t.at < s.off+n
	sp.mu.Unlock()
	if behind { // it would wait for nobody
		s.leave()
	}
	if page != nil {
		sp.served.Add(n)
		s.left, s.off = page, s.off+n
		return 0
	}
	to := s.into(p)
	n = int64(k.serve(to[:min(n, int64(len(to)))], nil, f, s.off))
	return s.came(to, int(n))
}

// into returns where to read to: p, or a buffer where p is small.
func (s *spoolStream) into(p []byte) []byte {
	if len(p) >= directRead {
		return p
	}
	if s.buf == nil {
		s.buf = spoolBuffers.Get().(*[spoolPage]byte)
	}
	return s.buf[:]
}

// came takes note of what was read into what into returned, and returns how much
// of it is delivered.
func (s *spoolStream) came(to []byte, n int) int {
	s.off += int64(n)
	if s.buf != nil && &to[0] == &s.buf[0] {
		s.left = to[:n]
		return 0
	}
	return n
}

// draw reads from a tap. It is called with the mutex held, and gives it back.
func (s *spoolStream) draw(p []byte) int {
	t := s.join()
	if t == nil {
		return 0
	}
	defer func() { <-t.drawing }()
	s.k.s.mu.Lock()
	most := s.k.missing(s.off, s.o.entry.Size) - s.off
	s.k.s.mu.Unlock()
	if most == 0 { // it has come by ReadAt meanwhile
		return 0
	}
	to := s.into(p)
	to = to[:min(int64(len(to)), most)]
	stop := context.AfterFunc(s.ctx, t.cancel)
	n, err := t.r.Read(to)
	stop()
	s.k.s.fetched.Add(int64(n))
	s.k.keep(to[:n], s.off)
	switch {
	case err == nil:
	case err == io.EOF && s.off+int64(n) < s.o.entry.Size:
		s.err = pastEnd(s.o, s.off+int64(n))
	case t.ctx.Err() == nil: // else the next turn sees whose context it was
		s.err = err
	}
	s.k.advance(t, n, err != nil || t.ctx.Err() != nil)
	return s.came(to, n)
}

// advance takes note that a tap has delivered n bytes, and closes it if it
// failed. It is being drawn from.
func (k *kept) advance(t *tap, n int, failed bool) {
	k.s.mu.Lock()
	t.at += int64(n)
	if failed {
		k.kill(t)
	}
	k.s.mu.Unlock()
	if failed {
		_ = t.close()
	}
}

// kill takes a tap out of reach.
func (k *kept) kill(t *tap) {
	t.dead = true
	k.taps = slices.DeleteFunc(k.taps, func(x *tap) bool { return x == t })
}

// join returns an open tap that stands at off, for this stream to draw from, and
// nil where that failed, with err, or should be tried again. It is called with
// the mutex held, and gives it back.
func (s *spoolStream) join() *tap {
	k := s.k
	if t := s.tap; t != nil && (t.dead || t.at != s.off) {
		k.s.mu.Unlock()
		s.leave()
		return nil
	}
	if s.tap == nil && k.keeps() { // else others would take away what is not kept
		for _, t := range k.taps {
			if t.at == s.off {
				t.users++
				s.tap = t
				break
			}
		}
	}
	if s.tap == nil {
		s.tap = &tap{drawing: make(chan struct{}, 1), at: s.off, users: 1}
		k.taps = append(k.taps, s.tap)
	}
	t := s.tap
	k.s.mu.Unlock()
	select {
	case t.drawing <- struct{}{}:
	case <-s.ctx.Done():
		return nil
	}
	k.s.mu.Lock()
	moved := t.dead || t.at != s.off
	k.s.mu.Unlock()
	if !moved && t.r == nil {
		if err := s.open(t); err != nil {
			if t.ctx.Err() == nil {
				s.err = err
			}
			moved = true
			k.advance(t, 0, true)
		}
	}
	if moved {
		<-t.drawing
		return nil
	}
	return t
}

// open opens a tap at off. An object that can only be read from its start is read
// up to there, and kept.
func (s *spoolStream) open(t *tap) error {
	t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(s.ctx))
	stop := context.AfterFunc(s.ctx, t.cancel)
	defer stop()
	var err error
	if t.below, err = OpenEntry(t.ctx, s.k.s.Store, s.o.entry); err != nil {
		return err
	}
	s.k.s.mu.Lock()
	s.k.gap = Gap(t.below)
	s.k.s.mu.Unlock()
	t.r, err = Stream(t.ctx, t.below, s.off)
	if s.off == 0 || !errors.Is(err, format.ErrUnsupported) {
		return err
	}
	if t.r, err = Stream(t.ctx, t.below, 0); err != nil {
		return err
	}
	buf := s.into(nil)
	for at := int64(0); at < s.off; {
		n, err := t.r.Read(buf[:min(int64(len(buf)), s.off-at)])
		s.k.s.fetched.Add(int64(n))
		s.k.keep(buf[:n], at)
		at += int64(n)
		if err == io.EOF && at < s.off {
			return pastEnd(s.o, at)
		}
		if err != nil && err != io.EOF {
			return err
		}
	}
	return nil
}

// leave gives up the tap. Its last user closes it.
func (s *spoolStream) leave() error {
	t := s.tap
	if t == nil {
		return nil
	}
	s.tap = nil
	k := s.k
	k.s.mu.Lock()
	t.users--
	last := t.users == 0 && !t.dead
	if last {
		k.kill(t)
	}
	k.s.mu.Unlock()
	if !last {
		return nil
	}
	return t.close()
}

// finish sets err at the end of the object, behind which a tap may tell that a
// checksum of the whole is wrong: then nothing that was kept is right.
func (s *spoolStream) finish() {
	s.err = io.EOF
	t := s.tap
	if t == nil {
		return
	}
	select {
	case t.drawing <- struct{}{}:
	case <-s.ctx.Done():
		s.err = nil // the next turn sees it
		return
	}
	if t.r != nil { // nobody else has been here
		stop := context.AfterFunc(s.ctx, t.cancel)
		_, err := io.ReadFull(t.r, s.into(nil)[:1])
		stop()
		switch {
		case err == nil, err == io.EOF, t.ctx.Err() != nil:
		default:
			s.err = err
			if errors.Is(err, format.ErrCorrupt) {
				s.k.poison()
			}
		}
		s.k.advance(t, 0, true)
	}
	<-t.drawing
}

// Close ends the stream.
func (s *spoolStream) Close() error {
	err := s.leave()
	s.left, s.off = nil, s.o.entry.Size
	if s.buf != nil {
		spoolBuffers.Put(s.buf)
		s.buf = nil
	}
	return err
}
