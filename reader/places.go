package reader

import "context"

// Places is where the samples of one shard stand. It is not changed any more
// and may be used by several goroutines. It takes 8 bytes a sample, 16 where
// samples that are left out lie between.
type Places struct {
	offsets []int64 // of each sample, and the end of the last where ends is nil
	ends    []int64 // nil: each ends where the next begins
	format  Format
}

// Len returns the number of samples.
func (p *Places) Len() int {
	if p.ends != nil {
		return len(p.offsets)
	}
	return max(len(p.offsets)-1, 0)
}

// At returns where sample i begins and where what follows it does, in bytes.
// What lies between is what Parser.Sample wants.
func (p *Places) At(i int) (off, end int64) {
	if p.ends != nil {
		return p.offsets[i], p.ends[i]
	}
	return p.offsets[i], p.offsets[i+1]
}

// Format returns the format of the shard.
func (p *Places) Format() Format { return p.format }

// end returns where the last sample ends.
func (p *Places) end() int64 {
	switch n := len(p.offsets); {
	case n == 0:
		return 0
	case p.ends != nil:
		return p.ends[n-1]
	default:
		return p.offsets[n-1]
	}
}

// holds reports whether sample i may begin at an offset.
func (p *Places) holds(i, offset int64) bool {
	if i >= int64(p.Len()) {
		return false
	}
	off, end := p.At(int(i))
	return off <= offset && (offset < end || off == end)
}

// Places returns where the samples of a shard stand: from an index, the cache
// or the headers of the shard, as the package comment says. They are found out
// once and kept. Where they cannot be, ErrUnsupported says what to do about it.
func (d *Dataset) Places(ctx context.Context, shard int) (*Places, error) {
	s, i := d.at(shard)
	p, err := s.places(ctx, i)
	if err == nil { // a Parser needs to know the type
		_, err = s.typeOf(ctx, i, p.format)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}
