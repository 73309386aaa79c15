// Package reader opens shards and yields their samples, whatever their format
// (TFRecord or WebDataset tar), compression (none, gzip, zlib, zstd: told by
// the content) and store.
//
// [OpenShard] reads one shard; [Open] and [New] make a [Dataset] of several.
// What a sample is and who owns its memory is said in package format.
package reader

import (
	"context"
	"iter"

	"shardtool/format"
	"shardtool/reader/store"
)

// Dataset is a list of shards of one store.
type Dataset struct {
	store  store.Store
	shards []string
	opts   Options
}

// Open makes a dataset of local shards: paths, globs ("*" does not cross a
// slash, "**" does), brace lists ("train-{000..127}.tar") and several of them
// joined by "::". The shards stand in the order given, the matches of a glob
// in byte order. It opens none of them.
func Open(ctx context.Context, pattern string, o *Options) (*Dataset, error) {
	st := &store.Local{}
	shards, err := store.Expand(ctx, st, pattern)
	if err != nil {
		return nil, err
	}
	return New(st, shards, o), nil
}

// New makes a dataset of the named shards of a store, in the order given.
func New(st store.Store, shards []string, o *Options) *Dataset {
	return &Dataset{store: st, shards: shards, opts: o.orDefault()}
}

// Shards returns the names of the shards. The slice belongs to the dataset.
func (d *Dataset) Shards() []string { return d.shards }

// Shard opens the shard of that number.
func (d *Dataset) Shard(ctx context.Context, i int) (*Shard, error) {
	return OpenShard(ctx, d.store, d.shards[i], &d.opts)
}

// Samples yields the samples of all shards in order, each lent until the next
// iteration. An error is the last element.
func (d *Dataset) Samples(ctx context.Context) iter.Seq2[*format.Sample, error] {
	return func(yield func(*format.Sample, error) bool) {
		for i := range d.shards {
			if !d.shard(ctx, i, yield) {
				return
			}
		}
	}
}

func (d *Dataset) shard(ctx context.Context, i int, yield func(*format.Sample, error) bool) bool {
	s, err := d.Shard(ctx, i)
	if err != nil {
		yield(nil, err)
		return false
	}
	defer s.Close()
	for sample, err := range s.Samples() {
		if !yield(sample, err) || err != nil {
			return false
		}
	}
	return true
}
