package order

import (
	"math"
	"math/bits"
)

// permutation is a keyed permutation of 0 to n-1 in constant memory: a Feistel
// network over pairs (l, r), l below a and r below b, whose halves add a hash
// of each other:
//
//	i = l b + r ─▶ l += F(r) mod a ─▶ r += F(l) mod b ─▶ ... ─▶ l b + r
//
// Each half is undone by a subtraction, so the whole is a bijection of 0 to
// a b - 1. a b is the least product of near equals that is not less than n;
// what lands beyond n goes through again until it does not (cycle walking,
// Black and Rogaway, Ciphers with Arbitrary Finite Domains, 2002), which is
// rare, as a b - n is below a few roots of n.
type permutation struct {
	n, a, b uint64
	halves  int // of rounds
	keys    [mostHalves]uint64
}

// Permutations of few items take more rounds to become uniform: those of six
// are visibly not after 8 half rounds, and pass after 16
// (TestPermutationIsUniform). Many are fine with 8 (TestPermutationIsNotCorrelated),
// which is what BenchmarkBillion sees.
const (
	mostHalves = 32
	halves     = 8
	few        = 1 << 12
)

func newPermutation(n int64, key uint64) permutation {
	p := permutation{n: uint64(n), halves: halves}
	if n < few {
		p.halves = mostHalves
	}
	p.a = uint64(math.Ceil(math.Sqrt(float64(n))))
	p.b = (p.n + p.a - 1) / max(p.a, 1)
	for i := range p.keys {
		p.keys[i] = extend(key, uint64(i))
	}
	return p
}

func (p *permutation) at(i uint64) uint64 {
	for {
		l, r := i/p.b, i%p.b
		for k := 0; k < p.halves; k += 2 {
			keys := p.keys[k : k+2]
			if l += scaled(r^keys[0], p.a); l >= p.a {
				l -= p.a
			}
			if r += scaled(l^keys[1], p.b); r >= p.b {
				r -= p.b
			}
		}
		if i = l*p.b + r; i < p.n {
			return i
		}
	}
}

// scaled hashes x to a number below n.
func scaled(x, n uint64) uint64 {
	x *= golden
	x = (x ^ x>>32) * 0xbf58476d1ce4e5b9
	hi, _ := bits.Mul64(x, n)
	return hi
}
