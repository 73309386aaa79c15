package codec_test

import (
	"bytes"
	"testing"

	"shardtool/format"
	"shardtool/format/codec"
	"shardtool/tensor"
)

func seed(f *testing.F, suffixes ...string) {
	for _, c := range fixtures(f).Fields {
		for _, s := range suffixes {
			if c.Field == s {
				f.Add([]byte(c.Data))
			}
		}
	}
}

// decodes checks that a field is read or refused with an *format.Error, and that
// what it is read as is not larger than it could be.
func decodes(t *testing.T, name string, data []byte) {
	limits := &format.Limits{Record: 1 << 16}
	v, err := codec.Decode(name, data, &codec.Options{Limits: limits})
	if err != nil {
		if e := format.AsError(err); e == nil || e.Field != name || format.Sentinel(err) == format.ErrIO {
			t.Fatalf("%q: %v", data, err)
		}
		return
	}
	var all []tensor.Dense
	switch v.Kind() {
	case codec.Array:
		all = append(all, v.Dense())
	case codec.List:
		all = v.Denses()
	case codec.Arrays:
		for _, d := range v.Named() {
			all = append(all, d)
		}
	}
	size := 0
	for _, d := range all {
		if len(d.Bytes()) != d.Shape().Elems()*d.DType().Size() {
			t.Fatalf("%q: %v of %v in %d bytes", data, d.DType(), d.Shape(), len(d.Bytes()))
		}
		size += len(d.Bytes())
	}
	if most := max(len(data), int(limits.Record)); size > most {
		t.Fatalf("%d bytes of arrays", size)
	}
}

func FuzzNPY(f *testing.F) {
	seed(f, "npy")
	f.Fuzz(func(t *testing.T, data []byte) {
		decodes(t, "npy", data)
		fills(t, field("npy", data))
	})
}

func FuzzNPZ(f *testing.F) {
	seed(f, "npz", "feat.npz")
	f.Fuzz(func(t *testing.T, data []byte) { decodes(t, "npz", data) })
}

func FuzzTen(f *testing.F) {
	seed(f, "ten", "tb")
	f.Fuzz(func(t *testing.T, data []byte) {
		decodes(t, "ten", data)
		fills(t, field("ten", data))
	})
}

func FuzzJSON(f *testing.F) {
	seed(f, "json", "jsn")
	f.Fuzz(func(t *testing.T, data []byte) {
		sameAsGo(t, data)
		fills(t, field("json", data))
	})
}

func FuzzGzip(f *testing.F) {
	seed(f, "txt.gz", "cls.gz", "caption.txt.gz")
	f.Fuzz(func(t *testing.T, data []byte) { decodes(t, "txt.gz", data) })
}

// FuzzFill: the first byte is the kind.
func FuzzFill(f *testing.F) {
	seq := fixtures(f).Sequence
	f.Add(append([]byte{byte(format.FeatureList)}, seq.Message...))
	for _, l := range []*format.Field{
		list("", ints(1, 2, 300)), list("", floats(1, 2)), list("", texts([]byte("ab"), []byte("cd"))),
		list("", steps(ints(1), floats(2), texts([]byte("abcd")))), list("", steps(ints(1, 2), ints())),
	} {
		f.Add(append([]byte{byte(l.Kind)}, l.Data...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		for _, name := range []string{"v", "cls", "npy", "json"} {
			fills(t, &format.Field{Name: name, Kind: format.Kind(data[0] % 6), Data: data[1:]})
		}
	})
}

// fills checks that a field is read or refused in every way, and that ways that
// should agree do.
func fills(t *testing.T, f *format.Field) {
	slot := newDense(tensor.Int64, tensor.Shape{2, 3})
	for _, w := range everyWay(slot, f) {
		if w.error == nil {
			continue
		}
		if e := format.AsError(w.error); e == nil || e.Field != f.Name || format.Sentinel(w.error) == format.ErrIO {
			t.Fatalf("%v %q: %s: %v", f.Kind, f.Data, w.what, w.error)
		}
	}
	rows, n, err := codec.AppendRows(nil, tensor.Int64, tensor.Shape{3}, f)
	if err == nil && len(rows) != 24*n {
		t.Fatalf("%v %q: %d rows in %d bytes", f.Kind, f.Data, n, len(rows))
	}
	values, err2 := codec.AppendInt64(nil, f)
	if err == nil && (err2 != nil || !bytes.Equal(native(values), rows)) {
		t.Fatalf("%v %q: rows % x, values % x, %v", f.Kind, f.Data, rows, native(values), err2)
	}
	flat, splits, err3 := codec.AppendRagged([]int64(nil), nil, f)
	if err3 == nil && (err2 != nil || !bytes.Equal(native(flat), native(values)) || splits[len(splits)-1] != int64(len(flat))) {
		t.Fatalf("%v %q: ragged %v %v, values %v, %v", f.Kind, f.Data, flat, splits, values, err2)
	}
	if err := codec.Fill(slot, f); err == nil && (err2 != nil || !bytes.Equal(native(values), slot.Bytes())) {
		t.Fatalf("%v %q: filled %v, values %v, %v", f.Kind, f.Data, slot.Int64(), values, err2)
	}
}
