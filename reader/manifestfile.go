package reader

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/format/index"
	"shardtool/reader/store"
)

// openManifest makes a dataset of a wids index. Nothing is asked about its
// shards: when one is opened, it has to have the size, and the ETag, that the
// manifest tells.
func openManifest(ctx context.Context, st store.Store, name string, o *Options) (*Dataset, error) {
	r, err := store.OpenStream(ctx, st, name)
	if err != nil {
		return nil, err
	}
	opts := o.orDefault()
	list, err := index.ReadDataset(r, &index.Options{Name: name, Limits: opts.Limits})
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, format.ReadError(err, format.In(name))
	}
	names := make([]string, len(list.Shards))
	for i := range list.Shards {
		names[i] = seenFrom(name, list.Base, list.Shards[i].URL)
	}
	s := newSet(st, names, o)
	s.listed = true
	for i := range list.Shards {
		s.about[i].entry.Store(listedEntry(names[i], &list.Shards[i], &opts))
	}
	return of(s), nil
}

// listedEntry is what a manifest tells of a shard. Its count is not that of
// options that leave samples out.
func listedEntry(name string, d *index.DatasetShard, o *Options) *Entry {
	e := &Entry{Name: name, Size: d.Size, ETag: d.ETag, Samples: d.Samples, From: "manifest"}
	if store.IsAddress(name) {
		e.Version = d.ETag
	}
	for _, f := range []Format{TFRecord, Tar} {
		if f.String() == d.Format {
			e.Format = f
		}
	}
	if k, ok := compress.ParseKind(d.Compression); ok {
		e.Compression = k
	}
	f := e.Format
	if f == AutoFormat {
		f = FormatOf(name)
	}
	if o.leavesOut(f) {
		e.Samples, e.From = format.Unknown, ""
	}
	return e
}

// seenFrom returns the name of a shard that a manifest names.
func seenFrom(manifest, base, url string) string {
	if strings.Contains(url, "://") || filepath.IsAbs(url) || strings.HasPrefix(url, "/") {
		return url
	}
	if base == "" {
		base = folderOf(manifest)
	}
	switch {
	case base == "":
		return url
	case strings.Contains(base, "://"):
		return strings.TrimSuffix(base, "/") + "/" + url
	}
	return filepath.Join(base, filepath.FromSlash(url))
}

// folderOf returns the folder of a file, or of an address without its query.
func folderOf(name string) string {
	if !strings.Contains(name, "://") {
		if dir := filepath.Dir(name); dir != "." && name != "-" {
			return dir
		}
		return ""
	}
	name, _, _ = strings.Cut(name, "?")
	return name[:strings.LastIndexByte(name, '/')]
}
