package compress_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"shardtool/format"
	"shardtool/format/compress"
)

// FuzzDecompress reads anything as anything, within a small bound. Whatever
// the sizes of the reads, the same bytes come out; and where the standard
// library reads a gzip stream to its end, so does the Reader, unless the header
// has flags that RFC 1952 reserves.
func FuzzDecompress(f *testing.F) {
	for _, pattern := range []string{"tfrecord/*.gz", "tfrecord/good_zlib.tfrecord", "container/*.gz", "container/*.zst"} {
		names, err := filepath.Glob(filepath.Join(cases, pattern))
		if err != nil || len(names) == 0 {
			f.Fatal("no seeds: ", pattern, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	for _, v := range vectors {
		f.Add(unbase64(v.in))
	}
	o := &compress.Options{Limits: &format.Limits{Decompressed: 1 << 20, Window: 1 << 20}}
	f.Fuzz(func(t *testing.T, in []byte) {
		compress.Sniff(in)
		for _, k := range []compress.Kind{compress.Gzip, compress.Zlib, compress.Zstd} {
			whole, trailing, err := read(t, bytes.NewReader(in), k, o)
			if err != nil && format.Sentinel(err) == nil {
				t.Fatalf("%s: error %v is of no class", k, err)
			}
			if len(whole) > 1<<20 {
				t.Fatalf("%s: %d bytes", k, len(whole))
			}
			z, _ := compress.NewReader(bytes.NewReader(in), k, o)
			defer z.Close()
			var small []byte
			var err2 error
			for buf := make([]byte, 7); err2 == nil; {
				var n int
				n, err2 = z.Read(buf)
				small = append(small, buf[:n]...)
			}
			if !bytes.Equal(small, whole) || (err2 == io.EOF) != (err == nil) || err != nil && format.Class(err) != format.Class(err2) {
				t.Fatalf("%s: small reads give %d bytes and %v, large %d and %v", k, len(small), err2, len(whole), err)
			}
			if k == compress.Gzip && !trailing {
				std(t, in, whole, err)
			}
		}
	})
}

func std(t *testing.T, in, got []byte, err error) {
	r, bad := gzip.NewReader(bytes.NewReader(in))
	if bad != nil {
		return
	}
	want, bad := io.ReadAll(io.LimitReader(r, 1<<20))
	if errors.Is(err, format.ErrUnsupported) {
		return // compress/gzip does not look at reserved flags
	}
	if bad == nil && len(want) < 1<<20 && (err != nil || !bytes.Equal(got, want)) {
		t.Fatalf("compress/gzip reads %d bytes, here are %d and %v", len(want), len(got), err)
	}
}
