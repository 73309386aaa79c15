package store_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"testing"

	"shardtool/format"
	"shardtool/reader/store"
)

// farObject is bytes behind a network.
type farObject struct {
	data []byte
	gap  int64
	errs map[int64]error // by offset of the read
	asks [][2]int64      // offsets and lengths
}

func (o *farObject) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	o.asks = append(o.asks, [2]int64{off, int64(len(p))})
	if err := o.errs[off]; err != nil {
		return 0, err
	}
	return bytes.NewReader(o.data).ReadAt(p, off)
}

func (o *farObject) Stat() store.Entry { return store.Entry{Size: int64(len(o.data))} }
func (o *farObject) Close() error      { return nil }
func (o *farObject) Gap() int64        { return o.gap }

func TestBlocks(t *testing.T) {
	const gap = 300 << 10
	data := make([]byte, 10*gap+77)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	o := &farObject{data: data, gap: gap}
	ra := store.Blocks(t.Context(), o)
	plain := bytes.NewReader(data)
	for range 2000 {
		off, p := rng.Int64N(int64(len(data)+10)), make([]byte, rng.IntN(5*gap))
		if rng.IntN(4) > 0 {
			p = p[:rng.IntN(600)%(len(p)+1)]
		}
		want := make([]byte, len(p))
		n, err := ra.ReadAt(p, off)
		wantN, wantErr := plain.ReadAt(want, off)
		if len(p) == 0 {
			wantN, wantErr = 0, nil
		}
		if n != wantN || !bytes.Equal(p[:n], want[:n]) || (err == nil) != (wantErr == nil) && n < len(p) {
			t.Fatalf("%d bytes at %d: %d, %v; want %d, %v", len(p), off, n, err, wantN, wantErr)
		}
	}

	// Headers in order are one request a block.
	o.asks = nil
	ra = store.Blocks(t.Context(), o)
	for off := int64(0); off < int64(len(data))-512; off += 9000 {
		if _, err := ra.ReadAt(make([]byte, 512), off); err != nil {
			t.Fatal(err)
		}
	}
	if len(o.asks) != 3 { // 10.x gaps by blocks of 4
		t.Errorf("%d requests: %v", len(o.asks), o.asks)
	}
}

func TestBlocksError(t *testing.T) {
	broken := format.Errorf(format.ErrIO, format.Nowhere, "broken")
	o := &farObject{data: make([]byte, 3<<20), gap: 300 << 10, errs: map[int64]error{1200 << 10: broken}}
	ra := store.Blocks(t.Context(), o)
	p := make([]byte, 1000)
	for range 2 {
		if n, err := ra.ReadAt(p, 1200<<10-500); n != 500 || err != error(broken) {
			t.Errorf("%d, %v", n, err)
		}
	}
	o.errs = nil
	if n, err := ra.ReadAt(p, 1200<<10-500); n != 1000 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestBlocksNearby(t *testing.T) {
	o := &farObject{data: make([]byte, 1000), gap: 64 << 10}
	if _, err := io.ReadFull(io.NewSectionReader(store.Blocks(t.Context(), o), 10, 20), make([]byte, 20)); err != nil || o.asks[0] != [2]int64{10, 20} {
		t.Errorf("%v, %v", o.asks, err)
	}
}
