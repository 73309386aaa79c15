package column

import (
	"fmt"

	"shardtool/augment"
	"shardtool/format"
	"shardtool/tensor"
)

// Ragged is a column of lists of any length: the values of all samples one
// after the other, and where each sample's begin. inner are the axes of a value,
// such as the 4 of a box; none: a number.
func Ragged(field string, dtype tensor.DType, inner ...int) Column {
	return Column{Field: field, Kind: &raggedKind{kind{FormRagged, dtype, inner}}}
}

type raggedKind struct{ kind }

func (k *raggedKind) Describe() string { return fmt.Sprintf("ragged %v %v", k.dtype, k.shape) }

func (k *raggedKind) NewFiller(*format.Limits) Filler {
	return &raggedFiller{numbers{dtype: k.dtype, shape: k.shape}}
}

type raggedFiller struct{ n numbers }

func (c *raggedFiller) Fill(out *Slot, _ *format.Sample, f *format.Field, _ augment.Draws, _ *Meter) error {
	var err error
	out.Arena, out.Length, err = c.n.appendRows(out.Arena, f)
	return err
}
