package tfrecord_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"shardtool/format"
	"shardtool/format/tfrecord"
)

// Records written by TensorFlow's TFRecordWriter.
var vectors = []struct{ payload, frame string }{
	{"", "0000000000000000 29039807 d8ea82a2"},
	{"foo", "0300000000000000 b099490e 666f6f 618abefe"},
	{"AB", "0200000000000000 78270b34 4142 0066582c"},
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

func TestVectors(t *testing.T) {
	var stream bytes.Buffer
	w := tfrecord.NewWriter(&stream)
	var all []byte
	for _, v := range vectors {
		frame := unhex(v.frame)
		if got := tfrecord.AppendFrame([]byte("x"), []byte(v.payload)); !bytes.Equal(got[1:], frame) {
			t.Errorf("AppendFrame(%q) = %x, want %x", v.payload, got[1:], frame)
		}
		if !tfrecord.Sniff(frame[:12]) || tfrecord.Sniff(frame[:11]) || tfrecord.Sniff(append([]byte{1}, frame...)) {
			t.Errorf("Sniff is wrong about %q", v.payload)
		}
		if err := w.Write([]byte(v.payload)); err != nil {
			t.Fatal(err)
		}
		all = append(all, frame...)
		if w.Offset() != int64(len(all)) {
			t.Errorf("writer at %d, want %d", w.Offset(), len(all))
		}
	}
	if err := w.Flush(); err != nil || !bytes.Equal(stream.Bytes(), all) {
		t.Errorf("wrote %x, %v, want %x", stream.Bytes(), err, all)
	}
	r := tfrecord.NewReader(&stream, nil)
	if r.Offset() != format.Unknown || r.Index() != -1 || r.End() != 0 {
		t.Errorf("before the first record: offset %d, index %d, end %d", r.Offset(), r.Index(), r.End())
	}
	offset := int64(0)
	for i, v := range vectors {
		p, err := r.Next()
		if string(p) != v.payload || err != nil || r.Offset() != offset || r.Index() != int64(i) {
			t.Errorf("record %d is %q, %v at %d (%d), want %q at %d", i, p, err, r.Offset(), r.Index(), v.payload, offset)
		}
		offset += int64(len(v.payload)) + tfrecord.Overhead
		if r.End() != offset {
			t.Errorf("end is %d, want %d", r.End(), offset)
		}
	}
	for range 2 {
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("after the last record: %v, want io.EOF", err)
		}
	}
}

// sizes mixes empty, small, straddling and large records.
var sizes = []int{0, 1, 3, 100, 1000, 0, 5000, 70_000, 12, 300_000, 1, 20}

// shard returns a stream of records of those sizes, and where each begins.
func shard(sizes []int) (stream []byte, offsets []int64, payloads [][]byte) {
	for i, n := range sizes {
		p := make([]byte, n)
		for k := range p {
			p[k] = byte(i*7 + k*13 + k>>8)
		}
		offsets = append(offsets, int64(len(stream)))
		payloads = append(payloads, p)
		stream = tfrecord.AppendFrame(stream, p)
	}
	return stream, offsets, payloads
}

func TestReaders(t *testing.T) {
	stream, offsets, payloads := shard(sizes)
	slow := map[string]func(io.Reader) io.Reader{
		"plain":        func(r io.Reader) io.Reader { return r },
		"one byte":     iotest.OneByteReader,
		"half":         iotest.HalfReader,
		"data and err": iotest.DataErrReader,
		"empty reads":  func(r io.Reader) io.Reader { return &stutter{r: r} },
	}
	for name, wrap := range slow {
		for _, buffer := range []int{0, 1, 64, 1000, 1 << 16} {
			r := tfrecord.NewReader(wrap(bytes.NewReader(stream)), &tfrecord.Options{BufferSize: buffer})
			i := 0
			for p, err := range r.Records() {
				if err != nil {
					t.Fatalf("%s, buffer of %d: %v", name, buffer, err)
				}
				if !bytes.Equal(p, payloads[i]) || r.Offset() != offsets[i] || r.Index() != int64(i) {
					t.Fatalf("%s, buffer of %d: record %d is wrong", name, buffer, i)
				}
				i++
			}
			if i != len(payloads) || r.End() != int64(len(stream)) {
				t.Errorf("%s, buffer of %d: %d records up to %d", name, buffer, i, r.End())
			}
		}
	}
}

// stutter gives nothing every other time.
type stutter struct {
	r    io.Reader
	turn bool
}

func (s *stutter) Read(p []byte) (int, error) {
	if s.turn = !s.turn; s.turn {
		return 0, nil
	}
	return s.r.Read(p)
}

