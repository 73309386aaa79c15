package shard

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/reader/store"
)

// Sink is the set of files that one operation writes. None of them is visible
// until all are complete: then they get their names together, in the order in
// which they were created, and those of CreateLast after all others, as the
// mark that the set is whole.
//
//	s := NewSink(ctx, o)
//	defer s.Abort()
//	out, err := s.Create("train-000000.tar.gz", compress.Gzip)
//	... out.Write, out.Close, for each
//	err = s.Commit()
//
// Until Commit begins, an error, Abort or the end of the context leaves what
// was there before and nothing else, and of a remote store takes back what was
// sent. "-" and what exists and is no regular
// file (a pipe, a device) are written in place: there nothing can be taken
// back.
//
// Methods may be called by several goroutines, those of one Output by one at a
// time.
type Sink struct {
	ctx    context.Context
	inner  context.Context // ends with ctx until Commit begins
	cancel context.CancelFunc
	detach func() bool
	opts   SinkOptions

	mu    sync.Mutex
	names map[string]bool
	outs  []*Output
	last  []*Output
	ended bool
}

// SinkOptions says how outputs are written. The zero value and nil are good
// defaults.
type SinkOptions struct {
	Store store.Store // nil: the local file system
	Force bool        // replace existing files; else they are ErrUsage
	Level int         // of compression; 0: the default of each
}

// NewSink begins a set of outputs.
func NewSink(ctx context.Context, o *SinkOptions) *Sink {
	s := &Sink{ctx: ctx, names: map[string]bool{}}
	if o != nil {
		s.opts = *o
	}
	if s.opts.Store == nil {
		s.opts.Store = &store.Local{}
	}
	// A set that is being named is not interrupted halfway.
	s.inner, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.detach = context.AfterFunc(ctx, s.cancel)
	return s
}

// Create begins an output. A name that another output of the set has, and,
// without Force, that of an existing file, is ErrUsage.
func (s *Sink) Create(name string, k compress.Kind) (*Output, error) {
	return s.create(name, k, false)
}

// CreateLast begins an output that gets its name after all others: an index or
// a manifest.
func (s *Sink) CreateLast(name string, k compress.Kind) (*Output, error) {
	return s.create(name, k, true)
}

func (s *Sink) create(name string, k compress.Kind, last bool) (*Output, error) {
	if err := s.reserve(name); err != nil {
		return nil, err
	}
	if err := s.vacant(name); err != nil {
		return nil, err
	}
	sink, err := s.opts.Store.Create(s.inner, name)
	if err != nil {
		return nil, s.cause(err)
	}
	out := &Output{s: s, name: name, sink: sink}
	if out.w, err = compress.NewWriter(countingSink{out}, k, s.opts.Level); err != nil {
		_ = sink.Abort()
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		_ = sink.Abort()
		return nil, outputError(format.ErrUsage, name, "created after the end of its set")
	}
	if last {
		s.last = append(s.last, out)
	} else {
		s.outs = append(s.outs, out)
	}
	return out, nil
}

func (s *Sink) reserve(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[name] {
		return outputError(format.ErrUsage, name, "would be written twice; %%06d in the name numbers the parts")
	}
	s.names[name] = true
	return nil
}

// vacant refuses the name of an existing regular file.
func (s *Sink) vacant(name string) error {
	if s.opts.Force || name == "-" {
		return s.ctx.Err()
	}
	e, err := store.Stat(s.ctx, s.opts.Store, name)
	switch {
	case err == nil && e.Size != format.Unknown:
		return outputError(format.ErrUsage, name, "exists already; --force replaces it")
	case err == nil, format.Sentinel(err) == format.ErrNotFound:
		return nil
	case format.Sentinel(err) == format.ErrDenied: // such as an address that is signed for writing alone
		return outputError(format.ErrDenied, name, "whether it exists already cannot be told; --force writes it all the same: %w", err)
	default:
		return err
	}
}

// Commit gives all outputs their names. It closes those that are still open.
// If a name is refused halfway, the error says which files are in place; the
// rest is thrown away.
func (s *Sink) Commit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil
	}
	all := append(append([]*Output(nil), s.outs...), s.last...)
	for _, o := range all {
		if err := o.Close(); err != nil {
			s.abort()
			return err
		}
	}
	if !s.detach() || s.ctx.Err() != nil {
		s.abort()
		return s.ctx.Err()
	}
	defer s.cancel()
	s.ended = true
	for i, o := range all {
		if err := o.sink.Commit(); err != nil {
			for _, rest := range all[i+1:] {
				_ = rest.sink.Abort()
			}
			return halfway(all, i, err)
		}
	}
	return nil
}

// halfway says what became of a set whose output i could not be named.
func halfway(all []*Output, i int, err error) error {
	if len(all) == 1 {
		return err
	}
	sentinel := format.Sentinel(err)
	if sentinel == nil {
		sentinel = format.ErrIO
	}
	return outputError(sentinel, all[i].name, "%w; in place already: %s; not written: %s",
		err, nameList(all[:i]), nameList(all[i:]))
}

func nameList(outs []*Output) string {
	const most = 8
	var names []string
	for i, o := range outs {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(outs)-most))
			break
		}
		names = append(names, format.Redact(o.name))
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Abort throws away all outputs. After Commit it does nothing, so that
// `defer s.Abort()` is right.
func (s *Sink) Abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abort()
}

func (s *Sink) abort() {
	if s.ended {
		return
	}
	s.ended = true
	s.detach()
	s.cancel()
	var all sync.WaitGroup // side by side: a remote one may take a second
	for _, o := range append(s.outs, s.last...) {
		all.Go(func() { _ = o.sink.Abort() })
	}
	all.Wait()
}

// cause gives the reason of the caller's context where the inner one ended.
func (s *Sink) cause(err error) error {
	if e := s.ctx.Err(); e != nil && s.inner.Err() != nil {
		return e
	}
	return err
}

// Output is one file of a Sink.
type Output struct {
	s      *Sink
	name   string
	sink   store.Sink
	w      io.WriteCloser
	bytes  int64
	stored int64
	err    error
	closed bool
}

// Name returns the name that the file will have.
func (o *Output) Name() string { return o.name }

// Bytes returns how many bytes were written to the output, before compression.
func (o *Output) Bytes() int64 { return o.bytes }

// Stored returns how many bytes the store got, after compression. It is
// complete after Close.
func (o *Output) Stored() int64 { return o.stored }

// Write adds to the output. An error stays.
func (o *Output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	o.bytes += int64(n)
	o.err = o.s.cause(err)
	return n, o.err
}

// Close ends the output: it is complete, and waits for Commit.
func (o *Output) Close() error {
	if o.closed || o.err != nil {
		return o.err
	}
	o.closed = true
	err := o.w.Close()
	if f, ok := o.sink.(store.Finisher); ok && err == nil {
		err = f.Finish()
	}
	o.err = o.s.cause(err)
	return o.err
}

// countingSink counts what arrives at the store.
type countingSink struct{ o *Output }

func (c countingSink) Write(p []byte) (int, error) {
	n, err := c.o.sink.Write(p)
	c.o.stored += int64(n)
	return n, err
}

func outputError(sentinel error, name, msg string, args ...any) error {
	return format.Errorf(sentinel, format.In(name), msg, args...)
}
