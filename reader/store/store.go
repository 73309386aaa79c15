// Package store is where the bytes of shards come from and go to: one small
// interface over local files, embedded files and object stores.
//
// A store opens an object for reading at any offset, lists names in byte
// order, and creates an object that exists for others only once it is
// committed. What more a store or an object can do stands in optional
// interfaces, each with a function that does the best it can without:
//
//	Stater       Stat       describe without opening
//	EntryOpener  OpenEntry  open what was described, and nothing else
//	Globber      Glob       find names by a pattern
//	Streamer     Stream     read in order
//	Gap          ReadSpans  read many pieces by few requests
//	Memory       Memory     tell what it holds for reading ahead
//
// Local and FS are the stores of this package; Cache, Spool, Limit, Meter and
// Count wrap any store. Handles keeps objects open. Expand makes names of patterns.
// Package storetest is the contract as tests.
package store

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"

	"shardtool/format"
)

// Store opens, lists and creates objects. Implementations are safe for use by
// several goroutines. Their errors are *format.Error and wrap ErrNotFound,
// ErrDenied or ErrIO, or are the error of the context.
type Store interface {
	// Open opens the object of that name for reading.
	Open(ctx context.Context, name string) (Object, error)
	// List yields the objects whose names begin with prefix, in byte order of
	// their names; a slash in them means nothing. None is no error. An error is
	// the last element.
	List(ctx context.Context, prefix string) iter.Seq2[Entry, error]
	// Create begins an object of that name. Nothing is visible under the name,
	// and what stood there stays, until Commit.
	Create(ctx context.Context, name string) (Sink, error)
}

// Object is an open object. It is safe for use by several goroutines.
type Object interface {
	// ReadAt fills p from offset off. It is never partial: n < len(p) comes
	// with an error, which is io.EOF only where the object ends. An object
	// that is shorter than its Stat says is ErrTruncated, one that was replaced
	// is ErrStale where the old bytes are gone. A negative off is ErrUsage.
	ReadAt(ctx context.Context, p []byte, off int64) (n int, err error)
	// Stat describes the object as it was when opened.
	Stat() Entry
	// Close releases it. No ReadAt may follow.
	Close() error
}

// Streamer is an optional interface of an Object that can be read in order
// more cheaply than at offsets, or only in order: Stat().Size is
// format.Unknown then, and ReadAt fails with ErrUnsupported.
type Streamer interface {
	// Stream returns the bytes from offset off to the end; from an offset
	// behind the end, none. Where the object can only be read in order, it may
	// be called once, with offset 0.
	Stream(ctx context.Context, off int64) (io.ReadCloser, error)
}

// Sink is an object being written. Exactly one of Commit and Abort ends it; a
// call after the first of them does nothing and returns nil, so that
// `defer sink.Abort()` is right.
type Sink interface {
	io.Writer
	// Commit makes the object visible under its name, whole.
	Commit() error
	// Abort throws away what was written. Nothing is left.
	Abort() error
}

// Finisher is an optional interface of a Sink that holds something scarce while
// it is written, such as an open file. Finish gives it back once everything is
// written; nothing becomes visible yet, and Commit or Abort still follows.
type Finisher interface {
	Finish() error
}

// Stream returns a reader over the object from offset off to its end, by its
// Streamer if it has one, else by ReadAt in pieces as large as the caller's.
// The reader ends promptly with the context's error when ctx ends. Closing it
// does not close the object.
func Stream(ctx context.Context, o Object, off int64) (io.ReadCloser, error) {
	if s, ok := o.(Streamer); ok {
		return s.Stream(ctx, off)
	}
	if off < 0 {
		return nil, negativeOffset(o.Stat().Name, off)
	}
	return &sequential{ctx: ctx, o: o, off: off, size: o.Stat().Size}, nil
}

// OpenStream opens an object and returns a reader over all of it, which closes
// the object as well.
func OpenStream(ctx context.Context, st Store, name string) (io.ReadCloser, error) {
	o, err := st.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	r, err := Stream(ctx, o, 0)
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return &objectReader{r, o}, nil
}

type objectReader struct {
	io.ReadCloser
	o Object
}

func (r *objectReader) Close() error { return errors.Join(r.ReadCloser.Close(), r.o.Close()) }

type sequential struct {
	ctx  context.Context
	o    Object
	off  int64
	size int64
}

func (s *sequential) Read(p []byte) (int, error) {
	left := s.size - s.off
	if left <= 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > left {
		p = p[:left]
	}
	n, err := s.o.ReadAt(s.ctx, p, s.off)
	s.off += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (s *sequential) Close() error { return nil }

// ReaderAt binds an object to a context, as an io.ReaderAt.
func ReaderAt(ctx context.Context, o Object) io.ReaderAt { return readerAt{ctx, o} }

type readerAt struct {
	ctx context.Context
	o   Object
}

func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return r.o.ReadAt(r.ctx, p, off) }

func nameError(name string, err error) error { return format.ReadError(err, format.In(name)) }

func byName(a, b Entry) int { return strings.Compare(a.Name, b.Name) }
