package remote

import (
	"context"
	"io"

	"shardtool/format"
)

// inOrder reads an answer straight from its connection: of a server that serves
// no ranges or tells no size, nothing can be asked for ahead. The connection is
// held for as long as the reader takes; it does not count as a request in
// flight once its bytes begin to come, or readers that pause could lock each
// other out.
type inOrder struct {
	o        *object
	ctx      context.Context
	off      int64 // of the first byte that has not come
	a        *answer
	failures tries
	buf      *block
	r, w     int // what of buf is to be handed out
}

// newInOrder begins with an answer from the first byte on, or asks for one when
// it is first read if a is nil.
func newInOrder(ctx context.Context, o *object, a *answer) *inOrder {
	return &inOrder{o: o, ctx: ctx, a: a, failures: tries{c: o.c, name: o.name}}
}

// read returns io.EOF at the end only.
func (s *inOrder) read(p []byte) (int, error) {
	if s.r == s.w && len(p) >= blockSize {
		return s.fetch(p)
	}
	if s.r == s.w {
		if s.buf == nil {
			s.buf = newBlock()
		}
		n, err := s.fetch(s.buf[:])
		if n == 0 {
			return 0, err
		}
		s.r, s.w = 0, n
	}
	n := copy(p, s.buf[s.r:s.w])
	s.r += n
	return n, nil
}

// fetch brings at least one byte.
func (s *inOrder) fetch(p []byte) (int, error) {
	for {
		n, err := s.once(p)
		if n > 0 {
			s.failures.n = 0
			return n, nil
		}
		if err == io.EOF {
			return 0, err
		}
		if err != nil {
			if err = s.failures.again(s.ctx, s.resumable(err), s.off, false); err != nil {
				return 0, err
			}
		}
	}
}

func (s *inOrder) once(p []byte) (int, error) {
	if s.a == nil {
		if err := s.ask(); err != nil {
			return 0, err
		}
	}
	n, err := s.a.read(p)
	s.off += int64(n)
	s.o.c.bytes.Add(int64(n))
	if n > 0 || err == nil {
		return n, nil
	}
	s.drop()
	_, size, _ := s.o.known()
	switch {
	case err != io.EOF || size < 0 || s.off == size:
		return 0, err
	case s.off > size:
		return 0, format.Errorf(format.ErrStale, s.o.at(s.off), "the object goes on after the %d bytes that it had", size)
	default:
		return 0, shortError{s.off, size}
	}
}

// ask requests what is missing. Where the server then sends the object from its
// start, what was had is read again and thrown away.
func (s *inOrder) ask() (err error) {
	p, err := s.o.c.gate.enter(s.ctx, nil)
	if err != nil {
		return err
	}
	defer func() { s.o.c.leave(p, err) }()
	t := transfer{o: s.o, off: s.off, open: true, reread: true}
	a, r, err := t.ask(s.ctx)
	if err != nil {
		return err
	}
	if err = a.discard(s.o, s.off-r.Offset); err != nil {
		a.close()
		return err
	}
	s.a = a
	return nil
}

// resumable makes an error final if what was handed out cannot be joined with
// bytes of another answer: nothing proves that they are of the same object.
func (s *inOrder) resumable(err error) error {
	version, _, _ := s.o.known()
	if s.off == 0 || strong(version) || s.ctx.Err() != nil || format.AsError(err) != nil {
		return err
	}
	return format.Errorf(format.ErrIO, s.o.at(s.off), "cut, and without a strong ETag the rest cannot be asked for: %w", plain(err))
}

func (s *inOrder) drop() {
	if s.a != nil {
		s.a.close()
		s.a = nil
	}
}

func (s *inOrder) close() {
	s.drop()
	if s.buf != nil {
		s.buf.free()
		s.buf = nil
	}
	s.r, s.w = 0, 0
}
