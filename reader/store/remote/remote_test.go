package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/reader/store"
)

// memoryGetter serves an object from memory. fault, if there is one, may break
// an answer: it returns how many bytes come and what ends them.
type memoryGetter struct {
	data     []byte
	version  string
	checksum Checksum
	fault    func(n int, q Request) (after int, err error)

	mu       sync.Mutex
	requests []Request
	active   int
	peak     int
}

func (g *memoryGetter) Get(ctx context.Context, q Request) (*Response, error) {
	g.mu.Lock()
	n := len(g.requests)
	g.requests = append(g.requests, q)
	g.active++
	g.peak = max(g.peak, g.active)
	g.mu.Unlock()
	end := int64(len(g.data))
	if q.Length >= 0 {
		end = min(end, q.Offset+q.Length)
	}
	b := &memoryBody{g: g, p: g.data[q.Offset:end], err: io.EOF}
	if g.fault != nil {
		after, err := g.fault(n, q)
		var status *StatusError
		if errors.As(err, &status) {
			b.Close()
			return nil, err
		}
		if err != nil && after < len(b.p) {
			b.p, b.err = b.p[:after], err
		}
	}
	return &Response{Body: b, Offset: q.Offset, Length: end - q.Offset, Size: int64(len(g.data)), Version: g.version, Checksum: g.checksum}, ctx.Err()
}

type memoryBody struct {
	g      *memoryGetter
	p      []byte
	err    error
	closed atomic.Bool
}

func (b *memoryBody) Read(p []byte) (int, error) {
	if len(b.p) == 0 {
		return 0, b.err
	}
	n := copy(p, b.p)
	b.p = b.p[n:]
	return n, nil
}

func (b *memoryBody) Close() error {
	if b.closed.CompareAndSwap(false, true) {
		b.g.mu.Lock()
		b.g.active--
		b.g.mu.Unlock()
	}
	return nil
}

func random(n int) []byte {
	p := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(p) // never fails
	return p
}

func open(c *Client, g *memoryGetter) store.Object {
	return c.Open("mem://a.tar", store.Entry{Name: "mem://a.tar", Size: int64(len(g.data)), Version: g.version}, g)
}

