package loader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &run{}, &run{}
		ctx, cancel := context.WithCancel(t.Context())
		g := &gate{limit: 100, urgent: -1}
		if err := g.take(ctx, 100, second, laterStep); err != nil {
			t.Fatal(err)
		}
		passed := make(chan *run, 10)
		ask := func(s *run) {
			go func() {
				if g.take(ctx, 60, s, laterStep) == nil {
					passed <- s
				}
			}()
			synctest.Wait()
		}
		ask(first)
		ask(second)
		if len(passed) != 0 {
			t.Error("passed over the limit")
		}
		g.starve(first, 1)
		g.await(0)
		synctest.Wait()
		if len(passed) != 0 {
			t.Error("passed for a step that nobody waits for yet")
		}
		g.await(1) // the next batch waits for it
		synctest.Wait()
		if len(passed) != 1 || <-passed != first || g.used != 160 {
			t.Errorf("%d passed, %d used", len(passed), g.used)
		}
		g.starve(nil, 1)
		ask(first)
		g.give(60)
		g.give(50)
		synctest.Wait()
		if len(passed) != 0 {
			t.Error("passed over the limit")
		}
		g.give(10) // 40 are used: room for one of the two
		synctest.Wait()
		if len(passed) != 1 || g.used != 100 {
			t.Errorf("%d passed, %d used", len(passed), g.used)
		}
		cancel()
		if err := g.take(ctx, 60, first, laterStep); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
