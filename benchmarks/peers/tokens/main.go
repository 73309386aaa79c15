// Command tokens makes and reads the work of tokens.py:
//
//	tokens make N OUT    a TFRecord of N Examples of about 1 KB: one packed list input_ids of uniform numbers below 50,257
//	tokens sum FILE      reads it once by package loader, padded to 512, and prints records and the sum of all values
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"strconv"

	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
	"shardtool/loader"
	"shardtool/reader"
	"shardtool/tensor"
)

func main() {
	log.SetFlags(0)
	var err error
	switch {
	case len(os.Args) == 4 && os.Args[1] == "make":
		var n int
		if n, err = strconv.Atoi(os.Args[2]); err == nil {
			err = write(os.Args[3], n)
		}
	case len(os.Args) == 3 && os.Args[1] == "sum":
		err = sum(os.Args[2])
	default:
		log.Fatal("usage: tokens make N OUT | tokens sum FILE")
	}
	if err != nil {
		log.Fatal(err)
	}
}

// vocabulary is GPT-2's.
const vocabulary = 50_257

func write(name string, n int) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	w := tfrecord.NewWriter(out)
	rng := rand.New(rand.NewPCG(1, 2))
	var b tfexample.Builder
	var ids []int64
	var record []byte
	for range n {
		ids = ids[:0]
		for size := 0; size < 1000; {
			v := rng.Int64N(vocabulary)
			ids = append(ids, v)
			switch {
			case v < 1<<7:
				size++
			case v < 1<<14:
				size += 2
			default:
				size += 3
			}
		}
		b.Reset()
		b.AddInt64("input_ids", ids...)
		record = b.AppendTo(record[:0])
		if err := w.Write(record); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return f.Close()
}

func sum(name string) error {
	ctx := context.Background()
	ds, err := reader.Open(ctx, name, nil)
	if err != nil {
		return err
	}
	ld, err := loader.New(ctx, ds, &loader.Options{
		Columns: []loader.Column{loader.Padded("input_ids", tensor.Int64, 512, nil)}, GlobalBatch: 512, World: 1,
	})
	if err != nil {
		return err
	}
	defer ld.Close()
	records, total := 0, int64(0)
	for b, err := range ld.Batches(ctx) {
		if err != nil {
			return err
		}
		records += b.Len()
		for _, v := range b.Int64(0) {
			total += v
		}
		b.Release()
	}
	fmt.Println(records, total)
	return nil
}
