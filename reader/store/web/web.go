// Package web is a store over http and https: plain servers, and the presigned
// addresses of object stores. A name is an address exactly as given:
//
//	https://host/path/train-000001.tar?X-Amz-Signature=...
//	https://user:password@host/train-000001.tar
//
// A server that serves ranges gives objects that are read at any offset, some
// ranges ahead. One that does not, or tells no size, gives objects that are
// read in order. Where a server sends an ETag, or at least Last-Modified, an
// object that is replaced while it is read is ErrStale.
//
// Nothing can be listed. Create puts to a presigned address, in one request at
// Commit. Credentials are those in the address alone; neither they nor any
// value of a query stand in errors or logs.
package web

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/remote"
)

// Options of a Store. The zero value and nil are the defaults.
type Options struct {
	Client    *remote.Client    // the budget of requests; nil: one with defaults
	Transport http.RoundTripper // nil: remote.NewTransport
	TempDir   string            // for what is being written; "": the system's

	// Wrap, if not nil, is given what sends the requests and returns what is
	// used instead, such as one that watches.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Store is a store.Store whose names are addresses.
type Store struct {
	client  *remote.Client
	http    *http.Client
	tempDir string
}

var _ interface {
	store.Store
	store.Stater
	store.EntryOpener
} = (*Store)(nil)

// New returns a store. o may be nil.
func New(o *Options) *Store {
	if o == nil {
		o = &Options{}
	}
	s := &Store{client: o.Client, tempDir: o.TempDir}
	if s.client == nil {
		s.client = remote.NewClient(nil)
	}
	t := o.Transport
	if t == nil {
		t = remote.NewTransport(s.client.Connections())
	}
	if o.Wrap != nil {
		t = o.Wrap(t)
	}
	s.http = &http.Client{Transport: t, CheckRedirect: redirect}
	return s
}

// Close closes the connections that are idle. The store can still be used.
func (s *Store) Close() error {
	s.http.CloseIdleConnections()
	return nil
}

// Memory returns the bytes that reading ahead may hold.
func (s *Store) Memory() int64 { return s.client.Memory() }

const maxRedirects = 10

// redirect decides whether to go where a server points.
func redirect(r *http.Request, via []*http.Request) error {
	r.Header.Del("Referer") // it would tell the other server a signature
	switch {
	case len(via) >= maxRedirects:
		return format.Errorf(format.ErrIO, format.Nowhere, "more than %d redirects", maxRedirects)
	case r.URL.Scheme != "https" && via[len(via)-1].URL.Scheme == "https":
		return format.Errorf(format.ErrDenied, format.Nowhere, "a redirect from https to %s is not followed", r.URL.Scheme)
	}
	return nil
}

// address is a name as a request needs it.
type address struct {
	name string
	url  *url.URL // without user and password
	user *url.Userinfo
}

func parse(name string) (*address, error) {
	at := format.In(remote.Redact(name))
	if strings.Contains(name, "#") {
		return nil, format.Errorf(format.ErrUsage, at, "an address with a fragment; write %%23 for a # that is meant")
	}
	u, err := url.Parse(name)
	var parsing *url.Error
	switch {
	case errors.As(err, &parsing): // it holds the whole address
		return nil, format.Errorf(format.ErrUsage, at, "no address: %v", parsing.Err)
	case err != nil:
		return nil, format.Errorf(format.ErrUsage, at, "no address")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, format.Errorf(format.ErrUsage, at, "no address of http or https")
	}
	a := &address{name: name, url: u, user: u.User}
	u.User = nil
	u.RawQuery = strings.ReplaceAll(u.RawQuery, " ", "%20") // a space would end the request line
	return a, nil
}

// request makes a request that asks for bytes as they are stored.
func (a *address) request(ctx context.Context, method string) *http.Request {
	r := (&http.Request{Method: method, URL: a.url, Host: a.url.Host, Header: http.Header{}}).WithContext(ctx)
	r.Header.Set("Accept-Encoding", "identity")
	r.Header.Set("User-Agent", "shardtool")
	if a.user != nil {
		password, _ := a.user.Password()
		r.SetBasicAuth(a.user.Username(), password)
	}
	return r
}

// Open asks the server about an object, with HEAD, or with a GET of one byte
// where HEAD is refused or does not tell the size.
func (s *Store) Open(ctx context.Context, name string) (store.Object, error) {
	g, e, err := s.describe(ctx, name)
	if err != nil {
		return nil, err
	}
	return s.client.Open(name, e, g), nil
}

// Stat describes an object.
func (s *Store) Stat(ctx context.Context, name string) (store.Entry, error) {
	_, e, err := s.describe(ctx, name)
	return e, err
}

// OpenEntry opens what e describes without a request. Where another object is
// there now, the first read is ErrStale.
func (s *Store) OpenEntry(ctx context.Context, e store.Entry) (store.Object, error) {
	if e.Size > 0 && e.Version != "" {
		a, err := parse(e.Name)
		if err != nil {
			return nil, err
		}
		return s.client.Open(e.Name, e, &getter{s: s, a: a, sized: true}), ctx.Err()
	}
	g, now, err := s.describe(ctx, e.Name)
	if err == nil {
		err = e.Unchanged(now)
	}
	if err != nil {
		return nil, redacted(err, e.Name)
	}
	return s.client.Open(e.Name, now, g), nil
}

// redacted puts the redacted name into an error that holds the name itself.
func redacted(err error, name string) error {
	e := format.AsError(err)
	if e == nil || e.Shard != name {
		return err
	}
	c := *e
	c.Shard = remote.Redact(name)
	return &c
}

// List fails: there is no list of addresses.
func (s *Store) List(_ context.Context, prefix string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		yield(store.Entry{}, format.Errorf(format.ErrUnsupported, format.In(remote.Redact(prefix)), "addresses cannot be listed; name each, with {000..127} for example"))
	}
}

