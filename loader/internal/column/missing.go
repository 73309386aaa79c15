package column

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"strconv"

	"shardtool/format"
	"shardtool/format/codec"
	"shardtool/tensor"
)

// Policy says what becomes of a sample that lacks a column's field.
type Policy uint8

const (
	Fail    Policy = iota // it is a bad sample: ErrMissing
	Hole                  // its place becomes a hole, which costs nothing of the budget for bad samples
	Default               // the column has a value for it
)

// Missing is what a column does about samples without its field. The zero value
// is Fail; Or and OrHole make others.
type Missing struct {
	Policy Policy
	values []byte // of the default, as they go into the slot or the arena
	rows   int64  // Slot.Length
	err    error  // why the default does not suit
}

// OrHole returns the column with the policy Hole: a sample without the field
// becomes a hole.
func (c Column) OrHole() Column {
	c.Missing = Missing{Policy: Hole}
	return c
}

// Or returns the column with a default for samples without the field: a number,
// which a dense column has in every element, or a slice of as many numbers as
// the column's shape has; for padded and ragged columns a slice of numbers that
// are whole rows; for Bytes a string or bytes. Whole numbers must be in the range
// of the column's type, and floats are rounded to it.
func (c Column) Or(value any) Column {
	c.Missing = Missing{Policy: Default}
	if c.Kind != nil && c.Kind.Check() == nil { // else Check of the column says why
		c.Missing.err = c.Missing.set(c.Kind, reflect.ValueOf(value))
	}
	return c
}

// FillDefault writes the default of the policy Default.
func (m *Missing) FillDefault(out *Slot) {
	out.Length = m.rows
	if b := out.Dense.Bytes(); b != nil {
		copy(b, m.values)
		return
	}
	out.Arena = append(out.Arena, m.values...)
}

func (m *Missing) describe() string {
	switch m.Policy {
	case Hole:
		return ", or a hole"
	case Default:
		return fmt.Sprintf(", or %d bytes of %x in %d rows", len(m.values), sha256.Sum256(m.values), m.rows)
	}
	return ""
}

func (m *Missing) set(k Kind, v reflect.Value) error {
	list := v.IsValid() && (v.Kind() == reflect.Slice || v.Kind() == reflect.Array)
	switch {
	case k.Reads() != ReadsField:
		return usage("a default for a column that needs none: %s", k.Describe())
	case k.Form() == FormBinary:
		return m.setBytes(v)
	case list:
		return m.setList(k, v)
	case k.Form() != FormDense:
		return usage("the default of a %v column is a list, not %v", k.Form(), v)
	}
	one, err := element(k.DType(), v)
	m.values = make([]byte, k.Shape().Elems()*k.DType().Size())
	repeat(m.values, one)
	return err
}

func (m *Missing) setBytes(v reflect.Value) error {
	switch {
	case v.IsValid() && v.Kind() == reflect.String:
		m.values = []byte(v.String())
	case v.IsValid() && v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		m.values = append([]byte{}, v.Bytes()...)
	default:
		return usage("the default of a column of bytes is a string or bytes, not %v", v)
	}
	return nil
}

func (m *Missing) setList(k Kind, v reflect.Value) error {
	for i := range v.Len() {
		one, err := element(k.DType(), v.Index(i))
		if err != nil {
			return err
		}
		m.values = append(m.values, one...)
	}
	n, shape := v.Len(), k.Shape()
	wrong := usage("the default of a %v column of shape %v has %d values", k.Form(), shape, n)
	switch p := k.(type) {
	case *raggedKind:
		row := shape.Elems()
		if n%row != 0 {
			return wrong
		}
		m.rows = int64(n / row)
	case *paddedKind:
		row := shape[1:].Elems()
		if n%row != 0 || n/row > shape[0] {
			return wrong
		}
		slot := make([]byte, shape.Elems()*p.dtype.Size())
		repeat(slot[copy(slot, m.values):], p.pad)
		m.values, m.rows = slot, int64(n/row)
	default:
		if n != shape.Elems() {
			return wrong
		}
	}
	return nil
}

// element returns the bytes of an element that is the number v, by the rules of
// package codec for numbers in text.
func element(dtype tensor.DType, v reflect.Value) ([]byte, error) {
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	text := ""
	switch {
	case !v.IsValid():
	case v.CanInt():
		text = strconv.FormatInt(v.Int(), 10)
	case v.CanUint():
		text = strconv.FormatUint(v.Uint(), 10)
	case v.CanFloat() && v.Kind() == reflect.Float32:
		text = decimal(v.Float(), 32)
	case v.CanFloat():
		text = decimal(v.Float(), 64)
	case v.Kind() == reflect.Bool:
		text = strconv.FormatBool(v.Bool())
	}
	b := make([]byte, tensor.Alignment)[:dtype.Size()]
	if codec.Fill(tensor.View(dtype, nil, b), &format.Field{Name: "txt", Data: []byte(text)}) != nil {
		return nil, usage("%v is no %v", v, dtype)
	}
	return b, nil
}

// decimal prints a float, a whole one as a whole number, which suits all types.
func decimal(v float64, bits int) string {
	if text := strconv.FormatFloat(v, 'f', -1, bits); len(text) < 20 {
		return text
	}
	return strconv.FormatFloat(v, 'g', -1, bits)
}
