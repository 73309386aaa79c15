package augment_test

import (
	"testing"

	"shardtool/augment"
)

// The first outputs for seed 1234567, as published for SplitMix64 in several
// languages.
func TestStreamIsSplitMix64(t *testing.T) {
	s := augment.StreamOfState(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := s.Uint64(); got != want {
			t.Errorf("output %d is %d, want %d", i, got, want)
		}
	}
}
