// Package stores is every store in one: where a name leads is told by how it
// begins.
//
//	s3://bucket/key            package s3
//	http://…  https://…        package web
//	paths, file://path, -      store.Local
//
// What is remote shares one budget of connections, retries and read-ahead, a
// remote.Client, and may be kept in a folder of this machine. store.Expand
// takes patterns of all schemes at once.
package stores

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/remote"
	"shardtool/reader/store/s3"
	"shardtool/reader/store/web"
)

// Options of Stores. The zero value, and nil, are good.
type Options struct {
	Local *store.Local // nil: a new one

	// Of s3://, as s3.Options says.
	Endpoint, Region, Profile string
	NoSign, RequestPayer      bool
	PathStyle, VirtualHost    bool

	// Of all that is remote together, as remote.Options says.
	Connections int
	Stall       time.Duration
	Attempts    int
	ReadAhead   int64

	CacheDir  string // folder in which remote objects are kept; "": none are
	CacheSize int64  // bytes it may hold; 0: the default of store.NewCache

	Limit store.LimitOptions // of everything, to play a slow store; the zero value: none

	// Wrap, if not nil, is given what sends the requests and returns what is
	// used instead, such as one that watches.
	Wrap func(http.RoundTripper) http.RoundTripper

	Log *slog.Logger // nil: none
}

// Stores is all stores in one. It is safe for use by several goroutines.
type Stores struct {
	st     store.Store // what is asked: the dispatch, limited perhaps
	all    *dispatch
	bucket *s3.Store
	client *remote.Client
	kept   int64          // what the cache may hold besides
	close  []func() error // in this order
}

var (
	_ store.Store       = (*Stores)(nil)
	_ store.Stater      = (*Stores)(nil)
	_ store.Globber     = (*Stores)(nil)
	_ store.EntryOpener = (*Stores)(nil)
)

// New returns all stores. Nothing is asked or opened before its first use; what
// is wrong with the options of a store shows at the first name of it.
func New(o *Options) *Stores {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Local == nil {
		d.Local = &store.Local{}
	}
	client := remote.NewClient(&remote.Options{Connections: d.Connections, Stall: d.Stall, Attempts: d.Attempts, ReadAhead: d.ReadAhead, Log: d.Log})
	bucket := s3.New(&s3.Options{
		Endpoint: d.Endpoint, Region: d.Region, Profile: d.Profile, NoSign: d.NoSign, RequestPayer: d.RequestPayer,
		PathStyle: d.PathStyle, VirtualHost: d.VirtualHost, Client: client, Wrap: d.Wrap, Log: d.Log,
	})
	address := web.New(&web.Options{Client: client, Wrap: d.Wrap})
	s := &Stores{
		all:    &dispatch{local: d.Local, s3: bucket, web: address},
		bucket: bucket,
		client: client,
		close:  []func() error{bucket.Close, address.Close},
	}
	if d.CacheDir != "" {
		s.cache(store.CacheOptions{Dir: d.CacheDir, Size: d.CacheSize, Log: d.Log})
	}
	s.st = s.all
	if d.Limit != (store.LimitOptions{}) {
		s.st = store.Limit(s.all, d.Limit)
	}
	return s
}

// cache puts one cache in front of both remote stores, so that its size is the
// sum.
func (s *Stores) cache(o store.CacheOptions) {
	far := &dispatch{s3: s.all.s3, web: s.all.web}
	c, err := store.NewCache(far, o)
	if err != nil {
		s.all.s3, s.all.web = broken{err}, broken{err}
		return
	}
	s.all.s3, s.all.web = c, c
	s.kept = c.Memory()
	s.close = append([]func() error{c.Close}, s.close...)
}

// Default returns the stores of the process: those of the environment. They
// share one budget.
func Default() *Stores { return byDefault() }

var byDefault = sync.OnceValue(func() *Stores { return New(nil) })

// Open opens an object of any store.
func (s *Stores) Open(ctx context.Context, name string) (store.Object, error) {
	return s.st.Open(ctx, name)
}

// OpenEntry opens what List or Stat has described.
func (s *Stores) OpenEntry(ctx context.Context, e store.Entry) (store.Object, error) {
	return store.OpenEntry(ctx, s.st, e)
}

