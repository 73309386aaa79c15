package codec

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"shardtool/format"
	"shardtool/format/tfexample"
	"shardtool/tensor"
)

// found is what numbers a field holds, before they are written anywhere. It
// refers to the field, and comes from a pool, as it keeps the memory that it
// needs.
type found struct {
	form   form
	none   string        // see suffix
	data   []byte        // of formRaw, formText and formJSON
	stored tensor.Stored // of formArray
	arrays int           // of formArray, in the field
	json   jsonShape
	list   tfexample.Feature // of formInts, formFloats and formParts
	count  int               // of its values
	name   string
	shape  tensor.Shape // memory of stored.Shape
	ints   []int64
	floats []float32
	bytes  []byte
}

var pool = sync.Pool{New: func() any { return new(found) }}

// open finds the numbers of a field. The caller closes what it returns.
func open(f *format.Field) (*found, error) {
	v := pool.Get().(*found)
	v.name = f.Name
	if err := v.open(f); err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

// kept bounds the memory, in bytes, that a found keeps for the next.
const kept = 1 << 20

func (v *found) close() {
	keep := found{shape: v.shape[:0], ints: v.ints[:0], floats: v.floats[:0], bytes: v.bytes[:0]}
	if 8*cap(keep.ints)+4*cap(keep.floats)+cap(keep.bytes) > kept {
		keep = found{}
	}
	*v = keep
	pool.Put(v)
}

func (v *found) open(f *format.Field) error {
	switch f.Kind {
	case format.Bytes:
		if f.Data == nil {
			return errAbsent()
		}
		return v.text(f.Data)
	case format.NoKind:
		return format.Errorf(format.ErrMissing, format.Nowhere, "found no value")
	}
	return v.feature(tfexample.FeatureOf(f.Kind, f.Data))
}

func errAbsent() error {
	return format.Errorf(format.ErrMissing, format.Nowhere, "the field was not read, or is not there")
}

// feature finds the numbers of a list.
func (v *found) feature(f tfexample.Feature) error {
	if err := f.Check(); err != nil {
		return err
	}
	v.list, v.count = f, f.Len()
	switch f.Kind() {
	case format.NoKind:
		v.form = formNone
	case format.Int64List:
		v.form = formInts
	case format.FloatList:
		v.form = formFloats
	default:
		v.form = formParts
		if f.Kind() == format.BytesList && v.count == 1 {
			return v.text(f.At(0))
		}
	}
	return nil
}

// text finds the numbers of a byte string by the name of its field.
func (v *found) text(data []byte) error {
	name := v.name
	if rest, ok := cutGzip(name); ok {
		var err error
		if data, err = inflate(data, nil); err != nil {
			return err
		}
		name = rest
	}
	s := lookup(name)
	v.form, v.none, v.data = s.form, s.none, data
	switch s.form {
	case formJSON:
		return measure(data, &v.json)
	case formArray:
		return v.array(data, name)
	}
	return nil
}

// array finds the one array of a .npy or a tenbin.
func (v *found) array(data []byte, name string) (err error) {
	if hasSuffix(name, "npy") {
		v.arrays = 1
		if v.stored, err = tensor.ParseNPY(data, v.shape); err != nil {
			return npyError(err)
		}
		v.shape = v.stored.Shape
		return nil
	}
	for rest := data; len(rest) > 0; v.arrays++ {
		if v.stored, rest, err = nextTen(rest, v.shape, len(data)-len(rest)); err != nil {
			return err
		}
		v.shape = v.stored.Shape
	}
	return nil
}

func hasSuffix(name, suffix string) bool {
	n := len(name) - len(suffix)
	return n >= 0 && format.EqualName(name[n:], suffix)
}

// parts opens the strings or steps of a list one after the other. do closes
// none.
func (v *found) parts(do func(p *found) error) error {
	i := 0
	one := func(s []byte, f tfexample.Feature) error {
		p := pool.Get().(*found)
		defer p.close()
		p.name = v.name
		var err error
		if s != nil {
			err = p.text(s)
		} else {
			err = p.feature(f)
		}
		if err == nil {
			err = do(p)
		}
		if err != nil {
			return inPart(err, i)
		}
		i++
		return nil
	}
	for s := range v.list.Bytes() {
		if err := one(s, tfexample.Feature{}); err != nil {
			return err
		}
	}
	for _, f := range v.list.Steps() {
		if err := one(nil, f); err != nil {
			return err
		}
	}
	return nil
}

// inPart says in which part a fault is.
func inPart(err error, i int) error {
	e := format.AsError(err)
	if e == nil {
		return err
	}
	return format.Errorf(e.Err, e.Location, "part %d: %s", i, e.Detail)
}

// String says what was found, for errors.
func (v *found) String() string {
	switch {
	case v.none != "":
		return v.none
	case v.form == formRaw:
		return plural(len(v.data), "byte")
	case v.form == formText:
		return "the text " + shown(trim(v.data))
	case v.form == formJSON && v.json.ragged:
		return "lists of JSON that differ in length"
	case v.form == formJSON && v.json.rank == 0:
		return "one number of JSON"
	case v.form == formJSON:
		return "lists of JSON of shape " + tensor.Shape(v.json.axes[:v.json.rank]).String()
	case v.form == formArray && v.arrays != 1:
		return plural(v.arrays, "array")
	case v.form == formArray:
		return fmt.Sprintf("an array of %v of shape %s", v.stored.DType, v.stored.Shape.String())
	case v.form == formInts:
		return "int64 list of " + plural(v.count, "value")
	case v.form == formFloats:
		return "float list of " + plural(v.count, "value")
	case v.form == formNone:
		return "no value"
	case v.list.Kind() == format.FeatureList:
		return plural(v.count, "step")
	}
	return "a list of " + plural(v.count, "byte string")
}

func plural(n int, what string) string {
	s := strconv.Itoa(n) + " " + what
	if n != 1 {
		s += "s"
	}
	return s
}

// want is what a field is to be.
type want struct {
	dtype tensor.DType
	shape tensor.Shape // of all, or of one row
	of    extent
}

type extent uint8

const (
	exactly extent = iota // the shape
	rows                  // any number of rows of the shape
	anyhow                // any number of values, in whatever shape
)

func (w want) String() string {
	shape := w.shape.String()
	switch {
	case w.of == anyhow || w.of == rows && len(w.shape) == 0:
		return "a list of " + w.dtype.String()
	case w.of == rows:
		return "rows of " + w.dtype.String() + " of shape " + shape
	case len(w.shape) == 0:
		return "one " + w.dtype.String()
	}
	return w.dtype.String() + " of shape " + shape
}

// mismatch is the error of a field that is not what is wanted.
func (v *found) mismatch(w want) error {
	return format.Errorf(format.ErrSchema, format.Nowhere, "found %s, want %s", v, w)
}

// measure returns how many values there are, if they are what is wanted.
func (v *found) measure(w want) (n int, err error) {
	ok := v.none == ""
	switch v.form {
	case formRaw:
		ok = ok && len(v.data)%w.dtype.Size() == 0
		n = len(v.data) / w.dtype.Size()
		ok = ok && w.holds(n)
	case formText:
		n, ok = 1, w.one()
	case formJSON:
		n = v.json.count
		ok = w.fits(v.json.axes[:v.json.rank], n, v.json.ragged)
	case formArray:
		n = v.stored.Shape.Elems()
		ok = v.arrays == 1 && converts(w.dtype, v.stored.DType) && w.fits(v.stored.Shape, n, false)
	case formInts:
		n, ok = v.count, w.holds(v.count)
	case formFloats:
		n, ok = v.count, isFloat(w.dtype) && w.holds(v.count)
	case formNone:
		ok = w.holds(0)
	case formParts:
		return v.measureParts(w)
	}
	if !ok {
		return 0, v.mismatch(w)
	}
	return n, nil
}

// measureParts goes through the parts, each a place of the first axis.
func (v *found) measureParts(w want) (n int, err error) {
	each := w
	switch {
	case w.of == rows:
		each.of = exactly
	case w.of == anyhow:
	case len(w.shape) > 0 && w.shape[0] == v.count:
		each.shape = w.shape[1:]
	case len(w.shape) > 0 || v.count != 1:
		return 0, v.mismatch(w)
	}
	err = v.parts(func(p *found) error {
		m, err := p.measure(each)
		n += m
		return err
	})
	return n, err
}

// holds tells whether n values without a shape are what is wanted.
func (w want) holds(n int) bool {
	elems := w.shape.Elems()
	return w.of == anyhow || n == elems && w.of == exactly || w.of == rows && (n == 0 || elems > 0 && n%elems == 0)
}

// one tells whether one value without axes is.
func (w want) one() bool { return w.of == anyhow || w.shape.Elems() == 1 }

// fits tells whether n values of a shape are what is wanted. One value may have
// any number of axes. A list that is empty does not say what it is a list of.
func (w want) fits(shape tensor.Shape, n int, ragged bool) bool {
	switch {
	case w.of == anyhow || n == 1 && w.one():
		return true
	case ragged:
		return false
	case w.of == rows:
		return len(shape) > 0 && (slices.Equal(shape[1:], w.shape) || n == 0 && len(shape) == 1)
	}
	return slices.Equal(shape, w.shape) || n == 0 && len(shape) == 1 && len(w.shape) > 0 && w.shape[0] == 0
}

// put writes the first values as elements, as many as dst has room for, at most
// those that measure returned.
func (v *found) put(dst []byte, dtype tensor.DType) error {
	switch v.form {
	case formRaw:
		s := tensor.Stored{DType: dtype, Data: v.data[:len(dst)]}
		s.CopyTo(dst)
	case formText:
		if len(dst) > 0 && !putNumber(dst, dtype, 0, trim(v.data)) {
			return noFit(shown(trim(v.data)), 0, dtype)
		}
	case formJSON:
		if _, bad, at := putJSON(dst, dtype, v.data, nil); bad != nil {
			return noFit(string(bad), at, dtype)
		}
	case formArray:
		return v.putArray(dst, dtype)
	case formInts, formFloats:
		return v.putList(dst, dtype)
	case formParts:
		return v.putParts(dst, dtype)
	}
	return nil
}

func noFit(value string, at int, dtype tensor.DType) error {
	return format.Errorf(format.ErrSchema, format.Nowhere, "found %.64s, number %d of the values, which is no %v", value, at, dtype)
}

func (v *found) putArray(dst []byte, dtype tensor.DType) error {
	s := &v.stored
	if s.DType == dtype && len(dst) == len(s.Data) {
		s.CopyTo(dst)
		return nil
	}
	v.bytes = slices.Grow(v.bytes[:0], len(s.Data))[:len(s.Data)]
	s.CopyTo(v.bytes)
	if bad := convert(dst, dtype, v.bytes, s.DType); bad >= 0 {
		return noFit(element(v.bytes, s.DType, bad), bad, dtype)
	}
	return nil
}

// putList writes the values of a list: in place where they are of the type that
// is asked for, and by way of memory that is kept where they are not.
func (v *found) putList(dst []byte, dtype tensor.DType) error {
	n := len(dst) / dtype.Size()
	if v.form == formFloats {
		if into, ok := numbersIn[float32](dst); ok && dtype == tensor.Float32 {
			return decoded(v.list.DecodeFloat(into))
		}
		v.floats = slices.Grow(v.floats[:0], n)[:n]
		if err := decoded(v.list.DecodeFloat(v.floats)); err != nil {
			return err
		}
		return converted(convert(dst, dtype, bytesOf(v.floats), tensor.Float32), v.floats, dtype)
	}
	if into, ok := numbersIn[int64](dst); ok && dtype == tensor.Int64 {
		return decoded(v.list.DecodeInt64(into))
	}
	v.ints = slices.Grow(v.ints[:0], n)[:n]
	if err := decoded(v.list.DecodeInt64(v.ints)); err != nil {
		return err
	}
	return converted(convert(dst, dtype, bytesOf(v.ints), tensor.Int64), v.ints, dtype)
}

// decoded is the error of decoding as many values as there is room for.
func decoded(_ int, _ bool, err error) error { return err }

func converted[T any](bad int, from []T, dtype tensor.DType) error {
	if bad < 0 {
		return nil
	}
	return noFit(fmt.Sprint(from[bad]), bad, dtype)
}

func (v *found) putParts(dst []byte, dtype tensor.DType) error {
	return v.parts(func(p *found) error {
		n, err := p.measure(want{dtype: dtype, of: anyhow})
		if err != nil {
			return err
		}
		n = min(n*dtype.Size(), len(dst))
		err = p.put(dst[:n], dtype)
		dst = dst[n:]
		return err
	})
}

// element prints an element, for errors.
func element(b []byte, dtype tensor.DType, i int) string {
	b = b[i*dtype.Size():]
	if isFloat(dtype) {
		v := [1]float64{}
		loadFloats(v[:], b, dtype)
		return strconv.FormatFloat(v[0], 'g', -1, 64)
	}
	if dtype == tensor.Uint64 {
		return strconv.FormatUint(native.Uint64(b), 10)
	}
	v := [1]int64{}
	loadInts(v[:], b, dtype)
	return strconv.FormatInt(v[0], 10)
}
