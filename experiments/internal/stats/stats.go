// Package stats is what the tables need of statistics: medians and quartiles of
// small samples of which some are censored, and the exact test of Mann and
// Whitney. What was not reached within its budget is +Inf: more than anything
// that was.
package stats

import (
	"math"
	"slices"
)

// Quantile returns the q-quantile of values, q within 0 to 1, interpolated
// between the two nearest (type 7 of Hyndman and Fan); NaN of nothing, and +Inf
// as soon as an infinite value has a part in it.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	at := q * float64(len(s)-1)
	i := int(at)
	share := at - float64(i)
	if share == 0 {
		return s[i]
	}
	return s[i]*(1-share) + s[i+1]*share
}

// Median returns the 0.5-quantile.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Less returns the one-sided p-value of the Mann-Whitney test that a tends to
// be less than b: the share of all ways to deal the pooled values to groups of
// these sizes in which the first has as many pairs (a, b) with a < b, ties
// counted half, or more. It counts every way, so the groups must be small.
func Less(a, b []float64) float64 {
	pool := append(slices.Clone(a), b...)
	if len(a) == 0 || len(b) == 0 || len(pool) > 24 {
		return math.NaN()
	}
	// The statistic is the sum over the first group of its doubled midranks: the
	// lower, the more pairs are less.
	ranks := make([]int, len(pool))
	for i, v := range pool {
		for _, w := range pool {
			switch {
			case w < v:
				ranks[i] += 2
			case w == v:
				ranks[i]++
			}
		}
	}
	observed := 0
	for _, r := range ranks[:len(a)] {
		observed += r
	}
	var ways, extreme float64
	var deal func(from, left, sum int)
	deal = func(from, left, sum int) {
		if left == 0 {
			if ways++; sum <= observed {
				extreme++
			}
			return
		}
		for i := from; i <= len(ranks)-left; i++ {
			deal(i+1, left-1, sum+ranks[i])
		}
	}
	deal(0, len(a), 0)
	return extreme / ways
}
