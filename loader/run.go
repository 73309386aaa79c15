package loader

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"shardtool/format"
	"shardtool/loader/internal/column"
	"shardtool/reader/order"
)

// run is one reading of a stretch of a shard: a goroutine that fills chunks
// in order, and the order stage that takes samples from them.
type run struct {
	order.Run
	i      int   // number of the run in its reading
	at     int64 // index of the first sample that is read
	chunks chan *chunk
	err    error // nil at the end; set before chunks is closed
	cancel context.CancelFunc

	awaited atomic.Bool // the order stage has waited for some time: what there is of a chunk is passed on

	// Of the order stage.
	window  []*chunk // received, and not passed by the order
	hit     *chunk   // of the window, the one that was used last
	got     int64    // index behind the last that was received
	passed  int64    // nothing before it is taken any more
	ended   bool     // chunks is closed
	through bool     // its last sample was taken
	marked  bool     // among the orderer's touched
	low     int64    // index behind the last that was taken
}

// chunksAhead is how many chunks of one run may wait for their turn.
const chunksAhead = 4

// patience is how long the order stage waits for a chunk to be full. A slow
// source of small samples takes long to fill one; a fast one, which is held up
// by every hand-over, does it in less: 1024 records at two million a second take
// half of it, 1 MiB at 1 GB/s the same.
const patience = time.Millisecond

// startRun begins to read.
func (p *pipeline) startRun(r order.Run, i int, at int64) *run {
	s := &run{Run: r, i: i, at: at, got: at, passed: at, chunks: make(chan *chunk, chunksAhead)}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(p.ctx)
	p.all.Go(func() {
		f := runReader{p: p, ctx: ctx, r: s, began: time.Now()}
		f.fetching(true)
		s.err = f.read()
		f.fetching(false)
		p.l.meters.fetch.busy.since(f.began)
		close(s.chunks)
	})
	return s
}

// stop ends the reading, wherever it is, and lets go of what it brought.
func (s *run) stop() {
	s.cancel()
	for _, c := range s.window {
		c.release()
	}
	s.window, s.hit = nil, nil
	for c := range s.chunks {
		c.release()
	}
}

// holds reports whether a sample is one of the run's.
func (s *run) holds(epoch, shard int32, index int64) bool {
	return s.Epoch == epoch && s.Shard == shard && s.passed <= index && s.From <= index && (s.To == order.Unknown || index < s.To)
}

// find returns the sample of an index that was received.
func (s *run) find(index int64) (view, bool) {
	c := s.hit
	if c == nil || index < c.first || index >= c.first+int64(len(c.items)) {
		c = nil
		for _, w := range s.window {
			if index >= w.first && index < w.first+int64(len(w.items)) {
				c = w
				break
			}
		}
		if c == nil {
			return view{}, false
		}
		s.hit = c
	}
	return view{c, int32(index - c.first)}, true
}

// pass lets go of the chunks before an index.
func (s *run) pass(index int64) {
	s.passed = max(s.passed, index)
	n := 0
	for n < len(s.window) && s.window[n].first+int64(len(s.window[n].items)) <= index {
		if s.window[n] == s.hit {
			s.hit = nil
		}
		s.window[n].release()
		n++
	}
	s.window = s.window[n:]
}

// runReader copies the samples of a run into chunks.
type runReader struct {
	p      *pipeline
	ctx    context.Context
	r      *run
	c      *chunk
	index  int64 // of the next sample
	wanted []bool
	began  time.Time // of the work that is not yet counted as busy
}

func (f *runReader) read() error {
	defer f.drop()
	f.index = f.r.at
	for {
		told, err := f.readOn()
		switch {
		case err == io.EOF:
			return f.end()
		case f.r.To == order.Unknown || !isData(err):
			return f.endWith(err)
		case f.index < f.r.To:
			err = f.passOver(err, told)
		case f.p.l.o.OnBad.Skip != 0: // what is bad stands behind all samples
			err = nil
		}
		if err != nil || f.index == f.r.To {
			return f.endWith(err)
		}
	}
}

// readOn reads from f.index on. Faulty samples are bad ones, as long as the
// framing tells where the next begins. It reports whether the error that ended
// it is in the place of a sample already.
func (f *runReader) readOn() (told bool, _ error) {
	in, err := f.p.l.src.run(f.ctx, int(f.r.Shard), f.index, f.r.To)
	if err != nil {
		return false, err
	}
	defer in.Close()
	for {
		sample, err := in.Next()
		switch {
		case err == nil:
			err = f.add(sample)
		case isData(err) && f.index == f.r.To:
			return false, err
		case isData(err):
			if e := f.bad(err); e != nil {
				return false, e
			}
			if !in.Resume() {
				return true, err
			}
			err = nil
		}
		if err != nil {
			return false, err
		}
	}
}

// bad puts an error in the place of a sample: of the one that it says, and of
// those before it that did not come.
func (f *runReader) bad(err error) error {
	to := f.index + 1
	if e := format.AsError(err); e.Record > f.index && (f.r.To == order.Unknown || e.Record < f.r.To) {
		to = e.Record + 1
	}
	return f.badTo(to, err)
}

func (f *runReader) badTo(to int64, err error) error {
	for ; f.index < to; f.index++ {
		if e := f.room(0); e != nil {
			return e
		}
		f.c.items = append(f.c.items, item{sample: unparsed, shard: f.r.Shard, index: f.index, err: f.place(err)})
	}
	return nil
}

