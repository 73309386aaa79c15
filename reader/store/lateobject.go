package store

import (
	"context"
	"io"
	"sync/atomic"
)

// lateObject is an object that is opened when it is needed, and known before.
type lateObject struct {
	st      Store
	entry   Entry
	opening chan struct{} // held while it is opened
	object  atomic.Pointer[Object]
}

// late returns an object of a store, which may be open already.
func late(st Store, e Entry, object Object) *lateObject {
	o := &lateObject{st: st, entry: e, opening: make(chan struct{}, 1)}
	if object != nil {
		o.object.Store(&object)
	}
	return o
}

func (o *lateObject) Stat() Entry { return o.entry }

func (o *lateObject) Close() error {
	if object := o.opened(); object != nil {
		return object.Close()
	}
	return nil
}

// opened returns the object if it is open, else nil.
func (o *lateObject) opened() Object {
	if object := o.object.Load(); object != nil {
		return *object
	}
	return nil
}

// source returns the object, opened.
func (o *lateObject) source(ctx context.Context) (Object, error) {
	select {
	case o.opening <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-o.opening }()
	if object := o.opened(); object != nil {
		return object, nil
	}
	object, err := OpenEntry(ctx, o.st, o.entry)
	if err != nil {
		return nil, err
	}
	o.object.Store(&object)
	return object, nil
}

// within cuts what is to be read at an offset to what the object has there: end
// is io.EOF where that is less.
func (o *lateObject) within(ctx context.Context, p []byte, off int64) (part []byte, end, err error) {
	switch left := max(o.entry.Size-off, 0); {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case off < 0:
		return nil, nil, negativeOffset(o.entry.Name, off)
	case int64(len(p)) > left:
		return p[:left], io.EOF, nil
	}
	return p, nil, nil
}
