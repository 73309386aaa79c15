package web_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/faultserver"
	"shardtool/reader/store/remote"
)

func first(a faultserver.Answer) []faultserver.Answer { return []faultserver.Answer{a, {}} }

func TestReplacedIsStaleAndNeverAMixture(t *testing.T) {
	day := time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC)
	old := faultserver.Pattern(100_000)
	for name, tt := range map[string]struct {
		was, is *faultserver.Object
		blind   bool // the server ignores If-Match
		says    []string
	}{
		"412":        {&faultserver.Object{ETag: `"one"`}, &faultserver.Object{ETag: `"two"`, Content: faultserver.Zeros(100_000)}, false, []string{`"one" of 100000 bytes`, `"two"`, "http 412"}},
		"other ETag": {&faultserver.Object{ETag: `"one"`}, &faultserver.Object{ETag: `"two"`, Content: faultserver.Zeros(100_000)}, true, []string{`"one" of 100000 bytes`, `"two" of 100000 bytes`}},
		"weak ETag":  {&faultserver.Object{ETag: `W/"one"`}, &faultserver.Object{ETag: `W/"two"`, Content: faultserver.Zeros(100_000)}, false, []string{`W/"one"`, `W/"two"`}},
		"date":       {&faultserver.Object{Modified: day}, &faultserver.Object{Modified: day.Add(time.Hour), Content: faultserver.Zeros(100_000)}, false, []string{"10:00:00", "11:00:00", "http 412"}},
		"date, blind": {&faultserver.Object{Modified: day}, &faultserver.Object{Modified: day.Add(time.Hour), Content: faultserver.Zeros(100_000)}, true,
			[]string{"10:00:00", "11:00:00"}},
		"size": {&faultserver.Object{}, &faultserver.Object{Content: faultserver.Zeros(100_001)}, false, []string{"100000 bytes", "100001 bytes"}},
		"less": {&faultserver.Object{}, &faultserver.Object{Content: faultserver.Zeros(99_999)}, false, []string{"100000 bytes", "99999 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int64{8 << 20, 10_000} {
				bubble(t, func(t *testing.T) {
					s := pipe(t, remote.Options{Range: size})
					o := &faultserver.Object{ETag: tt.was.ETag, Modified: tt.was.Modified, Content: old}
					is := &faultserver.Object{ETag: tt.is.ETag, Modified: tt.is.Modified, Content: tt.is.Content}
					o.Gets = []faultserver.Answer{{Fault: faultserver.Reset, After: 1000}, {As: is, IgnoreMatch: tt.blind}}
					got, err := s.read(t.Context(), s.put("/bkt/a.tar", o))
					if !errors.Is(err, format.ErrStale) || !bytes.Equal(got, content(t, old)[:1000]) {
						t.Errorf("%d bytes, %v; want 1000 and stale", len(got), err)
					}
					for _, word := range tt.says {
						if !strings.Contains(fmt.Sprint(err), word) {
							t.Errorf("%v does not say %s", err, word)
						}
					}
				})
			}
		})
	}
}

func TestOpenEntryAsksForNothingAndForTheVersion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := pipe(t, remote.Options{})
		addr := s.put("/bkt/a.tar", &faultserver.Object{Content: faultserver.Pattern(1000), ETag: `"one"`})
		e, err := s.st.Stat(t.Context(), addr)
		if err != nil {
			t.Fatal(err)
		}
		s.srv.Forget()
		o, err := s.st.OpenEntry(t.Context(), e)
		if err != nil || len(s.srv.Requests()) > 0 {
			t.Fatal(err, s.srv.Requests())
		}
		p := make([]byte, 100)
		if _, err := o.ReadAt(t.Context(), p, 500); err != nil {
			t.Error(err)
		}
		r := s.srv.Requests()
		if len(r) != 1 || r[0].Header.Get("Range") != "bytes=500-599" || r[0].Header.Get("If-Match") != `"one"` {
			t.Errorf("requests are %v", r)
		}
		s.put("/bkt/a.tar", &faultserver.Object{Content: faultserver.Zeros(1000), ETag: `"two"`})
		if _, err := o.ReadAt(t.Context(), p, 500); !errors.Is(err, format.ErrStale) {
			t.Errorf("replaced: %v", err)
		}
	})
}

