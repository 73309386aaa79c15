package order

import (
	"math/rand/v2"
	"testing"
)

func key(i int) uint64 { return Hash(7, ForPermute, uint64(i)) }

func TestPermutationIsBijection(t *testing.T) {
	for n := int64(1); n < 400; n++ {
		for k := range 8 {
			p := newPermutation(n, key(k))
			seen := make([]bool, n)
			for i := range n {
				v := p.at(uint64(i))
				if v >= uint64(n) || seen[v] {
					t.Fatalf("n %d, key %d: %d twice or out of range", n, k, v)
				}
				seen[v] = true
			}
		}
	}
	// Beyond what can be listed, at least the range holds.
	for _, n := range []int64{1 << 20, 1e9, 1<<31 - 1, 1<<45 - 1, 1 << 45} {
		p := newPermutation(n, key(0))
		for range 10000 {
			if i := rand.Uint64N(uint64(n)); p.at(i) >= uint64(n) || p.a*p.b < p.n || p.a*p.b-p.n > 2*p.a {
				t.Fatalf("n %d: %d goes to %d", n, i, p.at(i))
			}
		}
	}
}

// chi is the sum of (observed-expected)^2/expected.
func chi(cells []int, expected float64) (x float64) {
	for _, c := range cells {
		x += (float64(c) - expected) * (float64(c) - expected) / expected
	}
	return x
}

// The bounds are those of the chi-square distribution that a uniform choice
// would pass once in a million: 23 degrees of freedom 71.3, 119 207, 719 910,
// 99 184, 19 64.3, 361 502.
func TestPermutationIsUniform(t *testing.T) {
	for _, tt := range []struct {
		n, cells int
		bound    float64
	}{{4, 24, 71.3}, {5, 120, 207}, {6, 720, 910}} {
		cells := map[string]int{}
		keys := 200 * tt.cells
		for k := range keys {
			p := newPermutation(int64(tt.n), key(k))
			var s []byte
			for i := range tt.n {
				s = append(s, byte('0'+p.at(uint64(i))))
			}
			cells[string(s)]++
		}
		var all []int
		for _, c := range cells {
			all = append(all, c)
		}
		if x := chi(all, float64(keys)/float64(tt.cells)); len(all) != tt.cells || x > tt.bound {
			t.Errorf("permutations of %d: %d of %d occur, chi-square %.0f is over %.0f", tt.n, len(all), tt.cells, x, tt.bound)
		}
	}
}

// Where an item goes tells nothing of where it was, where its neighbour goes,
// or where it goes under the next key.
func TestPermutationIsNotCorrelated(t *testing.T) {
	const n, keys, buckets = 1000, 400, 20
	var place, next [buckets * buckets]int
	var step [buckets]int
	for k := range keys {
		p, q := newPermutation(n, key(k)), newPermutation(n, key(k+1))
		for i := range uint64(n) {
			v := p.at(i)
			place[i/50*buckets+v/50]++
			next[q.at(i)/50*buckets+v/50]++
			step[(p.at((i+1)%n)+n-v)%n/50]++
		}
	}
	if x := chi(place[:], keys*n/buckets/buckets); x > 502 {
		t.Errorf("places: chi-square %.0f", x)
	}
	if x := chi(next[:], keys*n/buckets/buckets); x > 502 {
		t.Errorf("keys: chi-square %.0f", x)
	}
	// A step of 0 does not occur, which takes a fiftieth off the first bucket.
	step[0] += keys * n / (n - 1)
	if x := chi(step[:], keys*n/buckets); x > 64.3 {
		t.Errorf("steps: chi-square %.0f", x)
	}

	const large, some = 1_000_000_000, 1_000_000
	var at, diff [100]int
	p := newPermutation(large, key(1))
	last := uint64(0)
	for i := range uint64(some) {
		v := p.at(i)
		at[v/(large/100)]++
		diff[(v+large-last)%large/(large/100)]++
		last = v
	}
	if x, y := chi(at[:], some/100), chi(diff[:], some/100); x > 184 || y > 184 {
		t.Errorf("a thousandth of a large one: chi-square %.0f of places, %.0f of steps", x, y)
	}
}

func TestLadder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		sizes := make([]int64, 1+r.IntN(40))
		for i := range sizes {
			sizes[i] = 1 + r.Int64N([]int64{1, 3, 1000}[r.IntN(3)])
		}
		l := newLadder(sizes)
		p := int64(0)
		for e, n := range sizes {
			for range n {
				if got := l.find(p); got != e {
					t.Fatalf("sizes %v: %d is in %d, not %d", sizes, p, got, e)
				}
				p++
			}
		}
		if l.total() != p {
			t.Fatalf("sizes %v: total %d", sizes, l.total())
		}
	}
}

