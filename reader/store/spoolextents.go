package store

import (
	"math"
	"slices"
	"sort"
)

// extents are stretches of an object, in order, none of which touch.
type extents []extent

type extent struct{ from, to int64 }

// after returns which extent is the first that ends behind an offset.
func (e extents) after(off int64) int {
	return sort.Search(len(e), func(i int) bool { return e[i].to > off })
}

// run returns how many bytes from an offset on are within.
func (e extents) run(off int64) int64 {
	if i := e.after(off); i < len(e) && e[i].from <= off {
		return e[i].to - off
	}
	return 0
}

// next returns where the first extent begins that ends behind an offset.
func (e extents) next(off int64) int64 {
	if i := e.after(off); i < len(e) {
		return e[i].from
	}
	return math.MaxInt64
}

// add takes in a stretch that is not empty.
func (e *extents) add(from, to int64) {
	i := e.after(from - 1) // also one that ends where this begins
	j := i
	for ; j < len(*e) && (*e)[j].from <= to; j++ {
		from, to = min(from, (*e)[j].from), max(to, (*e)[j].to)
	}
	*e = slices.Replace(*e, i, j, extent{from, to})
}

// remove takes out a stretch that is not empty.
func (e *extents) remove(from, to int64) {
	i := e.after(from)
	j := i
	var rest [2]extent
	n := 0
	for ; j < len(*e) && (*e)[j].from < to; j++ {
		if x := (*e)[j]; x.from < from {
			rest[n] = extent{x.from, from}
			n++
		}
		if x := (*e)[j]; x.to > to {
			rest[n] = extent{to, x.to}
			n++
		}
	}
	*e = slices.Replace(*e, i, j, rest[:n]...)
}
