package index_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/format/index"
	"shardtool/format/tarshard"
	"shardtool/format/tfrecord"
)

// seed adds the indexes of the real tools and of the cases.
func seed(f *testing.F) {
	for _, pattern := range []string{"/index/*", "/cases/container/*.idx", "/cases/tfrecord/*.idx"} {
		names, err := filepath.Glob(fixtures + pattern)
		if err != nil || len(names) == 0 {
			f.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte("v1.2 9223372036854775807\njpg 512 1 a.jpg\n"))
	f.Add([]byte("0 9223372036854775807\n"))
	f.Add([]byte("v1.2 1\njpg 9223372036854775296 1 a.jpg\n"))
}

// FuzzRead reads any bytes as an index of one shard. What is taken for an index
// can be written and reads as the same again, and holding it against a shard
// finds it stale or right and never fails otherwise.
func FuzzRead(f *testing.F) {
	seed(f)
	tar, err := os.ReadFile(fixtures + "/cases/container/good_pax.tar")
	if err != nil {
		f.Fatal(err)
	}
	s := index.Shard{Name: "s", At: bytes.NewReader(tar), Size: int64(len(tar))}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := index.Read(bytes.NewReader(data), &index.Options{Limits: &format.Limits{Index: 1 << 20}})
		if err != nil {
			if format.Sentinel(err) == nil {
				t.Fatalf("an error without a class: %v", err)
			}
			return
		}
		for i := range x.Len() {
			e := x.At(i)
			for _, fd := range e.Fields {
				if fd.Offset < 0 || fd.Size < 0 || fd.Offset > math.MaxInt64-fd.Size {
					t.Fatalf("sample %d has a field at %d of %d bytes", i, fd.Offset, fd.Size)
				}
			}
		}
		if err := x.Check(t.Context(), s); err != nil && format.Class(err) != "stale" {
			t.Fatalf("Check: %v", err)
		}
		var b strings.Builder
		if err := x.Write(&b, x.Dialect); err != nil {
			return // names that the dialect cannot spell
		}
		again, err := index.Read(strings.NewReader(b.String()), nil)
		if err != nil || again.Len() != x.Len() {
			t.Fatalf("written as %q it reads as %v, %v", b.String(), again, err)
		}
		for i := range x.Len() {
			if got, want := fmt.Sprint(again.At(i)), fmt.Sprint(x.At(i)); got != want {
				t.Fatalf("sample %d came back as %s, want %s", i, got, want)
			}
		}
	})
}

// FuzzReadDataset reads any bytes as an index of a dataset.
func FuzzReadDataset(f *testing.F) {
	seed(f)
	f.Add([]byte(`{"__kind__":"wids-shard-index-v1","wids_version":1,"shardlist":[{"url":"a","nsamples":-1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := index.ReadDataset(bytes.NewReader(data), &index.Options{Limits: &format.Limits{Index: 1 << 20}})
		if err != nil {
			if format.Sentinel(err) == nil {
				t.Fatalf("an error without a class: %v", err)
			}
			return
		}
		if d.Samples() < 0 {
			t.Fatalf("%d samples", d.Samples())
		}
		var b strings.Builder
		if err := d.Write(&b); err != nil {
			t.Fatal(err)
		}
		if again, err := index.ReadDataset(strings.NewReader(b.String()), nil); err != nil || len(again.Shards) != len(d.Shards) {
			t.Fatalf("written as %s it reads as %v, %v", b.String(), again, err)
		}
	})
}

// TestIndexesOfRandomShards builds the indexes of shards of random samples,
// writes and reads them, and holds them against the shard, in which each entry
// has to lead to the data that was written.
func TestIndexesOfRandomShards(t *testing.T) {
	payload := rapid.SliceOfN(rapid.Byte(), 0, 1500)
	rapid.Check(t, func(t *rapid.T) {
		var tar, records bytes.Buffer
		tw, rw := tarshard.NewWriter(&tar, nil), tfrecord.NewWriter(&records)
		var want [][]byte
		for i := range rapid.IntRange(0, 6).Draw(t, "samples") {
			s := &format.Sample{Key: fmt.Appendf(nil, "%s%d", strings.Repeat("k", rapid.IntRange(0, 120).Draw(t, "long")), i)}
			for _, name := range []string{"jpg", "cls", "seg.png"}[:rapid.IntRange(1, 3).Draw(t, "fields")] {
				data := payload.Draw(t, "data")
				s.Fields = append(s.Fields, format.Field{Name: name, Data: data})
				want = append(want, data)
				if err := rw.Write(data); err != nil {
					t.Fatal(err)
				}
			}
			if err := tw.WriteSample(s); err != nil {
				t.Fatal(err)
			}
		}
		if err := tw.Close(); err != nil {
			t.Fatal(err)
		}
		if err := rw.Flush(); err != nil {
			t.Fatal(err)
		}
		ts := index.Shard{Name: "a.tar", At: bytes.NewReader(tar.Bytes()), Size: int64(tar.Len())}
		rs := index.Shard{Name: "a.tfrecord", At: bytes.NewReader(records.Bytes()), Size: int64(records.Len())}
		tx, err := index.OfTar(ts, nil)
		if err != nil {
			t.Fatal(err)
		}
		rx, err := index.OfTFRecord(rs, nil)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for i := range tx.Len() {
			for _, f := range tx.At(i).Fields {
				if !bytes.Equal(tar.Bytes()[f.Offset:f.Offset+f.Size], want[at]) || rx.At(at).Size != int64(len(want[at]))+tfrecord.Overhead {
					t.Fatalf("member %d does not stand where the index says", at)
				}
				at++
			}
		}
		if at != len(want) || rx.Len() != len(want) {
			t.Fatalf("%d members and %d records, want %d", at, rx.Len(), len(want))
		}
		for d, x := range map[index.Dialect]*index.Index{index.WDS: tx, index.WDS11: tx, index.Energon: tx, index.DALI: rx} {
			var b strings.Builder
			if err := x.Write(&b, d); err != nil {
				t.Fatal(err)
			}
			again, err := index.Read(strings.NewReader(b.String()), nil)
			if err != nil {
				t.Fatal(err)
			}
			s := ts
			if d == index.DALI {
				s = rs
			}
			if err := again.Check(t.Context(), s); err != nil {
				t.Fatalf("%s: %v", d, err)
			}
		}
	})
}
