package bench

import (
	"runtime"

	"shardtool/loader"
)

// Report is the result of a measurement. MB are 10^6 bytes. Its JSON is an
// interface: members are added and never renamed. Of a sweep it is the report
// of the least factor, all rounds together, and Sweep has the factors.
type Report struct {
	FreshPerS       float64        `json:"fresh_per_s"`       // samples emitted for the first time
	EmittedPerS     float64        `json:"emitted_per_s"`     // all samples
	StepsPerS       float64        `json:"steps_per_s"`       // batches
	Noise           float64        `json:"noise"`             // of emitted_per_s: half the width of its 95% interval as a share of it, by the spread within the window; 1 where it is more
	MBPerS          float64        `json:"mb_per_s"`          // encoded bytes of fresh samples
	MpixPerS        float64        `json:"mpix_per_s"`        // decoded, in 10^6 pixels
	Seconds         float64        `json:"seconds"`           // of the window
	CPUPer1000      float64        `json:"cpu_s_per_1000"`    // seconds of all cores for 1000 emitted samples
	AllocsPerSample float64        `json:"allocs_per_sample"` // of the Go heap, per emitted sample
	PeakRSSMB       float64        `json:"peak_rss_mb"`       // of the process since its start
	BatchGap        Gap            `json:"batch_gap_ms"`
	Stages          []loader.Stage `json:"stages"` // seconds within the window, summed over workers
	Bottleneck      string         `json:"bottleneck"`
	DeviceWaits     *float64       `json:"device_waits"` // share of the window in which the simulated accelerator waited for input; null: there is none
	Echo            EchoReport     `json:"echo"`
	Law             Law            `json:"law"`
	Advice          Advice         `json:"advice"`
	Faster          []Advice       `json:"faster"` // what is advised for accelerators of some speeds, where that of this one is not known
	Sweep           []Swept        `json:"sweep"`
	Against         *Comparison    `json:"against"`
	Warnings        []string       `json:"warnings"`
	Slices          []Slice        `json:"slices"` // of the window, in order
	Config          Config         `json:"config"`
	Version         string         `json:"version"`
	CPU             string         `json:"cpu"`
	Gomaxprocs      int            `json:"gomaxprocs"`
	Batches         int            `json:"batches"` // finished within the window
}

// Gap is the time between the ends of batches, in milliseconds.
type Gap struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// EchoReport is the echo that ran.
type EchoReport struct {
	Unit   string  `json:"unit"`
	Keep   string  `json:"keep"`
	Factor float64 `json:"factor"` // of an automatic one, that at the begin
	Buffer int     `json:"buffer"`
	Auto   bool    `json:"auto"`

	// R is the paper's: the time that the stages before the echo need for one
	// fresh sample, by that of those behind it for one emission. A factor up to
	// R costs nothing.
	R float64 `json:"r"`

	Realised   float64 `json:"realised"`   // the factor that came about in the window; infinite where nothing fresh came
	Duplicates float64 `json:"duplicates"` // share of the emissions of which the batch already held the sample
	Distance   float64 `json:"distance"`   // emissions between an echo and the one before of its sample, in the mean; 0 without

	// Of what was kept decoded or augmented, in the last run.
	CacheHits     int64   `json:"cache_hits"`
	CacheRebuilds int64   `json:"cache_rebuilds"` // made again, as there was no room to keep it
	CachePeakMB   float64 `json:"cache_peak_mb"`
}

// Config is what was asked for.
type Config struct {
	Source    string  `json:"source"`
	Shards    int     `json:"shards"`
	Batch     int     `json:"batch"`
	Workers   int     `json:"workers"`
	Seed      uint64  `json:"seed"`
	Transform string  `json:"transform"`
	Columns   string  `json:"columns"` // a line each
	Shuffle   string  `json:"shuffle"`
	Upstream  string  `json:"upstream"` // "" where nothing slowed the store down
	World     int     `json:"world"`
	Rank      int     `json:"rank"`
	DurationS float64 `json:"duration_s"`
	WarmupS   float64 `json:"warmup_s"`
	Device    string  `json:"device"`
	StepS     float64 `json:"step_s"` // of a batch of this rank on the simulated accelerator; 0: there is none
}

const transformWords = "random resized crop 224, flip, normalise, f32 NCHW"

func (s *session) echoReport() EchoReport {
	e := &s.o.Load.Echo
	return EchoReport{Unit: e.Unit.String(), Keep: e.Keep.String(), Factor: e.Factor, Buffer: e.Buffer, Auto: e.Auto != nil}
}

func (s *session) report() *Report {
	o := &s.runs[0]
	emitted := float64(o.total.emitted)
	r := &Report{
		FreshPerS:       float64(o.total.fresh) / o.seconds,
		EmittedPerS:     emitted / o.seconds,
		StepsPerS:       float64(len(o.gaps)) / o.seconds,
		MBPerS:          float64(o.total.bytes) / 1e6 / o.seconds,
		MpixPerS:        float64(o.total.pixels) / 1e6 / o.seconds,
		Seconds:         o.seconds,
		CPUPer1000:      o.cpu.Seconds() / emitted * 1000,
		AllocsPerSample: float64(o.allocs) / emitted,
		PeakRSSMB:       float64(peakMemory()) / 1e6,
		BatchGap:        Gap{gap(o.gaps, 0.5), gap(o.gaps, 0.99)},
		Stages:          o.stages,
		Bottleneck:      bottleneck(o.stages),
		Echo:            s.echoReport(),
		Slices:          o.slices,
		Noise:           figures[0].noise(o.slices),
		Config:          s.config,
		Version:         s.o.Version,
		CPU:             cpuName(),
		Gomaxprocs:      runtime.GOMAXPROCS(0),
		Batches:         len(o.gaps),
	}
	if o.played {
		waits := o.waited / max(o.busy+o.waited, 1e-9)
		r.DeviceWaits = &waits
	}
	s.judge(r, o)
	if s.o.Against != nil {
		r.Against = s.o.Against.compare(r)
	}
	return r
}

// judge adds what follows from the times of the stages.
func (s *session) judge(r *Report, o *outcome) {
	factor := s.factors[0]
	c := s.costs(o, factor)
	e := &r.Echo
	e.Realised = o.realised()
	if s.o.Load.Echo.Auto != nil {
		factor = float64(o.total.emitted) / float64(max(o.total.fresh, 1))
	}
	e.R = c.R(s.o.Load.Echo.Unit, s.o.Load.Echo.Keep)
	e.Duplicates = float64(o.echo.Duplicates) / float64(max(o.echo.Emitted, 1))
	e.Distance = o.echo.MeanDistance()
	e.CacheHits, e.CacheRebuilds, e.CachePeakMB = o.echo.Cache.Hits, o.echo.Cache.Rebuilds, float64(o.echo.Cache.Peak)/1e6
	r.Law = Law{Fetch: c.Fetch, Decode: c.Decode, Augment: c.Augment, Step: c.Step, EmittedPS: s.predicted(c, factor)}
	r.Law.Up, r.Law.Down = c.Split(s.o.Load.Echo.Unit, s.o.Load.Echo.Keep)
	r.Advice = adviceFor(c)
	if c.Step == 0 {
		r.Faster = faster(c)
	}
	r.Sweep = s.swept(c)
	r.Warnings = s.warnings(e.R)
}
