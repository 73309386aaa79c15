package loader

import (
	"sync"
	"sync/atomic"

	"shardtool/reader/order"
	"shardtool/tensor"
)

// Batch is some samples as tensors, one for each column, the samples along the
// first axis. It is the trainer's until Release; its tensors, keys and slices
// are good until then. Where whole
// batches are echoed (echo.Batch), the copies share one memory: they are to be
// read, not written. Others may be written to.
type Batch struct {
	Refs  []order.Ref // which sample each place holds
	Valid []bool      // false at a hole: a bad sample's place, filled with a copy of a good neighbour
	Step  int64       // number of the batch in this run, from 0

	l    *Loader
	page atomic.Pointer[page]
}

// Len returns the number of samples.
func (b *Batch) Len() int { return len(b.Refs) }

// Column returns the tensor of column i, of the shape [Len ...].
func (b *Batch) Column(i int) tensor.Dense { return b.live().columns[i] }

// Arrays returns the tensors of all columns. The slice belongs to the batch.
func (b *Batch) Arrays() []tensor.Dense { return b.live().columns }

// Float32 returns the elements of column i, which must be of that type.
func (b *Batch) Float32(i int) []float32 { return b.Column(i).Float32() }

// Int64 returns the elements of column i, which must be of that type.
func (b *Batch) Int64(i int) []int64 { return b.Column(i).Int64() }

// Key returns the key of the sample at place i, which has no bytes where the
// sample has no key. A hole has its own key.
func (b *Batch) Key(i int) []byte { return b.live().slots[i].key }

// Work returns what was done for this batch: the encoded bytes of its fresh
// samples, all fields counted, and the images and pixels decoded. A copy of a
// batch that is kept costs nothing.
func (b *Batch) Work() Work {
	if b.Refs[0].Copy > 0 && b.l.plan.Unit == order.Batch {
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
	pool    *pagePool
	buf     *tensor.Buffer
	columns []tensor.Dense
	slots   []slot
	refs    atomic.Int32

	left    atomic.Int32  // slots still to be filled
	done    chan struct{} // closed when none is
	settled bool          // holes are filled and counted
	err     error         // of settling
}

// slot is the place of one sample in a batch.
type slot struct {
	ref   order.Ref
	view  view // held until the slot is filled
	bytes int64
	key   []byte // memory of the slot, reused
	err   error  // what makes it a hole
	cost  Work
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
		p = &page{pool: pool, slots: make([]slot, l.o.GlobalBatch)}
	}
	p.buf = pool.memory.Get(l.offsets[len(l.shapes)])
	p.columns = l.columns(p.buf.Bytes(), n)
	p.slots = p.slots[:n]
	p.left.Store(int32(n))
	p.refs.Store(1)
	p.done, p.settled, p.err = make(chan struct{}), false, nil
	return p
}

// columns cuts a batch's memory into tensors of n samples.
func (l *Loader) columns(mem []byte, n int) []tensor.Dense {
	columns := make([]tensor.Dense, len(l.shapes))
	for i, shape := range l.shapes {
		if n < l.o.GlobalBatch {
			shape = append(tensor.Shape{n}, shape[1:]...)
		}
		dtype := l.o.Columns[i].kind.dtype()
		columns[i] = tensor.View(dtype, shape, mem[l.offsets[i]:][:dtype.Size()*shape.Elems()])
	}
	return columns
}

func (p *page) retain() { p.refs.Add(1) }

func (p *page) release() {
	if p.refs.Add(-1) > 0 {
		return
	}
	p.buf.Release()
	p.buf, p.columns = nil, nil
	for i := range p.slots {
		p.slots[i] = slot{key: p.slots[i].key[:0]}
	}
	pool := p.pool
	pool.mu.Lock()
	defer pool.mu.Unlock()
	pool.free = append(pool.free, p)
}

// finished counts n slots as filled, or given up.
func (p *page) finished(n int) {
	if p.left.Add(int32(-n)) == 0 {
		close(p.done)
	}
}
