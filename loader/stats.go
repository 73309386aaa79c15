package loader

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"shardtool/echo"
	"shardtool/format"
	"shardtool/reader/order"
	"shardtool/reader/store"
)

// Stats is what a loader has done so far.
type Stats struct {
	Batches int64
	Fresh   int64            // samples delivered for the first time in their epoch
	Emitted int64            // all samples delivered, holes included
	Holes   int64            // of these, places of bad samples
	Bad     map[string]int64 // bad samples by class of their error, each counted once
	Work    Work             // for what was delivered
	Held    int64            // batches that the trainer holds now
	Stages  []Stage          // in the order of the flow
	Seconds float64          // since loading began

	Echo     Echo
	Measured echo.Measured // since loading began: what the costs of a sample follow from
}

// Echo is what the echo has done so far.
type Echo struct {
	echo.Account
	Now   float64          // the factor of the batch delivered last, 1 before the first
	R     float64          // as echo.Measured tells it: a factor up to it costs nothing; 0: not known yet
	Cache echo.CacheStats  // of samples kept decoded or augmented
	Spool store.SpoolStats // of shards kept, where they are not on a local disk
}

// Stage is the time that a stage of the pipeline has spent, in seconds summed
// over its workers. decode and augment are done by the same workers, whose
// waits are with decode.
type Stage struct {
	Name    string  `json:"name"`
	Busy    float64 `json:"busy_s"`
	WaitIn  float64 `json:"wait_in_s"`  // for something to do
	WaitOut float64 `json:"wait_out_s"` // for room to put what was done
	Workers int     `json:"workers"`
}

// The names of the stages. To fetch, waiting for the store is work. To
// deliver, room is the trainer's asking for the next batch.
const (
	StageFetch   = "fetch"
	StageOrder   = "order"
	StageDecode  = "decode"
	StageAugment = "augment"
	StageDeliver = "deliver"
)

// Stats returns a snapshot. It may be called at any time, from any goroutine.
func (l *Loader) Stats() Stats {
	l.tally.mu.Lock()
	s := Stats{
		Batches: l.tally.batches, Fresh: l.tally.account.Fresh, Emitted: l.tally.account.Emitted,
		Holes: l.tally.holes, Bad: make(map[string]int64), Work: l.tally.work, Held: l.held.Load(),
	}
	for class, n := range l.tally.byClass {
		s.Bad[class] = n
	}
	s.Echo.Account = l.tally.account
	s.Echo.Now = max(1, l.tally.factor.Float64())
	l.tally.mu.Unlock()
	s.Stages, s.Seconds = l.meters.snapshot()
	s.Measured = l.measured(&s)
	s.Echo.Spool = l.spools.stats()
	e := s.Echo.Now
	if l.o.Echo.Auto != nil { // of factors that changed, what came about
		e = max(1, s.Echo.Factor())
	}
	up, down := s.Measured.Costs(l.plan.Unit, l.o.Echo.Keep, e).Split(l.plan.Unit, l.o.Echo.Keep)
	if up > 0 && down > 0 {
		s.Echo.R = up / down
	}
	if l.keeper != nil {
		s.Echo.Cache = l.keeper.cache.Stats()
	}
	return s
}

// measured puts together what the costs of a sample follow from.
func (l *Loader) measured(s *Stats) echo.Measured {
	m := echo.Measured{
		Seconds: s.Seconds, Batches: s.Batches, Fresh: s.Fresh, Emitted: s.Emitted,
		Fetched: l.meters.fetched.Load(), Fetching: l.meters.fetching.total().Seconds(), Workers: l.o.Workers,
	}
	for _, stage := range s.Stages {
		switch stage.Name {
		case StageOrder:
			if !l.scatter {
				m.Starved = stage.WaitIn
			}
		case StageDecode:
			m.Decode = stage.Busy
			if l.scatter {
				m.Starved = stage.WaitIn / float64(stage.Workers)
			}
		case StageAugment:
			m.Augment = stage.Busy
		case StageDeliver:
			m.Waited, m.Trainer = stage.WaitIn, stage.WaitOut
		}
	}
	if auto := l.o.Echo.Auto; auto != nil && auto.StepTime != nil {
		if step := auto.StepTime().Seconds(); step > 0 {
			m.Trainer = step * float64(s.Batches)
		}
	}
	return m
}

// tally counts what was delivered.
type tally struct {
	mu      sync.Mutex
	batches int64
	account echo.Account
	ledger  echo.Ledger  // of what is repeated
	factor  order.Factor // of the batch delivered last
	holes   int64
	work    Work
	bads    int64
	byClass map[string]int64
	met     map[sampleKey]bool // the bad samples, of whatever epoch
	errs    []error
}

