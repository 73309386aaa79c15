package loader

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"shardtool/augment"
	"shardtool/echo"
	"shardtool/format"
	"shardtool/loader/internal/column"
	"shardtool/reader/order"
	"shardtool/tensor"
)

// task is some slots of a page, to be filled by one worker once their samples
// are there.
type task struct {
	page        *page
	first, last int          // slots first to last-1
	at          int          // the one that is to be filled next
	held        []*chunk     // that the samples are in
	wait        atomic.Int32 // chunks that are not ready
	ran         bool
}

// letGo releases what the task holds.
func (t *task) letGo() {
	for i, c := range t.held {
		c.release()
		t.held[i] = nil
	}
	t.held = t.held[:0]
}

// worker fills slots. It is for one goroutine.
type worker struct {
	l       *Loader
	ctx     context.Context
	parser  parser
	fillers []column.Filler
	arenas  []arena // of the columns of any length
	meter   column.Meter
	sample  format.Sample // parsed of a record
	out     column.Slot
	draws   []augment.Draws // of the copies of a sample
	sizes   []int           // by column, of what was decoded
}

// arena is where a worker gathers what a task makes for a column of any
// length: memory of the pool, for the page to take.
type arena struct {
	buf  *tensor.Buffer
	used int
	most int // that a task has used so far, and what the next one begins with
}

// work fills slots until there are no more tasks.
func (p *pipeline) work() {
	w := &worker{l: p.l, ctx: p.ctx, parser: p.l.src.parser(), arenas: make([]arena, len(p.l.o.Columns))}
	for i := range p.l.o.Columns {
		w.fillers = append(w.fillers, p.l.o.Columns[i].Kind.NewFiller(p.l.o.Limits))
	}
	m := &p.l.meters
	for {
		begin, full, reading := time.Now(), m.order.out.total(), p.reads()
		t, ok := p.waitForTask()
		// While the order stage waits for room, so does whoever waits for it,
		// unless there are jobs that are being read.
		waited := time.Since(begin)
		out := min(m.order.out.total()-full, waited)
		if reading {
			out = 0
		}
		m.decode.out.add(out)
		m.decode.in.add(waited - out)
		if !ok {
			return
		}
		begin = time.Now()
		w.meter = column.Meter{}
		w.do(t)
		m.augment.busy.add(w.meter.Augment)
		m.decode.busy.add(time.Since(begin) - w.meter.Augment)
	}
}

func (p *pipeline) waitForTask() (*task, bool) {
	if p.ctx.Err() != nil {
		return nil, false
	}
	select { // what others wait for first
	case t := <-p.again:
		return t, true
	default:
	}
	select {
	case t := <-p.again:
		return t, true
	case t, ok := <-p.tasks:
		if ok {
			return t, true
		}
	case <-p.ctx.Done():
		return nil, false
	}
	// There are no more tasks, but those that wait for a worker to be through,
	// which looks here afterwards.
	select {
	case t := <-p.again:
		return t, true
	default:
		return nil, false
	}
}

// do fills the slots of a task, or those that it can for now.
func (w *worker) do(t *task) {
	for i := t.at; i < t.last; i++ {
		if s := &t.page.slots[i]; s.chunk != nil && !w.fill(t, i) {
			return
		}
	}
	w.leave(t.page)
	t.letGo()
	t.ran = true
	t.page.finished(t.last - t.first)
}

// leave gives the page what was gathered for it.
func (w *worker) leave(pg *page) {
	for c := range w.arenas {
		if a := &w.arenas[c]; a.buf != nil {
			pg.adopt(a.buf)
			a.most = max(a.most, a.used)
			a.buf, a.used = nil, 0
		}
	}
}

// fill makes the tensors of one slot, or its error. It reports false where that
// has to wait: see fillKept.
func (w *worker) fill(t *task, i int) bool {
	s := &t.page.slots[i]
	s.offset = format.Unknown
	before := w.meter
	if s.kept.Item != nil {
		if !w.fillKept(t, i) {
			return false
		}
	} else if sample, err := w.find(s); err != nil {
		s.err = err
	} else {
		s.place(sample)
		s.err = w.columns(t.page, i, sample, nil)
	}
	s.cost = Work{Images: w.meter.Images - before.Images, Pixels: w.meter.Pixels - before.Pixels}
	return true
}

// place notes which sample the slot has.
func (s *slot) place(sample *format.Sample) {
	s.key = append(s.key[:0], sample.Key...)
	s.offset = sample.Offset
}

// columns makes what the columns are of a sample, from what was decoded of it,
// if anything was.
func (w *worker) columns(pg *page, i int, sample *format.Sample, m *made) error {
	draws := augment.Draws(pg.slots[i].draws(w.l))
	for c := range w.fillers {
		if err := w.column(pg, i, c, sample, draws, m); err != nil {
			return err
		}
	}
	return nil
}

