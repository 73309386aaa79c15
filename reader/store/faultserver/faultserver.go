// Package faultserver is an HTTP server for tests that does to its clients what
// networks and object stores do to theirs: it resets, stalls, throttles, sends
// slowly, lies about ranges, swaps objects while they are read, and keeps a
// record of what it was asked.
//
// What happens is written down beforehand: each object has a list of answers to
// its GETs and one to its HEADs; the n-th request gets the n-th answer, and the
// last answer stays. The zero Answer is a good one.
//
//	s := faultserver.StartPipe()
//	s.Put("/bkt/a.tar", &faultserver.Object{
//		Content: faultserver.Pattern(1 << 20), ETag: `"e1"`,
//		Gets:    []faultserver.Answer{{Fault: faultserver.Reset, After: 1000}, {}},
//	})
//	s.Wire(transport)
//	... read s.URL + "/bkt/a.tar" ...
//	s.Requests() // "GET /bkt/a.tar", then "GET /bkt/a.tar" with Range: bytes=1000-
//
// StartPipe makes a server whose connections are in memory: inside a bubble of
// testing/synctest its waits take no time, and a reset comes behind exactly the
// bytes that were sent. Start makes one on a TCP port of the loopback.
//
// Paths are "/bucket/key", and beyond GET and HEAD the server speaks as much of
// the S3 protocol as a client needs to list, to write and to write in parts.
package faultserver

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Server is a running server. Set its fields before the first request.
type Server struct {
	URL    string // without a path: "http://127.0.0.1:PORT"
	Region string // that requests must be signed for; others are answered 301. "": any, or none
	Page   int    // keys of one page of a list; 0: 1000

	// Before may answer any request in place of the server: nil lets the
	// server answer. n counts the requests with the same method, path and
	// query that came before. It is called by several goroutines.
	Before func(r *http.Request, n int) *Answer

	http     *http.Server
	listener net.Listener
	pipes    *pipes // nil on TCP
	ended    chan struct{}

	mu      sync.Mutex
	objects map[string]*Object
	counts  map[string]int // by method, path and query
	log     []Request
	active  int
	peak    int
	conns   int
	uploads map[string]*upload
	serial  int
}

// Request is one that came.
type Request struct {
	Method   string
	Path     string // decoded
	RawQuery string
	Host     string
	Header   http.Header
	At       time.Time
}

// Start starts a server on a port of 127.0.0.1.
func Start() (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + l.Addr().String()}
	s.serve(l)
	return s, nil
}

// StartPipe starts a server in memory. Clients reach it by DialContext, or by
// a transport after Wire.
func StartPipe() *Server {
	p := newPipes()
	s := &Server{URL: "http://fault.test", pipes: p}
	s.serve(p)
	return s
}

func (s *Server) serve(l net.Listener) {
	s.objects, s.counts, s.uploads = map[string]*Object{}, map[string]int{}, map[string]*upload{}
	s.listener, s.ended = l, make(chan struct{})
	s.http = &http.Server{Handler: http.HandlerFunc(s.handle), ConnState: s.count}
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(l) // always an error, ErrServerClosed
	}()
}

// Close ends the server and its connections, and waits for its listener.
func (s *Server) Close() {
	_ = s.http.Close()
	<-s.ended
}

// DialContext connects to the server, whatever the address.
func (s *Server) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	if s.pipes != nil {
		return s.pipes.dial(ctx)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", s.listener.Addr().String())
}

// Wire makes a transport reach the server, and no proxy of the environment.
func (s *Server) Wire(t *http.Transport) {
	t.DialContext = s.DialContext
	t.Proxy = nil
}

// Put places an object under a path, "/bucket/key". The server owns it.
func (s *Server) Put(path string, o *Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[path] = o
}

// Delete takes an object away.
func (s *Server) Delete(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, path)
}

// Get returns the object under a path, nil for none.
func (s *Server) Get(path string) *Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[path]
}

// Requests returns what came so far, in order; with methods, only those.
func (s *Server) Requests(methods ...string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Request
	for _, r := range s.log {
		if len(methods) == 0 || strings.Contains(" "+strings.Join(methods, " ")+" ", " "+r.Method+" ") {
			found = append(found, r)
		}
	}
	return found
}

// Peak returns how many requests were being answered at one time at most.
func (s *Server) Peak() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peak
}

// Forget empties the record of requests and their peak. Answers go on where
// they were.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.peak = nil, s.active
}

// note records a request and returns how many like it came before.
func (s *Server) note(r *http.Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, Request{r.Method, r.URL.Path, r.URL.RawQuery, r.Host, r.Header.Clone(), time.Now()})
	s.active++
	s.peak = max(s.peak, s.active)
	key := r.Method + " " + r.URL.Path + "?" + r.URL.RawQuery
	s.counts[key]++
	return s.counts[key] - 1
}

func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	n := s.note(r)
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.active--
	}()
	body, err := readBody(r) // before the answer: a pipe holds nothing for a reader that does not come
	if err != nil {
		return
	}
	if s.Before != nil {
		if a := s.Before(r, n); a != nil {
			(&play{s: s, w: w, r: r, o: s.Get(r.URL.Path), a: *a}).run()
			return
		}
	}
	if region := signedRegion(r); s.Region != "" && region != "" && region != s.Region {
		(&play{s: s, w: w, r: r, a: Answer{Status: http.StatusMovedPermanently, Code: "PermanentRedirect",
			Header: http.Header{"X-Amz-Bucket-Region": {s.Region}}}}).run()
		return
	}
	s.route(w, r, body)
}

// route tells the kinds of requests apart, as S3 does by method and query.
func (s *Server) route(w http.ResponseWriter, r *http.Request, body []byte) {
	query := r.URL.Query()
	get := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case get && query.Get("list-type") == "2":
		s.list(w, r)
	case get:
		s.object(w, r)
	case query.Has("uploads") || query.Has("uploadId"):
		s.multipart(w, r, body)
	case r.Method == http.MethodPut:
		s.put(w, r, body)
	case r.Method == http.MethodDelete:
		s.Delete(r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	default:
		fail(w, r, http.StatusMethodNotAllowed, "")
	}
}

// object plays the next answer of an object.
func (s *Server) object(w http.ResponseWriter, r *http.Request) {
	o := s.Get(r.URL.Path)
	if o == nil {
		fail(w, r, http.StatusNotFound, "NoSuchKey")
		return
	}
	(&play{s: s, w: w, r: r, o: o, a: o.answer(r.Method)}).run()
}

// Connections returns how many connections clients hold, idle ones included.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// count follows the connections as the HTTP server tells of them.
func (s *Server) count(_ net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.conns++
	case http.StateClosed, http.StateHijacked:
		s.conns--
	}
}