func TestBoundsDoubleUpToACap(t *testing.T) {
	for n, want := range map[int]time.Duration{
		0: 100 * time.Millisecond, 1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 3: 400 * time.Millisecond,
		8: 12800 * time.Millisecond, 9: 20 * time.Second, 100: 20 * time.Second,
	} {
		if got := bound(n); got != want {
			t.Errorf("bound(%d) is %v, want %v", n, got, want)
		}
	}
	one, other, same := NewClient(&Options{Seed: 1}), NewClient(&Options{Seed: 2}), NewClient(&Options{Seed: 1})
	equal, low, high := 0, 0, 0
	for range 1000 {
		a, b, c := one.draw(time.Second), other.draw(time.Second), same.draw(time.Second)
		if a <= 0 || a > time.Second || a != c {
			t.Fatalf("drew %v and %v", a, c)
		}
		if a == b {
			equal++
		}
		if a < time.Second/4 {
			low++
		} else if a > 3*time.Second/4 {
			high++
		}
	}
	if equal > 10 || low < 150 || high < 150 {
		t.Errorf("of 1000 draws %d are equal, %d low and %d high", equal, low, high)
	}
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for v, want := range map[string]time.Duration{
			"": 0, "0": 0, "2": 2 * time.Second, "86400": 24 * time.Hour, "-5": 0, "2.5": 0, "soon": 0, "99999999999999999999": 0,
			// The clock of a bubble begins here.
			"Sat, 01 Jan 2000 00:01:00 GMT": time.Minute, "Fri, 31 Dec 1999 00:00:00 GMT": 0,
		} {
			if got := RetryAfter(http.Header{"Retry-After": {v}}); got != want {
				t.Errorf("%q: %v, want %v", v, got, want)
			}
		}
	})
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"s3://bucket/a?X-Amz-Signature=not-a-query": "s3://bucket/a?X-Amz-Signature=not-a-query",
		"a.tar?x=y":                                  "a.tar?x=y",
		"http://h/a.tar":                             "http://h/a.tar",
		"https://u:p@h:8080/a.tar":                   "https://h:8080/a.tar",
		"https://u:p@ss@h/a@b.tar":                   "https://h/a@b.tar",
		"HTTPS://h/a?X-Amz-Signature=S&X-Amz-Date=D": "HTTPS://h/a?X-Amz-Signature=REDACTED&X-Amz-Date=REDACTED",
		"https://h/a?sig=S;AWSAccessKeyId=K&Expires=1&empty=&=x#f": "https://h/a?sig=REDACTED&AWSAccessKeyId=REDACTED&Expires=REDACTED&empty=REDACTED&=REDACTED",
		"https://h/a?SECRETTOKEN":                                  "https://h/a?REDACTED",
		"https://h?x=y":                                            "https://h?x=REDACTED",
		"https://h/a?":                                             "https://h/a?",
		"https://u:p@h":                                            "https://h",
		"https://":                                                 "https://",
		"":                                                         "",
	} {
		if got := Redact(in); got != want {
			t.Errorf("Redact(%q) = %q, want %q", in, got, want)
		}
	}
	text := `Get "https://u:SECRET@h/a?sig=SECRET": moved to http://h/b?t=SECRET, then <HTTP://h/c?SECRET>`
	if got, want := redactText(text), `Get "https://h/a?sig=REDACTED": moved to http://h/b?t=REDACTED then <HTTP://h/c?REDACTED>`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestErrorsTellNoSecrets(t *testing.T) {
	c := NewClient(&Options{Attempts: 1})
	addr := "https://u:SECRET@h/a.tar?sig=SECRET"
	for _, err := range []error{
		&url.Error{Op: "Get", URL: addr, Err: errors.New("no luck with " + addr)},
		&url.Error{Op: "Get", URL: addr, Err: &url.Error{Op: "Head", URL: addr, Err: io.ErrUnexpectedEOF}},
		fmt.Errorf("asking for %s: %w", addr, &url.Error{Op: "Get", URL: addr, Err: io.EOF}),
		&StatusError{Code: 500, Reason: "see " + addr},
		fmt.Errorf("asking for %s: %w", addr, &StatusError{Code: 403, Reason: "see " + addr}),
		&net.OpError{Op: "dial", Net: "tcp", Err: errors.New(addr)},
	} {
		got := c.Do(t.Context(), addr, func(context.Context) error { return err })
		said := fmt.Sprintf("%v %+v", got, got)
		for e := got; e != nil; {
			said += e.Error()
			f := format.AsError(e)
			if f == nil {
				break
			}
			e = f.Cause
		}
		if strings.Contains(said, "SECRET") || !strings.HasPrefix(got.Error(), "https://h/a.tar?sig=REDACTED: ") {
			t.Errorf("%v", said)
		}
	}
}

