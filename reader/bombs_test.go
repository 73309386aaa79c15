package reader_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"io"
	"runtime"
	"testing"

	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/store"
)

// bombRoom is what reading a hostile shard may allocate in all, its buffers
// included, whatever it claims and however much comes out of it.
const bombRoom = 4 << 20

// TestBombs reads shards that claim or hold far more than they are worth. The
// default limits hold where none are given.
func TestBombs(t *testing.T) {
	const out = 32 << 20 // bytes that come out of a compressed bomb
	small := &format.Limits{Record: 1 << 20}
	good := tarOf(t, 2)
	for _, tt := range []struct {
		name, shard string
		in          []byte
		limits      *format.Limits
		want        [2]string // the class of the last error under Stop and under Resync
		samples     [2]int
	}{
		{"a record of 1 TiB", "a.tfrecord", claim(1 << 40), nil, [2]string{"limit", ""}, [2]int{}},
		{"a record of 2^64-1", "a.tfrecord", claim(1<<64 - 1), nil, [2]string{"limit", ""}, [2]int{}},
		{"a record of 1 GiB that is cut", "a.tfrecord", claim(1 << 30), nil, [2]string{"truncated", ""}, [2]int{}},
		{"a member of 2^62", "a.tar", append(oneHeader(t, 1<<62), good...), nil, [2]string{"limit", ""}, [2]int{0, 1}},
		{"a member of 1 GiB that is cut", "a.tar", append(oneHeader(t, 1<<30), make([]byte, 512)...), nil, [2]string{"truncated", ""}, [2]int{}},
		{"gzip, a record", "a.tfrecord.gz", zipped(t, claim(out), out), small, [2]string{"limit", ""}, [2]int{}},
		{"gzip, no record", "a.tfrecord.gz", zipped(t, []byte("no record starts so"), out), nil, [2]string{"wrong-format", "wrong-format"}, [2]int{}},
		{"gzip, a member", "a.tar.gz", append(zipped(t, oneHeader(t, out), out), zipped(t, good, 0)...), small, [2]string{"limit", ""}, [2]int{0, 2}},
		{"gzip, behind the end", "a.tar.gz", zipped(t, good, out), nil, [2]string{"", ""}, [2]int{2, 2}},
		{"gzip, over the limit", "a.tar.gz", zipped(t, good, out), &format.Limits{Decompressed: 1 << 20}, [2]string{"limit", "limit"}, [2]int{1, 1}},
		// One frame says that its window is 2 GiB, one that its content is 1 TiB.
		{"zstd, a window", "a.tar.zst", []byte("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00"), nil, [2]string{"limit", "limit"}, [2]int{}},
		{"zstd, a size", "a.tar.zst", []byte("\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x00\x01\x00\x00\x01\x00\x00"), nil, [2]string{"limit", "limit"}, [2]int{}},
	} {
		// Of a tar, the sample before a limit is not known to be whole, nor under
		// Resync the first behind a member that nothing is known of.
		for i, onError := range []format.OnError{format.Stop, format.Resync} {
			t.Run(tt.name+"/"+onError.String(), func(t *testing.T) {
				before := totalAlloc()
				samples, err := readThrough(t, tt.in, &reader.Options{
					Format: reader.FormatOf(tt.shard), Type: reader.Raw, Limits: tt.limits, OnError: onError,
				})
				if n := totalAlloc() - before; n > bombRoom {
					t.Errorf("%d bytes were allocated", n)
				}
				if samples != tt.samples[i] || err == nil != (tt.want[i] == "") || err != nil && format.Class(err) != tt.want[i] {
					t.Errorf("%d samples and %v, want %d and %q", samples, err, tt.samples[i], tt.want[i])
				}
			})
		}
	}
}

// readThrough counts the samples that a stream gives up to its first error.
func readThrough(t *testing.T, in []byte, o *reader.Options) (samples int, err error) {
	s, err := reader.OpenShard(t.Context(), &store.Local{Stdin: bytes.NewReader(in)}, "-", o)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	for {
		if _, err := s.Next(); err == io.EOF {
			return samples, nil
		} else if err != nil {
			return samples, err
		}
		samples++
	}
}

func totalAlloc() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// claim is the head of a record of n bytes, its checksum right, and some bytes
// of the record.
func claim(n uint64) []byte {
	h := binary.LittleEndian.AppendUint64(nil, n)
	c := crc32.Checksum(h, crc32.MakeTable(crc32.Castagnoli))
	return append(binary.LittleEndian.AppendUint32(h, (c>>15|c<<17)+0xa282ead8), make([]byte, 100)...)
}

// oneHeader is the header of a member of n bytes, in base 256 where n needs it.
func oneHeader(t *testing.T, n int64) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&tar.Header{Name: "a.bin", Size: n, Format: tar.FormatGNU}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// zipped compresses head and, after it, zeros: a member of 8 MiB of them,
// repeated.
func zipped(t *testing.T, head []byte, zeros int) []byte {
	t.Helper()
	const each = 8 << 20
	out := zip(t, head)
	if zeros > 0 {
		out = append(out, bytes.Repeat(zip(t, make([]byte, each)), zeros/each)...)
	}
	return out
}

func zip(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
