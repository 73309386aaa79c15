package tensor

import (
	"fmt"
	"slices"
)

// Ragged is an array whose rows differ in length, row after row in one Dense:
//
//	Values  a b c d e f g h  │ [8], or [8 inner...]
//	Splits  0   2 2     5 8  │ rows: ab, none, cde, fgh
//
// It is what TensorFlow's RaggedTensor is by its row_splits. As Dense, it is a
// view without a hold on its memory.
type Ragged struct {
	Values Dense   // all rows, joined along the first axis
	Splits []int64 // Splits[0] is 0; row i is Values[Splits[i]:Splits[i+1]]
}

// Len returns how many rows there are.
func (r Ragged) Len() int { return max(0, len(r.Splits)-1) }

// Range returns where row i begins and ends along the first axis of Values. It
// panics where there is no such row.
func (r Ragged) Range(i int) (from, to int) {
	from, to = int(r.Splits[i]), int(r.Splits[i+1])
	if from < 0 || from > to || to > r.Values.shape[0] {
		panic(fmt.Sprintf("tensor: row %d is %d to %d of %d", i, from, to, r.Values.shape[0]))
	}
	return from, to
}

// At returns row i, an array [n inner...] over the same memory. It allocates the
// row's shape; Range does not.
func (r Ragged) At(i int) Dense {
	from, to := r.Range(i)
	return r.Values.slice(from, to)
}

// slice returns places from to to of the first axis.
func (d Dense) slice(from, to int) Dense {
	shape := slices.Clone(d.shape)
	shape[0] = to - from
	row := 0
	if d.shape[0] > 0 {
		row = len(d.bytes) / d.shape[0]
	}
	return Dense{dtype: d.dtype, shape: shape, bytes: d.bytes[from*row : to*row : to*row]}
}

// Padded is an array of rows that were brought to one length: row i has
// Lengths[i] values, and then padding. As Dense, it is a view without a hold on
// its memory.
type Padded struct {
	Values  Dense   // [B T ...]
	Lengths []int64 // B of them, each at most T
}

// Len returns how many rows there are, B.
func (p Padded) Len() int { return len(p.Lengths) }

// At returns row i without its padding, an array [n ...] over the same memory.
// It allocates the row's shape. It panics where there is no such row.
func (p Padded) At(i int) Dense {
	row := p.Values.At(i)
	n := p.Lengths[i]
	if n < 0 || n > int64(row.shape[0]) {
		panic(fmt.Sprintf("tensor: row %d has %d of %d values", i, n, row.shape[0]))
	}
	return row.slice(0, int(n))
}

// Binary is a list of byte strings, one after the other:
//
//	Data    a b c d e f g h
//	Splits  0   2 2     5 8    strings: ab, none, cde, fgh
//
// As Dense, it is a view without a hold on its memory.
type Binary struct {
	Data   []byte
	Splits []int64 // Splits[0] is 0; string i is Data[Splits[i]:Splits[i+1]]
}

// Len returns how many strings there are.
func (b Binary) Len() int { return max(0, len(b.Splits)-1) }

// At returns string i, a view. It allocates nothing, and panics where there is
// no such string.
func (b Binary) At(i int) []byte {
	from, to := b.Splits[i], b.Splits[i+1]
	return b.Data[from:to:to]
}
