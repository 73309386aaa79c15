// Package bench measures a pipeline: it runs a loader over shards for a while
// and reports how fast batches came out, what each stage did with its time,
// which of them is the bottleneck, and how much to echo.
//
//	      warm-up          window                      end
//	|──────────────────|─────────────────────────────|
//	  b   b   b   b    b   b   b   b   b   b   b   b   (b)
//	                   └ opens at a batch's end        └ this one ended too late
//
// A batch counts when it is finished: decoded, put to the device, there, and,
// where the device plays or runs training steps, when its step has begun. The
// window opens at the end of the batch that ends the warm-up, and lasts to the
// end of the last batch that ends within the duration, so that no part of a
// batch is counted; where that leaves out a tenth of the duration or more, to
// the end of the next. It holds at least one fresh sample, however late that
// comes within ten times the duration; where none does, the report says so, and
// its rates are those of copies alone. Shards are read again as often as needed;
// nothing that was decoded is used again unless the echo says so.
//
// The warm-up lasts as long as it is told to, until the batches that were made
// ahead of the first one have been used, and until so many fresh samples have
// come as had been fetched ahead when the first batch was there. Where that
// takes ten times as long as the warm-up was to last, the window opens all the
// same, and the report warns.
//
// With Options.Sweep several factors of the echo are run, in rounds: each round
// runs every factor once, in turn, so that what slows the machine down for a
// while slows down all of them. Each run has a pipeline and a warm-up of its
// own. What is reported of a factor is the median of its rounds, beside what
// the law predicts from the stages' times at the least factor (echo.Costs).
package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"shardtool/augment"
	"shardtool/device"
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

	Duration time.Duration // of the window, of each factor in all its rounds; 0 stands for 5 s
	Warmup   time.Duration // before each window; 0 stands for 1 s

	// Sweep are factors of the echo that are run one after the other, instead
	// of Load.Echo.Factor.
	Sweep []float64

	// StepTime plays an accelerator (device.Simulated) whose step on the batch
	// of this rank takes so long; Accelerator is the same in samples a second.
	// They exclude each other and Device.
	StepTime    time.Duration
	Accelerator float64
	Device      device.Device // nil: the host
	DeviceName  string        // for the report; "": host, or simulated

	Against  *Earlier       // a report to compare with: of another set-up, it is ErrUsage before anything is measured
	Progress func(Progress) // told after each batch; may be nil
	Version  string         // of the program, for the report

	transform string // in words
	embedded  bool   // the photographs of package fixtures
}

// Progress is how far a run is.
type Progress struct {
	Done      time.Duration // of Total
	Total     time.Duration // warm-ups and windows
	EmittedPS float64       // samples a second since the begin of this factor's run
	Factor    float64       // of the echo
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

// check refuses what makes no sense, and settles the factors that are run.
func (o *Options) check() (factors []float64, err error) {
	usage := func(msg string, args ...any) ([]float64, error) {
		return nil, format.Errorf(format.ErrUsage, format.Nowhere, msg, args...)
	}
	switch {
	case o.StepTime < 0 || !(o.Accelerator >= 0) || math.IsInf(o.Accelerator, 0):
		return usage("an accelerator with a step of %v, or %v samples a second", o.StepTime, o.Accelerator)
	case o.StepTime > 0 && o.Accelerator > 0:
		return usage("a step time and samples a second say the same of an accelerator: one of them")
	case o.Device != nil && (o.StepTime > 0 || o.Accelerator > 0):
		return usage("a device, and one that is simulated: one of them")
	case len(o.Sweep) > 0 && o.Load.Echo.Auto != nil:
		return usage("a sweep over factors, and an echo that sets its own")
	case len(o.Sweep) > maxSweep:
		return usage("a sweep over %d factors: %d at most", len(o.Sweep), maxSweep)
	}
	if o.Load.Echo, _, err = o.Load.Echo.Check(); err != nil {
		return nil, err
	}
	factors = slices.Sorted(slices.Values(o.Sweep))
	if len(factors) == 0 {
		factors = []float64{o.Load.Echo.Factor}
	}
	for i, f := range factors {
		e := o.Load.Echo
		e.Factor = f
		if e, _, err = e.Check(); err != nil {
			return nil, err
		}
		factors[i] = e.Factor
	}
	factors = slices.Compact(factors)
	o.Load.Echo.Factor = factors[0]
	return factors, nil
}

const (
	maxSweep = 32
	rounds   = 3 // of a sweep
)

// Run measures; without Options.Load.Columns, RandomResizedCrop to 224, flip,
// normalisation, float32 NCHW. It ends with the first error of the data, and
// with that of ctx; there is no report then.
func Run(ctx context.Context, o *Options) (*Report, error) {
	opts := o.withDefaults()
	factors, err := opts.check()
	if err != nil {
		return nil, err
	}
	if err := opts.checkShards(ctx); err != nil {
		return nil, err
	}
	s := &session{o: opts, factors: factors}
	if err := s.prepare(ctx); err != nil {
		return nil, opts.unrepeated(err)
	}
	if err := s.measure(ctx); err != nil {
		return nil, opts.unrepeated(err)
	}
	return s.report(), nil
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

// dataset returns what is loaded, each part of a mix as slow as Upstream says.
// Where shards are read in order they are there many times over, as one data
// set: batches do not reach across the end of an epoch, and a few shards would
// give short ones.
func (o *Options) dataset() *reader.Dataset {
	const enough = 4096
	ds := o.Dataset
	if shards := ds.Shards(); o.Load.Tail == order.TailKeep && len(ds.Parts()) == 1 {
		read := *ds.ReadOptions(0)
		ds = reader.New(ds.Store(0), slices.Repeat(shards, max(1, enough/len(shards))), &read)
	}
	if o.Upstream == nil {
		return ds
	}
	return ds.Through(func(st store.Store) store.Store { return store.Limit(st, *o.Upstream) })
}

const andOthers = " and others"

// source says in words what was read.
func (o *Options) source() string {
	switch shards := o.Dataset.Shards(); {
	case o.embedded:
		return "the embedded photographs"
	case len(shards) == 1:
		return format.Redact(shards[0])
	default:
		return format.Redact(shards[0]) + andOthers
	}
}

func (o *Options) upstream() string {
	if o.Upstream == nil {
		return ""
	}
	return fmt.Sprintf("%d B/s, %v a request", o.Upstream.BytesPerSecond, o.Upstream.Latency)
}
