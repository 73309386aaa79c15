package reader

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/reader/store"
)

// found is what was found out about a shard.
type found struct {
	samples     int64
	format      Format
	typ         Type
	compression compress.Kind
	offsets     bool
	places      *Places // nil where they are not known, or not wanted
	from        string
	kept        bool // places can be had again from the cache
	fault       error
	warnings    []string
}

// tell adds what was found to an entry.
func (f *found) tell(e *Entry) {
	e.Samples, e.Format, e.Type, e.Compression = f.samples, f.format, f.typ, f.compression
	e.Offsets, e.From, e.Fault = f.offsets, f.from, f.fault
}

// find finds out about a shard that has been described. Places may be left out
// of the answer if they are not wanted and can be had again.
func (s *set) find(ctx context.Context, i int, e *Entry, want bool) (*found, error) {
	if e.Size < 0 {
		return &found{samples: format.Unknown}, nil // a pipe is read once
	}
	cache := s.counted()
	file := fileOf(ctx, e)
	id, ok := cache.identify(e, file, &s.opts)
	if _, must := s.opts.indexNames(e.Name); ok && !must {
		if f := cache.load(id, e, want); f != nil {
			return f, nil
		}
	}
	f, err := s.bySidecar(ctx, e, file)
	if err != nil {
		return nil, err
	}
	if f.samples < 0 {
		warnings := f.warnings
		if f, err = s.scan(ctx, i, e); err != nil {
			return nil, err
		}
		f.warnings = warnings
	}
	if t, ok := s.settled(i); ok && f.format == TFRecord {
		f.typ = t
	}
	// An index that is wrong in its midst would outlive its correction here.
	if ok && f.from == "scan" && f.samples >= 0 && f.fault == nil && !file.fresh() {
		f.kept = cache.save(ctx, id, e, f)
	}
	return f, nil
}

// places finds out where the samples of a shard stand.
func (s *set) places(ctx context.Context, i int) (*Places, error) {
	i = s.same(i)
	a := &s.about[i]
	if p := a.places.Load(); p != nil {
		_, err := s.typeOf(ctx, i, p.format) // places that a manifest found come without
		return p, err
	}
	if err := a.none.Load(); err != nil {
		return nil, *err
	}
	unlock, err := s.lock(ctx, i)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if p := a.places.Load(); p != nil {
		return p, nil
	}
	p, err := s.findPlaces(ctx, i)
	switch {
	case err == nil:
		a.places.Store(p)
	case !broken(err):
		a.none.Store(&err)
	}
	return p, err
}

func (s *set) findPlaces(ctx context.Context, i int) (*Places, error) {
	e, err := s.described(ctx, i)
	if err != nil {
		return nil, err
	}
	if e.Missing {
		return &Places{}, nil
	}
	if e.Compression != compress.None { // as a manifest file tells, or a scan did
		return nil, s.nowhere(i, e, &found{format: e.Format, compression: e.Compression})
	}
	f, err := s.find(ctx, i, e, true)
	if err != nil {
		return nil, err
	}
	switch {
	case f.places == nil && f.fault != nil && f.samples <= 0:
		return nil, f.fault
	case f.places == nil:
		return nil, s.nowhere(i, e, f)
	case f.fault != nil && !s.opts.KeepFaulty:
		return nil, waysOut(f.fault)
	case e.Samples >= 0 && e.Samples != f.samples:
		return nil, format.Errorf(format.ErrStale, format.In(e.Name), "it has %d samples by its %s, and %d by its %s", f.samples, f.from, e.Samples, e.From)
	}
	_, err = s.typeOf(ctx, i, f.places.format)
	return f.places, err
}

// nowhere says why the places of samples are not known, and what helps.
func (s *set) nowhere(i int, e *Entry, f *found) error {
	at := format.In(e.Name)
	f0 := f.format
	if f0 == AutoFormat {
		f0 = FormatOf(e.Name)
	}
	switch {
	case e.Size < 0:
		return format.Errorf(format.ErrUnsupported, at, "samples of a pipe cannot be read out of order")
	case f.compression != compress.None:
		return format.Errorf(format.ErrUnsupported, at, "samples of a shard that is compressed (%s) cannot be read out of order: convert it to one that is not", f.compression)
	case s.opts.leavesOut(f0):
		return format.Errorf(format.ErrUnsupported, at, "where the samples stand is not known if some are to be left out")
	}
	return format.Errorf(format.ErrUnsupported, at, "where its samples stand is not known: index it, by `shardtool index %s`", format.Redact(e.Name))
}

// described returns the entry of a shard, which it asks the store for if the
// manifest was not made, or came from a file that does not tell the version.
func (s *set) described(ctx context.Context, i int) (*Entry, error) {
	a := &s.about[i]
	e := a.entry.Load()
	if e != nil && (e.Missing || e.Version != "" || e.Size < 0 && !s.listed) {
		return e, nil
	}
	o, err := store.Stat(ctx, s.st, s.names[i])
	if err != nil {
		if e == nil && s.skipsMissing(err) {
			return &Entry{Name: s.names[i], Missing: true}, nil
		}
		return nil, err
	}
	o.Name = s.names[i]
	now := newEntry(o)
	if e != nil {
		if err := e.object().Unchanged(o); err != nil {
			return nil, err
		}
		full := *e
		full.Size, full.Version = now.Size, now.Version
		now = &full
	}
	a.entry.Store(now)
	return now, nil
}

// localFile is the file that a shard is, where it is one of this machine
// whatever store it is read through.
type localFile struct {
	path string // absolute; "" if it is none
	mod  time.Time
}

// fileOf looks whether the file system has the very shard that a store
// described.
func fileOf(ctx context.Context, e *Entry) localFile {
	if store.IsAddress(e.Name) || e.Version == "" || e.Name == "-" {
		return localFile{}
	}
	o, err := (&store.Local{}).Stat(ctx, e.Name)
	if err != nil || o.Size != e.Size || o.Version != e.Version {
		return localFile{}
	}
	path, err := filepath.Abs(strings.TrimPrefix(e.Name, "file://"))
	if err != nil {
		return localFile{}
	}
	st, err := os.Stat(path)
	if err != nil {
		return localFile{}
	}
	return localFile{path, st.ModTime()}
}

// settling is for how long a file may be changed again without another time of
// change: clocks of file systems are coarse.
const settling = 2 * time.Second

// fresh reports whether the file was changed so lately that its time does not
// yet tell its content.
func (f localFile) fresh() bool { return f.path != "" && time.Since(f.mod) < settling }
