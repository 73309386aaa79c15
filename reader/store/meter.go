package store

import (
	"context"
	"io"
)

// Meter returns a store that reads and lists as st does and calls read with
// the number of bytes each time some were read. read may be called by several
// goroutines at a time.
func Meter(st Store, read func(n int)) Store { return meterStore{st, read} }

type meterStore struct {
	Store
	read func(n int)
}

func (s meterStore) Open(ctx context.Context, name string) (Object, error) {
	o, err := s.Store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return meterObject{o, s.read}, nil
}

type meterObject struct {
	Object
	read func(n int)
}

func (o meterObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := o.Object.ReadAt(ctx, p, off)
	o.read(n)
	return n, err
}

func (o meterObject) Stream(ctx context.Context, off int64) (io.ReadCloser, error) {
	if s, ok := o.Object.(Streamer); ok {
		r, err := s.Stream(ctx, off)
		if err != nil {
			return nil, err
		}
		return meterReader{r, o.read}, nil
	}
	// The sequential reader counts by calling ReadAt of this object.
	return &sequential{ctx: ctx, o: o, off: off, size: o.Stat().Size}, nil
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
