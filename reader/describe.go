package reader

import (
	"context"
	"errors"
	"strings"

	"shardtool/format"
	"shardtool/reader/store"
)

// A listing is asked for instead of single shards from so many on, and given up
// where it goes on for this much longer than the shards would need.
const (
	listFrom  = 16
	listWaste = 10_000 // names, and three for each shard
)

// sidecars is which indexes stand beside remote shards, so that not each has to
// be asked for.
type sidecars struct {
	prefix string          // of the names that were listed
	names  map[string]bool // of those, what ends in .idx
	none   bool            // some were looked for, and none was there
}

// describe asks the store for size and version of all shards.
func (s *set) describe(ctx context.Context) error {
	listed, err := s.list(ctx)
	if err != nil {
		return err
	}
	shards := s.distinct()
	err = s.together(ctx, shards, func(ctx context.Context, i int) error {
		o, ok := listed[s.names[i]]
		if !ok {
			var err error
			if o, err = store.Stat(ctx, s.st, s.names[i]); err != nil {
				return s.missing(i, err)
			}
		}
		o.Name = s.names[i]
		s.about[i].entry.Store(newEntry(o))
		return nil
	})
	if err == nil && s.beside.Load() == nil {
		s.beside.Store(s.probe(ctx, shards))
	}
	return err
}

// missing deals with a shard that cannot be described.
func (s *set) missing(i int, err error) error {
	if !s.skipsMissing(err) {
		return err
	}
	s.warn(err.Error() + "; it is left out")
	s.about[i].entry.Store(&Entry{Name: s.names[i], Missing: true})
	return nil
}

// list describes many shards of a remote store by few requests. It returns nil
// where that is not possible, or not worth it.
func (s *set) list(ctx context.Context) (map[string]store.Entry, error) {
	if len(s.names) < listFrom {
		return nil, nil
	}
	prefix := s.names[0]
	for _, n := range s.names {
		prefix = commonPrefix(prefix, n)
	}
	// A listing needs more to begin with than s3:// and the name of a bucket.
	if _, path, ok := strings.Cut(prefix, "://"); !ok || !store.IsAddress(prefix) || strings.HasPrefix(prefix, "http") || !strings.Contains(path, "/") {
		return nil, nil
	}
	found := make(map[string]store.Entry, len(s.names))
	for _, n := range s.names {
		found[n] = store.Entry{}
	}
	beside := &sidecars{prefix: prefix, names: make(map[string]bool)}
	seen, most := 0, listWaste+3*len(s.names)
	for e, err := range s.st.List(ctx, prefix) {
		if seen++; err != nil || seen > most {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return complete(found), nil // what is left is asked for one by one
		}
		if _, ok := found[e.Name]; ok {
			found[e.Name] = e
		} else if strings.HasSuffix(e.Name, indexSuffix) {
			beside.names[e.Name] = true
		}
	}
	s.beside.Store(beside)
	return complete(found), nil
}

// complete leaves what a listing did not have to be asked for.
func complete(found map[string]store.Entry) map[string]store.Entry {
	for n, e := range found {
		if e.Name == "" {
			delete(found, n)
		}
	}
	return found
}

func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// probe looks beside a few remote shards, so as not to ask for the index of
// each where there are none.
func (s *set) probe(ctx context.Context, shards []int) *sidecars {
	if len(shards) < 4 || !store.IsAddress(s.names[shards[0]]) || s.opts.Index != "" {
		return nil
	}
	for _, k := range []int{0, len(shards) / 2, len(shards) - 1} {
		names, _ := s.opts.indexNames(s.names[shards[k]])
		for _, n := range names {
			if _, err := store.Stat(ctx, s.st, n); err == nil || !errors.Is(err, format.ErrNotFound) && !errors.Is(err, format.ErrDenied) {
				return nil
			}
		}
	}
	return &sidecars{none: true}
}

// may reports whether a listing leaves it possible that a name is there.
func (b *sidecars) may(name string) bool {
	switch {
	case b == nil:
		return true
	case b.none:
		return false
	}
	return b.names[name] || !strings.HasPrefix(name, b.prefix)
}
