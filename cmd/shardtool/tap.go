package main

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// tap watches the requests of stores on their way: what was connected to, what
// was answered and when. Of headers and addresses it keeps all; what is printed
// of them is for who asks.
type tap struct {
	bytes atomic.Int64 // of bodies that came

	mu        sync.Mutex
	exchanges []*exchange // the first of them, or those since the last call of since
}

// exchange is one request and its answer.
type exchange struct {
	url    *url.URL
	proxy  *url.URL // nil: none
	region string   // that it is signed for
	sent   time.Time
	came   time.Duration // from sent to the answer's first byte; 0: there was none

	reused    bool
	addresses int // of the host
	connected time.Duration
	tls       uint16 // version; 0: none

	status int // 0: no answer
	header http.Header
	err    error
}

// wrap is for stores.Options.Wrap.
func (t *tap) wrap(rt http.RoundTripper) http.RoundTripper { return &tapped{rt, t} }

// since returns the exchanges so far and begins to gather anew.
func (t *tap) since() []*exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.exchanges
	t.exchanges = nil
	return x
}

func (t *tap) keep(x *exchange) {
	const most = 1000
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.exchanges) < most {
		t.exchanges = append(t.exchanges, x)
	}
}

type tapped struct {
	rt  http.RoundTripper
	tap *tap
}

func (t *tapped) CloseIdleConnections() {
	if c, ok := t.rt.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *tapped) RoundTrip(r *http.Request) (*http.Response, error) {
	x := &exchange{url: r.URL, region: signedFor(r), sent: time.Now()}
	x.proxy, _ = http.ProxyFromEnvironment(r)
	var mu sync.Mutex // a dial that lost may still call the trace
	var dialed time.Time
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) {
			mu.Lock()
			defer mu.Unlock()
			x.reused = c.Reused
			if !dialed.IsZero() && !c.Reused {
				x.connected = time.Since(dialed)
			}
		},
		GotFirstResponseByte: func() {
			mu.Lock()
			defer mu.Unlock()
			x.came = time.Since(x.sent)
		},
		DNSDone: func(d httptrace.DNSDoneInfo) {
			mu.Lock()
			defer mu.Unlock()
			x.addresses = len(d.Addrs)
		},
		ConnectStart: func(string, string) {
			mu.Lock()
			defer mu.Unlock()
			if dialed.IsZero() {
				dialed = time.Now()
			}
		},
		TLSHandshakeDone: func(s tls.ConnectionState, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				x.tls = s.Version
			}
		},
	}))
	resp, err := t.rt.RoundTrip(r)
	mu.Lock()
	y := *x
	mu.Unlock()
	if y.err = err; err == nil {
		y.status, y.header = resp.StatusCode, resp.Header
		if resp.TLS != nil {
			y.tls = resp.TLS.Version
		}
		resp.Body = &tappedBody{resp.Body, t.tap}
	}
	t.tap.keep(&y)
	return resp, err
}

type tappedBody struct {
	io.ReadCloser
	tap *tap
}

func (b *tappedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.tap.bytes.Add(int64(n))
	return n, err
}

// signedFor returns the region in the scope of a signature of version 4, or "":
// "AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/s3/aws4_request, ...".
func signedFor(r *http.Request) string {
	_, scope, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	scope, _, _ = strings.Cut(scope, ",")
	parts := strings.Split(scope, "/")
	if len(parts) < 5 {
		return ""
	}
	return parts[len(parts)-3]
}
