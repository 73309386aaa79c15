package web_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"shardtool/reader/store"
	"shardtool/reader/store/faultserver"
	"shardtool/reader/store/remote"
	"shardtool/reader/store/storetest"
	"shardtool/reader/store/web"
)

// bench is a store and the server that it reads from.
type setup struct {
	srv    *faultserver.Server
	client *remote.Client
	st     *web.Store
	log    *logBuffer
}

// logBuffer is what the client logged.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// connect makes a store of a server. Inside a bubble of synctest the server is
// one in memory.
func connect(t testing.TB, srv *faultserver.Server, o remote.Options) *setup {
	log := &logBuffer{}
	o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	client := remote.NewClient(&o)
	transport := remote.NewTransport(client.Connections())
	srv.Wire(transport)
	s := &setup{srv, client, web.New(&web.Options{Client: client, Transport: transport, TempDir: t.TempDir()}), log}
	t.Cleanup(func() {
		s.st.Close()
		srv.Close()
	})
	return s
}

// pipe is connect to a server in memory.
func pipe(t testing.TB, o remote.Options) *setup { return connect(t, faultserver.StartPipe(), o) }

func tcp(t testing.TB, o remote.Options) *setup {
	srv, err := faultserver.Start()
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, srv, o)
}

// put places an object and returns its address.
func (s *setup) put(path string, o *faultserver.Object) string {
	s.srv.Put(path, o)
	return s.srv.URL + path
}

// read reads an object whole.
func (s *setup) read(ctx context.Context, name string) ([]byte, error) {
	r, err := store.OpenStream(ctx, s.st, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func sum(p []byte) string {
	h := sha256.Sum256(p)
	return hex.EncodeToString(h[:])
}

func content(t testing.TB, c faultserver.Content) []byte {
	t.Helper()
	p := make([]byte, c.Size())
	if _, err := c.ReadAt(p, 0); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return p
}

// escapeKey makes the path of an address from a key.
func escapeKey(key string) string {
	parts := strings.Split(key, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

func fixture(t *testing.T, o remote.Options, change func(*faultserver.Object)) storetest.Fixture {
	s := tcp(t, o)
	return storetest.Fixture{
		Store:  s.st,
		Prefix: s.srv.URL + "/d/",
		Name:   func(key string) string { return s.srv.URL + "/d/" + escapeKey(key) },
		Put: func(_ testing.TB, key string, data []byte) {
			o := &faultserver.Object{Content: faultserver.Bytes(bytes.Clone(data)), ETag: faultserver.Sum(data)}
			change(o)
			s.srv.Put("/d/"+key, o)
		},
		Without: storetest.List,
	}
}

func TestStore(t *testing.T) {
	good := func(*faultserver.Object) {}
	t.Run("plain", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Fixture { return fixture(t, remote.Options{}, good) })
	})
	t.Run("small ranges", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Fixture {
			f := fixture(t, remote.Options{Connections: 3, Range: 100_000, ReadAhead: 1 << 20}, good)
			f.Large = 5<<20 + 7
			return f
		})
	})
	t.Run("in order", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Fixture {
			f := fixture(t, remote.Options{}, func(o *faultserver.Object) {
				o.Header = http.Header{"Accept-Ranges": {"none"}}
				o.Gets = []faultserver.Answer{{IgnoreRange: true}}
			})
			f.Without |= storetest.Offsets | storetest.Create
			return f
		})
	})
	t.Run("without size", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Fixture {
			f := fixture(t, remote.Options{}, func(o *faultserver.Object) {
				o.ETag = ""
				o.Gets = []faultserver.Answer{{IgnoreRange: true, NoLength: true}}
				o.Heads = []faultserver.Answer{{Status: http.StatusMethodNotAllowed}}
			})
			f.Without |= storetest.Offsets | storetest.Create | storetest.Sizes | storetest.Versions
			return f
		})
	})
}
