package tensor

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Alignment is the boundary, in bytes, at which every Buffer starts: a cache
// line, and the widest vector register.
const Alignment = 64

// Pool hands out buffers and takes them back. The zero value is ready. It is
// safe for use by several goroutines.
type Pool struct {
	// MaxIdle bounds the bytes kept for reuse while nobody holds them; what
	// comes back beyond it is left to the garbage collector. 0: no bound.
	MaxIdle int64

	mu   sync.Mutex
	idle int64
	free map[int][]*Buffer // by capacity
	live ledger
}

// Buffer is a piece of memory with a count of its holders. Who holds it may
// use its bytes; the last Release gives it back to its pool, and from then on
// neither the Buffer nor a slice or view of it may be touched.
type Buffer struct {
	pool  *Pool
	mem   []byte // aligned, of a capacity that sizeClass gives
	n     int
	refs  atomic.Int32
	trace trace
}

// Get returns a buffer of n bytes with one holder, the caller. What the bytes
// hold is not defined.
func (p *Pool) Get(n int) *Buffer {
	class := sizeClass(n)
	b := p.reuse(class)
	if b == nil {
		b = &Buffer{pool: p, mem: aligned(class)}
	}
	b.n = n
	b.refs.Store(1)
	p.live.taken(b)
	return b
}

func (p *Pool) reuse(class int) *Buffer {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.free[class]
	if len(list) == 0 {
		return nil
	}
	b := list[len(list)-1]
	list[len(list)-1] = nil
	p.free[class] = list[:len(list)-1]
	p.idle -= int64(class)
	return b.revive()
}

// Bytes returns the memory, of the length that was asked for.
func (b *Buffer) Bytes() []byte { return b.mem[:b.n:b.n] }

// Size returns how many bytes the buffer takes up, which is at least the
// length that was asked for.
func (b *Buffer) Size() int { return len(b.mem) }

// Retain adds a holder. The caller must be one.
func (b *Buffer) Retain() {
	if b.refs.Add(1) <= 1 {
		panic("tensor: Retain of a buffer that was released" + b.trace.history())
	}
}

// Release takes a holder away; the last one gives the buffer back. One Release
// too many panics.
func (b *Buffer) Release() {
	switch left := b.refs.Add(-1); {
	case left > 0:
		return
	case left < 0:
		panic("tensor: Release of a buffer that was released" + b.trace.history())
	}
	p := b.pool
	p.live.released(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.MaxIdle > 0 && p.idle+int64(len(b.mem)) > p.MaxIdle {
		return
	}
	if p.free == nil {
		p.free = make(map[int][]*Buffer)
	}
	p.free[len(b.mem)] = append(p.free[len(b.mem)], b)
	p.idle += int64(len(b.mem))
}

// Leaks names where each buffer that is still held was taken, one line each.
// It is empty unless built with -tags debugpool.
func (p *Pool) Leaks() []string { return p.live.leaks() }

// sizeClass rounds up to a quarter of a power of two, so that at most a fifth
// of a buffer is unused and buffers of nearby sizes stand in for each other.
func sizeClass(n int) int {
	if n <= 4*Alignment {
		return max(Alignment, (n+Alignment-1)&^(Alignment-1))
	}
	step := 1 << (bits.Len(uint(n-1)) - 3)
	return (n + step - 1) &^ (step - 1)
}

// aligned relies on the garbage collector not moving what it has allocated.
func aligned(n int) []byte {
	raw := make([]byte, n+Alignment-1)
	off := -int(uintptr(unsafe.Pointer(&raw[0]))) & (Alignment - 1)
	return raw[off : off+n : off+n]
}
