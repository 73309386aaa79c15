package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/remote"
	"shardtool/reader/store/s3"
)

// scripted is a server without a network: what requests are answered is a
// function's. It keeps what it was asked.
type scripted struct {
	answer func(r *http.Request, n int) *http.Response // n counts from 0

	mu   sync.Mutex
	seen []*http.Request
}

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	s.mu.Lock()
	n := len(s.seen)
	s.seen = append(s.seen, r)
	s.mu.Unlock()
	resp := s.answer(r, n)
	if resp == nil {
		return nil, errors.New("connection reset by the test")
	}
	resp.Request = r
	return resp, nil
}

func (s *scripted) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// asked tells the requests as "METHOD path?query".
func (s *scripted) asked() (all []string) {
	for _, r := range s.requests() {
		all = append(all, r.Method+" "+r.URL.RequestURI())
	}
	return all
}

func reply(code int, body string, headers ...string) *http.Response {
	w := httptest.NewRecorder()
	for i := 0; i+1 < len(headers); i += 2 {
		w.Header().Set(headers[i], headers[i+1])
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body)
	return w.Result()
}

// fault is an answer as S3 gives it: to HEAD without a body.
func fault(r *http.Request, code int, reason, message string, headers ...string) *http.Response {
	body := fmt.Sprintf("<?xml version=\"1.0\"?>\n<Error><Code>%s</Code><Message>%s</Message><RequestId>1</RequestId></Error>", reason, message)
	if r.Method == http.MethodHead {
		body = ""
	}
	return reply(code, body, headers...)
}

// whole answers HEAD and GET of an object.
func whole(r *http.Request, content string) *http.Response {
	if r.Method == http.MethodHead {
		resp := reply(200, "", "ETag", `"e"`)
		resp.Header.Set("Content-Length", fmt.Sprint(len(content)))
		resp.ContentLength = int64(len(content))
		return resp
	}
	return reply(200, content, "ETag", `"e"`)
}

var testKeys = credentials.NewStaticCredentialsProvider("AKTEST", "SECRETKEY", "SECRETTOKEN")

func scriptedStore(answer func(r *http.Request, n int) *http.Response, o *s3.Options) (*s3.Store, *scripted) {
	srv := &scripted{answer: answer}
	var d s3.Options
	if o != nil {
		d = *o
	}
	d.Transport = srv
	if d.Endpoint == "" {
		d.Endpoint = "http://127.0.0.1:9"
	}
	if d.Credentials == nil && !d.NoSign {
		d.Credentials = testKeys
	}
	if d.Region == "" {
		d.Region = "us-east-1"
	}
	return s3.New(&d), srv
}

// noEnvironment hides what this machine says about AWS.
func noEnvironment(t testing.TB) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	dir := t.TempDir()
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

func TestAnswers(t *testing.T) {
	noEnvironment(t)
	for _, tt := range []struct {
		code            int
		reason          string
		want            error
		words           string
		forGet, forHEAD int // requests
	}{
		{404, "NoSuchKey", format.ErrNotFound, "there is no object of that name in the bucket", 1, 2},
		{404, "NoSuchBucket", format.ErrNotFound, `there is no bucket "bkt"`, 1, 2},
		{403, "AccessDenied", format.ErrDenied, "--no-sign-request", 1, 2},
		{403, "InvalidAccessKeyId", format.ErrDenied, "AWS_ACCESS_KEY_ID", 1, 2},
		{403, "SignatureDoesNotMatch", format.ErrDenied, "AWS_SECRET_ACCESS_KEY", 1, 2},
		{400, "ExpiredToken", format.ErrDenied, "expired", 2, 3},
		{400, "InvalidToken", format.ErrDenied, "AWS_SESSION_TOKEN", 1, 2},
		{403, "RequestTimeTooSkewed", format.ErrDenied, "clock is wrong", 1, 2},
		{403, "InvalidObjectState", format.ErrUnsupported, "archived", 1, 2},
		{412, "PreconditionFailed", format.ErrStale, "the one that was opened", 2, 1},
		{400, "InvalidBucketName", format.ErrUsage, "no bucket can have that name", 1, 2},
		{403, "SomethingNew", format.ErrDenied, "http 403 SomethingNew: what it says", 1, 2},
		{501, "NotImplemented", format.ErrUnsupported, "the server cannot do it", 1, 1},
		{503, "SlowDown", format.ErrIO, "http 503 SlowDown: what it says", 3, 3},
		{500, "InternalError", format.ErrIO, "http 500", 3, 3},
		{400, "RequestTimeout", format.ErrIO, "http 400 RequestTimeout", 3, 3},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, srv := scriptedStore(func(r *http.Request, _ int) *http.Response {
					if r.URL.Path == "/bkt" && tt.reason != "NoSuchBucket" { // HEAD of the bucket
						return reply(200, "")
					}
					return fault(r, tt.code, tt.reason, "what it says")
				}, &s3.Options{Client: remote.NewClient(&remote.Options{Attempts: 3})})
				o, err := st.OpenEntry(t.Context(), store.Entry{Name: "s3://bkt/a.tar", Size: 10, Version: `"e"`})
				if err != nil {
					t.Fatal(err)
				}
				_, err = o.ReadAt(t.Context(), make([]byte, 10), 0)
				check(t, err, tt.want, tt.words)
				if n := len(srv.requests()); n != tt.forGet {
					t.Errorf("%d requests, want %d: %q", n, tt.forGet, srv.asked())
				}
				_, err = st.Stat(t.Context(), "s3://bkt/a.tar")
				if tt.code != 500 && tt.code != 503 && tt.code != 501 && tt.code != 412 { // an answer to HEAD has the number only
					check(t, err, tt.want, tt.words)
				} else if err == nil {
					t.Error("no error of HEAD")
				}
				if n := len(srv.requests()) - tt.forGet; tt.reason != "RequestTimeout" && tt.code != 501 && n != tt.forHEAD {
					t.Errorf("%d requests, want %d: %q", n, tt.forHEAD, srv.asked()[tt.forGet:])
				}
			})
		})
	}
}

