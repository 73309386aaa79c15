package loader

import (
	"sync"
	"sync/atomic"

	"shardtool/echo"
	"shardtool/format"
	"shardtool/loader/internal/column"
	"shardtool/reader/order"
	"shardtool/tensor"
)

// Batch is some samples as tensors, one for each column, the samples along the
// first axis. It is the trainer's until Release; its tensors, keys and slices
// are good until then. Where whole batches are echoed (echo.Batch), the copies
// share one memory: they are to be read, not written. Others may be written
// to.
type Batch struct {
	Refs  []order.Ref // which sample each place holds
	Valid []bool      // false at a hole: a place without a sample of its own, filled with a copy of a good neighbour

	// Step counts the batches of this loader, from 0, over all epochs. It
	// begins at 0 again where a run is resumed; the place in the epoch is
	// State's.
	Step int64

	l       *Loader
	state   State
	account echo.Account
	again   bool // a copy of a batch that was made before
	page    atomic.Pointer[page]
}

// Len returns the number of samples.
func (b *Batch) Len() int { return len(b.Refs) }

// State returns where loading stands when this batch has been used: what
// Options.Resume takes. It is small, and encodes to JSON. It is good for ever.
//
// It says what comes next, not what this batch is: Epoch is that of the batch
// to come, and Step the number of batches that its epoch has given so far. So
// the State of an epoch's last batch has the next Epoch and Step 0 (where
// samples are not counted, that is not known yet, and it has the old epoch and
// all its steps). The epoch of this batch is Refs[0].Epoch.
func (b *Batch) State() *State {
	s := b.state
	return &s
}

// Column returns the values of column i: of Image, Int64, Float32, Dense and
// Func the array [Len ...]; of Padded that with the padding; of Ragged the rows
// of all samples; of Bytes and Key the bytes of all. Location has none.
func (b *Batch) Column(i int) tensor.Dense { return b.live().values[i] }

// Arrays returns the arrays of all columns in their order, as a device takes
// them: the values of each, and behind those of a Padded column its lengths,
// behind those of Ragged, Bytes and Key the splits. The slice belongs to the
// batch.
func (b *Batch) Arrays() []tensor.Dense { return b.live().arrays }

// Float32 returns the elements of column i, which must be of that type.
func (b *Batch) Float32(i int) []float32 { return b.Column(i).Float32() }

// Int64 returns the elements of column i, which must be of that type.
func (b *Batch) Int64(i int) []int64 { return b.Column(i).Int64() }

// Padded returns column i, which must be Padded.
func (b *Batch) Padded(i int) tensor.Padded {
	p := b.of(i, column.FormPadded)
	return tensor.Padded{Values: p.values[i], Lengths: p.lengths[i]}
}

// Ragged returns column i, which must be Ragged.
func (b *Batch) Ragged(i int) tensor.Ragged {
	p := b.of(i, column.FormRagged)
	return tensor.Ragged{Values: p.values[i], Splits: p.lengths[i]}
}

// Binary returns column i, which must be Bytes or Key.
func (b *Batch) Binary(i int) tensor.Binary {
	p := b.of(i, column.FormBinary)
	return tensor.Binary{Data: p.values[i].Bytes(), Splits: p.lengths[i]}
}

func (b *Batch) of(i int, form column.Form) *page {
	p := b.live()
	if b.l.columns[i].form != form {
		panic("loader: column is " + b.l.columns[i].form.String() + ", not " + form.String())
	}
	return p
}

// Key returns the key of the sample at place i, which has no bytes where the
// sample has no key. A hole has its own key.
func (b *Batch) Key(i int) []byte { return b.live().slots[i].key }

// Location returns where the sample at place i stands. Building it allocates.
func (b *Batch) Location(i int) format.Location {
	s := &b.live().slots[i]
	if s.ref.Kind == order.Padding {
		return format.Nowhere
	}
	at := b.l.in(s.ref.Shard)
	at.Record, at.Key, at.Offset = s.ref.Index, string(s.key), s.offset
	return at
}

// Draws returns what operations on the whole batch draw from, such as
// augment.MixUp: a function of the seed, the step and the rank.
func (b *Batch) Draws() uint64 {
	return order.MixDraws(b.l.o.Seed, b.state.Epoch, b.state.Step, b.l.o.Rank)
}

// Echo returns what of the batch is repeated: how many of its samples are fresh,
// how many are in it more than once, and how far the copies lie behind those
// before them.
func (b *Batch) Echo() echo.Account { return b.account }

// Work returns what was done for this batch: the encoded bytes of its fresh
// samples, all fields counted, and the images and pixels decoded. A copy of a
// batch that is kept costs nothing.
func (b *Batch) Work() Work {
	if b.again {
		return Work{}
	}
	return b.live().work()
}

// Work is an amount of it.
type Work struct {
	Bytes  int64 // encoded bytes read
	Images int64 // images decoded
	Pixels int64 // pixels decoded: of each image the part that was needed
}

// Add adds to w.
func (w *Work) Add(o Work) {
	w.Bytes += o.Bytes
	w.Images += o.Images
	w.Pixels += o.Pixels
}

// Release gives the memory back. It may be called from any goroutine; calls
// after the first do nothing.
func (b *Batch) Release() {
	if p := b.page.Swap(nil); p != nil {
		b.l.held.Add(-1)
		p.release()
	}
}

func (b *Batch) live() *page {
	p := b.page.Load()
	if p == nil {
		panic("loader: use of a batch after its Release")
	}
	return p
}

