package s3_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/faultserver"
	"shardtool/reader/store/remote"
	"shardtool/reader/store/s3"
	"shardtool/reader/store/storetest"
)

const fixtures = "../../../fixtures/cases"

// scenario is a case of kind s3 in fixtures/cases, as far as it is data.
type scenario struct {
	Name, Kind string
	Expect     struct {
		Object   object
		Variants []script
		Server   script
		Client   struct {
			NoProgress float64 `json:"no_progress_timeout_s"`
			CloseAfter int     `json:"close_after"`
		}
		SHA256       string
		RequestsMax  int `json:"requests_max"`
		RequestCount int `json:"request_count"`
		Second       struct {
			Range   string
			IfMatch string `json:"If-Match"`
		} `json:"second_request"`
		WaitAtLeast float64 `json:"wait_at_least_s"`
		WaitAtMost  float64 `json:"wait_at_most_s"`
		MaxAlloc    uint64  `json:"max_alloc_mb"`
		Readers     int
		Error       *struct {
			Class  string
			Offset *int64
			HTTP   int
		}
	}
}

type object struct {
	Bytes        int64
	Content      string
	File         string
	SHA256, ETag string
}

// script is what the server of a case does.
type script struct {
	ResetAfter     *int64 `json:"reset_after"`
	ResetEachAfter *int64 `json:"reset_each_after"`
	StallAfter     *int64 `json:"stall_after"`
	BytesPerS      int64  `json:"bytes_per_s"`
	WriteSize      int    `json:"write_size"`
	Status         any
	RetryAfter     string `json:"Retry-After"`
	CRC32C         string `json:"x-amz-checksum-crc32c"`
	ChecksumType   string `json:"x-amz-checksum-type"`
	FlipByte       *int64 `json:"flip_byte"`
	Encoding       string `json:"Content-Encoding"`
	Head           int    `json:"HEAD"`
	Get            int    `json:"GET"`
}

func scenarios(t testing.TB) map[string]*scenario {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(fixtures, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	found := map[string]*scenario{}
	for _, r := range raw {
		var kind struct{ Kind string }
		if err := json.Unmarshal(r, &kind); err != nil || kind.Kind != "s3" {
			continue
		}
		var s scenario
		if err := json.Unmarshal(r, &s); err != nil {
			t.Fatalf("%v in %s", err, r)
		}
		found[s.Name] = &s
	}
	return found
}

// content makes the object of a case.
func (o object) content(t testing.TB) faultserver.Content {
	switch {
	case o.File != "":
		data, err := os.ReadFile(filepath.Join(fixtures, filepath.FromSlash(o.File)))
		if err != nil {
			t.Fatal(err)
		}
		return faultserver.Bytes(data)
	case o.Content == "zeros":
		return faultserver.Zeros(o.Bytes)
	case o.Content == "pattern":
		return faultserver.Pattern(o.Bytes)
	}
	return faultserver.Pattern(1 << 20) // for answers that never are the object
}

// answers makes the server's part of a script.
func (s script) answers(t testing.TB) (gets, heads []faultserver.Answer) {
	good := faultserver.Answer{BytesPerSecond: s.BytesPerS, WriteSize: s.WriteSize}
	if s.FlipByte != nil {
		good.Flip = []int64{*s.FlipByte}
	}
	refusal := func(status int) faultserver.Answer {
		if status < 300 {
			return good
		}
		a := faultserver.Answer{Status: status}
		if s.RetryAfter != "" {
			a.Header = http.Header{"Retry-After": {s.RetryAfter}}
		}
		return a
	}
	switch status := s.Status.(type) {
	case nil:
	case string:
		if status != "503 always" {
			t.Fatalf("status %q", status)
		}
		return []faultserver.Answer{refusal(503)}, nil
	case []any:
		for _, v := range status {
			gets = append(gets, refusal(int(v.(float64))))
		}
		return gets, nil
	default:
		t.Fatalf("status %v", status)
	}
	first := good
	switch {
	case s.ResetEachAfter != nil:
		first.Fault, first.After = faultserver.Reset, *s.ResetEachAfter
		return []faultserver.Answer{first}, nil
	case s.ResetAfter != nil:
		first.Fault, first.After = faultserver.Reset, *s.ResetAfter
	case s.StallAfter != nil:
		first.Fault, first.After = faultserver.Stall, *s.StallAfter
	case s.Head >= 300:
		return []faultserver.Answer{refusal(s.Get)}, []faultserver.Answer{refusal(s.Head)}
	}
	return []faultserver.Answer{first, good}, nil
}

func (s script) header() http.Header {
	h := http.Header{}
	for name, v := range map[string]string{"X-Amz-Checksum-Crc32c": s.CRC32C, "X-Amz-Checksum-Type": s.ChecksumType, "Content-Encoding": s.Encoding} {
		if v != "" {
			h.Set(name, v)
		}
	}
	return h
}

// piped is a store on a server in memory; t's cleanup ends both.
func piped(t testing.TB, o *remote.Options, opt *s3.Options) (*s3.Store, *faultserver.Server) {
	t.Helper()
	srv := faultserver.StartPipe()
	tr := remote.NewTransport(64)
	srv.Wire(tr)
	var d s3.Options
	if opt != nil {
		d = *opt
	}
	d.Endpoint, d.Transport, d.Client = srv.URL, tr, remote.NewClient(o)
	if d.Region == "" {
		d.Region = "us-east-1"
	}
	if d.Credentials == nil {
		d.Credentials = testKeys
	}
	st := s3.New(&d)
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		srv.Close()
	})
	return st, srv
}

