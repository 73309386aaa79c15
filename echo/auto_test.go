package echo_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"shardtool/echo"
	"shardtool/format"
)

// world is a run in virtual time: three stages in a row with bounded room
// between them, each emission's time worked out from those before it.
//
//	fetch ─▶ up to 64 samples ─▶ decode, augment ─▶ up to 128 emissions ─▶ step
//
// Its costs are given for one sample, in seconds.
type world struct {
	echo.Costs
	keep   echo.Level
	jitter func() float64 // what times of fetches are multiplied by

	sum                      float64
	items, emissions         int
	fetched, began           ring // by item: when its bytes were there, when work on it began
	taken                    ring // by emission: when the trainer took it
	lastFetch, lastWork, now float64
}

type ring [128]float64

func (r *ring) at(i int) *float64 { return &r[(i+len(r))%len(r)] }

const fetchedAhead, madeAhead = 64, 128

// run emits n times with a factor, and says what it took.
func (w *world) run(n int, e float64) echo.Measured {
	const workers = 3
	m := echo.Measured{Workers: workers, Batches: int64(n / 32)}
	begin := w.now
	for range n {
		fresh := w.sum < 1
		for w.sum < 1 {
			w.fetch(&m)
			w.sum += e
		}
		w.sum--
		w.emit(&m, fresh, workers)
	}
	m.Seconds = w.now - begin
	return m
}

func (w *world) fetch(m *echo.Measured) {
	if w.items >= fetchedAhead {
		w.lastFetch = max(w.lastFetch, *w.began.at(w.items - fetchedAhead))
	}
	d := w.Fetch
	if w.jitter != nil {
		d *= w.jitter()
	}
	w.lastFetch += d
	m.Fetching += d
	m.Fresh++
	*w.fetched.at(w.items) = w.lastFetch
	w.items++
}

func (w *world) emit(m *echo.Measured, fresh bool, workers float64) {
	if w.emissions >= madeAhead {
		w.lastWork = max(w.lastWork, *w.taken.at(w.emissions - madeAhead))
	}
	decode, augment := w.Decode, w.Augment
	if fresh {
		ready := *w.fetched.at(w.items - 1)
		m.Starved += max(0, ready-w.lastWork)
		w.lastWork = max(w.lastWork, ready)
		*w.began.at(w.items - 1) = w.lastWork
	} else if w.keep >= echo.Decoded {
		decode = 0
		if w.keep >= echo.Augmented {
			augment = 0
		}
	}
	w.lastWork += decode + augment
	m.Decode += decode * workers
	m.Augment += augment * workers

	m.Waited += max(0, w.lastWork-w.now)
	w.now = max(w.now, w.lastWork)
	*w.taken.at(w.emissions) = w.now
	w.now += w.Step
	m.Trainer += w.Step
	m.Emitted++
	w.emissions++
}

// limited returns a world with R, of which fetching or the cores are the limit.
func limited(r float64, by string) *world {
	switch by {
	case "fetch":
		return &world{keep: echo.Bytes, Costs: echo.Costs{Fetch: r, Decode: 0.3, Augment: 0.2, Step: 1}}
	case "decode":
		return &world{keep: echo.Decoded, Costs: echo.Costs{Fetch: 0.1, Decode: r, Augment: 0.01, Step: 1}}
	case "slow copies":
		return &world{keep: echo.Bytes, Costs: echo.Costs{Fetch: r, Decode: 0.7, Augment: 0.3, Step: 0.2}}
	}
	return &world{keep: echo.Augmented, Costs: echo.Costs{Fetch: 0.1, Decode: 0.25 * r, Augment: 0.75 * r, Step: 1}}
}

