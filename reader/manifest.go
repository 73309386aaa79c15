package reader

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/reader/store"
)

// Manifest is what is known of the shards of a dataset.
type Manifest struct {
	Shards   []Entry
	Skipped  int      // shards that are not there, under OnMissingShard: MissingSkip
	Warnings []string // such as of an index that does not fit its shard
}

// Entry is what is known of one shard.
type Entry struct {
	Name    string
	Size    int64  // in bytes; format.Unknown for a pipe, and where a manifest file does not tell it
	Version string // as the store tells it: it differs when the shard does
	ETag    string // Version, if that goes by the content and not by when the shard was written; else ""

	Samples     int64         // format.Unknown if nothing tells it
	Format      Format        // AutoFormat if nobody has looked; then Compression is not known either
	Type        Type          // AutoType if it is a tar, or nobody has looked
	Compression compress.Kind // of the whole shard
	Offsets     bool          // Places of its samples are known; where a manifest file told Samples, only asking for them tells
	From        string        // what told Samples: "manifest", "cache", "sidecar", "scan", or ""
	Missing     bool          // the shard is not there, and has no samples
	Fault       error         // what is wrong behind the last of Samples, under KeepFaulty
}

// Samples returns the number of samples of all shards, format.Unknown if that
// of one is not known.
func (m *Manifest) Samples() int64 {
	var n int64
	for i := range m.Shards {
		if m.Shards[i].Samples < 0 {
			return format.Unknown
		}
		n += m.Shards[i].Samples
	}
	return n
}

// Manifest finds out sizes, versions and counts of all shards, as the package
// comment says, several shards at a time. It is made once and kept; the
// dataset's opening of shards holds them to it. A shard that is not there is
// ErrNotFound unless OnMissingShard says otherwise.
func (d *Dataset) Manifest(ctx context.Context) (*Manifest, error) {
	if len(d.sets) == 1 {
		return d.sets[0].manifest(ctx)
	}
	all := &Manifest{Shards: make([]Entry, 0, len(d.names))}
	for _, s := range d.sets {
		m, err := s.manifest(ctx)
		if err != nil {
			return nil, err
		}
		all.Shards = append(all.Shards, m.Shards...)
		all.Skipped += m.Skipped
		all.Warnings = append(all.Warnings, m.Warnings...)
	}
	return all, nil
}

func (s *set) manifest(ctx context.Context) (*Manifest, error) {
	select {
	case s.making <- struct{}{}:
		defer func() { <-s.making }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if m := s.made.Load(); m != nil {
		return m, nil
	}
	warnings := make([][]string, len(s.names))
	if !s.listed {
		if err := s.describe(ctx); err != nil {
			return nil, err
		}
		if err := s.count(ctx, warnings); err != nil {
			return nil, err
		}
	}
	m := &Manifest{Shards: make([]Entry, len(s.names))}
	for i := range s.names {
		m.Shards[i] = *s.about[s.same(i)].entry.Load()
		if m.Shards[i].Missing {
			m.Skipped++
		}
		m.Warnings = append(m.Warnings, warnings[i]...)
	}
	if err := s.counted().failed(); err != nil {
		m.Warnings = append(m.Warnings, s.warn("the counts of samples are not kept: "+err.Error()))
	}
	s.made.Store(m)
	return m, nil
}

// warn tells the log what goes into the warnings.
func (s *set) warn(text string) string {
	if s.opts.Log != nil {
		s.opts.Log.Warn(text)
	}
	return text
}

// distinct returns the shards of which each name is the first.
func (s *set) distinct() []int {
	var all []int
	for i := range s.names {
		if s.same(i) == i {
			all = append(all, i)
		}
	}
	return all
}

// How many shards are looked at together: the network is waited for, and so
// may a disk be.
const (
	remoteJobs = 32
	localJobs  = 4 // for each processor
)

func (s *set) jobs() int {
	for _, n := range s.names {
		if store.IsAddress(n) {
			return remoteJobs
		}
	}
	return localJobs * runtime.GOMAXPROCS(0)
}

// together runs do for the shards given, several at a time. The error is that
// of the first shard, in their order, that has one.
func (s *set) together(ctx context.Context, shards []int, do func(ctx context.Context, i int) error) error {
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(s.jobs())
	var mu sync.Mutex
	var first error
	at := len(s.names)
	for _, i := range shards {
		g.Go(func() error {
			if within.Err() != nil {
				return within.Err()
			}
			err := do(within, i)
			if err != nil && within.Err() == nil {
				mu.Lock()
				if i < at {
					at, first = i, err
				}
				mu.Unlock()
			}
			return err
		})
	}
	err := g.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if first != nil {
		return first
	}
	return err
}

// count finds out how many samples the shards have.
func (s *set) count(ctx context.Context, warnings [][]string) error {
	shards := s.distinct()
	var mu sync.Mutex
	done := 0
	return s.together(ctx, shards, func(ctx context.Context, i int) error {
		w, err := s.learn(ctx, i)
		warnings[i] = w
		if err == nil && s.opts.Progress != nil {
			mu.Lock()
			done++
			s.opts.Progress(done, len(shards))
			mu.Unlock()
		}
		return err
	})
}

// learn completes the entry of a shard.
func (s *set) learn(ctx context.Context, i int) (warnings []string, err error) {
	unlock, err := s.lock(ctx, i)
	if err != nil {
		return nil, err
	}
	defer unlock()
	a := &s.about[i]
	e := *a.entry.Load()
	if e.Missing {
		return nil, nil
	}
	f, err := s.find(ctx, i, &e, false)
	if err != nil {
		return nil, err
	}
	if f.fault != nil {
		if !s.opts.KeepFaulty {
			return nil, waysOut(f.fault)
		}
		f.warnings = append(f.warnings, s.warnFaulty(f))
	}
	if f.places != nil && !f.kept {
		a.places.Store(f.places) // nothing would give them again
	}
	f.tell(&e)
	if e.Type != AutoType {
		s.settle(i, e.Type)
	}
	a.entry.Store(&e)
	return f.warnings, nil
}

// waysOut adds to a fault, for which a shard is not counted, what can be done.
func waysOut(fault error) error {
	e, ok := fault.(*format.Error)
	if !ok {
		return fault
	}
	c := *e
	switch e.Err {
	case format.ErrWrongFormat, format.ErrUnsupported: // no part of it can be read
		c.Detail += "; reader.Options.KeepFaulty takes it for a shard without samples"
	default:
		c.Detail += "; shardtool repair keeps the samples that are sound, reader.Options.KeepFaulty reads those before the fault, and OnError: Resync passes over what is damaged"
	}
	return &c
}

// warnFaulty says what is left of a faulty shard.
func (s *set) warnFaulty(f *found) string {
	what := "none of its samples is read"
	switch {
	case f.samples == 1:
		what = "only the sample before it is read"
	case f.samples > 1:
		what = fmt.Sprintf("only the %d samples before it are read", f.samples)
	}
	return s.warn(f.fault.Error() + "; " + what)
}

// newEntry is what a store tells of a shard.
func newEntry(o store.Entry) *Entry {
	e := &Entry{Name: o.Name, Size: o.Size, Version: o.Version, Samples: format.Unknown}
	if store.IsAddress(o.Name) {
		e.ETag = o.Version
	}
	return e
}

func (e *Entry) object() store.Entry {
	return store.Entry{Name: e.Name, Size: e.Size, Version: e.Version}
}
