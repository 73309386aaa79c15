package shard

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"shardtool/format"
	"shardtool/format/index"
	"shardtool/format/tarshard"
	"shardtool/reader"
	"shardtool/reader/store"
)

// IndexOptions says what indexes are written.
type IndexOptions struct {
	Options
	Dialect *index.Dialect // nil: DALI for TFRecord, WDS for tar
	Output  string         // name of the index of a single shard; "": that of the shard with SidecarSuffix
	Force   bool           // replace existing files
}

// Indexed describes an index that was written.
type Indexed struct {
	Shard   string
	Name    string // of the index
	Dialect index.Dialect
	Samples int64
	Links   int64 // members left out for being links
}

// Index writes an index for each shard and passes what it wrote to out, in the
// order of names. The indexes appear together when all are complete. A faulty
// shard has none: the error says what is wrong with it.
func Index(ctx context.Context, names []string, o *IndexOptions) ([]Indexed, error) {
	var d IndexOptions
	if o != nil {
		d = *o
	}
	d.Options = d.Options.orDefault()
	if d.Output != "" && len(names) != 1 {
		return nil, format.Errorf(format.ErrUsage, format.In(d.Output), "one index is of one shard, and there are %d", len(names))
	}
	sink := NewSink(ctx, &SinkOptions{Store: d.Store, Force: d.Force})
	defer sink.Abort()
	type item struct {
		done Indexed
		err  error
	}
	var all []Indexed
	err := inOrder(ctx, len(names), d.Jobs, func(ctx context.Context, i int, emit func(item) bool) {
		done, err := d.one(ctx, sink, names[i])
		emit(item{done, err})
	}, func(it item) error {
		all = append(all, it.done)
		return it.err
	})
	if err != nil {
		return nil, err
	}
	return all, sink.Commit()
}

func (o *IndexOptions) one(ctx context.Context, sink *Sink, name string) (Indexed, error) {
	done := Indexed{Shard: name, Name: o.Output}
	if done.Name == "" {
		if done.Name = SidecarOf(name); done.Name == "" {
			return done, format.Errorf(format.ErrUsage, format.In(name), "no index can stand beside it: say where to write it")
		}
	}
	err := withShard(ctx, name, &o.Options, func(s index.Shard, f reader.Format) error {
		x, err := buildIndex(s, f, &o.Read)
		if err != nil {
			return err
		}
		done.Dialect, done.Samples, done.Links = x.Dialect, int64(x.Len()), x.Links
		if o.Dialect != nil {
			done.Dialect = *o.Dialect
		}
		out, err := sink.CreateLast(done.Name, 0)
		if err != nil {
			return err
		}
		if err := x.Write(out, done.Dialect); err != nil {
			return format.ReadError(err, format.In(name))
		}
		return out.Close()
	})
	return done, err
}

func buildIndex(s index.Shard, f reader.Format, o *reader.Options) (*index.Index, error) {
	if f == reader.TFRecord {
		return index.OfTFRecord(s, o.Limits)
	}
	return index.OfTar(s, &tarshard.Options{Limits: o.Limits, KeyRaw: o.KeyRaw, LastDot: o.LastDot, Concatenated: o.Concatenated})
}

// IndexDataset writes a wids index of all shards under the name out: where each
// is, relative to the index where it can be, how many samples and bytes it has,
// and the MD5 of its bytes.
func IndexDataset(ctx context.Context, names []string, out string, o *IndexOptions) (*index.Dataset, error) {
	var d IndexOptions
	if o != nil {
		d = *o
	}
	d.Options = d.Options.orDefault()
	type item struct {
		shard index.DatasetShard
		err   error
	}
	set := &index.Dataset{}
	err := inOrder(ctx, len(names), d.Jobs, func(ctx context.Context, i int, emit func(item) bool) {
		s, err := d.count(ctx, names[i])
		s.URL = relative(names[i], out)
		emit(item{s, err})
	}, func(it item) error {
		set.Shards = append(set.Shards, it.shard)
		return it.err
	})
	if err != nil {
		return nil, err
	}
	sink := NewSink(ctx, &SinkOptions{Store: d.Store, Force: d.Force})
	defer sink.Abort()
	w, err := sink.CreateLast(out, 0)
	if err != nil {
		return nil, err
	}
	if err := set.Write(w); err != nil {
		return nil, err
	}
	return set, sink.Commit()
}

