package web_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"shardtool/reader/store"
	"shardtool/reader/store/faultserver"
	"shardtool/reader/store/remote"
)

// TestPace reads objects over four connections of 50 MB/s that answer after
// 20 ms each, some at a time, in the time of a bubble, where the processor costs
// nothing: what is missing to four times 50 MB/s is what asking for ranges
// costs, and what it costs that at the very end not all connections have work.
// The floors are a little below what was found; see pace and plan in package
// remote.
func TestPace(t *testing.T) {
	const perConnection = 50e6
	for _, tt := range []struct {
		streams int // at a time
		objects int
		mib     int64 // of each object
		r       int64 // MiB of a range
		floor   float64
	}{
		{1, 1, 96, 8, 0.82}, {1, 1, 512, 8, 0.88}, {1, 8, 64, 8, 0.79},
		{4, 4, 96, 8, 0.76}, {4, 4, 96, 16, 0.79}, {4, 24, 64, 8, 0.89},
		{8, 8, 96, 8, 0.85}, {8, 48, 32, 8, 0.88},
		{16, 16, 32, 8, 0.85}, {16, 64, 32, 8, 0.85},
	} {
		t.Run(fmt.Sprintf("%d of %d objects of %d MiB by %d MiB", tt.streams, tt.objects, tt.mib, tt.r), func(t *testing.T) {
			size := tt.mib << 20
			bubble(t, func(t *testing.T) {
				s := pipe(t, remote.Options{Connections: 4, Range: tt.r << 20})
				var all errgroup.Group
				all.SetLimit(tt.streams)
				begin := time.Now()
				for i := range tt.objects {
					all.Go(func() error {
						addr := s.put(fmt.Sprintf("/bkt/%d.tar", i), &faultserver.Object{Content: faultserver.Zeros(size), ETag: `"z"`,
							Gets:  []faultserver.Answer{{Wait: 20 * time.Millisecond, BytesPerSecond: perConnection}},
							Heads: []faultserver.Answer{{Wait: 20 * time.Millisecond}}})
						r, err := store.OpenStream(t.Context(), s.st, addr)
						if err != nil {
							return err
						}
						defer r.Close()
						if n, err := io.Copy(io.Discard, r); n != size || err != nil {
							return fmt.Errorf("%d bytes, %w", n, err)
						}
						return nil
					})
				}
				if err := all.Wait(); err != nil {
					t.Error(err)
				}
				share := float64(size*int64(tt.objects)) / time.Since(begin).Seconds() / (4 * perConnection)
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
