package order

import (
	"math"
	"strconv"
)

// Factor is how often something is emitted, in fixed point with 32 bits after
// the point: sums of it are exact, where those of float64 drift.
type Factor uint64

// One is the factor that changes nothing.
const One Factor = 1 << 32

const fraction = One - 1

// NewFactor returns the factor nearest to e, which must be from 1 to 65536;
// otherwise ErrUsage.
func NewFactor(e float64) (Factor, error) {
	if !(e >= 1 && e <= 1<<16) {
		return 0, usage("an echo factor of %v: it counts every emission, so 1 is the least, and 65536 the most", e)
	}
	return Factor(math.Round(e * float64(One))), nil
}

// Float64 returns the factor as a number.
func (f Factor) Float64() float64 { return float64(f) / float64(One) }

// String returns the factor in decimal.
func (f Factor) String() string { return strconv.FormatFloat(f.Float64(), 'g', -1, 64) }

// accumulator gives item n, from 0, floor((n+1)e) - floor(n e) copies.
type accumulator struct{ rest Factor }

func (a *accumulator) times(e Factor) int32 {
	a.rest += e
	n := a.rest >> 32
	a.rest &= fraction
	return int32(n)
}
