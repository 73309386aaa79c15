// Package loader is the pipeline that feeds training: shards in, batches of
// tensors out, in an order that follows from the plan and the data alone.
//
//	  runs read shards         chunks
//	  in stretches     ══════════════════╗
//	                                     ▼             slots
//	order ─ the next batch's samples ─▶ tasks ─▶ work ×W ─▶ deliver ─▶ trainer
//	                                     ▲       decode,     in order
//	  jobs read samples        chunks    ║       augment, write
//	  at their places  ══════════════════╝       to the slot
//
// The order stage runs ahead of the trainer by the batches that Prefetch
// allows. Where the order goes through shards in stretches (order.None, Block,
// Stream), a run for each of them reads ahead; where it does not (Global, or a
// rank's part of None), samples are read at the places that an index tells.
// Fetching waits for stores and decoding for cores, so they are goroutines of
// their own. A chunk is the unit of hand-over and of counting holders: up to
// 1 MiB or 1024 samples of one shard, and a larger sample alone. A worker
// writes straight into the slot of the batch; values of any length are gathered
// when the last slot is filled. Whatever the number of workers, the batches are
// equal bit for bit.
//
// Every stage is held back by the one behind it: batches by Prefetch, samples
// under way by MemoryBytes. What the next batch waits for is always admitted,
// so that the bound cannot stop the pipeline.
//
// [Batch.State] says where loading stands; [Options.Resume] goes on from there,
// with the same batches that would have come, also in another process, on
// another machine or, as far as Options.Lanes allows, with another number of
// ranks.
package loader

import (
	"context"
	"iter"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"shardtool/echo"
	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/order"
)

// State is where loading stands: see Batch.State. Its Step counts the batches
// of its Epoch that were given; Batch.Step counts those of one loader.
type State = order.State

// Loader is a pipeline. Close ends it.
type Loader struct {
	src     source
	o       Options
	plan    order.Plan
	shards  []order.Entry // of all parts of the plan
	machine *order.Machine

	perRank  int    // samples of a full batch
	shared   bool   // the lanes of this rank share one reading
	scatter  bool   // samples are read at their places, and not by runs
	echoed   bool   // things are repeated, or may be
	direct   bool   // samples are given as they are taken, each once
	copies   bool   // samples that wait are copied out of their chunks
	far      []bool // by shard: reading it goes over a network
	runsOpen int    // of a reading, at a time

	columns    []placement
	anyLength  bool // a column holds values of any length
	allFields  bool // a column reads anything of a sample
	pageBytes  int
	terms      []MemoryTerm
	chunkBytes int
	pages      pagePool
	chunks     chunkPool
	spools     *spools // of shards with copies to come; nil: nothing is kept
	keeper     *keeper // of what was made of samples with copies to come; nil: nothing is kept

	held atomic.Int64 // batches that the trainer holds

	mu   sync.Mutex
	used bool      // by Batches or by Close
	pipe *pipeline // once Batches has begun

	meters  meters
	tally   tally
	warnOfR sync.Once
}

// New checks the options and returns a loader of the dataset, whose manifest it
// makes (see reader.Dataset.Manifest). What makes no sense, or needs more than
// MemoryBytes, is ErrUsage; a Resume of another plan is ErrStale, naming what
// differs; what is not built yet is ErrUnsupported. Shards are opened by
// Batches.
func New(ctx context.Context, ds *reader.Dataset, o *Options) (*Loader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	src, err := newDatasetSource(ctx, ds)
	if err != nil {
		return nil, err
	}
	l, err := newLoader(ctx, src, o)
	if err != nil {
		return nil, err
	}
	for _, w := range src.manifest.Warnings {
		l.o.Log.Warn(w)
	}
	l.logPlan()
	return l, nil
}

