package store

import (
	"context"
	"io"
	"iter"
	"sync/atomic"
)

// Meter returns a store that reads and lists as st does and calls read with
// the number of bytes each time some were read. read may be called by several
// goroutines at a time.
func Meter(st Store, read func(n int)) Store { return newMeter(st, read, new(Counters)) }

// Counters are the calls that were made of a store and its objects, failed ones
// too, and the bytes that they delivered.
type Counters struct {
	Opens   atomic.Int64 // Open and OpenEntry
	Stats   atomic.Int64 // Stat
	Lists   atomic.Int64 // List, each listing once, and Glob
	Reads   atomic.Int64 // Object.ReadAt
	Streams atomic.Int64 // Streamer.Stream, or Stream of an object that has none
	Bytes   atomic.Int64 // by ReadAt and from streams
}

// Count returns a store that reads and lists as st does and adds up in c what
// it is asked for. Several stores may share one c.
func Count(st Store, c *Counters) Store {
	return newMeter(st, func(n int) { c.Bytes.Add(int64(n)) }, c)
}

func newMeter(st Store, read func(n int), c *Counters) Store {
	return &meterStore{wrapped{st}, read, c}
}

type meterStore struct {
	wrapped
	read  func(n int)
	count *Counters
}

func (s *meterStore) Open(ctx context.Context, name string) (Object, error) {
	s.count.Opens.Add(1)
	return s.meter(s.Store.Open(ctx, name))
}

func (s *meterStore) OpenEntry(ctx context.Context, e Entry) (Object, error) {
	s.count.Opens.Add(1)
	return s.meter(OpenEntry(ctx, s.Store, e))
}

func (s *meterStore) meter(o Object, err error) (Object, error) {
	if err != nil {
		return nil, err
	}
	return meterObject{o, s}, nil
}

func (s *meterStore) Stat(ctx context.Context, name string) (Entry, error) {
	s.count.Stats.Add(1)
	return s.wrapped.Stat(ctx, name)
}

func (s *meterStore) List(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		s.count.Lists.Add(1)
		s.Store.List(ctx, prefix)(yield)
	}
}

func (s *meterStore) Glob(ctx context.Context, pattern string) ([]string, error) {
	s.count.Lists.Add(1)
	return s.wrapped.Glob(ctx, pattern)
}

type meterObject struct {
	Object
	s *meterStore
}

func (o meterObject) Gap() int64 { return Gap(o.Object) }

func (o meterObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	o.s.count.Reads.Add(1)
	n, err := o.Object.ReadAt(ctx, p, off)
	o.s.read(n)
	return n, err
}

func (o meterObject) Stream(ctx context.Context, off int64) (io.ReadCloser, error) {
	o.s.count.Streams.Add(1)
	r, err := Stream(ctx, o.Object, off)
	if err != nil {
		return nil, err
	}
	return meterReader{r, o.s.read}, nil
}

type meterReader struct {
	io.ReadCloser
	read func(n int)
}

func (r meterReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.read(n)
	return n, err
}
