package order

import (
	"math"
	"math/bits"
)

// blend deals the places of a sequence to parts by weight. A part takes place
// n if its share of the first n+1 places, floor((n+1) w + phase), is more than
// that of the first n; what it does not take is dealt among the parts after
// it in the same way. So the shares are exact at every place, and any place is
// found without the ones before it.
type blend []uint64 // share of each part among itself and those after it, of 2^64; none for the last

// roundUp is more than the rounding of a share, so that two thirds of three
// places are two. It adds up to a place in 2^51.
const roundUp = 1 << 13

func newBlend(parts []Part) (blend, error) {
	const least = 1.0 / (1 << 32)
	rest := make([]float64, len(parts)+1)
	for i := len(parts) - 1; i >= 0; i-- {
		rest[i] = rest[i+1] + parts[i].Weight
		if w := parts[i].Weight; !(w > 0) || math.IsInf(rest[i], 0) {
			return nil, usage("data set %d of the mix has a weight of %v: weights are positive, and so is their sum", i, w)
		}
	}
	b := make(blend, len(parts)-1)
	for i := range b {
		share := parts[i].Weight / rest[i]
		if share < least || share > 1-least {
			return nil, usage("the weights of data sets %d and following are too unequal: one has less than a part in 2^32", i)
		}
		b[i] = uint64(math.Ldexp(share, 64)) + roundUp
	}
	return b, nil
}

// phase spreads the lanes, so that not all of them turn to a part at once. The
// multiples of the golden ratio are even for any number of lanes.
func phase(lane, level int) uint64 { return uint64(lane) * golden * uint64(2*level+1) }

// taken is floor(n w + phase), n and phase being of one part.
func taken(n int64, w, phase uint64) int64 {
	hi, lo := bits.Mul64(uint64(n), w)
	_, carry := bits.Add64(lo, phase, 0)
	return int64(hi + carry)
}

// at returns which part place n of a lane is, and how many places before it
// that part has.
func (b blend) at(n int64, lane int) (part int, q int64) {
	for i, w := range b {
		ph := phase(lane, i)
		c := taken(n, w, ph)
		if taken(n+1, w, ph) > c {
			return i, c
		}
		n -= c
	}
	return len(b), n
}

// count returns how many of the first n places of a lane a part has.
func (b blend) count(n int64, part, lane int) int64 {
	for i, w := range b[:min(part, len(b))] {
		n -= taken(n, w, phase(lane, i))
	}
	if part < len(b) {
		return taken(n, b[part], phase(lane, part))
	}
	return n
}

// length returns how many places an epoch of a lane has whose parts have these
// lengths: for Restart the least number that has all of each, for Stop the
// greatest that no part runs short of. Beyond maxSamples it is more than that.
func (b blend) length(lengths []int64, ends Ends, lane int) int64 {
	if len(b) == 0 {
		return lengths[0]
	}
	if ends == Stop {
		return least(maxSamples, func(n int64) bool {
			for i, most := range lengths {
				if b.count(n, i, lane) > most {
					return true
				}
			}
			return false
		}) - 1
	}
	return least(maxSamples, func(n int64) bool {
		for i, most := range lengths {
			if b.count(n, i, lane) < most {
				return false
			}
		}
		return true
	})
}

// least returns the least number from 0 to most of which is holds, and most+1
// if there is none; it holds of all after the first of which it does.
func least(most int64, is func(int64) bool) int64 {
	lo, hi := int64(0), most+1
	for lo < hi {
		mid := lo + (hi-lo)/2
		if is(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}
