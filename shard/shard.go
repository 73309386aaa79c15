// Package shard is what can be done with whole shards: [Verify], [Inspect],
// [List], [Stats] of their images, [Repair], [Convert], [Extract], [Pack] and,
// with package format/index, making and checking indexes. The command shardtool
// is a thin face of this package.
//
// Reading goes through package reader, so that every operation takes both
// formats and all compressions. Writing goes through a [Sink]: what an
// operation writes appears under its name when all of it is complete, or not
// at all.
package shard

import (
	"context"
	"runtime"
	"sync"

	"shardtool/reader"
	"shardtool/reader/store"
)

// Options is what all operations share. The zero value and nil are good
// defaults.
type Options struct {
	Store store.Store    // where shards come from and go to; nil: the local file system
	Read  reader.Options // how they are read
	Jobs  int            // how many shards at a time; 0: one for each processor
}

func (o *Options) orDefault() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Store == nil {
		d.Store = &store.Local{}
	}
	if d.Jobs <= 0 {
		d.Jobs = runtime.GOMAXPROCS(0)
	}
	return d
}

// queueLength is how much of what inOrder emits for one number may wait.
const queueLength = 64

// inOrder runs do for the numbers 0 to n-1, jobs at a time, and passes what
// each emits to out in the order of the numbers, as if one ran after the
// other. What is emitted for a later number waits in a bounded queue for its
// turn. An error of out ends everything and is returned, as is the context's.
// emit reports whether to go on.
func inOrder[T any](ctx context.Context, n, jobs int, do func(ctx context.Context, i int, emit func(T) bool), out func(T) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()

	type task struct {
		i int
		q chan T
	}
	// Tasks are taken in order, so the one whose turn it is always runs; no
	// more queues are there than workers may fill.
	tasks, turns := make(chan task), make(chan chan T, min(jobs, n))
	workers.Go(func() {
		defer close(tasks)
		defer close(turns)
		for i := range n {
			t := task{i, make(chan T, queueLength)}
			select {
			case turns <- t.q:
			case <-ctx.Done():
				return
			}
			select {
			case tasks <- t:
			case <-ctx.Done():
				return
			}
		}
	})
	for range min(jobs, n) {
		workers.Go(func() {
			for t := range tasks {
				do(ctx, t.i, func(v T) bool {
					select {
					case t.q <- v:
						return true
					case <-ctx.Done():
						return false
					}
				})
				close(t.q)
			}
		})
	}
	for {
		select {
		case q, ok := <-turns:
			if !ok {
				return ctx.Err()
			}
			if err := drain(ctx, q, out); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// drain passes what comes through a queue to out until it is closed.
func drain[T any](ctx context.Context, q <-chan T, out func(T) error) error {
	for {
		select {
		case v, ok := <-q:
			if !ok {
				return nil
			}
			if err := out(v); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
