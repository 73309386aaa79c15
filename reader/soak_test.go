package reader_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"shardtool/format"
	"shardtool/format/tarshard"
	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
	"shardtool/reader"
	"shardtool/reader/store"
)

const (
	soakBytes = 20e9     // streamed through each reader
	soakRoom  = 64 << 20 // by which resident memory may differ from that at the start
	soakWarm  = 500e6    // after which the start is measured
)

// TestSoak streams 20 GB from a generator through the readers and holds their
// resident memory to what it was near the start.
func TestSoak(t *testing.T) {
	if os.Getenv("SHARDTOOL_SOAK") == "" {
		t.Skip("streams 60 GB: set SHARDTOOL_SOAK to run it")
	}
	resident(t) // before the long part, to fail early where it cannot be told
	payload := func(n int) []byte { return bytes.Repeat([]byte{0x5a}, n) }
	var example tfexample.Builder
	example.AddInt64("label", 7)
	example.AddBytes("image", payload(1000))
	for name, tt := range map[string]struct {
		suffix string
		next   func(n int64) []byte // the bytes of sample n, lent until the next call
		bytes  int64                // of the payloads of a sample
	}{
		"records of 100 KB":  {".tfrecord", always(tfrecord.AppendFrame(nil, payload(100_000))), 100_000},
		"Examples of 1 KB":   {".tfrecord", always(tfrecord.AppendFrame(nil, example.AppendTo(nil))), 1000},
		"tar samples 100 KB": {".tar", tarSamples(payload(100_000)), 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			g := &generator{next: tt.next, left: soakBytes}
			s, err := reader.OpenShard(t.Context(), &store.Local{Stdin: g}, "-", &reader.Options{
				Format: reader.FormatOf("x" + tt.suffix),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var start, samples int64
			for {
				sample, err := s.Next()
				if err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				samples++
				if samples&0xfff != 0 {
					continue
				}
				if sample.Bytes() < tt.bytes {
					t.Fatalf("sample %d has %d bytes", samples, sample.Bytes())
				}
				switch now := resident(t); {
				case start == 0 && s.BytesRead() > soakWarm:
					start = now
				case start > 0 && now > start+soakRoom:
					t.Fatalf("after %d samples %d bytes are resident, %d at the start", samples, now, start)
				}
			}
			if samples != g.made || s.BytesRead() < soakBytes || start == 0 {
				t.Errorf("%d samples of %d, %d bytes", samples, g.made, s.BytesRead())
			}
		})
	}
}

// always gives the same bytes for every sample.
func always(b []byte) func(int64) []byte { return func(int64) []byte { return b } }

// tarSamples gives samples of one field, with keys of their own.
func tarSamples(payload []byte) func(int64) []byte {
	var buf bytes.Buffer
	w := tarshard.NewWriter(&buf, nil)
	return func(n int64) []byte {
		buf.Reset()
		s := &format.Sample{Key: fmt.Appendf(nil, "%012d", n), Fields: []format.Field{{Name: "jpg", Data: payload}}}
		if err := w.WriteSample(s); err != nil {
			panic(err)
		}
		if err := w.Flush(); err != nil {
			panic(err)
		}
		return buf.Bytes()
	}
}

// generator is a stream of samples, whole ones, until left bytes were made.
type generator struct {
	next func(int64) []byte
	cur  []byte
	left int64
	made int64
}

func (g *generator) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(g.cur) == 0 {
			if g.left <= 0 {
				break
			}
			g.cur = g.next(g.made)
			g.left -= int64(len(g.cur))
			g.made++
		}
		k := copy(p[n:], g.cur)
		n, g.cur = n+k, g.cur[k:]
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// resident returns the bytes of memory that the process has.
func resident(t *testing.T) int64 {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal("resident memory is read from /proc:", err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(raw))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
