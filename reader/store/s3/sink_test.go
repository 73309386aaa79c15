package s3_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/remote"
	"shardtool/reader/store/s3"
)

// bucket is a bucket as far as writing needs one.
type bucket struct {
	fail func(r *http.Request) *http.Response // instead of doing it; nil: do it
	lost func(r *http.Request) bool           // do it, but the answer does not arrive

	mu      sync.Mutex
	objects map[string][]byte
	etags   map[string]string
	uploads map[string]map[int][]byte
	ended   map[string]bool
	begun   int
}

func uploads() *bucket {
	return &bucket{objects: map[string][]byte{}, etags: map[string]string{}, uploads: map[string]map[int][]byte{}, ended: map[string]bool{}}
}

func (b *bucket) answer(r *http.Request, _ int) *http.Response {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		if resp := b.fail(r); resp != nil {
			return resp
		}
	}
	resp := b.do(r)
	if b.lost != nil && b.lost(r) {
		return nil
	}
	return resp
}

func (b *bucket) do(r *http.Request) *http.Response {
	q := r.URL.Query()
	id := q.Get("uploadId")
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	switch {
	case q.Has("uploads"):
		b.begun++
		id = fmt.Sprint("u", b.begun)
		b.uploads[id] = map[int][]byte{}
		return reply(200, "<InitiateMultipartUploadResult><UploadId>"+id+"</UploadId></InitiateMultipartUploadResult>")
	case id != "" && b.uploads[id] == nil:
		return fault(r, 404, "NoSuchUpload", "")
	case q.Has("partNumber"):
		var n int
		fmt.Sscan(q.Get("partNumber"), &n)
		b.uploads[id][n] = body
		return reply(200, "", "ETag", fmt.Sprintf(`"%x"`, md5.Sum(body)))
	case id != "" && r.Method == http.MethodDelete:
		delete(b.uploads, id)
		return reply(204, "")
	case id != "":
		var numbers []int
		for n := range b.uploads[id] {
			numbers = append(numbers, n)
		}
		sort.Ints(numbers)
		var whole []byte
		sums := md5.New()
		for _, n := range numbers {
			if !strings.Contains(string(body), fmt.Sprintf("<PartNumber>%d</PartNumber>", n)) {
				return fault(r, 400, "InvalidPart", "")
			}
			whole = append(whole, b.uploads[id][n]...)
			sum := md5.Sum(b.uploads[id][n])
			sums.Write(sum[:])
		}
		delete(b.uploads, id)
		b.objects[r.URL.Path] = whole
		b.etags[r.URL.Path] = fmt.Sprintf(`"%x-%d"`, sums.Sum(nil), len(numbers))
		return reply(200, "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")
	case r.Method == http.MethodPut:
		b.objects[r.URL.Path] = body
		b.etags[r.URL.Path] = fmt.Sprintf(`"%x"`, md5.Sum(body))
		return reply(200, "")
	case q.Has("list-type"):
		return page(false, "")
	}
	data, ok := b.objects[r.URL.Path]
	if !ok {
		return fault(r, 404, "NoSuchKey", "")
	}
	resp := whole(r, string(data))
	resp.Header.Set("Etag", b.etags[r.URL.Path])
	return resp
}

func write(ctx context.Context, st *s3.Store, name string, size int) (store.Sink, error) {
	k, err := st.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	for size > 0 {
		n := min(size, 1<<20)
		if _, err := k.Write(make([]byte, n)); err != nil {
			return k, err
		}
		size -= n
	}
	return k, nil
}

func TestUploadsThatFail(t *testing.T) {
	noEnvironment(t)
	const size = 17 << 20 // three parts
	op := func(r *http.Request) string {
		switch q := r.URL.Query(); {
		case q.Has("uploads"):
			return "begin"
		case q.Has("partNumber"):
			return "part " + q.Get("partNumber")
		case q.Has("uploadId") && r.Method == http.MethodPost:
			return "complete"
		case q.Has("uploadId"):
			return "abort"
		case r.Method == http.MethodPut:
			return "put"
		}
		return ""
	}
	for _, tt := range []struct {
		name string
		op   string
		size int
		err  error
	}{
		{"begin", "begin", size, format.ErrDenied},
		{"first part", "part 1", size, format.ErrDenied},
		{"middle part", "part 2", size, format.ErrDenied},
		{"last part", "part 3", size, format.ErrDenied},
		{"complete", "complete", size, format.ErrDenied},
		{"put", "put", 100, format.ErrDenied},
	} {
		for _, how := range []string{"for good", "once", "lost"} {
			t.Run(tt.name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := uploads()
					failures := 0
					b.fail = func(r *http.Request) *http.Response {
						if op(r) != tt.op || how == "lost" || how == "once" && failures > 0 {
							return nil
						}
						failures++
						if how == "once" {
							return fault(r, 503, "SlowDown", "")
						}
						return fault(r, 403, "AccessDenied", "")
					}
					b.lost = func(r *http.Request) bool {
						if op(r) != tt.op || how != "lost" || failures > 0 {
							return false
						}
						failures++
						return true
					}
					st, _ := scriptedStore(b.answer, nil)
					k, err := write(t.Context(), st, "s3://bkt/a", tt.size)
					if k == nil {
						t.Fatal(err)
					}
					if len(b.objects) > 0 {
						t.Error("an object is visible before Commit")
					}
					if err == nil {
						err = k.Commit()
					}
					if how == "for good" {
						check(t, err, tt.err, "AccessDenied")
						if err := k.Abort(); err != nil {
							t.Error(err)
						}
						if len(b.objects) != 0 || len(b.uploads) != 0 {
							t.Errorf("%d objects and %d uploads are left", len(b.objects), len(b.uploads))
						}
						return
					}
					if err != nil || failures != 1 {
						t.Errorf("%v after %d failures", err, failures)
					}
					if got := b.objects["/bkt/a"]; len(got) != tt.size {
						t.Errorf("%d bytes, want %d", len(got), tt.size)
					}
					if how == "lost" && tt.op == "begin" {
						return // the server has an upload of which nobody knows
					}
					if len(b.uploads) != 0 {
						t.Errorf("%d uploads are left", len(b.uploads))
					}
				})
			})
		}
	}
}

