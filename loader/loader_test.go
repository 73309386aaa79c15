package loader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"shardtool/augment"
	"shardtool/echo"
	"shardtool/format"
	"shardtool/reader/order"
	"shardtool/tensor"
)

func TestBatchesByHand(t *testing.T) {
	for _, tt := range []struct {
		name   string
		o      Options
		sizes  []int
		labels []int64
	}{
		{"keep", Options{}, []int{2, 2, 1}, []int64{0, 1, 2000, 2001, 2002}},
		{"drop", Options{Tail: order.TailDrop}, []int{2, 2}, []int64{0, 1, 2000, 2001}},
		{"drop twice", Options{Tail: order.TailDrop, Epochs: 2}, []int{2, 2, 2, 2}, []int64{0, 1, 2000, 2001, 0, 1, 2000, 2001}},
		{"sample echo", Options{Echo: echo.Options{Factor: 2}}, []int{2, 2, 2, 2, 2}, []int64{0, 0, 1, 1, 2000, 2000, 2001, 2001, 2002, 2002}},
		{"sample echo 3", Options{Tail: order.TailDrop, Echo: echo.Options{Factor: 3}}, []int{2, 2, 2, 2, 2, 2, 2},
			[]int64{0, 0, 0, 1, 1, 1, 2000, 2000, 2000, 2001, 2001, 2001, 2002, 2002}},
		{"batch echo", Options{Echo: echo.Options{Unit: echo.Batch, Factor: 2}}, []int{2, 2, 2, 2, 1, 1},
			[]int64{0, 1, 0, 1, 2000, 2001, 2000, 2001, 2002, 2002}},
	} {
		tt.o.Columns, tt.o.GlobalBatch = []Column{Int64("cls")}, 2
		r := load(t, numbers(2, 0, 3, 0), tt.o)
		if r.err != nil || !slices.Equal(r.sizes, tt.sizes) || !slices.Equal(r.labels, tt.labels) {
			t.Errorf("%s: sizes %v, labels %v, %v", tt.name, r.sizes, r.labels, r.err)
		}
		for i, key := range r.keys {
			if key != fmt.Sprintf("k%06d", r.labels[i]) {
				t.Errorf("%s: key %q of label %d", tt.name, key, r.labels[i])
			}
			if ref := r.refs[i]; int64(ref.Shard)*1000+ref.Index != r.labels[i] || !r.valid[i] {
				t.Errorf("%s: ref %+v of label %d", tt.name, ref, r.labels[i])
			}
		}
		if s := r.stats; s.Emitted != int64(len(tt.labels)) || s.Batches != int64(len(tt.sizes)) || s.Held != 0 || s.Holes != 0 {
			t.Errorf("%s: %+v", tt.name, s)
		}
	}
}

