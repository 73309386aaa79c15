package web_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/faultserver"
	"shardtool/reader/store/remote"
)

const cases = "../../../fixtures/cases"

// expect is what a case of kind s3 says, as far as it is about transport.
type expect struct {
	Object struct {
		Bytes                       int64
		Content, File, SHA256, ETag string
	}
	SHA256    string
	RawSHA256 string `json:"raw_sha256"`
	Server    map[string]any
	Variants  []struct {
		ResetAfter int64 `json:"reset_after"`
	}
	RequestsMax int `json:"requests_max"`
	Requests    int `json:"request_count"`
	Second      struct {
		Range   string
		IfMatch string `json:"If-Match"`
	} `json:"second_request"`
	Client struct {
		NoProgress float64 `json:"no_progress_timeout_s"`
	}
	WaitAtLeast float64           `json:"wait_at_least_s"`
	WaitAtMost  float64           `json:"wait_at_most_s"`
	Query       map[string]string `json:"url_query"`
	Secrets     []string          `json:"logs_must_not_contain"`
	Readers     int
	Error       *struct {
		Class  string
		Offset int64
		HTTP   int
	}
}

func loadCase(t *testing.T, name string) expect {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cases, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Name   string
		Kind   string
		Expect json.RawMessage
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.Name == name && c.Kind == "s3" {
			var e expect
			if err := json.Unmarshal(c.Expect, &e); err != nil {
				t.Fatal(err)
			}
			return e
		}
	}
	t.Fatalf("no case %s", name)
	return expect{}
}

// object is what the case's server holds.
func (e *expect) object(t *testing.T, answers ...faultserver.Answer) *faultserver.Object {
	t.Helper()
	o := &faultserver.Object{ETag: e.Object.ETag, Gets: answers}
	switch {
	case e.Object.File != "":
		text, err := os.ReadFile(filepath.Join(cases, filepath.FromSlash(e.Object.File)))
		if err != nil {
			t.Fatal(err)
		}
		o.Content = faultserver.Bytes(text)
	case e.Object.Content == "zeros":
		o.Content = faultserver.Zeros(e.Object.Bytes)
	case e.Object.Bytes == 0: // any will do
		o.Content = faultserver.Pattern(1 << 20)
	default:
		o.Content = faultserver.Pattern(e.Object.Bytes)
	}
	if want := e.Object.SHA256; want != "" && sum(content(t, o.Content)) != want {
		t.Fatal("the server's object is not the case's")
	}
	return o
}

// check holds an outcome against the case.
func (e *expect) check(t *testing.T, s *setup, got []byte, err error) {
	t.Helper()
	switch {
	case e.Error == nil && err != nil:
		t.Error(err)
	case e.Error == nil:
		want := e.SHA256
		if want == "" {
			want = e.RawSHA256
		}
		if sum(got) != want {
			t.Errorf("read %d bytes, other ones than the object's", len(got))
		}
	case format.Class(err) != e.Error.Class || !strings.Contains(err.Error(), fmt.Sprintf("http %d", e.Error.HTTP)) && e.Error.HTTP != 0:
		t.Errorf("the error is %q, want %+v", err, *e.Error)
	case e.Error.Class == "io" && e.Error.HTTP == 0 && format.AsError(err).Offset != e.Error.Offset:
		t.Errorf("the error is %q, want one at %d", err, e.Error.Offset)
	}
	gets := len(s.srv.Requests(http.MethodGet))
	if e.Requests > 0 && gets != e.Requests || e.RequestsMax > 0 && gets > e.RequestsMax {
		t.Errorf("%d requests, want %d, at most %d", gets, e.Requests, e.RequestsMax)
	}
}

// bubble runs a test in which waits take no time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func TestCaseReset(t *testing.T) {
	e := loadCase(t, "e1_reset")
	for _, v := range e.Variants {
		for name, start := range map[string]func(testing.TB, remote.Options) *setup{"pipe": pipe, "tcp": tcp} {
			run := func(t *testing.T) {
				s := start(t, remote.Options{})
				addr := s.put("/bkt/a.tar", e.object(t, faultserver.Answer{Fault: faultserver.Reset, After: v.ResetAfter}, faultserver.Answer{}))
				got, err := s.read(t.Context(), addr)
				e.check(t, s, got, err)
				gets := s.srv.Requests(http.MethodGet)
				if r := gets[0].Header.Get("Range"); r != "" {
					t.Errorf("the first request has the Range %q", r)
				}
				second, want := gets[1].Header, fmt.Sprintf("bytes=%d-", v.ResetAfter)
				if r := second.Get("Range"); r != want && (r != "" || v.ResetAfter > 0) || second.Get("If-Match") != e.Second.IfMatch {
					t.Errorf("the second request has the Range %q, want %q, and If-Match %q", r, want, second.Get("If-Match"))
				}
			}
			t.Run(fmt.Sprintf("%d %s", v.ResetAfter, name), func(t *testing.T) {
				if name == "pipe" {
					bubble(t, run)
					return
				}
				run(t)
			})
		}
	}
}

func TestCaseResetAgainAndAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := loadCase(t, "e1_reset_again_and_again")
		s := pipe(t, remote.Options{})
		got, err := s.read(t.Context(), s.put("/bkt/a.tar", e.object(t, faultserver.Answer{Fault: faultserver.Reset, After: 102400})))
		e.check(t, s, got, err)
	})
}

func TestCaseNoProgress(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := loadCase(t, "e1_no_progress")
		s := pipe(t, remote.Options{})
		got, err := s.read(t.Context(), s.put("/bkt/a.tar", e.object(t, faultserver.Answer{Fault: faultserver.Reset})))
		e.check(t, s, got, err)
		if !strings.Contains(err.Error(), "gave up after 8 tries") {
			t.Errorf("the error does not tell how often it was tried: %v", err)
		}
	})
}

func TestCaseStall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := loadCase(t, "e3_stall")
		s := pipe(t, remote.Options{Stall: time.Duration(e.Client.NoProgress * float64(time.Second))})
		before := time.Now()
		got, err := s.read(t.Context(), s.put("/bkt/a.tar", e.object(t, faultserver.Answer{Fault: faultserver.Stall, After: 524288}, faultserver.Answer{})))
		e.check(t, s, got, err)
		second := s.srv.Requests(http.MethodGet)[1].Header
		if second.Get("Range") != e.Second.Range || second.Get("If-Match") != e.Second.IfMatch {
			t.Errorf("the second request is %v", second)
		}
		if d := time.Since(before); d < time.Second || d > 2*time.Second {
			t.Errorf("it took %v of the bubble's time", d)
		}
	})
}

func TestCaseSlowButSteady(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := loadCase(t, "e3_slow_but_steady")
		s := pipe(t, remote.Options{Stall: time.Duration(e.Client.NoProgress * float64(time.Second))})
		got, err := s.read(t.Context(), s.put("/bkt/a.tar", e.object(t, faultserver.Answer{BytesPerSecond: 10240, WriteSize: 1024})))
		e.check(t, s, got, err)
	})
}

func TestCase503FiveTimes(t *testing.T) {
	e := loadCase(t, "e5_503_five_times")
	waits := func(seed uint64) (waits []time.Duration) {
		bubble(t, func(t *testing.T) {
			s := pipe(t, remote.Options{Seed: seed})
			busy := faultserver.Answer{Status: 503}
			got, err := s.read(t.Context(), s.put("/bkt/a.tar", e.object(t, busy, busy, busy, busy, busy, faultserver.Answer{})))
			e.check(t, s, got, err)
			var last time.Time
			for i, r := range s.srv.Requests(http.MethodGet) {
				if i > 0 {
					waits = append(waits, r.At.Sub(last))
				}
				last = r.At
			}
		})
		return waits
	}
	one, two := waits(1), waits(2)
	if slices.Equal(one, two) {
		t.Errorf("two clients wait equally long: %v", one)
	}
	for i, w := range append(one, two...) {
		if bound := 100 * time.Millisecond << (i % 5); w <= 0 || w > bound {
			t.Errorf("wait %d is %v, want at most %v", i%5, w, bound)
		}
	}
}

func TestCaseRetryAfter(t *testing.T) {
	e := loadCase(t, "e5_retry_after")
	for name, header := range map[string]func() string{
		"seconds": func() string { return "2" },
		"date":    func() string { return time.Now().Add(3 * time.Second).UTC().Format(http.TimeFormat) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := pipe(t, remote.Options{})
				got, err := s.read(t.Context(), s.put("/bkt/a.tar", e.object(t,
					faultserver.Answer{Status: 429, Header: http.Header{"Retry-After": {header()}}}, faultserver.Answer{})))
				e.check(t, s, got, err)
				r := s.srv.Requests(http.MethodGet)
				wait := r[1].At.Sub(r[0].At).Seconds()
				if wait < e.WaitAtLeast || wait > e.WaitAtMost {
					t.Errorf("it waited %v s", wait)
				}
			})
		})
	}
}

