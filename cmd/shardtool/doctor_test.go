package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shardtool/reader/store/faultserver"
)

// doctorRows runs doctor and returns its rows by check, the last of each.
func doctorRows(t *testing.T, args ...string) (int, map[string]doctorRow, string) {
	t.Helper()
	code, out, stderr := runCommand(t, "", append([]string{"doctor", "--json", "--bytes", "2MB"}, args...)...)
	rows := make(map[string]doctorRow)
	for line := range strings.Lines(out) {
		var r doctorRow
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		rows[r.Check] = r
	}
	all := out + stderr
	for _, secret := range []string{testKey, testSecret, "the-signature", "the-password"} {
		if strings.Contains(all, secret) {
			t.Errorf("%v: a secret is printed\n%s", args, all)
		}
	}
	return code, rows, all
}

func TestDoctor(t *testing.T) {
	shard := fixture(t, "photos/photos-000000.tar")
	signed := "?X-Amz-Signature=the-signature&X-Amz-Expires=86400&X-Amz-Date=" + time.Now().UTC().Format("20060102T150405Z")
	refused := faultserver.Answer{Status: http.StatusForbidden, Code: "AccessDenied"}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String()
	closed.Close()

	type want map[string]string // by check: the status, and after a space what detail or hint holds
	for _, tt := range []struct {
		name string
		o    *faultserver.Object // each of the two shards
		args []string
		do   func(s *faultserver.Server)
		code int
		want want
	}{
		{"sound prefix", object(shard), []string{"s3://b/train/"}, nil, 0, want{
			"connection": "ok 127.0.0.1", "clock": "ok as the server's", "credentials": "ok from EnvConfigCredentials", "region": "ok us-east-1",
			"shards": "warn 2 shards, 2.888 MB: 1.444 MB to 1.444 MB each; 1 object besides", "index": "warn 1 of 2 shards",
			"ranges": "ok 206", "if-match": "ok 412", "checksums": "ok none",
			"bandwidth": "ok 16 connections: ", "advice": "ok KB, the mean of the first shard",
		}},
		{"sound object", object(shard), []string{"s3://b/train/0.tar"}, nil, 0, want{"shards": "ok 1 shard, 1.444 MB", "index": "", "advice": "ok "}},
		{"sound pattern", object(shard), []string{"s3://b/train/{0..1}.tar", "--connections", "2"}, nil, 0, want{
			"shards": "warn 2 shards", "bandwidth": "ok 2 connections: "}},
		{"key as prefix", object(shard), []string{"s3://b/tra"}, nil, 0, want{"shards": "warn 2 shards"}},
		{"not signed", object(shard), []string{"s3://b/train/", "--no-sign-request"}, nil, 0, want{"credentials": "ok none: requests are not signed"}},
		{"address", object(shard), []string{"SERVER/b/train/0.tar" + signed}, nil, 0, want{
			"connection": "ok http without TLS", "credentials": "ok a signature in the address, which holds for 24h", "region": "", "ranges": "ok 206", "if-match": "ok 412"}},
		{"password", object(shard), []string{"http://me:the-password@HOST/b/train/0.tar"}, nil, 0, want{"credentials": "ok user and password"}},
		{"another region", object(shard), []string{"s3://b/train/0.tar"}, func(s *faultserver.Server) { s.Region = "eu-west-3" }, 0, want{
			"region": "warn --region eu-west-3 saves"}},
		{"checksum", &faultserver.Object{Content: faultserver.Bytes(shard), ETag: `"e"`, Header: http.Header{"X-Amz-Checksum-Crc32c": {"AAAAAA=="}, "X-Amz-Checksum-Type": {"COMPOSITE"}}},
			[]string{"s3://b/train/0.tar"}, nil, 0, want{"checksums": "ok crc32c, of the parts"}},
		{"weak version", &faultserver.Object{Content: faultserver.Bytes(shard), ETag: `W/"e"`}, []string{"SERVER/b/train/0.tar"}, nil, 0, want{"if-match": "warn no strong ETag"}},
		{"no ranges", object(shard, faultserver.Answer{IgnoreRange: true}), []string{"s3://b/train/0.tar"}, nil, 1, want{
			"ranges": "FAIL can only be read in order", "latency": ""}},
		{"no matching", object(shard, faultserver.Answer{IgnoreMatch: true}), []string{"s3://b/train/0.tar"}, nil, 1, want{
			"ranges": "ok 206", "if-match": "FAIL do not replace objects", "advice": "ok "}},
		{"denied", &faultserver.Object{Content: faultserver.Bytes(shard), ETag: `"e"`, Heads: []faultserver.Answer{refused}, Gets: []faultserver.Answer{refused}},
			[]string{"s3://b/train/0.tar"}, nil, 3, want{"connection": "ok ", "access": "FAIL denied: "}},
		{"data denied", object(shard, refused), []string{"s3://b/train/0.tar"}, nil, 3, want{"shards": "ok ", "ranges": "FAIL denied: "}},
		{"open to all", object(shard), []string{"s3://b/train/0.tar"}, func(s *faultserver.Server) {
			s.Before = func(r *http.Request, _ int) *faultserver.Answer {
				if r.Header.Get("Authorization") != "" {
					return &refused
				}
				return nil
			}
		}, 3, want{"access": "FAIL it goes without credentials: --no-sign-request"}},
		{"nothing there", object(shard), []string{"s3://b/absent/"}, nil, 3, want{"access": "FAIL no object begins so"}},
		{"no server", object(shard), []string{"s3://b/train/", "--endpoint-url", nobody}, nil, 3, want{
			"connection": "FAIL nothing listens there", "access": ""}},
		{"no address", object(shard), []string{nobody + "/x.tar"}, nil, 3, want{"connection": "FAIL nothing listens there"}},
		{"wrong clock", object(shard), []string{"s3://b/train/0.tar"}, func(s *faultserver.Server) {
			ahead := http.Header{"Date": {time.Now().Add(20 * time.Minute).UTC().Format(http.TimeFormat)}}
			s.Get("/b/train/0.tar").Heads = []faultserver.Answer{{Header: ahead}}
		}, 0, want{"clock": "warn behind the server's"}},
		{"stalled", object(shard, faultserver.Answer{Fault: faultserver.Stall}), []string{"s3://b/train/0.tar", "--stall-timeout", "250ms"}, nil, 3, want{
			"ranges": "FAIL a smaller MTU"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := startServer(t)
			useServer(t, s)
			s.Put("/b/train/0.tar", tt.o)
			s.Put("/b/train/1.tar", object(shard))
			s.Put("/b/train/1.tar.idx", object([]byte("v1.2 0\n")))
			s.Put("/b/train/README", object([]byte("x")))
			if tt.do != nil {
				tt.do(s)
			}
			args := make([]string, len(tt.args))
			for i, a := range tt.args {
				args[i] = strings.NewReplacer("SERVER", s.URL, "HOST", strings.TrimPrefix(s.URL, "http://")).Replace(a)
			}
			code, rows, all := doctorRows(t, args...)
			if code != tt.code {
				t.Errorf("exit %d, want %d", code, tt.code)
			}
			for check, want := range tt.want {
				r, there := rows[check]
				status, text, _ := strings.Cut(want, " ")
				if there != (want != "") || r.Status != status || !strings.Contains(r.Detail+"\n"+r.Hint, text) {
					t.Errorf("%s is %+v, want %q", check, r, want)
				}
			}
			if t.Failed() {
				t.Log(all)
			}
		})
	}
}