func TestCutsThatLookLikeEnds(t *testing.T) {
	object := faultserver.Pattern(100_000)
	short := &faultserver.Object{ETag: `"one"`, Content: faultserver.Pattern(60_000)}
	long := &faultserver.Object{ETag: `"one"`, Content: faultserver.Pattern(100_001)}
	for name, tt := range map[string]struct {
		answers []faultserver.Answer
		n       int
		class   error
	}{
		"hang up":            {first(faultserver.Answer{Fault: faultserver.Hangup, After: 70_000}), 100_000, nil},
		"short, then whole":  {first(faultserver.Answer{As: short}), 100_000, nil},
		"short for ever":     {[]faultserver.Answer{{As: short}}, 60_000, format.ErrTruncated},
		"chunks cut":         {first(faultserver.Answer{NoLength: true, Fault: faultserver.Hangup, After: 70_000}), 100_000, nil},
		"chunks that go on":  {[]faultserver.Answer{{NoLength: true, As: long}}, 100_000, format.ErrStale},
		"longer":             {[]faultserver.Answer{{As: long}}, 0, format.ErrStale},
		"chunks, then short": {[]faultserver.Answer{{NoLength: true, As: short}}, 60_000, format.ErrTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := pipe(t, remote.Options{})
				got, err := s.read(t.Context(), s.put("/bkt/a.tar", &faultserver.Object{ETag: `"one"`, Content: object, Gets: tt.answers}))
				if !errors.Is(err, tt.class) || !bytes.Equal(got, content(t, object)[:tt.n]) {
					t.Errorf("%d bytes, %v; want %d and %v", len(got), err, tt.n, tt.class)
				}
				if e := format.AsError(err); e != nil && e.Offset != int64(tt.n) {
					t.Errorf("%v is at %d", e, e.Offset)
				}
			})
		})
	}
}

func TestServersWithoutRanges(t *testing.T) {
	object := faultserver.Pattern(3 << 20)
	whole := faultserver.Answer{IgnoreRange: true}
	cut := faultserver.Answer{IgnoreRange: true, Fault: faultserver.Reset, After: 1 << 20}
	chunks := faultserver.Answer{IgnoreRange: true, NoLength: true}
	for name, tt := range map[string]struct {
		etag  string
		gets  []faultserver.Answer
		heads []faultserver.Answer
		n     int64
		class error
		most  int // requests
	}{
		"whole":             {`"e"`, []faultserver.Answer{whole}, nil, 3 << 20, nil, 1},
		"cut":               {`"e"`, []faultserver.Answer{cut, whole}, nil, 3 << 20, nil, 2},
		"cut, weak":         {`W/"e"`, []faultserver.Answer{cut, whole}, nil, 1 << 20, format.ErrIO, 1},
		"cut, again":        {`"e"`, []faultserver.Answer{cut, {Status: 503}, cut, cut, whole}, nil, 3 << 20, nil, 5},
		"chunks":            {`"e"`, []faultserver.Answer{chunks}, []faultserver.Answer{{NoLength: true}}, 3 << 20, nil, 2},
		"chunks, no ETag":   {"", []faultserver.Answer{chunks}, []faultserver.Answer{{Status: 405}}, 3 << 20, nil, 2},
		"chunks, cut":       {`"e"`, []faultserver.Answer{{IgnoreRange: true, NoLength: true}, {IgnoreRange: true, NoLength: true, Fault: faultserver.Hangup, After: 70_000}, chunks}, []faultserver.Answer{{Status: 405}}, 3 << 20, nil, 3},
		"chunks, cut, weak": {`W/"e"`, []faultserver.Answer{chunks, {IgnoreRange: true, NoLength: true, Fault: faultserver.Hangup, After: 70_000}}, []faultserver.Answer{{Status: 405}}, 70_000, format.ErrIO, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := pipe(t, remote.Options{Range: 1 << 20})
				got, err := s.read(t.Context(), s.put("/bkt/a.tar", &faultserver.Object{ETag: tt.etag, Content: object, Gets: tt.gets, Heads: tt.heads}))
				if !errors.Is(err, tt.class) || !bytes.Equal(got, content(t, object)[:tt.n]) {
					t.Errorf("%d bytes, %v; want %d and %v", len(got), err, tt.n, tt.class)
				}
				if n := len(s.srv.Requests(http.MethodGet)); n > tt.most {
					t.Errorf("%d requests, want %d", n, tt.most)
				}
			})
		})
	}
}

