package order

// Purpose keeps random numbers for different uses apart.
type Purpose uint64

const (
	// ForAugment is what the operations on a copy of a sample draw from:
	// Hash(seed, ForAugment, epoch, shard, index, copy).
	ForAugment Purpose = 1 + iota
)

// Hash is the only source of randomness: a function of the seed, of what the
// number is for, and of counters that say which one it is. Each word goes
// through the finaliser of SplitMix64, so that every bit of it moves every bit
// of the result. It allocates nothing.
func Hash(seed uint64, purpose Purpose, counters ...uint64) uint64 {
	h := mix(seed + golden)
	h = mix(h ^ uint64(purpose) + golden)
	for _, c := range counters {
		h = mix(h ^ c + golden)
	}
	return h
}

const golden = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Draws returns the hash that operations on this copy of the sample draw from.
func (r Ref) Draws(seed uint64) uint64 {
	return Hash(seed, ForAugment, uint64(r.Epoch), uint64(r.Shard), uint64(r.Index), uint64(r.Copy))
}
