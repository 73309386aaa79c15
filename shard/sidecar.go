package shard

import (
	"context"

	"shardtool/reader"
)

func checkSidecar(context.Context, *Options, string, *reader.Shard) error { return nil }
