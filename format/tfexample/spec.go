package tfexample

import (
	"fmt"
	"strings"

	"shardtool/format"
)

// Spec is what a feature is asked to be, as the specifications of
// tf.io.parse_single_example are: FixedLenFeature, or VarLenFeature.
type Spec struct {
	Name    string
	Type    format.Kind // BytesList, FloatList or Int64List
	Shape   []int       // empty for a single value; the first may be -1, for any number of rows
	VarLen  bool        // any number of values, none if the feature is missing; Shape and Default do not count
	Default *Value      // stands in for a feature that is missing or has no kind; nil if there has to be one
	Empty   EmptyList
}

// EmptyList says what a list is that is there and has no values, where Shape
// asks for some.
type EmptyList uint8

const (
	EmptyIsError   EmptyList = iota // as any other wrong number of values; what TensorFlow does
	EmptyIsDefault                  // a missing feature
)

// Value is the values of one feature, in row-major order: those of Kind's
// slice.
type Value struct {
	Kind  format.Kind
	Bytes [][]byte
	Float []float32
	Int64 []int64
}

// Len returns how many values there are.
func (v *Value) Len() int {
	switch v.Kind {
	case format.BytesList:
		return len(v.Bytes)
	case format.FloatList:
		return len(v.Float)
	default:
		return len(v.Int64)
	}
}

// Values appends the value of each spec to dst and returns it. The slices of a
// Value in the capacity of dst are used again; byte strings are views, as
// those of a Feature are. The error is ErrMissing, ErrSchema, or ErrUsage for
// a spec that cannot be met, and names the field.
func (f *Features) Values(specs []Spec, dst []Value) ([]Value, error) {
	for i := range specs {
		if len(dst) < cap(dst) {
			dst = dst[:len(dst)+1]
		} else {
			dst = append(dst, Value{})
		}
		if err := f.read(&specs[i], &dst[len(dst)-1]); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// read sets v to the feature that s asks for.
func (f *Features) read(s *Spec, v *Value) error {
	*v = Value{Kind: s.Type, Bytes: v.Bytes[:0], Float: v.Float[:0], Int64: v.Int64[:0]}
	feature, _ := f.Lookup(s.Name)
	switch {
	case feature.Kind() == format.NoKind, s.Empty == EmptyIsDefault && feature.Len() == 0 && s.Default != nil:
		return f.absent(s, v)
	case feature.Kind() != s.Type:
		return s.fault(format.ErrSchema, "is of kind %s, not %s", feature.Kind(), s.Type)
	}
	if err := v.append(feature); err != nil {
		return named(err, []byte(s.Name))
	}
	return s.fits(v)
}

// append adds the values of a feature of v's kind.
func (v *Value) append(f Feature) (err error) {
	switch v.Kind {
	case format.BytesList:
		v.Bytes, err = f.AppendBytes(v.Bytes)
	case format.FloatList:
		v.Float, err = f.AppendFloat(v.Float)
	default:
		v.Int64, err = f.AppendInt64(v.Int64)
	}
	return err
}

// absent sets v to what stands in for a missing feature.
func (f *Features) absent(s *Spec, v *Value) error {
	switch {
	case s.VarLen:
		return nil
	case s.Default == nil:
		return s.fault(format.ErrMissing, "not among the features: %s", f.seen())
	}
	v.Bytes = append(v.Bytes, s.Default.Bytes...)
	v.Float = append(v.Float, s.Default.Float...)
	v.Int64 = append(v.Int64, s.Default.Int64...)
	if s.Default.Kind != s.Type || s.fits(v) != nil {
		return s.fault(format.ErrUsage, "the default does not fit the type and shape asked for")
	}
	return nil
}

// fits reports an error if the number of values is not that of the shape.
func (s *Spec) fits(v *Value) error {
	if s.VarLen {
		return nil
	}
	want, rows := 1, false
	for i, d := range s.Shape {
		switch {
		case d == -1 && i == 0:
			rows = true
		case d < 0:
			return s.fault(format.ErrUsage, "shape %v: only the first dimension may be open", s.Shape)
		default:
			want *= d
		}
	}
	n := v.Len()
	if rows && (n == 0 || want > 0 && n%want == 0) || !rows && n == want {
		return nil
	}
	return s.fault(format.ErrSchema, "has %d values, which is not of shape %v", n, s.Shape)
}

func (s *Spec) fault(class error, detail string, args ...any) error {
	at := format.Nowhere
	at.Field = s.Name
	return format.Errorf(class, at, detail, args...)
}

// seen names the first features, for an error.
func (f *Features) seen() string {
	const most = 10
	var b strings.Builder
	for i := range min(f.Len(), most) {
		name, _ := f.At(i)
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.64q", name)
	}
	if f.Len() > most {
		b.WriteString(", …")
	}
	if f.Len() == 0 {
		return "there are none"
	}
	return b.String()
}