// page is the memory of a batch and what becomes of its slots. It is held by
// the batch, by its echoes, and by the order stage while echoes are to come.
type page struct {
	l     *Loader
	buf   *tensor.Buffer
	slots []slot
	tasks []task
	refs  atomic.Int32

	values  []tensor.Dense // by column
	lengths [][]int64      // by column: of padded ones, or the splits
	counts  []tensor.Dense // the same as arrays
	arrays  []tensor.Dense
	cells   [][]cell // by column of any length: where the values of each slot are

	mu       sync.Mutex
	pieces   []*tensor.Buffer // memory that cells refer to; once assembled, that values are in
	gathered []*tensor.Buffer // that values were put into just now

	left    atomic.Int32  // slots still to be filled
	done    chan struct{} // closed when none is
	settled bool          // bad samples are counted
	err     error         // of counting
}

// slot is the place of one sample in a batch.
type slot struct {
	ref       order.Ref
	chunk     *chunk // that its sample is in, held by the task; nil for padding
	item      int32
	kept      keptItem // of its sample, held until the slot is filled
	bytes     int64
	offset    int64
	key       []byte // memory of the slot, reused
	err       error  // what makes it a hole
	tolerated bool   // the error costs nothing of the budget
	cost      Work
}

// filled reports whether the slot holds its own sample.
func (s *slot) filled() bool { return s.err == nil && s.chunk != nil }

// cell is the value of a slot in a column of any length.
type cell struct {
	buf    *tensor.Buffer
	off, n int
}

func (p *page) work() (w Work) {
	for i := range p.slots {
		s := &p.slots[i]
		w.Add(s.cost)
		if s.ref.Copy == 0 {
			w.Bytes += s.bytes
		}
	}
	return w
}

// pagePool recycles pages and their memory.
type pagePool struct {
	memory tensor.Pool
	mu     sync.Mutex
	free   []*page
}

// newPage returns a page of n slots, held by the caller.
func (l *Loader) newPage(n int) *page {
	pool := &l.pages
	pool.mu.Lock()
	var p *page
	if len(pool.free) > 0 {
		p = pool.free[len(pool.free)-1]
		pool.free = pool.free[:len(pool.free)-1]
	}
	pool.mu.Unlock()
	if p == nil {
		p = l.makePage()
	}
	p.slots, p.tasks = p.slots[:n], p.tasks[:0]
	p.buf = pool.memory.Get(l.pageBytes)
	for i := range l.columns {
		switch c := &l.columns[i]; c.form {
		case column.FormDense:
			p.values[i] = c.tensor(p.buf.Bytes(), n)
		case column.FormPadded:
			p.values[i] = c.tensor(p.buf.Bytes(), n)
			p.counts[i] = c.numbers(p.buf.Bytes(), n)
			p.lengths[i] = p.counts[i].Int64()
		case column.FormRagged, column.FormBinary:
			p.counts[i] = c.numbers(p.buf.Bytes(), n+1)
			p.lengths[i] = p.counts[i].Int64()
			p.cells[i] = p.cells[i][:n]
		}
	}
	p.left.Store(int32(n))
	p.refs.Store(1)
	p.done, p.settled, p.err = make(chan struct{}), false, nil
	return p
}

func (l *Loader) makePage() *page {
	n := len(l.columns)
	p := &page{
		l: l, slots: make([]slot, l.perRank), tasks: make([]task, 0, l.perRank),
		values: make([]tensor.Dense, n), lengths: make([][]int64, n), counts: make([]tensor.Dense, n), cells: make([][]cell, n),
	}
	for i := range l.columns {
		if f := l.columns[i].form; f == column.FormRagged || f == column.FormBinary {
			p.cells[i] = make([]cell, l.perRank)
		}
	}
	return p
}

// newTask returns a task of the page for slots first to last-1.
func (p *page) newTask(first, last int) *task {
	p.tasks = p.tasks[:len(p.tasks)+1]
	t := &p.tasks[len(p.tasks)-1]
	t.page, t.first, t.last, t.at, t.ran = p, first, last, first, false
	return t
}

// adopt keeps memory until the page lets go of it.
func (p *page) adopt(b *tensor.Buffer) {
	p.l.chunks.gate.force(int64(b.Size()))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pieces = append(p.pieces, b)
}

func (p *page) retain() { p.refs.Add(1) }

func (p *page) release() {
	if p.refs.Add(-1) > 0 {
		return
	}
	for i := range p.tasks {
		if t := &p.tasks[i]; !t.ran { // the pipeline has ended
			t.letGo()
		}
	}
	p.dropPieces()
	p.buf.Release()
	p.buf = nil
	clear(p.values)
	clear(p.lengths)
	clear(p.counts)
	clear(p.arrays)
	p.arrays = p.arrays[:0]
	for i := range p.cells {
		clear(p.cells[i])
	}
	for i := range p.slots {
		if it := p.slots[i].kept; it.Item != nil { // the pipeline has ended
			it.Release()
		}
		p.slots[i] = slot{key: p.slots[i].key[:0]}
	}
	pool := &p.l.pages
	pool.mu.Lock()
	defer pool.mu.Unlock()
	pool.free = append(pool.free, p)
}

func (p *page) dropPieces() {
	size := 0
	for i, b := range p.pieces {
		size += b.Size()
		b.Release()
		p.pieces[i] = nil
	}
	p.pieces = p.pieces[:0]
	if size > 0 {
		p.l.chunks.gate.give(int64(size))
	}
}

// finished counts n slots as filled. Who fills the last makes the batch of
// them.
func (p *page) finished(n int) {
	if p.left.Add(int32(-n)) == 0 {
		p.assemble()
		close(p.done)
	}
}
