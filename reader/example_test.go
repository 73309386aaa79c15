package reader_test

import (
	"context"
	"fmt"
	"log"

	"shardtool/reader"
	"shardtool/reader/store"
)

// What a data set has, and one sample of it, without reading the rest.
func ExampleDataset_Manifest() {
	ctx := context.Background()
	// Without a Store it could be "s3://bucket/train-{000..127}.tar", or
	// "@train.json", which `shardtool index --manifest` wrote.
	ds, err := reader.Open(ctx, "../fixtures/tars/webdataset-{000000..000001}.tar", &reader.Options{Store: &store.Local{}, CacheDir: "-"})
	if err != nil {
		log.Fatal(err)
	}
	m, err := ds.Manifest(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Samples(), "samples in", len(m.Shards), "shards")
	s, err := ds.Sample(ctx, 1, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(s.Key), s.Names())
	// Output:
	// 7 samples in 2 shards
	// 000004 [bin cls jpg json seg.png txt]
}