func TestReadErrors(t *testing.T) {
	stream, _, _ := shard([]int{5, 5, 5})
	broken := errors.New("bad sector")
	after := func(n int, err error) func() io.Reader {
		return func() io.Reader { return io.MultiReader(bytes.NewReader(stream[:n]), iotest.ErrReader(err)) }
	}
	inside := format.Location{Offset: 30, Record: format.Unknown}
	for _, tt := range []struct {
		name  string
		open  func() io.Reader
		class string
		at    int64
		after int
	}{
		{"at once", after(0, broken), "io", 0, 0},
		{"inside a record", after(30, broken), "io", 21, 1},
		{"inside a header", after(50, broken), "io", 42, 2},
		{"between records", after(42, broken), "io", 42, 2},
		{"timeout", func() io.Reader { return iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(stream))) }, "io", 0, 0},
		{"no progress", func() io.Reader { return new(stuck) }, "io", 0, 0},
		{"cut short by the source", after(30, io.ErrUnexpectedEOF), "io", 21, 1},
		{"a limit of the source", after(30, format.Errorf(format.ErrLimit, inside, "bomb")), "limit", 30, 1},
	} {
		for _, mode := range []format.OnError{format.Stop, format.Skip, format.Resync} {
			r := tfrecord.NewReader(tt.open(), &tfrecord.Options{Shard: "s", OnError: mode})
			g := readAll(r)
			var e *format.Error
			if !errors.As(g.err, &e) || format.Class(g.err) != tt.class || e.Offset != tt.at || e.Shard != "s" || e.Record != int64(tt.after) {
				t.Errorf("%s, %s: error %v, want %s at %d", tt.name, mode, g.err, tt.class, tt.at)
			}
			if len(g.records) != tt.after {
				t.Errorf("%s, %s: %d records before the error, want %d", tt.name, mode, len(g.records), tt.after)
			}
			if _, again := r.Next(); again != g.err {
				t.Errorf("%s, %s: then %v, want the same error", tt.name, mode, again)
			}
		}
	}
	r := tfrecord.NewReader(io.MultiReader(bytes.NewReader(stream[:30]), iotest.ErrReader(context.Canceled)), nil)
	if g := readAll(r); g.err != context.Canceled || len(g.records) != 1 {
		t.Errorf("error %v after %d records, want the context's after 1", g.err, len(g.records))
	}
}

type stuck struct{ n int }

func (s *stuck) Read([]byte) (int, error) {
	if s.n++; s.n > 1000 {
		panic("the reader does not give up")
	}
	return 0, nil
}

// header returns a length with its checksum.
func header(n uint64) []byte {
	h := binary.LittleEndian.AppendUint64(nil, n)
	c := crc32.Checksum(h, crc32.MakeTable(crc32.Castagnoli))
	return binary.LittleEndian.AppendUint32(h, (c>>15|c<<17)+0xa282ead8)
}

func flip(b []byte, at ...int) []byte {
	b = bytes.Clone(b)
	for _, i := range at {
		b[i] ^= 0x10
	}
	return b
}

func cat(parts ...[]byte) []byte { return slices.Concat(parts...) }

