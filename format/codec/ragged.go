package codec

import (
	"slices"

	"shardtool/format"
	"shardtool/format/tfexample"
	"shardtool/tensor"
)

// AppendRagged appends all numbers of a field to values, and to splits where
// each row ends in values. If splits is empty, the place where the first row
// begins comes before, so that fields appended one after the other make a
// tensor.Ragged, with a row for each step of a SequenceExample, each string of a
// list, each list in a list of JSON, and each place of the first of several
// axes. A field of one list or of one number is one row. The rest is as for
// Fill.
func AppendRagged[T int64 | float32 | float64](values []T, splits []int64, f *format.Field) ([]T, []int64, error) {
	out, ends := values, splits
	if len(ends) == 0 {
		ends = append(ends, int64(len(values)))
	}
	w := want{dtypeOf[T](), nil, anyhow}
	err := with(f, w, func(v *found, n int) (err error) {
		out, ends, err = appendRowsOf(values, ends, v, n, w)
		return err
	})
	if err != nil {
		return values, splits, err
	}
	return out, ends, nil
}

func appendRowsOf[T int64 | float32 | float64](out []T, ends []int64, v *found, n int, w want) ([]T, []int64, error) {
	from := len(out)
	switch {
	case v.form == formParts:
		err := v.parts(func(p *found) error {
			n, err := p.measure(w)
			if err == nil {
				out, err = appendPart(out, p, n)
				ends = append(ends, int64(len(out)))
			}
			return err
		})
		return out, ends, err
	case v.form == formJSON && v.json.ragged:
		if v.json.rank != 2 {
			return out, ends, format.Errorf(format.ErrSchema, format.Nowhere, "found %s, %d deep, want one list of lists", v, v.json.rank)
		}
		had := len(ends)
		out = slices.Grow(out, n)[:from+n]
		var err error
		if ends, err = v.putLists(bytesOf(out[from:]), w.dtype, ends); err != nil {
			return out, ends, err
		}
		for i := had; i < len(ends); i++ {
			ends[i] += int64(from)
		}
		return out, ends, nil
	}
	out, err := appendPart(out, v, n)
	rows := v.rows()
	for i := range rows {
		ends = append(ends, int64(from+n/rows*(i+1)))
	}
	return out, ends, err
}

// putLists is put for lists of JSON, with the ends of those in the outermost.
func (v *found) putLists(dst []byte, dtype tensor.DType, ends []int64) ([]int64, error) {
	ends, bad, at := putJSON(dst, dtype, v.data, ends)
	if bad != nil {
		return ends, noFit(string(bad), at, dtype)
	}
	return ends, nil
}

// rows is the length of the first of several axes, or 1.
func (v *found) rows() int {
	switch {
	case v.form == formJSON && v.json.rank > 1:
		return v.json.axes[0]
	case v.form == formArray && len(v.stored.Shape) > 1:
		return v.stored.Shape[0]
	}
	return 1
}

// AppendBinary appends the byte strings of a field to data, and to splits where
// each ends, as AppendRagged does numbers: those of a list, of steps of one
// string each, or the bytes of the field. They are appended as they are.
func AppendBinary(data []byte, splits []int64, f *format.Field) ([]byte, []int64, error) {
	out, ends := data, splits
	if len(ends) == 0 {
		ends = append(ends, int64(len(data)))
	}
	add := func(s []byte) {
		out = append(out, s...)
		ends = append(ends, int64(len(out)))
	}
	if f.Kind == format.Bytes {
		if f.Data == nil {
			return data, splits, inField(errAbsent(), f.Name)
		}
		add(f.Data)
		return out, ends, nil
	}
	feature := tfexample.FeatureOf(f.Kind, f.Data)
	if err := feature.Check(); err != nil {
		return data, splits, inField(err, f.Name)
	}
	if f.Kind != format.BytesList && f.Kind != format.FeatureList {
		return data, splits, noStrings(f.Kind, f.Name)
	}
	for s := range feature.Bytes() {
		add(s)
	}
	for i, step := range feature.Steps() {
		if step.Kind() != format.BytesList || step.Len() != 1 {
			err := format.Errorf(format.ErrSchema, format.Nowhere, "step %d: found %s values, %d of them, want one byte string", i, step.Kind(), step.Len())
			return data, splits, inField(err, f.Name)
		}
		add(step.At(0))
	}
	return out, ends, nil
}

func noStrings(k format.Kind, name string) error {
	return inField(format.Errorf(format.ErrSchema, format.Nowhere, "found a list of kind %s, want byte strings", k), name)
}
