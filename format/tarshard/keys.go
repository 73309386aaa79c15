package tarshard

import (
	"hash/maphash"
	"math/bits"
)

// keySet remembers the keys of one shard as hashes of 64 bits, of which two are
// equal by chance with a probability of n*n/2^65: 3 in 10^8 for a million keys.
//
// It takes less than 16 bytes a key, growth included. A table is an array of
// hashes, probed linearly from where the high bits of the hash point, and grows
// by half when 7 of 8 places are taken: 9.1 to 13.7 bytes a key. There are 64
// tables, chosen by the low bits, so that what is copied as one of them grows
// is small beside the whole.
type keySet struct {
	tables  [64]keyTable
	seed    maphash.Seed
	most    int64 // bytes
	have    int64 // bytes
	stopped bool  // most was reached
}

type keyTable struct {
	slots []uint64 // 0: free
	n     int
}

const leastSlots = 8

func (s *keySet) reset(most int64) {
	if s.seed == (maphash.Seed{}) {
		s.seed = maphash.MakeSeed()
	}
	for i := range s.tables {
		clear(s.tables[i].slots)
		s.tables[i].n = 0
	}
	s.most, s.stopped = most, s.have > most
	if s.stopped {
		s.tables, s.have, s.stopped = [64]keyTable{}, 0, false
	}
}

// add remembers a key and reports whether it was there. Past the limit it
// remembers no more keys but still finds those it has.
func (s *keySet) add(key []byte) (found bool) {
	h := maphash.Bytes(s.seed, key) | 1<<63 // never 0; 63 bits remain
	t := &s.tables[h&63]
	if 8*(t.n+1) > 7*len(t.slots) && !s.stopped {
		s.grow(t)
	}
	if len(t.slots) == 0 {
		return false
	}
	i := t.find(h)
	if t.slots[i] == h {
		return true
	}
	if !s.stopped {
		t.slots[i] = h
		t.n++
	}
	return false
}

// find returns where h stands, or the free place where it belongs.
func (t *keyTable) find(h uint64) int {
	at, _ := bits.Mul64(h<<1, uint64(len(t.slots)))
	i := int(at)
	for t.slots[i] != 0 && t.slots[i] != h {
		if i++; i == len(t.slots) {
			i = 0
		}
	}
	return i
}

func (s *keySet) grow(t *keyTable) {
	n := max(leastSlots, len(t.slots)*3/2)
	more := int64(n-len(t.slots)) * 8
	if s.have+more > s.most {
		s.stopped = true
		return
	}
	s.have += more
	old := t.slots
	t.slots = make([]uint64, n)
	for _, h := range old {
		if h != 0 {
			t.slots[t.find(h)] = h
		}
	}
}