// TestClasses holds what drivers may report against what callers get.
func TestClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timeout := &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
		for _, tt := range []struct {
			err   error
			class error
			calls int
		}{
			{&StatusError{Code: 503}, format.ErrIO, 5},
			{&StatusError{Code: 429}, format.ErrIO, 5},
			{&StatusError{Code: 500}, format.ErrIO, 5},
			{&StatusError{Code: 408}, format.ErrIO, 5},
			{&StatusError{Code: 400}, format.ErrIO, 1},
			{&StatusError{Code: 400, Temporary: true}, format.ErrIO, 5},
			{&StatusError{Code: 401}, format.ErrDenied, 1},
			{&StatusError{Code: 403}, format.ErrDenied, 1},
			{&StatusError{Code: 403, Err: format.ErrUnsupported}, format.ErrUnsupported, 1},
			{&StatusError{Code: 404}, format.ErrNotFound, 1},
			{&StatusError{Code: 412}, format.ErrStale, 1},
			{&StatusError{Code: 416}, format.ErrTruncated, 1},
			{format.Errorf(format.ErrLimit, format.Nowhere, "too much"), format.ErrLimit, 1},
			{fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), format.ErrIO, 5},
			{timeout, format.ErrIO, 5},
			{&net.DNSError{Err: "no such host", Name: "h", IsNotFound: true}, format.ErrIO, 3},
			{&net.DNSError{Err: "server misbehaving", Name: "h", IsTemporary: true}, format.ErrIO, 5},
		} {
			c, calls := NewClient(&Options{Attempts: 5}), 0
			err := c.Do(t.Context(), "x", func(context.Context) error {
				calls++
				return fmt.Errorf("driver: %w", tt.err)
			})
			if !errors.Is(err, tt.class) || calls != tt.calls || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v: %v after %d calls, want %v after %d", tt.err, err, calls, tt.class, tt.calls)
			}
			if s := c.Stats(); s.Requests != int64(calls) || s.Retries != int64(calls-1) || s.InFlight != 0 {
				t.Errorf("%v: stats %+v", tt.err, s)
			}
		}
		if !errors.Is(NewClient(&Options{Attempts: 1}).Do(t.Context(), "x", func(context.Context) error { return &StatusError{Code: 404} }), fs.ErrNotExist) {
			t.Error("404 is not fs.ErrNotExist")
		}
	})
}

func TestDoIsCutUnlessItTellsThatItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClient(&Options{Stall: time.Second, Attempts: 2})
		err := c.Do(t.Context(), "x", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, format.ErrIO) || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "no byte came for 1s") {
			t.Errorf("a call that hangs: %v", err)
		}
		err = c.Do(t.Context(), "x", func(ctx context.Context) error {
			for range 10 {
				time.Sleep(900 * time.Millisecond)
				Alive(ctx)
			}
			return ctx.Err()
		})
		if err != nil {
			t.Errorf("a call that is slow and steady: %v", err)
		}
		Alive(t.Context()) // of no call
	})
}

func TestGateHalvesOncePerFlight(t *testing.T) {
	g := newGate(16)
	enter := func(n int) (passes []pass) {
		for range n {
			p, err := g.enter(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			passes = append(passes, p)
		}
		return passes
	}
	want := func(ceiling, active int) {
		t.Helper()
		if c, a := g.state(); c != ceiling || a != active {
			t.Fatalf("ceiling %d with %d active, want %d with %d", c, a, ceiling, active)
		}
	}
	flight := enter(16)
	for _, p := range flight[:15] {
		g.leave(p, throttled)
	}
	want(8, 1)
	next := enter(7)
	want(8, 8)
	g.leave(flight[15], throttled) // of the first flight still
	want(8, 7)
	g.leave(next[0], throttled)
	want(4, 6)
	for _, p := range next[1:] {
		g.leave(p, good)
	}
	want(10, 0)
	for range 20 {
		g.leave(enter(1)[0], good)
	}
	want(16, 0)
	for range 20 {
		g.leave(enter(1)[0], throttled)
	}
	want(1, 0)
	g.leave(enter(1)[0], neutral)
	want(1, 0)
}

func TestGateLetsTheUrgentPassFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		first, err := g.enter(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		note := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, s)
		}
		var all sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		wait := func(ctx context.Context, name string, at *place) {
			all.Go(func() {
				p, err := g.enter(ctx, at)
				if err != nil {
					note(name + " " + err.Error())
					return
				}
				note(name)
				g.leave(p, good)
			})
			synctest.Wait()
		}
		late := &place{}
		wait(t.Context(), "ahead 1", &place{})
		wait(ctx, "gone", &place{})
		wait(t.Context(), "promoted", late)
		wait(t.Context(), "urgent", nil)
		wait(ctx, "urgent, gone", nil)
		g.promote(late)
		cancel()
		synctest.Wait()
		g.leave(first, good)
		all.Wait()
		want := "urgent, promoted, ahead 1"
		if got := strings.Join(order[2:], ", "); got != want || !strings.Contains(order[0]+order[1], "gone context canceled") {
			t.Errorf("the order is %q, want %q at its end", order, want)
		}
		if _, active := g.state(); active != 0 {
			t.Errorf("%d passes are out", active)
		}
	})
}

