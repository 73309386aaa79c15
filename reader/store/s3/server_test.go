package s3_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"shardtool/reader/store"
	"shardtool/reader/store/remote"
	"shardtool/reader/store/s3"
	"shardtool/reader/store/storetest"
)

// The tests of this file talk to a real server, which .ci/servers.sh starts.

// realServer returns the endpoint that a variable names, and skips the test
// where there is none.
func realServer(t testing.TB, variable string) string {
	t.Helper()
	endpoint := os.Getenv(variable)
	switch {
	case endpoint != "":
	case os.Getenv("SHARDTOOL_NEED_SERVERS") != "":
		t.Fatal(variable + " is not set")
	default:
		t.Skip(variable + " is not set; .ci/servers.sh COMMAND starts the servers and sets it")
	}
	return endpoint
}

// direct is a client of the SDK, for what a store does not do.
func direct(t testing.TB) *sdk.Client {
	endpoint := realServer(t, "SHARDTOOL_S3_ENDPOINT")
	tr := remote.NewTransport(4)
	t.Cleanup(tr.CloseIdleConnections)
	return sdk.New(sdk.Options{
		BaseEndpoint: &endpoint, UsePathStyle: true, Region: "us-east-1", HTTPClient: &http.Client{Transport: tr},
		Credentials: credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), ""),
	})
}

// newBucket makes a bucket of its own for a test.
func newBucket(t testing.TB) string {
	t.Helper()
	bucket := "test-" + strings.ToLower(rand.Text()[:16])
	if _, err := direct(t).CreateBucket(t.Context(), &sdk.CreateBucketInput{Bucket: &bucket}); err != nil {
		t.Fatal(err)
	}
	return bucket
}

func realStore(t testing.TB, endpoint string, o *remote.Options) *s3.Store {
	st := s3.New(&s3.Options{Endpoint: endpoint, Client: remote.NewClient(o)})
	t.Cleanup(func() { st.Close() })
	return st
}

func put(t testing.TB, st store.Store, name string, data []byte) {
	t.Helper()
	k, err := st.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Abort()
	if _, err := k.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := k.Commit(); err != nil {
		t.Fatal(err)
	}
}

func get(ctx context.Context, st store.Store, name string) ([]byte, error) {
	r, err := store.OpenStream(ctx, st, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func TestRealServerConforms(t *testing.T) {
	endpoint := realServer(t, "SHARDTOOL_S3_ENDPOINT")
	storetest.Run(t, func(t *testing.T) storetest.Fixture {
		return storetest.Fixture{Store: realStore(t, endpoint, nil), Prefix: "s3://" + newBucket(t) + "/"}
	})
}

func TestRealServerUploads(t *testing.T) {
	st := realStore(t, realServer(t, "SHARDTOOL_S3_ENDPOINT"), nil)
	bucket := newBucket(t)
	for _, size := range []int{0, 1, 8<<20 - 1, 8 << 20, 8<<20 + 1, 40<<20 + 12345} {
		name := fmt.Sprintf("s3://%s/up/%d", bucket, size)
		data := storetest.Content(uint64(size), size)
		put(t, st, name, data)
		if got, err := get(t.Context(), st, name); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes went up and %d came down, %v", size, len(got), err)
		}
		e, err := st.Stat(t.Context(), name)
		parts := (size + 8<<20 - 1) / (8 << 20)
		if err != nil || e.Size != int64(size) || strings.Contains(e.Version, "-") != (size >= 8<<20) ||
			size >= 8<<20 && !strings.HasSuffix(e.Version, fmt.Sprintf(`-%d"`, parts)) {
			t.Errorf("%d bytes are %+v, %v", size, e, err)
		}
	}
	out, err := direct(t).ListMultipartUploads(t.Context(), &sdk.ListMultipartUploadsInput{Bucket: &bucket})
	if err != nil || len(out.Uploads) != 0 {
		t.Errorf("uploads are left: %v, %v", out, err)
	}
}

func TestRealServerLists(t *testing.T) {
	st := realStore(t, realServer(t, "SHARDTOOL_S3_ENDPOINT"), nil)
	bucket := newBucket(t)
	var want []string
	client := direct(t)
	for i := range 1203 {
		key := fmt.Sprintf("train/%06d.tar", i)
		if _, err := client.PutObject(t.Context(), &sdk.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader("x")}); err != nil {
			t.Fatal(err)
		}
		want = append(want, "s3://"+bucket+"/"+key)
	}
	for _, key := range []string{"train/README", "train/x/000000.tar", "trainer/0.tar", "train/folder/"} {
		body := strings.NewReader("other")
		if strings.HasSuffix(key, "/") {
			body = strings.NewReader("")
		}
		if _, err := client.PutObject(t.Context(), &sdk.PutObjectInput{Bucket: &bucket, Key: aws.String(key), Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := store.Expand(t.Context(), st, "s3://"+bucket+"/train/*.tar")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var all []string
	for e, err := range st.List(t.Context(), "s3://"+bucket+"/") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Name)
	}
	if len(all) != 1203+3 || !slices.IsSorted(all) {
		t.Errorf("%d names, in order: %v", len(all), slices.IsSorted(all))
	}
}

// proxy makes a way to the server with faults of its own.
func proxy(t testing.TB, toxics ...map[string]any) string {
	t.Helper()
	api, server := realServer(t, "SHARDTOOL_TOXIPROXY"), realServer(t, "SHARDTOOL_S3_ENDPOINT")
	name := "test-" + rand.Text()
	var made struct{ Listen string }
	call(t, http.MethodPost, api+"/proxies", map[string]any{"name": name, "listen": "127.0.0.1:0", "upstream": strings.TrimPrefix(server, "http://")}, &made)
	t.Cleanup(func() { call(t, http.MethodDelete, api+"/proxies/"+name, nil, nil) })
	for _, toxic := range toxics {
		call(t, http.MethodPost, api+"/proxies/"+name+"/toxics", toxic, nil)
	}
	return "http://" + made.Listen
}

// call speaks to toxiproxy's API, which is JSON over HTTP.
func call(t testing.TB, method, url string, in, out any) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %s %v", method, path.Base(url), resp.Status, answer, err)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			t.Fatal(err)
		}
	}
}

