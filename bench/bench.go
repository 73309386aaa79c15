// Package bench measures a pipeline: it runs a loader over shards for a while
// and reports how fast batches came out, what each stage did with its time,
// and which of them is the bottleneck.
//
//	      warm-up          window                      end
//	|──────────────────|─────────────────────────────|
//	  b   b   b   b    b   b   b   b   b   b   b   b   (b)
//	                   └ opens at a batch's end        └ this one ended too late
//
// A batch counts when it is finished: decoded, put to the device, and there.
// The window opens at the end of the batch that ends the warm-up, and lasts to
// the end of the last batch that ends within the duration, so that no part of
// a batch is counted; where that leaves out a tenth of the duration or more, to
// the end of the next. Shards are read again as often as needed; nothing that
// was decoded is used again unless the echo says so.
package bench

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"time"

	"shardtool/augment"
	"shardtool/device"
	"shardtool/echo"
	"shardtool/fixtures"
	"shardtool/format"
	"shardtool/loader"
	"shardtool/reader"
	"shardtool/reader/order"
	"shardtool/reader/store"
)

// The fields that hold pictures in the usual layouts of both formats.
const pictureFields = "jpg;jpeg;png;webp;gif;image/encoded;image"

// Options says what is measured. The zero value, and nil, measure the embedded
// photographs.
type Options struct {
	Dataset  *reader.Dataset     // nil: the photographs of package fixtures
	Upstream *store.LimitOptions // slows its store down; nil: it is as fast as it is

	// Load says what is loaded and how. Without Columns it is pictures of
	// Field, for training. Epochs and Resume are of no matter: shards are read
	// again as often as needed.
	Load  loader.Options
	Field string // that holds the pictures, or alternatives by semicolons; "": the usual names

	Duration time.Duration // of the window; 0 stands for 5 s
	Warmup   time.Duration // before it; 0 stands for 1 s

	Device   device.Device  // nil: the host
	Progress func(Progress) // told after each batch; may be nil
	Version  string         // of the program, for the report

	transform string // in words
	embedded  bool   // the photographs of package fixtures
}

// Progress is how far a run is.
type Progress struct {
	Done      time.Duration // of Total
	Total     time.Duration // warm-up and window
	EmittedPS float64       // samples a second since the begin of the run
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Dataset == nil {
		d.Dataset = reader.New(store.FS(fixtures.Photos), fixtures.PhotoShards, nil)
		d.embedded = true
	}
	if d.Load.GlobalBatch == 0 {
		d.Load.GlobalBatch = 64
	}
	if d.Load.Workers == 0 {
		d.Load.Workers = runtime.GOMAXPROCS(0)
	}
	if d.Duration == 0 {
		d.Duration = 5 * time.Second
	}
	if d.Warmup == 0 {
		d.Warmup = time.Second
	}
	if d.Device == nil {
		d.Device = device.Host{}
	}
	if d.Field == "" {
		d.Field = pictureFields
	}
	d.transform = "columns as asked"
	if len(d.Load.Columns) == 0 {
		d.Load.Columns = []loader.Column{loader.Image(d.Field, augment.ImageNetTrain(224))}
		d.transform = transformWords
	}
	d.Load.Epochs, d.Load.Resume, d.Load.Prefetch = order.Endless, nil, prefetch
	if d.sequential() {
		d.Load.Tail = order.TailKeep
	}
	return d
}

// sequential reports whether shards are read in their order, by one rank.
func (o *Options) sequential() bool {
	return o.Load.Shuffle == order.None && o.Load.World <= 1 && o.Load.Tail == order.TailDefault && o.Load.Steps == 0 && o.Load.Lanes <= 1
}

// prefetch is how many batches are made ahead of the device.
const prefetch = 3

// Run measures; without Options.Load.Columns, RandomResizedCrop to 224, flip,
// normalisation, float32 NCHW. It ends with the first error of the data, and
// with that of ctx; there is no report then.
func Run(ctx context.Context, o *Options) (*Report, error) {
	opts := o.withDefaults()
	if err := opts.checkShards(ctx); err != nil {
		return nil, err
	}
	ld, err := loader.New(ctx, opts.dataset(), &opts.Load)
	if err != nil {
		return nil, opts.unrepeated(err)
	}
	defer ld.Close()
	r := &run{o: opts, ld: ld, window: newWindow(opts.Warmup, opts.Duration)}
	if r.o.Load.Echo, _, err = opts.Load.Echo.Check(); err != nil {
		return nil, err
	}
	if err := r.measure(ctx); err != nil {
		return nil, opts.unrepeated(err)
	}
	return r.report(), nil
}