func TestReadAtOnServersWithoutRanges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := pipe(t, remote.Options{})
		object := faultserver.Pattern(3 << 20)
		o, err := s.st.Open(t.Context(), s.put("/bkt/a.tar", &faultserver.Object{Content: object, Gets: []faultserver.Answer{{IgnoreRange: true}}}))
		if err != nil {
			t.Fatal(err)
		}
		p := make([]byte, 100)
		if _, err := o.ReadAt(t.Context(), p, 1000); err != nil || !bytes.Equal(p, content(t, object)[1000:1100]) {
			t.Errorf("near the start: %v", err)
		}
		if n, err := o.ReadAt(t.Context(), p, 2<<20); n != 0 || !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), "ignores Range") {
			t.Errorf("far from it: %d, %v", n, err)
		}
	})
}

func TestReadAtResumesWithExactRanges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := pipe(t, remote.Options{})
		object := faultserver.Pattern(1 << 20)
		o, err := s.st.Open(t.Context(), s.put("/bkt/a.tar", &faultserver.Object{Content: object, ETag: `"e"`, Gets: []faultserver.Answer{
			{Fault: faultserver.Reset, After: 10}, {Fault: faultserver.Stall, After: 20}, {Status: 500}, {}}}))
		if err != nil {
			t.Fatal(err)
		}
		p := make([]byte, 100)
		if n, err := o.ReadAt(t.Context(), p, 1000); n != 100 || err != nil || !bytes.Equal(p, content(t, object)[1000:1100]) {
			t.Errorf("%d, %v", n, err)
		}
		var got []string
		for _, r := range s.srv.Requests(http.MethodGet) {
			got = append(got, r.Header.Get("Range"))
		}
		if want := "[bytes=1000-1099 bytes=1010-1099 bytes=1030-1099 bytes=1030-1099]"; fmt.Sprint(got) != want {
			t.Errorf("ranges are %v, want %v", got, want)
		}
	})
}

func TestHeadThatTellsNoSize(t *testing.T) {
	for name, head := range map[string]faultserver.Answer{
		"says 0":         {Handle: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "0") }},
		"says nothing":   {NoLength: true},
		"not allowed":    {Status: 405},
		"not known":      {Status: 501},
		"denied":         {Status: 403},
		"sizes 0 anyway": {},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := pipe(t, remote.Options{})
				size := int64(1000)
				if name == "sizes 0 anyway" {
					size = 0
				}
				object := faultserver.Pattern(size)
				addr := s.put("/bkt/a.tar", &faultserver.Object{ETag: `"e"`, Content: object, Heads: []faultserver.Answer{head}})
				e, err := s.st.Stat(t.Context(), addr)
				if err != nil || e.Size != size || e.Version != `"e"` || e.Name != addr {
					t.Errorf("%+v, %v", e, err)
				}
				if got, err := s.read(t.Context(), addr); err != nil || !bytes.Equal(got, content(t, object)) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			})
		})
	}
}

func TestAnswersThatLie(t *testing.T) {
	lie := func(status int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "0123456789")
		}
	}
	for name, h := range map[string]http.HandlerFunc{
		"no Content-Range":    lie(206),
		"other unit":          lie(206, "Content-Range", "rows 100-109/1000"),
		"backwards":           lie(206, "Content-Range", "bytes 109-100/1000"),
		"past the end":        lie(206, "Content-Range", "bytes 100-1000/1000"),
		"negative":            lie(206, "Content-Range", "bytes -1-5/1000"),
		"other place":         lie(206, "Content-Range", "bytes 200-209/1000"),
		"huge":                lie(206, "Content-Range", "bytes 100-99999999999999999999/1000"),
		"several ranges":      lie(206, "Content-Type", "multipart/byteranges; boundary=x"),
		"no content":          lie(204),
		"not modified":        lie(304),
		"redirect to nowhere": lie(302),
		"redirect to garbage": lie(302, "Location", "http://[::1"),
		"teapot":              lie(418),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := pipe(t, remote.Options{Attempts: 2})
				o, err := s.st.Open(t.Context(), s.put("/bkt/a.tar", &faultserver.Object{Content: faultserver.Pattern(1000), ETag: `"e"`, Gets: []faultserver.Answer{{Handle: h}}}))
				if err != nil {
					t.Fatal(err)
				}
				n, err := o.ReadAt(t.Context(), make([]byte, 10), 100)
				if n != 0 || !errors.Is(err, format.ErrIO) || !strings.Contains(err.Error(), "/bkt/a.tar @ 100") {
					t.Errorf("%d, %v", n, err)
				}
			})
		})
	}
}