// With bytes kept, each emission is decoded for itself, and nothing is fetched
// twice; with the batch kept, each sample is decoded once.
func TestDecodesAreCounted(t *testing.T) {
	const n, e, epochs = 17, 3, 2
	for _, tt := range []struct {
		unit    echo.Unit
		keep    echo.Level
		factor  float64
		decodes int64
		emitted int64
	}{
		{echo.Sample, echo.Bytes, 1, n * epochs, n * epochs},
		{echo.Sample, echo.Decoded, 1, n * epochs, n * epochs},
		{echo.Sample, echo.Bytes, e, n * epochs * e, n * epochs * e},
		{echo.Sample, echo.Decoded, e, n * epochs, n * epochs * e},
		{echo.Sample, echo.Augmented, e, n * epochs, n * epochs * e},
		{echo.Batch, echo.Batched, e, n * epochs, n * epochs * e},
	} {
		var decodes, pixels atomic.Int64
		src := pictures(t, 5, 5, 7)
		r := load(t, src, Options{
			Columns:     []Column{Image("jpg;png", countingTransform(4, &decodes, &pixels)), Int64("cls")},
			GlobalBatch: 4, Epochs: epochs, Workers: 3, Echo: echo.Options{Unit: tt.unit, Keep: tt.keep, Factor: tt.factor},
		})
		s := r.stats
		if r.err != nil || decodes.Load() != tt.decodes || s.Work.Images != tt.decodes || s.Work.Pixels != pixels.Load() || pixels.Load() < tt.decodes {
			t.Errorf("%v %v %v: %d decodes, %+v, %v; want %d", tt.unit, tt.keep, tt.factor, decodes.Load(), s.Work, r.err, tt.decodes)
		}
		if s.Fresh != n*epochs || s.Emitted != tt.emitted || src.reads.Load() != n*epochs || src.opened.Load() != 3*epochs {
			t.Errorf("%v %v: fresh %d, emitted %d, %d samples read from %d shards", tt.unit, tt.factor, s.Fresh, s.Emitted, src.reads.Load(), src.opened.Load())
		}
		var bytes int64
		for _, shard := range src.shards {
			for i := range shard {
				bytes += shard[i].Bytes()
			}
		}
		if s.Work.Bytes != bytes*epochs {
			t.Errorf("%v %v: %d bytes, want %d", tt.unit, tt.factor, s.Work.Bytes, bytes*epochs)
		}
		for i, f := range r.floats {
			shard, index := r.labels[i]/1000, r.labels[i]%1000
			if want := red(uint8(10*shard + index)); math.Abs(float64(f[0]-want)) > 2e-4 || len(f) != 3*4*4 {
				t.Fatalf("sample %d has %v, want %v", r.labels[i], f[0], want)
			}
		}
	}
}

// Any shards, any sizes: what comes out is what the order alone says.
func TestDeliversWhatTheOrderSays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		counts := rapid.SliceOfN(rapid.IntRange(0, 12), 1, 5).Draw(rt, "counts")
		src := numbers(counts...)
		for shard := range src.shards {
			for i := range src.shards[shard] {
				size := rapid.SampledFrom([]int{0, 0, 10, 100_000, 600_000, chunkBytes + 1}).Draw(rt, "size")
				src.shards[shard][i].Fields = append(src.shards[shard][i].Fields, format.Field{Name: "pad", Data: zeros[:size]})
			}
		}
		o := Options{
			Columns:     []Column{size("pad"), Int64("cls")},
			GlobalBatch: rapid.IntRange(1, 9).Draw(rt, "batch"),
			Epochs:      rapid.IntRange(1, 2).Draw(rt, "epochs"),
			Tail:        rapid.SampledFrom([]order.Tail{order.TailKeep, order.TailDrop}).Draw(rt, "tail"),
			Workers:     rapid.IntRange(1, 4).Draw(rt, "workers"),
			Fetchers:    rapid.IntRange(1, 3).Draw(rt, "fetchers"),
			Prefetch:    rapid.IntRange(1, 3).Draw(rt, "prefetch"),
			Echo:        echo.Options{Unit: rapid.SampledFrom([]echo.Unit{echo.Sample, echo.Batch}).Draw(rt, "unit"), Factor: rapid.SampledFrom([]float64{1, 1.5, 2, 3}).Draw(rt, "e")},
		}
		if rapid.Bool().Draw(rt, "tight") {
			o.Hold = 1
			o.MemoryBytes = int64(o.Prefetch+1)*2*64*int64((o.GlobalBatch+7)/8) + int64(o.Fetchers)*chunkBytes
		}
		r := load(t, src, o)

		factor, _ := order.NewFactor(o.Echo.Factor)
		parts := src.parts()
		m, err := order.New(order.Plan{Parts: parts, Epochs: o.Epochs, Batch: o.GlobalBatch, Tail: o.Tail, Unit: o.Echo.Unit, Factor: factor}, 0, 1)
		if err != nil {
			rt.Fatal(err)
		}
		var want []order.Ref
		for {
			refs, ok, err := m.Step(nil, func(_, _, shard int32, i int64) (bool, error) { return i < int64(counts[shard]), nil })
			if err != nil {
				if format.Class(err) != format.Class(r.err) {
					rt.Fatalf("%v, want %v", r.err, err)
				}
				break
			}
			if !ok {
				if r.err != nil {
					rt.Fatal(r.err)
				}
				break
			}
			want = append(want, refs...)
		}
		if !slices.Equal(r.refs, want) {
			rt.Fatalf("\n got %v\nwant %v", r.refs, want)
		}
		for i, ref := range want {
			if r.labels[i] != int64(ref.Shard)*1000+ref.Index {
				rt.Fatalf("label %d at %v", r.labels[i], ref)
			}
			if got, want := int(r.floats[i][0]), len(src.shards[ref.Shard][ref.Index].Fields[2].Data); got != want {
				rt.Fatalf("%d bytes at %v, want %d", got, ref, want)
			}
		}
	})
}

