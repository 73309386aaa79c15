package shard

import (
	"math"
	"math/bits"
	"slices"
)

// Distribution is how often which value was seen, of values that are not
// negative. It is exact up to exactValues different ones; beyond, values keep
// their first coarseBits+1 binary digits, so that quantiles and bins are within
// 0.1% and memory stays bounded, while N, Min, Max and Mean stay exact. What it
// says does not depend on the order in which values came. The zero value is
// empty.
type Distribution struct {
	N        int64 // values seen
	Min, Max int64 // 0 where none was

	sum    uint128
	counts map[int64]int64
	coarse bool
	sorted []int64 // the keys of counts; nil where they have to be sorted anew
}

const (
	exactValues = 1 << 16
	coarseBits  = 10
)

func (d *Distribution) add(v int64) {
	if d.counts == nil {
		d.counts, d.Min = make(map[int64]int64), v
	}
	d.N++
	d.Min, d.Max = min(d.Min, v), max(d.Max, v)
	d.sum.add(uint64(v))
	if d.coarse {
		v = coarsened(v)
	}
	d.counts[v]++
	d.sorted = nil
	if !d.coarse && len(d.counts) > exactValues {
		d.coarsen()
	}
}

func (d *Distribution) coarsen() {
	counts := make(map[int64]int64)
	for v, n := range d.counts {
		counts[coarsened(v)] += n
	}
	d.counts, d.coarse = counts, true
}

func coarsened(v int64) int64 {
	drop := max(bits.Len64(uint64(v))-coarseBits-1, 0)
	return v >> drop << drop
}

// Mean returns the mean of the values, NaN where there are none.
func (d *Distribution) Mean() float64 { return d.sum.float() / float64(d.N) }

func (d *Distribution) values() []int64 {
	if d.sorted == nil {
		for v := range d.counts {
			d.sorted = append(d.sorted, v)
		}
		slices.Sort(d.sorted)
	}
	return d.sorted
}

// Quantile returns the smallest value that at least the part p, 0 to 1, of all
// values does not exceed: 0.5 gives the (lower) median. It returns 0 where there
// are none.
func (d *Distribution) Quantile(p float64) int64 {
	rank := max(int64(math.Ceil(p*float64(d.N))), 1)
	for _, v := range d.values() {
		if rank -= d.counts[v]; rank <= 0 {
			return min(max(v, d.Min), d.Max)
		}
	}
	return d.Max
}

// Bin is how many values v of a Distribution are From <= v < To.
type Bin struct{ From, To, Count int64 }

// Bins returns a histogram of no more than about most bins. Between the first
// and the last hundredth of values their edges are round numbers: equally far
// apart, or, where the values spread by more than a factor of 20, in the series
// 1, 2, 5, 10. One bin below and one above takes the rest.
func (d *Distribution) Bins(most int) []Bin {
	if d.N == 0 {
		return nil
	}
	lo, hi := d.Quantile(0.01), d.Quantile(0.99)
	edges := linearEdges(lo, hi, int64(most))
	if hi/20 > lo {
		edges = seriesEdges(lo, hi, most)
	}
	if first := edges[0]; d.Min < first {
		edges = slices.Insert(edges, 0, d.Min)
	}
	if last := edges[len(edges)-1]; d.Max >= last {
		edges = append(edges, d.Max+1)
	}
	bins := make([]Bin, len(edges)-1)
	for i := range bins {
		bins[i] = Bin{From: edges[i], To: edges[i+1]}
	}
	for v, n := range d.counts {
		// A coarse value may be less than any that was seen.
		i, found := slices.BinarySearch(edges, max(v, d.Min))
		if !found {
			i--
		}
		bins[i].Count += n
	}
	return bins
}

// linearEdges returns multiples of a step of the series, the first at or below
// lo, the last above hi, for at most most bins.
func linearEdges(lo, hi, most int64) []int64 {
	step := int64(1)
	for i := 0; hi/step-lo/step+1 > most; i++ {
		step = next(step)
	}
	var edges []int64
	for e := lo / step * step; ; e += step {
		edges = append(edges, e)
		if e > hi {
			return edges
		}
	}
}

// seriesEdges returns the members of the series 1, 2, 5, 10 around lo and hi, or
// powers of ten where those would make too many bins.
func seriesEdges(lo, hi int64, most int) []int64 {
	for _, following := range []func(int64) int64{next, func(e int64) int64 { return 10 * e }} {
		e, edges := int64(1), []int64{}
		for following(e) <= lo {
			e = following(e)
		}
		if lo == 0 {
			edges = append(edges, 0)
		}
		for ; ; e = following(e) {
			edges = append(edges, e)
			if e > hi {
				break
			}
		}
		if len(edges) <= most+1 || following(1) == 10 {
			return edges
		}
	}
	return nil
}

// next returns the number after e in the series 1, 2, 5, 10, 20, ...
func next(e int64) int64 {
	first := e
	for first >= 10 {
		first /= 10
	}
	if first == 2 {
		return e / 2 * 5
	}
	return 2 * e
}
