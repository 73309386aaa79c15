package order

import "math/bits"

// Purpose keeps random numbers for different uses apart.
type Purpose uint64

const (
	ForAugment Purpose = 1 + iota // what operations on a copy of a sample draw from: Ref.Draws
	ForWrapped                    // the same for what fills a tail
	ForMix                        // what operations on a whole batch draw from: MixDraws
	ForPermute                    // the permutation of samples
	ForShards                     // the permutation of shards
	ForRun                        // which of the open shards is next
	ForStream                     // what leaves the buffer behind the open shards
	ForEcho                       // what leaves the buffer behind the echo of samples or shards
	ForBatches                    // what leaves the buffer behind the echo of batches
)

// Hash is the only source of randomness: a function of the seed, of what the
// number is for, and of counters that say which one it is. Each word goes
// through the finaliser of SplitMix64, so that every bit of it moves every bit
// of the result. It allocates nothing.
func Hash(seed uint64, purpose Purpose, counters ...uint64) uint64 {
	h := extend(mix(seed+golden), uint64(purpose))
	for _, c := range counters {
		h = extend(h, c)
	}
	return h
}

// extend adds a counter to a hash, so that what counters have in common need
// be hashed only once.
func extend(h, counter uint64) uint64 { return mix((h ^ counter) + golden) }

const golden = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below makes a number from 0 to n-1 of a hash. It favours none by more than
// n in 2^64.
func below(h uint64, n int) int {
	hi, _ := bits.Mul64(h, uint64(n))
	return int(hi)
}

// Draws returns the hash that operations on this copy of the sample draw from:
// Hash(seed, ForAugment, epoch, shard, index, copy), with the pass in the
// upper half of the last, and ForWrapped for what is Wrapped.
func (r Ref) Draws(seed uint64) uint64 {
	purpose := ForAugment
	if r.Kind == Wrapped {
		purpose = ForWrapped
	}
	copies := uint64(uint32(r.Copy)) | uint64(uint32(r.Pass))<<32
	return Hash(seed, purpose, uint64(r.Epoch), uint64(r.Shard), uint64(r.Index), copies)
}

// MixDraws returns the hash that operations on a rank's whole batch draw from.
func MixDraws(seed uint64, epoch int32, step int64, rank int) uint64 {
	return Hash(seed, ForMix, uint64(epoch), uint64(step), uint64(rank))
}