// TestLosses gives a damage, what survives it under each policy, and what is
// reported lost. The records are of 5, 6, 7 and 8 bytes, at 0, 21, 43 and 66
// of 90.
func TestLosses(t *testing.T) {
	stream, _, _ := shard([]int{5, 6, 7, 8})
	type loss struct {
		offset, bytes, records int64
		class                  string
	}
	type want struct {
		records []int // numbers of the records read
		losses  []loss
		class   string // of the error
	}
	huge := header(1 << 40)
	for _, tt := range []struct {
		name   string
		in     []byte
		limits *format.Limits
		want   [3]want // Stop, Skip, Resync
	}{
		{"sound", stream, nil, [3]want{{records: []int{0, 1, 2, 3}}, {records: []int{0, 1, 2, 3}}, {records: []int{0, 1, 2, 3}}}},
		{"payload", flip(stream, 21+13), nil, [3]want{
			{[]int{0}, nil, "corrupt"},
			{[]int{0, 2, 3}, []loss{{21, 22, 1, "corrupt"}}, ""},
			{[]int{0, 2, 3}, []loss{{21, 22, 1, "corrupt"}}, ""}}},
		{"payload of the first", flip(stream, 13), nil, [3]want{
			{nil, nil, "corrupt"},
			{[]int{1, 2, 3}, []loss{{0, 21, 1, "corrupt"}}, ""},
			{[]int{1, 2, 3}, []loss{{0, 21, 1, "corrupt"}}, ""}}},
		{"payload of the last", flip(stream, 66+12), nil, [3]want{
			{[]int{0, 1, 2}, nil, "corrupt"},
			{[]int{0, 1, 2}, []loss{{66, 24, 1, "corrupt"}}, ""},
			{[]int{0, 1, 2}, []loss{{66, 24, 1, "corrupt"}}, ""}}},
		{"length", flip(stream, 21), nil, [3]want{
			{[]int{0}, nil, "corrupt"},
			{[]int{0}, nil, "corrupt"},
			{[]int{0, 2, 3}, []loss{{21, 22, 1, "corrupt"}}, ""}}},
		{"checksum of the length", flip(stream, 21+9), nil, [3]want{
			{[]int{0}, nil, "corrupt"},
			{[]int{0}, nil, "corrupt"},
			{[]int{0, 2, 3}, []loss{{21, 22, 1, "corrupt"}}, ""}}},
		{"two headers", flip(stream, 21, 43), nil, [3]want{
			{[]int{0}, nil, "corrupt"},
			{[]int{0}, nil, "corrupt"},
			{[]int{0, 3}, []loss{{21, 45, format.Unknown, "corrupt"}}, ""}}},
		{"length of the first", flip(stream, 0), nil, [3]want{
			{nil, nil, "corrupt"},
			{nil, nil, "corrupt"},
			{[]int{1, 2, 3}, []loss{{0, 21, 1, "corrupt"}}, ""}}},
		{"length of the last", flip(stream, 66), nil, [3]want{
			{[]int{0, 1, 2}, nil, "corrupt"},
			{[]int{0, 1, 2}, nil, "corrupt"},
			{[]int{0, 1, 2}, []loss{{66, 24, 1, "corrupt"}}, ""}}},
		{"cut in a payload", stream[:70+12], nil, [3]want{
			{[]int{0, 1, 2}, nil, "truncated"},
			{[]int{0, 1, 2}, []loss{{66, 16, 1, "truncated"}}, "truncated"},
			{[]int{0, 1, 2}, []loss{{66, 16, 1, "truncated"}}, ""}}},
		{"cut in a header", stream[:70], nil, [3]want{
			{[]int{0, 1, 2}, nil, "truncated"},
			{[]int{0, 1, 2}, []loss{{66, 4, 1, "truncated"}}, "truncated"},
			{[]int{0, 1, 2}, []loss{{66, 4, 1, "truncated"}}, ""}}},
		{"bytes missing in a payload", cat(stream[:34], stream[36:]), nil, [3]want{
			{[]int{0}, nil, "corrupt"},
			{[]int{0}, []loss{{21, 22, 1, "corrupt"}}, "corrupt"},
			{[]int{0, 2, 3}, []loss{{21, 20, format.Unknown, "corrupt"}}, ""}}},
		{"bytes missing before the last", cat(stream[:56], stream[66:]), nil, [3]want{
			{[]int{0, 1}, nil, "corrupt"},
			{[]int{0, 1}, []loss{{43, 23, 1, "corrupt"}}, "corrupt"},
			{[]int{0, 1, 3}, []loss{{43, 13, format.Unknown, "corrupt"}}, ""}}},
		{"too long", cat(stream[:21], huge, stream[21:]), nil, [3]want{
			{[]int{0}, nil, "limit"},
			{[]int{0}, []loss{{21, 81, 1, "limit"}}, "limit"},
			{[]int{0, 1, 2, 3}, []loss{{21, 12, format.Unknown, "limit"}}, ""}}},
		{"too long at first", cat(huge, stream), nil, [3]want{
			{nil, nil, "limit"},
			{nil, []loss{{0, 102, 1, "limit"}}, "limit"},
			{[]int{0, 1, 2, 3}, []loss{{0, 12, format.Unknown, "limit"}}, ""}}},
		{"2^64-1", cat(stream[:21], header(1<<64-1), stream[21:]), nil, [3]want{
			{[]int{0}, nil, "limit"},
			{[]int{0}, nil, "limit"},
			{[]int{0, 1, 2, 3}, []loss{{21, 12, format.Unknown, "limit"}}, ""}}},
		{"over a limit that is set", stream, &format.Limits{Record: 6}, [3]want{
			{[]int{0, 1}, nil, "limit"},
			{[]int{0, 1}, []loss{{43, 23, 1, "limit"}, {66, 24, 1, "limit"}}, ""},
			{[]int{0, 1}, []loss{{43, 47, format.Unknown, "limit"}}, ""}}},
		{"past the end, then records", cat(stream[:21], header(1000), stream[21:]), nil, [3]want{
			{[]int{0}, nil, "truncated"},
			{[]int{0}, []loss{{21, 81, 1, "truncated"}}, "truncated"},
			{[]int{0, 1, 2, 3}, []loss{{21, 12, format.Unknown, "truncated"}}, ""}}},
		{"no record at all", bytes.Repeat([]byte("no records "), 100), nil, [3]want{
			{nil, nil, "wrong-format"}, {nil, nil, "wrong-format"}, {nil, []loss{{0, 1100, format.Unknown, "corrupt"}}, "wrong-format"}}},
		{"an image", cat([]byte("\xff\xd8\xff\xe0 not a record, but one follows"), stream), nil, [3]want{
			{nil, nil, "wrong-format"}, {nil, nil, "wrong-format"}, {nil, nil, "wrong-format"}}},
	} {
		for mode, want := range tt.want {
			for _, buffer := range []int{0, 1} {
				var losses []loss
				r := tfrecord.NewReader(iotest.HalfReader(bytes.NewReader(tt.in)), &tfrecord.Options{
					BufferSize: buffer, OnError: format.OnError(mode), Limits: tt.limits,
					OnLoss: func(l format.Loss) {
						losses = append(losses, loss{l.Offset, l.Bytes, l.Records, format.Class(l.Err)})
					},
				})
				var records []int
				var err error
				for p, e := range r.Records() {
					if err = e; err == nil {
						records = append(records, len(p)-5)
					}
				}
				if !slices.Equal(records, want.records) || !slices.Equal(losses, want.losses) || format.Class(err) != want.class {
					t.Errorf("%s, %s: read %v, lost %v, error %v\nwant %v, %v, %s", tt.name, format.OnError(mode), records, losses, err, want.records, want.losses, want.class)
				}
			}
		}
	}
}

