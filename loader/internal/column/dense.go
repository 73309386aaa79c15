package column

import (
	"fmt"

	"shardtool/augment"
	"shardtool/format"
	"shardtool/tensor"
)

// Int64 is a column of whole numbers, such as labels: one of each sample. The
// field is an int64 feature of one value, a number in decimal text (cls, id, txt
// and so on), or what else package codec reads as one number.
func Int64(field string) Column { return Dense(field, tensor.Int64) }

// Float32 is a column of one float32 of each sample.
func Float32(field string) Column { return Dense(field, tensor.Float32) }

// Dense is a column of arrays of one type and shape; without a shape, of single
// numbers. The field must have exactly as many values, and where its encoding
// tells the shape, that shape. Numbers are converted as package codec says:
// whole ones must be in the range of the type, and only floats are rounded.
func Dense(field string, dtype tensor.DType, shape ...int) Column {
	return Column{Field: field, Kind: &denseKind{kind{FormDense, dtype, shape}}}
}

type denseKind struct{ kind }

func (k *denseKind) Describe() string { return fmt.Sprintf("dense %v %v", k.dtype, k.shape) }

func (k *denseKind) NewFiller(*format.Limits) Filler {
	return &denseFiller{numbers{dtype: k.dtype, shape: k.shape}}
}

type denseFiller struct{ n numbers }

func (c *denseFiller) Fill(out *Slot, _ *format.Sample, f *format.Field, _ augment.Draws, _ *Meter) error {
	return c.n.fill(out.Dense, f)
}
