package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"shardtool/reader/store/faultserver"
)

// startServer starts a server on the loopback, which is S3, plain HTTP and a
// proxy.
func startServer(t testing.TB) *faultserver.Server {
	t.Helper()
	s, err := faultserver.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

const (
	testKey    = "AKIDTESTTEST"
	testSecret = "a-secret-that-no-output-holds"
)

// serverEnv makes the command find the server, and nothing else.
func serverEnv(s *faultserver.Server) []string {
	return []string{
		"SERVER=" + s.URL, "AWS_ENDPOINT_URL=" + s.URL, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1",
		"AWS_ACCESS_KEY_ID=" + testKey, "AWS_SECRET_ACCESS_KEY=" + testSecret, "AWS_REGION=us-east-1",
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	}
}

// proxyEnv makes it the proxy to any http:// host of a child; a process looks at
// these variables once.
func proxyEnv(s *faultserver.Server) []string {
	return []string{"HTTP_PROXY=" + s.URL, "http_proxy=" + s.URL}
}

// useServer makes this process find it.
func useServer(t testing.TB, s *faultserver.Server) {
	t.Helper()
	for _, v := range serverEnv(s) {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(fixturesFolder(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func object(b []byte, gets ...faultserver.Answer) *faultserver.Object {
	return &faultserver.Object{Content: faultserver.Bytes(b), ETag: faultserver.Sum(b), Gets: gets}
}

// Whose fault it is shows in the exit code also behind a network.
func TestRemoteExitCodes(t *testing.T) {
	shard := fixture(t, "tars/webdataset-000000.tar")
	other := bytes.Clone(shard)
	other[600] ^= 1
	bad := fixture(t, "cases/tfrecord/c3_flip_length.tfrecord")
	denied := faultserver.Answer{Status: http.StatusForbidden, Code: "AccessDenied"}
	s := startServer(t)
	useServer(t, s)
	s.Put("/b/good.tar", object(shard))
	s.Put("/b/cut.tar", object(shard, faultserver.Answer{Fault: faultserver.Reset, After: 5000}, faultserver.Answer{}))
	s.Put("/b/bad.tfrecord", object(bad))
	s.Put("/b/stale/x.tar", object(shard))
	s.Put("/b/stale/x.tar.idx", object([]byte("v1.2 1\njpg 7 9 nothing.jpg\n")))
	s.Put("/b/short.tar", object(shard[:len(shard)/2-100]))
	replaced := object(shard, faultserver.Answer{Fault: faultserver.Reset, After: 5000}, faultserver.Answer{As: object(other)})
	s.Put("/b/replaced.tar", replaced)
	s.Put("/b/denied.tar", &faultserver.Object{Content: faultserver.Bytes(shard), Heads: []faultserver.Answer{denied}, Gets: []faultserver.Answer{denied}})

	for _, tt := range []struct {
		args string
		code int
		says string // a pattern, on either stream
	}{
		{"verify s3://b/good.tar", 0, `^s3://b/good.tar: ok: tar, 4 samples\n$`},
		{"verify SERVER/b/good.tar", 0, `^http://127.0.0.1:\d+/b/good.tar: ok: tar, 4 samples\n$`},
		{"verify SERVER/b/good.tar?X-Amz-Signature=abc", 0, `/b/good.tar\?X-Amz-Signature=REDACTED: ok: `},
		{"verify s3://b/cut.tar", 0, `4 samples`},
		{"verify s3://b/bad.tfrecord", 1, `s3://b/bad.tfrecord @ 56 \(sample 1\): corrupt: `},
		{"verify SERVER/b/short.tar?sig=secret", 1, `/b/short.tar\?sig=REDACTED @ \d+: truncated: `},
		{"cat s3://b/replaced.tar", 1, `stale: the object was replaced`},
		{"cat s3://b/absent.tar", 3, `^shardtool: s3://b/absent.tar: not-found: .*NoSuch`},
		{"cat SERVER/b/absent.tar?sig=secret", 3, `absent.tar\?sig=REDACTED: not-found: http 404`},
		{"cat s3://b/denied.tar", 3, `^shardtool: s3://b/denied.tar: denied: .*AccessDenied`},
		{"inspect SERVER/b/denied.tar", 3, `denied: .*403`},
		{"cat s3://b/*.zip", 3, `not-found: nothing matches`},
		{"cat SERVER/b/*.tar", 3, `/b/\*.tar: not-found: http 404`},
		{"cat gs://b/x.tar", 1, `unsupported: there is no store for gs://`},
		{"convert s3://b/good.tar s3://b/cut.tar", 2, `s3://b/cut.tar: usage: exists already; --force replaces it`},
		{"convert s3://b/good.tar SERVER/b/denied.tar?X-Amz-Signature=abc", 3, `denied.tar\?X-Amz-Signature=REDACTED: denied: whether it exists already cannot be told; --force`},
		{"extract s3://b/good.tar s3://b/files", 2, `s3://b/files: files are extracted into a folder of this machine`},
		{"pack s3://b/files x.tar", 2, `s3://b/files: files are packed from a folder of this machine`},
		{"cat --connections 0 s3://b/good.tar", 2, `--connections 0: not within 1 to`},
		{"cat --stall-timeout 0s s3://b/good.tar", 2, `--stall-timeout 0s: more than nothing`},
		{"cat --cache-size 1GB s3://b/good.tar", 2, `--cache-size goes with --cache`},
		{"cat --cache x --cache-size lots s3://b/good.tar", 2, `--cache-size lots: a number of bytes`},
		{"cat --endpoint-url me:secret@minio:9000 s3://b/good.tar", 2, `^shardtool: --endpoint-url begins with http:// or https://\n$`},
		{"bench --warmup 1ms --duration 1ms SERVER/b/good.tar?sig=secret --columns key", 0, `^http://127.0.0.1:\d+/b/good.tar\?sig=REDACTED: 1 shard,`},
		{"plan ACCOUNT/b/stale/x.tar", 0, `warning +the index http://127.0.0.1:\d+/b/stale/x.tar.idx is not used: http://127`},
		{"plan --shuffle global SERVER/b/good.tar?sig=secret", 2, `first http://127.0.0.1:\d+/b/good.tar\?sig=REDACTED: make an index`},
	} {
		code, out, stderr := runCommand(t, "", strings.Fields(strings.NewReplacer("SERVER", s.URL, "ACCOUNT", strings.Replace(s.URL, "//", "//me:secret@", 1)).Replace(tt.args))...)
		if code != tt.code || !regexp.MustCompile(tt.says).MatchString(out+stderr) {
			t.Errorf("%s: exit %d, want %d and %s\n%s%s", tt.args, code, tt.code, tt.says, out, stderr)
		}
		if all := out + stderr; strings.Contains(all, testSecret) || strings.Contains(all, "=secret") || strings.Contains(all, "me:secret") || strings.Contains(all, "=abc") {
			t.Errorf("%s: a secret is printed\n%s", tt.args, all)
		}
	}
	if log.Writer() != io.Discard {
		t.Error("net/http would print what a server sends unasked")
	}
}

// An interrupted upload is taken back, and so is one whose server fails.
func TestUploadsAreTakenBack(t *testing.T) {
	s := startServer(t)
	useServer(t, s)
	shard := tarOf(t, "0001.txt", "0002.txt", "0003.txt")
	for _, tt := range []struct {
		name  string
		args  []string
		large bool // more than a part before the end comes
	}{
		{"small", []string{"convert", "--format", "tar", "-", "s3://b/x.tar"}, false},
		{"several", []string{"convert", "--format", "tar", "-", "s3://b/x-%06d.tar", "--count", "1"}, false},
		{"in parts", []string{"convert", "--format", "tar", "-", "s3://b/x.tar", "--on-duplicate", "keep-first"}, true},
		{"repaired", []string{"repair", "--format", "tar", "-", "s3://b/x.tar"}, true},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		in, feed := io.Pipe()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			if tt.large {
				_, _ = io.Copy(feed, io.LimitReader(endlessTar(t), 40<<20))
			} else {
				_, _ = feed.Write(shard[:2*1024+512]) // two members and a header
			}
			cancel(interrupted{syscall.SIGINT})
		}()
		var out, stderr bytes.Buffer
		code := run(ctx, append([]string{"shardtool"}, tt.args...), in, &out, &stderr)
		in.Close()
		<-sent
		if code != 130 || out.Len() > 0 {
			t.Errorf("%s: exit %d\n%s%s", tt.name, code, out.String(), stderr.String())
		}
		begun := false
		for _, r := range s.Requests(http.MethodPost) {
			begun = begun || strings.Contains(r.RawQuery, "uploads")
		}
		if begun != tt.large {
			t.Errorf("%s: an upload in parts was begun: %v", tt.name, begun)
		}
		if s.Uploads() > 0 || s.Get("/b/x.tar") != nil || s.Get("/b/x-000000.tar") != nil {
			t.Errorf("%s: something is left", tt.name)
		}
		s.Forget()
	}
}

// endlessTar is the beginning of a tar of samples of 64 KiB.
func endlessTar(t *testing.T) io.Reader {
	var members bytes.Buffer
	payload := bytes.Repeat([]byte("payload "), 8<<10)
	for i := range 1000 {
		name := []byte("0000.txt")
		for k, n := 3, i; k >= 0; k, n = k-1, n/10 {
			name[k] = '0' + byte(n%10)
		}
		one := tarOf(t, string(name))[:512]
		copy(one[124:136], "00000200000\x00") // octal for 64 KiB
		copy(one[148:156], "        ")
		sum := 0
		for _, c := range one {
			sum += int(c)
		}
		copy(one[148:156], []byte{'0', '0' + byte(sum>>12&7), '0' + byte(sum>>9&7), '0' + byte(sum>>6&7), '0' + byte(sum>>3&7), '0' + byte(sum&7), 0, ' '})
		members.Write(one)
		members.Write(payload)
	}
	return &members
}

// A set that cannot be named wholly says what is there and what is not.
func TestRemoteCommitHalfway(t *testing.T) {
	s := startServer(t)
	useServer(t, s)
	s.Put("/b/good.tar", object(fixture(t, "tars/webdataset-000000.tar")))
	s.Before = func(r *http.Request, _ int) *faultserver.Answer {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "x-000001.tar") {
			return &faultserver.Answer{Status: http.StatusForbidden, Code: "AccessDenied"}
		}
		return nil
	}
	code, _, stderr := runCommand(t, "", "convert", "--count", "1", "s3://b/good.tar", "s3://b/out/x-%06d.tar")
	if code != exitIO || !strings.Contains(stderr, "s3://b/out/x-000001.tar: denied: ") ||
		!strings.Contains(stderr, "in place already: s3://b/out/x-000000.tar; not written: s3://b/out/x-000001.tar, s3://b/out/x-000002.tar") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if s.Get("/b/out/x-000000.tar") == nil || s.Get("/b/out/x-000002.tar") != nil || s.Uploads() > 0 {
		t.Error("what is there is not what was said")
	}
}

// What the flags say reaches the requests.
func TestRemoteFlags(t *testing.T) {
	s := startServer(t)
	useServer(t, s)
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1") // nothing is there
	s.Put("/b/good.tar", object(fixture(t, "tars/webdataset-000000.tar")))
	code, out, stderr := runCommand(t, "", "verify", "s3://b/good.tar", "--endpoint-url", s.URL, "--region", "eu-west-7", "--request-payer")
	if code != 0 {
		t.Fatalf("exit %d, %s%s", code, out, stderr)
	}
	for _, r := range s.Requests() {
		if r.Header.Get("X-Amz-Request-Payer") != "requester" || !strings.Contains(r.Header.Get("Authorization"), "/eu-west-7/s3/") {
			t.Errorf("%s %s: %v", r.Method, r.Path, r.Header)
		}
	}
	s.Forget()
	if code, _, stderr := runCommand(t, "", "verify", "s3://b/good.tar", "--endpoint-url", s.URL, "--no-sign-request"); code != 0 {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	for _, r := range s.Requests() {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("%s %s is signed", r.Method, r.Path)
		}
	}

	// A second run reads nothing but the versions.
	cache := t.TempDir()
	for i, want := range []bool{true, false} {
		s.Forget()
		if code, _, stderr := runCommand(t, "", "cat", "--json", "s3://b/good.tar", "--endpoint-url", s.URL, "--cache", cache); code != 0 {
			t.Fatalf("exit %d, %s", code, stderr)
		}
		if got := len(s.Requests(http.MethodGet)) > 0; got != want {
			t.Errorf("run %d: it read over the network: %v", i, got)
		}
	}
}