// draws returns what the operations on the sample draw from. Copies of a batch,
// and of what is augmented, are those of the first.
func (s *slot) draws(l *Loader) uint64 {
	ref := s.ref
	if l.plan.Unit == order.Batch || l.plan.Keep == echo.Augmented.String() {
		ref.Copy = 0
	}
	return ref.Draws(l.o.Seed)
}

// find returns the sample of a slot, parsed.
func (w *worker) find(s *slot) (*format.Sample, error) {
	it := &s.chunk.items[s.item]
	s.bytes = it.bytes
	switch {
	case it.err != nil:
		return nil, it.err
	case it.sample == unparsed:
		sample, err := w.parser.Sample(int(it.shard), it.index, it.off, it.data)
		if errors.Is(err, format.ErrUnsupported) { // links lead out of its bytes
			sample, err = w.l.src.sample(w.ctx, int(it.shard), it.index)
		}
		if err != nil {
			at := w.l.in(it.shard)
			at.Record, at.Offset = it.index, it.off
			return nil, format.ReadError(err, at)
		}
		s.bytes = sample.Bytes()
		return sample, nil
	}
	sample := &s.chunk.samples[it.sample]
	if sample.Record == nil || sample.Fields != nil {
		return sample, nil
	}
	// The chunk is others' too: what is parsed goes into a copy.
	fields := w.sample.Fields[:0]
	w.sample = *sample
	w.sample.Fields = fields
	if err := w.parser.FillOf(int(it.shard), &w.sample); err != nil {
		return nil, err
	}
	return &w.sample, nil
}

// column makes what one column is of a sample.
func (w *worker) column(pg *page, i, c int, sample *format.Sample, draws augment.Draws, m *made) error {
	col := &w.l.o.Columns[c]
	var field *format.Field
	if col.Reads() == column.ReadsField {
		if field = col.Find(sample); field == nil && col.Missing.Policy != column.Default {
			if col.Missing.Policy == column.Hole {
				pg.slots[i].tolerated = true
			}
			return missing(sample, col.Field)
		}
	}
	w.begin(pg, i, c)
	var err error
	switch {
	case field == nil && col.Reads() == column.ReadsField:
		col.Missing.FillDefault(&w.out)
	case m != nil && m.values[c].kept:
		err = w.fillers[c].(column.Stager).FillDecoded(&w.out, field, &m.decoded[c], draws, &w.meter)
	default:
		err = w.fillers[c].Fill(&w.out, sample, field, draws, &w.meter)
	}
	if err != nil {
		return w.located(err, sample, field)
	}
	w.finish(pg, i, c)
	return nil
}

// located says of which sample an error is.
func (w *worker) located(err error, sample *format.Sample, field *format.Field) error {
	at := sample.Location()
	if field != nil {
		at.Field = field.Name
	}
	return format.ReadError(err, at)
}

// begin prepares the place of one value.
func (w *worker) begin(pg *page, i, c int) {
	w.out.Length = 0
	switch w.l.columns[c].form {
	case column.FormDense, column.FormPadded:
		w.out.Dense, w.out.Arena = pg.values[c].At(i), nil
	case column.FormRagged, column.FormBinary:
		a := &w.arenas[c]
		if a.buf == nil {
			a.buf = w.l.pages.memory.Get(a.most)
		}
		w.out.Dense, w.out.Arena = tensor.Dense{}, a.buf.Bytes()[:a.used]
	}
}

// finish notes what was made of one value.
func (w *worker) finish(pg *page, i, c int) {
	switch l := &w.l.columns[c]; l.form {
	case column.FormPadded:
		pg.lengths[c][i] = w.out.Length
	case column.FormRagged, column.FormBinary:
		a := &w.arenas[c]
		from := a.used
		w.grow(pg, c, w.out.Arena)
		pg.cells[c][i] = cell{buf: a.buf, off: from, n: a.used - from}
	}
}

// grow takes what a filler appended. Where it did not fit, the arena goes on in
// a larger piece of memory, and the page keeps the one before.
func (w *worker) grow(pg *page, c int, appended []byte) {
	a := &w.arenas[c]
	if len(appended) > len(a.buf.Bytes()) {
		larger := w.l.pages.memory.Get(2 * len(appended))
		copy(larger.Bytes(), appended)
		pg.adopt(a.buf)
		a.buf = larger
	}
	a.used = len(appended)
}

func missing(s *format.Sample, field string) error {
	at := s.Location()
	at.Field = field
	return format.Errorf(format.ErrMissing, at, "the sample has %s", strings.Join(s.Names(), ", "))
}
