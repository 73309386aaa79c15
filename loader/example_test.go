package loader_test

import (
	"context"
	"fmt"
	"log"

	"shardtool/augment"
	"shardtool/echo"
	"shardtool/fixtures"
	"shardtool/loader"
	"shardtool/reader"
	"shardtool/reader/store"
)

// The photographs that come with the module, each decoded and cropped twice.
// For shards of your own, reader.Open(ctx, "train-{000..127}.tar", nil).
func Example() {
	ctx := context.Background()
	ds := reader.New(store.FS(fixtures.Photos), fixtures.PhotoShards, nil)
	ld, err := loader.New(ctx, ds, &loader.Options{
		Columns: []loader.Column{
			loader.Image("jpg;image/encoded", augment.ImageNetTrain(224)),
			loader.Int64("cls;image/class/label"),
		},
		GlobalBatch: 32, Seed: 1, World: 1,
		Echo: echo.Options{Unit: echo.Sample, Factor: 2},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close()
	for b, err := range ld.Batches(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.Column(0).DType(), b.Column(0).Shape(), len(b.Int64(1)), "labels")
		b.Release()
	}
	fmt.Println(ld.Stats().Fresh, "fresh,", ld.Stats().Emitted, "emitted")
	// Output:
	// float32 [32 3 224 224] 32 labels
	// float32 [32 3 224 224] 32 labels
	// float32 [8 3 224 224] 8 labels
	// 36 fresh, 72 emitted
}
