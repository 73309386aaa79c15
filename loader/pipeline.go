package loader

import (
	"context"
	"sync"
	"time"

	"shardtool/reader/order"
)

// pipeline is one run of a loader: its goroutines and what connects them.
type pipeline struct {
	l      *Loader
	ctx    context.Context
	cancel context.CancelCauseFunc
	all    sync.WaitGroup
	clean  sync.Once
	plan   order.Plan

	streams chan *shardStream // shards in order, to the order stage
	jobs    chan *shardStream // the same, to the fetchers
	room    chan struct{}     // one token for each batch not yet delivered
	tasks   chan task
	ready   chan *Batch // in order, perhaps still being filled

	err error // what ended the order stage; set before ready is closed

	// Of the order stage.
	cur    *shardStream
	chunk  *chunk
	next   int    // sample of chunk
	window []view // samples found, of which the first may have been passed by the order
	passed int    // how many of them have
	last   *page  // that echoes may be made of
}

func newPipeline(ctx context.Context, l *Loader) *pipeline {
	ctx, cancel := context.WithCancelCause(ctx)
	return &pipeline{
		l: l, ctx: ctx, cancel: cancel, plan: l.plan,
		streams: make(chan *shardStream, l.o.Fetchers),
		jobs:    make(chan *shardStream),
		room:    make(chan struct{}, l.o.Prefetch),
		tasks:   make(chan task, l.o.GlobalBatch),
		ready:   make(chan *Batch, l.o.Prefetch),
	}
}

func (p *pipeline) start() {
	p.all.Go(p.schedule)
	for range p.l.o.Fetchers {
		p.all.Go(p.fetch)
	}
	for range p.l.o.Workers {
		p.all.Go(p.work)
	}
	p.all.Go(func() {
		p.err = p.order()
		close(p.tasks)
		close(p.ready)
	})
}

// end stops what runs and waits for it. Several may call it.
func (p *pipeline) end(why error) {
	p.cancel(why)
	p.all.Wait()
	p.clean.Do(func() {
		p.discard()
		p.l.meters.end()
	})
}

// cause is why the pipeline was stopped from outside.
func (p *pipeline) cause() error {
	if context.Cause(p.ctx) == errClosed {
		return errClosed
	}
	return p.ctx.Err()
}

// discard releases what was under way when the pipeline ended. Nothing of it
// runs any more.
func (p *pipeline) discard() {
	for t := range p.tasks {
		t.giveUp()
	}
	for b := range p.ready {
		b.page.Swap(nil).release()
	}
	for _, v := range p.window[p.passed:] {
		v.chunk.release()
	}
	if p.chunk != nil {
		p.chunk.release()
	}
	if p.last != nil {
		p.last.release()
	}
	if p.cur != nil {
		p.cur.discard()
	}
	for s := range p.streams {
		s.discard()
	}
}

// discard releases the chunks of a stream that nobody fills any more.
func (s *shardStream) discard() {
	for {
		select {
		case c, ok := <-s.chunks:
			if !ok {
				return
			}
			c.release()
		default: // no fetcher had taken it up
			return
		}
	}
}

// order makes batch after batch: the references, the slots, and the tasks that
// fill them.
func (p *pipeline) order() error {
	m := &p.l.meters.order
	machine, err := order.New(p.plan)
	if err != nil {
		return err
	}
	for step := int64(0); ; step++ {
		if !p.waitForRoom() {
			return p.cause()
		}
		begin, waited := time.Now(), m.waits()
		// The trainer keeps the references as long as the batch.
		refs, ok, err := machine.Step(make([]order.Ref, 0, p.plan.Batch), p.has)
		m.busy.add(time.Since(begin) - (m.waits() - waited))
		if err != nil || !ok {
			return err
		}
		b, fresh := p.batch(refs, step)
		p.ready <- b // there is room for as many as there are tokens
		if fresh && !p.dispatch(b.page.Load()) {
			return p.cause()
		}
	}
}

func (p *pipeline) waitForRoom() bool {
	defer p.l.meters.order.out.running(time.Now())()
	return send(p.ctx, p.room, struct{}{})
}

// batch makes the batch of some references. It reports false where it is a
// copy of the last one and nothing is to be done for it.
func (p *pipeline) batch(refs []order.Ref, step int64) (b *Batch, fresh bool) {
	b = &Batch{Refs: refs, Valid: make([]bool, len(refs)), Step: step, l: p.l}
	echoed := p.plan.Unit == order.Batch
	if echoed && refs[0].Copy > 0 {
		p.last.retain()
		b.page.Store(p.last)
		return b, false
	}
	page := p.l.newPage(len(refs))
	for i, ref := range refs {
		page.slots[i].ref = ref
		page.slots[i].view = p.find(ref)
	}
	p.window = append(p.window[:0], p.window[p.passed:]...)
	p.passed = 0
	if echoed {
		if p.last != nil {
			p.last.release()
		}
		page.retain()
		p.last = page
	}
	b.page.Store(page)
	return b, true
}

