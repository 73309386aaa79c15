package column

import (
	"errors"
	"fmt"

	"shardtool/augment"
	"shardtool/format"
	"shardtool/tensor"
)

// Func is a column that a function makes: dst, zeroed, is the sample's place in
// the batch, of that type and shape. It runs in the workers, several at once,
// so it may change nothing that is shared; the sample is lent until it returns.
// What it writes must follow from the sample and the draws alone, for the
// batches to be the same again. Its error makes the sample a bad one; one that
// is no *format.Error becomes ErrSchema.
//
// name enters the fingerprint of the plan, for the function cannot: another
// function is another name.
func Func(name string, dtype tensor.DType, shape tensor.Shape, f func(dst tensor.Dense, s *format.Sample, draws augment.Draws) error) Column {
	k := &funcKind{kind{FormDense, dtype, shape}, name, f}
	switch {
	case name == "":
		return Column{Kind: faulty{k.kind, usage("a column of a function without a name")}}
	case f == nil:
		return Column{Kind: faulty{k.kind, usage("the column %q without its function", name)}}
	}
	return Column{Kind: k}
}

type funcKind struct {
	kind
	name string
	f    func(tensor.Dense, *format.Sample, augment.Draws) error
}

func (k *funcKind) Reads() Reads { return ReadsSample }

func (k *funcKind) Describe() string {
	return fmt.Sprintf("func %q %v %v", k.name, k.dtype, k.shape)
}

func (k *funcKind) NewFiller(*format.Limits) Filler { return k }

// Fill implements Filler: the function keeps no state of ours.
func (k *funcKind) Fill(out *Slot, s *format.Sample, _ *format.Field, draws augment.Draws, _ *Meter) error {
	clear(out.Dense.Bytes())
	err := k.f(out.Dense, s, draws)
	var known *format.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return format.Errorf(format.ErrSchema, format.Nowhere, "column %q: %w", k.name, err)
}

// faulty is a kind that cannot be made.
type faulty struct {
	kind
	err error
}

func (k faulty) Form() Form                      { return k.form }
func (k faulty) Reads() Reads                    { return ReadsPlace }
func (k faulty) DType() tensor.DType             { return k.dtype }
func (k faulty) Shape() tensor.Shape             { return k.shape }
func (k faulty) Describe() string                { return k.err.Error() }
func (k faulty) Check() error                    { return k.err }
func (k faulty) NewFiller(*format.Limits) Filler { panic("column: a column that failed its check") }
