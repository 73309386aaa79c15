// Package loader is the pipeline that feeds training: shards in, batches of
// tensors out, in an order that follows from the plan and the data alone.
//
//	             chunks              refs            slots
//	fetch ×F ═══════════▶ order ───────────▶ work ×W ─────▶ deliver ─▶ trainer
//	read samples,     pick the next     decode, augment,   in order,
//	copy to chunks    batch's samples   write to the slot  fill holes
//
// Fetching waits for stores and decoding for cores, so they are pools of their
// own. A chunk is up to 1 MiB or 1024 samples of one shard, a larger sample is
// a chunk of its own; it is the unit of hand-over and of counting holders. A
// worker writes straight into the slot of the batch. Whatever the number of
// workers, the batches are equal bit for bit.
//
// Every stage is held back by the one behind it: batches by Prefetch, chunks
// by MemoryBytes. The chunk that the next batch waits for is always admitted,
// so that the bound cannot stop the pipeline.
//
// For now there is one rank, no shuffling and no resuming.
package loader

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"shardtool/echo"
	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/order"
	"shardtool/tensor"
)

// Options says what is loaded and how. Columns must be given; the zero value
// of the rest is good.
type Options struct {
	Columns     []Column
	GlobalBatch int           // samples of a batch; 0 stands for 64
	Seed        uint64        // of all random choices
	Epochs      int           // passes over the fresh samples; order.Endless for no end; 0 stands for 1
	Shuffle     order.Shuffle // only order.None for now: shuffle the shards once, by shardtool convert --shuffle
	Tail        order.Tail    // what becomes of a short last batch: kept (default) or dropped, for now
	Echo        echo.Options  // which unit is repeated how often

	OnBad       OnBad
	Workers     int   // that decode; 0 stands for GOMAXPROCS
	Fetchers    int   // shards read at a time; 0 stands for 4
	Prefetch    int   // batches made ahead of the trainer; 0 stands for 3
	Hold        int   // batches that the trainer may hold at a time; 0 stands for 4
	MemoryBytes int64 // bound of the memory for batches and chunks; 0: what batches need, and 256 MiB
	Limits      *format.Limits
}

// OnBad says what happens to a sample that cannot be decoded or lacks a field.
type OnBad struct {
	// Skip is how many of them may become holes of their batches; with one
	// more, or with 0, loading stops with the error. Negative: any number.
	Skip int64
}

// Loader is a pipeline. Close ends it.
type Loader struct {
	src  source
	o    Options
	plan order.Plan
	echo echo.Options

	shapes  []tensor.Shape // of a full batch, by column
	offsets []int          // of the columns in a batch's memory, then its size
	pages   pagePool
	chunks  chunkPool

	held atomic.Int64 // batches that the trainer holds

	mu   sync.Mutex
	used bool      // by Batches or by Close
	pipe *pipeline // once Batches has begun

	meters meters
	tally  tally
}

// New checks the options and returns a loader of the dataset. What makes no
// sense, or needs more than MemoryBytes, is ErrUsage; what is not built yet is
// ErrUnsupported. Nothing is opened before Batches.
func New(ctx context.Context, ds *reader.Dataset, o *Options) (*Loader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return newLoader(datasetSource{ds}, o)
}

func newLoader(src source, o *Options) (*Loader, error) {
	l := &Loader{src: src}
	if o != nil {
		l.o = *o
	}
	l.o.setDefaults()
	if err := l.check(); err != nil {
		return nil, err
	}
	if err := l.layOut(); err != nil {
		return nil, err
	}
	return l, nil
}

func (o *Options) setDefaults() {
	for _, d := range []struct {
		v *int
		d int
	}{
		{&o.GlobalBatch, 64}, {&o.Epochs, 1}, {&o.Workers, runtime.GOMAXPROCS(0)},
		{&o.Fetchers, 4}, {&o.Prefetch, 3}, {&o.Hold, 4},
	} {
		if *d.v == 0 {
			*d.v = d.d
		}
	}
}

