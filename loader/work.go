package loader

import (
	"time"

	"shardtool/augment"
	"shardtool/format"
)

// task is some slots of a page, to be filled by one worker.
type task struct {
	page        *page
	first, last int // slots first to last-1
}

// giveUp lets go of the samples of a task that nobody will do.
func (t task) giveUp() {
	for i := t.first; i < t.last; i++ {
		t.page.slots[i].view.chunk.release()
	}
	t.page.finished(t.last - t.first)
}

// taskMeter is what a worker has done since it was read last.
type taskMeter struct {
	augment        time.Duration
	images, pixels int64
}

// work fills slots until there are no more tasks.
func (p *pipeline) work() {
	fillers := make([]filler, len(p.l.o.Columns))
	for i, c := range p.l.o.Columns {
		fillers[i] = c.kind.newFiller(p.l.o.Limits)
	}
	m := &p.l.meters
	var meter taskMeter
	for {
		begin, full := time.Now(), m.order.out.total()
		t, ok := p.waitForTask()
		// While the order stage waits for room, so does whoever waits for it.
		waited := time.Since(begin)
		out := min(m.order.out.total()-full, waited)
		m.decode.out.add(out)
		m.decode.in.add(waited - out)
		if !ok {
			return
		}
		begin = time.Now()
		meter = taskMeter{}
		for i := t.first; i < t.last; i++ {
			p.fill(t.page, i, fillers, &meter)
		}
		m.augment.busy.add(meter.augment)
		m.decode.busy.add(time.Since(begin) - meter.augment)
		t.page.finished(t.last - t.first)
	}
}

func (p *pipeline) waitForTask() (task, bool) {
	if p.ctx.Err() != nil {
		return task{}, false
	}
	select {
	case t, ok := <-p.tasks:
		return t, ok
	case <-p.ctx.Done():
		return task{}, false
	}
}

// fill makes the tensors of one slot, or its error.
func (p *pipeline) fill(pg *page, i int, fillers []filler, meter *taskMeter) {
	s := &pg.slots[i]
	sample := s.view.sample()
	s.bytes = s.view.chunk.bytes[s.view.i]
	s.key = append(s.key[:0], sample.Key...)
	before := *meter
	draws := augment.Draws(s.ref.Draws(p.l.o.Seed))
	for c, f := range fillers {
		if s.err = p.fillColumn(pg, i, c, f, sample, draws, meter); s.err != nil {
			break
		}
	}
	s.cost = Work{Images: meter.images - before.images, Pixels: meter.pixels - before.pixels}
	s.view.chunk.release()
	s.view = view{}
}

func (p *pipeline) fillColumn(pg *page, i, c int, f filler, sample *format.Sample, draws augment.Draws, meter *taskMeter) error {
	name := p.l.o.Columns[c].field
	field := sample.Field(name)
	if field == nil {
		return missing(sample, name)
	}
	err := f.fill(pg.columns[c].At(i), field, draws, meter)
	if err == nil {
		return nil
	}
	at := sample.Location()
	at.Field = field.Name
	return format.ReadError(err, at)
}
