package store

import "context"

// wrapped is what decorators have in common: the optional interfaces of a
// store, as those of the one below or what takes their place.
type wrapped struct{ Store }

func (w wrapped) Stat(ctx context.Context, name string) (Entry, error) {
	return Stat(ctx, w.Store, name)
}

func (w wrapped) Glob(ctx context.Context, pattern string) ([]string, error) {
	return Glob(ctx, w.Store, pattern)
}

func (w wrapped) below() Store { return w.Store }

func (w wrapped) Memory() int64 { return Memory(w.Store) }
