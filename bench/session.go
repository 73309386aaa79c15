package bench

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"shardtool/device"
	"shardtool/format"
	"shardtool/loader"
	"shardtool/reader"
	"shardtool/reader/order"
)

// session is what the runs of a measurement have in common.
type session struct {
	o       Options
	factors []float64 // of the echo, ascending
	ds      *reader.Dataset
	config  Config
	perRank int
	step    time.Duration // of the simulated accelerator; 0: none is
	echoes  []string      // what the order warns of because of its echo

	spent time.Duration // in the runs before
	runs  []outcome     // by factor: its rounds, merged
	steps [][]float64   // by factor: steps a second of each round
}

// prepare makes the manifest and a first loader, whose plan says what the
// set-up is, and compares that with the earlier one's.
func (s *session) prepare(ctx context.Context) error {
	o := &s.o
	s.ds = o.dataset()
	ld, err := loader.New(ctx, s.ds, &o.Load)
	if err != nil {
		return err
	}
	defer ld.Close()
	s.perRank = o.Load.GlobalBatch / ld.World()
	s.step = o.StepTime
	if o.Accelerator > 0 {
		step := float64(s.perRank) / o.Accelerator * float64(time.Second)
		if step >= math.MaxInt64 {
			return format.Errorf(format.ErrUsage, format.Nowhere, "an accelerator of %v samples a second: its step takes longer than 290 years", o.Accelerator)
		}
		s.step = time.Duration(step)
	}
	if (o.StepTime > 0 || o.Accelerator > 0) && s.step <= 0 {
		return format.Errorf(format.ErrUsage, format.Nowhere, "an accelerator of %v samples a second: its step takes no time", o.Accelerator)
	}
	s.config = s.configOf(ld)
	s.echoes = echoWarnings(ld.Plan(), ld.World())
	if o.Against == nil {
		return nil
	}
	return o.Against.comparable(&s.config, s.echoReport())
}

// echoWarnings returns what the order warns of with the echo, and not without.
func echoWarnings(p order.Plan, world int) []string {
	without := p
	without.Unit, without.Factor, without.Buffer, without.Segment = order.Sample, order.One, 0, 0
	usual := order.Warnings(without, world)
	return slices.DeleteFunc(order.Warnings(p, world), func(w string) bool { return slices.Contains(usual, w) })
}

func (s *session) configOf(ld *loader.Loader) Config {
	o := &s.o
	c := Config{
		Source: o.source(), Shards: len(o.Dataset.Shards()), Batch: o.Load.GlobalBatch, Workers: o.Load.Workers, Seed: o.Load.Seed,
		Transform: o.transform, Columns: ld.Plan().Columns, Shuffle: o.Load.Shuffle.String(), Upstream: o.upstream(), World: ld.World(), Rank: o.Load.Rank,
		DurationS: o.Duration.Seconds(), WarmupS: o.Warmup.Seconds(), Device: o.DeviceName, StepS: s.step.Seconds(),
	}
	switch {
	case c.Device != "":
	case s.step > 0:
		c.Device = "simulated"
	default:
		c.Device = "host"
	}
	return c
}

// measure runs every factor, in rounds where there are several.
func (s *session) measure(ctx context.Context) error {
	n := 1
	if len(s.o.Sweep) > 0 {
		n = rounds
	}
	s.runs, s.steps = make([]outcome, len(s.factors)), make([][]float64, len(s.factors))
	for range n {
		for i, factor := range s.factors {
			out, err := s.run(ctx, factor, s.o.Duration/time.Duration(n), n*len(s.factors))
			if err != nil {
				return err
			}
			s.runs[i].add(out)
			s.steps[i] = append(s.steps[i], float64(len(out.gaps))/out.seconds)
		}
	}
	return nil
}

// run is one run of a loader.
type run struct {
	s      *session
	ld     *loader.Loader
	device device.Device
	window *window
	busy   time.Duration    // of a device that does not tell itself
	last   device.Buffer    // of the step before
	known  map[*byte][]byte // memory that the device knows, by its begin
}