func TestCaseRetryAfterHasACap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := pipe(t, remote.Options{})
		addr := s.put("/bkt/a.tar", &faultserver.Object{Content: faultserver.Pattern(1000), Gets: []faultserver.Answer{
			{Status: 503, Header: http.Header{"Retry-After": {"86400"}}}, {},
		}})
		if _, err := s.read(t.Context(), addr); err != nil {
			t.Error(err)
		}
		r := s.srv.Requests(http.MethodGet)
		if wait := r[1].At.Sub(r[0].At); wait < 5*time.Minute || wait > 5*time.Minute+time.Second {
			t.Errorf("it waited %v", wait)
		}
	})
}

func TestCase64Readers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := loadCase(t, "e5_64_readers")
		s := pipe(t, remote.Options{})
		var addrs []string
		for i := range e.Readers {
			addrs = append(addrs, s.put(fmt.Sprintf("/bkt/%d.tar", i), e.object(t, faultserver.Answer{Status: 503}, faultserver.Answer{Wait: time.Second})))
		}
		readAll := func() {
			var wg sync.WaitGroup
			for _, addr := range addrs {
				wg.Go(func() {
					got, err := s.read(t.Context(), addr)
					if err != nil || sum(got) != e.SHA256 {
						t.Errorf("%s: %d bytes, %v", addr, len(got), err)
					}
				})
			}
			wg.Wait()
		}
		readAll()
		gets := s.srv.Requests(http.MethodGet)
		if len(gets) != e.Requests {
			t.Errorf("%d requests, want %d", len(gets), e.Requests)
		}
		// The second half are the retries. Not all of them wait for the same
		// time, nor for the answers of the first.
		first, last := gets[64].At, gets[64].At
		for _, r := range gets[64:96] {
			first, last = minTime(first, r.At), maxTime(last, r.At)
		}
		if spread := last.Sub(first); spread < 20*time.Millisecond {
			t.Errorf("the retries came within %v", spread)
		}
		s.srv.Forget()
		readAll()
		if got := s.srv.Peak(); got != 64 {
			t.Errorf("afterwards %d requests at once, want 64", got)
		}
		if stats := s.client.Stats(); stats.Ceiling != 64 || stats.InFlight != 0 || stats.Throttled != 64 || stats.Held != 0 {
			t.Errorf("stats are %+v", stats)
		}
	})
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func maxTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func TestCase503ForEver(t *testing.T) {
	e := loadCase(t, "e5_503_for_ever")
	busy := []faultserver.Answer{{Status: 503}}
	for name, heads := range map[string][]faultserver.Answer{"GET": nil, "HEAD": busy} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := pipe(t, remote.Options{})
				o := e.object(t, busy...)
				o.Heads = heads
				got, err := s.read(t.Context(), s.put("/bkt/a.tar", o))
				e.check(t, s, got, err)
				if n := len(s.srv.Requests()); n > e.RequestsMax {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

func TestCaseChecksums(t *testing.T) {
	for _, name := range []string{"e9_composite", "e9_composite_untyped", "e9_full_right", "e9_full_wrong"} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int64{8 << 20, 10_000} { // one range, and more
				bubble(t, func(t *testing.T) {
					e := loadCase(t, name)
					s := pipe(t, remote.Options{Range: size})
					h, flip := http.Header{}, []int64(nil)
					for k, v := range e.Server {
						if k == "flip_byte" {
							flip = append(flip, int64(v.(float64)))
							continue
						}
						h.Set(k, v.(string))
					}
					o := e.object(t, faultserver.Answer{Flip: flip})
					o.Header = h
					addr := s.put("/bkt/a.tar", o)
					got, err := s.read(t.Context(), addr)
					e.check(t, s, got, err)
					if len(got) != 40960 {
						t.Errorf("%d bytes came before the error", len(got))
					}
					// What is not read whole is not held against it.
					obj, err := s.st.Open(t.Context(), addr)
					if err != nil {
						t.Fatal(err)
					}
					r, err := store.Stream(t.Context(), obj, 1)
					if err != nil {
						t.Fatal(err)
					}
					if n, err := io.Copy(io.Discard, r); n != 40959 || err != nil {
						t.Errorf("from byte 1: %d, %v", n, err)
					}
					r.Close()
				})
			}
		})
	}
}

