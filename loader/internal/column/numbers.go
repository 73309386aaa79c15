package column

import (
	"shardtool/format"
	"shardtool/format/codec"
	"shardtool/format/tfexample"
	"shardtool/tensor"
)

// numbers turns fields into elements of one type. It is for one goroutine.
//
// Lists of an Example that are of the column's very type, as tokens and labels
// mostly are, go straight to their place; all else is package codec's.
type numbers struct {
	dtype tensor.DType
	shape tensor.Shape // of all that fill writes; of one row for the others
	axis  [1]int
}

// direct tells whether the field is a list of the column's type.
func (n *numbers) direct(f *format.Field) bool {
	switch f.Kind {
	case format.Int64List:
		return n.dtype == tensor.Int64 || n.dtype == tensor.Int32
	case format.FloatList:
		return n.dtype == tensor.Float32
	}
	return false
}

// decode writes the values of a field that is direct, as many as dst holds, and
// tells if there are more.
func (n *numbers) decode(dst tensor.Dense, f *format.Field) (count int, more bool, err error) {
	list := tfexample.FeatureOf(f.Kind, f.Data)
	switch n.dtype {
	case tensor.Int64:
		return list.DecodeInt64(dst.Int64())
	case tensor.Int32:
		return list.DecodeInt32(dst.Int32())
	}
	return list.DecodeFloat(dst.Float32())
}

// fill writes the one array that a field must be.
func (n *numbers) fill(dst tensor.Dense, f *format.Field) error {
	if n.direct(f) {
		count, more, err := n.decode(dst, f)
		if err == nil && count == n.shape.Elems() && !more {
			return nil
		}
	}
	return codec.Fill(dst, f) // which says what is wrong with a list that does not fit
}

// fillRows writes the rows of a field to the beginning of dst and returns how
// many they are. More than dst holds are cut off, or an error.
func (n *numbers) fillRows(dst tensor.Dense, f *format.Field, truncate bool) (rows int, err error) {
	room, row := dst.Shape()[0], n.shape.Elems()
	if n.direct(f) {
		count, more, err := n.decode(dst, f)
		if err == nil && count%row == 0 && (!more || truncate && row == 1) {
			return count / row, nil
		}
	}
	rows, err = codec.FillRows(dst, f)
	if err == nil && rows > room && !truncate {
		err = inField(format.Errorf(format.ErrSchema, format.Nowhere, "found %d %s, want at most %d", rows, n.values(), room), f)
	}
	return min(rows, room), err
}

// values names what the rows are.
func (n *numbers) values() string {
	if len(n.shape) == 0 {
		return "values"
	}
	return "rows of shape " + n.shape.String()
}

// appendRows appends the rows of a field to an arena.
func (n *numbers) appendRows(arena []byte, f *format.Field) (_ []byte, rows int64, err error) {
	row := n.shape.Elems()
	if n.direct(f) {
		count := tfexample.FeatureOf(f.Kind, f.Data).Len()
		size := count * n.dtype.Size()
		longer := grow(arena, size)
		got, more, err := n.decode(n.view(longer[len(arena):][:size], count), f)
		if err == nil && got == count && count%row == 0 && !more {
			return longer, int64(count / row), nil
		}
	}
	longer, count, err := codec.AppendRows(arena, n.dtype, n.shape, f)
	return longer, int64(count), err
}

// view is a part of an arena as a list.
func (n *numbers) view(b []byte, count int) tensor.Dense {
	n.axis[0] = count
	return tensor.View(n.dtype, n.axis[:], b)
}

// grow lengthens an arena by size bytes, of any value. What it allocates begins
// where every element may.
func grow(arena []byte, size int) []byte {
	need := len(arena) + size
	if need <= cap(arena) {
		return arena[:need]
	}
	longer := make([]byte, need, (max(need, 2*cap(arena))+tensor.Alignment-1)&^(tensor.Alignment-1))
	copy(longer, arena)
	return longer
}
