package main

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/store"
	"shardtool/shard"
)

// options returns what the input flags ask for, over the call's store.
func (c *call) options() (shard.Options, inputFlags, error) {
	f, err := readInputFlags(c.Context)
	if err != nil {
		return shard.Options{}, f, err
	}
	return shard.Options{
		Store: c.Store,
		Jobs:  f.Jobs,
		Read: reader.Options{
			Format:       word(f.Format, reader.AutoFormat, reader.Tar, reader.TFRecord),
			Type:         word(f.Type, reader.AutoType, reader.Example, reader.Sequence, reader.Raw),
			OnError:      f.OnError,
			OnDuplicate:  f.OnDuplicate,
			OnMissing:    word(f.OnMissing, format.MissingError, format.MissingSkip, format.MissingFill),
			KeyRaw:       f.KeyRaw,
			LastDot:      f.LastDot,
			Concatenated: f.Concatenated,
			Fields:       f.Fields,
		},
	}, f, nil
}

// inputs returns the shards that a verb reads, how, and the index that the one
// shard is held against, if one was named.
func (c *call) inputs() (names []string, o shard.Options, indexName string, err error) {
	if names, err = c.Paths(); err != nil {
		return nil, o, "", err
	}
	o, f, err := c.options()
	if err == nil && f.Index != "" && len(names) != 1 {
		err = usageError("--index is of one shard, and there are %d", len(names))
	}
	if err == nil && f.Index == "-" && names[0] == "-" {
		err = usageError("standard input (-) is the shard and its index, and can be read once")
	}
	return names, o, f.Index, err
}

// watched returns a store that shows on a bar how much of the named shards has
// been read; end takes the bar off. How much there is in all is asked for
// meanwhile: of remote shards that takes a while.
func (c *call) watched(what string, names []string) (st store.Store, end func()) {
	if !c.Watched() {
		return c.Store, func() {}
	}
	bar := c.Progress(what, format.Unknown, true)
	ctx, cancel := context.WithCancel(c.Context.Context)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if total, err := totalSize(ctx, c.Store, names); err == nil {
			bar.Of(total)
		}
	}()
	return store.Meter(c.Store, func(n int) { bar.Add(int64(n)) }), func() {
		cancel()
		<-asked
		bar.End()
	}
}

var errNoSize = errors.New("a size is not known")

// totalSize is the sum of the sizes of the named shards.
func totalSize(ctx context.Context, st store.Store, names []string) (int64, error) {
	var total atomic.Int64
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for _, name := range names {
		g.Go(func() error {
			e, err := store.Stat(within, st, name)
			if err == nil && e.Size < 0 {
				err = errNoSize
			}
			total.Add(e.Size)
			return err
		})
		if within.Err() != nil {
			break
		}
	}
	err := g.Wait()
	return total.Load(), err
}

// sayLosses returns a function that tells on standard error of the parts of
// inputs that were passed over: of the first of them, so that a shard full of
// faults does not bury everything else.
func (c *call) sayLosses() func(format.Loss) {
	const most = 100
	var told atomic.Int64
	return func(l format.Loss) {
		switch n := told.Add(1); {
		case n <= most:
			c.Warn("passed over: " + l.Err.Error())
		case n == most+1:
			c.Warn("more was passed over; verify tells of all faults")
		}
	}
}

// faultRow is an error in the output of verify and inspect.
type faultRow struct {
	Class   string  `json:"class"`
	Offset  *int64  `json:"offset"`
	Record  *int64  `json:"record"`
	Key     *string `json:"key"`
	Message string  `json:"message"`
}

func faultRows(errs []error) []faultRow {
	rows := make([]faultRow, len(errs))
	for i, err := range errs {
		rows[i] = newFaultRow(err)
	}
	return rows
}

func newFaultRow(err error) faultRow {
	row := faultRow{Class: format.Class(err), Message: err.Error()}
	if e := format.AsError(err); e != nil {
		row.Offset, row.Record = known(e.Offset), known(e.Record)
		if e.Key != "" {
			row.Key = &e.Key
		}
	}
	return row
}

// known returns nil for format.Unknown, which is null in JSON.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// formatWord returns nil, which is null in JSON, where the format was not found
// out.
func formatWord(f reader.Format) *string {
	if f == reader.AutoFormat {
		return nil
	}
	s := f.String()
	return &s
}