// find returns the sample of a reference, held once more. The order passes the
// samples in the sequence in which they were found, and those before stay
// behind.
func (p *pipeline) find(ref order.Ref) view {
	v := p.window[p.passed]
	for v.epoch != ref.Epoch || v.shard != ref.Shard || v.index != ref.Index {
		v.chunk.release()
		p.passed++
		v = p.window[p.passed]
	}
	v.chunk.retain()
	return v
}

// has answers the order machine from what the fetchers bring, and keeps what
// it finds in the window.
func (p *pipeline) has(shard int32, index int64) (bool, error) {
	for {
		if p.chunk != nil && p.next < len(p.chunk.samples) {
			p.chunk.retain()
			p.window = append(p.window, view{chunk: p.chunk, i: p.next, epoch: p.cur.epoch, shard: shard, index: index})
			p.next++
			return true, nil
		}
		more, err := p.nextChunk()
		if err != nil || !more {
			return false, err
		}
	}
}

// nextChunk goes on to the next chunk of the current shard; it reports false,
// once, at the shard's end.
func (p *pipeline) nextChunk() (bool, error) {
	defer p.l.meters.order.in.running(time.Now())()
	if p.chunk != nil {
		p.chunk.release()
		p.chunk = nil
	}
	if p.cur == nil {
		select {
		case p.cur = <-p.streams:
		case <-p.ctx.Done():
			return false, p.cause()
		}
		if p.cur == nil { // the schedule ended before its time
			return false, p.cause()
		}
	}
	gate := &p.l.chunks.gate
	gate.starve(p.cur)
	defer gate.starve(nil)
	select {
	case c, ok := <-p.cur.chunks:
		p.chunk, p.next = c, 0
		if ok {
			return true, nil
		}
		err := p.cur.err
		p.cur = nil
		return false, err
	case <-p.ctx.Done():
		return false, p.cause()
	}
}

// taskBytes is about how much a task is worth: large enough that small samples
// do not pay for a hand-over each, small enough that images spread over the
// workers.
const taskBytes = 64 << 10

// dispatch cuts the slots of a page into tasks.
func (p *pipeline) dispatch(pg *page) bool {
	begin := time.Now()
	defer func() { p.l.meters.order.outOther.since(begin) }()
	first, size := 0, int64(0)
	for i := range pg.slots {
		s := &pg.slots[i]
		size += s.view.chunk.bytes[s.view.i]
		if size < taskBytes && i < len(pg.slots)-1 {
			continue
		}
		t := task{pg, first, i + 1}
		if !send(p.ctx, p.tasks, t) {
			task{pg, first, len(pg.slots)}.giveUp()
			return false
		}
		first, size = i+1, 0
	}
	return true
}

// deliver passes the batches on in order.
func (p *pipeline) deliver(yield func(*Batch, error) bool) {
	m := &p.l.meters.deliver
	for {
		if held := p.l.held.Load(); held >= int64(p.l.o.Hold) {
			yield(nil, usage("%d batches are held: release them, or allow more by Hold", held))
			return
		}
		begin := time.Now()
		b, err := p.nextBatch()
		m.in.since(begin)
		if b == nil {
			if err != nil {
				yield(nil, err)
			}
			return
		}
		begin = time.Now()
		err = p.settle(b)
		m.busy.since(begin)
		if err != nil {
			b.page.Swap(nil).release()
			yield(nil, err)
			return
		}
		p.l.held.Add(1)
		begin = time.Now()
		more := yield(b, nil)
		m.out.since(begin)
		if !more {
			return
		}
	}
}

// nextBatch waits for the next batch to be complete. After the last it returns
// nil and what ended the order.
func (p *pipeline) nextBatch() (*Batch, error) {
	if p.ctx.Err() != nil {
		return nil, p.cause()
	}
	var b *Batch
	select {
	case b = <-p.ready:
	case <-p.ctx.Done():
		return nil, p.cause()
	}
	if b == nil {
		return nil, p.err
	}
	select {
	case <-b.page.Load().done:
	case <-p.ctx.Done():
		p.end(nil) // until then workers write to it, or are to
		b.page.Swap(nil).release()
		return nil, p.cause()
	}
	<-p.room
	return b, nil
}
