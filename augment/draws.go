package augment

import (
	"math"
	"math/bits"
)

// Draws is the source of all that the operations of a transform draw for one
// copy of one sample. Whoever calls makes it by a hash of the seed and of what
// the copy is: equal Draws give equal results, and different ones have
// nothing to do with each other. Package loader makes those of samples; those of
// a batch, for MixUp and CutMix, may be any mix of the seed and the step.
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

// skip passes over n draws.
func (s *Stream) skip(n int) { s.state += golden * uint64(n) }

// Normal returns a normal deviate of mean 0 and standard deviation 1, by the
// polar method of Marsaglia: a random number of draws.
func (s *Stream) Normal() float64 {
	for {
		x, y := s.Between(-1, 1), s.Between(-1, 1)
		if r := float64(x*x) + float64(y*y); 0 < r && r < 1 {
			return x * math.Sqrt(-2*math.Log(r)/r)
		}
	}
}

// logGamma returns the logarithm of a gamma deviate of shape a, a positive
// number (Marsaglia and Tsang: A Simple Method for Generating Gamma Variables,
// 2000). The deviates themselves vanish in float64 where a is small.
func (s *Stream) logGamma(a float64) float64 {
	if a < 1 {
		return s.logGamma(a+1) + math.Log(1-s.Float64())/a
	}
	d := a - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := s.Normal()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-s.Float64()) < 0.5*x*x+d-d*v+d*math.Log(v) {
			return math.Log(d) + math.Log(v)
		}
	}
}

// Beta returns a deviate of the beta distribution of shapes a and a, in [0, 1]:
// a random number of draws, one where a is 1.
func (s *Stream) Beta(a float64) float64 {
	if a == 1 {
		return s.Float64()
	}
	x, y := s.logGamma(a), s.logGamma(a)
	return 1 / (1 + math.Exp(y-x))
}