func TestCaseContentEncoding(t *testing.T) {
	for _, tt := range []struct {
		name    string
		size    int64
		answers []faultserver.Answer
	}{
		{"e11_content_encoding", 0, nil},
		{"e11_content_encoding_ranges", 100, nil},
		{"e11_content_encoding_ranges", 0, []faultserver.Answer{{Fault: faultserver.Reset, After: 161}, {}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := loadCase(t, tt.name)
				s := pipe(t, remote.Options{Range: tt.size})
				o := e.object(t, tt.answers...)
				o.Header = http.Header{"Content-Encoding": {"gzip"}}
				got, err := s.read(t.Context(), s.put("/bkt/good.tar.gz", o))
				e.check(t, s, got, err)
				for _, r := range s.srv.Requests() {
					if a := r.Header["Accept-Encoding"]; len(a) != 1 || a[0] != "identity" {
						t.Errorf("%s has Accept-Encoding %q", r.Method, a)
					}
				}
			})
		})
	}
}

func TestCaseSmallReads(t *testing.T) {
	e := loadCase(t, "e13_small_reads")
	if testing.Short() {
		e.Object.Bytes = 20 << 20
	}
	for name, size := range map[string]func(i int) int{
		"512":     func(int) int { return 512 },
		"1..4096": func(i int) int { return i%4096 + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			s := tcp(t, remote.Options{})
			r, err := store.OpenStream(t.Context(), s.st, s.put("/bkt/zeros.tar", e.object(t)))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var total int64
			buf, zeros := make([]byte, 4096), true
			for i := 0; ; i++ {
				n, err := r.Read(buf[:size(i)])
				for _, b := range buf[:n] {
					zeros = zeros && b == 0
				}
				total += int64(n)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if total != e.Object.Bytes || !zeros {
				t.Errorf("read %d bytes of %d, zeros: %v", total, e.Object.Bytes, zeros)
			}
			if s.client.Stats().Held != 0 {
				t.Errorf("after the end %+v", s.client.Stats())
			}
		})
	}
}

func TestCaseStopEarly(t *testing.T) {
	e := loadCase(t, "e13_stop_early")
	bubble(t, func(t *testing.T) { // which fails if a goroutine is left
		s := pipe(t, remote.Options{})
		r, err := store.OpenStream(t.Context(), s.st, s.put("/bkt/zeros.tar", e.object(t)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, r, 1<<20); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		s.st.Close() // the connection of HEAD, which is idle
		synctest.Wait()
		if n := s.srv.Connections(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
		if stats := s.client.Stats(); stats.InFlight != 0 || stats.Held != 0 {
			t.Errorf("left: %+v", stats)
		}
	})
}

func TestCasePresigned(t *testing.T) {
	for _, name := range []string{"e14_presigned", "e14_presigned_expired"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := loadCase(t, name)
				s := pipe(t, remote.Options{})
				var answers []faultserver.Answer
				if e.Error != nil {
					answers = []faultserver.Answer{{Status: 403, Message: "Request has expired"}}
				} else {
					answers = []faultserver.Answer{{}, {Fault: faultserver.Reset, After: 1000}, {}} // something to log
				}
				o := e.object(t, answers...)
				o.Heads = []faultserver.Answer{{Status: 403}}
				addr := s.put("/bkt/a.tar", o) + "?"
				for k, v := range e.Query {
					addr += k + "=" + v + "&"
				}
				got, err := s.read(t.Context(), addr)
				e.check(t, s, got, err)
				if n := len(s.srv.Requests()); n > e.RequestsMax {
					t.Errorf("%d requests", n)
				}
				said := s.log.String() + fmt.Sprintf("%v %+v %#v", err, err, err)
				for inner := err; inner != nil; inner = errors.Unwrap(inner) {
					said += inner.Error()
				}
				for _, secret := range e.Secrets {
					if strings.Contains(said, secret) {
						t.Errorf("%s stands in %s", secret, said)
					}
				}
				if e.Error != nil && !strings.Contains(err.Error(), "/bkt/a.tar") {
					t.Errorf("the error does not name the object: %v", err)
				}
				if e.Error == nil && !strings.Contains(said, "/bkt/a.tar") {
					t.Errorf("nothing was logged: %s", said)
				}
			})
		})
	}
}