func check(t testing.TB, err, want error, words string) {
	t.Helper()
	if !errors.Is(err, want) || format.AsError(err) == nil || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), "s3://bkt/") {
		t.Errorf("%v; want %v with %q", err, want, words)
	}
	if err != nil && (strings.Contains(err.Error(), "SECRETKEY") || strings.Contains(err.Error(), "SECRETTOKEN")) {
		t.Errorf("a secret is told: %v", err)
	}
}

func TestSkewIsTold(t *testing.T) {
	noEnvironment(t)
	synctest.Test(t, func(t *testing.T) {
		st, _ := scriptedStore(func(r *http.Request, _ int) *http.Response {
			return fault(r, 403, "RequestTimeTooSkewed", "", "Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		}, nil)
		_, err := st.Stat(t.Context(), "s3://bkt/a")
		check(t, err, format.ErrDenied, "it is 1h0m0s behind the server's")
	})
}

// region returns the region that a request was signed for.
func region(r *http.Request) string {
	_, scope, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	parts := strings.Split(scope, "/")
	if len(parts) < 3 {
		return ""
	}
	return parts[2]
}

func TestBucketsOfOtherRegions(t *testing.T) {
	noEnvironment(t)
	for _, tt := range []struct {
		name   string
		answer func(r *http.Request) *http.Response
		most   int // requests for the first object, HEAD and GET
	}{
		{"301", func(r *http.Request) *http.Response {
			return fault(r, 301, "PermanentRedirect", "", "X-Amz-Bucket-Region", "eu-west-1")
		}, 3},
		{"307", func(r *http.Request) *http.Response {
			return fault(r, 307, "TemporaryRedirect", "", "X-Amz-Bucket-Region", "eu-west-1", "Location", "http://127.0.0.1:1/")
		}, 3},
		{"400", func(r *http.Request) *http.Response {
			return fault(r, 400, "AuthorizationHeaderMalformed", "", "X-Amz-Bucket-Region", "eu-west-1")
		}, 3},
		{"400 in words", func(r *http.Request) *http.Response {
			return fault(r, 400, "AuthorizationHeaderMalformed", "the region 'us-east-1' is wrong; expecting 'eu-west-1'")
		}, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st, srv := scriptedStore(func(r *http.Request, _ int) *http.Response {
				if region(r) != "eu-west-1" {
					return tt.answer(r)
				}
				return whole(r, "content")
			}, nil)
			for i, most := range []int{tt.most, 2} { // the second time, the region is known
				before := len(srv.requests())
				got, err := get(t.Context(), st, fmt.Sprintf("s3://bkt/%d", i))
				if string(got) != "content" || err != nil {
					t.Errorf("%q, %v", got, err)
				}
				if n := len(srv.requests()) - before; n > most {
					t.Errorf("%d requests, want at most %d: %q", n, most, srv.asked()[before:])
				}
			}
		})
	}
	t.Run("another host", func(t *testing.T) {
		st, srv := scriptedStore(func(r *http.Request, _ int) *http.Response {
			return fault(r, 301, "PermanentRedirect", "", "X-Amz-Bucket-Region", "evil.example/")
		}, nil)
		_, err := st.Stat(t.Context(), "s3://bkt/a")
		check(t, err, format.ErrUsage, "--region")
		if n := len(srv.requests()); n != 1 {
			t.Errorf("%d requests: %q", n, srv.asked())
		}
	})
	t.Run("in a circle", func(t *testing.T) {
		st, srv := scriptedStore(func(r *http.Request, n int) *http.Response {
			return fault(r, 301, "PermanentRedirect", "", "X-Amz-Bucket-Region", fmt.Sprintf("region-%d", n))
		}, nil)
		_, err := st.Stat(t.Context(), "s3://bkt/a")
		check(t, err, format.ErrUsage, "lives in region region-1")
		if n := len(srv.requests()); n != 2 {
			t.Errorf("%d requests: %q", n, srv.asked())
		}
	})
}

// rotating gives out other credentials after each refresh.
type rotating struct {
	mu sync.Mutex
	n  int
}

func (r *rotating) Retrieve(context.Context) (aws.Credentials, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	return aws.Credentials{AccessKeyID: fmt.Sprintf("AK%d", r.n), SecretAccessKey: "SECRETKEY", SessionToken: "SECRETTOKEN"}, nil
}

func TestCredentialsThatExpireMidRun(t *testing.T) {
	noEnvironment(t)
	var log bytes.Buffer
	keys := &rotating{}
	var mu sync.Mutex
	good := "AK1"
	st, srv := scriptedStore(func(r *http.Request, n int) *http.Response {
		mu.Lock()
		defer mu.Unlock()
		if !strings.Contains(r.Header.Get("Authorization"), "Credential="+good+"/") {
			return fault(r, 400, "ExpiredToken", "The provided token has expired.")
		}
		return whole(r, "content")
	}, &s3.Options{Credentials: keys, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if got, err := get(t.Context(), st, "s3://bkt/a"); string(got) != "content" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	mu.Lock()
	good = "AK2"
	mu.Unlock()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			o, err := st.OpenEntry(t.Context(), store.Entry{Name: "s3://bkt/a", Size: 7, Version: `"e"`})
			if err != nil {
				t.Error(err)
				return
			}
			p := make([]byte, 7)
			if _, err := o.ReadAt(t.Context(), p, 0); string(p) != "content" || err != nil {
				t.Errorf("%q, %v", p, err)
			}
		})
	}
	wg.Wait()
	if keys.n != 2 {
		t.Errorf("credentials were asked for %d times, want twice", keys.n)
	}
	if n := len(srv.requests()); n > 2+32 {
		t.Errorf("%d requests", n)
	}
	if strings.Contains(log.String(), "SECRET") || !strings.Contains(log.String(), "expired") {
		t.Errorf("the log says %s", &log)
	}
}

func TestNewCredentialsInTheFile(t *testing.T) {
	noEnvironment(t)
	write := func(key string) {
		text := "[default]\naws_access_key_id = " + key + "\naws_secret_access_key = SECRETKEY\naws_session_token = SECRETTOKEN\n"
		if err := os.WriteFile(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("AKOLD")
	srv := &scripted{answer: func(r *http.Request, _ int) *http.Response {
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=AKNEW/") {
			return fault(r, 400, "ExpiredToken", "")
		}
		return whole(r, "content")
	}}
	st := s3.New(&s3.Options{Endpoint: "http://127.0.0.1:9", Transport: srv})
	_, err := st.Stat(t.Context(), "s3://bkt/a")
	check(t, err, format.ErrDenied, "no newer ones were found")
	write("AKNEW")
	if e, err := st.Stat(t.Context(), "s3://bkt/a"); e.Size != 7 || err != nil {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestWithoutCredentials(t *testing.T) {
	noEnvironment(t)
	srv := &scripted{answer: func(r *http.Request, _ int) *http.Response { return whole(r, "content") }}
	_, err := s3.New(&s3.Options{Endpoint: "http://127.0.0.1:9", Transport: srv}).Stat(t.Context(), "s3://bkt/a")
	check(t, err, format.ErrDenied, "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile with --aws-profile, or give --no-sign-request for public buckets")
	if n := len(srv.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	_, err = s3.New(&s3.Options{Profile: "nobody", Transport: srv}).Stat(t.Context(), "s3://bkt/a")
	if !errors.Is(err, format.ErrUsage) || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("a profile that is not there: %v", err)
	}
	_, err = s3.New(&s3.Options{Endpoint: "localhost:9000", Transport: srv}).Stat(t.Context(), "s3://bkt/a")
	if !errors.Is(err, format.ErrUsage) || !strings.Contains(err.Error(), "http://") {
		t.Errorf("an endpoint without a scheme: %v", err)
	}
}

func TestProfileAndEnvironment(t *testing.T) {
	noEnvironment(t)
	text := "[profile far]\nregion = ap-south-1\naws_access_key_id = AKFAR\naws_secret_access_key = SECRETKEY\n"
	if err := os.WriteFile(os.Getenv("AWS_CONFIG_FILE"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:7")
	srv := &scripted{answer: func(r *http.Request, _ int) *http.Response { return whole(r, "content") }}
	for _, tt := range []struct {
		o    s3.Options
		env  string
		want string
	}{
		{s3.Options{Profile: "far"}, "", "ap-south-1"},
		{s3.Options{Profile: "far", Region: "eu-north-1"}, "", "eu-north-1"},
		{s3.Options{Credentials: testKeys}, "us-west-2", "us-west-2"},
		{s3.Options{Credentials: testKeys}, "", "us-east-1"},
	} {
		t.Setenv("AWS_REGION", tt.env)
		tt.o.Transport = srv
		if _, err := s3.New(&tt.o).Stat(t.Context(), "s3://bkt/a"); err != nil {
			t.Error(err)
		}
		r := srv.requests()[len(srv.requests())-1]
		if region(r) != tt.want || r.URL.Host != "127.0.0.1:7" || r.URL.Path != "/bkt/a" {
			t.Errorf("%s signed for %q, want %q", r.URL, region(r), tt.want)
		}
	}
}

func TestRequests(t *testing.T) {
	noEnvironment(t)
	for _, tt := range []struct {
		name  string
		o     s3.Options
		check func(r *http.Request) bool
	}{
		{"signed", s3.Options{}, func(r *http.Request) bool {
			return strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKTEST/")
		}},
		{"public", s3.Options{NoSign: true}, func(r *http.Request) bool {
			return r.Header.Get("Authorization") == "" && r.Header.Get("X-Amz-Security-Token") == ""
		}},
		{"requester pays", s3.Options{RequestPayer: true}, func(r *http.Request) bool { return r.Header.Get("X-Amz-Request-Payer") == "requester" }},
		{"requester does not pay", s3.Options{}, func(r *http.Request) bool { return r.Header.Get("X-Amz-Request-Payer") == "" }},
		{"path", s3.Options{}, func(r *http.Request) bool {
			return r.URL.Host == "127.0.0.1:9" && strings.HasPrefix(r.URL.Path, "/bkt")
		}},
		{"host", s3.Options{Endpoint: "https://objects.example", VirtualHost: true}, func(r *http.Request) bool {
			return r.URL.Host == "bkt.objects.example" && r.URL.Scheme == "https" && !strings.HasPrefix(r.URL.Path, "/bkt")
		}},
		{"no checksums are added", s3.Options{}, func(r *http.Request) bool {
			for name := range r.Header {
				if strings.HasPrefix(name, "X-Amz-Checksum-") && name != "X-Amz-Checksum-Mode" || name == "X-Amz-Trailer" || name == "X-Amz-Sdk-Checksum-Algorithm" {
					return false
				}
			}
			return r.Header.Get("Content-Encoding") == ""
		}},
		{"nothing is inflated", s3.Options{}, func(r *http.Request) bool {
			return r.Method != http.MethodGet || r.URL.Query().Has("list-type") || r.Header.Get("Accept-Encoding") == "identity"
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st, srv := scriptedStore(uploads().answer, &tt.o)
			all(t, st)
			for _, r := range srv.requests() {
				if !tt.check(r) {
					t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
				}
			}
			if n := len(srv.requests()); n < 10 {
				t.Errorf("only %d requests", n)
			}
		})
	}
	t.Run("AWS", func(t *testing.T) {
		srv := &scripted{answer: uploads().answer}
		all(t, s3.New(&s3.Options{Transport: srv, Credentials: testKeys, Region: "eu-west-1"}))
		for _, r := range srv.requests() {
			if r.URL.Host != "bkt.s3.eu-west-1.amazonaws.com" || r.URL.Scheme != "https" {
				t.Error(r.URL)
			}
		}
	})
}

// all uses every kind of request.
func all(t testing.TB, st *s3.Store) {
	t.Helper()
	put(t, st, "s3://bkt/small", []byte("small"))
	put(t, st, "s3://bkt/large", make([]byte, 9<<20))
	k, err := st.Create(t.Context(), "s3://bkt/aborted")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Write(make([]byte, 9<<20)); err != nil {
		t.Fatal(err)
	}
	if err := k.Abort(); err != nil {
		t.Fatal(err)
	}
	if got, err := get(t.Context(), st, "s3://bkt/small"); string(got) != "small" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	for _, err := range st.List(t.Context(), "s3://bkt/") {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestKeysAreSentExactly(t *testing.T) {
	noEnvironment(t)
	for key, path := range map[string]string{
		"a/b.tar":      "/bkt/a/b.tar",
		"a//b":         "/bkt/a//b",
		"/a":           "/bkt//a",
		"a/":           "/bkt/a/",
		"a/../b":       "/bkt/a/../b",
		"./a":          "/bkt/./a",
		"a b+c":        "/bkt/a%20b%2Bc",
		"a%20b":        "/bkt/a%2520b",
		"a?b#c":        "/bkt/a%3Fb%23c",
		"a&b=c;d,e:@$": "/bkt/a%26b%3Dc%3Bd%2Ce%3A%40%24",
		"é-名":          "/bkt/%C3%A9-%E5%90%8D",
		`back\slash"`:  "/bkt/back%5Cslash%22",
		"~tilde_-.":    "/bkt/~tilde_-.",
		"\x01\t":       "/bkt/%01%09",
	} {
		st, srv := scriptedStore(func(r *http.Request, _ int) *http.Response { return whole(r, "content") }, nil)
		if got, err := get(t.Context(), st, "s3://bkt/"+key); string(got) != "content" || err != nil {
			t.Errorf("%q: %q, %v", key, got, err)
			continue
		}
		for _, r := range srv.requests() {
			if got, _, _ := strings.Cut(r.URL.RequestURI(), "?"); got != path {
				t.Errorf("%q is asked for as %s, want %s", key, got, path)
			}
		}
	}
	for _, name := range []string{"s3://", "s3:///a", "s3://bkt", "s3://bkt/", "bkt/a", ""} {
		st, _ := scriptedStore(nil, nil)
		if _, err := st.Open(t.Context(), name); !errors.Is(err, format.ErrUsage) {
			t.Errorf("Open(%q): %v", name, err)
		}
		if _, err := st.Create(t.Context(), name); !errors.Is(err, format.ErrUsage) {
			t.Errorf("Create(%q): %v", name, err)
		}
	}
}

// page is a page of a listing.
func page(encoded bool, next string, keys ...string) *http.Response {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"?><ListBucketResult>`)
	if encoded {
		b.WriteString("<EncodingType>url</EncodingType>")
	}
	fmt.Fprintf(&b, "<IsTruncated>%v</IsTruncated>", next != "")
	if next != "" && next != "nowhere" {
		fmt.Fprintf(&b, "<NextContinuationToken>%s</NextContinuationToken>", next)
	}
	for _, k := range keys {
		size := 5
		if strings.HasSuffix(k, "/") {
			size = 0
		}
		fmt.Fprintf(&b, "<Contents><Key>%s</Key><Size>%d</Size><ETag>&quot;e&quot;</ETag></Contents>", k, size)
	}
	b.WriteString("</ListBucketResult>")
	return reply(200, b.String())
}

func TestListings(t *testing.T) {
	noEnvironment(t)
	for _, tt := range []struct {
		name   string
		prefix string
		answer func(r *http.Request, n int) *http.Response
		want   []string // keys
		err    error
	}{
		{"encoded", "", func(*http.Request, int) *http.Response {
			return page(true, "", "a+b", "a%2520", "a%2Bb", "c%C3%A9/%01")
		}, []string{"a b", "a%20", "a+b", "cé/\x01"}, nil},
		{"plain", "", func(*http.Request, int) *http.Response { return page(false, "", "a%20", "a+b") }, []string{"a%20", "a+b"}, nil},
		{"wrongly encoded", "", func(*http.Request, int) *http.Response { return page(true, "", "a", "b%zz") }, []string{"a"}, format.ErrCorrupt},
		{"folders", "", func(*http.Request, int) *http.Response { return page(false, "", "a/", "a/b", "a/c/") }, []string{"a/b"}, nil},
		{"pages", "", func(r *http.Request, n int) *http.Response {
			if n == 0 {
				return page(false, "more", "a", "b")
			}
			return page(false, "", "c:"+r.URL.Query().Get("continuation-token"))
		}, []string{"a", "b", "c:more"}, nil},
		{"goes on nowhere", "", func(*http.Request, int) *http.Response { return page(false, "nowhere", "a") }, []string{"a"}, format.ErrIO},
		{"goes in a circle", "", func(_ *http.Request, n int) *http.Response { return page(false, "again", fmt.Sprint(n)) }, []string{"0", "1"}, format.ErrIO},
		{"out of order", "", func(*http.Request, int) *http.Response { return page(false, "", "b", "a") }, []string{"b"}, format.ErrCorrupt},
		{"twice", "", func(*http.Request, int) *http.Response { return page(false, "", "a", "a") }, []string{"a"}, format.ErrCorrupt},
		{"another prefix", "x/", func(*http.Request, int) *http.Response { return page(false, "", "x/a", "y/a") }, []string{"x/a"}, format.ErrCorrupt},
		{"no bucket", "", func(r *http.Request, _ int) *http.Response { return fault(r, 404, "NoSuchBucket", "") }, nil, format.ErrNotFound},
		{"no XML", "", func(*http.Request, int) *http.Response { return reply(200, "<html>sign in here") }, nil, format.ErrIO},
		{"endless", "", func(*http.Request, int) *http.Response {
			r := reply(200, "")
			r.ContentLength = -1
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader("<ListBucketResult><Name>"), endless{}))
			return r
		}, nil, format.ErrLimit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, _ := scriptedStore(tt.answer, &s3.Options{Client: remote.NewClient(&remote.Options{Attempts: 2})})
				var got []string
				var err error
				for e, e2 := range st.List(t.Context(), "s3://bkt/"+tt.prefix) {
					if err = e2; err != nil {
						break
					}
					got = append(got, strings.TrimPrefix(e.Name, "s3://bkt/"))
					if e.Size != 5 || e.Version != `"e"` {
						t.Errorf("%+v", e)
					}
				}
				if !slices.Equal(got, tt.want) || !errors.Is(err, tt.err) || tt.err == nil && err != nil {
					t.Errorf("%q, %v; want %q, %v", got, err, tt.want, tt.err)
				}
			})
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// Directory buckets are listed in no order, by whole folders, with a session.
func TestListingsOfDirectoryBuckets(t *testing.T) {
	noEnvironment(t)
	st, srv := scriptedStore(func(r *http.Request, n int) *http.Response {
		switch q := r.URL.Query(); {
		case q.Has("session"):
			return reply(200, "<CreateSessionResult><Credentials><AccessKeyId>AKS</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></CreateSessionResult>")
		case q.Get("prefix") != "train/":
			return fault(r, 400, "InvalidRequest", "the prefix must end in a slash")
		case q.Get("continuation-token") == "":
			return page(false, "more", "train/s-2.tar", "train/s-0.tar", "train/other")
		default:
			return page(false, "", "train/s-1.tar")
		}
	}, nil)
	var got []string
	for e, err := range st.List(t.Context(), "s3://bkt--usw2-az1--x-s3/train/s-") {
		if err != nil {
			t.Fatal(err, srv.asked())
		}
		got = append(got, e.Name)
	}
	const b = "s3://bkt--usw2-az1--x-s3/train/"
	if want := []string{b + "s-0.tar", b + "s-1.tar", b + "s-2.tar"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestGlobAsksForOneFolder(t *testing.T) {
	noEnvironment(t)
	for pattern, want := range map[string]string{ // the prefix and the delimiter that are asked for
		"train/*.tar":          "train/ /",
		"train/s-?[0-9].tar":   "train/s- /",
		"*":                    " /",
		"*/a.tar":              " ",
		"train/**/*.tar":       "train/ ",
		"train/**":             "train/ ",
		`br\[ack\]/*.tar`:      `br[ack]/ /`,
		"spa ce/plus+/é/*.tar": "spa ce/plus+/é/ /",
	} {
		st, srv := scriptedStore(func(r *http.Request, _ int) *http.Response { return page(false, "") }, nil)
		if _, err := st.Glob(t.Context(), "s3://bkt/"+pattern); err != nil {
			t.Error(err)
		}
		q := srv.requests()[0].URL.Query()
		if got := q.Get("prefix") + " " + q.Get("delimiter"); got != want {
			t.Errorf("%s asks for %q, want %q", pattern, got, want)
		}
	}
}
