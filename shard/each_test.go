package shard

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

func TestInOrderKeepsOrderAndRunsAll(t *testing.T) {
	for _, jobs := range []int{1, 2, 8} {
		var got []int
		err := inOrder(t.Context(), 20, jobs, func(_ context.Context, i int, emit func(int) bool) {
			for k := range 1000 { // more than a queue holds
				emit(i*1000 + k)
			}
		}, func(v int) error {
			got = append(got, v)
			return nil
		})
		if err != nil || len(got) != 20_000 {
			t.Fatalf("jobs %d: %d values, error %v", jobs, len(got), err)
		}
		for i, v := range got {
			if v != i {
				t.Fatalf("jobs %d: value %d at place %d", jobs, v, i)
			}
		}
	}
}

func TestInOrderEndsOnErrorAndCancellation(t *testing.T) {
	boom := errors.New("boom")
	var running atomic.Int64
	do := func(_ context.Context, i int, emit func(int) bool) {
		running.Add(1)
		defer running.Add(-1)
		for emit(i) { // without end, until told to stop
		}
	}
	n := 0
	err := inOrder(t.Context(), 5, 3, do, func(int) error {
		if n++; n == 10 {
			return boom
		}
		return nil
	})
	if err != boom || running.Load() != 0 {
		t.Errorf("error %v, want boom; %d still running", err, running.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	n = 0
	err = inOrder(ctx, 5, 3, do, func(int) error {
		if n++; n == 10 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || running.Load() != 0 {
		t.Errorf("error %v, want cancellation; %d still running", err, running.Load())
	}
}
