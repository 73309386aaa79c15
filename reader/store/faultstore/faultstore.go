// Package faultstore wraps a store and lets chosen calls fail, to show what
// the code above a store does then: a full disk, a closed pipe, a rename that
// is refused, a read that breaks off.
package faultstore

import (
	"context"
	"iter"
	"path"
	"sync"

	"shardtool/format"
	"shardtool/reader/store"
)

// Op names the calls that a Fault can be set on.
type Op uint8

const (
	Open   Op = iota // Store.Open
	Read             // Object.ReadAt
	List             // Store.List
	Create           // Store.Create
	Write            // Sink.Write
	Finish           // Sink.Finish
	Commit           // Sink.Commit
)

// Fault lets calls of one kind fail.
type Fault struct {
	Op    Op
	Name  string // of the object, as path.Match has it; "" is any
	After int64  // bytes (of Read and Write) or calls (of others) that go well first, of all names that match together
	Times int    // how many calls then fail, before all go well again; 0: all
	Err   error  // what the store reports, as an *format.Error that wraps ErrIO, ErrDenied or ErrNotFound
}

// Store is a store with faults. Calls that meet none are those of the store it
// wraps. A Sink whose Commit fails is aborted, as the contract has it.
type Store struct {
	store.Store

	mu     sync.Mutex
	faults []*Fault
	calls  []Call
}

// Call is a Create, Commit or Abort that was made.
type Call struct {
	Op   string // create, commit or abort
	Name string
}

// New wraps st.
func New(st store.Store, faults ...Fault) *Store {
	s := &Store{Store: st}
	for _, f := range faults {
		s.faults = append(s.faults, &f)
	}
	return s
}

// Calls returns what was created and how it ended, in order.
func (s *Store) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

func (s *Store) note(op, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, Call{op, name})
}

// check counts n against the faults of op. It returns how many of n still go
// well, and the error that ends them.
func (s *Store) check(op Op, name string, n int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if ok, _ := path.Match(f.Name, name); f.Op != op || f.Name != "" && !ok {
			continue
		}
		if f.After >= n {
			f.After -= n
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				f.Times = -1 // over
			}
		} else if f.Times < 0 {
			continue
		}
		n, f.After = f.After, 0
		return n, format.ReadError(f.Err, format.In(name))
	}
	return n, nil
}

// Stat is the wrapped store's, and never fails of itself.
func (s *Store) Stat(ctx context.Context, name string) (store.Entry, error) {
	return store.Stat(ctx, s.Store, name)
}

// Glob is the wrapped store's, and never fails of itself.
func (s *Store) Glob(ctx context.Context, pattern string) ([]string, error) {
	return store.Glob(ctx, s.Store, pattern)
}

// Memory is what the wrapped store says.
func (s *Store) Memory() int64 { return store.Memory(s.Store) }

// Open opens an object whose reads may fail. Its streams read by ReadAt.
func (s *Store) Open(ctx context.Context, name string) (store.Object, error) {
	return s.open(name, func() (store.Object, error) { return s.Store.Open(ctx, name) })
}

// OpenEntry is as Open.
func (s *Store) OpenEntry(ctx context.Context, e store.Entry) (store.Object, error) {
	return s.open(e.Name, func() (store.Object, error) { return store.OpenEntry(ctx, s.Store, e) })
}

func (s *Store) open(name string, open func() (store.Object, error)) (store.Object, error) {
	if _, err := s.check(Open, name, 1); err != nil {
		return nil, err
	}
	o, err := open()
	if err != nil {
		return nil, err
	}
	return &object{o, s, name}, nil
}

// List lists until a fault.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for e, err := range s.Store.List(ctx, prefix) {
			if err == nil {
				_, err = s.check(List, e.Name, 1)
			}
			if err != nil {
				yield(store.Entry{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Create begins an object whose writes, finish and commit may fail.
func (s *Store) Create(ctx context.Context, name string) (store.Sink, error) {
	if _, err := s.check(Create, name, 1); err != nil {
		return nil, err
	}
	k, err := s.Store.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	s.note("create", name)
	return &sink{k, s, name}, nil
}

type object struct {
	store.Object
	s    *Store
	name string
}

func (o *object) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	good, fault := o.s.check(Read, o.name, int64(len(p)))
	n, err := o.Object.ReadAt(ctx, p[:good], off)
	if err == nil {
		err = fault
	}
	return n, err
}

type sink struct {
	store.Sink
	s    *Store
	name string
}

func (k *sink) Write(p []byte) (int, error) {
	good, fault := k.s.check(Write, k.name, int64(len(p)))
	n, err := k.Sink.Write(p[:good])
	if err == nil {
		err = fault
	}
	return n, err
}

func (k *sink) Finish() error {
	if _, err := k.s.check(Finish, k.name, 1); err != nil {
		return err
	}
	if f, ok := k.Sink.(store.Finisher); ok {
		return f.Finish()
	}
	return nil
}

func (k *sink) Commit() error {
	if _, err := k.s.check(Commit, k.name, 1); err != nil {
		_ = k.Sink.Abort()
		k.s.note("abort", k.name)
		return err
	}
	k.s.note("commit", k.name)
	return k.Sink.Commit()
}

func (k *sink) Abort() error {
	k.s.note("abort", k.name)
	return k.Sink.Abort()
}
