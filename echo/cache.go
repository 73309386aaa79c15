package echo

import (
	"container/heap"
	"sync"
)

// Cache keeps values between the uses of them, as many as a bound of bytes
// allows. Whoever finds that a value is not there makes it, and so the cache
// can make work, and never hold it up:
//
//	Take ─┬─ Hit    use it ─────────────▶ Done
//	      ├─ Build  make it ─▶ Put ─ use it ─▶ Done      (Fail, where it cannot be made)
//	      └─ Wait   another one makes it: Again is called when it is through
//
// Where a value does not fit, those with fewer uses to come for their size make
// room for it; without such, it is not kept. It is safe for use by several
// goroutines.
type Cache[V any] struct {
	limit int64
	free  func(V)

	mu    sync.Mutex
	idle  itemHeap[V] // kept, and used by nobody at the moment
	spare []*Item[V]  // that nobody holds any more
	stats CacheStats
}

// CacheStats is what a cache has done so far.
type CacheStats struct {
	Hits     int64 // uses of a value that was there
	Builds   int64 // values made for the first time
	Rebuilds int64 // values made again, because they were not kept
	Evicted  int64 // values that made room for others
	Refused  int64 // values that had uses to come and found no room
	Bytes    int64 // held now
	Peak     int64 // held at most
}

// NewCache returns a cache of values of limit bytes. free takes a value that is
// not needed any more.
func NewCache[V any](limit int64, free func(V)) *Cache[V] {
	return &Cache[V]{limit: limit, free: free}
}

// Stats returns a snapshot.
func (c *Cache[V]) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Item is what a cache may hold a value for: one sample and its copies. Its
// holders are counted: who may still use it, and who is going to.
type Item[V any] struct {
	c       *Cache[V]
	refs    int // holders
	pins    int // uses under way
	left    int // uses to come, as far as is known
	state   itemState
	built   bool // once
	admit   bool // the value stays after its use
	v       V
	bytes   int64
	waiting []Waiter
	at      int // in the heap, or -1
}

type itemState uint8

const (
	empty itemState = iota
	building
	full
)

// Waiter waits for a value that another one makes.
type Waiter interface {
	// Again is called once, when the waiter may try again. It must neither wait
	// nor call the cache.
	Again()
}

// Taken is what Take found.
type Taken uint8

const (
	Hit   Taken = iota // the value is there, until Done
	Build              // it is not: make it, and call Put or Fail
	Wait               // it is being made
)

// NewItem returns an item, held by the caller, that is going to be used so
// often. Once nobody holds it, it becomes another one.
func (c *Cache[V]) NewItem(uses int) *Item[V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	var it *Item[V]
	if last := len(c.spare) - 1; last >= 0 {
		it, c.spare = c.spare[last], c.spare[:last]
	} else {
		it = new(Item[V])
	}
	*it = Item[V]{c: c, refs: 1, left: uses, at: -1, waiting: it.waiting[:0]}
	return it
}

// Retain adds a holder.
func (it *Item[V]) Retain() {
	it.c.mu.Lock()
	defer it.c.mu.Unlock()
	it.refs++
}

// Release takes a holder away. With the last one the value goes.
func (it *Item[V]) Release() {
	it.c.mu.Lock()
	defer it.c.mu.Unlock()
	it.release()
}

func (it *Item[V]) release() {
	if it.refs--; it.refs > 0 {
		return
	}
	if it.state == full {
		it.discard()
	}
	it.c.spare = append(it.c.spare, it)
}

// Take begins a use, for which the caller must be a holder. With Wait, w is told
// when to try again, unless it is nil.
func (it *Item[V]) Take(w Waiter) (V, Taken) {
	c := it.c
	c.mu.Lock()
	defer c.mu.Unlock()
	var none V
	switch it.state {
	case building:
		if w != nil {
			it.waiting = append(it.waiting, w)
		}
		return none, Wait
	case empty:
		it.state = building
		if it.built {
			c.stats.Rebuilds++
		} else {
			c.stats.Builds++
		}
		it.built = true
		return none, Build
	}
	if it.at >= 0 {
		heap.Remove(&c.idle, it.at)
	}
	it.pins++
	c.stats.Hits++
	return it.v, Hit
}

// Put gives the item the value that the caller made, of so many bytes. It is
// there until the caller's Done at least.
func (it *Item[V]) Put(v V, bytes int64) {
	c := it.c
	c.mu.Lock()
	it.v, it.bytes, it.state = v, bytes, full
	it.pins++
	// What this use is the last of is let go of: it is worth nobody's place.
	it.admit = it.left > 1 && c.makeRoom(bytes, worth(it.left-1, bytes))
	c.stats.Bytes += bytes
	c.stats.Peak = max(c.stats.Peak, c.stats.Bytes)
	it.wake()
	c.mu.Unlock()
}

// Fail says that the value cannot be made. It ends the use, and takes the
// holder away that it was for.
func (it *Item[V]) Fail() {
	c := it.c
	c.mu.Lock()
	defer c.mu.Unlock()
	it.state = empty
	it.left--
	it.wake()
	it.release()
}

func (it *Item[V]) wake() {
	for i, w := range it.waiting {
		w.Again()
		it.waiting[i] = nil
	}
	it.waiting = it.waiting[:0]
}

// Done ends a use, and takes the holder away that it was for.
func (it *Item[V]) Done() {
	c := it.c
	c.mu.Lock()
	defer c.mu.Unlock()
	it.pins--
	it.left--
	switch {
	case it.pins > 0:
	case it.refs == 1 || !it.admit: // the last use, or no room for it
		it.discard()
	default:
		heap.Push(&c.idle, it)
	}
	it.release()
}

// discard frees the value. Nobody uses it.
func (it *Item[V]) discard() {
	if it.at >= 0 {
		heap.Remove(&it.c.idle, it.at)
	}
	var none V
	v := it.v
	it.c.stats.Bytes -= it.bytes
	it.v, it.bytes, it.state = none, 0, empty
	it.c.free(v)
}

// makeRoom lets go of what is worth less than a new value, until that fits,
// and reports whether it does.
func (c *Cache[V]) makeRoom(bytes int64, value float64) bool {
	for c.stats.Bytes+bytes > c.limit {
		if len(c.idle) == 0 || worth(c.idle[0].left, c.idle[0].bytes) >= value {
			c.stats.Refused++
			return false
		}
		c.stats.Evicted++
		c.idle[0].discard()
	}
	return true
}

// worth is the uses to come for a byte.
func worth(left int, bytes int64) float64 { return float64(left) / float64(max(bytes, 1)) }

// itemHeap has the item that is worth least first.
type itemHeap[V any] []*Item[V]

func (h itemHeap[V]) Len() int { return len(h) }
func (h itemHeap[V]) Less(i, j int) bool {
	return worth(h[i].left, h[i].bytes) < worth(h[j].left, h[j].bytes)
}
func (h itemHeap[V]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}
func (h *itemHeap[V]) Push(x any) {
	it := x.(*Item[V])
	it.at = len(*h)
	*h = append(*h, it)
}
func (h *itemHeap[V]) Pop() any {
	old := *h
	last := len(old) - 1
	it := old[last]
	old[last] = nil
	*h = old[:last]
	it.at = -1
	return it
}
