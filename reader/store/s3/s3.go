// Package s3 is the store of objects in S3 and in what speaks its protocol.
//
// Names are "s3://bucket/key". The key is taken exactly as it stands: slashes
// in a row, spaces, "%", "?", "#" and letters of any script are part of it;
// nothing is cleaned or decoded.
//
//	s3://train-data/imagenet/000017.tar
//	     bucket     key
//
// The requests are those of package remote, which see for the budget of
// connections, retries, resumed ranges and read-ahead: this package signs and
// words them. Credentials, region and endpoint are found as every AWS tool
// finds them (environment, files, profiles, single sign-on, web identity,
// container, instance), and Options come before all of that. A bucket that
// turns out to live in another region is asked there.
//
// An object's Version is its ETag, and every request after the first demands
// it, so that an object that is replaced while it is read is ErrStale and never
// a mixture of both. Checksums are neither required nor added; one of the full
// object that the server sends is held against the bytes when they were read
// whole.
package s3

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/remote"
)

// Scheme is what the names of this store begin with.
const Scheme = "s3://"

// Options of a Store. The zero value, and nil, ask for what the environment and
// the files of the AWS tools say.
type Options struct {
	Endpoint     string // address of another server than AWS, http://HOST[:PORT] or https://HOST[:PORT]
	Region       string // signed for where a bucket's own is not known yet; "": the environment's, else us-east-1
	Profile      string // of the configuration files; "": AWS_PROFILE, else "default"
	NoSign       bool   // requests without a signature, for public buckets
	RequestPayer bool   // the requester pays, where a bucket asks for that

	// A bucket's name stands in the path (http://host/bucket/key) where there
	// is an endpoint, and in front of the host (https://bucket.host/key) where
	// there is none; these force one or the other.
	PathStyle, VirtualHost bool

	Client *remote.Client // whose budget the requests are part of; nil: one of its own
	Log    *slog.Logger   // nil: none

	// Wrap, if not nil, is given what sends the requests and returns what is
	// used instead, such as one that watches.
	Wrap func(http.RoundTripper) http.RoundTripper

	// For tests.
	Transport   http.RoundTripper       // nil: remote.NewTransport
	Credentials aws.CredentialsProvider // nil: as the AWS tools find them
}

// Store is S3 as a store.Store. It is safe for use by several goroutines, and
// finds credentials at its first request.
type Store struct {
	opt     Options
	remote  *remote.Client
	regions sync.Map // bucket -> region, where it is another than the default
	there   sync.Map // bucket -> true, of those that have answered

	mu   sync.Mutex
	link *link // made by the first request
}

var (
	_ store.Store       = (*Store)(nil)
	_ store.Stater      = (*Store)(nil)
	_ store.Globber     = (*Store)(nil)
	_ store.EntryOpener = (*Store)(nil)
)

// New returns a store. Nothing is asked or read before its first use.
func New(o *Options) *Store {
	s := &Store{}
	if o != nil {
		s.opt = *o
	}
	if s.remote = s.opt.Client; s.remote == nil {
		s.remote = remote.NewClient(&remote.Options{Log: s.opt.Log})
	}
	return s
}

// Memory returns the most that the store holds for reading ahead, in bytes.
func (s *Store) Memory() int64 { return s.remote.Memory() }

// Close ends the connections that wait for another request. The store can be
// used again.
func (s *Store) Close() error {
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l != nil {
		l.idle()
	}
	return nil
}

// target is a name, taken apart.
type target struct {
	name, bucket, key string
}

// split takes a name apart. The key may be empty in a prefix.
func split(name string) (target, error) {
	rest, ok := strings.CutPrefix(name, Scheme)
	bucket, key, _ := strings.Cut(rest, "/")
	if !ok || bucket == "" {
		return target{}, format.Errorf(format.ErrUsage, format.In(name), "is no name of the form s3://bucket/key")
	}
	return target{name, bucket, key}, nil
}

func splitObject(name string) (target, error) {
	t, err := split(name)
	if err == nil && t.key == "" {
		err = format.Errorf(format.ErrUsage, format.In(name), "names a bucket and no object in it; write s3://%s/*.tar for the shards in it", t.bucket)
	}
	return t, err
}

// Open asks for the object's size and ETag with one HEAD request.
func (s *Store) Open(ctx context.Context, name string) (store.Object, error) {
	t, err := splitObject(name)
	if err != nil {
		return nil, err
	}
	g := &object{s: s, t: t}
	e, err := g.head(ctx)
	if err != nil {
		return nil, err
	}
	return s.remote.Open(name, e, g), nil
}

// OpenEntry opens an object that List or Stat has described without asking for
// it again. If another object stands there now, the first read is ErrStale.
func (s *Store) OpenEntry(ctx context.Context, e store.Entry) (store.Object, error) {
	if e.Version == "" || e.Size < 0 {
		o, err := s.Open(ctx, e.Name)
		if err != nil {
			return nil, err
		}
		if err := e.Unchanged(o.Stat()); err != nil {
			return nil, err // an open object holds nothing
		}
		return o, nil
	}
	t, err := splitObject(e.Name)
	if err != nil {
		return nil, err
	}
	return s.remote.Open(e.Name, e, &object{s: s, t: t}), nil
}

// Stat asks for an object's size and ETag.
func (s *Store) Stat(ctx context.Context, name string) (store.Entry, error) {
	t, err := splitObject(name)
	if err != nil {
		return store.Entry{}, err
	}
	return (&object{s: s, t: t}).head(ctx)
}