var zeros = make([]byte, chunkBytes+1)

// size is a column of the number of bytes, all of which must be zero.
func size(field string) Column {
	return Func("size of "+field, tensor.Float32, nil, func(slot tensor.Dense, s *format.Sample, _ augment.Draws) error {
		data := s.Field(field).Data
		slot.Float32()[0] = float32(len(data))
		if !bytes.Equal(data, zeros[:len(data)]) {
			return format.Errorf(format.ErrCorrupt, format.Nowhere, "the data changed")
		}
		return nil
	})
}

func TestInt64Column(t *testing.T) {
	// tf.train.Int64List, packed: field 1 of wire type 2, then varints.
	for _, tt := range []struct {
		kind format.Kind
		data []byte
		want int64
		err  error
	}{
		{format.Bytes, []byte("7"), 7, nil},
		{format.Bytes, []byte(" -12\r\n"), -12, nil},
		{format.Bytes, []byte("9223372036854775807"), math.MaxInt64, nil},
		{format.Bytes, []byte("9223372036854775808"), 0, format.ErrSchema},
		{format.Bytes, nil, 0, format.ErrSchema},
		{format.Bytes, []byte("cat"), 0, format.ErrSchema},
		{format.Bytes, []byte("1.5"), 0, format.ErrSchema},
		{format.Int64List, []byte("\x0a\x0a\xfd\xff\xff\xff\xff\xff\xff\xff\xff\x01"), -3, nil},
		{format.Int64List, nil, 0, format.ErrSchema},
		{format.Int64List, []byte("\x0a\x02\x01\x02"), 0, format.ErrSchema},
		{format.Int64List, []byte{0x08}, 0, format.ErrCorrupt},
		{format.FloatList, nil, 0, format.ErrSchema},
		{format.NoKind, nil, 0, format.ErrMissing},
	} {
		src := numbers(1)
		src.shards[0][0].Fields[1].Kind, src.shards[0][0].Fields[1].Data = tt.kind, tt.data
		r := load(t, src, Options{Columns: []Column{Int64("CLS")}})
		if !errors.Is(r.err, tt.err) || r.err != nil && tt.err == nil || tt.err == nil && r.labels[0] != tt.want {
			t.Errorf("%v %q: %v, %v", tt.kind, tt.data, r.labels, r.err)
		}
		if r.err != nil && !strings.HasPrefix(r.err.Error(), `memory-000 @ 0 (sample 0 "k000000", field "cls"): `) {
			t.Errorf("%v %q: %v does not say where", tt.kind, tt.data, r.err)
		}
	}
}

