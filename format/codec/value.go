package codec

import (
	"bytes"
	"fmt"

	"shardtool/tensor"
)

// Kind is the type of a Value.
type Kind uint8

const (
	Bytes  Kind = iota // Bytes
	Int64              // Int64
	Text               // Text, or Bytes for a view of it
	JSON               // JSON
	Array              // Dense
	Arrays             // Named: arrays that have names
	List               // Denses: arrays in their order
	Image              // Bytes, still encoded, and Encoding
	Other              // Other: what a caller's codec makes
)

var kindNames = [...]string{"bytes", "int64", "text", "json", "array", "arrays", "list", "image", "other"}

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Value is what a field holds. The methods named for a kind panic for a value of
// another. The zero Value is no bytes.
type Value struct {
	kind Kind
	num  int64
	data []byte
	ref  any // of JSON, Array, Arrays, List and Other
}

// OfBytes is a value of kind Bytes, a view of b.
func OfBytes(b []byte) Value { return Value{kind: Bytes, data: b} }

// OfInt64 is a value of kind Int64.
func OfInt64(v int64) Value { return Value{kind: Int64, num: v} }

// OfText is a value of kind Text, a view of b, which should be UTF-8.
func OfText(b []byte) Value { return Value{kind: Text, data: b} }

// OfJSON is a value of kind JSON, of the types that JSON returns.
func OfJSON(v any) Value { return Value{kind: JSON, ref: v} }

// OfDense is a value of kind Array.
func OfDense(d tensor.Dense) Value { return Value{kind: Array, ref: d} }

// OfNamed is a value of kind Arrays.
func OfNamed(m map[string]tensor.Dense) Value { return Value{kind: Arrays, ref: m} }

// OfDenses is a value of kind List.
func OfDenses(ds []tensor.Dense) Value { return Value{kind: List, ref: ds} }

// OfImage is a value of kind Image, a view of the encoded b.
func OfImage(b []byte) Value { return Value{kind: Image, data: b} }

// OfOther is a value of kind Other.
func OfOther(v any) Value { return Value{kind: Other, ref: v} }

// Kind returns the type of the value.
func (v Value) Kind() Kind { return v.kind }

// Bytes returns the bytes of a value of kind Bytes, Text or Image: those that
// were decoded, or of which they are a view.
func (v Value) Bytes() []byte {
	if v.kind != Text && v.kind != Image {
		v.must(Bytes)
	}
	return v.data
}

// Int64 returns the number of a value of kind Int64.
func (v Value) Int64() int64 {
	v.must(Int64)
	return v.num
}

// Text returns a copy of the text of a value of kind Text.
func (v Value) Text() string {
	v.must(Text)
	return string(v.data)
}

// JSON returns a value of kind JSON: nil, a bool, a json.Number, a string, an
// []any or a map[string]any of such. A number is as it was written; NaN,
// Infinity and -Infinity, which Python writes, are numbers, and their Float64 is
// what they say.
func (v Value) JSON() any {
	v.must(JSON)
	return v.ref
}

// Dense returns the array of a value of kind Array.
func (v Value) Dense() tensor.Dense {
	v.must(Array)
	return v.ref.(tensor.Dense)
}

// Named returns the arrays of a value of kind Arrays by their names, without
// the .npy that they have in a .npz.
func (v Value) Named() map[string]tensor.Dense {
	v.must(Arrays)
	return v.ref.(map[string]tensor.Dense)
}

// Denses returns the arrays of a value of kind List.
func (v Value) Denses() []tensor.Dense {
	v.must(List)
	return v.ref.([]tensor.Dense)
}

// Other returns a value of kind Other.
func (v Value) Other() any {
	v.must(Other)
	return v.ref
}

// Encoding returns what a value of kind Image is by its first bytes, whatever
// its name said: "jpeg", "png", "webp", "gif", or "" for something else.
func (v Value) Encoding() string {
	v.must(Image)
	for _, m := range encodings {
		if bytes.HasPrefix(v.data, []byte(m.magic)) {
			return m.name
		}
	}
	if len(v.data) >= 12 && string(v.data[:4]) == "RIFF" && string(v.data[8:12]) == "WEBP" {
		return "webp"
	}
	return ""
}

var encodings = [...]struct{ magic, name string }{
	{"\xff\xd8\xff", "jpeg"}, {"\x89PNG\r\n\x1a\n", "png"}, {"GIF87a", "gif"}, {"GIF89a", "gif"},
}

func (v Value) must(k Kind) {
	if v.kind != k {
		panic(fmt.Sprintf("codec: the value is of kind %v, not %v", v.kind, k))
	}
}
