package loader

import (
	"shardtool/augment"
	"shardtool/format"
	"shardtool/loader/internal/column"
	"shardtool/tensor"
)

// Column is one part of a batch, made of one field of each sample. A field may
// be given as alternatives by semicolons, such as "jpg;jpeg;png": the first
// that a sample has is taken. A sample without the field is a bad sample,
// unless Or gives a default or OrHole makes its place a hole.
type Column = column.Column

// PadOptions says how lists come to one length. The zero value pads with zeros
// and refuses lists that are too long.
type PadOptions = column.PadOptions

// Image is a column of pictures, decoded and transformed by t: a tensor of the
// transform's type and [B ...] with its shape.
func Image(field string, t *augment.Transform) Column { return column.Image(field, t) }

// Int64 is a column of whole numbers, such as labels: [B]. The field is one
// number, as text or as a feature.
func Int64(field string) Column { return column.Int64(field) }

// Float32 is a column of numbers: [B].
func Float32(field string) Column { return column.Float32(field) }

// Dense is a column of arrays of one shape: [B shape...]. The field has exactly
// as many values.
func Dense(field string, dtype tensor.DType, shape ...int) Column {
	return column.Dense(field, dtype, shape...)
}

// Ragged is a column of lists of any length: see tensor.Ragged. Rows have the
// inner axes.
func Ragged(field string, dtype tensor.DType, inner ...int) Column {
	return column.Ragged(field, dtype, inner...)
}

// Padded is a column of lists that are padded to a length: [B length ...], and
// how many values each had. o may be nil.
func Padded(field string, dtype tensor.DType, length int, o *PadOptions) Column {
	return column.Padded(field, dtype, length, o)
}

// Bytes is a column of byte strings: the field as it is stored.
func Bytes(field string) Column { return column.Bytes(field) }

// Key is a column of the samples' keys: byte strings.
func Key() Column { return column.Key() }

// Location is a column of where the samples stand: see Batch.Location.
func Location() Column { return column.Location() }

// Func is a column that a function makes: dst, zeroed, is the sample's place in
// the batch, of that type and shape. It runs in the workers, several at once,
// so it may change nothing that is shared; the sample is lent until it returns.
// What it writes must follow from the sample and the draws alone, for the
// batches to be the same again. Its error makes the sample a bad one. name
// enters the fingerprint of the plan, for the function cannot.
func Func(name string, dtype tensor.DType, shape tensor.Shape, f func(dst tensor.Dense, s *format.Sample, draws augment.Draws) error) Column {
	return column.Func(name, dtype, shape, f)
}