// TestLossOfABrokenSource ends a stream in the error of a decompressor.
func TestLossOfABrokenSource(t *testing.T) {
	stream, _, _ := shard([]int{5, 6})
	cause := format.Errorf(format.ErrCorrupt, format.Location{Offset: 21, Record: -1}, "gzip trailer")
	for _, end := range []int{21, 30, 40} {
		var losses []format.Loss
		r := tfrecord.NewReader(io.MultiReader(bytes.NewReader(stream[:end]), iotest.ErrReader(cause)),
			&tfrecord.Options{OnError: format.Resync, OnLoss: func(l format.Loss) { losses = append(losses, l) }})
		g := readAll(r)
		if len(g.records) != 1 || g.err != nil || len(losses) != 1 || losses[0].Offset != 21 || losses[0].Bytes != int64(end-21) ||
			!errors.Is(losses[0].Err, format.ErrCorrupt) || !strings.Contains(losses[0].Err.Error(), "gzip trailer") {
			t.Errorf("cut at %d: %d records, error %v, losses %+v", end, len(g.records), g.err, losses)
		}
	}
}

// TestMemory claims large records: memory follows the bytes that arrive.
func TestMemory(t *testing.T) {
	claim := cat(header(900<<20), make([]byte, 3<<20))
	for _, mode := range []format.OnError{format.Stop, format.Skip, format.Resync} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		readAll(tfrecord.NewReader(bytes.NewReader(claim), &tfrecord.Options{OnError: mode}))
		runtime.ReadMemStats(&after)
		if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 16 {
			t.Errorf("%s: allocated %d MiB for 3 MiB", mode, mb)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := tfrecord.ReadAt(bytes.NewReader(claim), 0, nil, nil)
	runtime.ReadMemStats(&after)
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 16 || !errors.Is(err, format.ErrTruncated) {
		t.Errorf("ReadAt allocated %d MiB for 3 MiB, and gave %v", mb, err)
	}
}

func TestNoAllocations(t *testing.T) {
	stream, offsets, _ := shard(sizes)
	src := bytes.NewReader(stream)
	r := tfrecord.NewReader(src, nil)
	if n := testing.AllocsPerRun(20, func() {
		src.Reset(stream)
		r.Reset(src, nil)
		for {
			if _, err := r.Next(); err == io.EOF {
				return
			}
		}
	}); n != 0 {
		t.Errorf("a pass of the Reader allocates %v times", n)
	}
	buf := make([]byte, 0, 1<<19)
	if n := testing.AllocsPerRun(20, func() {
		for _, off := range offsets {
			if _, err := tfrecord.ReadAt(src, off, buf, nil); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 0 {
		t.Errorf("ReadAt allocates %v times", n)
	}
	w := tfrecord.NewWriter(io.Discard)
	if n := testing.AllocsPerRun(20, func() {
		for _, size := range sizes {
			if err := w.Write(buf[:size]); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 0 {
		t.Errorf("the Writer allocates %v times", n)
	}
}