// passOver goes behind an error that ended reading: where places tell where the
// next sample is, to that, else to the end, for what is left cannot be read.
func (f *runReader) passOver(err error, told bool) error {
	pl, e := f.p.l.src.places(f.ctx, int(f.r.Shard))
	switch {
	case e != nil && !isData(e):
		return e
	case pl == nil || e != nil:
		return f.badTo(f.r.To, err)
	case told:
		return nil
	}
	return f.badTo(f.index+1, err)
}

// end checks that there was as much as there should be.
func (f *runReader) end() error {
	if f.r.To != order.Unknown && f.index < f.r.To {
		at := f.p.l.in(f.r.Shard)
		return f.endWith(format.Errorf(format.ErrStale, at, "it has %d samples, and was counted to have %d or more", f.index, f.r.To))
	}
	return f.endWith(nil)
}

func (f *runReader) endWith(err error) error {
	if e := f.flush(); e != nil {
		return e
	}
	return err
}

// place says which sample an error is of, should it not say so itself.
func (f *runReader) place(err error) error {
	at := f.p.l.in(f.r.Shard)
	at.Record = f.index
	return format.ReadError(err, at)
}

func (f *runReader) add(s *format.Sample) error {
	need := f.choose(s)
	if err := f.room(need); err != nil {
		return err
	}
	f.c.add(s, f.r.Shard, f.index, need, f.wanted)
	f.index++
	switch {
	case need > f.p.l.chunkBytes:
		return f.flush()
	case f.r.awaited.Load():
		f.r.awaited.Store(false)
		f.c = f.c.shrunk()
		return f.flush()
	}
	return nil
}

// room sees that the chunk has room for n more bytes.
func (f *runReader) room(n int) error {
	if f.c != nil && !f.c.fits(n) {
		if err := f.flush(); err != nil {
			return err
		}
	}
	if f.c != nil {
		return nil
	}
	size := max(n, f.p.l.chunkOf(f.r.Shard))
	if err := f.wait(func() error { return f.p.l.chunks.gate.take(f.ctx, int64(size), f.r, laterStep) }); err != nil {
		return err
	}
	f.c = f.p.l.chunks.get()
	f.c.allocate(size)
	f.c.first, f.c.ready = f.index, true
	return nil
}

// chunkOf is how large the chunks of a shard are. A small one, of which a batch
// may need very many, gets as much as its samples are likely to take up,
// compressed or not.
func (l *Loader) chunkOf(shard int32) int {
	if n := l.shards[shard].Bytes; n >= 0 && n < int64(l.chunkBytes/4) {
		return max(4*int(n), 4<<10)
	}
	return l.chunkBytes
}

// choose marks the fields that the columns use and returns how many bytes of a
// chunk the sample needs.
func (f *runReader) choose(s *format.Sample) int {
	need := len(s.Key) + fieldBytes*len(s.Fields)
	if s.Fields == nil {
		return need + len(s.Record)
	}
	f.wanted = f.wanted[:0]
	for range s.Fields {
		f.wanted = append(f.wanted, f.p.l.allFields)
	}
	if f.p.l.allFields {
		return need + int(s.Bytes())
	}
	for i := range f.p.l.o.Columns {
		c := &f.p.l.o.Columns[i]
		if c.Reads() != column.ReadsField {
			continue
		}
		field := c.Find(s)
		if field == nil {
			continue
		}
		for i := range s.Fields {
			if field == &s.Fields[i] && !f.wanted[i] {
				f.wanted[i] = true
				need += len(field.Data)
			}
		}
	}
	return need
}

// flush passes the chunk on.
func (f *runReader) flush() error {
	if f.c == nil || len(f.c.items) == 0 {
		return nil
	}
	n := len(f.c.items)
	err := f.wait(func() error {
		if !send(f.ctx, f.r.chunks, f.c) {
			return f.ctx.Err()
		}
		return nil
	})
	if err == nil {
		if f.fresh() {
			f.p.l.meters.fetched.Add(int64(n))
		}
		f.c = nil
	}
	return err
}

// fetching says when the run begins to read, and when it has to wait for room.
func (f *runReader) fetching(on bool) {
	switch m := &f.p.l.meters.fetching; {
	case !f.fresh():
	case on:
		m.begin()
	default:
		m.end()
	}
}

// fresh reports whether what the run reads was not read before, by an earlier
// copy of it.
func (f *runReader) fresh() bool { return f.r.Copy == 0 }

// wait does something that may have to wait for room, and counts it as that.
func (f *runReader) wait(do func() error) error {
	m := &f.p.l.meters.fetch
	m.busy.since(f.began)
	f.fetching(false)
	begin := time.Now()
	err := do()
	m.out.since(begin)
	f.fetching(true)
	f.began = time.Now()
	return err
}

// drop releases the chunk that was not passed on.
func (f *runReader) drop() {
	if f.c != nil {
		f.c.release()
		f.c = nil
	}
}

// isData reports whether an error is a fault of the data of a sample, and not
// of the request, of reading, or of the wrong shard.
func isData(err error) bool {
	switch format.Sentinel(err) {
	case format.ErrTruncated, format.ErrCorrupt, format.ErrLimit, format.ErrUnsupported, format.ErrDuplicate, format.ErrMissing, format.ErrSchema:
		return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	return false
}

// send reports false where ctx ended first.
func send[T any](ctx context.Context, to chan<- T, v T) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}
