package tensor_test

import (
	"slices"
	"testing"

	"shardtool/tensor"
)

func ofInt64(values ...int64) tensor.Dense {
	d, _ := tensor.New(new(tensor.Pool), tensor.Int64, tensor.Shape{len(values)})
	copy(d.Int64(), values)
	return d
}

func TestRagged(t *testing.T) {
	r := tensor.Ragged{Values: ofInt64(1, 2, 3, 4, 5, 6, 7, 8), Splits: []int64{0, 2, 2, 5, 8}}
	want := [][]int64{{1, 2}, {}, {3, 4, 5}, {6, 7, 8}}
	if r.Len() != len(want) {
		t.Fatalf("%d rows", r.Len())
	}
	for i, w := range want {
		got := r.At(i)
		from, to := r.Range(i)
		if !slices.Equal(got.Int64(), w) || !slices.Equal(got.Shape(), tensor.Shape{len(w)}) || !slices.Equal(r.Values.Int64()[from:to], w) {
			t.Errorf("row %d: %v of shape %v, %d to %d; want %v", i, got.Int64(), got.Shape(), from, to, w)
		}
	}
	pairs := tensor.Ragged{Values: tensor.View(tensor.Int64, tensor.Shape{4, 2}, r.Values.Bytes()), Splits: []int64{0, 1, 4}}
	if got := pairs.At(1); !slices.Equal(got.Int64(), []int64{3, 4, 5, 6, 7, 8}) || !slices.Equal(got.Shape(), tensor.Shape{3, 2}) {
		t.Errorf("pairs: %v of shape %v", got.Int64(), got.Shape())
	}
	none := tensor.Ragged{Values: ofInt64(), Splits: []int64{0, 0}}
	if none.Len() != 1 || len(none.At(0).Int64()) != 0 || (tensor.Ragged{}).Len() != 0 {
		t.Error("no values have values")
	}
	for what, f := range map[string]func(){
		"beyond":      func() { r.At(4) },
		"before":      func() { r.At(-1) },
		"descending":  func() { tensor.Ragged{Values: r.Values, Splits: []int64{5, 3}}.At(0) },
		"past values": func() { tensor.Ragged{Values: r.Values, Splits: []int64{5, 9}}.At(0) },
	} {
		if !panics(f) {
			t.Errorf("%s does not panic", what)
		}
	}
	if n := testing.AllocsPerRun(100, func() { r.Range(1) }); n != 0 {
		t.Errorf("Range allocates %v times", n)
	}
}

func TestPadded(t *testing.T) {
	p := tensor.Padded{Values: tensor.View(tensor.Int64, tensor.Shape{2, 4}, ofInt64(1, 2, 0, 0, 3, 4, 5, 6).Bytes()), Lengths: []int64{2, 4}}
	for i, w := range [][]int64{{1, 2}, {3, 4, 5, 6}} {
		if got := p.At(i); !slices.Equal(got.Int64(), w) || !slices.Equal(got.Shape(), tensor.Shape{len(w)}) {
			t.Errorf("row %d: %v of shape %v, want %v", i, got.Int64(), got.Shape(), w)
		}
	}
	long := tensor.Padded{Values: p.Values, Lengths: []int64{5, -1}}
	if p.Len() != 2 || !panics(func() { p.At(2) }) || !panics(func() { long.At(0) }) || !panics(func() { long.At(1) }) {
		t.Error("a row that there is not")
	}
}

func TestBinary(t *testing.T) {
	b := tensor.Binary{Data: []byte("abcdefgh"), Splits: []int64{0, 2, 2, 5, 8}}
	for i, w := range []string{"ab", "", "cde", "fgh"} {
		if got := b.At(i); string(got) != w || cap(got) != len(w) {
			t.Errorf("string %d is %q, want %q", i, got, w)
		}
	}
	if b.Len() != 4 || (tensor.Binary{}).Len() != 0 || !panics(func() { b.At(4) }) {
		t.Error("a string that there is not")
	}
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}