func TestAnEndThatNothingTells(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := pipe(t, remote.Options{})
		bare := faultserver.Answer{Handle: func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf of it")
			c.Close()
		}}
		got, err := s.read(t.Context(), s.put("/bkt/a.tar", &faultserver.Object{Gets: []faultserver.Answer{bare}, Heads: []faultserver.Answer{{Status: 405}}}))
		if !errors.Is(err, format.ErrUnsupported) || len(got) > 0 {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestRefusals(t *testing.T) {
	for status, class := range map[int]error{
		400: format.ErrIO, 401: format.ErrDenied, 403: format.ErrDenied, 404: format.ErrNotFound, 410: format.ErrNotFound, 407: format.ErrDenied, 451: format.ErrIO,
	} {
		bubble(t, func(t *testing.T) {
			s := pipe(t, remote.Options{})
			refusal := []faultserver.Answer{{Status: status, Code: "Nope", Message: "not for you"}}
			addr := s.put("/bkt/a.tar", &faultserver.Object{Content: faultserver.Pattern(1000), Gets: refusal})
			_, err := s.read(t.Context(), addr)
			if !errors.Is(err, class) || !strings.Contains(err.Error(), fmt.Sprintf("http %d Nope: not for you", status)) || len(s.srv.Requests(http.MethodGet)) != 1 {
				t.Errorf("%v after %d requests", err, len(s.srv.Requests(http.MethodGet)))
			}
			if errors.Is(err, fs.ErrNotExist) != (class == format.ErrNotFound) || errors.Is(err, fs.ErrPermission) != (class == format.ErrDenied) {
				t.Errorf("%v is not what the file system calls it", err)
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := pipe(t, remote.Options{Attempts: 3})
		s.srv.Close()
		_, err := s.st.Open(t.Context(), s.srv.URL+"/a.tar?sig=SECRET")
		if !errors.Is(err, format.ErrIO) || errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "refused") {
			t.Error(err)
		}
	})
}

func TestCancellationIsPrompt(t *testing.T) {
	stall := faultserver.Answer{Fault: faultserver.Stall, After: 10}
	slow := faultserver.Answer{Wait: time.Hour}
	busy := faultserver.Answer{Status: 503, Header: http.Header{"Retry-After": {"300"}}}
	for name, tt := range map[string]struct {
		answer faultserver.Answer
		object *faultserver.Object
	}{
		"stalled":              {stall, &faultserver.Object{ETag: `"e"`}},
		"before the answer":    {slow, &faultserver.Object{ETag: `"e"`}},
		"between tries":        {busy, &faultserver.Object{ETag: `"e"`}},
		"stalled, in order":    {stall, &faultserver.Object{Header: http.Header{"Accept-Ranges": {"none"}}}},
		"between, in order":    {busy, &faultserver.Object{Header: http.Header{"Accept-Ranges": {"none"}}}},
		"before the answer, o": {slow, &faultserver.Object{Header: http.Header{"Accept-Ranges": {"none"}}}},
	} {
		for _, how := range []string{"cancel", "close"} {
			t.Run(name+" "+how, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					s := pipe(t, remote.Options{Stall: 2 * time.Hour, Connections: 2})
					o := &faultserver.Object{Content: faultserver.Pattern(1000), ETag: tt.object.ETag, Header: tt.object.Header, Gets: []faultserver.Answer{tt.answer}}
					obj, err := s.st.Open(t.Context(), s.put("/bkt/a.tar", o))
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var all sync.WaitGroup
					begun := time.Now()
					for range 5 {
						all.Go(func() {
							r, err := store.Stream(ctx, obj, 0)
							if err != nil {
								t.Error(err)
								return
							}
							if how == "close" {
								time.Sleep(time.Second)
								r.Close()
								return
							}
							if _, err := io.ReadAll(r); !errors.Is(err, context.Canceled) {
								t.Error(err)
							}
							r.Close()
						})
					}
					synctest.Wait()
					if how == "cancel" {
						time.Sleep(time.Second)
						cancel()
					}
					all.Wait()
					if d := time.Since(begun); d > time.Second {
						t.Errorf("it took %v", d)
					}
					if stats := s.client.Stats(); stats.Held != 0 {
						t.Errorf("left: %+v", stats)
					}
				})
			})
		}
	}
}

