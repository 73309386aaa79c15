package tfrecord_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/format/tfrecord"
)

// part is a piece of a stream that was delivered or reported lost.
type part struct {
	offset, bytes int64
	payload       []byte // nil for a loss
}

// parts reads a stream and returns what became of each byte, in order.
func parts(t interface{ Fatalf(string, ...any) }, in io.Reader, o tfrecord.Options) (all []part, err error) {
	o.OnLoss = func(l format.Loss) {
		if l.Err == nil || l.Bytes < 0 || l.Records < format.Unknown {
			t.Fatalf("loss %+v", l)
		}
		all = append(all, part{offset: l.Offset, bytes: l.Bytes})
	}
	r := tfrecord.NewReader(in, &o)
	last := int64(-1)
	for p, err := range r.Records() {
		if err != nil {
			return all, err
		}
		if r.Index() <= last {
			t.Fatalf("record %d after record %d", r.Index(), last)
		}
		last = r.Index()
		all = append(all, part{r.Offset(), int64(len(p)) + tfrecord.Overhead, append([]byte{}, p...)})
	}
	return all, nil
}

// tile fails unless the parts follow each other from 0 to size.
func tile(t *rapid.T, all []part, size int) {
	at := int64(0)
	for _, p := range all {
		if p.offset != at {
			t.Fatalf("bytes %d to %d are neither delivered nor lost", at, p.offset)
		}
		at += p.bytes
	}
	if at != int64(size) {
		t.Fatalf("accounted for %d bytes of %d", at, size)
	}
}

func drawSizes(t *rapid.T) []int {
	small := rapid.IntRange(0, 40)
	return rapid.SliceOfN(rapid.OneOf(small, small, rapid.IntRange(0, 3000)), 1, 20).Draw(t, "sizes")
}

// TestPropertyFlips flips bytes. Under Resync every record none of whose bytes
// was touched is delivered, every other is reported lost, and together they
// are the stream.
func TestPropertyFlips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream, offsets, payloads := shard(drawSizes(t))
		touched := make([]bool, len(offsets))
		for range rapid.IntRange(0, 5).Draw(t, "flips") {
			at := rapid.IntRange(0, len(stream)-1).Draw(t, "at")
			stream[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
		}
		// Two flips may undo each other: what was touched is seen from the bytes.
		for i, off := range offsets {
			end := off + int64(len(payloads[i])) + tfrecord.Overhead
			touched[i] = !bytes.Equal(stream[off:end], tfrecord.AppendFrame(nil, payloads[i]))
		}
		all, err := parts(t, bytes.NewReader(stream), tfrecord.Options{
			OnError: format.Resync, BufferSize: rapid.SampledFrom([]int{0, 1, 100, 1000}).Draw(t, "buffer"),
		})
		got := make(map[int64][]byte)
		for _, p := range all {
			if p.payload != nil {
				got[p.offset] = p.payload
			}
		}
		want := 0
		for i, off := range offsets {
			if touched[i] {
				continue
			}
			want++
			if !bytes.Equal(got[off], payloads[i]) || got[off] == nil && err == nil {
				t.Fatalf("record %d is untouched and was not delivered (%v)", i, err)
			}
		}
		if len(got) != want {
			t.Fatalf("delivered %d records, %d are sound", len(got), want)
		}
		if errors.Is(err, format.ErrWrongFormat) && want == 0 {
			return // nothing tells that it is a shard
		}
		if err != nil {
			t.Fatal(err)
		}
		tile(t, all, len(stream))
	})
}

// TestPropertyEdits cuts the stream, takes bytes out, or puts some in. Under
// Resync what is delivered was written, in order, and the bytes that are not
// delivered are reported lost. Records before the damage are all delivered.
func TestPropertyEdits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream, offsets, payloads := shard(drawSizes(t))
		at := rapid.IntRange(0, len(stream)).Draw(t, "at")
		var edited []byte
		switch rapid.SampledFrom([]string{"cut", "remove", "insert"}).Draw(t, "edit") {
		case "cut":
			edited = stream[:at]
		case "remove":
			edited = cat(stream[:at], stream[rapid.IntRange(at, len(stream)).Draw(t, "to"):])
		case "insert":
			edited = cat(stream[:at], rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "bytes"), stream[at:])
		}
		all, err := parts(t, bytes.NewReader(edited), tfrecord.Options{
			OnError: format.Resync, BufferSize: rapid.SampledFrom([]int{0, 1, 100, 1000}).Draw(t, "buffer"),
		})
		next := 0
		for _, p := range all {
			if p.payload == nil {
				continue
			}
			for next < len(payloads) && !bytes.Equal(payloads[next], p.payload) {
				next++
			}
			if next == len(payloads) {
				t.Fatalf("delivered a record at %d that was not written", p.offset)
			}
			next++
		}
		for i, off := range offsets {
			end := off + int64(len(payloads[i])) + tfrecord.Overhead
			if end <= int64(at) && (i >= len(all) || all[i].offset != off || all[i].payload == nil) {
				t.Fatalf("record %d is before the damage and was not delivered (%v)", i, err)
			}
		}
		if errors.Is(err, format.ErrWrongFormat) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		tile(t, all, len(edited))
	})
}

// TestPropertySkip flips bytes of payloads and of their checksums only, so
// that Skip delivers as much as Resync does, each record with its number.
func TestPropertySkip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream, offsets, payloads := shard(drawSizes(t))
		bad := make(map[int]bool)
		for range rapid.IntRange(0, 5).Draw(t, "flips") {
			i := rapid.IntRange(0, len(offsets)-1).Draw(t, "record")
			if bad[i] {
				continue
			}
			bad[i] = true
			stream[int(offsets[i])+12+rapid.IntRange(0, len(payloads[i])+3).Draw(t, "at")] ^= 0x40
		}
		r := tfrecord.NewReader(bytes.NewReader(stream), &tfrecord.Options{OnError: format.Skip})
		for i, p := range payloads {
			if bad[i] {
				continue
			}
			got, err := r.Next()
			if err != nil || !bytes.Equal(got, p) || r.Index() != int64(i) || r.Offset() != offsets[i] {
				t.Fatalf("record %d: %v, index %d", i, err, r.Index())
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Fatalf("then %v", err)
		}
	})
}
