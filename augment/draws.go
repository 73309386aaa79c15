package augment

import "math/bits"

// Draws is the source of all that the operations of a transform draw for one
// copy of one sample. Whoever calls makes it by a hash of the seed and of what
// the copy is: equal Draws give equal results, and different ones have
// nothing to do with each other.
type Draws uint64

// Stream returns the draws of the operation at place op.
func (d Draws) Stream(op int) Stream {
	return Stream{mix(uint64(d) + uint64(op+1)*0xd1342543de82ef95)}
}

// Stream is a sequence of draws: SplitMix64 (Steele, Lea, Flood: Fast
// Splittable Pseudorandom Number Generators, 2014).
type Stream struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15

// Uint64 returns the next 64 bits.
func (s *Stream) Uint64() uint64 {
	s.state += golden
	return mix(s.state)
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Float64 returns a number in [0, 1), a multiple of 2^-53.
func (s *Stream) Float64() float64 { return float64(s.Uint64()>>11) * 0x1p-53 }

// Between returns a number from low to high.
func (s *Stream) Between(low, high float64) float64 {
	return low + float64((high-low)*s.Float64())
}

// IntN returns a whole number in [0, n). n must be positive; the numbers are
// equally likely up to a share of n/2^64.
func (s *Stream) IntN(n int) int {
	hi, _ := bits.Mul64(s.Uint64(), uint64(n))
	return int(hi)
}
