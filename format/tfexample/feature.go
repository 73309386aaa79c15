package tfexample

import (
	"iter"
	"slices"

	"shardtool/format"
	"shardtool/internal/varint"
)

// Feature is the value of a feature: a list of byte strings, of float32, of
// int64, or none; or, in the lists of a SequenceExample, a list of features,
// one for each step. It is a view of the memory it was parsed from and lent as
// long as that is.
type Feature struct {
	kind format.Kind // Bytes stands for a list of one string, data
	n    int         // values; format.Unknown if nobody has counted
	data []byte      // the encoded list
}

// FeatureOf returns the feature that a format.Field of that kind and data
// holds. The data is not checked: the methods that return an error report its
// faults, others see the values before the first of them.
func FeatureOf(kind format.Kind, data []byte) Feature {
	switch kind {
	case format.Bytes:
		return Feature{kind, 1, data}
	case format.BytesList, format.FloatList, format.Int64List, format.FeatureList:
		return Feature{kind, format.Unknown, data}
	default:
		return Feature{kind: format.NoKind}
	}
}

// Kind returns BytesList, FloatList, Int64List, FeatureList, or NoKind.
func (f Feature) Kind() format.Kind {
	if f.kind == format.Bytes {
		return format.BytesList
	}
	return f.kind
}

// Len returns how many values, or steps, the feature has.
func (f Feature) Len() int {
	if f.n < 0 {
		n, _, _ := checkList(cursor{f.data, 0, len(f.data)}, f.kind, false)
		return n
	}
	return f.n
}

// Encoded returns the encoded list, as format.Field.Data holds it for the
// feature's Kind. It is a view, except of a feature that was made by FeatureOf
// of format.Bytes, for which it is a new slice.
func (f Feature) Encoded() []byte {
	if f.kind == format.Bytes {
		return appendString(make([]byte, 0, stringSize(len(f.data))), f.data)
	}
	return f.data
}

// At returns byte string i of a BytesList. It panics where there is none, and
// it takes time in proportion to i.
func (f Feature) At(i int) []byte {
	for v := range f.Bytes() {
		if i == 0 {
			return v
		}
		i--
	}
	panic("tfexample: no such value")
}

// Bytes goes through the byte strings of a BytesList. A feature of another
// kind has none.
func (f Feature) Bytes() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		switch f.kind {
		case format.Bytes:
			yield(f.data)
		case format.BytesList:
			c := cursor{f.data, 0, len(f.data)}
			for v, ok := c.nextString(); ok && v.b != nil && yield(v.rest()); v, ok = c.nextString() {
			}
		}
	}
}

// nextString returns the next value of a BytesList. At the end, and at a
// fault, its b is nil; ok is false at a fault.
func (c *cursor) nextString() (v cursor, ok bool) {
	for c.more() {
		num, typ, ok := c.tag()
		if !ok {
			return cursor{}, false
		}
		if num == 1 && typ == wireBytes {
			lo, hi, ok := c.bytes()
			return cursor{c.b, lo, hi}, ok
		}
		if !c.skip(num, typ) {
			return cursor{}, false
		}
	}
	return cursor{}, true
}

// AppendBytes appends the byte strings of a BytesList to dst: views, as the
// feature is one. The error is ErrSchema for a feature of another kind, and
// ErrCorrupt for faults of what FeatureOf was given.
func (f Feature) AppendBytes(dst [][]byte) ([][]byte, error) {
	if f.kind == format.Bytes {
		return append(dst, f.data), nil
	}
	if f.kind != format.BytesList {
		return dst, f.isNot(format.BytesList)
	}
	c := cursor{f.data, 0, len(f.data)}
	if f.n > 0 {
		dst = slices.Grow(dst, f.n)
	}
	for c.more() {
		v, ok := c.nextString()
		if !ok {
			return dst, corrupt(c.i, "not a list of byte strings")
		}
		if v.b != nil {
			dst = append(dst, v.rest())
		}
	}
	return dst, nil
}

func (f Feature) isNot(want format.Kind) error {
	return format.Errorf(format.ErrSchema, format.Nowhere, "the feature is of kind %s, not %s", f.Kind(), want)
}

// Steps goes through the features of a FeatureList. A feature of another kind
// has none.
func (f Feature) Steps() iter.Seq2[int, Feature] {
	return func(yield func(int, Feature) bool) {
		if f.kind != format.FeatureList {
			return
		}
		c := cursor{f.data, 0, len(f.data)}
		for i := 0; ; i++ {
			v, ok := c.nextString() // messages are encoded as byte strings are
			if !ok || v.b == nil {
				return
			}
			var w value
			if _, err := w.feature(v, nil, false, false); err != nil || !yield(i, Feature{w.kind, w.n, w.data}) {
				return
			}
		}
	}
}

// Step returns the feature of step i of a FeatureList. It panics where there
// is none, and it takes time in proportion to i.
func (f Feature) Step(i int) Feature {
	for k, s := range f.Steps() {
		if k == i {
			return s
		}
	}
	panic("tfexample: no such step")
}

// checkList goes through an encoded list of a kind and returns how many values
// it has, and false and where if it is not sound. strict refuses fields that
// are known and have another wire type.
func checkList(c cursor, kind format.Kind, strict bool) (n, at int, ok bool) {
	for c.more() {
		at := c.i
		num, typ, ok := c.tag()
		switch {
		case !ok:
		case num != 1:
			ok = c.skip(num, typ)
		case typ == wireBytes:
			var lo, hi, m int
			if lo, hi, ok = c.bytes(); ok {
				m, ok = countPacked(cursor{c.b, lo, hi}, kind)
				n += m
			}
		case typ == wire32 && kind == format.FloatList, typ == wireVarint && kind == format.Int64List:
			ok = c.skipPlain(typ)
			n++
		default:
			ok = !strict && c.skip(num, typ)
		}
		if !ok {
			return n, at, false
		}
	}
	return n, c.i, true
}

// countPacked returns how many values field 1 of a list of that kind holds if
// its wire type is bytes.
func countPacked(v cursor, kind format.Kind) (int, bool) {
	size := v.end - v.i
	switch kind {
	case format.FloatList:
		return size / 4, size%4 == 0
	case format.Int64List:
		return varint.Count(v.rest())
	case format.FeatureList:
		var w value
		_, err := w.feature(v, nil, false, false)
		return 1, err == nil
	default:
		return 1, true
	}
}
