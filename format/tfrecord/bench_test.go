package tfrecord_test

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"shardtool/format/tfrecord"
)

// The floor of reading a shard with its checksums: one pass of hash/crc32 over
// the same bytes in page cache by a plain read loop.
const floorBuffer = 1 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// shardFile writes a shard of records of that size and returns its name.
func shardFile(tb testing.TB, size int, total int64) string {
	tb.Helper()
	name := filepath.Join(tb.TempDir(), fmt.Sprintf("%d.tfrecord", size))
	f, err := os.Create(name)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	w := tfrecord.NewWriter(out)
	payload := make([]byte, size)
	random := rand.NewChaCha8([32]byte{1})
	for w.Offset() < total {
		random.Read(payload)
		if err := w.Write(payload); err != nil {
			tb.Fatal(err)
		}
	}
	if w.Flush() != nil || out.Flush() != nil {
		tb.Fatal("could not write the shard")
	}
	return name
}

func floorPass(tb testing.TB, f *os.File, buf []byte) (sum uint32) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		tb.Fatal(err)
	}
	for {
		n, err := f.Read(buf)
		sum = crc32.Update(sum, castagnoli, buf[:n])
		if err == io.EOF {
			return sum
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
}

func readPass(tb testing.TB, f *os.File, r *tfrecord.Reader, o *tfrecord.Options) (records int64) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		tb.Fatal(err)
	}
	r.Reset(f, o)
	for {
		_, err := r.Next()
		if err == io.EOF {
			return records
		}
		if err != nil {
			tb.Fatal(err)
		}
		records++
	}
}

// BenchmarkReader reads shards in page cache, checksums checked, and the floor
// in between, pass by pass, so that both see the same machine. ratio is that
// of their rates.
func BenchmarkReader(b *testing.B) {
	for _, size := range []int{100_000, 75_000, 1024, 1000, 100} {
		for _, buffer := range []int{256 << 10, tfrecord.DefaultBuffer, 4 << 20} {
			if buffer != tfrecord.DefaultBuffer && testing.Short() {
				continue
			}
			b.Run(fmt.Sprintf("%dB/buffer=%dK", size, buffer>>10), func(b *testing.B) { benchmarkReader(b, size, buffer) })
		}
	}
}

func benchmarkReader(b *testing.B, size, buffer int) {
	f, err := os.Open(shardFile(b, size, 64<<20))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	floorBuf := make([]byte, floorBuffer)
	o := &tfrecord.Options{BufferSize: buffer}
	r := tfrecord.NewReader(f, o)
	floorPass(b, f, floorBuf)
	readPass(b, f, r, o)
	var floor, read time.Duration
	var records int64
	b.ReportAllocs()
	b.SetBytes(info.Size())
	for b.Loop() {
		start := time.Now()
		records += readPass(b, f, r, o)
		read += time.Since(start)
		b.StopTimer()
		start = time.Now()
		floorPass(b, f, floorBuf)
		floor += time.Since(start)
		b.StartTimer()
	}
	b.ReportMetric(float64(floor)/float64(read), "ratio")
	b.ReportMetric(float64(read.Nanoseconds())/float64(records), "ns/record")
	b.ReportMetric(float64(info.Size())*float64(b.N)/floor.Seconds()/1e6, "floor-MB/s")
}

// BenchmarkMemory reads a shard that is in memory, which leaves the cost of a
// record itself.
func BenchmarkMemory(b *testing.B) {
	for _, size := range []int{0, 10, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			var shard bytes.Buffer
			w := tfrecord.NewWriter(&shard)
			n := 200_000_00 / (size + 100)
			for range n {
				w.Write(make([]byte, size))
			}
			w.Flush()
			src := bytes.NewReader(shard.Bytes())
			r := tfrecord.NewReader(src, nil)
			b.ReportAllocs()
			records := 0
			for b.Loop() {
				src.Reset(shard.Bytes())
				r.Reset(src, nil)
				for _, err := range r.Records() {
					if err != nil {
						b.Fatal(err)
					}
					records++
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/record")
		})
	}
}

// BenchmarkScan lists the records of a shard: bounded by their number where
// they are large.
func BenchmarkScan(b *testing.B) {
	for _, size := range []int{100_000, 1000, 100} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			f, err := os.Open(shardFile(b, size, 64<<20))
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				b.Fatal(err)
			}
			records := 0
			b.SetBytes(info.Size())
			for b.Loop() {
				for _, err := range tfrecord.Scan(f, info.Size(), nil) {
					if err != nil {
						b.Fatal(err)
					}
					records++
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/record")
		})
	}
}

func BenchmarkWriter(b *testing.B) {
	for _, size := range []int{100_000, 1000, 100} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			payload := make([]byte, size)
			w := tfrecord.NewWriter(io.Discard)
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				if err := w.Write(payload); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
