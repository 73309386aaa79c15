package tarshard_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"shardtool/format"
	"shardtool/format/tarshard"
)

// writeShard writes a shard of samples whose fields have the given sizes, of
// about total bytes, and returns its path and the number of samples.
func writeShard(tb testing.TB, total int64, fields ...format.Field) (path string, samples int) {
	path = filepath.Join(tb.TempDir(), "bench.tar")
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	w := tarshard.NewWriter(f, nil)
	s := &format.Sample{Fields: fields}
	for w.Offset() < total {
		s.Key = fmt.Appendf(s.Key[:0], "%08d", samples)
		if err := w.WriteSample(s); err != nil {
			tb.Fatal(err)
		}
		samples++
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	return path, samples
}

// floor reads a file by a plain loop and does nothing with it.
func floor(tb testing.TB, f *os.File, buf []byte) time.Duration {
	rewind(tb, f)
	start := time.Now()
	for {
		if _, err := f.Read(buf); err == io.EOF {
			return time.Since(start)
		} else if err != nil {
			tb.Fatal(err)
		}
	}
}

func rewind(tb testing.TB, f *os.File) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		tb.Fatal(err)
	}
}

func drain(tb testing.TB, r *tarshard.Reader) (samples int) {
	for {
		_, err := r.Next()
		if err == io.EOF {
			return samples
		}
		if err != nil {
			tb.Fatal(err)
		}
		samples++
	}
}

// BenchmarkReader reads shards from page cache, in turn with a plain read loop
// over the same file with a buffer of 1 MiB: "of-floor" is how much of its
// speed is reached.
func BenchmarkReader(b *testing.B) {
	for _, bm := range []struct {
		name   string
		total  int64
		fields []format.Field
	}{
		{"100KB", 256 << 20, []format.Field{{Name: "jpg", Data: make([]byte, 100_000)}, {Name: "cls", Data: []byte("3")}}},
		{"1KB+10", 64 << 20, []format.Field{{Name: "jpg", Data: make([]byte, 1000)}, {Name: "cls", Data: []byte("0123456789")}}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			path, want := writeShard(b, bm.total, bm.fields...)
			f, err := os.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				b.Fatal(err)
			}
			buf := make([]byte, 1<<20)
			opts := &tarshard.Options{Shard: path}
			r := tarshard.NewReader(bytes.NewReader(nil), opts)
			floor(b, f, buf)
			b.SetBytes(info.Size())
			b.ReportAllocs()
			var plain, ours time.Duration
			for b.Loop() {
				plain += floor(b, f, buf)
				rewind(b, f)
				start := time.Now()
				r.Reset(struct{ io.Reader }{f}, opts)
				if n := drain(b, r); n != want {
					b.Fatalf("%d samples, want %d", n, want)
				}
				ours += time.Since(start)
			}
			b.ReportMetric(plain.Seconds()/ours.Seconds(), "of-floor")
			b.ReportMetric(float64(info.Size())*float64(b.N)/1e6/ours.Seconds(), "ours-MB/s")
			b.ReportMetric(float64(want)*float64(b.N)/ours.Seconds(), "samples/s")
		})
	}
}

// BenchmarkScanAt scans shards of as many members and ever more bytes: the time
// for a member hardly changes.
func BenchmarkScanAt(b *testing.B) {
	for _, size := range []int{1000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			const samples = 200
			path, _ := writeShard(b, samples*int64(size), format.Field{Name: "jpg", Data: make([]byte, size)}, format.Field{Name: "cls", Data: []byte("3")})
			f, err := os.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				b.Fatal(err)
			}
			var members int64
			for b.Loop() {
				s := tarshard.NewScannerAt(f, info.Size(), nil)
				for {
					if _, err := s.Next(); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
				members += s.Members()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(members), "ns/member")
		})
	}
}

// BenchmarkWriter writes samples of 1 KB + 10 bytes to nowhere.
func BenchmarkWriter(b *testing.B) {
	s := &format.Sample{
		Key:    []byte("00000001"),
		Fields: []format.Field{{Name: "jpg", Data: make([]byte, 1000)}, {Name: "cls", Data: []byte("0123456789")}},
	}
	w := tarshard.NewWriter(io.Discard, nil)
	b.SetBytes(tarshard.SampleSize(s))
	b.ReportAllocs()
	for b.Loop() {
		if err := w.WriteSample(s); err != nil {
			b.Fatal(err)
		}
	}
}