// TestAutoConverges: within three segments, to R rounded down to the quantum.
func TestAutoConverges(t *testing.T) {
	for _, by := range []string{"fetch", "decode", "slow copies", "augment"} {
		for _, r := range []float64{0.5, 1, 2, 4, 8} {
			for _, from := range []float64{1, 8} {
				w, auto, f := limited(r, by), &echo.Auto{}, from
				var log []string
				for segment := range 10 {
					p := auto.Propose(f, w.run(1024, f), echo.Sample, w.keep)
					log = append(log, fmt.Sprintf("%v → %v: %s", f, p.Factor, p.Reason))
					f = p.Factor
					if segment >= 2 && f != max(1, r) {
						t.Fatalf("%s, R = %v, from %v: %v after segment %d\n%s", by, r, from, f, segment, strings.Join(log, "\n"))
					}
				}
			}
		}
	}
}

// TestAutoFollows: the network gets slow, and fast again.
func TestAutoFollows(t *testing.T) {
	auto, w, f := &echo.Auto{}, limited(1, "fetch"), 1.0
	for _, r := range []float64{1, 6, 2, 0.5, 3.3, 1.25, 8, 20, 1} {
		w.Fetch = r
		for segment := range 6 {
			p := auto.Propose(f, w.run(2048, f), echo.Sample, w.keep)
			f = p.Factor
			want := min(max(r, 1), echo.MaxAdvised)
			if segment >= 3 && (f > want*1.15 || f < want/1.15-0.25) {
				t.Fatalf("%v at R = %v, segment %d: %s", f, r, segment, p.Reason)
			}
		}
	}
}

// TestAutoSettles: R that changes by a tenth from segment to segment doesn't
// move a factor that has found its place.
func TestAutoSettles(t *testing.T) {
	for _, r := range []float64{0.5, 1, 2, 3, 4, 6, 8} {
		for seed := range uint64(20) {
			rnd := rand.New(rand.NewPCG(seed, 6))
			w, f, changes := limited(r, "fetch"), 1.0, 0
			var log []string
			for segment := range 100 {
				w.Fetch = r * (0.9 + 0.2*rnd.Float64())
				p := (&echo.Auto{}).Propose(f, w.run(512, f), echo.Sample, w.keep)
				if p.Factor != f && segment >= 3 {
					changes++
					log = append(log, fmt.Sprintf("%d: %v → %v: %s", segment, f, p.Factor, p.Reason))
				}
				f = p.Factor
			}
			if changes > 2 || f < max(1, r)*0.85 || f > max(1, r)*1.1 {
				t.Errorf("R = %v ± 10%%: the factor is %v, after %d changes\n%s", r, f, changes, strings.Join(log, "\n"))
			}
		}
	}
}

// TestIdle: a fetch that keeps up starves nobody for long, though the times of
// fetches vary; one that is a tenth too slow does.
func TestIdle(t *testing.T) {
	for _, tt := range []struct {
		r       float64
		starved bool
	}{{0.5, false}, {0.8, false}, {0.9, false}, {1.1, true}, {1.5, true}, {4, true}} {
		rnd := rand.New(rand.NewPCG(1, 2))
		w := limited(tt.r, "fetch")
		w.jitter = func() float64 { return 2 * rnd.Float64() }
		w.run(1000, 1)
		m := w.run(20000, 1)
		if share := m.Starved / m.Seconds; share > 0.05 != tt.starved {
			t.Errorf("R = %v: starved for %.3f of the time", tt.r, share)
		}
	}
}