func newLoader(ctx context.Context, src source, o *Options) (*Loader, error) {
	l := &Loader{src: src}
	if o != nil {
		l.o = *o
	}
	l.far = make([]bool, len(src.names()))
	for i := range l.far {
		l.far[i] = src.far(i)
	}
	l.o.setDefaults(slices.Contains(l.far, true))
	for _, step := range []func() error{
		l.o.place, l.o.check, l.makePlan, l.checkAuto, l.goToStart,
		func() error { return l.chooseReading(ctx) },
		l.layOut,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// logPlan tells the log what is going to be loaded; -1 stands for what only
// reading will tell.
func (l *Loader) logPlan() {
	steps, known := l.machine.Steps()
	fresh, emitted, counted := l.machine.Lengths()
	if !known {
		steps = order.Unknown
	}
	if !counted {
		fresh, emitted = order.Unknown, order.Unknown
	}
	at := l.machine.State()
	l.o.Log.Info("plan", "rank", l.o.Rank, "world", l.o.World, "shards", len(l.shards), "shuffle", l.o.Shuffle.String(),
		"fresh", fresh, "emitted", emitted, "steps", steps, "epoch", at.Epoch, "step", at.Step)
}

// makePlan makes the order's plan, and the machine of it.
func (l *Loader) makePlan() error {
	o := &l.o
	if o.Epochs != 1 && slices.Contains(l.src.names(), "-") {
		return usage("standard input can be read once: one epoch")
	}
	e, factor, err := o.Echo.Check()
	if err != nil {
		return err
	}
	o.Echo = e
	parts := l.src.parts()
	if err := exclude(parts, o.Exclude); err != nil {
		return err
	}
	for _, part := range parts {
		l.shards = append(l.shards, part.Shards...)
	}
	epochs := o.Epochs
	if epochs > 0 {
		epochs += o.Epoch
	}
	l.plan = order.Plan{
		Parts: parts, Ends: o.Ends, Epochs: epochs, Batch: o.GlobalBatch, Lanes: o.Lanes, Shuffle: o.Shuffle, Seed: o.Seed,
		Tail: o.Tail, Steps: o.Steps, Unit: e.Unit, Factor: factor, Buffer: e.Buffer, Keep: e.Keep.String(),
		Columns: describe(o.Columns),
	}
	if e.Auto != nil {
		l.plan.Segment = e.Auto.Segment
	}
	l.tally.ledger.Unit = e.Unit
	l.machine, err = order.New(l.plan, o.Rank, o.World)
	return err
}

// checkAuto refuses factors that could not follow what is measured.
func (l *Loader) checkAuto() error {
	auto := l.o.Echo.Auto
	_, known := l.machine.Steps()
	switch {
	case auto == nil:
	case auto.Agree == nil && l.o.World > 1:
		return usage("the echo factor follows what each of %d ranks measures: Auto.Agree must make one of them", l.o.World)
	case auto.Segment == 0 && !known:
		return usage("samples are not counted, so that the end of an epoch is not known before it: make an index (shardtool index), or let the echo factor change after a number of steps (Auto.Segment)")
	}
	return nil
}

// warn tells the log what of the plan is probably not wanted.
func (l *Loader) warn() {
	for _, w := range slices.Concat(order.Warnings(l.plan, l.o.World), echo.Warnings(l.o.Echo, 0)) {
		l.o.Log.Warn(w)
	}
	if evaluates(l.o.Columns) && (l.plan.Factor > order.One || l.o.Echo.Auto != nil) {
		l.o.Log.Warn("echo of pictures that are transformed without randomness, as for an evaluation: there, each sample should count once, and for training all copies are equal")
	}
}

// goToStart puts the machine where loading begins.
func (l *Loader) goToStart() error {
	l.warn()
	switch {
	case l.o.Resume != nil:
		at := *l.o.Resume
		if _, err := order.NewFactor(at.Next.Float64()); err == nil && l.o.Echo.Auto == nil {
			at.Next = 0 // what Auto meant to do next
		}
		return l.machine.Restore(at)
	case l.o.Epoch > 0:
		s := l.machine.State()
		s.Epoch = int32(l.o.Epoch)
		return l.machine.Restore(s)
	}
	return nil
}

// evaluates reports whether there are pictures, and nothing is done to them at
// random.
func evaluates(columns []Column) bool {
	pictures := false
	for i := range columns {
		if k, ok := columns[i].Kind.(interface{ Random() bool }); ok {
			if k.Random() {
				return false
			}
			pictures = true
		}
	}
	return pictures
}

func describe(columns []Column) string {
	var s string
	for i := range columns {
		s += columns[i].Describe() + "\n"
	}
	return s
}

// chooseReading says how the samples of the order are read.
func (l *Loader) chooseReading(ctx context.Context) error {
	l.perRank = l.o.GlobalBatch / l.o.World
	l.echoed = l.echoes()
	global, none := l.o.Shuffle == order.Global, l.o.Shuffle == order.None
	counted, places := true, global || none && l.o.World > 1
	if places {
		l.src.findPlaces(ctx, l.o.Fetchers)
	}
	for i := range l.shards {
		s := &l.shards[i]
		counted = counted && s.Samples != order.Unknown
		if !counted || !places || s.Samples == 0 {
			continue
		}
		p, err := l.src.places(ctx, i)
		if err != nil {
			return err
		}
		if places = p != nil; !places && global {
			return usage("shuffle global reads samples at their places, and those of %s are not known: make an index of it (shardtool index), store it uncompressed, or shuffle by blocks", format.Redact(s.Name))
		}
	}
	l.shared = none && counted
	l.scatter = counted && places
	// Without counts the machine looks whether each lane has more, and takes
	// the first of each before the rest of any.
	inTurn := counted || l.machine.Readings() == len(l.plan.Parts)
	l.direct = !l.scatter && inTurn && !l.echoed && l.o.Shuffle.Buffer() <= 1
	l.copies = l.o.Shuffle.Buffer() > 1 || l.plan.Buffer > 1 && l.echoed
	l.runsOpen = l.machine.Open() + max(1, (l.o.Fetchers-1)/max(1, l.machine.Readings()))
	return nil
}

// echoes reports whether anything is repeated: the epoch that is resumed has
// the factor of its state.
func (l *Loader) echoes() bool {
	s := l.machine.State()
	return l.plan.Factor > order.One || l.o.Echo.Auto != nil || s.Echo || s.Next > order.One ||
		slices.ContainsFunc(s.Factors, func(f order.Segment) bool { return f.Factor > order.One })
}

// World returns how many ranks there are.
func (l *Loader) World() int { return l.o.World }

// Plan returns what the order of the batches follows from.
func (l *Loader) Plan() order.Plan { return l.plan }

// in is the location of which the shard is known.
func (l *Loader) in(shard int32) format.Location { return format.In(l.src.names()[shard]) }

// epochsEnd is the epoch behind the last.
func (l *Loader) epochsEnd() int32 {
	if l.plan.Epochs == order.Endless {
		return math.MaxInt32
	}
	return int32(min(max(1, l.plan.Epochs), math.MaxInt32))
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
	l.meters.begin(max(l.o.Fetchers, l.machine.Open()*l.machine.Readings()), l.o.Workers)
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
