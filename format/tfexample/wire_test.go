package tfexample

import (
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPropertyVarints holds counting and decoding of packed numbers against
// encoding/binary, on sound lists and on damaged ones.
func TestPropertyVarints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Uint64Range(0, 1<<16)
		values := rapid.SliceOf(rapid.OneOf(rapid.Uint64Range(0, 127), small, small, rapid.Uint64())).Draw(t, "values")
		var p []byte
		want := []int64{}
		for _, v := range values {
			p = binary.AppendUvarint(p, v)
			want = append(want, int64(v))
		}
		got, ok := appendVarints([]int64{}, p)
		n, sound := countVarints(p)
		if !ok || !sound || n != len(want) || !slices.Equal(got, want) {
			t.Fatalf("%x: %v (%v), counted %d (%v), want %v", p, got, ok, n, sound, want)
		}
		if len(p) == 0 {
			return
		}
		for range rapid.IntRange(1, 20).Draw(t, "damages") {
			p[rapid.IntRange(0, len(p)-1).Draw(t, "at")] |= 0x80
		}
		got, ok = appendVarints(nil, p)
		n, sound = countVarints(p)
		if ok != sound || ok && n != len(got) {
			t.Fatalf("%x: decoded %d (%v), counted %d (%v)", p, len(got), ok, n, sound)
		}
	})
}
