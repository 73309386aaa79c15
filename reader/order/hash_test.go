package order_test

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"testing"

	"shardtool/format"
	"shardtool/reader/order"
)

func TestNewFactor(t *testing.T) {
	for e, want := range map[float64]order.Factor{1: order.One, 2: 2 << 32, 1.5: 3 << 31, 65536: 1 << 48} {
		if got, err := order.NewFactor(e); got != want || err != nil || got.Float64() != e || got.String() != fmt.Sprint(e) {
			t.Errorf("NewFactor(%v) = %d, %v", e, got, err)
		}
	}
	for _, e := range []float64{0, 0.999, -1, 65537, math.Inf(1), math.NaN()} {
		if _, err := order.NewFactor(e); !errors.Is(err, format.ErrUsage) {
			t.Errorf("NewFactor(%v): %v", e, err)
		}
	}
	for _, f := range []order.Factor{order.One, order.One + 1, order.One * 4 / 3, 1<<48 - 1, 1 << 48} {
		text, _ := f.MarshalJSON()
		var back order.Factor
		if err := back.UnmarshalJSON(text); err != nil || back != f {
			t.Errorf("%d as %s comes back as %d, %v", f, text, back, err)
		}
	}
}

// A third is not representable, but many thirds must not drift: fixed
// point holds n*floor-error below n/2^33.
func TestFactorDoesNotDrift(t *testing.T) {
	e, _ := order.NewFactor(4.0 / 3)
	steps := run(t, uncounted(order.Plan{Batch: 1 << 20, Factor: e}, 600_000), 1)[0]
	if n := len(steps[0]); len(steps) != 1 || n != 799_999 && n != 800_000 {
		t.Errorf("%d emissions in %d steps", n, len(steps))
	}
}

// One bit of any input moves about half the bits of the result, and places do
// not stand in for each other.
func TestHashMixes(t *testing.T) {
	base := order.Hash(1, order.ForAugment, 2, 3, 4, 5)
	for place := range 4 {
		for bit := range 64 {
			c := []uint64{2, 3, 4, 5}
			c[place] ^= 1 << bit
			if n := bits.OnesCount64(base ^ order.Hash(1, order.ForAugment, c...)); n < 12 || n > 52 {
				t.Errorf("bit %d of counter %d moves %d bits", bit, place, n)
			}
		}
	}
	seen := map[uint64]bool{}
	for i := range uint64(40) {
		for j := range uint64(40) {
			seen[order.Hash(i, order.ForAugment, j)] = true
			seen[order.Hash(0, order.ForAugment, i, j)] = true
			seen[order.Hash(0, order.Purpose(i+2), j)] = true
		}
	}
	if len(seen) != 3*40*40 {
		t.Errorf("%d different of %d", len(seen), 3*40*40)
	}
}

func TestDraws(t *testing.T) {
	r := order.Ref{Epoch: 2, Shard: 3, Copy: 5, Index: 4}
	if r.Draws(1) != order.Hash(1, order.ForAugment, 2, 3, 4, 5) {
		t.Error("Draws is another hash than it says")
	}
	if n := testing.AllocsPerRun(100, func() { r.Draws(1) }); n != 0 {
		t.Errorf("Draws allocates %v times", n)
	}
	seen := map[uint64]bool{r.Draws(1): true}
	times := r
	if times.Times = 7; !seen[times.Draws(1)] {
		t.Error("Draws depend on how many copies there are")
	}
	for _, other := range []order.Ref{
		{Epoch: 1, Shard: 3, Copy: 5, Index: 4}, {Epoch: 2, Shard: 2, Copy: 5, Index: 4}, {Epoch: 2, Shard: 3, Copy: 4, Index: 4},
		{Epoch: 2, Shard: 3, Copy: 5, Index: 3}, {Epoch: 2, Shard: 3, Copy: 5, Index: 4, Pass: 1}, {Epoch: 2, Shard: 3, Copy: 5, Index: 4, Kind: order.Wrapped},
	} {
		if seen[other.Draws(1)] {
			t.Errorf("%+v draws what another does", other)
		}
		seen[other.Draws(1)] = true
	}
	for _, h := range []uint64{order.MixDraws(1, 2, 3, 4), order.MixDraws(1, 2, 3, 5), order.MixDraws(1, 2, 4, 4), order.MixDraws(1, 3, 3, 4), order.MixDraws(2, 2, 3, 4)} {
		if seen[h] {
			t.Error("batches draw the same")
		}
		seen[h] = true
	}
}