// WriteManifest writes a wids index of all shards under the name out, as
// IndexDataset does, but without reading more of them than counting their
// samples takes: indexes that stand beside them and fit, headers, and all of a
// shard only where it is compressed or remote. Instead of MD5s it tells format
// and compression, and the ETags of objects that have one, which readers of
// wids pass over. reader.Open takes it. What is worth a warning is returned,
// too.
func WriteManifest(ctx context.Context, names []string, out string, o *IndexOptions) (set *index.Dataset, warnings []string, err error) {
	var d IndexOptions
	if o != nil {
		d = *o
	}
	d.Options = d.Options.orDefault()
	read := d.Read
	read.Scan, read.CacheDir = reader.ScanAlways, "-"
	m, err := reader.New(d.Store, names, &read).Manifest(ctx)
	if err != nil {
		return nil, nil, err
	}
	set = &index.Dataset{}
	for i := range m.Shards {
		e := &m.Shards[i]
		if e.Samples < 0 {
			return nil, nil, format.Errorf(format.ErrUnsupported, format.In(e.Name), "a pipe can be read once, and has no place in a manifest")
		}
		set.Shards = append(set.Shards, index.DatasetShard{
			URL: relative(e.Name, out), Samples: e.Samples, Size: e.Size, ETag: e.ETag, Format: e.Format.String(), Compression: e.Compression.String(),
		})
	}
	sink := NewSink(ctx, &SinkOptions{Store: d.Store, Force: d.Force})
	defer sink.Abort()
	w, err := sink.CreateLast(out, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := set.Write(w); err != nil {
		return nil, nil, err
	}
	if err := w.Close(); err != nil {
		return nil, nil, err
	}
	return set, m.Warnings, sink.Commit()
}

// relative names a shard as seen from the folder of its index, where both are
// in one store and there is such a name.
func relative(name, out string) string {
	scheme := func(s string) string {
		i := strings.Index(s, "://")
		return s[:i+1]
	}
	switch {
	case out == "-" || scheme(name) != scheme(out):
		return name
	case scheme(out) != "":
		dir := out[:strings.LastIndexByte(out, '/')+1]
		return strings.TrimPrefix(name, dir)
	case filepath.IsAbs(name) != filepath.IsAbs(out):
		return name
	}
	rest, err := filepath.Rel(filepath.Dir(out), name)
	if err != nil {
		return name
	}
	return filepath.ToSlash(rest)
}

// count reads a shard to its end.
func (o *IndexOptions) count(ctx context.Context, name string) (index.DatasetShard, error) {
	s := index.DatasetShard{Size: format.Unknown}
	read := o.Read
	read.HeadersOnly, read.Type = true, reader.Raw
	in, err := reader.OpenShard(ctx, o.Store, name, &read)
	if err != nil {
		return s, err
	}
	defer in.Close()
	s.Size = in.Size()
	for {
		_, err := in.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			return s, err
		}
		s.Samples++
	}
	if s.Size == format.Unknown {
		s.Size = in.BytesRead()
		return s, nil // a pipe is read once
	}
	s.MD5, err = md5Of(ctx, o.Store, name)
	return s, err
}

func md5Of(ctx context.Context, st store.Store, name string) (string, error) {
	r, err := store.OpenStream(ctx, st, name)
	if err != nil {
		return "", err
	}
	sum := md5.New()
	_, err = io.CopyBuffer(struct{ io.Writer }{sum}, r, make([]byte, 1<<20))
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, r.Close())
}
