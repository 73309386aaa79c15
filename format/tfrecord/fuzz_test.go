package tfrecord_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"shardtool/format"
	"shardtool/format/tfrecord"
)

// FuzzReader reads anything under every policy. No byte is delivered without
// its checksums, every policy delivers what a stricter one does, Resync
// accounts for the stream, and Scan and ReadAt agree with the Reader.
func FuzzReader(f *testing.F) {
	names, err := filepath.Glob(filepath.Join(cases, "tfrecord", "*.tfrecord"))
	if err != nil || len(names) == 0 {
		f.Fatal("no seeds: ", err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, v := range vectors {
		f.Add(unhex(v.frame))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		limits := &format.Limits{Record: 1 << 20}
		delivered := make(map[format.OnError][]part)
		for _, mode := range []format.OnError{format.Stop, format.Skip, format.Resync} {
			for _, buffer := range []int{0, 1} {
				all, err := parts(t, bytes.NewReader(b), tfrecord.Options{OnError: mode, BufferSize: buffer, Limits: limits})
				if err != nil && format.Sentinel(err) == nil {
					t.Fatalf("%s: error %v is of no class", mode, err)
				}
				if mode == format.Resync && err == nil {
					at := int64(0)
					for _, p := range all {
						if p.offset != at {
							t.Fatalf("bytes %d to %d are neither delivered nor lost", at, p.offset)
						}
						at += p.bytes
					}
					if at != int64(len(b)) {
						t.Fatalf("accounted for %d bytes of %d", at, len(b))
					}
				}
				var good []part
				for _, p := range all {
					if p.payload != nil {
						good = append(good, p)
						if !bytes.Equal(b[p.offset:p.offset+p.bytes], tfrecord.AppendFrame(nil, p.payload)) {
							t.Fatalf("%s: the record at %d is not in the stream", mode, p.offset)
						}
					}
				}
				if buffer == 0 {
					delivered[mode] = good
				} else if len(good) != len(delivered[mode]) {
					t.Fatalf("%s: the size of the buffer changes what is read", mode)
				}
			}
		}
		stop, skip := delivered[format.Stop], delivered[format.Skip]
		for i, p := range stop {
			if skip[i].offset != p.offset {
				t.Fatalf("Skip does not deliver the record at %d", p.offset)
			}
			got, err := tfrecord.ReadAt(bytes.NewReader(b), p.offset, nil, &tfrecord.Options{Limits: limits})
			if err != nil || !bytes.Equal(got, p.payload) {
				t.Fatalf("ReadAt %d: %v", p.offset, err)
			}
		}
		i := 0
		for span, err := range tfrecord.Scan(bytes.NewReader(b), int64(len(b)), &tfrecord.Options{Limits: limits}) {
			if err != nil {
				break
			}
			if i < len(stop) && (span.Offset != stop[i].offset || span.Size != stop[i].bytes) {
				t.Fatalf("Scan finds %+v, the Reader %d", span, stop[i].offset)
			}
			i++
		}
		if i < len(stop) {
			t.Fatalf("Scan finds %d records, the Reader %d", i, len(stop))
		}
	})
}