func TestErrorsEndTheBatches(t *testing.T) {
	boom := format.Errorf(format.ErrCorrupt, format.Location{Shard: "memory-001", Offset: 5, Record: 3}, "boom")
	gone := format.Errorf(format.ErrNotFound, format.Location{Shard: "memory-001", Offset: -1, Record: -1}, "gone")
	withoutLabel := numbers(5, 5)
	withoutLabel.shards[1][1].Fields = withoutLabel.shards[1][1].Fields[:1]
	for _, tt := range []struct {
		name   string
		src    *memory
		want   string
		labels []int64
	}{
		{"a shard's fault", &memory{shards: numbers(5, 3, 5).shards, fail: map[int]error{1: boom}}, boom.Error(),
			[]int64{0, 1, 2, 3, 4, 1000, 1001, 1002}},
		{"a shard that is not there", &memory{shards: numbers(5, 3, 5).shards, refuse: map[int]error{1: gone}}, gone.Error(),
			[]int64{0, 1, 2, 3}},
		{"a field that is not there", withoutLabel, `memory-001 @ 1024 (sample 1 "k001001", field "cls"): missing: the sample has txt`,
			[]int64{0, 1, 2, 3}},
		{"no samples", numbers(0, 0), "missing: no samples in 2 shards", nil},
	} {
		for _, workers := range []int{1, 4} {
			r := load(t, tt.src, Options{Columns: []Column{Int64("cls")}, GlobalBatch: 4, Epochs: order.Endless, Workers: workers})
			if r.err == nil || r.err.Error() != tt.want {
				t.Errorf("%s: %v, want %s", tt.name, r.err, tt.want)
			}
			if !slices.Equal(r.labels, tt.labels) {
				t.Errorf("%s: labels %v", tt.name, r.labels)
			}
		}
	}
}

// Bad pictures at places 0, 1, 4 and 7 of a first batch of 8: 0 and 1 take the
// nearest later, which is 2; 4 takes 3; 7 takes 6. The last batch is good.
func TestHoles(t *testing.T) {
	src := pictures(t, 12)
	for _, i := range []int{0, 1, 4, 7} {
		f := &src.shards[0][i].Fields[2]
		f.Data = f.Data[:len(f.Data)-20]
	}
	var decodes, pixels atomic.Int64
	run := func(skip int64, workers int, e float64) result {
		return load(t, src, Options{
			Columns:     []Column{Image("png", countingTransform(4, &decodes, &pixels)), Int64("cls")},
			GlobalBatch: 8, Workers: workers, OnBad: OnBad{Skip: skip}, Echo: echo.Options{Unit: echo.Batch, Factor: e},
		})
	}
	for _, workers := range []int{1, 8} {
		r := run(4, workers, 1)
		from := []int64{2, 2, 2, 3, 3, 5, 6, 6, 8, 9, 10, 11}
		if r.err != nil || !slices.Equal(r.labels, from) {
			t.Fatalf("labels %v, %v", r.labels, r.err)
		}
		for i, f := range r.floats {
			bad := i == 0 || i == 1 || i == 4 || i == 7
			if r.valid[i] == bad || r.keys[i] != fmt.Sprintf("k%06d", i) || math.Abs(float64(f[0]-red(uint8(from[i])))) > 1e-5 {
				t.Errorf("place %d: valid %v, key %s, %v", i, r.valid[i], r.keys[i], f[0])
			}
		}
		s := r.stats
		if s.Holes != 4 || len(s.Bad) != 1 || s.Bad["truncated"]+s.Bad["corrupt"] != 4 || s.Emitted != 12 || len(r.loader.Quarantine()) != 4 {
			t.Errorf("%+v", s)
		}
	}
	if r := run(-1, 3, 2); r.err != nil || r.stats.Holes != 8 || r.stats.Bad["truncated"]+r.stats.Bad["corrupt"] != 4 || len(r.labels) != 24 {
		t.Errorf("echoed: %+v, %v", r.stats, r.err)
	}
	if r := run(3, 2, 1); r.err == nil || !strings.Contains(r.err.Error(), `sample 7 "k000007"`) || !strings.Contains(r.err.Error(), "bad sample 4, and 3 may be skipped") {
		t.Errorf("over budget: %v", r.err)
	}
	if r := run(0, 2, 1); r.err == nil || !strings.Contains(r.err.Error(), `sample 0 "k000000", field "PNG"`) || len(r.labels) != 0 {
		t.Errorf("no budget: %v", r.err)
	}
}

