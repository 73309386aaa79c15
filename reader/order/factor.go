package order

import (
	"math"
	"math/bits"
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
		return 0, badFactor(e)
	}
	return Factor(math.Round(e * float64(One))), nil
}

func badFactor(e float64) error {
	return usage("an echo factor of %v: it counts every emission, so 1 is the least, and 65536 the most", e)
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

// begin sets where a lane starts: a part l/V of a copy, so that the lanes of a
// step do not all gain a copy at once.
func (a *accumulator) begin(lane, lanes int) {
	a.rest = Factor(uint64(lane) << 32 / uint64(lanes))
}

// total is how many copies n items have in all, for an accumulator that began
// as begin says: floor(n e + lane/lanes).
func (f Factor) total(n int64, lane, lanes int) int64 {
	return f.copies(n, Factor(uint64(lane)<<32/uint64(lanes)))
}

// copies is how many copies n items have in all, for an accumulator with that
// rest.
func (f Factor) copies(n int64, rest Factor) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(f))
	lo, carry := bits.Add64(lo, uint64(rest), 0)
	return int64((hi+carry)<<32 | lo>>32)
}

// MarshalJSON writes the factor as a number; 48 bits fit a float64 exactly.
func (f Factor) MarshalJSON() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalJSON reads what MarshalJSON wrote.
func (f *Factor) UnmarshalJSON(p []byte) error {
	e, err := strconv.ParseFloat(string(p), 64)
	if err != nil {
		return err
	}
	*f, err = NewFactor(e)
	return err
}