func TestUploadsEndWithTheirContext(t *testing.T) {
	noEnvironment(t)
	for _, how := range []string{"Commit", "Abort"} {
		b := uploads()
		st, _ := scriptedStore(b.answer, nil)
		ctx, cancel := context.WithCancel(t.Context())
		k, err := write(ctx, st, "s3://bkt/a", 30<<20)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := k.Write([]byte("x")); !errors.Is(err, context.Canceled) {
			t.Errorf("Write: %v", err)
		}
		if how == "Abort" {
			err = k.Abort()
		} else if err = k.Commit(); errors.Is(err, context.Canceled) {
			err = nil
		}
		if err != nil || len(b.objects) != 0 || len(b.uploads) != 0 {
			t.Errorf("%s: %v, %d objects and %d uploads are left", how, err, len(b.objects), len(b.uploads))
		}
	}
	goleak.VerifyNone(t)
}

// A part that was on its way when its upload was taken back makes it again.
func TestUploadsAreTakenBackFromLateParts(t *testing.T) {
	noEnvironment(t)
	synctest.Test(t, func(t *testing.T) {
		b := uploads()
		b.fail = func(r *http.Request) *http.Response {
			if r.URL.Query().Get("partNumber") != "2" {
				return nil
			}
			return fault(r, 403, "AccessDenied", "")
		}
		aborts := 0
		b.lost = func(r *http.Request) bool {
			if r.Method == http.MethodDelete {
				if aborts++; aborts == 1 {
					b.uploads[r.URL.Query().Get("uploadId")] = map[int][]byte{2: []byte("late")}
				}
			}
			return false
		}
		st, _ := scriptedStore(b.answer, nil)
		k, err := write(t.Context(), st, "s3://bkt/a", 17<<20)
		if err == nil {
			err = k.Commit()
		}
		check(t, err, format.ErrDenied, "AccessDenied")
		if err := k.Abort(); err != nil {
			t.Error(err)
		}
		if len(b.uploads) != 0 {
			t.Errorf("%d uploads are left after %d aborts", len(b.uploads), aborts)
		}
	})
}

// Many objects that are finished and wait for their Commit hold no parts.
func TestFinishGivesMemoryBack(t *testing.T) {
	noEnvironment(t)
	b := uploads()
	st, _ := scriptedStore(b.answer, nil)
	for size, uploaded := range map[int]bool{10: false, 1 << 20: true, 20 << 20: true} {
		before := b.begun
		k, err := write(t.Context(), st, "s3://bkt/a", size)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.(store.Finisher).Finish(); err != nil {
			t.Fatal(err)
		}
		if (b.begun > before) != uploaded || len(b.objects) > 0 {
			t.Errorf("%d bytes: %d uploads were begun, %d objects are visible", size, b.begun-before, len(b.objects))
		}
		if _, err := k.Write([]byte("x")); err == nil {
			t.Error("more is written after Finish")
		}
		if err := k.Commit(); err != nil || len(b.objects["/bkt/a"]) != size {
			t.Errorf("%d bytes of %d, %v", len(b.objects["/bkt/a"]), size, err)
		}
		delete(b.objects, "/bkt/a")
	}
}

func TestUploadsHoldTheirBytes(t *testing.T) {
	noEnvironment(t)
	b := uploads()
	st, srv := scriptedStore(b.answer, nil)
	want := make([]byte, 50<<20+1)
	for i := range want {
		want[i] = byte(i*7 + i>>9)
	}
	k, err := st.Create(t.Context(), "s3://bkt/a")
	if err != nil {
		t.Fatal(err)
	}
	for rest := want; len(rest) > 0; {
		n := min(len(rest), 3_333_333)
		if _, err := k.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := k.Commit(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.objects["/bkt/a"], want) {
		t.Error("other bytes arrive")
	}
	if n := len(srv.requests()); n != 1+7+1 {
		t.Errorf("%d requests: %q", n, srv.asked())
	}
}

// The window bounds how many parts are sent at a time.
func TestUploadsWaitForRoom(t *testing.T) {
	noEnvironment(t)
	synctest.Test(t, func(t *testing.T) {
		b := uploads()
		var mu sync.Mutex
		now, most := 0, 0
		answer := func(r *http.Request, n int) *http.Response {
			if !r.URL.Query().Has("partNumber") {
				return b.answer(r, n)
			}
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second) // of the bubble: until all others wait too
			mu.Lock()
			now--
			mu.Unlock()
			return b.answer(r, n)
		}
		st, _ := scriptedStore(answer, &s3.Options{Client: remote.NewClient(nil)})
		put(t, st, "s3://bkt/a", make([]byte, 128<<20))
		if most < 2 || most > 6 {
			t.Errorf("%d parts at a time, want 2 to 6", most)
		}
	})
}
