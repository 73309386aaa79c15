package loader

import (
	"errors"
	"slices"
	"time"

	"shardtool/echo"
	"shardtool/format"
)

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
			} else {
				p.l.logTotals("all epochs are through", p.epoch)
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
		p.logEpoch(b)
		p.l.held.Add(1)
		begin = time.Now()
		more := yield(b, nil)
		m.out.since(begin)
		if !more {
			return
		}
	}
}

// logEpoch tells the log of the first batch of each epoch, and how the one
// before went.
func (p *pipeline) logEpoch(b *Batch) {
	epoch := b.Refs[0].Epoch
	if b.Step > 0 && epoch == p.epoch {
		return
	}
	p.epoch = epoch
	p.l.logTotals("an epoch begins", epoch)
}

// enoughForR is after how many batches R is thought to be known.
const enoughForR = 16

func (l *Loader) logTotals(what string, epoch int32) {
	s := l.Stats()
	attrs := []any{"epoch", epoch, "batches", s.Batches, "fresh", s.Fresh, "emitted", s.Emitted,
		"holes", s.Holes, "bytes", s.Work.Bytes, "seconds", s.Seconds}
	if l.echoed {
		attrs = append(attrs, "factor", s.Echo.Now, "r", s.Echo.R, "waited", s.Measured.Waited)
	}
	l.o.Log.Info(what, attrs...)
	if s.Batches > enoughForR && s.Fresh > 0 {
		l.warnOfR.Do(func() {
			said := echo.Warnings(l.o.Echo, 0)
			for _, w := range echo.Warnings(l.o.Echo, s.Echo.R) {
				if !slices.Contains(said, w) {
					l.o.Log.Warn(w)
				}
			}
		})
	}
}

// nextBatch waits for the next batch to be complete. After the last it returns
// nil and what ended the order.
func (p *pipeline) nextBatch() (*Batch, error) {
	if p.ctx.Err() != nil {
		return nil, p.cause()
	}
	p.l.chunks.gate.await(p.next)
	var b *Batch
	select {
	case b = <-p.ready:
	case <-p.ctx.Done():
		return nil, p.cause()
	}
	if b == nil {
		return nil, p.err
	}
	p.next++
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

// settle looks at the errors of a batch's slots in their order, which does not
// depend on the workers: it counts bad samples, or returns the error that ends
// loading.
func (p *pipeline) settle(b *Batch) error {
	pg := b.page.Load()
	if !pg.settled {
		pg.settled, pg.err = true, p.count(pg)
	}
	if pg.err != nil {
		return pg.err
	}
	holes := 0
	for i := range b.Valid {
		s := &pg.slots[i]
		b.Valid[i] = s.filled()
		if s.err != nil {
			holes++
		}
	}
	p.l.tally.batch(b, holes)
	return nil
}

// count counts the bad samples of a page.
func (p *pipeline) count(pg *page) error {
	var first error
	good := false
	for i := range pg.slots {
		s := &pg.slots[i]
		switch {
		case s.err == nil:
			good = good || s.chunk != nil
			continue
		case !isBad(s.err):
			return s.err
		case first == nil:
			first = s.err
		}
		met, err := p.l.tally.bad(s, p.l.o.OnBad.Skip)
		if err != nil {
			return err
		}
		if met {
			p.l.o.Log.Warn("a bad sample became a hole", "err", s.err)
		}
	}
	if first == nil || good {
		return nil
	}
	var e *format.Error
	errors.As(first, &e)
	return format.Errorf(e.Err, e.Location, "no sample of a batch of %d is good; the first: %s", len(pg.slots), e.Detail)
}

// isBad reports whether an error is of a sample alone, and not of the request,
// of reading, or of the wrong shard.
func isBad(err error) bool {
	return isData(err) || errors.Is(err, format.ErrWrongFormat)
}
