package stats

import (
	"math"
	"testing"
)

var inf = math.Inf(1)

func TestQuantile(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{4, 1, 2, 3}, 0.5, 2.5},
		{[]float64{4, 1, 2, 3}, 0.25, 1.75},
		{[]float64{5, 1, 2, 3, 4}, 0.75, 4},
		{[]float64{1, inf, 2, inf, 3}, 0.5, 3},     // two of five censored: the median is known
		{[]float64{1, inf, 2, inf, inf}, 0.5, inf}, // three: it is beyond the budget
		{[]float64{1, 2, inf, inf}, 0.5, inf},
		{[]float64{1, 2, inf, inf}, 0, 1},
		{[]float64{7}, 0.3, 7},
	} {
		if got := Quantile(tt.values, tt.q); got != tt.want {
			t.Errorf("quantile %v of %v: %v, want %v", tt.q, tt.values, got, tt.want)
		}
	}
	if !math.IsNaN(Median(nil)) {
		t.Error("a median of nothing")
	}
}

// TestLess is by hand: of the n = 6 over 3 = 20 ways to deal six values, one
// puts the three least first; of 10 over 5 = 252 one the five least.
func TestLess(t *testing.T) {
	for _, tt := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1, 2, 3}, []float64{4, 5, 6}, 1. / 20},
		{[]float64{4, 5, 6}, []float64{1, 2, 3}, 1},
		{[]float64{1, 2, 4}, []float64{3, 5, 6}, 2. / 20},         // and 1 2 3
		{[]float64{1, 3, 4}, []float64{2, 5, 6}, 4. / 20},         // sums of ranks to 8: 123, 124, 125, 134
		{[]float64{1, 1, 1}, []float64{1, 1, 1}, 1},               // nothing but ties
		{[]float64{1, 2}, []float64{2, 3}, 2. / 6},                // midranks 1, 2.5, 2.5, 4: sums 3.5, 3.5 of six
		{[]float64{1, 2, inf}, []float64{inf, inf, inf}, 4. / 20}, // the ways with 1 and 2 in the first group
		{[]float64{1, 2, 3, 4, 5}, []float64{6, 7, 8, 9, inf}, 1. / 252},
	} {
		if got := Less(tt.a, tt.b); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%v less than %v: p %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
	if !math.IsNaN(Less(nil, []float64{1})) {
		t.Error("a test of nothing")
	}
}
