package shard

import (
	"context"
	"strings"

	"shardtool/format"
	"shardtool/format/index"
	"shardtool/reader"
	"shardtool/reader/store"
)

// SidecarSuffix is added to the name of a shard for that of its index.
const SidecarSuffix = ".idx"

// SidecarOf names the index beside a shard, or "" where there can be none:
// beside standard input, and beside an address with a query, which is mostly a
// signature for that one object.
func SidecarOf(name string) string {
	if name == "-" || isWeb(name) && strings.Contains(name, "?") {
		return ""
	}
	return name + SidecarSuffix
}

// CheckIndex holds an index against a shard. An index that does not fit is
// ErrStale; one of a compressed shard or of a pipe, into which offsets do not
// lead, is ErrUnsupported.
func CheckIndex(ctx context.Context, name, indexName string, o *Options) error {
	d := o.orDefault()
	if indexName == "" {
		return format.Errorf(format.ErrUsage, format.In(name), "no index stands beside it: name one")
	}
	x, err := readIndex(ctx, d.Store, indexName, d.Read.Limits)
	if err != nil {
		return err
	}
	return withShard(ctx, name, &d, func(s index.Shard, f reader.Format) error {
		if tar := x.Dialect != index.DALI; tar != (f == reader.Tar) {
			return format.Errorf(format.ErrStale, format.In(name), "the index %s is of the dialect %s, and the shard is %s", format.Redact(indexName), x.Dialect, f)
		}
		return x.Check(ctx, s)
	})
}

// checkSidecar holds a shard against the index named, or against the one beside
// it if there is one and the name is "".
func checkSidecar(ctx context.Context, o *Options, indexName, name string) error {
	if indexName == "" {
		if indexName = SidecarOf(name); indexName == "" {
			return nil
		}
		if _, err := store.Stat(ctx, o.Store, indexName); err != nil {
			return nil
		}
	}
	return CheckIndex(ctx, name, indexName, o)
}

func readIndex(ctx context.Context, st store.Store, name string, limits *format.Limits) (*index.Index, error) {
	r, err := store.OpenStream(ctx, st, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return index.Read(r, &index.Options{Name: name, Limits: limits})
}

// withShard opens a shard for reading at offsets.
func withShard(ctx context.Context, name string, o *Options, do func(index.Shard, reader.Format) error) error {
	s, err := reader.OpenStream(ctx, o.Store, name, &o.Read)
	if err != nil {
		return err
	}
	defer s.Close()
	ra, size, ok := s.ReaderAt(ctx)
	if !ok {
		return format.Errorf(format.ErrUnsupported, format.In(name), "an index is of offsets, and a shard that is compressed or a pipe cannot be read at offsets")
	}
	return do(index.Shard{Name: name, At: ra, Size: size}, s.Format)
}