func TestMeasuredCosts(t *testing.T) {
	// 300 samples, 600 emissions, in 30 s.
	m := echo.Measured{
		Seconds: 30, Fresh: 300, Emitted: 600, Fetching: 15, Starved: 1,
		Decode: 12, Augment: 24, Workers: 4, Waited: 3, Trainer: 18,
	}
	ahead := m
	ahead.Fetched = 600 // twice what was emitted
	always := m
	always.Fetching = 31 // a fetch that had begun before
	for _, tt := range []struct {
		name string
		m    echo.Measured
		u    echo.Unit
		k    echo.Level
		e    float64
		want echo.Costs
	}{
		{"bytes", m, echo.Sample, echo.Bytes, 2, echo.Costs{Fetch: 0.05, Decode: 0.005, Augment: 0.01, Step: 0.03}},
		{"decoded", m, echo.Sample, echo.Decoded, 2, echo.Costs{Fetch: 0.05, Decode: 0.01, Augment: 0.01, Step: 0.03}},
		{"augmented", m, echo.Sample, echo.Augmented, 2, echo.Costs{Fetch: 0.05, Decode: 0.01, Augment: 0.02, Step: 0.03}},
		{"batches", m, echo.Batch, echo.Natural, 2, echo.Costs{Fetch: 0.05, Decode: 0.01, Augment: 0.02, Step: 0.03}},
		{"shards", m, echo.Shard, echo.Natural, 2, echo.Costs{Fetch: 0.05, Decode: 0.005, Augment: 0.01, Step: 0.03}},
		{"read ahead", ahead, echo.Sample, echo.Bytes, 2, echo.Costs{Fetch: 0.025, Decode: 0.005, Augment: 0.01, Step: 0.03}},
		{"always fetching", always, echo.Sample, echo.Bytes, 2, echo.Costs{Fetch: 0.1, Decode: 0.005, Augment: 0.01, Step: 0.03}},
		{"fetched ahead", ahead, echo.Sample, echo.Bytes, 2, echo.Costs{Fetch: 0.025, Decode: 0.005, Augment: 0.01, Step: 0.03}},
		{"without a factor", m, echo.Sample, echo.Bytes, 0, echo.Costs{Fetch: 0.05, Decode: 0.005, Augment: 0.01, Step: 0.03}},
		{"nothing", echo.Measured{}, echo.Sample, echo.Bytes, 1, echo.Costs{}},
	} {
		got := tt.m.Costs(tt.u, tt.k, tt.e)
		if !near(got.Fetch, tt.want.Fetch) || !near(got.Decode, tt.want.Decode) || !near(got.Augment, tt.want.Augment) || !near(got.Step, tt.want.Step) {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestSince(t *testing.T) {
	then := echo.Measured{Seconds: 1, Batches: 2, Fresh: 3, Emitted: 4, Fetched: 12, Fetching: 5, Starved: 6, Decode: 7, Augment: 8, Workers: 9, Waited: 10, Trainer: 11}
	now := echo.Measured{Seconds: 2, Batches: 4, Fresh: 6, Emitted: 8, Fetched: 24, Fetching: 10, Starved: 12, Decode: 14, Augment: 16, Workers: 9, Waited: 20, Trainer: 22}
	if got := now.Since(then); got != then {
		t.Errorf("%+v", got)
	}
}

func TestPropose(t *testing.T) {
	// 100 samples of a second each on the accelerator, that take r seconds to fetch.
	measured := func(r float64, waited bool) echo.Measured {
		m := echo.Measured{Seconds: 100 * max(r, 1), Batches: 10, Fresh: 100, Emitted: 100, Fetching: 100 * r, Trainer: 100, Decode: 10, Augment: 5, Workers: 1}
		if waited {
			m.Waited, m.Starved = 100*(r-1), 100*(r-1)
		}
		return m
	}
	slow := measured(4, true)
	with := func(change func(*echo.Measured)) echo.Measured {
		m := slow
		change(&m)
		return m
	}
	// Four emissions of each sample.
	four := echo.Measured{Seconds: 400, Batches: 10, Fresh: 100, Emitted: 400, Fetching: 150, Trainer: 400, Workers: 1}
	for _, tt := range []struct {
		name   string
		auto   *echo.Auto
		from   float64
		m      echo.Measured
		want   float64
		reason string
	}{
		{"up to R", &echo.Auto{}, 1, slow, 4, "R = 4"},
		{"nil", nil, 1, slow, 4, "R = 4"},
		{"rounded down", &echo.Auto{}, 1, measured(4.2, true), 4, "R = 4.2"},
		{"whole numbers", &echo.Auto{Quantum: 1}, 1, measured(4.9, true), 4, "R = 4.9"},
		{"bounded above", &echo.Auto{Max: 3}, 1, slow, 3, "R = 4"},
		{"bounded below", &echo.Auto{Min: 2, Max: 4}, 2, measured(0.5, false), 2, "close to the factor"},
		{"brought inside, from below", &echo.Auto{Min: 2, Max: 4}, 1, measured(0.5, false), 2, "R = 0.5"},
		{"brought inside, from above", &echo.Auto{Max: 3}, 8, with(func(m *echo.Measured) { m.Emitted, m.Trainer = 800, 800 }), 3, "R = 4"},
		{"close", &echo.Auto{}, 1, measured(1.14, true), 1, "close to the factor"},
		{"half the way", &echo.Auto{}, 1, measured(1.25, true), 1.25, "room for more copies"},
		{"a wide hysteresis", &echo.Auto{Change: 0.9}, 1, measured(1.8, true), 1, "close to the factor"},
		{"gradually down", &echo.Auto{}, 4, four, 2, "less than the copies take"},
		{"the trainer did not wait", &echo.Auto{}, 1, with(func(m *echo.Measured) { m.Waited = 1 }), 4 - 3, "hardly waited"},
		{"one batch", &echo.Auto{}, 1, with(func(m *echo.Measured) { m.Batches = 1 }), 1, "one batch"},
		{"batches not counted", &echo.Auto{}, 1, with(func(m *echo.Measured) { m.Batches = 0 }), 4, "R = 4"},
		{"no time", &echo.Auto{}, 3, echo.Measured{}, 3, "nothing was measured"},
		{"no trainer", &echo.Auto{}, 3, with(func(m *echo.Measured) { m.Trainer = 0 }), 3, "the trainer took no time"},
		{"nonsense", &echo.Auto{}, 3, with(func(m *echo.Measured) { m.Fetching = math.NaN() }), 3, "makes no sense"},
		{"negative", &echo.Auto{}, 3, with(func(m *echo.Measured) { m.Waited = -1 }), 3, "makes no sense"},
	} {
		p := tt.auto.Propose(tt.from, tt.m, echo.Sample, echo.Bytes)
		if p.Factor != tt.want || p.From != tt.from || !strings.Contains(p.Reason, tt.reason) {
			t.Errorf("%s: from %v to %v: %s; want %v: %s", tt.name, tt.from, p.Factor, p.Reason, tt.want, tt.reason)
		}
	}
}

func TestAutoCheck(t *testing.T) {
	for _, tt := range []struct {
		auto *echo.Auto
		want error
	}{
		{nil, nil},
		{&echo.Auto{}, nil},
		{&echo.Auto{Min: 1.5, Max: 6, Quantum: 0.5, Change: 0.3, Segment: 100}, nil},
		{&echo.Auto{Min: 20}, nil}, // and so no less at the most
		{&echo.Auto{Min: 3, Max: 2}, format.ErrUsage},
		{&echo.Auto{Min: 0.5}, format.ErrUsage},
		{&echo.Auto{Max: -1}, format.ErrUsage},
		{&echo.Auto{Max: 1e6}, format.ErrUsage},
		{&echo.Auto{Min: math.NaN()}, format.ErrUsage},
		{&echo.Auto{Max: math.Inf(1)}, format.ErrUsage},
		{&echo.Auto{Quantum: -1}, format.ErrUsage},
		{&echo.Auto{Quantum: math.NaN()}, format.ErrUsage},
		{&echo.Auto{Quantum: 1e-300}, format.ErrUsage},
		{&echo.Auto{Change: 1}, format.ErrUsage},
		{&echo.Auto{Change: -0.1}, format.ErrUsage},
		{&echo.Auto{Segment: -1}, format.ErrUsage},
	} {
		if err := tt.auto.Check(); err != tt.want && format.Sentinel(err) != tt.want {
			t.Errorf("%+v: %v, want %v", tt.auto, err, tt.want)
		}
	}
}