func (t *tally) batch(b *Batch, holes int) {
	work := b.Work()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.batches++
	if b.l.echoed {
		b.account = t.ledger.Add(b.Refs)
	} else {
		b.account.Add(b.Refs)
	}
	t.account.Merge(b.account)
	if n := len(b.state.Factors); n > 0 { // else the epoch is over, and had this one too
		t.factor = b.state.Factors[n-1].Factor
	}
	t.holes += int64(holes)
	t.work.Add(work)
}

// bad counts a bad sample, when it is met for the first time, which it reports,
// and returns the error where it is one too many.
func (t *tally) bad(s *slot, skip int64) (first bool, _ error) {
	if skip == 0 && !s.tolerated {
		return true, s.err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := sampleKey{shard: s.ref.Shard, index: s.ref.Index}
	if t.met[key] {
		return false, nil
	}
	if t.met == nil {
		t.met, t.byClass = make(map[sampleKey]bool), make(map[string]int64)
	}
	t.met[key] = true
	t.byClass[format.Class(s.err)]++
	if len(t.errs) < maxQuarantine {
		t.errs = append(t.errs, s.err)
	}
	if s.tolerated {
		return true, nil
	}
	if t.bads++; skip > 0 && t.bads > skip {
		var e *format.Error
		errors.As(s.err, &e)
		return true, format.Errorf(e.Err, e.Location, "bad sample %d, and %d may be skipped: %s", t.bads, skip, e.Detail)
	}
	return true, nil
}

// timer adds up durations, those that have begun and not ended included.
type timer struct {
	sum   atomic.Int64 // nanoseconds
	begun atomic.Int64 // of what is running, in nanoseconds since base, or 0
}

// base gives instants as integers, on the monotonic clock.
var base = time.Now()

func (t *timer) add(d time.Duration)   { t.sum.Add(int64(d)) }
func (t *timer) since(begin time.Time) { t.add(time.Since(begin)) }

// running marks the begin of something that may last, for one goroutine at a
// time; the function that it returns marks the end.
func (t *timer) running(begin time.Time) (end func()) {
	t.begun.Store(int64(begin.Sub(base)))
	return func() {
		t.begun.Store(0)
		t.since(begin)
	}
}

func (t *timer) total() time.Duration {
	sum := t.sum.Load()
	if begun := t.begun.Load(); begun != 0 {
		sum += int64(time.Since(base)) - begun
	}
	return time.Duration(sum)
}

// span adds up the time in which at least one of several is at work.
type span struct {
	mu    sync.Mutex
	n     int
	since time.Time
	sum   time.Duration
}

func (s *span) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n++; s.n == 1 {
		s.since = time.Now()
	}
}

func (s *span) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n--; s.n == 0 {
		s.sum += time.Since(s.since)
	}
}

func (s *span) total() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n > 0 {
		return s.sum + time.Since(s.since)
	}
	return s.sum
}

// meter is the time of one stage.
type meter struct {
	busy, in, out timer
	outOther      timer // waits for room of another kind than out
}

// waits is the time that the stage did not work.
func (m *meter) waits() time.Duration {
	return m.in.total() + m.out.total() + m.outOther.total()
}

// meters is the time of all stages.
type meters struct {
	fetch, order, decode, augment, deliver meter
	fetching                               span // of fetch: not waiting for room
	fetched                                atomic.Int64

	mu                sync.Mutex
	began, ended      time.Time
	fetchers, workers int
}

func (m *meters) begin(fetchers, workers int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began, m.fetchers, m.workers = time.Now(), fetchers, workers
}

func (m *meters) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = time.Now()
}

func (m *meters) snapshot() ([]Stage, float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var seconds float64
	switch {
	case m.began.IsZero():
	case m.ended.IsZero():
		seconds = time.Since(m.began).Seconds()
	default:
		seconds = m.ended.Sub(m.began).Seconds()
	}
	return []Stage{
		m.fetch.stage(StageFetch, m.fetchers),
		m.order.stage(StageOrder, 1),
		m.decode.stage(StageDecode, m.workers),
		m.augment.stage(StageAugment, m.workers),
		m.deliver.stage(StageDeliver, 1),
	}, seconds
}

func (m *meter) stage(name string, workers int) Stage {
	return Stage{
		Name: name, Busy: m.busy.total().Seconds(), WaitIn: m.in.total().Seconds(),
		WaitOut: (m.out.total() + m.outOther.total()).Seconds(), Workers: workers,
	}
}
