package stores_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/faultserver"
	"shardtool/reader/store/stores"
	"shardtool/reader/store/storetest"
)

// environment sets what the AWS tools read to a server's, and nothing else.
func environment(t testing.TB, endpoint string) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	dir := t.TempDir()
	for name, v := range map[string]string{
		"AWS_CONFIG_FILE": filepath.Join(dir, "config"), "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(dir, "credentials"),
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "SK", "AWS_ENDPOINT_URL_S3": endpoint,
	} {
		t.Setenv(name, v)
	}
}

func server(t testing.TB) *faultserver.Server {
	t.Helper()
	srv, err := faultserver.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	environment(t, srv.URL)
	return srv
}

func opened(t testing.TB, o *stores.Options) *stores.Stores {
	st := stores.New(o)
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func place(srv *faultserver.Server, path, content string) {
	srv.Put(path, &faultserver.Object{Content: faultserver.Bytes([]byte(content)), ETag: faultserver.Sum([]byte(content))})
}

func read(t testing.TB, st store.Store, name string) string {
	t.Helper()
	r, err := store.OpenStream(t.Context(), st, name)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

func TestNamesLeadToTheirStores(t *testing.T) {
	srv := server(t)
	place(srv, "/bkt/a.tar", "far")
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a.tar", []byte("near"), 0o666); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	st := opened(t, &stores.Options{Local: &store.Local{Stdin: strings.NewReader("typed")}})
	for name, want := range map[string]string{
		"a.tar": "near", "./a.tar": "near", filepath.Join(here, "a.tar"): "near", "file://" + filepath.Join(here, "a.tar"): "near",
		"s3://bkt/a.tar": "far", srv.URL + "/bkt/a.tar": "far", "-": "typed",
	} {
		if got := read(t, st, name); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
		if name == "-" {
			continue
		}
		if e, err := st.Stat(t.Context(), name); err != nil || e.Size != int64(len(want)) || e.Name != name {
			t.Errorf("%s is %+v, %v", name, e, err)
		}
	}
	for name, words := range map[string]string{"gs://b/a": "--endpoint-url https://storage.googleapis.com", "hdfs://h/a": "hdfs://", "S3://b/a": "S3://"} {
		_, err := st.Open(t.Context(), name)
		_, err2 := st.Stat(t.Context(), name)
		_, err3 := st.Create(t.Context(), name)
		_, err4 := st.OpenEntry(t.Context(), store.Entry{Name: name})
		_, err5 := st.Glob(t.Context(), name+"*")
		var err6 error
		for _, err6 = range st.List(t.Context(), name) {
		}
		for _, err := range []error{err, err2, err3, err4, err5, err6} {
			if !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for name, data := range map[string]string{"sub/new.tar": "here", "s3://bkt/new.tar": "there"} {
		k, err := st.Create(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(k, data); err != nil {
			t.Error(err)
		}
		if err := k.Commit(); err != nil {
			t.Error(err)
		}
		if got := read(t, st, name); got != data {
			t.Errorf("%s holds %q", name, got)
		}
	}
}

func TestPatternsOfSeveralSchemes(t *testing.T) {
	srv := server(t)
	for i := range 3 {
		place(srv, fmt.Sprintf("/bkt/t/%d.tar", i), "x")
		place(srv, fmt.Sprintf("/bkt/t/deep/%d.tar", i), "x")
	}
	place(srv, "/bkt/t/READ[ME].txt", "x")
	t.Chdir(t.TempDir())
	for _, name := range []string{"l-1.tar", "l-0.tar", "other"} {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("folder", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []store.LimitOptions{{}, {BytesPerSecond: 1 << 40}} {
		st := opened(t, &stores.Options{Limit: limit})
		for pattern, want := range map[string][]string{
			"l-*.tar::s3://bkt/t/*.tar":                              {"l-0.tar", "l-1.tar", "s3://bkt/t/0.tar", "s3://bkt/t/1.tar", "s3://bkt/t/2.tar"},
			"s3://bkt/t/{2..1}.tar::" + srv.URL + "/bkt/t/{0,1}.tar": {"s3://bkt/t/2.tar", "s3://bkt/t/1.tar", srv.URL + "/bkt/t/0.tar", srv.URL + "/bkt/t/1.tar"},
			"s3://bkt/**/[12].tar":                                   {"s3://bkt/t/1.tar", "s3://bkt/t/2.tar", "s3://bkt/t/deep/1.tar", "s3://bkt/t/deep/2.tar"},
			"s3://bkt/t/*/1.tar":                                     {"s3://bkt/t/deep/1.tar"},
			`s3://bkt/t/READ\[ME\].*`:                                {"s3://bkt/t/READ[ME].txt"},
			`s3://bkt/t/\*.tar`:                                      {"s3://bkt/t/*.tar"},
			"other":                                                  {"other"},
			srv.URL + "/a.tar?X-Amz-Date=[1]":                        {srv.URL + "/a.tar?X-Amz-Date=[1]"},
		} {
			got, err := store.Expand(t.Context(), st, pattern)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q, %v; want %q", pattern, got, err, want)
			}
		}
		for pattern, want := range map[string]error{"s3://bkt/none/*.tar": format.ErrNotFound, "none-*": format.ErrNotFound, "folder": format.ErrUsage} {
			if _, err := store.Expand(t.Context(), st, pattern); !errors.Is(err, want) {
				t.Errorf("%s: %v; want %v", pattern, err, want)
			}
		}
	}
}

func TestCache(t *testing.T) {
	srv := server(t)
	place(srv, "/bkt/a.tar", "far")
	dir := t.TempDir()
	for range 2 { // the second one finds what the first has left
		st := opened(t, &stores.Options{CacheDir: dir, CacheSize: 1 << 20})
		for _, name := range []string{"s3://bkt/a.tar", srv.URL + "/bkt/a.tar"} {
			for range 2 {
				if got := read(t, st, name); got != "far" {
					t.Errorf("%s holds %q", name, got)
				}
			}
		}
	}
	if n := len(srv.Requests(http.MethodGet)); n != 2 {
		t.Errorf("%d requests for two objects", n)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("near"), 0o666); err != nil {
		t.Fatal(err)
	}
	st := opened(t, &stores.Options{CacheDir: file}) // which is no folder
	if got := read(t, st, file); got != "near" {
		t.Errorf("%s holds %q", file, got)
	}
	if _, err := st.Open(t.Context(), "s3://bkt/a.tar"); format.AsError(err) == nil {
		t.Errorf("a cache that cannot be: %v", err)
	}
}

func TestLimit(t *testing.T) {
	environment(t, "")
	name := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(name, make([]byte, 1000), 0o666); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		st := stores.New(&stores.Options{Limit: store.LimitOptions{BytesPerSecond: 100, Latency: time.Minute}})
		read(t, st, name)
		if d := time.Since(begun); d < time.Minute+10*time.Second {
			t.Errorf("1000 bytes at 100 a second, a minute later, took %v", d)
		}
	})
}

func TestMemory(t *testing.T) {
	environment(t, "")
	small := stores.New(&stores.Options{ReadAhead: 32 << 20, Connections: 4})
	large := stores.New(&stores.Options{ReadAhead: 64 << 20, Connections: 4})
	cached := stores.New(&stores.Options{ReadAhead: 64 << 20, Connections: 4, CacheDir: t.TempDir()})
	defer cached.Close()
	if small.Memory() < 32<<20 || large.Memory()-small.Memory() != 32<<20 || cached.Memory() <= large.Memory() {
		t.Errorf("%d, %d and %d bytes", small.Memory(), large.Memory(), cached.Memory())
	}
	if store.Memory(small) != small.Memory() || small.Remote().Connections() != 4 {
		t.Error("the stores do not say what they hold")
	}
	if one, other := stores.Default(), stores.Default(); one != other {
		t.Error("a process has two defaults")
	}
}

const large = 9<<20 + 123 // more than a range, a block of the cache and a part of an upload

func TestConforms(t *testing.T) {
	for name, options := range map[string]func(t *testing.T) *stores.Options{
		"plain":  func(*testing.T) *stores.Options { return nil },
		"cached": func(t *testing.T) *stores.Options { return &stores.Options{CacheDir: t.TempDir()} },
		"limited": func(*testing.T) *stores.Options {
			return &stores.Options{Limit: store.LimitOptions{BytesPerSecond: 1 << 40}}
		},
	} {
		t.Run(name+" s3", func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Fixture {
				server(t)
				return storetest.Fixture{Store: opened(t, options(t)), Prefix: "s3://bkt/", Large: large}
			})
		})
		t.Run(name+" local", func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Fixture {
				environment(t, "")
				return storetest.Fixture{Store: opened(t, options(t)), Prefix: t.TempDir() + string(filepath.Separator), Large: large}
			})
		})
	}
}

// Both remote stores are one budget, and nothing is left of it.
func TestOneBudget(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	srv, err := faultserver.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	environment(t, srv.URL)
	place(srv, "/bkt/a", "far")
	st := stores.New(&stores.Options{Connections: 3})
	before := st.Remote().Stats().Requests
	var b bytes.Buffer
	for _, name := range []string{"s3://bkt/a", srv.URL + "/bkt/a"} {
		b.WriteString(read(t, st, name))
	}
	if got := st.Remote().Stats().Requests - before; got != 4 || b.String() != "farfar" {
		t.Errorf("%d requests are counted, %q", got, &b)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}