// TestChecksumVectors: "123456789" is the check string of the catalogue of CRCs
// (reveng.sourceforge.io), of the SHAs sha1sum and sha256sum.
func TestChecksumVectors(t *testing.T) {
	for a, want := range map[Algorithm]string{
		CRC32:     "cbf43926",
		CRC32C:    "e3069283",
		CRC64NVME: "ae8b14860a799888",
		SHA1:      "f7c3bc1d808e04732adf679965ccc34ca7ae3441",
		SHA256:    "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225",
	} {
		h := Checksum{Algorithm: a}.verifier()
		_, _ = h.Write([]byte("123456789"))
		if got := fmt.Sprintf("%x", h.Sum(nil)); got != want {
			t.Errorf("%v: %s, want %s", a, got, want)
		}
		if c := ChecksumOf(http.Header{algorithms[a].header: {encodeSum(h)}}); c.Algorithm != a || c.Value != encodeSum(h) {
			t.Errorf("%v: the headers give %+v", a, c)
		}
		for _, drop := range []http.Header{
			{algorithms[a].header: {encodeSum(h) + "-2"}},
			{algorithms[a].header: {encodeSum(h)}, "X-Amz-Checksum-Type": {"COMPOSITE"}},
			{algorithms[a].header: {"not base64!"}},
			{},
		} {
			if c := ChecksumOf(drop); c != (Checksum{}) {
				t.Errorf("%v gives %+v", drop, c)
			}
		}
	}
}

func TestChecksumOfAWholeRead(t *testing.T) {
	data := random(3*blockSize + 77)
	for _, a := range []Algorithm{CRC32, CRC32C, CRC64NVME, SHA1, SHA256} {
		h := Checksum{Algorithm: a}.verifier()
		_, _ = h.Write(data)
		right := Checksum{a, encodeSum(h)}
		wrong := Checksum{a, encodeSum(sumOf(a, data[1:]))}
		for c, class := range map[Checksum]error{right: nil, wrong: format.ErrCorrupt} {
			for _, size := range []int64{100_000, 300_000, 8 << 20} {
				r, err := store.Stream(t.Context(), open(NewClient(&Options{Range: size}), &memoryGetter{data: data, checksum: c}), 0)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(r)
				if !bytes.Equal(got, data) || !errors.Is(err, class) {
					t.Errorf("%v: %d bytes, %v; want all and %v", a, len(got), err, class)
				}
				r.Close()
			}
		}
	}
}

func sumOf(a Algorithm, p []byte) hash.Hash {
	h := Checksum{Algorithm: a}.verifier()
	_, _ = h.Write(p)
	return h
}

// TestReplacedNamesBoth: an answer 412 seldom tells what is there now.
func TestReplacedNamesBoth(t *testing.T) {
	g := &memoryGetter{data: make([]byte, 500), version: `"new"`}
	g.fault = func(_ int, q Request) (int, error) {
		if q.IfMatch != "" {
			return 0, &StatusError{Code: http.StatusPreconditionFailed}
		}
		return 0, nil
	}
	o := NewClient(nil).Open("x", store.Entry{Size: 1000, Version: `"old"`}, g)
	n, err := o.ReadAt(t.Context(), make([]byte, 10), 20)
	want := `x @ 20: stale: the object was replaced: it was "old" of 1000 bytes and is "new" of 500 bytes now: http 412 Precondition Failed`
	if n != 0 || !errors.Is(err, format.ErrStale) || err.Error() != want {
		t.Errorf("%d, %v", n, err)
	}
	if g.active != 0 || len(g.requests) != 2 {
		t.Errorf("%d requests, %d bodies open", len(g.requests), g.active)
	}
}

