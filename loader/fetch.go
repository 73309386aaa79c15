package loader

import (
	"context"
	"io"
	"time"

	"shardtool/format"
	"shardtool/reader/order"
)

// shardStream is one reading of one shard: chunks in order, then err.
type shardStream struct {
	epoch, shard int32
	chunks       chan *chunk
	err          error // nil at the shard's end; set before chunks is closed
}

// chunksAhead is how many chunks of one shard may wait for their turn.
const chunksAhead = 4

// schedule hands out the shards of all epochs in order: to the order stage by
// streams, and to the fetchers by jobs. It runs ahead by the fetchers there
// are, straight across the ends of epochs.
func (p *pipeline) schedule() {
	defer close(p.jobs)
	defer close(p.streams)
	for epoch := int32(0); p.plan.Epochs == order.Endless || epoch < int32(p.plan.Epochs); epoch++ {
		for shard := range int32(p.plan.Shards) {
			s := &shardStream{epoch: epoch, shard: shard, chunks: make(chan *chunk, chunksAhead)}
			if !send(p.ctx, p.streams, s) {
				return
			}
			if !send(p.ctx, p.jobs, s) {
				return
			}
		}
	}
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

// fetch reads shards as they come up.
func (p *pipeline) fetch() {
	m := &p.l.meters.fetch
	for {
		begin := time.Now()
		s, ok := <-p.jobs
		m.out.since(begin)
		if !ok {
			return
		}
		f := fetcher{p: p, s: s, began: time.Now()}
		s.err = f.read()
		m.busy.since(f.began)
		close(s.chunks)
	}
}

// fetcher copies the samples of one shard into chunks.
type fetcher struct {
	p      *pipeline
	s      *shardStream
	c      *chunk
	wanted []bool
	began  time.Time // of the work that is not yet counted as busy
}

func (f *fetcher) read() error {
	in, err := f.p.l.src.open(f.p.ctx, int(f.s.shard))
	if err != nil {
		return err
	}
	defer in.Close()
	defer f.drop()
	for {
		sample, err := in.Next()
		if err == nil {
			err = f.add(sample)
		} else if e := f.flush(); e != nil {
			return e
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

func (f *fetcher) add(s *format.Sample) error {
	need := f.choose(s)
	if f.c != nil && !f.c.fits(need) {
		if err := f.flush(); err != nil {
			return err
		}
	}
	if f.c == nil {
		room := max(need, chunkBytes)
		if err := f.wait(func() error { return f.p.l.chunks.gate.take(f.p.ctx, int64(room), f.s) }); err != nil {
			return err
		}
		f.c = f.p.l.chunks.get(room)
	}
	f.c.add(s, need, f.wanted)
	if need > chunkBytes {
		return f.flush()
	}
	return nil
}

// choose marks the fields that the columns use and returns how many bytes of a
// chunk the sample needs.
func (f *fetcher) choose(s *format.Sample) int {
	f.wanted = append(f.wanted[:0], make([]bool, len(s.Fields))...)
	need := len(s.Key) + fieldBytes*len(s.Fields)
	for _, c := range f.p.l.o.Columns {
		field := s.Field(c.field)
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
func (f *fetcher) flush() error {
	if f.c == nil || len(f.c.samples) == 0 {
		return nil
	}
	err := f.wait(func() error {
		if !send(f.p.ctx, f.s.chunks, f.c) {
			return f.p.ctx.Err()
		}
		return nil
	})
	if err == nil {
		f.c = nil
	}
	return err
}

// wait does something that may have to wait for room, and counts it as that.
func (f *fetcher) wait(do func() error) error {
	m := &f.p.l.meters.fetch
	m.busy.since(f.began)
	begin := time.Now()
	err := do()
	f.began = time.Now()
	m.out.add(f.began.Sub(begin))
	return err
}

// drop releases a chunk that nobody will take.
func (f *fetcher) drop() {
	if f.c != nil {
		f.c.release()
		f.c = nil
	}
}
