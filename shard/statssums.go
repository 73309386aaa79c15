package shard

import (
	"math"
	"math/big"
	"math/bits"
)

// uint128 is a sum that no number of images makes too large.
type uint128 struct{ hi, lo uint64 }

func (u *uint128) add(v uint64) {
	var carry uint64
	u.lo, carry = bits.Add64(u.lo, v, 0)
	u.hi += carry
}

func (u uint128) big() *big.Int {
	v := new(big.Int).SetUint64(u.hi)
	v.Lsh(v, 64)
	return v.Add(v, new(big.Int).SetUint64(u.lo))
}

func (u uint128) float() float64 {
	f, _ := new(big.Float).SetInt(u.big()).Float64()
	return f
}

// pixelSums is what mean and standard deviation need of one image, of values 0
// to 255 in red, green and blue. Within the 2^48 pixels that no image reaches
// nothing overflows.
type pixelSums struct {
	pixels       uint64
	sum, squares [3]uint64
}

// add takes pixels of three bytes each.
func (s *pixelSums) add(rgb []byte) {
	s.pixels += uint64(len(rgb) / 3)
	var r, g, b, rr, gg, bb uint64
	for len(rgb) >= 3 {
		x, y, z := uint64(rgb[0]), uint64(rgb[1]), uint64(rgb[2])
		r, g, b = r+x, g+y, b+z
		rr, gg, bb = rr+x*x, gg+y*y, bb+z*z
		rgb = rgb[3:]
	}
	s.sum[0], s.sum[1], s.sum[2] = s.sum[0]+r, s.sum[1]+g, s.sum[2]+b
	s.squares[0], s.squares[1], s.squares[2] = s.squares[0]+rr, s.squares[1]+gg, s.squares[2]+bb
}

// mean returns the mean of each channel, 0 to 255.
func (s *pixelSums) mean() (m [3]float64) {
	for c := range m {
		m[c] = float64(s.sum[c]) / float64(s.pixels)
	}
	return m
}

// totals are pixelSums over all images. They are whole numbers, so that what is
// made of them is the same in whatever order images came.
type totals struct {
	pixels       uint128
	sum, squares [3]uint128
}

func (t *totals) add(s *pixelSums) {
	t.pixels.add(s.pixels)
	for c := range 3 {
		t.sum[c].add(s.sum[c])
		t.squares[c].add(s.squares[c])
	}
}

// normal returns mean and standard deviation, over all pixels, of each channel
// scaled to 0 to 1: with n pixels, the sum s of a channel and the sum q of its
// squares,
//
//	mean = s / 255n        std = sqrt(n q - s^2) / 255n
//
// exact up to the last roundings. They are NaN where there are no pixels.
func (t *totals) normal() (mean, std [3]float64) {
	n := t.pixels.big()
	scale := 255 * t.pixels.float()
	for c := range 3 {
		s := t.sum[c].big()
		v := new(big.Int).Mul(n, t.squares[c].big())
		v.Sub(v, new(big.Int).Mul(s, s))
		root, _ := new(big.Float).Sqrt(new(big.Float).SetInt(v)).Float64()
		mean[c], std[c] = t.sum[c].float()/scale, root/scale
	}
	if scale == 0 {
		nan := math.NaN()
		mean = [3]float64{nan, nan, nan}
		std = mean
	}
	return mean, std
}
