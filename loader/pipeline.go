package loader

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// pipeline is one run of a loader: its goroutines and what connects them.
type pipeline struct {
	l      *Loader
	ctx    context.Context
	cancel context.CancelCauseFunc
	all    sync.WaitGroup
	clean  sync.Once

	jobs    chan job
	reading atomic.Int64  // jobs that are not done
	held    atomic.Int64  // of them, those that wait for room
	room    chan struct{} // one token for each batch not yet delivered
	tasks   chan *task
	again   chan *task  // that waited for another worker
	ready   chan *Batch // in order, perhaps still being filled

	orderer *orderer
	next    int64            // step to be delivered next
	known   map[int32]places // of the order stage
	epoch   int32            // of the batch delivered last
	err     error            // what ended the order stage; set before ready is closed
}

func newPipeline(ctx context.Context, l *Loader) *pipeline {
	ctx, cancel := context.WithCancelCause(ctx)
	// As many as the batches under way can have: nobody waits to send one.
	most := (l.o.Prefetch + 1) * l.perRank
	return &pipeline{
		l: l, ctx: ctx, cancel: cancel,
		jobs:  make(chan job, most),
		room:  make(chan struct{}, l.o.Prefetch),
		tasks: make(chan *task, most),
		again: make(chan *task, most),
		ready: make(chan *Batch, l.o.Prefetch),
		known: make(map[int32]places),
	}
}

func (p *pipeline) start() {
	p.orderer = newOrderer(p)
	var fetchers sync.WaitGroup
	for range p.l.o.Fetchers {
		fetchers.Add(1)
		p.all.Go(func() {
			defer fetchers.Done()
			p.fetchJobs()
		})
	}
	for range p.l.o.Workers {
		p.all.Go(p.work)
	}
	p.all.Go(func() {
		p.err = p.orderer.run()
		close(p.jobs)
		close(p.ready)
		fetchers.Wait()
		close(p.tasks)
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
	for j := range p.jobs {
		j.chunk.release()
	}
	for b := range p.ready {
		b.page.Swap(nil).release()
	}
	p.orderer.discard()
	if err := errors.Join(p.l.src.close(), p.l.spools.close()); err != nil {
		p.l.o.Log.Warn("closing shards", "err", err)
	}
}

// reads reports whether jobs are being read: not where all that could read one
// wait for room.
func (p *pipeline) reads() bool {
	held := p.held.Load()
	return p.reading.Load() > held && held < int64(p.l.o.Fetchers)
}

func (p *pipeline) waitForRoom() bool {
	defer p.l.meters.order.out.running(time.Now())()
	return send(p.ctx, p.room, struct{}{})
}
