package loader

import (
	"sync"
	"sync/atomic"

	"shardtool/format"
	"shardtool/tensor"
)

// A chunk is full at either.
const (
	chunkBytes   = 1 << 20
	chunkSamples = 1024

	// fieldBytes is what the description of a field takes up beside its data,
	// so that samples of very many fields are bounded too.
	fieldBytes = 64
)

// chunk is some samples of a shard that were read together: a stretch of a run,
// or what a job reads at places. Whoever holds it may read it once it is ready;
// the last release recycles it.
type chunk struct {
	pool *chunkPool
	buf  *tensor.Buffer
	size int64 // admitted by the gate
	refs atomic.Int32

	items []item
	first int64 // index of the first item, of a run

	// Of a run: samples in buf, of which used bytes are taken.
	used    int
	weight  int // bytes of what was added, with the descriptions of fields
	samples []format.Sample
	fields  []format.Field

	mu      sync.Mutex
	ready   bool
	waiting []*task // for it to be ready
}

// item is one sample of a chunk.
type item struct {
	sample int32 // among the samples; none (-1) where data is to be parsed
	shard  int32
	index  int64
	off    int64  // of data in the shard
	data   []byte // to be parsed
	bytes  int64  // of the sample's fields, as they were read
	err    error  // why there is no sample
}

const unparsed = -1

// chunkPool recycles chunks and bounds the memory of those in use.
type chunkPool struct {
	memory tensor.Pool
	gate   gate
	mu     sync.Mutex
	free   []*chunk
}

// get returns a chunk without items and memory, held by the caller.
func (p *chunkPool) get() *chunk {
	p.mu.Lock()
	var c *chunk
	if len(p.free) > 0 {
		c = p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
	}
	p.mu.Unlock()
	if c == nil {
		c = &chunk{pool: p}
	}
	c.refs.Store(1)
	return c
}

// allocate gives the chunk n bytes, which the gate must have admitted.
func (c *chunk) allocate(n int) {
	c.buf = c.pool.memory.Get(n)
	c.size = int64(n)
}

func (c *chunk) retain() { c.refs.Add(1) }

func (c *chunk) release() {
	if c.refs.Add(-1) > 0 {
		return
	}
	if c.buf != nil {
		c.buf.Release()
	}
	clear(c.samples)
	clear(c.fields)
	clear(c.items)
	clear(c.waiting)
	size := c.size
	c.buf, c.size, c.used, c.weight, c.first, c.ready = nil, 0, 0, 0, 0, false
	c.samples, c.fields, c.items, c.waiting = c.samples[:0], c.fields[:0], c.items[:0], c.waiting[:0]
	p := c.pool
	p.mu.Lock()
	p.free = append(p.free, c)
	p.mu.Unlock()
	p.gate.give(size)
}

// fits reports whether a sample that needs n bytes can be added.
func (c *chunk) fits(n int) bool {
	return len(c.items) < chunkSamples && c.weight+n <= int(c.size)
}

// add copies a sample: its key and record, and of its fields the names of all
// and the data of those that are wanted.
func (c *chunk) add(s *format.Sample, shard int32, index int64, need int, wanted []bool) {
	c.weight += need
	it := item{sample: int32(len(c.samples)), shard: shard, index: index, bytes: s.Bytes()}
	mine := *s
	mine.Index = index
	mine.Key = c.keep(s.Key)
	if s.Fields == nil {
		it.bytes = int64(len(s.Record))
		mine.Record = c.keep(s.Record)
	} else {
		mine.Record = nil
	}
	first := len(c.fields)
	for i := range s.Fields {
		f := s.Fields[i]
		if wanted[i] {
			f.Data = c.keep(f.Data)
		} else {
			f.Data = nil
		}
		c.fields = append(c.fields, f)
	}
	if len(s.Fields) > 0 {
		// Should the list move while it grows, older samples keep the old one.
		mine.Fields = c.fields[first:len(c.fields):len(c.fields)]
	}
	c.samples = append(c.samples, mine)
	c.items = append(c.items, it)
}

// shrunk returns a chunk of no more memory than what is in c, which it releases
// then.
func (c *chunk) shrunk() *chunk {
	if 2*int64(c.weight) > c.size {
		return c
	}
	p := c.pool
	small := p.get()
	p.gate.force(int64(c.weight)) // for that much more is given back
	small.allocate(c.weight)
	small.first, small.ready = c.first, c.ready
	for i := range c.items {
		it := c.items[i]
		if it.sample != unparsed {
			it.sample = small.hold(&c.samples[it.sample])
		}
		small.items = append(small.items, it)
	}
	small.weight = c.weight
	c.release()
	return small
}

// hold copies a whole sample and returns its number.
func (c *chunk) hold(s *format.Sample) int32 {
	mine := *s
	mine.Key, mine.Record = c.keep(s.Key), c.keep(s.Record)
	mine.Fields = append([]format.Field(nil), s.Fields...)
	for i := range mine.Fields {
		mine.Fields[i].Data = c.keep(mine.Fields[i].Data)
	}
	c.samples = append(c.samples, mine)
	return int32(len(c.samples) - 1)
}

// bytesOf is how many bytes of memory hold takes.
func bytesOf(s *format.Sample) int {
	n := len(s.Key) + len(s.Record)
	for i := range s.Fields {
		n += len(s.Fields[i].Data)
	}
	return n
}

func (c *chunk) keep(b []byte) []byte {
	if b == nil {
		return nil
	}
	at := c.used
	c.used += copy(c.buf.Bytes()[at:], b)
	return c.buf.Bytes()[at:c.used:c.used]
}

// complete makes the chunk ready and passes on the tasks that had to wait for
// it alone.
func (c *chunk) complete(run func(*task)) {
	c.mu.Lock()
	c.ready = true
	waiting := c.waiting
	c.mu.Unlock()
	for _, t := range waiting {
		if t.wait.Add(-1) == 0 {
			run(t)
		}
	}
}

// await reports whether the chunk is ready; if not, it will count the task
// down when it is.
func (c *chunk) await(t *task) (ready bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ready {
		c.waiting = append(c.waiting, t)
	}
	return c.ready
}

// view is one sample of a chunk.
type view struct {
	chunk *chunk
	i     int32
}