func TestABatchWithNothingGoodIsAnError(t *testing.T) {
	src := numbers(6)
	for i := 4; i < 6; i++ {
		src.shards[0][i].Fields[1].Data = []byte("x")
	}
	r := load(t, src, Options{Columns: []Column{Int64("cls")}, GlobalBatch: 4, OnBad: OnBad{Skip: -1}})
	if !errors.Is(r.err, format.ErrSchema) || !strings.Contains(r.err.Error(), "no sample of a batch of 2 is good") || !slices.Equal(r.labels, []int64{0, 1, 2, 3}) {
		t.Errorf("%v, %v", r.labels, r.err)
	}
}

func TestHoldingTooManyIsAnError(t *testing.T) {
	l, err := newLoader(context.Background(), numbers(100), &Options{Columns: []Column{Int64("cls")}, GlobalBatch: 2, Hold: 3})
	if err != nil {
		t.Fatal(err)
	}
	var held []*Batch
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			if !errors.Is(err, format.ErrUsage) || len(held) != 3 {
				t.Errorf("%v after %d batches", err, len(held))
			}
			break
		}
		held = append(held, b)
	}
	for i, b := range held { // what is held stays good
		if b.Int64(0)[1] != int64(2*i+1) {
			t.Errorf("batch %d has %v", i, b.Int64(0))
		}
		b.Release()
	}
	checkEnd(t, l)
}

