package order

// repeats holds items and gives each as often as an accumulator says, from a
// buffer of its copies at random:
//
//	slots  [item, 1 of 3 given] [free] [item, 0 of 2]
//	buf    0 2 0 2                                   one for each copy to come
//
// An item is kept once however many copies of it wait, and which of them
// leaves the buffer is all the same: they are numbered as they leave.
type repeats[T any] struct {
	acc   accumulator
	slots []repeated[T]
	free  []int32
	buf   []int32
	taken int32 // the slot that is being filled
	seed  uint64
	out   uint64
}

type repeated[T any] struct {
	item        T
	copy, times int32 // given, and to be given
}

func (r *repeats[T]) begin(seed uint64, lane, lanes int) {
	r.acc.begin(lane, lanes)
	r.seed, r.out = seed, 0
	r.buf, r.free = r.buf[:0], r.free[:0]
	for i := range r.slots {
		r.slots[i].copy, r.slots[i].times = 0, 0
		r.free = append(r.free, int32(i))
	}
}

// slot returns a free slot, whose item is what is left from its last use. It
// is to be filled, and then added or dropped.
func (r *repeats[T]) slot() *repeated[T] {
	if n := len(r.free); n > 0 {
		r.taken = r.free[n-1]
		r.free = r.free[:n-1]
	} else {
		r.taken = int32(len(r.slots))
		r.slots = append(r.slots, repeated[T]{})
	}
	return &r.slots[r.taken]
}

func (r *repeats[T]) drop() { r.free = append(r.free, r.taken) }

// add puts the copies of the item in the slot into the buffer.
func (r *repeats[T]) add(f Factor) { r.put(r.acc.times(f)) }

func (r *repeats[T]) put(times int32) {
	s := &r.slots[r.taken]
	s.copy, s.times = 0, times
	for range s.times {
		r.buf = append(r.buf, r.taken)
	}
}

// next takes a copy from the buffer, and says which it is; nil if the buffer
// is empty. The slot is good until the next one is asked for.
func (r *repeats[T]) next() (*repeated[T], int32) {
	last := len(r.buf) - 1
	if last < 0 {
		return nil, 0
	}
	i := below(extend(r.seed, r.out), last+1)
	r.out++
	at := r.buf[i]
	r.buf[i] = r.buf[last]
	r.buf = r.buf[:last]
	s := &r.slots[at]
	if s.copy++; s.copy == s.times {
		r.free = append(r.free, at)
	}
	return s, s.copy - 1
}
