package loader

import (
	"shardtool/augment"
	"shardtool/format"
	"shardtool/loader/internal/column"
	"shardtool/tensor"
)

// Column is one part of a batch, made of one field of each sample. The
// functions of this package make columns; nothing of one needs to be set by
// hand. A field is the suffix of a tar member, such as "cls", or the name of a
// feature, such as "image/class/label". Alternatives are separated by
// semicolons: of "jpg;jpeg;png" the first that a sample has is taken.
//
// A sample without the field is a bad one, see OnBad, unless one of these
// methods makes it something else:
//
//	func (c Column) Or(value any) Column // has a default
//	func (c Column) OrHole() Column      // becomes a hole, which no budget counts
//
// Or takes a number, which every element gets, or a slice of as many numbers as
// the column's shape has; for Padded and Ragged a slice of numbers that are
// whole rows; for Bytes a string or []byte. Whole numbers must be in the range
// of the column's type. Key, Location and Func need none.
//
//	loader.Int64("cls;image/class/label").Or(-1)
//	loader.Padded("input_ids", tensor.Int64, 512, nil).Or([]int64{})
//	loader.Bytes("txt").OrHole()
type Column = column.Column

// PadOptions says how the lists of a Padded column come to one length. The zero
// value, and nil, pad with zeros and refuse lists that are too long. Its fields:
//
//	Value    float64 // of the padding; a whole number where the column's type is one
//	Truncate bool    // lists that are too long lose their end; else their samples are bad ones
//	Buckets  []int   // lengths, ascending: a batch is cut to the smallest that holds its longest list, or stays as long as the column
//	Inner    []int   // the axes of a value, such as the 4 of a box; none: a number
//
// Tokens, padded by -1 to 128, 256 or 512, as long as each batch needs:
//
//	loader.Padded("input_ids", tensor.Int64, 512, &loader.PadOptions{
//		Value: -1, Truncate: true, Buckets: []int{128, 256},
//	})
type PadOptions = column.PadOptions

// Image is a column of pictures, decoded and transformed by t: a tensor of the
// transform's type and [B ...] with its shape.
func Image(field string, t *augment.Transform) Column { return column.Image(field, t) }

// Int64 is a column of whole numbers, such as labels: [B]. The field is one
// number, as decimal text (cls, id, txt and so on) or as a feature.
func Int64(field string) Column { return column.Int64(field) }

// Float32 is a column of numbers: [B]. The field is one number, as for Int64.
func Float32(field string) Column { return column.Float32(field) }

// Dense is a column of arrays of one type and shape: [B shape...]; without a
// shape, of numbers. The field has exactly as many values and, where its
// encoding tells the shape, that shape. Whole numbers must be in the range of
// the type; only floats are rounded.
func Dense(field string, dtype tensor.DType, shape ...int) Column {
	return column.Dense(field, dtype, shape...)
}

// Ragged is a column of lists of any length: the rows of all samples one after
// the other, and where each sample's begin; see tensor.Ragged. inner are the
// axes of a row, such as the 4 of a box; none: a number.
func Ragged(field string, dtype tensor.DType, inner ...int) Column {
	return column.Ragged(field, dtype, inner...)
}

// Padded is a column of lists that are padded to a length: [B length ...], and
// how many values each had. The field may have any number of values up to that
// length, or more with PadOptions.Truncate. o may be nil.
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
