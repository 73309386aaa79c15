package loader

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"shardtool/augment"
	"shardtool/format"
	"shardtool/reader/order"
	"shardtool/reader/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a source of samples in memory.
type memory struct {
	shards  [][]format.Sample
	fail    map[int]error // error at the end of a shard
	refuse  map[int]error // error of opening it
	delay   time.Duration // of each sample
	counted bool
	opened  atomic.Int64
	reads   atomic.Int64
	closed  atomic.Int64
}

func (m *memory) names() []string {
	names := make([]string, len(m.shards))
	for i := range names {
		names[i] = fmt.Sprintf("memory-%03d", i)
	}
	return names
}

// counts are told of counted sources only.
func (m *memory) parts() []order.Part {
	p := order.Part{Weight: 1}
	for i, name := range m.names() {
		s := order.Entry{Name: name, Bytes: order.Unknown, Samples: order.Unknown}
		if m.counted {
			s.Samples = int64(len(m.shards[i]))
		}
		p.Shards = append(p.Shards, s)
	}
	return []order.Part{p}
}

func (m *memory) holds() int64                                  { return 0 }
func (m *memory) far(int) bool                                  { return false }
func (m *memory) limit(int) int64                               { return 1 << 30 }
func (m *memory) places(context.Context, int) (places, error)   { return nil, nil }
func (m *memory) read(context.Context, int, []store.Span) error { panic("no places are known") }
func (m *memory) parser() parser                                { return nil }
func (m *memory) findPlaces(context.Context, int)               {}
func (m *memory) close() error                                  { return nil }
func (m *memory) sample(_ context.Context, shard int, i int64) (*format.Sample, error) {
	return m.shards[shard][i].Clone(), nil
}

func (m *memory) run(ctx context.Context, i int, from, to int64) (samples, error) {
	m.opened.Add(1)
	if err := m.refuse[i]; err != nil {
		m.closed.Add(1)
		return nil, err
	}
	left := m.shards[i]
	if to != order.Unknown {
		left = left[:to]
	}
	return &memoryShard{m: m, ctx: ctx, left: left[from:], fail: m.fail[i]}, nil
}

type memoryShard struct {
	m    *memory
	ctx  context.Context
	left []format.Sample
	fail error
	lent format.Sample
	data []byte
}

var spoil = bytes.Repeat([]byte{0xAA}, 64<<10)

// Next lends a sample, and spoils what it lent before.
func (s *memoryShard) Next() (*format.Sample, error) {
	if s.m.delay > 0 {
		select {
		case <-time.After(s.m.delay):
		case <-s.ctx.Done():
		}
	}
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	for at := 0; at < len(s.data); {
		at += copy(s.data[at:], spoil)
	}
	if len(s.left) == 0 {
		if s.fail != nil {
			return nil, s.fail
		}
		return nil, io.EOF
	}
	s.m.reads.Add(1)
	from := &s.left[0]
	s.left = s.left[1:]
	fields := s.lent.Fields[:0]
	s.lent = *from
	s.data = append(s.data[:0], from.Key...)
	s.lent.Key = s.data
	for _, f := range from.Fields {
		at := len(s.data)
		s.data = append(s.data, f.Data...)
		f.Data = s.data[at:]
		fields = append(fields, f)
	}
	s.lent.Fields = fields
	return &s.lent, nil
}

func (s *memoryShard) Resume() bool { return false }

func (s *memoryShard) Close() error {
	s.m.closed.Add(1)
	return nil
}

// numbers makes shards whose samples have a label: 1000*shard + index.
func numbers(counts ...int) *memory {
	m := &memory{}
	for shard, n := range counts {
		samples := []format.Sample{} // not nil
		for i := range n {
			label := 1000*shard + i
			samples = append(samples, format.Sample{
				Shard: fmt.Sprintf("memory-%03d", shard), Index: int64(i), Offset: int64(i) * 1024,
				Key:    fmt.Appendf(nil, "k%06d", label),
				Fields: []format.Field{{Name: "txt", Data: []byte("unused")}, {Name: "cls", Data: fmt.Appendf(nil, "%d\n", label)}},
			})
		}
		m.shards = append(m.shards, samples)
	}
	return m
}