// run measures one factor once; it is one of so many runs.
func (s *session) run(ctx context.Context, factor float64, length time.Duration, of int) (_ outcome, err error) {
	load := s.o.Load
	load.Echo.Factor = factor
	if load.Echo.Auto != nil && s.step > 0 {
		auto := *load.Echo.Auto
		auto.StepTime = func() time.Duration { return s.step } // nobody waits for the end of a step
		load.Echo.Auto = &auto
	}
	ld, err := loader.New(ctx, s.ds, &load)
	if err != nil {
		return outcome{}, err
	}
	defer ld.Close()
	r := &run{s: s, ld: ld, device: s.o.Device, window: newWindow(s.o.Warmup, length), known: make(map[*byte][]byte)}
	switch {
	case s.step > 0:
		r.device = &device.Simulated{StepTime: s.step}
		defer func() { err = errors.Join(err, r.device.Close()) }()
	case r.device == nil:
		r.device = device.Host{}
	}
	total := s.o.Warmup + length
	if err := r.batches(ctx, factor, total, time.Duration(of)*total); err != nil {
		return outcome{}, err
	}
	s.spent += total
	out := r.window.outcome()
	out.echo = ld.Stats().Echo
	return out, nil
}

// batches takes batches until the window is closed.
func (r *run) batches(ctx context.Context, factor float64, length, total time.Duration) (err error) {
	defer func() { err = errors.Join(err, r.forget()) }()
	began := time.Now()
	emitted := 0
	for b, err := range r.ld.Batches(ctx) {
		if err != nil {
			return err
		}
		done := batchCount(b)
		err = r.step(ctx, b)
		b.Release()
		if err != nil {
			return err
		}
		now := time.Now()
		emitted += int(done.emitted)
		if !r.window.finished(now, done, r.usage) {
			return nil
		}
		if r.s.o.Progress != nil {
			took := now.Sub(began)
			r.s.o.Progress(Progress{r.s.spent + min(took, length), total, float64(emitted) / took.Seconds(), factor})
		}
	}
	return ctx.Err()
}

// step puts a batch to the device, waits until it is there, and begins its
// step, if the device has any: that lasts while the next batch is got ready.
func (r *run) step(ctx context.Context, b *loader.Batch) error {
	begin := time.Now()
	defer func() { r.busy += time.Since(begin) }()
	if err := r.register(b); err != nil {
		return err
	}
	there, err := r.device.Put(ctx, b.Arrays())
	if err != nil {
		return err
	}
	if err := there.Wait(ctx); err != nil {
		there.Release()
		return err
	}
	if d, ok := r.device.(device.Stepper); ok {
		if err := d.Step(ctx, there); err != nil {
			there.Release()
			return err
		}
	}
	r.letGo(there) // of the one before, whose step has ended
	return nil
}

func (r *run) letGo(next device.Buffer) {
	if r.last != nil {
		r.last.Release()
	}
	r.last = next
}

// forget releases the last batch, and has the device forget the memory of a
// loader that is not used any more.
func (r *run) forget() error {
	r.letGo(nil)
	var err error
	if d, ok := r.device.(device.Registrar); ok {
		for _, mem := range r.known {
			err = errors.Join(err, d.Unregister(mem))
		}
	}
	return err
}

// register makes the memory of batches known to the device, each piece once.
func (r *run) register(b *loader.Batch) error {
	d, ok := r.device.(device.Registrar)
	if !ok {
		return nil
	}
	for _, a := range b.Arrays() {
		mem := a.Bytes()
		if len(mem) == 0 || len(r.known[&mem[0]]) >= len(mem) {
			continue
		}
		if err := d.Register(mem); err != nil {
			return err
		}
		r.known[&mem[0]] = mem
	}
	return nil
}

func batchCount(b *loader.Batch) count {
	account, work := b.Echo(), b.Work()
	return count{fresh: account.Fresh, emitted: account.Emitted, bytes: work.Bytes, pixels: work.Pixels}
}

// usage is what has been spent up to now.
func (r *run) usage() usage {
	stats := r.ld.Stats()
	u := usage{cpu: cpuTime(), allocs: allocations(), stages: stats.Stages, measured: stats.Measured, busy: r.busy}
	if d, ok := r.device.(interface{ Stats() device.SimulatedStats }); ok {
		st := d.Stats()
		u.simulated, u.busy, u.waited = true, st.Busy, st.Waited
	}
	return u
}
