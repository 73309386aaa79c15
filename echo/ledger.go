package echo

import (
	"math/bits"

	"shardtool/reader/order"
)

// Ledger accounts for a run of one rank, batch by batch. It remembers where each
// sample with copies to come was last emitted: as many as wait in the buffer
// behind the echo, or in the shards that are being repeated, in 64 to 128 bytes
// each, and 2^20 of them at the most. Copies of a sample that it does not
// remember, since it began in their middle or has no room, are echoes whose
// distance is not known, and so are those of what fills a tail. It is for one
// goroutine.
//
// The zero value is ready. With Batch as its Unit, which must be the order's,
// it remembers batches instead, so that a copy costs the same however many
// samples it has.
type Ledger struct {
	Unit Unit

	total Account
	epoch int32
	last  table
}

// Add accounts for the next batch, whose references are those that the order
// gave, and returns the batch's own account. Where nothing is repeated it
// remembers nothing.
func (l *Ledger) Add(refs []order.Ref) Account {
	var a Account
	if l.Unit == Batch {
		a = l.whole(refs)
	} else {
		a = l.each(refs)
	}
	l.total.Merge(a)
	return a
}

// begin notes the epoch of a reference: copies that the tail of the one before
// cut off do not come any more.
func (l *Ledger) begin(epoch int32) {
	if epoch != l.epoch {
		l.last.clear()
		l.epoch = epoch
	}
}

func (l *Ledger) each(refs []order.Ref) (a Account) {
	before := l.total.Emitted
	for i := range refs {
		r := &refs[i]
		if r.Kind == order.Padding {
			continue
		}
		l.begin(r.Epoch)
		a.Emitted++
		switch {
		case r.Copy > 0:
			a.Echoes++
		case r.Kind == order.Fresh:
			a.Fresh++
		}
		if r.Times > 1 && r.Kind == order.Fresh {
			now := before + a.Emitted
			last, _ := l.last.emit(r, now, 1)
			a.space(now, last, before, 1)
		}
	}
	return a
}

// whole accounts for a batch that is repeated as it is: its first fresh sample
// stands for all of them, which have as many copies at the same distance.
func (l *Ledger) whole(refs []order.Ref) (a Account) {
	first := 0
	for first < len(refs) && refs[first].Kind != order.Fresh {
		first++
	}
	if first == len(refs) || refs[first].Times == 1 {
		return l.each(refs)
	}
	r := &refs[first]
	l.begin(r.Epoch)
	now := l.total.Emitted + 1
	if r.Copy == 0 {
		a.Add(refs)
		l.last.emit(r, now, int32(a.Emitted))
		return a
	}
	last, n := l.last.emit(r, now, 0)
	if last == 0 {
		n = emissions(refs)
		l.last.emit(r, now, n)
	}
	a.Emitted, a.Echoes = int64(n), int64(n)
	a.space(now, last, now-1, a.Emitted)
	return a
}

func emissions(refs []order.Ref) (n int32) {
	for i := range refs {
		if refs[i].Kind != order.Padding {
			n++
		}
	}
	return n
}

// Total returns the account of all batches so far.
func (l *Ledger) Total() Account { return l.total }

// space counts n emissions, the first at the place now among all, whose samples
// were emitted before from last on, 0 if that is not known, in a batch that began
// after the place begin.
func (a *Account) space(now, last, begin, n int64) {
	if last == 0 {
		return
	}
	d := now - last
	a.Spaced += n
	a.Distance += n * d
	if a.Nearest == 0 || d < a.Nearest {
		a.Nearest = d
	}
	if last > begin {
		a.Duplicates += n
	}
}

// table holds the place of the last emission of samples, with open addressing:
// a map of Go allocates now and then even if it does not grow.
type table struct {
	slots []placed // a power of two; at most half of them are used
	used  int
	shift uint // of a hash, for a place among them
}

// placed is a sample, the place of its last emission, from 1, or 0 if the slot is
// free, and how many are to come: copies are counted, not told by their number,
// since a buffer behind repeated shards may turn them round.
type placed struct {
	index       int64
	shard, pass int32
	place       int64
	left        int32
	emissions   int32 // 1; of a batch all of its own
}

const maxPlaced = 1 << 20

func (t *table) clear() {
	if t.used > 0 {
		clear(t.slots)
		t.used = 0
	}
}

// emit notes an emission at a place, until all of its copies were, and returns
// the place that was noted before with the emissions that were, or 0. What is
// not there yet is put there, if n is not 0.
func (t *table) emit(r *order.Ref, place int64, n int32) (before int64, emissions int32) {
	key := placed{index: r.Index, shard: r.Shard, pass: r.Pass}
	i := 0
	if len(t.slots) > 0 {
		i = t.find(&key)
		if s := &t.slots[i]; s.place != 0 {
			before, emissions, s.place = s.place, s.emissions, place
			if s.left--; s.left == 0 {
				t.remove(i)
			}
			return before, emissions
		}
	}
	if n == 0 || t.used == maxPlaced {
		return 0, 0
	}
	if 2*t.used >= len(t.slots) {
		t.grow()
		i = t.find(&key)
	}
	t.used++
	key.place, key.left, key.emissions = place, r.Times-1, n
	t.slots[i] = key
	return 0, 0
}

// home is where a sample belongs.
func (t *table) home(k *placed) int {
	const a, b, c = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93, 0xa0761d6478bd642f
	h := uint64(k.index)*a + uint64(uint32(k.shard))*b + uint64(uint32(k.pass))*c
	h = (h ^ h>>32) * a
	return int(h >> t.shift)
}

// find returns the slot of a sample, or the free one where it would be.
func (t *table) find(k *placed) int {
	i := t.home(k)
	for {
		s := &t.slots[i]
		if s.place == 0 || s.index == k.index && s.shard == k.shard && s.pass == k.pass {
			return i
		}
		i = (i + 1) & (len(t.slots) - 1)
	}
}

// remove frees a slot, and moves up what was put behind it for want of room.
func (t *table) remove(i int) {
	mask := len(t.slots) - 1
	t.used--
	for j := i; ; {
		j = (j + 1) & mask
		s := &t.slots[j]
		if s.place == 0 {
			break
		}
		if (j-t.home(s))&mask >= (j-i)&mask {
			t.slots[i] = *s
			i = j
		}
	}
	t.slots[i] = placed{}
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]placed, max(64, 2*len(old)))
	t.shift = uint(65 - bits.Len(uint(len(t.slots))))
	for i := range old {
		if old[i].place != 0 {
			t.slots[t.find(&old[i])] = old[i]
		}
	}
}
