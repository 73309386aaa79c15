package bench

import (
	"fmt"
	"runtime"

	"shardtool/echo"
	"shardtool/format"
	"shardtool/loader"
)

// Report is the result of a run. MB are 10^6 bytes. Its JSON is an interface:
// members are added and never renamed.
type Report struct {
	FreshPerS       float64        `json:"fresh_per_s"`       // samples emitted for the first time
	EmittedPerS     float64        `json:"emitted_per_s"`     // all samples
	MBPerS          float64        `json:"mb_per_s"`          // encoded bytes of fresh samples
	MpixPerS        float64        `json:"mpix_per_s"`        // decoded, in 10^6 pixels
	Seconds         float64        `json:"seconds"`           // of the window
	CPUPer1000      float64        `json:"cpu_s_per_1000"`    // seconds of all cores for 1000 emitted samples
	AllocsPerSample float64        `json:"allocs_per_sample"` // of the Go heap, per emitted sample
	PeakRSSMB       float64        `json:"peak_rss_mb"`       // of the process since its start
	BatchGap        Gap            `json:"batch_gap_ms"`
	Stages          []loader.Stage `json:"stages"` // seconds within the window, summed over workers
	Bottleneck      string         `json:"bottleneck"`
	Echo            EchoReport     `json:"echo"`
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
	Factor float64 `json:"factor"`

	// R is the paper's: the time that the stages before the echo need for one
	// fresh sample, by that of those behind it for one emission. A factor up to
	// R costs nothing.
	R float64 `json:"r"`
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
}

const transformWords = "random resized crop 224, flip, normalise, f32 NCHW"

func (r *run) report() *Report {
	w, o := r.window, &r.o
	seconds, emitted := w.seconds(), float64(w.total.emitted)
	stages := w.stages()
	return &Report{
		FreshPerS:       float64(w.total.fresh) / seconds,
		EmittedPerS:     emitted / seconds,
		MBPerS:          float64(w.total.bytes) / 1e6 / seconds,
		MpixPerS:        float64(w.total.pixels) / 1e6 / seconds,
		Seconds:         seconds,
		CPUPer1000:      (w.to.cpu - w.from.cpu).Seconds() / emitted * 1000,
		AllocsPerSample: float64(w.to.allocs-w.from.allocs) / emitted,
		PeakRSSMB:       float64(peakMemory()) / 1e6,
		BatchGap:        Gap{w.gap(0.5), w.gap(0.99)},
		Stages:          stages,
		Bottleneck:      bottleneck(stages),
		Echo: EchoReport{
			Unit: o.Load.Echo.Unit.String(), Keep: o.Load.Echo.Keep.String(), Factor: o.Load.Echo.Factor,
			R: ratio(stages, w.total, o.Load.Echo),
		},
		Config: Config{
			Source: o.source(), Shards: len(o.Dataset.Shards()), Batch: o.Load.GlobalBatch, Workers: o.Load.Workers, Seed: o.Load.Seed,
			Transform: o.transform, Columns: r.ld.Plan().Columns, Shuffle: o.Load.Shuffle.String(), Upstream: o.upstream(), World: r.ld.World(), Rank: o.Load.Rank,
			DurationS: o.Duration.Seconds(), WarmupS: o.Warmup.Seconds(),
		},
		Version:    o.Version,
		CPU:        cpuName(),
		Gomaxprocs: runtime.GOMAXPROCS(0),
		Batches:    len(w.gaps),
	}
}

// source says in words what was read.
func (o *Options) source() string {
	switch shards := o.Dataset.Shards(); {
	case o.embedded:
		return "the embedded photographs"
	case len(shards) == 1:
		return format.Redact(shards[0])
	default:
		return format.Redact(shards[0]) + " and others"
	}
}

func (o *Options) upstream() string {
	if o.Upstream == nil {
		return ""
	}
	return fmt.Sprintf("%d B/s, %v a request", o.Upstream.BytesPerSecond, o.Upstream.Latency)
}

// times gives the stages by name.
func times(stages []loader.Stage) map[string]loader.Stage {
	m := make(map[string]loader.Stage, len(stages))
	for _, s := range stages {
		m[s.Name] = s
	}
	return m
}

// bottleneck names the stage that holds the others up, by what the workers that
// decode and augment did with their time: the work itself, of which the longer
// part counts; or waiting for something to do, for the stages before them; or
// for room, for those behind.
func bottleneck(stages []loader.Stage) string {
	m := times(stages)
	decode, augment, order := m[loader.StageDecode], m[loader.StageAugment], m[loader.StageOrder]
	busy := decode.Busy + augment.Busy
	switch {
	case busy >= decode.WaitIn && busy >= decode.WaitOut && augment.Busy > decode.Busy:
		return loader.StageAugment
	case busy >= decode.WaitIn && busy >= decode.WaitOut:
		return loader.StageDecode
	case decode.WaitIn >= decode.WaitOut && order.Busy > order.WaitIn+order.WaitOut:
		return loader.StageOrder
	case decode.WaitIn >= decode.WaitOut:
		return loader.StageFetch
	case m[loader.StageDeliver].Busy > m[StageDevice].Busy:
		return loader.StageDeliver
	}
	return StageDevice
}

// ratio estimates R from busy times: of the slower stage on either side, each
// divided by its workers.
func ratio(stages []loader.Stage, c count, e echo.Options) float64 {
	m := times(stages)
	each := func(busy float64, workers int, n int64) float64 {
		return busy / float64(max(workers, 1)) / float64(max(n, 1))
	}
	decode := m[loader.StageDecode]
	work := decode.Busy + m[loader.StageAugment].Busy
	up := each(m[loader.StageFetch].Busy, m[loader.StageFetch].Workers, c.fresh)
	down := each(m[StageDevice].Busy, 1, c.emitted)
	if e.Unit == echo.Batch {
		up = max(up, each(work, decode.Workers, c.fresh))
	} else {
		down = max(down, each(work, decode.Workers, c.emitted))
	}
	return up / down
}
