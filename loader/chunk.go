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

// chunk is a run of samples of one shard. Whoever holds it may read it; the
// last release recycles it.
type chunk struct {
	pool    *chunkPool
	buf     *tensor.Buffer
	used    int // bytes of buf
	weight  int // bytes of what was added, with the descriptions of fields
	samples []format.Sample
	fields  []format.Field
	bytes   []int64 // of each sample's fields, as they were read
	refs    atomic.Int32
}

// chunkPool recycles chunks and bounds the memory of those in use.
type chunkPool struct {
	memory tensor.Pool
	gate   gate
	mu     sync.Mutex
	free   []*chunk
}

// get returns an empty chunk with room for n bytes, held by the caller. The
// gate must have admitted sizeOf(n) bytes.
func (p *chunkPool) get(n int) *chunk {
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
	c.buf = p.memory.Get(n)
	c.refs.Store(1)
	return c
}

func (c *chunk) retain() { c.refs.Add(1) }

func (c *chunk) release() {
	if c.refs.Add(-1) > 0 {
		return
	}
	n := int64(len(c.buf.Bytes()))
	c.buf.Release()
	clear(c.samples)
	clear(c.fields)
	c.buf, c.used, c.weight = nil, 0, 0
	c.samples, c.fields, c.bytes = c.samples[:0], c.fields[:0], c.bytes[:0]
	p := c.pool
	p.mu.Lock()
	p.free = append(p.free, c)
	p.mu.Unlock()
	p.gate.give(n)
}

// fits reports whether a sample that needs n bytes can be added.
func (c *chunk) fits(n int) bool {
	return len(c.samples) < chunkSamples && c.weight+n <= len(c.buf.Bytes())
}

// add copies a sample: its key, and of its fields the names of all and the
// data of those that are wanted.
func (c *chunk) add(s *format.Sample, need int, wanted []bool) {
	c.weight += need
	mine := *s
	mine.Key = c.keep(s.Key)
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
	// Should the list move while it grows, older samples keep the old one.
	mine.Fields = c.fields[first:len(c.fields):len(c.fields)]
	c.samples = append(c.samples, mine)
	c.bytes = append(c.bytes, s.Bytes())
}

func (c *chunk) keep(b []byte) []byte {
	if b == nil {
		return nil
	}
	at := c.used
	c.used += copy(c.buf.Bytes()[at:], b)
	return c.buf.Bytes()[at:c.used:c.used]
}

// view is one sample of a chunk.
type view struct {
	chunk *chunk
	i     int
	shard int32
	epoch int32
	index int64
}

func (v *view) sample() *format.Sample { return &v.chunk.samples[v.i] }