const caseName = "s3://bkt/train/000000.tar"

// TestCases plays each case of kind s3 whose server is a script.
func TestCases(t *testing.T) {
	noEnvironment(t)
	elsewhere := []string{"e5_64_readers", "e6_wrong_region", "e7_custom_endpoint", "e13_small_reads", "e13_stop_early"}
	for name, c := range scenarios(t) {
		if slices.Contains(elsewhere, name) {
			continue
		}
		variants := c.Expect.Variants
		if len(variants) == 0 {
			variants = []script{c.Expect.Server}
		}
		for i, v := range variants {
			t.Run(fmt.Sprint(name, " ", i), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { playCase(t, c, v) })
			})
		}
	}
}

func playCase(t *testing.T, c *scenario, v script) {
	x := &c.Expect
	st, srv := piped(t, &remote.Options{Stall: time.Duration(x.Client.NoProgress * float64(time.Second))}, nil)
	gets, heads := v.answers(t)
	content := x.Object.content(t)
	etag := x.Object.ETag
	if etag == "" {
		etag = `"etag"`
	}
	srv.Put("/bkt/train/000000.tar", &faultserver.Object{Content: content, ETag: etag, Header: v.header(), Gets: gets, Heads: heads})
	got, err := get(t.Context(), st, caseName)
	requests := srv.Requests(http.MethodGet)
	counted := len(requests)
	if v.Head != 0 {
		counted = len(srv.Requests())
	}
	switch {
	case x.RequestsMax > 0 && counted > x.RequestsMax, x.RequestCount > 0 && counted != x.RequestCount:
		t.Errorf("%d requests, want %d, at most %d", counted, x.RequestCount, x.RequestsMax)
	}
	if x.Error != nil {
		e := format.AsError(err)
		if format.Class(err) != x.Error.Class || e == nil || x.Error.Offset != nil && e.Offset != *x.Error.Offset ||
			x.Error.HTTP != 0 && !strings.Contains(err.Error(), fmt.Sprintf("http %d", x.Error.HTTP)) {
			t.Errorf("%v; want %+v", err, x.Error)
		}
		return
	}
	sum := sha256.Sum256(got)
	if want := x.Object.SHA256; err != nil || hex.EncodeToString(sum[:]) != want {
		t.Errorf("%d bytes with the hash %x, %v; want %s", len(got), sum, err, want)
	}
	for _, r := range requests {
		if r.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("Accept-Encoding: %q", r.Header.Get("Accept-Encoding"))
		}
	}
	if want := x.Second.Range; want != "" {
		if v.ResetAfter != nil {
			want = strings.Replace(want, "k", fmt.Sprint(*v.ResetAfter), 1)
		}
		second := requests[1].Header
		if got := second.Get("Range"); got != want && (got != "" || want != "bytes=0-") || second.Get("If-Match") != x.Second.IfMatch {
			t.Errorf("the second request has Range %q and If-Match %q, want %q and %q", got, second.Get("If-Match"), want, x.Second.IfMatch)
		}
	}
	if x.WaitAtMost > 0 {
		wait := requests[1].At.Sub(requests[0].At).Seconds()
		if wait < x.WaitAtLeast || wait > x.WaitAtMost {
			t.Errorf("waited %v s", wait)
		}
	}
	if v.Encoding != "" {
		readByHundreds(t, st, got)
	}
}

