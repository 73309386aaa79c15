package jpeg

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"shardtool/internal/asmtest"
	"shardtool/internal/simd"
)

func asInt16(b []byte) []int16 { return unsafe.Slice((*int16)(unsafe.Pointer(&b[0])), len(b)/2) }

// Random bits under tables of every kind, in memory that ends at a wall:
// assembly and generic Go read and write the same, and nothing beyond.
func TestEntropyWithinWalls(t *testing.T) {
	if simd.Active() == simd.Generic {
		t.Skip("no assembly here")
	}
	rng := rand.New(rand.NewPCG(5, 6))
	tables := func(class int) *table {
		if rng.IntN(3) > 0 {
			tb := new(table)
			tb.build(standardTables[class][rng.IntN(2)])
			return tb
		}
		for { // random counts that make a code
			def := make([]byte, 16, 16+64)
			for range 1 + rng.IntN(12) {
				def[rng.IntN(16)]++
			}
			n := 0
			for _, c := range def {
				n += int(c)
			}
			for range n {
				symbol := byte(rng.Uint32())
				if class == 0 {
					symbol &= 15
				}
				def = append(def, symbol)
			}
			tb := new(table)
			if tb.build(def); !tb.over {
				return tb
			}
		}
	}
	for range 3000 {
		n := rng.IntN(300)
		data := asmtest.Walled(t, n+padLast, true)
		for i := range n {
			data[i] = byte(rng.Uint32())
			if rng.IntN(4) == 0 {
				data[i] = 0
			}
		}
		blocks, mcus := 1+rng.IntN(6), 1+rng.IntN(5)
		var steps []step
		for i := range blocks {
			s := step{dc: tables(0), ac: tables(1), out: 64 * i, advance: 64 * blocks, comp: i % 3}
			s.skip = s.ac.skipTable()
			steps = append(steps, s)
		}
		seg := segment{to: n}
		var a, b cursor
		a.reset(&seg)
		b.reset(&seg)
		wall := asmtest.Walled(t, 2*64*blocks*mcus, true)
		coefs := asInt16(wall)
		want := make([]int16, len(coefs))
		other := slices.Clone(steps)
		decodeBlocks(&a, data, steps, coefs, mcus)
		decodeBlocksGeneric(&b, data, other, want, mcus)
		if a != b || !slices.Equal(coefs, want) {
			t.Fatalf("decoding ends at %+v and %+v", a, b)
		}
		a.reset(&seg)
		b.reset(&seg)
		skipBlocks(&a, data, steps, mcus)
		skipBlocksGeneric(&b, data, steps, mcus)
		if a != b {
			t.Fatalf("skipping ends at %+v and %+v", a, b)
		}
	}
}
