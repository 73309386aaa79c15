package shard

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func distributionOf(values ...int64) *Distribution {
	d := new(Distribution)
	for _, v := range values {
		d.add(v)
	}
	return d
}

func TestDistribution(t *testing.T) {
	var ten, square []int64
	for v := range int64(10) {
		ten = append(ten, 10-v)
	}
	for v := range int64(100) {
		square = append(square, v*v) // to 9801
	}
	for _, tt := range []struct {
		name      string
		values    []int64
		quantiles [5]int64 // at 0, 0.05, 0.5, 0.95, 1
		mean      float64
		bins      []Bin // no more than 5
	}{
		{"one", []int64{7}, [5]int64{7, 7, 7, 7, 7}, 7, []Bin{{7, 8, 1}}},
		{"zero", []int64{0, 0}, [5]int64{}, 0, []Bin{{0, 1, 2}}},
		{"ten", ten, [5]int64{1, 1, 5, 10, 10}, 5.5, []Bin{{0, 5, 4}, {5, 10, 5}, {10, 15, 1}}},
		{"one far off", []int64{500, 500, 500, 375, 100_000}, [5]int64{375, 375, 500, 100_000, 100_000}, 20375,
			[]Bin{{100, 1000, 4}, {1000, 10_000, 0}, {10_000, 100_000, 0}, {100_000, 1_000_000, 1}}},
		// The first hundredth ends at 0 and the last begins at 98*98 = 9604.
		{"squares", square, [5]int64{0, 16, 2401, 8836, 9801}, 3283.5,
			[]Bin{{0, 1, 1}, {1, 10, 3}, {10, 100, 6}, {100, 1000, 22}, {1000, 10_000, 68}}},
	} {
		d := distributionOf(tt.values...)
		var got [5]int64
		for i, p := range []float64{0, 0.05, 0.5, 0.95, 1} {
			got[i] = d.Quantile(p)
		}
		if got != tt.quantiles || d.Mean() != tt.mean {
			t.Errorf("%s: quantiles %v and mean %v, want %v and %v", tt.name, got, d.Mean(), tt.quantiles, tt.mean)
		}
		if bins := d.Bins(5); !cmp.Equal(bins, tt.bins) {
			t.Errorf("%s: bins %v, want %v", tt.name, bins, tt.bins)
		}
	}
	if d := distributionOf(); d.Bins(5) != nil || d.Quantile(0.5) != 0 || !math.IsNaN(d.Mean()) {
		t.Error("an empty distribution says something")
	}
}

// TestDistributionTails keeps what lies outside of the middle 98 of 100 in bins
// of its own.
func TestDistributionTails(t *testing.T) {
	var d Distribution
	for v := range int64(1000) {
		d.add(1000 + v)
	}
	d.add(1)
	d.add(1_000_000)
	want := []Bin{{1, 1000, 1}, {1000, 1500, 500}, {1500, 2000, 500}, {2000, 1_000_001, 1}}
	if got := d.Bins(3); !cmp.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestDistributionStaysSmall adds two million values, all different.
func TestDistributionStaysSmall(t *testing.T) {
	const n = 2_000_000
	var d Distribution
	for v := range int64(n) {
		d.add(v)
	}
	if len(d.counts) > exactValues || d.N != n || d.Min != 0 || d.Max != n-1 || d.Mean() != (n-1)/2. {
		t.Errorf("%d counts of %d values %d to %d, mean %v", len(d.counts), d.N, d.Min, d.Max, d.Mean())
	}
	for _, p := range []float64{0.001, 0.05, 0.5, 0.95, 1} {
		if got, want := float64(d.Quantile(p)), p*n-1; math.Abs(got-want) > want/1000 {
			t.Errorf("quantile %v is %v, want %v", p, got, want)
		}
	}
	// From the other end it is the same.
	var r Distribution
	for v := int64(n - 1); v >= 0; v-- {
		r.add(v)
	}
	if !cmp.Equal(d.Bins(12), r.Bins(12)) || d.Quantile(0.3) != r.Quantile(0.3) {
		t.Error("the order of values changes what is said of them")
	}
}

func TestDistributionProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.Int64Range(1, math.MaxInt64/16).Draw(t, "most")
		values := rapid.SliceOfN(rapid.Int64Range(0, most), 1, 300).Draw(t, "values")
		d := distributionOf(values...)
		if rapid.Bool().Draw(t, "coarse") {
			d.coarsen()
		}
		slices.Sort(values)
		for _, p := range []float64{0.01, 0.25, 0.5, 0.99} {
			want := values[max(int(math.Ceil(p*float64(len(values)))), 1)-1]
			if got := d.Quantile(p); got > max(want, d.Min) || float64(want-got) > float64(want)/1000 {
				t.Fatalf("quantile %v is %d, want %d", p, got, want)
			}
		}
		bins := d.Bins(rapid.IntRange(2, 20).Draw(t, "bins"))
		var n int64
		for i, b := range bins {
			n += b.Count
			if b.From >= b.To || i > 0 && bins[i-1].To != b.From {
				t.Fatalf("bins %v", bins)
			}
		}
		if n != d.N || bins[0].From > values[0] || bins[len(bins)-1].To <= values[len(values)-1] || len(bins) > 50 {
			t.Fatalf("bins %v of %d values", bins, d.N)
		}
	})
}

// TestTotalsDoNotOverflow sums up beyond 64 bits: 2^63 pixels, three times, of
// one value.
func TestTotalsDoNotOverflow(t *testing.T) {
	var all totals
	for range 3 {
		s := pixelSums{pixels: 1 << 63}
		for c := range 3 {
			s.sum[c], s.squares[c] = 1<<63, 1<<63 // of value 1
		}
		all.add(&s)
	}
	mean, std := all.normal()
	if mean[0] != 1./255 || std[2] != 0 {
		t.Errorf("mean %v, deviation %v", mean, std)
	}
}

func TestPixelSumsAllocateNothing(t *testing.T) {
	var s pixelSums
	rgb := slices.Repeat([]byte{1, 2, 3}, 1000)
	if n := testing.AllocsPerRun(10, func() { s.add(rgb) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	want := pixelSums{pixels: 11_000, sum: [3]uint64{11_000, 22_000, 33_000}, squares: [3]uint64{11_000, 44_000, 99_000}}
	if s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
}
