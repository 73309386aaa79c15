package web_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"shardtool/format"
	"shardtool/reader/store/faultserver"
	"shardtool/reader/store/remote"
	"shardtool/reader/store/web"
)

func TestNames(t *testing.T) {
	s := pipe(t, remote.Options{})
	for _, name := range []string{"", "a.tar", "/a.tar", "s3://b/a.tar", "ftp://h/a", "http://", "http:///a", "http://h/a#frag", "http://u:SECRET@h/%zz", "http://h:port/?sig=SECRET", "https://h/\x00"} {
		_, err := s.st.Open(t.Context(), name)
		_, err2 := s.st.Create(t.Context(), name)
		_, err3 := s.st.Stat(t.Context(), name)
		for _, err := range []error{err, err2, err3} {
			if !errors.Is(err, format.ErrUsage) || strings.Contains(err.Error(), "SECRET") {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	for _, err := range s.st.List(t.Context(), "http://u:SECRET@h/") {
		if !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), "cannot be listed") || strings.Contains(err.Error(), "SECRET") {
			t.Error(err)
		}
	}
}

func TestAddressesAreSentAsGiven(t *testing.T) {
	s := tcp(t, remote.Options{})
	for _, path := range []string{"/b/a%20b.tar", "/b//a.tar", "/b/./a/../c.tar", "/b/a%2Fb.tar", "/b/a+b;c=d,e.tar?x=a%2Bb&y=a+b&z", "/b/%E2%82%AC.tar?", "/b/a%3Fb.tar"} {
		var uri string
		s.srv.Before = func(r *http.Request, _ int) *faultserver.Answer {
			uri = r.RequestURI
			return &faultserver.Answer{As: &faultserver.Object{Content: faultserver.Pattern(10)}}
		}
		if _, err := s.st.Stat(t.Context(), s.srv.URL+path); err != nil || uri != path {
			t.Errorf("%s was asked for as %s, %v", path, uri, err)
		}
	}
}

func TestUserAndPassword(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := pipe(t, remote.Options{})
		s.srv.Before = func(r *http.Request, n int) *faultserver.Answer {
			if user, password, _ := r.BasicAuth(); user != "us er" || password != "SECRET" {
				return &faultserver.Answer{Status: 401}
			}
			if r.Method == http.MethodGet && n == 0 {
				return &faultserver.Answer{Fault: faultserver.Reset, After: 10}
			}
			return nil
		}
		addr := strings.Replace(s.put("/b/a.tar", &faultserver.Object{Content: faultserver.Pattern(1000)}), "://", "://us%20er:SECRET@", 1)
		if got, err := s.read(t.Context(), addr); err != nil || len(got) != 1000 {
			t.Errorf("%d, %v", len(got), err)
		}
		_, err := s.read(t.Context(), strings.Replace(addr, ".tar", ".none", 1))
		if !errors.Is(err, format.ErrNotFound) || strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "us%20er") {
			t.Error(err)
		}
		if _, err := s.read(t.Context(), strings.Replace(addr, "SECRET", "guess", 1)); !errors.Is(err, format.ErrDenied) || strings.Contains(err.Error(), "guess") {
			t.Error(err)
		}
		if strings.Contains(s.log.String(), "SECRET") || !strings.Contains(s.log.String(), "a.tar") {
			t.Errorf("the log is %s", s.log)
		}
	})
}

// roundTrips answers requests without a network.
type roundTrips func(*http.Request) (*http.Response, error)

