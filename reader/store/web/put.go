package web

import (
	"context"
	"io"
	"net/http"
	"os"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/remote"
)

// Create begins an object that Commit sends with one PUT, to an address that is
// signed for it or that takes what it is sent. Until then it is a temporary
// file: the length of a PUT is said before its first byte.
func (s *Store) Create(ctx context.Context, name string) (store.Sink, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a, err := parse(name)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(s.tempDir, "shardtool-put-*")
	if err != nil {
		return nil, format.ReadError(err, format.In(remote.Redact(name)))
	}
	return &sink{ctx: ctx, s: s, a: a, f: f}, nil
}

type sink struct {
	ctx   context.Context
	s     *Store
	a     *address
	f     *os.File // nil once ended
	bytes int64
}

func (k *sink) Write(p []byte) (int, error) {
	if err := k.ctx.Err(); err != nil {
		return 0, err
	}
	if k.f == nil {
		return 0, format.Errorf(format.ErrUsage, format.In(remote.Redact(k.a.name)), "a write after the end")
	}
	n, err := k.f.Write(p)
	k.bytes += int64(n)
	return n, format.ReadError(err, format.In(remote.Redact(k.a.name)))
}

// Commit sends what was written. The object is there if it returns nil.
func (k *sink) Commit() error {
	if k.f == nil {
		return nil
	}
	err := k.s.client.Do(k.ctx, k.a.name, k.put)
	k.discard()
	return err
}

// Abort sends nothing.
func (k *sink) Abort() error {
	if k.f != nil {
		k.discard()
	}
	return nil
}

func (k *sink) discard() {
	name := k.f.Name()
	_ = k.f.Close() // what it held is sent, or not wanted
	_ = os.Remove(name)
	k.f = nil
}

func (k *sink) put(ctx context.Context) error {
	r := k.a.request(ctx, http.MethodPut)
	r.Header.Del("Accept-Encoding")
	r.ContentLength = k.bytes
	r.GetBody = func() (io.ReadCloser, error) {
		if k.bytes == 0 {
			return http.NoBody, nil
		}
		return io.NopCloser(&alive{ctx, io.NewSectionReader(k.f, 0, k.bytes)}), nil
	}
	r.Body, _ = r.GetBody()
	resp, err := k.s.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent:
		return nil
	}
	return remote.StatusOf(resp)
}

// alive tells that an upload moves.
type alive struct {
	ctx context.Context
	r   io.Reader
}

func (a *alive) Read(p []byte) (int, error) {
	remote.Alive(a.ctx)
	return a.r.Read(p)
}
