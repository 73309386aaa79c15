package web_test

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"shardtool/reader/store"
	"shardtool/reader/store/faultserver"
	"shardtool/reader/store/remote"
)

// TestPace reads over four connections of 50 MB/s that answer after 20 ms each,
// in the time of a bubble, where the processor costs nothing: what is missing
// to four times 50 MB/s is what asking for ranges costs, and at the very end
// what a last range costs that comes alone. The floors are a little below what
// was found; see pace in package remote.
func TestPace(t *testing.T) {
	const perConnection = 50e6
	for _, tt := range []struct {
		streams int
		mib     int64 // of each object
		r       int64 // MiB of a range
		floor   float64
	}{
		{1, 96, 8, 0.82}, {1, 512, 8, 0.90}, {4, 96, 8, 0.84}, {4, 96, 16, 0.80}, {8, 96, 8, 0.91}, {16, 32, 8, 0.86},
	} {
		t.Run(fmt.Sprintf("%d streams of %d MiB by %d MiB", tt.streams, tt.mib, tt.r), func(t *testing.T) {
			size := tt.mib << 20
			bubble(t, func(t *testing.T) {
				s := pipe(t, remote.Options{Connections: 4, Range: tt.r << 20})
				var all sync.WaitGroup
				begin := time.Now()
				for i := range tt.streams {
					all.Go(func() {
						addr := s.put(fmt.Sprintf("/bkt/%d.tar", i), &faultserver.Object{Content: faultserver.Zeros(size), ETag: `"z"`,
							Gets:  []faultserver.Answer{{Wait: 20 * time.Millisecond, BytesPerSecond: perConnection}},
							Heads: []faultserver.Answer{{Wait: 20 * time.Millisecond}}})
						r, err := store.OpenStream(t.Context(), s.st, addr)
						if err != nil {
							t.Error(err)
							return
						}
						defer r.Close()
						if n, err := io.Copy(io.Discard, r); n != size || err != nil {
							t.Error(n, err)
						}
					})
				}
				all.Wait()
				share := float64(size*int64(tt.streams)) / time.Since(begin).Seconds() / (4 * perConnection)
				t.Logf("%.3f of four connections", share)
				if share < tt.floor {
					t.Errorf("%.3f of what four connections can, want %v", share, tt.floor)
				}
				if p := s.srv.Peak(); p > 4 {
					t.Errorf("%d requests at once", p)
				}
			})
		})
	}
}

// BenchmarkLoopback reads an object over loopback TCP, by a plain GET and by a
// stream; what the server costs is the same for both.
func BenchmarkLoopback(b *testing.B) {
	const size = 256 << 20
	s := tcp(b, remote.Options{})
	addr := s.put("/bkt/a.tar", &faultserver.Object{Content: faultserver.Zeros(size), ETag: `"z"`})
	buf := make([]byte, 1<<20)
	b.Run("GET", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			r, err := http.Get(addr)
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r.Body}, buf); n != size || err != nil {
				b.Fatal(n, err)
			}
			r.Body.Close()
		}
	})
	for _, piece := range []int{512, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("stream by %d", piece), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				r, err := store.OpenStream(b.Context(), s.st, addr)
				if err != nil {
					b.Fatal(err)
				}
				if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, buf[:piece]); n != size || err != nil {
					b.Fatal(n, err)
				}
				r.Close()
			}
		})
	}
}
