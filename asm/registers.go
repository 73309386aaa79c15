package main

import (
	"slices"

	"github.com/mmcloughlin/avo/reg"
)

// vectors hands out the 16 vector registers that AVX2 has. Avo's own
// allocation goes on to those of AVX-512 where it does not find its way with
// 16, which is where a kernel uses nearly all of them: such a kernel says
// itself where the life of a value ends.
type vectors struct{ free []reg.VecPhysical }

func newVectors() *vectors {
	return &vectors{free: []reg.VecPhysical{
		reg.Y15, reg.Y14, reg.Y13, reg.Y12, reg.Y11, reg.Y10, reg.Y9, reg.Y8,
		reg.Y7, reg.Y6, reg.Y5, reg.Y4, reg.Y3, reg.Y2, reg.Y1, reg.Y0,
	}}
}

func (v *vectors) take() reg.VecPhysical {
	last := len(v.free) - 1
	r := v.free[last]
	v.free = v.free[:last]
	return r
}

func (v *vectors) put(rs ...reg.VecPhysical) {
	for _, r := range rs {
		if slices.Contains(v.free, r) {
			panic("a register is given back twice")
		}
		v.free = append(v.free, r)
	}
}
