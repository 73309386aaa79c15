// Package reader opens shards and yields their samples, whatever their format
// (TFRecord or WebDataset tar), compression (none, gzip, zlib, zstd: told by
// the content) and store.
//
// [OpenShard] reads one shard. [Open] and [New] make a [Dataset] of several,
// [Mix] one of several datasets:
//
//	Dataset.Samples   every sample in order
//	Dataset.Sample    one sample, by shard and number
//	Dataset.Manifest  the shards with their sizes and numbers of samples
//	Dataset.Run       a stretch of one shard, in order
//	Dataset.Places    where the samples of one shard stand, so that they can be
//	                  fetched one by one and read by a Parser
//
// What a sample is and who owns its memory is said in package format.
//
// # Counts and places
//
// How many samples a shard has and where they stand is taken from, in this
// order: the manifest file that the dataset was opened by; a cache of what was
// found out before, which goes by the size and version of a shard; an index
// beside the shard that fits it (package format/index); the headers of the
// shard itself, if it is a local file that is not compressed. Others are read
// only if [ScanAlways] asks for it.
//
// Samples are numbered as [format.Sample] says, so that one that is faulty
// keeps its number, and reading it gives its error. Under Options that leave
// samples out (OnMissing: MissingSkip, and OnError other than Stop) the numbers
// are of those that are delivered, and no index is believed.
package reader

import (
	"context"
	"math"
	"sort"
	"strings"
	"sync"

	"shardtool/format"
	"shardtool/reader/store"
)

// Dataset is a list of shards. It may be used by several goroutines.
type Dataset struct {
	sets  []*set // of each part
	parts []Part
	names []string

	once   sync.Once
	number map[string]int // of the first shard of each name
}

// Part is a part of a Dataset that has its own share in a mix.
type Part struct {
	First  int     // number of its first shard
	N      int     // how many shards it has
	Weight float64 // its share in proportion to the others
}

// Weighted is a dataset and its share in a mix.
type Weighted struct {
	Dataset *Dataset
	Weight  float64 // positive; only its proportion to the others counts
}

// Open makes a dataset of what a pattern stands for in the store of o: paths or
// addresses, globs ("*" does not cross a slash, "**" does), brace lists
// ("train-{000..127}.tar"), and several of them joined by "::". The shards
// stand in the order given, the matches of a glob in byte order. It opens none
// of them.
//
// A pattern that begins with "@" or ends in ".json" is the name of a manifest
// instead, as `shardtool index --manifest` and widsindex write it: names of
// shards as seen from its folder, sizes and counts. "train.json" and
// "@train.json" are the same; "@train" is for other names. A manifest does not
// say where samples stand: see Places, which finds that out when it is asked.
func Open(ctx context.Context, pattern string, o *Options) (*Dataset, error) {
	st := storeOf(o)
	name, marked := strings.CutPrefix(pattern, "@")
	if marked || strings.HasSuffix(pattern, ".json") {
		return openManifest(ctx, st, name, o)
	}
	shards, err := store.Expand(ctx, st, pattern)
	if err != nil {
		return nil, err
	}
	return New(st, shards, o), nil
}

// storeOf returns the store to open from where none is given.
func storeOf(o *Options) store.Store {
	if o != nil && o.Store != nil {
		return o.Store
	}
	return defaultStore()
}

// New makes a dataset of the named shards of a store, in the order given.
func New(st store.Store, shards []string, o *Options) *Dataset {
	return of(newSet(st, shards, o))
}

func of(s *set) *Dataset {
	return &Dataset{sets: []*set{s}, parts: []Part{{N: len(s.names), Weight: 1}}, names: s.names}
}

// Mix makes one dataset of several, whose shards stand one after the other.
// Each keeps its own store and options, and shares what it knows of its shards.
// A mix within a mix divides the weight that it is given.
func Mix(parts ...Weighted) (*Dataset, error) {
	d := &Dataset{}
	if len(parts) == 0 {
		return nil, format.Errorf(format.ErrUsage, format.Nowhere, "a mix of no datasets")
	}
	for i, p := range parts {
		switch {
		case p.Dataset == nil:
			return nil, format.Errorf(format.ErrUsage, format.Nowhere, "dataset %d of the mix is nil", i)
		case !(p.Weight > 0) || math.IsInf(p.Weight, 1):
			return nil, format.Errorf(format.ErrUsage, format.Nowhere, "dataset %d of the mix has the weight %v; it has to be positive", i, p.Weight)
		}
		all := 0.0
		for _, part := range p.Dataset.parts {
			all += part.Weight
		}
		for k, part := range p.Dataset.parts {
			d.sets = append(d.sets, p.Dataset.sets[k])
			d.parts = append(d.parts, Part{First: len(d.names) + part.First, N: part.N, Weight: p.Weight * (part.Weight / all)})
		}
		d.names = append(d.names, p.Dataset.names...)
	}
	return d, nil
}

// Shards returns the names of the shards of all parts, in order. The slice
// belongs to the dataset.
func (d *Dataset) Shards() []string { return d.names }

// Parts returns the parts of a mix, and one of weight 1 for a dataset that is
// none. The slice belongs to the dataset.
func (d *Dataset) Parts() []Part { return d.parts }

// Store returns where a shard is read from.
func (d *Dataset) Store(shard int) store.Store {
	s, _ := d.at(shard)
	return s.st
}

// Through returns the same dataset, read through other stores: what wrap makes
// of each store that it is read from. It is called once for each part, and once
// for parts that are the same dataset. What is known of the shards, and what is
// found out by either, they share.
func (d *Dataset) Through(wrap func(store.Store) store.Store) *Dataset {
	by := make(map[*set]*set)
	t := &Dataset{parts: d.parts, names: d.names}
	for _, s := range d.sets {
		if by[s] == nil {
			by[s] = &set{wrap(s.st), s.shards}
		}
		t.sets = append(t.sets, by[s])
	}
	return t
}

// ReadOptions returns how a shard is read. They belong to the dataset.
func (d *Dataset) ReadOptions(shard int) *Options {
	s, _ := d.at(shard)
	return &s.opts
}

// at returns the set of a shard and its number there.
func (d *Dataset) at(shard int) (*set, int) {
	if len(d.parts) == 1 {
		return d.sets[0], shard
	}
	k := sort.Search(len(d.parts), func(k int) bool { return d.parts[k].First+d.parts[k].N > shard })
	return d.sets[k], shard - d.parts[k].First
}

// byName returns the number of the first shard of that name.
func (d *Dataset) byName(name string) (int, bool) {
	d.once.Do(func() {
		d.number = make(map[string]int, len(d.names))
		for i, n := range d.names {
			if _, twice := d.number[n]; !twice {
				d.number[n] = i
			}
		}
	})
	i, ok := d.number[name]
	return i, ok
}

// Shard opens the shard of that number. One that has changed since the
// manifest was made is ErrStale.
func (d *Dataset) Shard(ctx context.Context, i int) (*Shard, error) {
	s, k := d.at(i)
	return s.shard(ctx, k, &s.opts)
}
