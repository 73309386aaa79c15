package bench

import (
	"bytes"
	"testing"
	"testing/fstest"

	"shardtool/echo"
	"shardtool/format/tfrecord"
	"shardtool/loader"
	"shardtool/reader"
	"shardtool/reader/order"
	"shardtool/reader/store"
)

// BenchmarkEcho is what echo itself costs: the loader over records of 8 bytes in
// memory, with nothing to decode. ns/op is of an emitted batch of 64, ns/emission
// of an emitted sample. Of "batch 64" all but a 64th is echo; "1" is to be as
// fast as "off".
func BenchmarkEcho(b *testing.B) {
	var shard bytes.Buffer
	w := tfrecord.NewWriter(&shard)
	for range 1 << 16 {
		if err := w.Write(make([]byte, 8)); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	ds := reader.New(store.FS(fstest.MapFS{"a.tfrecord": {Data: shard.Bytes()}}), []string{"a.tfrecord"}, &reader.Options{CacheDir: "-"})
	const batch = 64
	for _, bb := range []struct {
		name string
		echo echo.Options
	}{
		{"off", echo.Options{}},
		{"1", echo.Options{Factor: 1, Keep: echo.Decoded}},
		{"batch 64", echo.Options{Unit: echo.Batch, Factor: 64}},
		{"batch 64, buffer 16", echo.Options{Unit: echo.Batch, Factor: 64, Buffer: 16}},
		{"sample 64", echo.Options{Factor: 64}},
		{"sample 64, buffer 4096", echo.Options{Factor: 64, Buffer: 4096}},
		{"sample 64 augmented, buffer 4096", echo.Options{Keep: echo.Augmented, Factor: 64, Buffer: 4096}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			ld, err := loader.New(b.Context(), ds, &loader.Options{
				Columns: []loader.Column{loader.Bytes("record")}, GlobalBatch: batch, Epochs: order.Endless, Echo: bb.echo, Tail: order.TailDrop,
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
				batch.Release()
				if n++; n == 64 { // the pipeline is full, and memory is had
					b.ResetTimer()
				}
				if n == 64+b.N {
					break
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/emission")
		})
	}
}