func (f roundTrips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRedirects(t *testing.T) {
	var seen []*http.Request
	st := web.New(&web.Options{Transport: roundTrips(func(r *http.Request) (*http.Response, error) {
		seen = append(seen, r)
		a := &http.Response{StatusCode: 302, Header: http.Header{}, Body: http.NoBody, Request: r, ProtoMajor: 1, ProtoMinor: 1}
		switch {
		case strings.HasPrefix(r.URL.Path, "/loop"):
			a.Header.Set("Location", r.URL.Path+"x")
		case r.URL.Path == "/down":
			a.Header.Set("Location", "http://plain.test/a?sig=SECRET")
		case r.URL.Path == "/over":
			a.Header.Set("Location", "https://cdn.test/a.tar?sig=SECRET")
		case r.URL.Host == "cdn.test" && r.Method == http.MethodGet:
			a.StatusCode, a.ContentLength, a.Body = 206, 5, io.NopCloser(strings.NewReader("alpha"))
			a.Header.Set("Content-Range", "bytes 5-9/10")
		case r.URL.Host == "cdn.test":
			a.StatusCode, a.ContentLength = 200, 10
		default:
			a.StatusCode = 404
		}
		return a, nil
	})})
	for path, class := range map[string]error{"/loop": format.ErrIO, "/down": format.ErrDenied, "/none": format.ErrNotFound} {
		seen = nil
		_, err := st.Open(t.Context(), "https://user:SECRET@origin.test"+path+"?token=SECRET")
		if !errors.Is(err, class) || strings.Contains(fmt.Sprintf("%v", err), "SECRET") || !strings.Contains(err.Error(), "https://origin.test"+path) || len(seen) > 11 {
			t.Errorf("%s: %v after %d requests", path, err, len(seen))
		}
	}
	seen = nil
	o, err := st.Open(t.Context(), "https://user:SECRET@origin.test/over?token=SECRET")
	if err != nil || o.Stat().Size != 10 {
		t.Fatal(o, err)
	}
	p := make([]byte, 5)
	if _, err := o.ReadAt(t.Context(), p, 5); err != nil || string(p) != "alpha" {
		t.Errorf("%q, %v", p, err)
	}
	for _, r := range seen {
		if away := r.URL.Host != "origin.test"; r.Header.Get("Referer") != "" || away == (r.Header.Get("Authorization") != "") {
			t.Errorf("%s was sent %v", r.URL.Host, r.Header)
		}
		if r.Method == http.MethodGet && r.Header.Get("Range") != "bytes=5-9" {
			t.Errorf("%s was asked for %v", r.URL.Host, r.Header)
		}
	}
}

func TestPut(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	for name, tt := range map[string]struct {
		answers []faultserver.Answer // nil elements, by Handle == nil and Status == 0, store
		class   error
		puts    int
	}{
		"at once":  {nil, nil, 1},
		"busy":     {[]faultserver.Answer{{Status: 503}, {Status: 500}}, nil, 3},
		"denied":   {[]faultserver.Answer{{Status: 403, Message: "Request has expired"}}, format.ErrDenied, 1},
		"for ever": {[]faultserver.Answer{{Status: 503}, {Status: 503}, {Status: 503}, {Status: 503}}, format.ErrIO, 4},
		"odd":      {[]faultserver.Answer{{Status: 302}}, format.ErrIO, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := pipe(t, remote.Options{Attempts: 4})
				s.srv.Before = func(r *http.Request, n int) *faultserver.Answer {
					if r.Method == http.MethodPut && n < len(tt.answers) {
						return &tt.answers[n]
					}
					return nil
				}
				k, err := s.st.Create(t.Context(), s.srv.URL+"/b/new.tar?X-Amz-Signature=SECRET")
				if err != nil {
					t.Fatal(err)
				}
				for p := body; len(p) > 0; p = p[min(len(p), 70_000):] {
					if _, err := k.Write(p[:min(len(p), 70_000)]); err != nil {
						t.Fatal(err)
					}
				}
				if len(s.srv.Requests()) > 0 {
					t.Error("something was sent before Commit")
				}
				if err := k.Commit(); !errors.Is(err, tt.class) || err != nil && strings.Contains(err.Error(), "SECRET") {
					t.Errorf("Commit: %v", err)
				}
				if n := len(s.srv.Requests(http.MethodPut)); n != tt.puts {
					t.Errorf("%d requests, want %d", n, tt.puts)
				}
				o := s.srv.Get("/b/new.tar")
				if (o == nil) != (tt.class != nil) || o != nil && !bytes.Equal(content(t, o.Content), body) {
					t.Error("the server does not have it as it should")
				}
			})
		})
	}
}

func TestPutLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	srv := faultserver.StartPipe()
	defer srv.Close()
	transport := remote.NewTransport(1)
	srv.Wire(transport)
	st := web.New(&web.Options{Transport: transport, TempDir: dir})
	defer st.Close()
	for _, commit := range []bool{true, false} {
		k, err := st.Create(t.Context(), srv.URL+"/b/a.tar")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(k, "alpha"); err != nil {
			t.Fatal(err)
		}
		end := k.Abort
		if commit {
			end = k.Commit
		}
		if err := errors.Join(end(), k.Abort(), k.Commit()); err != nil {
			t.Error(err)
		}
		if _, err := k.Write([]byte("x")); !errors.Is(err, format.ErrUsage) {
			t.Errorf("a write after the end: %v", err)
		}
		if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
			t.Errorf("left: %v, %v", left, err)
		}
	}
	if n := len(srv.Requests()); n != 1 {
		t.Errorf("%d requests, want one for what was committed", n)
	}
}