func TestDoctorWithoutCredentials(t *testing.T) {
	s := startServer(t)
	useServer(t, s)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "")
	}
	s.Put("/b/0.tar", object(fixture(t, "photos/photos-000000.tar")))
	code, rows, all := doctorRows(t, "s3://b/0.tar")
	if r := rows["access"]; code != exitIO || r.Status != fail || r.Class != "denied" || !strings.Contains(r.Hint, "--no-sign-request") {
		t.Errorf("exit %d, %s", code, all)
	}
}

func TestDoctorOfPaths(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.tar")
	if err := os.WriteFile(path, fixture(t, "photos/photos-000000.tar"), 0o666); err != nil {
		t.Fatal(err)
	}
	code, rows, all := doctorRows(t, path, "--cache", filepath.Join(dir, "none", "yet"), "--cache-size", "1KB")
	if code != 0 || rows["shards"].Status != fine || rows["read"].Status != fine || rows["advice"].SamplesPerS <= 0 || rows["cache"].Status == fail {
		t.Errorf("exit %d\n%s", code, all)
	}
	if !strings.Contains(rows["read"].Detail, "1.444 MB of ") {
		t.Errorf("%+v", rows["read"])
	}
	if code, rows, all := doctorRows(t, filepath.Join(dir, "absent.tar")); code != exitIO || rows["shards"].Class != "not-found" {
		t.Errorf("exit %d\n%s", code, all)
	}
	for _, args := range [][]string{{}, {"-"}, {dir}, {path, path}, {"--duration", "0s", path}, {"--bytes", "none", path}} {
		if code, _, all := doctorRows(t, args...); code != exitUsage {
			t.Errorf("%v: exit %d\n%s", args, code, all)
		}
	}
}
