package reader_test

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/store"
	"shardtool/reader/store/faultserver"
	"shardtool/reader/store/web"
)

// A dataset that is read through other stores keeps what is known of it, its
// parts and its options, and shares what either finds out.
func TestThrough(t *testing.T) {
	var first, second store.Counters
	at := func(data []byte) *fstest.MapFile { return &fstest.MapFile{Data: data, ModTime: time.Unix(1, 0)} }
	a := reader.New(store.Count(store.FS(fstest.MapFS{"a.tar": at(tarOf(t, 2)), "b.tar": at(tarOf(t, 3))}), &first), []string{"a.tar", "b.tar"},
		&reader.Options{CacheDir: "-", Scan: reader.ScanAlways})
	b := reader.New(store.Count(store.FS(fstest.MapFS{"a.tar": at(examplesOf(1))}), &second), []string{"a.tar"},
		&reader.Options{CacheDir: "-", Format: reader.TFRecord, Scan: reader.ScanAlways})
	mix, err := reader.Mix(reader.Weighted{Dataset: a, Weight: 1}, reader.Weighted{Dataset: b, Weight: 2}, reader.Weighted{Dataset: a, Weight: 3})
	if err != nil {
		t.Fatal(err)
	}
	m, err := mix.Manifest(t.Context())
	if err != nil || m.Samples() != 2+3+1+2+3 {
		t.Fatal(m, err)
	}
	var spools []*store.Spool
	through := mix.Through(func(st store.Store) store.Store {
		s := store.NewSpool(st, store.SpoolOptions{Memory: 1 << 20})
		spools = append(spools, s)
		return s
	})
	if len(spools) != 2 {
		t.Errorf("%d stores are wrapped, want one of each dataset", len(spools))
	}
	if !slices.Equal(through.Shards(), mix.Shards()) || !slices.Equal(through.Parts(), mix.Parts()) {
		t.Errorf("%q in %v", through.Shards(), through.Parts())
	}
	for shard, want := range []*store.Spool{spools[0], spools[0], spools[1], spools[0], spools[0]} {
		if through.Store(shard) != store.Store(want) || through.ReadOptions(shard) != mix.ReadOptions(shard) {
			t.Errorf("shard %d is read from another store, or in another way", shard)
		}
		if mix.Store(shard) == through.Store(shard) {
			t.Errorf("shard %d: the dataset itself was changed", shard)
		}
	}

	before := first.Bytes.Load() + second.Bytes.Load()
	again, err := through.Manifest(t.Context())
	if err != nil || !reflect.DeepEqual(again, m) {
		t.Errorf("another manifest: %v", err)
	}
	if p, err := through.Places(t.Context(), 1); err != nil || p.Len() != 3 {
		t.Errorf("places: %v, %v", p, err)
	}
	if n := first.Bytes.Load() + second.Bytes.Load() - before; n != 0 {
		t.Errorf("the manifest and places were made anew: %d bytes", n)
	}

	for range 2 {
		for shard, name := range through.Shards() {
			through.Store(shard).(*store.Spool).Hold(name)
			got, want := samplesOf(t, through, shard), samplesOf(t, mix, shard)
			if !slices.Equal(got, want) || int64(len(got)) != m.Shards[shard].Samples {
				t.Errorf("shard %d:\n%q, want\n%q", shard, got, want)
			}
			fetched := first.Bytes.Load() + second.Bytes.Load()
			if again := samplesOf(t, through, shard); !slices.Equal(again, want) {
				t.Errorf("shard %d, the second pass:\n%q, want\n%q", shard, again, want)
			}
			if n := first.Bytes.Load() + second.Bytes.Load() - fetched; n != 0 {
				t.Errorf("shard %d: the second pass fetches %d bytes", shard, n)
			}
			through.Store(shard).(*store.Spool).Release(name)
		}
	}
}

func samplesOf(t *testing.T, d *reader.Dataset, shard int) (all []string) {
	t.Helper()
	s, err := d.Run(t.Context(), shard, 0, format.Unknown)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for sample, err := range s.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, whole(sample))
	}
	return all
}

// Over a network, several passes over a shard that is held ask the server for its
// bytes once, a part of a shard for no more than the part, and passes that
// overlap for none twice.
func TestThroughOverHTTP(t *testing.T) {
	s, err := faultserver.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	shard := tarOf(t, 3000)
	s.Put("/bkt/a.tar", &faultserver.Object{Content: faultserver.Bytes(shard), ETag: `"e1"`})
	var count store.Counters
	name := s.URL + "/bkt/a.tar"
	d := reader.New(store.Count(web.New(nil), &count), []string{name}, &reader.Options{CacheDir: "-", Scan: reader.ScanAlways, Index: "-"})
	if _, err := d.Manifest(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, memory := range []int64{0, 1 << 30} {
		var spool *store.Spool
		through := d.Through(func(st store.Store) store.Store {
			spool = store.NewSpool(st, store.SpoolOptions{Memory: memory, Dir: t.TempDir()})
			return spool
		})
		spool.Hold(name)
		s.Forget()
		before := count.Bytes.Load()
		want := samplesOf(t, through, 0)
		first := count.Bytes.Load() - before
		asked := len(s.Requests("GET", "HEAD"))
		for range 3 {
			if got := samplesOf(t, through, 0); !slices.Equal(got, want) {
				t.Error("another pass gives other samples")
			}
		}
		if n := len(s.Requests("GET", "HEAD")) - asked; n != 0 || first > int64(len(shard)) {
			t.Errorf("%d bytes of %d, and %d requests by later passes", first, len(shard), n)
		}
		spool.Release(name)

		spool.Hold(name)
		before = count.Bytes.Load()
		var wg sync.WaitGroup
		for range 4 { // as a loader that prefetches across passes
			wg.Go(func() {
				if got := samplesOf(t, through, 0); !slices.Equal(got, want) {
					t.Error("a pass beside others gives other samples")
				}
			})
		}
		wg.Wait()
		if n := count.Bytes.Load() - before; n > int64(len(shard)) {
			t.Errorf("passes side by side fetched %d bytes of %d", n, len(shard))
		}
		spool.Release(name)
		if err := spool.Close(); err != nil {
			t.Error(err)
		}
	}
}
