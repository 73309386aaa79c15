package loader

import (
	"context"

	"shardtool/format"
	"shardtool/reader"
)

// source is the data: named shards that can be read in order.
type source interface {
	names() []string
	open(ctx context.Context, shard int) (samples, error)
}

// samples reads one shard. Next lends a sample until the next call and ends
// with io.EOF.
type samples interface {
	Next() (*format.Sample, error)
	Close() error
}

type datasetSource struct{ *reader.Dataset }

func (d datasetSource) names() []string { return d.Shards() }

func (d datasetSource) open(ctx context.Context, shard int) (samples, error) {
	s, err := d.Shard(ctx, shard)
	if err != nil {
		return nil, err
	}
	return s, nil
}