// List lists the store that the prefix leads to.
func (s *Stores) List(ctx context.Context, prefix string) iter.Seq2[store.Entry, error] {
	return s.st.List(ctx, prefix)
}

// Create begins an object in the store that its name leads to.
func (s *Stores) Create(ctx context.Context, name string) (store.Sink, error) {
	return s.st.Create(ctx, name)
}

// Stat describes an object of any store.
func (s *Stores) Stat(ctx context.Context, name string) (store.Entry, error) {
	return store.Stat(ctx, s.st, name)
}

// Glob finds what matches a pattern in the store that it leads to.
func (s *Stores) Glob(ctx context.Context, pattern string) ([]string, error) {
	return store.Glob(ctx, s.st, pattern)
}

// Memory returns the most that the stores hold for reading ahead, in bytes.
func (s *Stores) Memory() int64 {
	return s.client.Memory() + store.Memory(s.all.local) + s.kept
}

// Remote returns the budget of all that is remote, for its Stats.
func (s *Stores) Remote() *remote.Client { return s.client }

// S3 returns the store of s3://, without the cache and the limit.
func (s *Stores) S3() *s3.Store { return s.bucket }

// Close ends connections that wait for another request. Objects must have been
// closed before.
func (s *Stores) Close() error {
	var errs []error
	for _, f := range s.close {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// dispatch sends each name to the store that it leads to.
type dispatch struct {
	local, s3, web store.Store
}

func (d *dispatch) of(name string) (store.Store, error) {
	scheme, _, ok := strings.Cut(name, "://")
	switch {
	case !ok || !isScheme(scheme), scheme == "file":
		return d.local, nil
	case scheme == "s3":
		return d.s3, nil
	case scheme == "http", scheme == "https":
		return d.web, nil
	}
	hint := "names are paths, s3://, http:// or https://"
	if scheme == "gs" || scheme == "gcs" {
		hint = "write s3:// and give --endpoint-url https://storage.googleapis.com, or an https:// address"
	}
	return nil, format.Errorf(format.ErrUnsupported, format.In(remote.Redact(name)), "there is no store for %s://; %s", scheme, hint)
}

// isScheme reports whether what stands before "://" is a scheme, of RFC 3986
// section 3.1.
func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if letter := 'a' <= c && c <= 'z'; !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", rune(s[i]))) {
			return false
		}
	}
	return len(s) > 1 // "c://" is a disk
}

func (d *dispatch) Open(ctx context.Context, name string) (store.Object, error) {
	st, err := d.of(name)
	if err != nil {
		return nil, err
	}
	return st.Open(ctx, name)
}

func (d *dispatch) OpenEntry(ctx context.Context, e store.Entry) (store.Object, error) {
	st, err := d.of(e.Name)
	if err != nil {
		return nil, err
	}
	return store.OpenEntry(ctx, st, e)
}

func (d *dispatch) List(ctx context.Context, prefix string) iter.Seq2[store.Entry, error] {
	st, err := d.of(prefix)
	if err != nil {
		return failed(err)
	}
	return st.List(ctx, prefix)
}

func (d *dispatch) Create(ctx context.Context, name string) (store.Sink, error) {
	st, err := d.of(name)
	if err != nil {
		return nil, err
	}
	return st.Create(ctx, name)
}

func (d *dispatch) Stat(ctx context.Context, name string) (store.Entry, error) {
	st, err := d.of(name)
	if err != nil {
		return store.Entry{}, err
	}
	return store.Stat(ctx, st, name)
}

func (d *dispatch) Glob(ctx context.Context, pattern string) ([]string, error) {
	st, err := d.of(pattern)
	if err != nil {
		return nil, err
	}
	return store.Glob(ctx, st, pattern)
}

func (d *dispatch) Memory() int64 { return store.Memory(d.local) }

func failed(err error) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) { yield(store.Entry{}, err) }
}

// broken is a store whose options cannot be met.
type broken struct{ err error }

func (b broken) Open(context.Context, string) (store.Object, error) { return nil, b.err }
func (b broken) Create(context.Context, string) (store.Sink, error) { return nil, b.err }
func (b broken) List(context.Context, string) iter.Seq2[store.Entry, error] {
	return failed(b.err)
}
