package loader

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"shardtool/echo"
	"shardtool/reader"
	"shardtool/reader/order"
	"shardtool/reader/store/faultserver"
)

// endings are the ways to end loading in the midst of an epoch.
var endings = []func(l *Loader, ctx context.Context, cancel func(), after int) error{
	func(l *Loader, ctx context.Context, _ func(), after int) error { // break
		for b, err := range l.Batches(ctx) {
			if err != nil {
				return err
			}
			b.Release()
			if after--; after < 0 {
				break
			}
		}
		return nil
	},
	func(l *Loader, ctx context.Context, cancel func(), after int) error { // the context ends
		return endedBy(l, ctx, cancel, after)
	},
	func(l *Loader, ctx context.Context, _ func(), after int) error { // Close by the loop
		return endedBy(l, ctx, func() { l.Close() }, after)
	},
	func(l *Loader, ctx context.Context, _ func(), after int) error { // Close by another goroutine
		closed := make(chan struct{})
		err := endedBy(l, ctx, func() {
			go func() {
				defer close(closed)
				l.Close()
			}()
		}, after)
		<-closed
		return err
	},
}

// endedBy ranges until it is ended, and returns nil if it was by an error.
func endedBy(l *Loader, ctx context.Context, end func(), after int) error {
	for b, err := range l.Batches(ctx) {
		if err != nil {
			return nil
		}
		b.Release()
		if after--; after == -1 {
			end()
		}
	}
	return fmt.Errorf("the batches came to an end")
}

// files is how many descriptors this process has, where that can be seen.
func files(t *testing.T) int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil && runtime.GOOS == "linux" {
		t.Fatal(err)
	}
	return len(all)
}

// holdNoLeaks makes loaders of a dataset and ends them early, 200 times: no
// goroutine, descriptor or memory is left, by each of them or in all.
func holdNoLeaks(t *testing.T, open func() *reader.Dataset, forget func()) {
	t.Helper()
	open()
	others := goleak.IgnoreCurrent()
	var held int64
	for n := range 200 {
		o := Options{
			Columns: assortedColumns(), GlobalBatch: 6, Seed: uint64(n), Epochs: order.Endless, World: 1,
			Shuffle: shuffles[n%len(shuffles)], Tail: order.TailWrap, Workers: 2, Fetchers: 3,
		}
		switch n / 4 % 3 {
		case 1:
			o.Echo = echo.Options{Factor: 2, Keep: []echo.Level{echo.Bytes, echo.Decoded, echo.Augmented}[rand.IntN(3)], Buffer: 30}
		case 2:
			o.Echo = echo.Options{Factor: 2, Unit: echo.Batch, Buffer: 3}
		}
		ctx, cancel := context.WithCancel(t.Context())
		l, err := New(ctx, open(), &o)
		if err != nil {
			t.Fatal(err)
		}
		if err := endings[n/4%len(endings)](l, ctx, cancel, n%11); err != nil {
			t.Fatalf("%d: %v", n, err)
		}
		cancel()
		checkEnd(t, l)
		if n%20 != 19 {
			continue
		}
		forget()
		if err := goleak.Find(others); err != nil {
			t.Fatalf("after %d: %v", n+1, err)
		}
		switch now := inUse(); {
		case n == 59:
			held = now
		case n > 59 && now > held+4<<20:
			t.Fatalf("after %d: %d bytes in use, %d before", n+1, now, held)
		}
	}
}

func TestNothingIsLeftOfLocalLoaders(t *testing.T) {
	ds := assorted(t, nil, 20, 25, 0, 15)
	before := files(t)
	holdNoLeaks(t, func() *reader.Dataset { return ds }, func() {})
	// And where each loader has a dataset of its own.
	names := ds.Shards()
	holdNoLeaks(t, func() *reader.Dataset { return dataset(names) }, func() {})
	if now := files(t); now != before {
		t.Errorf("%d descriptors, %d before", now, before)
	}
}

func TestNothingIsLeftOfLoadersOfS3(t *testing.T) {
	withoutEnvironment(t)
	local := assorted(t, nil, 20, 25, 0, 15)
	before := files(t)
	others := goleak.IgnoreCurrent()
	srv, err := faultserver.Start()
	if err != nil {
		t.Fatal(err)
	}
	ds, st := uploaded(t, srv, local, reader.ScanAlways)
	holdNoLeaks(t, func() *reader.Dataset { return ds }, func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		srv.Forget()
	})
	srv.Close()
	if err := goleak.Find(others); err != nil {
		t.Error(err)
	}
	if now := files(t); now != before {
		t.Errorf("%d descriptors, %d before", now, before)
	}
}
