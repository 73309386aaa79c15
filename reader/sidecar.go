package reader

import (
	"context"
	"errors"
	"os"
	"path"
	"strings"

	"shardtool/format"
	"shardtool/format/index"
	"shardtool/reader/store"
)

// indexSuffix is added to the name of a shard for that of its index.
const indexSuffix = ".idx"

// indexNames returns where the index of a shard may stand, and whether it has
// to.
func (o *Options) indexNames(name string) (names []string, must bool) {
	switch {
	case o.Index == "-":
		return nil, false
	case o.Index != "":
		return []string{expandIndex(o.Index, name)}, true
	case name == "-" || strings.Contains(name, "://") && strings.Contains(name, "?"):
		return nil, false // a pipe, or a signed address, which is of one object
	}
	names = []string{name + indexSuffix}
	if ext := path.Ext(strings.ReplaceAll(name, `\`, "/")); ext != "" {
		names = append(names, strings.TrimSuffix(name, ext)+indexSuffix)
	}
	return names, false
}

// expandIndex puts the name of a shard into a pattern of Options.Index.
func expandIndex(pattern, name string) string {
	at := strings.LastIndexAny(name, `/\`) + 1
	base := name[at:]
	dir := strings.TrimRight(name[:at], `/\`)
	switch {
	case at == 0:
		dir = "."
	case dir == "":
		dir = name[:1]
	}
	return strings.NewReplacer(
		"{name}", name, "{dir}", dir, "{base}", base, "{stem}", strings.TrimSuffix(base, path.Ext(base)),
	).Replace(pattern)
}

// bySidecar counts by an index. One that has to be there and does not fit is an
// error; another is a warning. Where there is none, found.samples is
// format.Unknown.
func (s *set) bySidecar(ctx context.Context, e *Entry, file localFile) (*found, error) {
	f := &found{samples: format.Unknown}
	names, must := s.opts.indexNames(e.Name)
	if s.opts.OnError != format.Stop || s.opts.leavesOut(Tar) || s.opts.Concatenated || s.opts.KeyRaw {
		names = nil // an index counts the samples of other options
	}
	for _, n := range names {
		o, err := s.besideOf(ctx, n)
		if !must && errors.Is(err, format.ErrNotFound) {
			continue
		}
		var p *Places
		if err == nil {
			p, err = s.readSidecar(ctx, e, n, file, o)
		}
		switch {
		case err == nil:
			f.samples, f.format, f.from = int64(p.Len()), p.format, "sidecar"
			f.places, f.offsets = p, true
			return f, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case must:
			return nil, format.ReadError(err, format.In(n))
		case errors.Is(err, format.ErrWrongFormat):
			// Something else has that name.
		default:
			f.warnings = append(f.warnings, s.warn("the index "+format.Redact(n)+" is not used: "+err.Error()))
		}
	}
	return f, nil
}

// besideOf describes an index, without asking where a listing tells.
func (s *set) besideOf(ctx context.Context, name string) (store.Entry, error) {
	if store.IsAddress(name) && s.opts.Index == "" && !s.beside.Load().may(name) {
		return store.Entry{}, format.Errorf(format.ErrNotFound, format.In(name), "it was not listed")
	}
	return store.Stat(ctx, s.st, name)
}

// readSidecar reads an index and holds it against its shard: by its first and
// last samples, and all of it where the shard was changed after the index.
func (s *set) readSidecar(ctx context.Context, e *Entry, name string, file localFile, o store.Entry) (*Places, error) {
	r, err := store.OpenStream(ctx, s.st, name)
	if err != nil {
		return nil, err
	}
	x, err := index.Read(r, &index.Options{Name: name, Limits: s.opts.Limits})
	if e := r.Close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, err
	}
	p, err := s.placesIn(x, e, name)
	if err != nil {
		return nil, err
	}
	object, err := store.OpenEntry(ctx, s.st, e.object())
	if err != nil {
		return nil, err
	}
	defer object.Close()
	in := index.Shard{Name: e.Name, At: store.ReaderAt(ctx, object), Size: e.Size}
	if older(o, file) {
		err = x.Check(ctx, in)
	} else {
		err = checkEnds(x, in)
	}
	if err != nil && errors.Is(err, format.ErrStale) {
		return nil, s.stale(e, name, err)
	}
	return p, err
}

// older reports whether an index was written before its shard was changed.
func older(o store.Entry, file localFile) bool {
	if file.path == "" || store.IsAddress(o.Name) {
		return false
	}
	st, err := os.Stat(strings.TrimPrefix(o.Name, "file://"))
	return err == nil && st.ModTime().Before(file.mod)
}

// checkEnds holds the first and the last sample, and what follows it, against
// the shard.
func checkEnds(x *index.Index, in index.Shard) error {
	n := x.Len()
	for _, i := range []int{0, n - 1} {
		if n > 0 {
			if err := x.CheckEntry(in, i); err != nil {
				return err
			}
		}
	}
	return x.CheckRest(in)
}

func (s *set) stale(e *Entry, name string, err error) error {
	at := format.In(e.Name)
	detail := err.Error()
	if f := format.AsError(err); f != nil {
		at, detail = f.Location, f.Detail
	}
	return format.Errorf(format.ErrStale, at, "its index %s: %s", format.Redact(name), detail)
}

// placesIn makes places of an index.
func (s *set) placesIn(x *index.Index, e *Entry, name string) (*Places, error) {
	p := &Places{format: Tar}
	if x.Dialect == index.DALI {
		p.format = TFRecord
	}
	at := format.In(e.Name)
	name = format.Redact(name)
	if want := s.opts.Format; want != AutoFormat && want != p.format {
		return nil, format.Errorf(format.ErrStale, at, "its index %s is of a %s", name, p.format)
	}
	p.offsets = make([]int64, 0, x.Len()+1)
	end := int64(0)
	for i := range x.Len() {
		sample := x.At(i)
		switch {
		case sample.Offset >= 0:
			if x.Dialect == index.DALI && sample.Offset != end {
				return nil, format.Errorf(format.ErrStale, at, "its index %s leaves out the bytes from %d to %d", name, end, sample.Offset)
			}
			p.offsets = append(p.offsets, sample.Offset)
			end = sample.Offset + sample.Size
		default:
			// Only the data of fields is told. What stands between samples,
			// headers of the next one above all, goes to the next.
			if !s.splitsLike(sample.Fields) {
				return nil, format.Errorf(format.ErrStale, at, "its index %s takes other parts of names for fields", name)
			}
			p.offsets = append(p.offsets, end)
			last := sample.Fields[len(sample.Fields)-1]
			end = min((last.Offset+last.Size+tarBlock-1)&^(tarBlock-1), max(e.Size, last.Offset+last.Size))
		}
	}
	if end > e.Size {
		return nil, format.Errorf(format.ErrStale, at, "its index %s ends at %d, and the shard has %d bytes", name, end, e.Size)
	}
	p.offsets = append(p.offsets, end)
	return p, nil
}

// splitsLike reports whether an index divides names as the options do, as far
// as it tells names.
func (s *set) splitsLike(fields []index.Field) bool {
	for i := range fields {
		f := &fields[i]
		if f.Member == "" {
			return !s.opts.LastDot
		}
		base := f.Member[strings.LastIndexByte(f.Member, '/')+1:]
		dot := strings.IndexByte(base, '.')
		if s.opts.LastDot {
			dot = strings.LastIndexByte(base, '.')
		}
		if base[dot+1:] != f.Name {
			return false
		}
	}
	return true
}
