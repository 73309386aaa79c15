package s3_test

import (
	"net/http"
	"testing"

	"shardtool/reader/store"
)

// BenchmarkRequest is what a request costs beside its bytes: wording, signing
// and reading the answer, with a server that takes no time.
func BenchmarkRequest(b *testing.B) {
	noEnvironment(b)
	st, srv := scriptedStore(func(r *http.Request, _ int) *http.Response {
		return reply(206, "content", "ETag", `"e"`, "Content-Range", "bytes 0-6/7")
	}, nil)
	o, err := st.OpenEntry(b.Context(), store.Entry{Name: "s3://bkt/a", Size: 7, Version: `"e"`})
	if err != nil {
		b.Fatal(err)
	}
	p := make([]byte, 7)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := o.ReadAt(b.Context(), p, 0); err != nil {
			b.Fatal(err)
		}
		srv.mu.Lock()
		srv.seen = srv.seen[:0]
		srv.mu.Unlock()
	}
}