func TestKept(t *testing.T) {
	// 0 1 2 3 4 5 6 7 without 0, 3, 4 and 7
	for r, want := range []int64{1, 2, 5, 6, 8, 9} {
		if got := kept([]int64{0, 3, 4, 7}, int64(r)); got != want {
			t.Errorf("%d: %d, not %d", r, got, want)
		}
	}
	if kept(nil, 5) != 5 {
		t.Error("nothing excluded")
	}
}

// A part has its share of the first n places, exactly to one, for any n, and
// places are numbered without a gap.
func TestBlend(t *testing.T) {
	for _, weights := range [][]float64{{1, 1}, {2, 1}, {1, 2, 4}, {0.1, 0.7, 3, 1000}, {1e-3, 1}} {
		parts := make([]Part, len(weights))
		total := 0.0
		for i, w := range weights {
			parts[i].Weight = w
			total += w
		}
		b, err := newBlend(parts)
		if err != nil {
			t.Fatal(err)
		}
		for lane := range 3 {
			counts := make([]int64, len(parts))
			for n := range int64(5000) {
				for k := range parts {
					if c := b.count(n, k, lane); c != counts[k] {
						t.Fatalf("%v: part %d has %d of %d places, not %d", weights, k, c, n, counts[k])
					}
					// Each level of the choice may be off by one.
					if d := float64(counts[k]) - float64(n)*weights[k]/total; d > float64(k+1) || d < -float64(k+1) {
						t.Fatalf("%v: part %d has %d of %d places", weights, k, counts[k], n)
					}
				}
				k, q := b.at(n, lane)
				if q != counts[k] {
					t.Fatalf("%v: place %d is %d of part %d, not %d", weights, n, q, k, counts[k])
				}
				counts[k]++
			}
		}
		lengths := []int64{10, 20, 3, 7}[:len(parts)]
		checkLength(t, b, lengths, weights)
	}
}

// checkLength counts out how long a mix is.
func checkLength(t *testing.T, b blend, lengths []int64, weights []float64) {
	counts := make([]int64, len(lengths))
	stop, restart := int64(-1), int64(0)
	for n := int64(0); ; n++ {
		full := true
		for k := range counts {
			full = full && counts[k] >= lengths[k]
		}
		if restart = n; full {
			break
		}
		k, _ := b.at(n, 0)
		if counts[k]++; counts[k] > lengths[k] && stop < 0 {
			stop = n
		}
	}
	if stop < 0 {
		stop = restart
		for {
			k, _ := b.at(stop, 0)
			if counts[k]++; counts[k] > lengths[k] {
				break
			}
			stop++
		}
	}
	if got := b.length(lengths, Stop, 0); got != stop {
		t.Errorf("%v: stops at %d, not %d", weights, got, stop)
	}
	if got := b.length(lengths, Restart, 0); got != restart {
		t.Errorf("%v: ends at %d, not %d", weights, got, restart)
	}
}

func TestFactorTotal(t *testing.T) {
	for _, tt := range []struct {
		f           Factor
		n           int64
		lane, lanes int
		want        int64
	}{
		{One, 7, 0, 1, 7}, {One, 7, 3, 4, 7}, {One * 3 / 2, 3, 0, 1, 4}, {One * 3 / 2, 3, 1, 2, 5},
		{One * 9 / 4, 3, 0, 1, 6}, {One * 9 / 4, 3, 3, 4, 7}, {maxFactor, maxSamples, 0, 1, 1 << 61}, {One, 0, 63, 64, 0},
	} {
		if got := tt.f.total(tt.n, tt.lane, tt.lanes); got != tt.want {
			t.Errorf("%d items of factor %v in lane %d of %d: %d, not %d", tt.n, tt.f, tt.lane, tt.lanes, got, tt.want)
		}
		var a accumulator
		a.begin(tt.lane, tt.lanes)
		var sum int64
		if tt.n > 100 {
			continue
		}
		for range tt.n {
			sum += int64(a.times(tt.f))
		}
		if sum != tt.want {
			t.Errorf("%d items of factor %v in lane %d of %d: accumulated %d, not %d", tt.n, tt.f, tt.lane, tt.lanes, sum, tt.want)
		}
	}
}
