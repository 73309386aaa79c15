package tfexample_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/format/tfexample"
	"shardtool/internal/simd"
)

// TestDecode: lists encoded by hand, packed, not, and mixed, into room for some
// of their values.
func TestDecode(t *testing.T) {
	minus := "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
	for _, tt := range []struct {
		name string
		data string
		want []int64
		err  string
	}{
		{"empty", "", nil, ""},
		{"an empty part", "\x0a\x00", nil, ""},
		{"packed", "\x0a\x03\x05\xac\x02", []int64{5, 300}, ""},
		{"not packed", "\x08\x05\x08\xac\x02", []int64{5, 300}, ""},
		{"mixed, with an empty part and an unknown field", "\x0a\x01\x05\x08\xac\x02\x0a\x00\x12\x01x\x0a\x0a" + minus, []int64{5, 300, -1}, ""},
		{"the second part cut", "\x0a\x01\x05\x0a\x02\x05\x80", []int64{5, 5}, "corrupt: not a list of int64, at byte 4 of the record"},
		{"a part longer than the list", "\x0a\x01\x05\x0a\x03\x05", []int64{5}, "corrupt: not a list of int64, at byte 4 of the record"},
		{"a value cut", "\x08\x05\x08\x80", []int64{5}, "corrupt: not a list of int64, at byte 3 of the record"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tfexample.FeatureOf(format.Int64List, []byte(tt.data))
			all, err := f.AppendInt64([]int64{7})
			if !slices.Equal(all[1:], tt.want) || text(err) != tt.err {
				t.Errorf("appended %v, %v, want %v, %q", all[1:], err, tt.want, tt.err)
			}
			for room := range len(tt.want) + 3 {
				dst, narrow := make([]int64, room), make([]int32, room)
				n, more, err := f.DecodeInt64(dst)
				k, more32, err32 := f.DecodeInt32(narrow)
				want := tt.want[:min(room, len(tt.want))]
				if !slices.Equal(dst[:n], want) || room > len(tt.want) && text(err) != tt.err || err == nil && more != (room < len(tt.want)) {
					t.Errorf("into %d: %v, %v, %v", room, dst[:n], more, err)
				}
				if k != n || more32 != more || text(err32) != text(err) || !slices.EqualFunc(narrow[:k], want, func(a int32, b int64) bool { return int64(a) == b }) {
					t.Errorf("int32 into %d: %v, %v, %v", room, narrow[:k], more32, err32)
				}
			}
		})
	}
	for _, tt := range []struct {
		name string
		data string
		want []float32
		err  string
	}{
		{"empty", "", nil, ""},
		{"packed", "\x0a\x08\x00\x00\x80\x3f\x00\x00\x00\xc0", []float32{1, -2}, ""},
		{"not packed", "\x0d\x00\x00\x80\x3f\x0d\x00\x00\x00\xc0", []float32{1, -2}, ""},
		{"mixed", "\x0a\x00\x0a\x04\x00\x00\x80\x3f\x0d\x00\x00\x00\xc0", []float32{1, -2}, ""},
		{"a part of no whole values", "\x0a\x04\x00\x00\x80\x3f\x0a\x03\x00\x00\x00", []float32{1}, "corrupt: not a list of floats, at byte 7 of the record"},
	} {
		t.Run("float, "+tt.name, func(t *testing.T) {
			f := tfexample.FeatureOf(format.FloatList, []byte(tt.data))
			all, err := f.AppendFloat([]float32{7})
			if !slices.Equal(all[1:], tt.want) || text(err) != tt.err {
				t.Errorf("appended %v, %v, want %v, %q", all[1:], err, tt.want, tt.err)
			}
			for room := range len(tt.want) + 3 {
				dst := make([]float32, room)
				n, more, err := f.DecodeFloat(dst)
				if !slices.Equal(dst[:n], tt.want[:min(room, len(tt.want))]) || room > len(tt.want) && text(err) != tt.err || err == nil && more != (room < len(tt.want)) {
					t.Errorf("into %d: %v, %v, %v", room, dst[:n], more, err)
				}
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestDecodeWrongly(t *testing.T) {
	ints := tfexample.FeatureOf(format.Int64List, protowire.AppendVarint([]byte("\x0a\x06\x01"), 1<<31))
	if n, _, err := ints.DecodeInt32(make([]int32, 4)); n != 1 || text(err) != "schema: value 1 of the list is beyond 32 bits" {
		t.Errorf("2^31 as int32: %d, %v", n, err)
	}
	if _, _, err := ints.DecodeFloat(nil); text(err) != "schema: the feature is of kind int64, not float" {
		t.Error(err)
	}
	if _, _, err := (tfexample.Feature{}).DecodeInt64(nil); text(err) != "schema: the feature is of kind bytes_list, not int64" {
		t.Error(err)
	}
}

// TestPropertyNumbers: lists in pieces of any size, packed or not, of a parsed
// Example and of a field, with and without assembly.
func TestPropertyNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		defer simd.SetLevel(rapid.SampledFrom([]simd.Level{simd.Generic, simd.AVX2}).Draw(t, "level"))()
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var want []int64
		var floats []float32
		var ints, singles []byte
		for range rapid.IntRange(0, 4).Draw(t, "pieces") {
			if n := rapid.IntRange(-3, 400).Draw(t, "values of a piece"); n >= 0 {
				var part, partF []byte
				for range n {
					v := int64(r.Uint64N(50257)) - 100*int64(r.IntN(50)/49)
					want = append(want, v)
					part = protowire.AppendVarint(part, uint64(v))
					floats = append(floats, float32(v))
					partF = protowire.AppendFixed32(partF, math.Float32bits(float32(v)))
				}
				ints = protowire.AppendBytes(append(ints, 0x0a), part)
				singles = protowire.AppendBytes(append(singles, 0x0a), partF)
			} else {
				want, floats = append(want, 3), append(floats, 3)
				ints = append(ints, 0x08, 3)
				singles = protowire.AppendFixed32(append(singles, 0x0d), math.Float32bits(3))
			}
		}
		entry := func(name string, kind byte, list []byte) []byte {
			e := append([]byte{0x0a, byte(len(name))}, name...)
			e = protowire.AppendBytes(append(e, 0x12), protowire.AppendBytes([]byte{kind}, list))
			return protowire.AppendBytes([]byte{0x0a}, e)
		}
		payload := protowire.AppendBytes([]byte{0x0a}, append(entry("i", 0x1a, ints), entry("f", 0x12, singles)...))
		var e tfexample.Example
		if err := e.Parse(payload); err != nil {
			t.Fatal(err)
		}
		parsed, _ := e.Lookup("i")
		for _, f := range []tfexample.Feature{parsed, tfexample.FeatureOf(format.Int64List, ints)} {
			got, err := f.AppendInt64(nil)
			if err != nil || !slices.Equal(got, want) || f.Len() != len(want) {
				t.Fatalf("%d values, %v, want %d", len(got), err, len(want))
			}
			dst := make([]int64, rapid.IntRange(0, 1800).Draw(t, "room"))
			n, more, err := f.DecodeInt64(dst)
			if k := min(len(dst), len(want)); err != nil || n != k || more != (k < len(want)) || !slices.Equal(dst[:n], want[:k]) {
				t.Fatalf("%d of %d values into %d, %v, %v", n, len(want), len(dst), more, err)
			}
		}
		parsed, _ = e.Lookup("f")
		for _, f := range []tfexample.Feature{parsed, tfexample.FeatureOf(format.FloatList, singles)} {
			got, err := f.AppendFloat(nil)
			if err != nil || !slices.Equal(got, floats) || f.Len() != len(want) {
				t.Fatalf("%d floats, %v, want %d", len(got), err, len(want))
			}
		}
	})
}

// BenchmarkTokens is of a record of 1 KB: one list of 375 tokens below 50257, in
// steps.
func BenchmarkTokens(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var payloads [64][]byte
	var w tfexample.Builder
	for i := range payloads {
		values := make([]int64, 375)
		for k := range values {
			values[k] = r.Int64N(50257)
		}
		w.Reset()
		w.AddInt64("tokens", values...)
		payloads[i] = w.AppendTo(nil)
	}
	var e tfexample.Example
	var slot [512]int64
	var fields []format.Field
	for _, l := range []simd.Level{simd.Generic, simd.AVX2} {
		run := func(name string, f func(payload []byte) error) {
			b.Run(l.String()+"/"+name, func(b *testing.B) {
				defer simd.SetLevel(l)()
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if err := f(payloads[i%len(payloads)]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("parse", func(p []byte) error { return e.Parse(p) })
		run("parse, fields and decode", func(p []byte) error {
			err := e.Parse(p)
			fields = e.AppendFields(fields[:0], 0)
			if err == nil {
				_, _, err = tfexample.FeatureOf(fields[0].Kind, fields[0].Data).DecodeInt64(slot[:])
			}
			return err
		})
	}
}
