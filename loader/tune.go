package loader

import (
	"fmt"

	"shardtool/echo"
	"shardtool/reader/order"
)

// tune sets the factor of the segment that begins with the next step, if one
// does. What was measured is of the batches that the trainer has taken, which
// are up to Prefetch behind this step: those first measured had the factor before.
// So a stretch must be long beside that; one that is short is measured together
// with the next.
func (o *orderer) tune() error {
	l := o.p.l
	auto := l.o.Echo.Auto
	if auto == nil || !o.m.SegmentBegins() {
		return nil
	}
	at := o.m.State()
	if at.Epoch >= l.epochsEnd() {
		return nil
	}
	now := l.Stats().Measured
	m := now.Since(o.measured)
	if m.Batches < enoughForR+int64(l.o.Prefetch) {
		m = echo.Measured{}
	} else {
		o.measured = now
	}
	factor := l.factor(at)
	p := auto.Propose(factor.Float64(), m, l.plan.Unit, l.o.Echo.Keep)
	p.Epoch, p.Step = at.Epoch, at.Step
	if auto.Agree != nil {
		agreed, err := auto.Agree(o.p.ctx, p)
		if err == nil {
			err = auto.Accept(agreed)
		}
		if err != nil {
			return fmt.Errorf("agreeing on the echo factor of epoch %d, step %d: %w", p.Epoch, p.Step, err)
		}
		p.Factor = agreed
	}
	f, err := order.NewFactor(p.Factor)
	if err != nil {
		return err
	}
	if f != factor {
		l.o.Log.Info("the echo factor changes", "epoch", p.Epoch, "step", p.Step, "from", p.From, "to", p.Factor, "r", p.R, "reason", p.Reason)
	}
	return o.m.SetFactor(f)
}

// factor returns the factor that holds for the step after a state, where
// nothing changes it.
func (l *Loader) factor(at State) order.Factor {
	switch n := len(at.Factors); {
	case at.Next != 0:
		return at.Next
	case n > 0:
		return at.Factors[n-1].Factor
	}
	return l.plan.Factor
}