// readByHundreds is the other half of e11: the object in ranges of 100 bytes.
func readByHundreds(t *testing.T, st *s3.Store, want []byte) {
	o, err := st.Open(t.Context(), caseName)
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	p := make([]byte, 100)
	for {
		n, err := o.ReadAt(t.Context(), p, int64(len(got)))
		if got = append(got, p[:n]...); err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, want) {
		t.Errorf("read %d bytes by hundreds, and others", len(got))
	}
}

func TestCaseSixtyFourReaders(t *testing.T) {
	noEnvironment(t)
	x := &scenarios(t)["e5_64_readers"].Expect
	synctest.Test(t, func(t *testing.T) {
		st, srv := piped(t, nil, nil)
		for i := range x.Readers {
			srv.Put(fmt.Sprint("/bkt/", i), &faultserver.Object{Content: x.Object.content(t), ETag: x.Object.ETag, Gets: []faultserver.Answer{
				{Status: 503}, {},
				{Wait: time.Minute / 2}, // the second time, all are held until all are there
			}})
		}
		read := func() {
			var wg sync.WaitGroup
			for i := range x.Readers {
				wg.Go(func() {
					o, err := st.OpenEntry(t.Context(), store.Entry{Name: fmt.Sprint("s3://bkt/", i), Size: x.Object.Bytes, Version: x.Object.ETag})
					if err != nil {
						t.Error(err)
						return
					}
					r, err := store.Stream(t.Context(), o, 0)
					if err != nil {
						t.Error(err)
						return
					}
					defer r.Close()
					h := sha256.New()
					if _, err := io.Copy(h, r); err != nil || hex.EncodeToString(h.Sum(nil)) != x.SHA256 {
						t.Errorf("%d: %v", i, err)
					}
				})
			}
			wg.Wait()
		}
		read()
		requests := srv.Requests()
		if len(requests) != x.RequestCount {
			t.Errorf("%d requests, want %d", len(requests), x.RequestCount)
		}
		first, last := requests[len(requests)-1].At, requests[0].At
		for i, r := range requests {
			if seen := slices.IndexFunc(requests, func(o faultserver.Request) bool { return o.Path == r.Path }); seen != i { // a second one
				if r.At.Before(first) {
					first = r.At
				}
				if r.At.After(last) {
					last = r.At
				}
			}
		}
		if spread := last.Sub(first); spread < 20*time.Millisecond {
			t.Errorf("all come back within %v", spread)
		}
		for range 20 { // the server answers again
			srv.Put("/bkt/ok", &faultserver.Object{Content: faultserver.Bytes([]byte("ok")), ETag: `"ok"`})
			var wg sync.WaitGroup
			for range x.Readers {
				wg.Go(func() {
					if _, err := get(t.Context(), st, "s3://bkt/ok"); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		srv.Forget()
		read()
		if srv.Peak() != x.Readers {
			t.Errorf("%d requests at a time after the server has recovered, want %d", srv.Peak(), x.Readers)
		}
	})
}

func TestCaseWrongRegion(t *testing.T) {
	noEnvironment(t)
	synctest.Test(t, func(t *testing.T) {
		st, srv := piped(t, nil, &s3.Options{Region: "us-east-1"})
		srv.Region = "eu-west-1"
		want := []byte("content")
		srv.Put("/bkt/train/000000.tar", &faultserver.Object{Content: faultserver.Bytes(want), ETag: `"e"`})
		got, err := get(t.Context(), st, caseName)
		if !bytes.Equal(got, want) || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		requests := srv.Requests()
		if len(requests) > 3 || !strings.Contains(requests[len(requests)-1].Header.Get("Authorization"), "/eu-west-1/s3/") {
			t.Errorf("%d requests, the last %v", len(requests), requests[len(requests)-1].Header)
		}
	})
}

func TestCaseCustomEndpoint(t *testing.T) {
	noEnvironment(t)
	x := &scenarios(t)["e7_custom_endpoint"].Expect
	srv, err := faultserver.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	srv.Put("/bkt/train/000000.tar", &faultserver.Object{Content: faultserver.Pattern(1 << 20), ETag: `"e1"`})
	host := strings.TrimPrefix(srv.URL, "http://")
	tr := remote.NewTransport(4)
	tr.Proxy = nil
	tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != host {
			t.Errorf("a connection to %s", address)
		}
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}
	st := s3.New(&s3.Options{Endpoint: srv.URL, Transport: tr, Credentials: testKeys})
	defer st.Close()
	got, err := get(t.Context(), st, caseName)
	if sum := sha256.Sum256(got); err != nil || hex.EncodeToString(sum[:]) != x.SHA256 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	for _, r := range srv.Requests() {
		if r.Host != host || r.Path != "/bkt/train/000000.tar" {
			t.Errorf("%s of %s", r.Path, r.Host)
		}
	}
}

func TestCaseSmallReads(t *testing.T) {
	noEnvironment(t)
	x := &scenarios(t)["e13_small_reads"].Expect
	st, srv := piped(t, &remote.Options{ReadAhead: 64 << 20}, nil)
	srv.Put("/bkt/zeros", &faultserver.Object{Content: x.Object.content(t), ETag: `"z"`})
	for name, next := range map[string]func(n int) int{
		"512":     func(int) int { return 512 },
		"1..4096": func(n int) int { return n%4096 + 1 },
	} {
		r, err := store.OpenStream(t.Context(), st, "s3://bkt/zeros")
		if err != nil {
			t.Fatal(err)
		}
		zeros, p := make([]byte, 4096), make([]byte, 4096)
		var total int64
		var most uint64
		for n := 0; ; n++ {
			k, err := r.Read(p[:next(n)])
			total += int64(k)
			if !bytes.Equal(p[:k], zeros[:k]) {
				t.Fatal("no zeros")
			}
			if n%50_000 == 0 {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse)
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if total != x.Object.Bytes || most > x.MaxAlloc<<20 {
			t.Errorf("%s: %d bytes with %d MiB held", name, total, most>>20)
		}
	}
}

func TestCaseStopEarly(t *testing.T) {
	noEnvironment(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	x := &scenarios(t)["e13_stop_early"].Expect
	srv, err := faultserver.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	srv.Put("/bkt/zeros", &faultserver.Object{Content: x.Object.content(t), ETag: `"z"`})
	tr := remote.NewTransport(4)
	tr.Proxy = nil
	st := s3.New(&s3.Options{Endpoint: srv.URL, Transport: tr, Credentials: testKeys})
	defer st.Close()
	r, err := store.OpenStream(t.Context(), st, "s3://bkt/zeros")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, r, int64(x.Client.CloseAfter)); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestCaseGlob is f11_glob_s3.
func TestCaseGlob(t *testing.T) {
	noEnvironment(t)
	st, srv := piped(t, nil, nil)
	for i := range 1500 {
		srv.Put(fmt.Sprintf("/bkt/train/%06d.tar", i), &faultserver.Object{Content: faultserver.Bytes([]byte("x")), ETag: `"x"`})
	}
	for _, key := range []string{"train/README", "train/x/000000.tar", "trainer/0.tar"} {
		srv.Put("/bkt/"+key, &faultserver.Object{Content: faultserver.Bytes([]byte("x")), ETag: `"x"`})
	}
	names, err := store.Expand(t.Context(), st, "s3://bkt/train/*.tar")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != 1500 || names[0] != "s3://bkt/train/000000.tar" || names[1499] != "s3://bkt/train/001499.tar" || !slices.IsSorted(names) {
		t.Errorf("%d names, from %s to %s", len(names), names[0], names[len(names)-1])
	}
	requests := srv.Requests()
	if len(requests) != 2 {
		t.Errorf("%d requests, want 2", len(requests))
	}
	for _, r := range requests {
		if !strings.Contains(r.RawQuery, "prefix=train%2F&") && !strings.HasSuffix(r.RawQuery, "prefix=train%2F") {
			t.Errorf("a request for %s", r.RawQuery)
		}
	}
	// A listing tells size and version, so that opening asks nothing.
	srv.Forget()
	for e, err := range st.List(t.Context(), "s3://bkt/train/R") {
		if err != nil {
			t.Fatal(err)
		}
		o, err := store.OpenEntry(t.Context(), st, e)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := o.ReadAt(t.Context(), make([]byte, 1), 0); n != 1 || err != nil {
			t.Error(n, err)
		}
	}
	if n := len(srv.Requests()); n != 2 {
		t.Errorf("%d requests for a list and a read", n)
	}
	srv.Put("/bkt/train/README", &faultserver.Object{Content: faultserver.Bytes([]byte("other")), ETag: `"y"`})
	o, err := store.OpenEntry(t.Context(), st, store.Entry{Name: "s3://bkt/train/README", Size: 1, Version: `"x"`})
	if err == nil {
		_, err = o.ReadAt(t.Context(), make([]byte, 1), 0)
	}
	if !errors.Is(err, format.ErrStale) {
		t.Errorf("another object there: %v", err)
	}
}

func TestStoreConforms(t *testing.T) {
	noEnvironment(t)
	storetest.Run(t, func(t *testing.T) storetest.Fixture {
		st, _ := piped(t, &remote.Options{Range: 1 << 20}, nil)
		return storetest.Fixture{Store: st, Prefix: "s3://bkt/", Large: 9<<20 + 123} // two parts of an upload
	})
}

// A checksum of a large object, which is read in ranges, comes from its HEAD.
func TestChecksumOfAnObjectReadInRanges(t *testing.T) {
	noEnvironment(t)
	for _, flip := range []int64{-1, 20<<20 + 1} {
		st, srv := piped(t, &remote.Options{Range: 1 << 20}, nil)
		o := &faultserver.Object{Content: faultserver.Zeros(32 << 20), ETag: `"z"`, Header: http.Header{
			"X-Amz-Checksum-Crc32": {zeros32MiB}, "X-Amz-Checksum-Type": {"FULL_OBJECT"},
		}}
		if flip >= 0 {
			o.Gets = []faultserver.Answer{{Flip: []int64{flip}}}
		}
		srv.Put("/bkt/zeros", o)
		got, err := get(t.Context(), st, "s3://bkt/zeros")
		if flip < 0 && (err != nil || len(got) != 32<<20) || flip >= 0 && !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("byte %d changed: %d bytes, %v", flip, len(got), err)
		}
		if n := len(srv.Requests(http.MethodGet)); n < 2 {
			t.Errorf("%d requests; the object was not read in ranges", n)
		}
	}
}

// zeros32MiB is the CRC32 of 32 MiB of zeros, base64 of the big-endian sum, by
// Python's zlib.crc32.
const zeros32MiB = "WUUERQ=="

// A glob finds the same whether deeper folders are listed or left out.
func TestGlobFindsWhatAListingHas(t *testing.T) {
	noEnvironment(t)
	rapid.Check(t, func(rt *rapid.T) {
		st, srv := piped(t, nil, nil)
		srv.Page = rapid.IntRange(1, 5).Draw(rt, "page")
		keys := rapid.SliceOfN(rapid.StringMatching(`[ab/{+ é]{1,6}[ab]`), 0, 12).Draw(rt, "keys")
		for _, k := range keys {
			srv.Put("/bkt/"+k, &faultserver.Object{Content: faultserver.Bytes([]byte("x")), ETag: `"x"`})
		}
		pattern := "s3://bkt/" + rapid.StringMatching(`([ab/+ é]|\\{){0,4}(\*|\?|\*\*|\[ab\]|\*/\*){1,2}[ab/]{0,2}`).Draw(rt, "pattern")
		got, err := st.Glob(t.Context(), pattern)
		if err != nil {
			rt.Fatal(err)
		}
		want, err := store.Glob(t.Context(), onlyLists{st}, pattern)
		if err != nil {
			rt.Fatal(err)
		}
		if !slices.Equal(got, want) {
			rt.Errorf("%s of %q finds %q, want %q", pattern, keys, got, want)
		}
	})
}

// onlyLists hides that a store is a Globber.
type onlyLists struct{ store.Store }