func upstream(toxic map[string]any) map[string]any {
	toxic["stream"] = "upstream"
	return toxic
}

func toxic(kind string, share float64, attributes map[string]any) map[string]any {
	return map[string]any{"type": kind, "stream": "downstream", "toxicity": share, "attributes": attributes}
}

// TestRealServerThroughFaults reads and writes through a connection with every
// fault that toxiproxy plays; what arrives is what was sent.
func TestRealServerThroughFaults(t *testing.T) {
	bucket := newBucket(t)
	const size = 20<<20 + 77
	data := storetest.Content(9, size)
	name := "s3://" + bucket + "/object"
	put(t, realStore(t, realServer(t, "SHARDTOOL_S3_ENDPOINT"), nil), name, data)
	for _, tt := range []struct {
		name   string
		toxics []map[string]any
	}{
		{"latency", []map[string]any{toxic("latency", 1, map[string]any{"latency": 20, "jitter": 10})}},
		{"bandwidth", []map[string]any{toxic("bandwidth", 1, map[string]any{"rate": 20_000})}},
		{"reset_peer", []map[string]any{toxic("reset_peer", 0.3, map[string]any{"timeout": 30})}},
		{"slow_close", []map[string]any{toxic("slow_close", 1, map[string]any{"delay": 100})}},
		{"limit_data", []map[string]any{toxic("limit_data", 1, map[string]any{"bytes": 3 << 20})}},
		{"limit_data_small", []map[string]any{toxic("limit_data", 0.5, map[string]any{"bytes": 200_000})}},
		{"limit_data_up", []map[string]any{upstream(toxic("limit_data", 0.5, map[string]any{"bytes": 3 << 20}))}},
		{"timeout", []map[string]any{toxic("timeout", 0.3, map[string]any{"timeout": 50})}},
		{"slicer", []map[string]any{toxic("slicer", 1, map[string]any{"average_size": 30_000, "size_variation": 20_000, "delay": 10})}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := realStore(t, proxy(t, tt.toxics...), &remote.Options{Range: 4 << 20, Attempts: 30})
			if got, err := get(t.Context(), st, name); err != nil || !bytes.Equal(got, data) {
				t.Errorf("read %d bytes of %d, %v", len(got), size, err)
			}
			o, err := st.Open(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			p := make([]byte, 100_000)
			for _, off := range []int64{0, 12_345_678, size - 100_000} {
				if n, err := o.ReadAt(t.Context(), p, off); n != len(p) || !bytes.Equal(p, data[off:off+int64(n)]) {
					t.Errorf("ReadAt(%d) = %d, %v", off, n, err)
				}
			}
			put(t, st, name+"."+tt.name, data)
			if got, err := get(t.Context(), realStore(t, os.Getenv("SHARDTOOL_S3_ENDPOINT"), nil), name+"."+tt.name); err != nil || !bytes.Equal(got, data) {
				t.Errorf("wrote %d bytes of %d, %v", len(got), size, err)
			}
		})
	}
}

// BenchmarkRealServer compares reading an object in order by the store with
// reading the same ranges by bare requests, four at a time.
func BenchmarkRealServer(b *testing.B) {
	const size, span, together = 128 << 20, 8 << 20, 4
	endpoint := realServer(b, "SHARDTOOL_S3_ENDPOINT")
	st := realStore(b, endpoint, &remote.Options{Connections: together})
	bucket := newBucket(b)
	put(b, st, "s3://"+bucket+"/object", make([]byte, size))
	b.Run("store", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			r, err := store.OpenStream(b.Context(), st, "s3://"+bucket+"/object")
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, r); n != size || err != nil {
				b.Fatal(n, err)
			}
			r.Close()
		}
	})
	b.Run("bare", func(b *testing.B) {
		client := direct(b)
		b.SetBytes(size)
		for b.Loop() {
			var group errgroup.Group
			group.SetLimit(together)
			for off := 0; off < size; off += span {
				group.Go(func() error {
					out, err := client.GetObject(b.Context(), &sdk.GetObjectInput{Bucket: &bucket, Key: aws.String("object"), Range: aws.String(fmt.Sprintf("bytes=%d-%d", off, off+span-1))})
					if err != nil {
						return err
					}
					defer out.Body.Close()
					_, err = io.Copy(io.Discard, out.Body)
					return err
				})
			}
			if err := group.Wait(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("write", func(b *testing.B) {
		data := make([]byte, size)
		b.SetBytes(size)
		for b.Loop() {
			put(b, st, "s3://"+bucket+"/written", data)
		}
	})
}