func TestEndsEarly(t *testing.T) {
	endless := func(t *testing.T) *Loader {
		l, err := newLoader(context.Background(), numbers(7, 7), &Options{Columns: []Column{Int64("cls")}, GlobalBatch: 3, Epochs: order.Endless})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	// ranges over some batches, does something, and returns the error that follows
	after := func(ctx context.Context, l *Loader, n int, do func()) (last error) {
		for b, err := range l.Batches(ctx) {
			if err != nil {
				return err
			}
			b.Release()
			if n--; n == 0 {
				do()
			}
		}
		return nil
	}
	t.Run("context", func(t *testing.T) {
		l := endless(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		if err := after(ctx, l, 5, func() { cancel(errors.New("a cause")) }); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		checkEnd(t, l)
	})
	t.Run("context before", func(t *testing.T) {
		l := endless(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := after(ctx, l, 5, func() {}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		checkEnd(t, l)
	})
	t.Run("close within", func(t *testing.T) {
		l := endless(t)
		if err := after(t.Context(), l, 5, func() { l.Close() }); !errors.Is(err, format.ErrUsage) {
			t.Error(err)
		}
		checkEnd(t, l)
	})
	t.Run("close from elsewhere", func(t *testing.T) {
		l := endless(t)
		if err := after(t.Context(), l, 5, func() { go l.Close() }); !errors.Is(err, format.ErrUsage) {
			t.Error(err)
		}
		checkEnd(t, l)
	})
	t.Run("break, then again", func(t *testing.T) {
		l := endless(t)
		for b := range l.Batches(t.Context()) {
			b.Release()
			break
		}
		if err := after(t.Context(), l, 1, func() {}); !errors.Is(err, format.ErrUsage) {
			t.Error(err)
		}
		checkEnd(t, l)
	})
	t.Run("close before", func(t *testing.T) {
		l := endless(t)
		l.Close()
		l.Close()
		if err := after(t.Context(), l, 1, func() {}); !errors.Is(err, format.ErrUsage) {
			t.Error(err)
		}
	})
	t.Run("panic", func(t *testing.T) {
		l := endless(t)
		func() {
			defer func() { _ = recover() }()
			_ = after(t.Context(), l, 5, func() { panic("of the trainer") })
		}()
		checkEnd(t, l)
	})
	t.Run("many times", func(t *testing.T) {
		for n := range 100 {
			l := endless(t)
			_ = after(t.Context(), l, n%7+1, func() { l.Close() })
			checkEnd(t, l)
		}
	})
}

// A worker that is still busy with a batch when loading is stopped writes to
// memory that is still the batch's.
func TestStopWhileABatchIsFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(90*time.Minute, cancel)
		src := numbers(10)
		for i := range src.shards[0] { // a task each, so that some are done, some begun and some not
			s := &src.shards[0][i]
			s.Fields = append(s.Fields, format.Field{Name: "pad", Data: zeros[:taskBytes]})
		}
		l, err := newLoader(context.Background(), src, &Options{Columns: []Column{stubborn}, GlobalBatch: 6, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range l.Batches(ctx) {
			if b != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("%v, %v", b, err)
			}
		}
		checkEnd(t, l)
	})
}

// stubborn is a column that takes an hour for a sample.
var stubborn = Func("stubborn", tensor.Int64, nil, func(slot tensor.Dense, _ *format.Sample, _ augment.Draws) error {
	time.Sleep(time.Hour)
	slot.Int64()[0] = 1
	return nil
})

func TestUseAfterReleasePanics(t *testing.T) {
	l, _ := newLoader(context.Background(), numbers(3), &Options{Columns: []Column{Int64("cls")}})
	for b := range l.Batches(t.Context()) {
		b.Release()
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		b.Int64(0)
	}
}

func TestOptions(t *testing.T) {
	cls := []Column{Int64("cls")}
	big := []Column{Image("jpg", augment.ImageNetTrain(224))}
	for _, tt := range []struct {
		name string
		o    Options
		want error
		says string
	}{
		{"no columns", Options{}, format.ErrUsage, "no columns"},
		{"no kind", Options{Columns: []Column{{}}}, format.ErrUsage, "column 0"},
		{"no field", Options{Columns: []Column{Int64("")}}, format.ErrUsage, "column 0"},
		{"batch", Options{Columns: cls, GlobalBatch: -1}, format.ErrUsage, "-1"},
		{"huge batch", Options{Columns: big, GlobalBatch: 1 << 40}, format.ErrUsage, "a batch of 1099511627776"},
		{"workers", Options{Columns: cls, Workers: -1}, format.ErrUsage, "workers"},
		{"places", Options{Columns: cls, GlobalBatch: 1 << 20, MemoryBytes: 512 << 20}, format.ErrUsage, "their places in batches need 2113929216"}, // 7 x 2^20 x 288
		{"vast batch", Options{Columns: cls, GlobalBatch: 1 << 30}, format.ErrUsage, "that takes too much memory"},
		{"far ahead", Options{Columns: cls, GlobalBatch: 1 << 18, Prefetch: 1 << 16}, format.ErrUsage, "65536 made ahead"},
		{"epoch", Options{Columns: cls, Epoch: 1 << 31}, format.ErrUsage, "epoch 2147483648"},
		{"hold", Options{Columns: cls, Hold: -1}, format.ErrUsage, "hold"},
		{"epochs", Options{Columns: cls, Epochs: -2}, format.ErrUsage, "epochs"},
		{"shuffle", Options{Columns: cls, Shuffle: order.Global}, format.ErrUsage, "make an index"},
		{"tail", Options{Columns: cls, World: 2, Steps: 3, Tail: order.TailKeep}, format.ErrUsage, "one rank"},
		{"ranks", Options{Columns: cls, World: 2}, format.ErrUsage, "steps"},
		{"rank", Options{Columns: cls, Rank: 2, World: 2}, format.ErrUsage, "rank 2 of a world of 2"},
		{"echo", Options{Columns: cls, Echo: echo.Options{Factor: 0.5}}, format.ErrUsage, "factor"},
		{"decoded", Options{Columns: cls, Echo: echo.Options{Factor: 2, Unit: echo.Batch, Keep: echo.Decoded}}, format.ErrUsage, "cannot keep decoded"},
		// 7 batches of 64 x 3 x 224 x 224 float32, 38,535,168 bytes each, are 269,746,176.
		{"memory", Options{Columns: big, MemoryBytes: 256 << 20}, format.ErrUsage, "7 batches (3 made ahead, 4 held by the trainer) need 269746176"},
		{"enough memory", Options{Columns: big, MemoryBytes: 269746176 + 4<<20}, nil, ""},
	} {
		_, err := newLoader(context.Background(), numbers(3), &tt.o)
		if !errors.Is(err, tt.want) || err != nil && (tt.want == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if _, err := newLoader(context.Background(), numbers(), &Options{Columns: cls}); !errors.Is(err, format.ErrUsage) {
		t.Errorf("no shards: %v", err)
	}
	if _, err := newLoader(context.Background(), &stdin{memory: numbers(1)}, &Options{Columns: cls, Epochs: 2}); !errors.Is(err, format.ErrUsage) {
		t.Errorf("standard input twice: %v", err)
	}
}

type stdin struct{ *memory }

func (stdin) names() []string { return []string{"-"} }

func (s stdin) parts() []order.Part { return s.memory.parts() }

// The clock is fake: what the stages say can be computed.
func TestStagesSayWhereTheTimeGoes(t *testing.T) {
	const n, batch = 60, 4
	sum := func(s Stats, name string) (busy, in, out float64) {
		for _, st := range s.Stages {
			if st.Name == name {
				return st.Busy, st.WaitIn, st.WaitOut
			}
		}
		t.Fatal("no stage", name)
		return 0, 0, 0
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %v s, want %v", what, got, want)
		}
	}
	t.Run("slow trainer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l, _ := newLoader(context.Background(), numbers(n), &Options{Columns: []Column{Int64("cls")}, GlobalBatch: batch, Workers: 2, Prefetch: 2})
			for b := range l.Batches(t.Context()) {
				time.Sleep(10 * time.Millisecond)
				b.Release()
			}
			s := l.Stats()
			near("all", s.Seconds, 0.150) // 15 batches
			busy, in, out := sum(s, StageDeliver)
			near("busy of deliver", busy, 0)
			near("wait of deliver for batches", in, 0)
			near("wait of deliver for the trainer", out, 0.150)
			// Batch k is begun when batch k-2 is taken: the first two at 0 and
			// the third too, then one each 10 ms; the end is found at 130 ms.
			_, in, out = sum(s, StageOrder)
			near("wait of order for samples", in, 0)
			near("wait of order for room", out, 0.130)
			_, in, out = sum(s, StageDecode)
			near("wait of the workers for tasks", in, 0)
			near("wait of the workers for room", out, 2*0.130)
		})
	})
	t.Run("slow source", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			src := numbers(n)
			src.delay = 10 * time.Millisecond
			l, _ := newLoader(context.Background(), src, &Options{Columns: []Column{Int64("cls")}, GlobalBatch: batch, Workers: 2})
			for b := range l.Batches(t.Context()) {
				b.Release()
			}
			// 60 samples and the end; all fit into one chunk.
			s := l.Stats()
			near("all", s.Seconds, 0.610)
			busy, _, out := sum(s, StageFetch)
			near("busy of fetch", busy, 0.610)
			near("wait of fetch for room", out, 0)
			_, in, out := sum(s, StageDecode)
			near("wait of the workers for tasks", in, 2*0.610)
			near("wait of the workers for room", out, 0)
			_, in, _ = sum(s, StageDeliver)
			near("wait of deliver for batches", in, 0.610)
		})
	})
}

func TestAllocationsPerSample(t *testing.T) {
	const n, batch = 50_000, 100
	src := numbers(1000)
	l, err := newLoader(context.Background(), src, &Options{Columns: []Column{Int64("cls")}, GlobalBatch: batch, Epochs: n/1000 + 10})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	step := 0
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
		switch step++; step {
		case 100:
			runtime.ReadMemStats(&before)
		case 100 + n/batch:
			runtime.ReadMemStats(&after)
		}
	}
	// A batch allocates its header, references, marks, tensors and a channel;
	// a shard its reading.
	if per := float64(after.Mallocs-before.Mallocs) / n; per > 0.5 {
		t.Errorf("%v allocations a sample", per)
	}
}

func BenchmarkNumbers(b *testing.B) {
	src := numbers(1000)
	l, err := newLoader(context.Background(), src, &Options{Columns: []Column{Int64("cls")}, GlobalBatch: 256, Epochs: order.Endless})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	n := 0
	for batch, err := range l.Batches(b.Context()) {
		if err != nil {
			b.Fatal(err)
		}
		n += batch.Len()
		batch.Release()
		if !b.Loop() {
			break
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/sample")
}
