package tfexample

import (
	"unicode/utf8"

	"shardtool/format"
)

// Features is the map of names to features of an Example or of the context of
// a SequenceExample, or the map of names to lists of features of the latter.
// Its order is that of the first appearance of each name. What it returns is
// lent until the message is parsed again; names are strings that last.
type Features struct {
	entries []entry
	names   names
	merged  []byte // lists that the wire has in pieces, put together
	most    int    // Limits.Fields
	count   int    // map entries seen
	lists   bool   // the values are FeatureLists
	strict  bool
	lazy    bool // lists of int64 are neither counted nor checked
}

type entry struct {
	name string
	value
}

// value is a feature on its way through a parse. The pieces of a list may be
// apart; from the second on they are put together in Features.merged, where
// only the value at hand grows.
type value struct {
	kind   format.Kind
	n      int
	data   []byte
	at     int // where data, or its last piece, begins in the record
	pieces int
	start  int // of data in merged, if there are several pieces
}

// Len returns how many names there are.
func (f *Features) Len() int { return len(f.entries) }

// At returns the name and feature of number i.
func (f *Features) At(i int) (string, Feature) {
	e := &f.entries[i]
	return e.name, Feature{e.kind, e.n, e.data}
}

// Lookup returns the feature of a name.
func (f *Features) Lookup(name string) (Feature, bool) {
	i := f.names.lookup(name)
	if i < 0 {
		return Feature{kind: format.NoKind}, false
	}
	_, v := f.At(i)
	return v, true
}

// AppendFields appends the features to dst as the fields of a sample: a list
// of exactly one byte string as format.Bytes, every other as its kind, with
// the encoded list. base is the offset of the record's payload in the stream.
func (f *Features) AppendFields(dst []format.Field, base int64) []format.Field {
	for i := range f.entries {
		e := &f.entries[i]
		field := format.Field{Name: e.name, Kind: e.kind, Data: e.data, Offset: base + int64(e.at)}
		if e.kind == format.BytesList && e.n == 1 {
			c := cursor{e.data, 0, len(e.data)}
			v, _ := c.nextString()
			field.Kind, field.Data = format.Bytes, v.rest()
			if e.pieces == 1 {
				field.Offset += int64(v.i)
			}
		}
		dst = append(dst, field)
	}
	return dst
}

func (f *Features) reset(most int, lists, strict bool) {
	f.entries, f.merged, f.count = f.entries[:0], f.merged[:0], 0
	f.names.reset()
	f.most, f.lists, f.strict = most, lists, strict
}

// merge adds what a Features or FeatureLists message holds.
func (f *Features) merge(c cursor) error {
	for c.more() {
		at := c.i
		num, typ, ok := c.tag()
		if !ok {
			return corrupt(at, "no field begins here in the features")
		}
		if num != 1 || typ != wireBytes {
			if f.strict && num == 1 || !c.skip(num, typ) {
				return corrupt(at, "a field of the features does not end")
			}
			continue
		}
		lo, hi, ok := c.bytes()
		if !ok {
			return corrupt(at, "a feature ends after the features do")
		}
		if f.count++; f.count > f.most {
			return format.Errorf(format.ErrLimit, format.Nowhere, "more than %d features, at byte %d of the record", f.most, at)
		}
		if err := f.entry(cursor{c.b, lo, hi}); err != nil {
			return err
		}
	}
	return nil
}

// entry adds one entry of the map.
func (f *Features) entry(c cursor) error {
	name := cursor{b: c.b}
	v := value{kind: format.NoKind, at: c.i}
	if f.lists {
		v.kind = format.FeatureList
	}
	for c.more() {
		at := c.i
		num, typ, ok := c.tag()
		if !ok {
			return corrupt(at, "no field begins here in a feature's entry")
		}
		if num > 2 || typ != wireBytes {
			if f.strict && num <= 2 || !c.skip(num, typ) {
				return corrupt(at, "a field of a feature's entry does not end")
			}
			continue
		}
		lo, hi, ok := c.bytes()
		sub := cursor{c.b, lo, hi}
		switch {
		case !ok:
			return corrupt(at, "a field of a feature's entry ends after it")
		case num == 1:
			if !utf8.Valid(name.rest()) { // one that this one takes the place of
				return corrupt(name.i, "a name is not UTF-8")
			}
			name.i, name.end = lo, hi
		default:
			var err error
			if f.lists {
				err = f.list(&v, sub)
			} else {
				f.merged, err = v.feature(sub, f.merged, f.strict, f.lazy)
			}
			if err != nil {
				return named(err, name.rest())
			}
		}
	}
	if !f.set(name.rest(), v) {
		return corrupt(name.i, "a name is not UTF-8")
	}
	return nil
}

// named adds the name of the field to an error, if it came before the fault.
func named(err error, name []byte) error {
	if e, ok := err.(*format.Error); ok {
		e.Field = string(name)
	}
	return err
}

// set gives a name its value, and reports whether the name is UTF-8.
func (f *Features) set(name []byte, v value) bool {
	id, seen := f.names.place(name, len(f.entries))
	if seen >= 0 {
		f.entries[seen].value = v
	} else {
		f.entries = append(f.entries, entry{f.names.all[id].name, v})
	}
	return f.names.all[id].valid
}

// list adds a FeatureList message to v.
func (f *Features) list(v *value, c cursor) error {
	n, at, ok := checkList(c, format.FeatureList, f.strict)
	if !ok {
		return corrupt(at, "a list of features is not sound")
	}
	f.merged = v.add(format.FeatureList, c, n, f.merged)
	return nil
}

// feature adds a Feature message to v and returns merged.
func (v *value) feature(c cursor, merged []byte, strict, lazy bool) ([]byte, error) {
	if v.pieces == 0 {
		v.kind, v.at = format.NoKind, c.i
	}
	for c.more() {
		at := c.i
		num, typ, ok := c.tag()
		if !ok {
			return merged, corrupt(at, "no field begins here in a feature")
		}
		if num > 3 || typ != wireBytes {
			if strict && num <= 3 || !c.skip(num, typ) {
				return merged, corrupt(at, "a field of a feature does not end")
			}
			continue
		}
		lo, hi, ok := c.bytes()
		if !ok {
			return merged, corrupt(at, "a list of values ends after its feature does")
		}
		kind, list := listKinds[num], cursor{c.b, lo, hi}
		n, at, ok := format.Unknown, 0, true
		if !lazy || kind != format.Int64List {
			n, at, ok = checkList(list, kind, strict)
		}
		if !ok {
			return merged, corrupt(at, "a list of "+kind.String()+" values is not sound")
		}
		merged = v.add(kind, list, n, merged)
	}
	return merged, nil
}

var listKinds = [...]format.Kind{1: format.BytesList, 2: format.FloatList, 3: format.Int64List}

// add makes a list the value, or joins it to a value of the same kind.
func (v *value) add(kind format.Kind, list cursor, n int, merged []byte) []byte {
	if v.pieces == 0 || v.kind != kind {
		*v = value{kind: kind, n: n, data: list.rest(), at: list.i, pieces: 1}
		return merged
	}
	if v.pieces == 1 {
		v.start = len(merged)
		merged = append(merged, v.data...)
	}
	merged = append(merged, list.rest()...)
	v.data = merged[v.start:len(merged):len(merged)]
	if v.n += n; n < 0 {
		v.n = format.Unknown // and so it was before
	}
	v.at = list.i
	v.pieces++
	return merged
}
