package loader_test

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"shardtool/augment"
	"shardtool/echo"
	"shardtool/fixtures"
	"shardtool/format"
	"shardtool/loader"
	"shardtool/reader"
	"shardtool/reader/store"
)

func photos() *reader.Dataset {
	return reader.New(store.FS(fixtures.Photos), fixtures.PhotoShards, nil)
}

const (
	pictureField = "jpg;image/encoded"
	labelField   = "cls;image/class/label"
)

// The photographs of both formats, twice echoed, for two epochs: the same
// bytes for any number of workers, and other crops in each epoch and copy.
func TestPhotosAreEqualForAnyWorkers(t *testing.T) {
	type run struct {
		sums   [][32]byte
		labels []int64
		keys   []string
	}
	load := func(workers, fetchers int, seed uint64) (r run) {
		ld, err := loader.New(t.Context(), photos(), &loader.Options{
			Columns: []loader.Column{
				loader.Image(pictureField, augment.ImageNetTrain(56)),
				loader.Int64(labelField),
			},
			GlobalBatch: 5, Seed: seed, Epochs: 2, Workers: workers, Fetchers: fetchers,
			Echo: echo.Options{Factor: 2},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer ld.Close()
		for b, err := range ld.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			for i := range b.Len() {
				r.sums = append(r.sums, sha256.Sum256(b.Column(0).At(i).Bytes()))
				r.keys = append(r.keys, string(b.Key(i)))
			}
			r.labels = append(r.labels, b.Int64(1)...)
			b.Release()
		}
		return r
	}
	one, eight := load(1, 1, 7), load(8, 4, 7)
	if !slices.Equal(one.sums, eight.sums) || !slices.Equal(one.labels, eight.labels) || !slices.Equal(one.keys, eight.keys) {
		t.Error("1 and 8 workers give different batches")
	}
	const n = 36
	if len(one.sums) != n*2*2 {
		t.Fatalf("%d samples", len(one.sums))
	}
	for i := 0; i < n*2; i += 2 {
		a, b, c := one.sums[i], one.sums[i+1], one.sums[n*2+i]
		if a == b || a == c || b == c {
			t.Errorf("sample %d has the same crop twice", i/2)
		}
		if one.labels[i] != one.labels[i+1] || one.labels[i] != one.labels[n*2+i] || one.keys[i] != one.keys[n*2+i] {
			t.Errorf("sample %d has several labels or keys", i/2)
		}
	}
	if other := load(2, 2, 8); slices.Equal(other.sums, one.sums) || !slices.Equal(other.labels, one.labels) {
		t.Error("another seed gives the same crops, or other labels")
	}
}

// A sound shard of three samples; the picture of the second does not decode.
func TestBrokenPicture(t *testing.T) {
	name := filepath.Join("..", "fixtures", "cases", "image", "d3_shard.tar")
	if _, err := os.Stat(name); err != nil {
		t.Fatal(err)
	}
	load := func(skip int64, batch int) (keys []string, ld *loader.Loader, err error) {
		ds, err := reader.Open(t.Context(), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		ld, err = loader.New(t.Context(), ds, &loader.Options{
			Columns:     []loader.Column{loader.Image("jpg;jpeg;png", augment.ImageNetTrain(8))},
			GlobalBatch: batch, OnBad: loader.OnBad{Skip: skip},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer ld.Close()
		for b, e := range ld.Batches(t.Context()) {
			if e != nil {
				return keys, ld, e
			}
			for i := range b.Len() {
				if b.Valid[i] {
					keys = append(keys, string(b.Key(i)))
				}
			}
			b.Release()
		}
		return keys, ld, nil
	}
	keys, _, err := load(0, 1)
	var e *format.Error
	if !slices.Equal(keys, []string{"0001"}) || !errors.As(err, &e) || e.Key != "0002" || e.Field != "jpg" || e.Offset != 2048 || e.Record != 1 ||
		e.Err != format.ErrTruncated && e.Err != format.ErrCorrupt {
		t.Errorf("stop: keys %v, %v", keys, err)
	}
	keys, ld, err := load(1, 3)
	if s := ld.Stats(); !slices.Equal(keys, []string{"0001", "0003"}) || err != nil || s.Holes != 1 || s.Bad["truncated"]+s.Bad["corrupt"] != 1 {
		t.Errorf("skip: keys %v, %v, %+v", keys, err, s)
	}
}

func BenchmarkPhotos(b *testing.B) {
	ld, err := loader.New(b.Context(), photos(), &loader.Options{
		Columns: []loader.Column{
			loader.Image(pictureField, augment.ImageNetTrain(224)),
			loader.Int64(labelField),
		},
		GlobalBatch: 16, Epochs: 1 << 20, Workers: runtime.GOMAXPROCS(0),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer ld.Close()
	b.ReportAllocs()
	n := 0
	for batch, err := range ld.Batches(b.Context()) {
		if err != nil {
			b.Fatal(err)
		}
		n += batch.Len()
		batch.Release()
		if !b.Loop() {
			break
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "images/s")
}
