// Command loader measures what reading, ordering and batching cost: the rate of
// a loader over tar shards on a local disk (in the page cache), beside the rate
// at which its decoding workers alone run on the same images in memory, in
// turns, with the same transform and number of workers. It prints both and
// their ratio, medians and spread. Let nothing else run.
//
//	go run ./benchmarks/loader [-rounds 5] [-seconds 4] [-workers N] [-photos FOLDER]
//
// Without -photos it takes the embedded photographs.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"shardtool/augment"
	"shardtool/fixtures"
	"shardtool/format"
	"shardtool/format/tarshard"
	"shardtool/loader"
	"shardtool/reader"
	"shardtool/reader/order"
	"shardtool/reader/store"
	"shardtool/tensor"
)

const (
	batch  = 64
	shards = 4
	each   = 384 // images of a shard
)

func main() {
	log.SetFlags(0)
	rounds := flag.Int("rounds", 5, "")
	seconds := flag.Float64("seconds", 4, "of each measurement")
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "")
	photos := flag.String("photos", os.Getenv("SHARDTOOL_PHOTOS"), "folder of *.jpg")
	flag.Parse()
	images, err := load(*photos)
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	names, err := pack(dir, images)
	if err != nil {
		log.Fatal(err)
	}
	length := time.Duration(*seconds * float64(time.Second))
	rows := []struct {
		name    string
		shuffle order.Shuffle
		rates   []float64
	}{{"none", order.None, nil}, {"block", order.Block(shards), nil}, {"stream", order.Stream(shards, 1024), nil}, {"global", order.Global, nil}}
	var alone []float64
	for range *rounds {
		alone = append(alone, decode(images, *workers, length))
		for i := range rows {
			rate, err := run(names, rows[i].shuffle, *workers, length)
			if err != nil {
				log.Fatal(err)
			}
			rows[i].rates = append(rows[i].rates, rate)
		}
	}
	fmt.Printf("%d images, %d workers\n", len(images), *workers)
	fmt.Printf("workers alone   %s images/s\n", spread(alone, "%.0f"))
	for _, r := range rows {
		ratios := make([]float64, len(alone))
		for i := range alone {
			ratios[i] = r.rates[i] / alone[i]
		}
		fmt.Printf("loader, %-7s %s images/s, %s of that\n", r.name, spread(r.rates, "%.0f"), spread(ratios, "%.3f"))
	}
}

func spread(v []float64, verb string) string {
	s := slices.Sorted(slices.Values(v))
	return fmt.Sprintf(verb+" ("+verb+" to "+verb+")", s[len(s)/2], s[0], s[len(s)-1])
}

// load returns the encoded images.
func load(folder string) (images [][]byte, err error) {
	if folder == "" {
		ds := reader.New(store.FS(fixtures.Photos), fixtures.PhotoShards, nil)
		for s, err := range ds.Samples(context.Background()) {
			if err != nil {
				return nil, err
			}
			images = append(images, bytes.Clone(s.Field("jpg;image/encoded").Data))
		}
		return images, nil
	}
	names, err := filepath.Glob(filepath.Join(folder, "*.jpg"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("no *.jpg in %s: %w", folder, err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		images = append(images, data)
	}
	return images, nil
}

// pack writes the images to shards, again and again until those are full.
func pack(dir string, images [][]byte) (names []string, err error) {
	n := 0
	for shard := range shards {
		name := filepath.Join(dir, fmt.Sprintf("%d.tar", shard))
		f, err := os.Create(name)
		if err != nil {
			return nil, err
		}
		w := tarshard.NewWriter(f, nil)
		for range each {
			s := format.Sample{Key: fmt.Appendf(nil, "%06d", n), Fields: []format.Field{{Name: "jpg", Data: images[n%len(images)]}}}
			if err := w.WriteSample(&s); err != nil {
				return nil, err
			}
			n++
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

const warmup = 500 * time.Millisecond

// decode returns how many images a second the workers alone make of what is in
// memory.
func decode(images [][]byte, workers int, length time.Duration) float64 {
	t := augment.ImageNetTrain(224)
	var next, done atomic.Int64
	var end atomic.Bool
	var all sync.WaitGroup
	var pool tensor.Pool
	for range workers {
		all.Go(func() {
			w := t.NewWorker(nil)
			var px augment.Pixels
			dst, buf := tensor.New(&pool, t.DType(), append(tensor.Shape{batch}, t.Shape()...))
			defer buf.Release()
			for i := 0; !end.Load(); i++ {
				n := next.Add(1)
				ref := order.Ref{Index: n}
				if err := w.Run(dst.At(i%batch), &px, images[int(n)%len(images)], augment.Draws(ref.Draws(1))); err != nil {
					log.Fatal(err)
				}
				done.Add(1)
			}
		})
	}
	time.Sleep(warmup)
	begin, from := time.Now(), done.Load()
	time.Sleep(length)
	rate := float64(done.Load()-from) / time.Since(begin).Seconds()
	end.Store(true)
	all.Wait()
	return rate
}

// run returns how many images a second a loader delivers.
func run(names []string, shuffle order.Shuffle, workers int, length time.Duration) (float64, error) {
	ctx := context.Background()
	ds := reader.New(&store.Local{}, names, &reader.Options{CacheDir: "-"})
	ld, err := loader.New(ctx, ds, &loader.Options{
		Columns:     []loader.Column{loader.Image("jpg", augment.ImageNetTrain(224))},
		GlobalBatch: batch, Epochs: order.Endless, Shuffle: shuffle, Seed: 1, Workers: workers, World: 1,
	})
	if err != nil {
		return 0, err
	}
	defer ld.Close()
	var begin, last time.Time
	n := 0
	start := time.Now()
	for b, err := range ld.Batches(ctx) {
		if err != nil {
			return 0, err
		}
		size := b.Len()
		b.Release()
		last = time.Now()
		switch {
		case begin.IsZero() && last.Sub(start) >= warmup:
			begin = last
		case !begin.IsZero():
			n += size
		}
		if !begin.IsZero() && last.Sub(begin) >= length {
			break
		}
	}
	return float64(n) / last.Sub(begin).Seconds(), nil
}
