package loader

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
	"shardtool/reader"
	"shardtool/reader/order"
	"shardtool/reader/store"
	"shardtool/tensor"
)

// tokens makes TFRecord shards of Examples of about 1 KB: one packed list of
// uniform numbers below 50,257, the size of GPT-2's vocabulary.
func tokens(t testing.TB, dir string, shards, records int) *reader.Dataset {
	t.Helper()
	var names []string
	rng := rand.New(rand.NewPCG(1, 2))
	for shard := range shards {
		name := filepath.Join(dir, fmt.Sprintf("t-%03d.tfrecord", shard))
		names = append(names, name)
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w := tfrecord.NewWriter(f)
		list := make([]int64, 0, 512)
		for range records {
			var b tfexample.Builder
			list = list[:0]
			for size := 0; size < 1000; {
				v := rng.Int64N(50_257)
				list = append(list, v)
				switch {
				case v < 1<<7:
					size++
				case v < 1<<14:
					size += 2
				default:
					size += 3
				}
			}
			b.AddInt64("input_ids", list...)
			if err := w.Write(b.AppendTo(nil)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return reader.New(&store.Local{}, names, &reader.Options{CacheDir: "-"})
}

func BenchmarkTokens(b *testing.B) {
	for _, tt := range []struct {
		name    string
		shards  int
		shuffle order.Shuffle
	}{
		{"one shard", 1, order.None},
		{"four shards", 4, order.None},
		{"stream", 4, order.Stream(4, 10_000)},
		{"block", 4, order.Block(4)},
		{"global", 4, order.Global},
	} {
		b.Run(tt.name, func(b *testing.B) {
			ds := tokens(b, b.TempDir(), tt.shards, 200_000/tt.shards)
			l, err := New(b.Context(), ds, &Options{
				Columns:     []Column{Padded("input_ids", tensor.Int64, 512, nil)},
				GlobalBatch: 512, Epochs: order.Endless, Shuffle: tt.shuffle, Tail: order.TailDrop, World: 1,
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			n := 0
			b.ResetTimer()
			for batch, err := range l.Batches(b.Context()) {
				if err != nil {
					b.Fatal(err)
				}
				n += batch.Len()
				batch.Release()
				if n >= b.N {
					break
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
			for _, s := range l.Stats().Stages {
				b.ReportMetric(s.Busy/float64(n)*1e9, s.Name+"-ns")
			}
		})
	}
}
