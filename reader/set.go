package reader

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"shardtool/format"
	"shardtool/reader/store"
)

// set is shards, and where they are read from. Datasets that are mixed of others
// share it.
type set struct {
	st store.Store
	*shards
}

// shards are some that are read by the same options, and what is known of them,
// whichever store they are read through.
type shards struct {
	names  []string
	opts   Options
	about  []about
	listed bool // entries were there from the start, from a manifest file

	once  sync.Once
	first []int32 // of each shard, the first of the same name; nil: all differ

	mu   sync.Mutex
	busy map[int]chan struct{} // shards of which somebody is finding out

	making    chan struct{} // full while the manifest is being made
	made      atomic.Pointer[Manifest]
	beside    atomic.Pointer[sidecars] // what a listing showed; nil: there was none
	fetchers  sync.Pool                // of *fetched
	cacheOnce sync.Once
	counts    *countCache
}

// about is what is known of one shard. Of those with the same name the first is
// used.
type about struct {
	entry  atomic.Pointer[Entry]
	places atomic.Pointer[Places]
	typ    atomic.Uint32         // of its records, once that is settled
	none   atomic.Pointer[error] // why there are no places
}

func newSet(st store.Store, names []string, o *Options) *set {
	return &set{st, &shards{
		names: names, opts: o.orDefault(), about: make([]about, len(names)),
		busy: make(map[int]chan struct{}), making: make(chan struct{}, 1),
	}}
}

// same returns the number of the first shard that has the name of shard i.
func (s *set) same(i int) int {
	s.once.Do(func() {
		byName := make(map[string]int32, len(s.names))
		first := make([]int32, len(s.names))
		for i, n := range s.names {
			at, twice := byName[n]
			if !twice {
				at = int32(i)
				byName[n] = at
			}
			first[i] = at
		}
		if len(byName) < len(s.names) {
			s.first = first
		}
	})
	if s.first == nil {
		return i
	}
	return int(s.first[i])
}

// lock lets one goroutine at a time find out about a shard.
func (s *set) lock(ctx context.Context, i int) (unlock func(), err error) {
	for {
		s.mu.Lock()
		other, busy := s.busy[i]
		if !busy {
			mine := make(chan struct{})
			s.busy[i] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.busy, i)
				s.mu.Unlock()
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// open opens the object of a shard, which has to be the one that is known.
func (s *set) open(ctx context.Context, i int) (store.Object, error) {
	e := store.Entry{Name: s.names[i], Size: format.Unknown}
	if known := s.about[s.same(i)].entry.Load(); known != nil {
		e.Size, e.Version = known.Size, known.Version
	}
	if e.Size < 0 && e.Version == "" {
		return s.st.Open(ctx, e.Name)
	}
	return store.OpenEntry(ctx, s.st, e)
}

// shard opens a shard to be read from its start.
func (s *set) shard(ctx context.Context, i int, o *Options) (*Shard, error) {
	if e := s.about[s.same(i)].entry.Load(); e != nil && e.Missing {
		return s.nothing(i), nil
	}
	object, err := s.open(ctx, i)
	if err != nil {
		if s.skipsMissing(err) {
			return s.nothing(i), nil
		}
		return nil, err
	}
	opts := *o
	if t, ok := s.settled(i); ok {
		opts.Type = t
	}
	opts.onType = func(t Type) { s.settle(i, t) }
	in, err := streamOf(ctx, object, s.names[i], &opts)
	if err != nil {
		return nil, err
	}
	return shardOf(ctx, in, &opts), nil
}

func (s *set) skipsMissing(err error) bool {
	return s.opts.OnMissingShard == format.MissingSkip && errors.Is(err, format.ErrNotFound)
}

// nothing stands in for a shard that is not there.
func (s *set) nothing(i int) *Shard {
	return &Shard{stream: &Stream{Name: s.names[i]}, source: noSource{}}
}

type noSource struct{}

func (noSource) next() (*format.Sample, error)      { return nil, io.EOF }
func (noSource) skipped() map[string]int64          { return nil }
func (noSource) warnings() map[format.Warning]int64 { return nil }
func (noSource) members() int64                     { return 0 }
func (noSource) end() int64                         { return 0 }
func (noSource) resume() bool                       { return false }

// settled returns what the records of a shard are, if that is known.
func (s *set) settled(i int) (Type, bool) {
	if s.opts.Type != AutoType {
		return s.opts.Type, true
	}
	t := Type(s.about[s.same(i)].typ.Load())
	return t, t != AutoType
}

func (s *set) settle(i int, t Type) { s.about[s.same(i)].typ.Store(uint32(t)) }

// typeOf finds out what the records of a shard are, by its first ones. It is
// AutoType for a tar.
func (s *set) typeOf(ctx context.Context, i int, f Format) (Type, error) {
	if f == Tar {
		return AutoType, nil
	}
	if t, ok := s.settled(i); ok {
		return t, nil
	}
	in, err := s.shard(ctx, i, &s.opts)
	if err != nil {
		return AutoType, err
	}
	defer in.Close()
	r, ok := in.source.(*recordSource)
	if !ok {
		return AutoType, nil
	}
	r.onType = nil
	r.guess()
	if broken(r.err) {
		return AutoType, r.err
	}
	s.settle(i, r.typ)
	return r.typ, nil
}

// broken reports whether an error is none of the bytes of a shard: they could
// not be read, or nobody waits for them any more.
func broken(err error) bool {
	if err == nil || err == io.EOF {
		return false
	}
	switch format.Sentinel(err) {
	case nil, format.ErrIO, format.ErrDenied, format.ErrNotFound, format.ErrStale, format.ErrUsage:
		return true
	}
	return false
}