// describe asks what there is under a name.
func (s *Store) describe(ctx context.Context, name string) (*getter, store.Entry, error) {
	e := store.Entry{Name: name, Size: format.Unknown}
	a, err := parse(name)
	if err != nil {
		return nil, e, err
	}
	g := &getter{s: s, a: a}
	err = s.client.Do(ctx, name, func(ctx context.Context) error { return g.head(ctx, &e) })
	if err == nil && e.Size <= 0 || headRefused(err) { // some servers answer HEAD with a length of 0
		err = s.client.Do(ctx, name, func(ctx context.Context) error { return g.probe(ctx, &e) })
	}
	if err != nil {
		return nil, e, err
	}
	g.sized = e.Size >= 0
	return g, e, nil
}

// headRefused reports whether a GET may be answered although HEAD was not: a
// presigned address is signed for one method.
func headRefused(err error) bool {
	var status *remote.StatusError
	if !errors.As(err, &status) {
		return false
	}
	switch status.Code {
	case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return false
}

// versionOf returns what tells versions of an object apart.
func versionOf(h http.Header) string {
	if tag := h.Get("Etag"); tag != "" {
		return tag
	}
	if date := h.Get("Last-Modified"); date != "" {
		return modified + date
	}
	return ""
}

const modified = "modified "

func (g *getter) head(ctx context.Context, e *store.Entry) error {
	r, err := g.s.http.Do(g.a.request(ctx, http.MethodHead))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return remote.StatusOf(r)
	}
	e.Size, e.Version = r.ContentLength, versionOf(r.Header)
	g.learn(r.Header)
	return nil
}

// probe asks for one byte, to see what a whole answer would be.
func (g *getter) probe(ctx context.Context, e *store.Entry) error {
	q := g.a.request(ctx, http.MethodGet)
	q.Header.Set("Range", "bytes=0-0")
	r, err := g.s.http.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	switch r.StatusCode {
	case http.StatusOK:
		e.Size = r.ContentLength
		g.about.InOrder = e.Size > 1 // of one byte it may be the range that was asked for
	case http.StatusPartialContent:
		_, _, e.Size, err = parseContentRange(r.Header.Get("Content-Range"))
	case http.StatusRequestedRangeNotSatisfiable:
		if _, err = fmt.Sscanf(r.Header.Get("Content-Range"), "bytes */%d", &e.Size); err != nil || e.Size != 0 {
			return remote.StatusOf(r)
		}
	default:
		return remote.StatusOf(r)
	}
	e.Version = versionOf(r.Header)
	inOrder := g.about.InOrder
	g.learn(r.Header)
	g.about.InOrder = g.about.InOrder || inOrder
	return err
}

// learn takes what the headers of an answer tell of the object.
func (g *getter) learn(h http.Header) {
	g.modified = h.Get("Last-Modified")
	g.about = remote.About{InOrder: h.Get("Accept-Ranges") == "none", Checksum: remote.ChecksumOf(h)}
}
