package remote

import (
	"context"
	"errors"
	"io"
	"time"

	"shardtool/format"
)

// maxSkip is how many bytes at the start of an answer are thrown away where the
// server ignored the range that was asked for.
const maxSkip = mib

// dest takes the bytes of a transfer.
type dest interface {
	room() []byte // where the next ones go: never empty before all have come
	came(n int)   // so many are there now
}

// transfer brings the bytes [off, end) of an object, by as many requests as it
// takes.
type transfer struct {
	o     *object
	off   int64 // of the first byte that has not come
	end   int64
	open  bool   // end is the object's: ask without naming it
	place *place // in the queue for connections; nil: somebody waits
	hand  bool   // an answer with the whole object from its start is handed over instead of read

	reread bool // however many bytes before off an answer begins, they are read again

	whole *answer // what was handed over, with errWhole
}

// answer is one that is being read.
type answer struct {
	body io.ReadCloser
	ctx  context.Context // of the request
	w    *watch
}

// read reads some bytes; the time of the watch runs meanwhile only.
func (a *answer) read(p []byte) (int, error) {
	a.w.alive()
	n, err := a.body.Read(p)
	a.w.rest()
	if err != nil && err != io.EOF {
		err = a.w.cause(a.ctx, err)
	}
	return n, err
}

func (a *answer) close() {
	_ = a.body.Close() // an error of what is not wanted any more
	a.w.end()
}

var errWhole = errors.New("the server sends the whole object")

// run transfers all, or returns the error after which no try is left. t.off
// tells how far it came.
func (t *transfer) run(ctx context.Context, d dest) error {
	failures := tries{c: t.o.c, name: t.o.name}
	for {
		before := t.off
		err := t.once(ctx, d)
		if err == nil || err == errWhole {
			return err
		}
		if err := failures.again(ctx, err, t.off, t.off > before); err != nil {
			return err
		}
	}
}

// once makes one request and reads its answer.
func (t *transfer) once(ctx context.Context, d dest) (err error) {
	p, err := t.o.c.gate.enter(ctx, t.place)
	if err != nil {
		return err
	}
	defer func() { t.o.c.leave(p, err) }()
	began := time.Now()
	a, r, err := t.ask(ctx)
	if err != nil {
		return err
	}
	answered := time.Now()
	skip := t.off - r.Offset
	if t.hand && r.Whole && t.off == 0 {
		t.whole = a
		return errWhole
	}
	defer a.close()
	if err := a.discard(t.o, skip); err != nil {
		return err
	}
	if err := t.read(a, r, d); err != nil {
		return err
	}
	t.o.c.pace.learn(answered.Sub(began), time.Since(answered))
	return nil
}

// ask makes a request for what is missing and checks that its answer is one to
// it.
func (t *transfer) ask(ctx context.Context) (*answer, *Response, error) {
	version, _, _ := t.o.known()
	q := Request{Offset: t.off, Length: -1, IfMatch: version}
	if !t.open {
		q.Length = t.end - t.off
	}
	t.o.c.requests.Add(1)
	ctx, w := newWatch(ctx, t.o.c.o.Stall)
	r, err := t.o.g.Get(ctx, q)
	if err != nil {
		var status *StatusError
		if errors.As(err, &status) && status.sentinel() == format.ErrStale {
			w.alive()
			err = t.o.replaced(ctx, t.off, status)
		}
		err = w.cause(ctx, err)
		w.end()
		return nil, nil, err
	}
	w.rest()
	a := &answer{r.Body, ctx, w}
	if err = t.o.meet(r); err == nil {
		err = t.accept(q, r)
	}
	if err != nil {
		a.close()
		return nil, nil, err
	}
	return a, r, nil
}

// accept checks that an answer begins where it was asked to, or near enough
// before.
func (t *transfer) accept(q Request, r *Response) error {
	switch {
	case r.Whole && q.Offset > maxSkip && !t.reread:
		return t.o.errInOrder(q.Offset, "the server ignores Range")
	case r.Whole && r.Offset == 0:
	case r.Offset != q.Offset:
		return format.Errorf(format.ErrIO, t.o.at(q.Offset), "the server sends bytes from %d on", r.Offset)
	case q.Length >= 0 || q.Offset > 0:
		t.o.ranged.Store(true)
	}
	return nil
}

// discard reads and forgets n bytes.
func (a *answer) discard(o *object, n int64) error {
	if n <= 0 {
		return nil
	}
	b := newBlock()
	defer b.free()
	for n > 0 {
		k, err := a.read(b[:min(n, blockSize)])
		n -= int64(k)
		switch {
		case n == 0:
		case err == io.EOF:
			_, size, _ := o.known()
			return shortError{size - n, size}
		case err != nil:
			return err
		}
	}
	return nil
}

// read takes the bytes of an answer.
func (t *transfer) read(a *answer, r *Response, d dest) error {
	for t.off < t.end {
		p := d.room()
		n, err := a.read(p[:min(int64(len(p)), t.end-t.off)])
		if n > 0 {
			t.off += int64(n)
			t.o.c.bytes.Add(int64(n))
			d.came(n)
		}
		switch {
		case t.off == t.end && err == io.EOF:
			return nil
		case err == io.EOF:
			return shortError{t.off, t.end}
		case err != nil && t.off < t.end:
			return err
		}
	}
	return t.over(a, r)
}

// over looks for bytes behind the object's last one where the server did not
// say beforehand that there are none: it has grown then. Elsewhere it lets the
// answer end, so that its connection can serve again.
func (t *transfer) over(a *answer, r *Response) error {
	if !t.open && r.Length < 0 || r.Whole && !t.open {
		return nil
	}
	var one [1]byte
	if n, _ := a.read(one[:]); n > 0 && t.open {
		return format.Errorf(format.ErrStale, t.o.at(t.end), "the object goes on after the %d bytes that it had", t.end)
	}
	return nil
}