func (l *Loader) check() error {
	o := &l.o
	const most = 1 << 16
	for _, n := range []struct {
		name string
		v    int
	}{{"workers", o.Workers}, {"fetchers", o.Fetchers}, {"prefetch", o.Prefetch}, {"hold", o.Hold}} {
		if n.v < 1 || n.v > most {
			return usage("%d %s: not within 1 to %d", n.v, n.name, most)
		}
	}
	if len(o.Columns) == 0 {
		return usage("no columns")
	}
	for i, c := range o.Columns {
		if c.kind == nil {
			return usage("column %d is of no kind: make it by Image or Int64", i)
		}
		if c.field == "" {
			return usage("column %d names no field", i)
		}
	}
	if o.Epochs != 1 && slices.Contains(l.src.names(), "-") {
		return usage("standard input can be read once: one epoch")
	}
	e, factor, err := o.Echo.Check()
	if err != nil {
		return err
	}
	l.echo = e
	l.plan = order.Plan{
		Shards: len(l.src.names()), Epochs: o.Epochs, Batch: o.GlobalBatch,
		Shuffle: o.Shuffle, Tail: o.Tail, Unit: e.Unit, Factor: factor,
	}
	_, err = order.New(l.plan)
	return err
}

// layOut places the columns in a batch's memory, each at an aligned offset,
// and sees that what is fixed fits the bound.
func (l *Loader) layOut() error {
	var total int64
	for _, c := range l.o.Columns {
		shape := append(tensor.Shape{l.o.GlobalBatch}, c.kind.shape()...)
		n, err := tensor.Bytes(c.kind.dtype(), shape)
		if err != nil || total+n > 1<<40 {
			return usage("a batch of %d: column %q is too large: %v", l.o.GlobalBatch, c.field, shape)
		}
		l.shapes = append(l.shapes, shape)
		l.offsets = append(l.offsets, int(total))
		total += (n + tensor.Alignment - 1) &^ (tensor.Alignment - 1)
	}
	l.offsets = append(l.offsets, int(total))

	const forChunks = 256 << 20
	batches := int64(l.o.Prefetch+l.o.Hold) * total
	filling := int64(l.o.Fetchers) * chunkBytes
	bound := l.o.MemoryBytes
	switch {
	case bound == 0:
		bound = batches + max(forChunks, filling)
	case batches+filling > bound:
		return usage("memory of %d bytes is too little: %d batches (prefetch %d, held %d) of %d bytes are %d, and %d fetchers fill chunks of %d bytes",
			bound, l.o.Prefetch+l.o.Hold, l.o.Prefetch, l.o.Hold, total, batches, l.o.Fetchers, chunkBytes)
	}
	l.chunks.gate.limit = bound - batches
	l.chunks.memory.MaxIdle = bound - batches
	return nil
}

// Batches returns the batches, each the trainer's until its Release. It can be
// ranged over once, and the pipeline runs while it is: when the loop ends,
// everything that was started has ended. An error is the last element: of the
// input, with the batches before it delivered; of ctx; or ErrUsage where the
// trainer holds more than Hold batches.
func (l *Loader) Batches(ctx context.Context) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		p := l.begin(ctx)
		if p == nil {
			yield(nil, usage("the batches of a loader can be ranged over once, and not after Close"))
			return
		}
		// On every way out, a panic of the trainer's loop included.
		defer p.end(nil)
		p.deliver(yield)
	}
}

// begin starts the pipeline, the first time.
func (l *Loader) begin(ctx context.Context) *pipeline {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used {
		return nil
	}
	l.used = true
	l.meters.begin(l.o.Fetchers, l.o.Workers)
	l.pipe = newPipeline(ctx, l)
	l.pipe.start()
	return l.pipe
}

// Close ends the pipeline and waits until it has: no goroutine and no open
// shard is left. A loop over Batches that is still running ends with an error.
// Batches that the trainer holds stay good. It returns nil, however often it
// is called, from any goroutine.
func (l *Loader) Close() error {
	l.mu.Lock()
	l.used = true
	p := l.pipe
	l.mu.Unlock()
	if p != nil {
		p.end(errClosed)
	}
	return nil
}

var errClosed = usage("the loader was closed")

func usage(msg string, args ...any) error {
	return format.Errorf(format.ErrUsage, format.Nowhere, msg, args...)
}