// checkShards refuses what can be read only once.
func (o *Options) checkShards(ctx context.Context) error {
	if len(o.Dataset.Shards()) == 0 {
		return format.Errorf(format.ErrUsage, format.Nowhere, "there are no shards")
	}
	for i, name := range o.Dataset.Shards() {
		if name == "-" {
			return format.Errorf(format.ErrUsage, format.Nowhere, "standard input cannot be read again and again: give files")
		}
		st, ok := o.Dataset.Store(i).(store.Stater)
		if !ok || strings.Contains(name, "://") { // what is not local is no pipe
			continue
		}
		if e, err := st.Stat(ctx, name); err == nil && e.Size == format.Unknown {
			return format.Errorf(format.ErrUsage, format.In(name), "a pipe or a device cannot be read again and again: give files")
		}
	}
	return ctx.Err()
}

// unrepeated says of how many shards it is that there are no samples in them.
func (o *Options) unrepeated(err error) error {
	e := format.AsError(err)
	shards := o.Dataset.Shards()
	switch {
	case e == nil || e.Err != format.ErrMissing || e.Location != format.Nowhere:
		return err
	case len(shards) == 1:
		return format.Errorf(format.ErrMissing, format.In(shards[0]), "no samples in it")
	default:
		return format.Errorf(format.ErrMissing, format.Nowhere, "no samples in %d shards", len(shards))
	}
}

// dataset returns what is loaded. Where shards are read in order they are there
// many times over, as one data set: batches do not reach across the end of an
// epoch, and a few shards would give short ones.
func (o *Options) dataset() *reader.Dataset {
	const enough = 4096
	ds := o.Dataset
	shards := ds.Shards()
	repeat := o.Load.Tail == order.TailKeep && len(ds.Parts()) == 1
	if !repeat && o.Upstream == nil {
		return ds
	}
	st, read := ds.Store(0), *ds.ReadOptions(0)
	if o.Upstream != nil {
		st = store.Limit(st, *o.Upstream)
	}
	if repeat {
		shards = slices.Repeat(shards, max(1, enough/len(shards)))
	}
	return reader.New(st, shards, &read)
}

// run is one measurement.
type run struct {
	o      Options
	ld     *loader.Loader
	window *window
	device deviceTime
}

// deviceTime is what putting batches to the device took.
type deviceTime struct{ busy time.Duration }

func (r *run) measure(ctx context.Context) error {
	began := time.Now()
	emitted := 0
	for b, err := range r.ld.Batches(ctx) {
		if err != nil {
			return err
		}
		done := batchCount(b)
		err := r.put(ctx, b)
		b.Release()
		if err != nil {
			return err
		}
		now := time.Now()
		emitted += int(done.emitted)
		if !r.window.finished(now, done, r.usage) {
			return nil
		}
		if r.o.Progress != nil {
			spent := now.Sub(began)
			total := r.o.Warmup + r.o.Duration
			r.o.Progress(Progress{min(spent, total), total, float64(emitted) / spent.Seconds()})
		}
	}
	return ctx.Err()
}

func (r *run) put(ctx context.Context, b *loader.Batch) error {
	begin := time.Now()
	defer func() { r.device.busy += time.Since(begin) }()
	event, err := r.o.Device.Put(ctx, b.Arrays())
	if err != nil {
		return err
	}
	return event.Wait(ctx)
}

func batchCount(b *loader.Batch) count {
	var account echo.Account
	account.Add(b.Refs)
	work := b.Work()
	return count{fresh: account.Fresh, emitted: account.Emitted, bytes: work.Bytes, pixels: work.Pixels}
}

// usage is what has been spent up to now.
func (r *run) usage() usage {
	return usage{
		cpu:    cpuTime(),
		allocs: allocations(),
		stages: r.ld.Stats().Stages,
		device: r.device.busy,
	}
}
