package order

import "sort"

// ladder finds which of a row of entries holds a position, by prefix sums and
// a guide that says where to begin:
//
//	sums   0 ─── 10 ─── 20 ─ 27      entry e holds sums[e] to sums[e+1]-1
//	guide  │    │    │    │          the entry at every 2^shift-th position
type ladder struct {
	sums  []int64
	guide []int32
	shift uint
}

// newLadder takes the sizes of the entries, each at least 1.
func newLadder(sizes []int64) ladder {
	l := ladder{sums: make([]int64, len(sizes)+1)}
	for i, n := range sizes {
		l.sums[i+1] = l.sums[i] + n
	}
	total := l.total()
	// Two guides for each entry: of equal ones, most are found at once.
	for total>>l.shift > 2*int64(len(sizes)) {
		l.shift++
	}
	e := 0
	for p := int64(0); p < total; p += 1 << l.shift {
		for l.sums[e+1] <= p {
			e++
		}
		l.guide = append(l.guide, int32(e))
	}
	return l
}

func (l *ladder) total() int64 { return l.sums[len(l.sums)-1] }

// find returns the entry that holds p, which is below the total.
func (l *ladder) find(p int64) int {
	g := p >> l.shift
	e := int(l.guide[g])
	for range 4 {
		if p < l.sums[e+1] {
			return e
		}
		e++
	}
	// Many small entries share a guide.
	end := len(l.sums) - 1
	if int(g)+1 < len(l.guide) {
		end = int(l.guide[g+1]) + 1
	}
	return e + sort.Search(end-e, func(i int) bool { return p < l.sums[e+i+1] })
}

// kept returns the index of the sample before which r are kept, where exclude,
// ascending, are left out.
func kept(exclude []int64, r int64) int64 {
	lo, hi := 0, len(exclude)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if exclude[mid]-int64(mid) <= r {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return r + int64(lo)
}
