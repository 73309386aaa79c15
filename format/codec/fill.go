package codec

import (
	"slices"

	"shardtool/format"
	"shardtool/format/tfexample"
	"shardtool/tensor"
)

// Fill writes the numbers of a field into slot, which they must fit in type and
// shape as the package comment says: of a list without a shape, the number of
// values has to be right; of one value, the number of axes does not count. After
// an error, what slot holds is not defined. A .gz may inflate to the default of
// Limits.Record.
func Fill(slot tensor.Dense, f *format.Field) error {
	if f.Kind == format.Int64List && slot.DType() == tensor.Int64 { // the most common, and the cheapest
		into := slot.Int64()
		n, more, err := tfexample.FeatureOf(f.Kind, f.Data).DecodeInt64(into)
		if err == nil && n == len(into) && n > 0 && !more {
			return nil
		}
	}
	w := want{slot.DType(), slot.Shape(), exactly}
	if int64(len(slot.Bytes())) != int64(w.shape.Elems())*int64(w.dtype.Size()) {
		return inField(format.Errorf(format.ErrUsage, format.Nowhere, "there is no array to write to"), f.Name)
	}
	return with(f, w, func(v *found, _ int) error { return v.put(slot.Bytes(), w.dtype) })
}

// FillRows writes the rows of a field into the places of slot's first axis, as
// many as there are and have room, and returns how many rows the field has: what
// is behind them is left as it was, and of more than slot holds the first are
// written. The rest is as for Fill.
func FillRows(slot tensor.Dense, f *format.Field) (n int, err error) {
	if len(slot.Shape()) == 0 {
		return 0, inField(format.Errorf(format.ErrUsage, format.Nowhere, "there are no rows to write to"), f.Name)
	}
	w := want{slot.DType(), slot.Shape()[1:], rows}
	row := w.shape.Elems()
	if row == 0 {
		return 0, inField(format.Errorf(format.ErrUsage, format.Nowhere, "rows of no values have no number"), f.Name)
	}
	err = with(f, w, func(v *found, values int) error {
		n = values / row
		room := min(values, slot.Shape()[0]*row) * w.dtype.Size()
		return v.put(slot.Bytes()[:room], w.dtype)
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// AppendRows appends the rows of a field, each of that type and shape, to dst as
// bytes, and returns how many rows the field has. The rest is as for Fill.
func AppendRows(dst []byte, dtype tensor.DType, inner tensor.Shape, f *format.Field) (_ []byte, n int, err error) {
	w := want{dtype, inner, rows}
	row := w.shape.Elems()
	if row == 0 {
		return dst, 0, inField(format.Errorf(format.ErrUsage, format.Nowhere, "rows of no values have no number"), f.Name)
	}
	out := dst
	err = with(f, w, func(v *found, values int) error {
		size := values * dtype.Size()
		out = slices.Grow(dst, size)[:len(dst)+size]
		n = values / row
		return v.put(out[len(dst):], dtype)
	})
	if err != nil {
		return dst, 0, err
	}
	return out, n, nil
}

// AppendInt64 appends all numbers of a field to dst, the last axis the fastest,
// of whatever shape they are. The rest is as for Fill.
func AppendInt64(dst []int64, f *format.Field) ([]int64, error) {
	if f.Kind == format.Int64List {
		out, err := tfexample.FeatureOf(f.Kind, f.Data).AppendInt64(dst)
		if err != nil {
			return dst, inField(err, f.Name)
		}
		return out, nil
	}
	return appendNumbers(dst, f)
}

// AppendFloat32 is AppendInt64 for Float32.
func AppendFloat32(dst []float32, f *format.Field) ([]float32, error) { return appendNumbers(dst, f) }

// AppendFloat64 is AppendInt64 for Float64.
func AppendFloat64(dst []float64, f *format.Field) ([]float64, error) { return appendNumbers(dst, f) }

func appendNumbers[T int64 | float32 | float64](dst []T, f *format.Field) ([]T, error) {
	out := dst
	w := want{dtypeOf[T](), nil, anyhow}
	err := with(f, w, func(v *found, values int) (err error) {
		out, err = appendPart(dst, v, values)
		return err
	})
	if err != nil {
		return dst, err
	}
	return out, nil
}

func appendPart[T int64 | float32 | float64](dst []T, v *found, values int) ([]T, error) {
	out := slices.Grow(dst, values)[:len(dst)+values]
	return out, v.put(bytesOf(out[len(dst):]), dtypeOf[T]())
}

func dtypeOf[T int64 | float32 | float64]() tensor.DType {
	switch any(T(0)).(type) {
	case int64:
		return tensor.Int64
	case float32:
		return tensor.Float32
	}
	return tensor.Float64
}

// with opens a field, counts its values and hands them over.
func with(f *format.Field, w want, do func(v *found, values int) error) error {
	v, err := open(f)
	if err != nil {
		return inField(err, f.Name)
	}
	defer v.close()
	n, err := v.measure(w)
	if err == nil {
		err = do(v, n)
	}
	if err != nil {
		return inField(err, f.Name)
	}
	return nil
}