// pictures adds a picture to each sample of numbers: one flat color that says
// which.
func pictures(t testing.TB, counts ...int) *memory {
	m := numbers(counts...)
	for shard := range m.shards {
		for i := range m.shards[shard] {
			s := &m.shards[shard][i]
			s.Fields = append(s.Fields, format.Field{Name: "PNG", Data: flat(t, uint8(10*shard+i))})
		}
	}
	return m
}

func flat(t testing.TB, v uint8) []byte {
	img := image.NewGray(image.Rect(0, 0, 12, 9))
	for y := range 9 {
		for x := range 12 {
			img.SetGray(x, y, color.Gray{Y: v})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// red returns the value of channel 0 that a flat picture becomes, by hand.
func red(v uint8) float32 { return float32((float64(v)/255 - 0.485) / 0.229) }

// counting is a decoder that counts pictures and the pixels asked for.
type counting struct {
	augment.Decoder
	decodes, pixels *atomic.Int64
}

func (c counting) Decode(px *augment.Pixels, data []byte, r image.Rectangle) error {
	c.decodes.Add(1)
	c.pixels.Add(int64(r.Dx()) * int64(r.Dy()))
	return c.Decoder.Decode(px, data, r)
}

func countingTransform(size int, decodes, pixels *atomic.Int64) *augment.Transform {
	return augment.ImageNetTrain(size).WithDecoder(func(l *format.Limits) augment.Decoder {
		return counting{augment.Standard(l), decodes, pixels}
	})
}

// result is what a run delivered, copied.
type result struct {
	sizes  []int
	refs   []order.Ref
	labels []int64 // of the last column
	keys   []string
	valid  []bool
	floats [][]float32 // of the first column, by sample, where it is float32
	err    error
	stats  Stats
	loader *Loader
}

// load runs a loader to its end, and checks what must hold for every run.
func load(t testing.TB, src source, o Options) (r result) {
	t.Helper()
	l, err := newLoader(t.Context(), src, &o)
	if err != nil {
		r.err = err
		return r
	}
	r.loader = l
	step := int64(0)
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			r.err = err
			continue
		}
		if r.err != nil {
			t.Error("a batch after the error")
		}
		if b.Step != step {
			t.Errorf("step %d, want %d", b.Step, step)
		}
		step++
		r.add(b, o)
		b.Release()
		b.Release()
	}
	r.stats = l.Stats()
	checkEnd(t, l)
	return r
}

func (r *result) add(b *Batch, o Options) {
	r.sizes = append(r.sizes, b.Len())
	r.refs = append(r.refs, b.Refs...)
	r.valid = append(r.valid, b.Valid...)
	last := len(o.Columns) - 1
	r.labels = append(r.labels, b.Int64(last)...)
	for i := range b.Len() {
		r.keys = append(r.keys, string(b.Key(i)))
		if last > 0 {
			r.floats = append(r.floats, append([]float32(nil), b.Column(0).At(i).Float32()...))
		}
	}
}

// checkEnd checks that a loader whose batches were all released, or are held by
// nobody, gave everything back.
func checkEnd(t rapid.TB, l *Loader) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if used := l.chunks.gate.used; used != 0 {
		t.Errorf("%d bytes of chunks are still in use", used)
	}
	if m, ok := l.src.(*memory); ok && m.opened.Load() != m.closed.Load() {
		t.Errorf("%d shards opened, %d closed", m.opened.Load(), m.closed.Load())
	}
	leaks := append(l.chunks.memory.Leaks(), l.pages.memory.Leaks()...)
	if k := l.keeper; k != nil {
		if c := k.cache.Stats(); c.Bytes != 0 {
			t.Errorf("%d bytes are still kept", c.Bytes)
		}
		leaks = append(leaks, k.memory.Leaks()...)
	}
	for _, leak := range leaks {
		t.Error("leak:", leak)
	}
}