func TestManyStreamsOverFewConnections(t *testing.T) {
	const streams, size = 64, 700_000
	want := content(t, faultserver.Pattern(size))
	open := func(t *testing.T, s *setup) (readers []io.ReadCloser) {
		for i := range streams {
			r, err := store.OpenStream(t.Context(), s.st, s.put(fmt.Sprintf("/bkt/%d.tar", i), &faultserver.Object{Content: faultserver.Pattern(size), ETag: `"e"`}))
			if err != nil {
				t.Fatal(err)
			}
			readers = append(readers, r)
		}
		return readers
	}
	for name, ahead := range map[string]int64{"room for all": 0, "room for few": 1 << 20, "room for none": 1} {
		o := remote.Options{Connections: 4, Range: 100_000, ReadAhead: ahead}
		t.Run(name+", in turns", func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := pipe(t, o)
				readers := open(t, s)
				p := make([]byte, 9999)
				for off := 0; off < size; off += len(p) {
					for i, r := range readers {
						n, err := io.ReadFull(r, p[:min(len(p), size-off)])
						if err != nil || !bytes.Equal(p[:n], want[off:off+n]) {
							t.Fatalf("stream %d at %d: %v", i, off, err)
						}
					}
				}
				for i, r := range readers {
					if n, err := r.Read(p); n != 0 || err != io.EOF {
						t.Errorf("stream %d ends with %d, %v", i, n, err)
					}
					r.Close()
				}
				if p := s.srv.Peak(); p > 4 {
					t.Errorf("%d requests at once", p)
				}
			})
		})
		t.Run(name+", one after the other", func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := pipe(t, o)
				for i, r := range open(t, s) {
					got, err := io.ReadAll(r)
					if err != nil || !bytes.Equal(got, want) {
						t.Errorf("stream %d: %d bytes, %v", i, len(got), err)
					}
					r.Close()
				}
				if stats := s.client.Stats(); stats.Held != 0 {
					t.Errorf("left: %+v", stats)
				}
			})
		})
	}
}

// TestScripts reads through random faults at random places: what comes is the
// object, whatever is in the way, as long as something comes between.
func TestScripts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.Int64Range(0, 3<<20).Draw(rt, "size")
		o := remote.Options{
			Connections: rapid.IntRange(1, 8).Draw(rt, "connections"),
			Range:       rapid.SampledFrom([]int64{10_000, 262_144, 300_000, 1 << 20, 8 << 20}).Draw(rt, "range"),
			ReadAhead:   rapid.SampledFrom([]int64{1, 1 << 20, 64 << 20}).Draw(rt, "ahead"),
			Attempts:    10,
		}
		answer := rapid.Custom(func(rt *rapid.T) faultserver.Answer {
			switch rapid.IntRange(0, 5).Draw(rt, "kind") {
			case 0:
				return faultserver.Answer{Status: rapid.SampledFrom([]int{408, 429, 500, 502, 503, 504}).Draw(rt, "status")}
			case 1:
				return faultserver.Answer{Wait: rapid.SampledFrom([]time.Duration{1, time.Second, 2 * time.Minute}).Draw(rt, "wait")}
			case 2:
				return faultserver.Answer{NoLength: true}
			default:
				return faultserver.Answer{
					Fault: rapid.SampledFrom([]faultserver.Fault{faultserver.Reset, faultserver.Hangup, faultserver.Stall}).Draw(rt, "fault"),
					After: rapid.Int64Range(0, size).Draw(rt, "after"),
				}
			}
		})
		// No more failures in a row than the client bears.
		gets := append(rapid.SliceOfN(answer, 0, 9).Draw(rt, "gets"), faultserver.Answer{})
		heads := append(rapid.SliceOfN(answer, 0, 3).Draw(rt, "heads"), faultserver.Answer{})
		from := rapid.Int64Range(0, size).Draw(rt, "from")
		piece := rapid.SampledFrom([]int{1000, 65_536, 300_001}).Draw(rt, "piece")
		var got []byte
		var failure error
		synctest.Test(t, func(t *testing.T) {
			s := pipe(t, o)
			obj, err := s.st.Open(t.Context(), s.put("/bkt/a.tar", &faultserver.Object{Content: faultserver.Pattern(size), ETag: `"e"`, Gets: gets, Heads: heads}))
			if err != nil {
				failure = err
				return
			}
			r, err := store.Stream(t.Context(), obj, from)
			if err != nil {
				failure = err
				return
			}
			defer r.Close()
			var b bytes.Buffer
			_, failure = io.CopyBuffer(struct{ io.Writer }{&b}, r, make([]byte, piece))
			got = b.Bytes()
		})
		if failure != nil {
			rt.Fatalf("after %d bytes: %v", len(got), failure)
		}
		if !bytes.Equal(got, content(t, faultserver.Pattern(size))[from:]) {
			rt.Fatalf("%d bytes, other ones than the object's", len(got))
		}
	})
}