// aboutGetter knows things beforehand.
type aboutGetter struct {
	*memoryGetter
	about About
}

func (g aboutGetter) About() About { return g.about }

func TestAbout(t *testing.T) {
	g := &memoryGetter{data: random(1000)}
	c := NewClient(nil)
	o := c.Open("x", store.Entry{Size: 1000}, aboutGetter{g, About{InOrder: true, Checksum: Checksum{CRC32, "AAAAAA=="}}})
	if _, err := o.ReadAt(t.Context(), make([]byte, 1), 0); !errors.Is(err, format.ErrUnsupported) {
		t.Error(err)
	}
	r, err := store.Stream(t.Context(), o, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); !bytes.Equal(got, g.data) || !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestTransfers reads at random places and in random pieces through random
// faults, several readers of one client at a time.
func TestTransfers(t *testing.T) {
	data := random(3 << 20)
	rapid.Check(t, func(rt *rapid.T) {
		o := &Options{
			Connections: rapid.IntRange(1, 6).Draw(rt, "connections"),
			Range:       rapid.SampledFrom([]int64{5000, 300_000, 1 << 20, 8 << 20}).Draw(rt, "range"),
			ReadAhead:   rapid.SampledFrom([]int64{1, 2 << 20, 64 << 20}).Draw(rt, "ahead"),
			Attempts:    12,
		}
		seed := rapid.Uint64().Draw(rt, "seed")
		size := rapid.IntRange(0, len(data)).Draw(rt, "size")
		many := rapid.IntRange(1, 6).Draw(rt, "readers")
		var failed atomic.Pointer[string]
		fail := func(msg string, args ...any) {
			s := fmt.Sprintf(msg, args...)
			failed.Store(&s)
		}
		synctest.Test(t, func(t *testing.T) {
			c := NewClient(o)
			var all sync.WaitGroup
			for i := range many {
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				off := random.IntN(size + 1)
				n := random.IntN(size - off + 1)
				var mu sync.Mutex
				g := &memoryGetter{data: data[:size], version: `"v"`, fault: func(n int, q Request) (int, error) {
					mu.Lock()
					defer mu.Unlock()
					switch random.IntN(6) {
					case 0:
						return 0, &StatusError{Code: 503}
					case 1, 2:
						return random.IntN(600_000), io.ErrUnexpectedEOF
					}
					return 0, nil
				}}
				obj := open(c, g)
				all.Go(func() {
					r, err := store.Stream(t.Context(), obj, int64(off))
					if err != nil {
						fail("Stream: %v", err)
						return
					}
					defer r.Close()
					var b bytes.Buffer
					if _, err := io.CopyBuffer(struct{ io.Writer }{&b}, r, make([]byte, 1+off%70_000)); err != nil || !bytes.Equal(b.Bytes(), data[off:size]) {
						fail("stream from %d of %d: %d bytes, %v", off, size, b.Len(), err)
					}
				})
				all.Go(func() {
					p := make([]byte, n)
					if m, err := obj.ReadAt(t.Context(), p, int64(off)); m != n || err != nil || !bytes.Equal(p, data[off:off+n]) {
						if n > 0 {
							fail("ReadAt(%d, %d) of %d: %d, %v", n, off, size, m, err)
						}
					}
				})
			}
			all.Wait()
			if s := c.Stats(); s.Held != 0 || s.InFlight != 0 || c.streams.Load() != 0 {
				fail("left: %+v, %d streams", s, c.streams.Load())
			}
		})
		if msg := failed.Load(); msg != nil {
			rt.Fatal(*msg)
		}
	})
}

func TestAThousandStreams(t *testing.T) {
	data := random(3 << 20)
	synctest.Test(t, func(t *testing.T) {
		c := NewClient(&Options{Connections: 16, ReadAhead: 32 << 20})
		g := &memoryGetter{data: data, version: `"v"`}
		var readers []io.ReadCloser
		for range 1000 {
			r, err := store.Stream(t.Context(), open(c, g), 0)
			if err != nil {
				t.Fatal(err)
			}
			readers = append(readers, r)
		}
		p := make([]byte, 10_000)
		for range 3 {
			for i, r := range readers {
				if _, err := io.ReadFull(r, p); err != nil {
					t.Fatalf("stream %d: %v", i, err)
				}
			}
		}
		if g.peak > 16 {
			t.Errorf("%d requests at once", g.peak)
		}
		for _, i := range []int{999, 0, 500} {
			if n, err := io.Copy(io.Discard, readers[i]); n != int64(len(data)-3*len(p)) || err != nil {
				t.Errorf("stream %d: %d bytes, %v", i, n, err)
			}
		}
		for _, r := range readers {
			r.Close()
		}
		if s := c.Stats(); s.Held != 0 || s.InFlight != 0 {
			t.Errorf("left: %+v", s)
		}
	})
}

// TestReadAhead looks at how much is asked for without a reader.
func TestReadAhead(t *testing.T) {
	data := make([]byte, 100<<20)
	synctest.Test(t, func(t *testing.T) {
		c := NewClient(&Options{Range: 4 << 20, ReadAhead: 24 << 20})
		g := &memoryGetter{data: data, version: `"v"`}
		o := open(c, g)
		r, err := store.Stream(t.Context(), o, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		held := func(requests int, bytes int64) {
			t.Helper()
			synctest.Wait()
			if s := c.Stats(); s.Held != bytes || len(g.requests) != requests || s.InFlight != 0 {
				t.Errorf("after %d requests %+v, want %d and %d held", len(g.requests), s, requests, bytes)
			}
		}
		held(1, 4<<20) // what the server can do is not known yet
		p := make([]byte, 1<<20)
		if _, err := io.ReadFull(r, p); err != nil {
			t.Fatal(err)
		}
		held(6, 23<<20)
		for range 3 {
			if _, err := io.ReadFull(r, p); err != nil {
				t.Fatal(err)
			}
		}
		held(7, 24<<20)
		other, err := store.Stream(t.Context(), o, 50<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		held(7, 24<<20) // there is no room
		if _, err := io.ReadFull(other, p); err != nil {
			t.Fatal(err)
		}
	})
	if got := NewClient(nil).Memory(); got != 320<<20 {
		t.Errorf("Memory is %d, want 256 MiB and 64 of a MiB", got)
	}
}

func TestReadsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("pools drop what they hold under the race detector")
	}
	data := make([]byte, 64<<20)
	c := NewClient(nil)
	r, err := store.Stream(t.Context(), open(c, &memoryGetter{data: data, version: `"v"`}), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := make([]byte, 1000)
	// 20,000 reads are 20 MB: with them go the requests for a few ranges, of
	// some tens of allocations each.
	if n := testing.AllocsPerRun(20_000, func() {
		if _, err := io.ReadFull(r, p); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations of each read", n)
	}
}

func BenchmarkStream(b *testing.B) {
	data := make([]byte, 256<<20)
	c := NewClient(nil)
	for _, piece := range []int{512, 64 << 10} {
		b.Run(fmt.Sprint(piece), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			p := make([]byte, piece)
			for b.Loop() {
				r, err := store.Stream(b.Context(), open(c, &memoryGetter{data: data, version: `"v"`}), 0)
				if err != nil {
					b.Fatal(err)
				}
				if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, p); n != int64(len(data)) || err != nil {
					b.Fatal(n, err)
				}
				r.Close()
			}
		})
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("https://u:p@h/a?x=y&z;w#f", "SECRET")
	f.Add("http://h", "")
	f.Fuzz(func(t *testing.T, name, secret string) {
		_ = redactText(name)
		if len(secret) < 4 || strings.ContainsAny(secret, "&;=#?/@ ") || strings.Contains("REDACTED", secret) {
			return
		}
		if got := Redact("https://user:" + secret + "@h/a?sig=" + secret + "&" + secret); strings.Contains(got, secret) {
			t.Error(got)
		}
	})
}
