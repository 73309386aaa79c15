package shard

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"shardtool/format"
	"shardtool/format/tfexample"
)

// encodeValues writes the values of a feature that is no byte string as the
// text of a tar field: JSON lists of whole numbers; of floats in their shortest
// exact form, "NaN", "Infinity" and "-Infinity" (a NaN with other bits than
// the usual ones as "NaN:" and its bits in hexadecimal); of byte strings in
// base64; of features as objects with one key, the kind.
func encodeValues(dst []byte, f tfexample.Feature) ([]byte, error) {
	switch f.Kind() {
	case format.NoKind:
		return dst, nil
	case format.Int64List:
		vs, err := f.AppendInt64(nil)
		return appendList(dst, vs, func(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }), err
	case format.FloatList:
		vs, err := f.AppendFloat(nil)
		return appendList(dst, vs, appendFloat), err
	case format.BytesList, format.Bytes:
		vs, err := f.AppendBytes(nil)
		return appendList(dst, vs, func(dst, v []byte) []byte {
			dst = append(dst, '"')
			dst = base64.StdEncoding.AppendEncode(dst, v)
			return append(dst, '"')
		}), err
	case format.FeatureList:
		return encodeSteps(dst, f)
	}
	return dst, fmt.Errorf("kind %v", f.Kind())
}

func appendList[T any](dst []byte, vs []T, one func([]byte, T) []byte) []byte {
	dst = append(dst, '[')
	for i, v := range vs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = one(dst, v)
	}
	return append(dst, ']')
}

const usualNaN = 0x7fc00000

func appendFloat(dst []byte, v float32) []byte {
	switch bits := math.Float32bits(v); {
	case bits == usualNaN:
		return append(dst, `"NaN"`...)
	case v != v:
		return fmt.Appendf(dst, `"NaN:%08x"`, bits)
	case math.IsInf(float64(v), 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(float64(v), -1):
		return append(dst, `"-Infinity"`...)
	}
	return strconv.AppendFloat(dst, float64(v), 'g', -1, 32)
}

func parseFloat(raw json.RawMessage) (float32, error) {
	if len(raw) > 0 && raw[0] != '"' {
		v, err := strconv.ParseFloat(string(raw), 32)
		return float32(v), err
	}
	var word string
	if err := json.Unmarshal(raw, &word); err != nil {
		return 0, err
	}
	switch word {
	case "NaN":
		return math.Float32frombits(usualNaN), nil
	case "Infinity":
		return float32(math.Inf(1)), nil
	case "-Infinity":
		return float32(math.Inf(-1)), nil
	}
	if len(word) == len("NaN:00000000") && word[:4] == "NaN:" {
		bits, err := strconv.ParseUint(word[4:], 16, 32)
		return math.Float32frombits(uint32(bits)), err
	}
	return 0, fmt.Errorf("no float: %q", word)
}

// encodeSteps writes the features of a FeatureList.
func encodeSteps(dst []byte, f tfexample.Feature) ([]byte, error) {
	dst = append(dst, '[')
	for i, step := range f.Steps() {
		if i > 0 {
			dst = append(dst, ',')
		}
		if step.Kind() == format.NoKind {
			dst = append(dst, "{}"...)
			continue
		}
		dst = fmt.Appendf(dst, `{"%s":`, step.Kind())
		var err error
		if dst, err = encodeValues(dst, step); err != nil {
			return dst, err
		}
		dst = append(dst, '}')
	}
	return append(dst, ']'), nil
}

// decodeValues appends the encoded list that a text of encodeValues stands
// for. A text that encodeValues would have written otherwise is an error, so
// that whatever is taken for a list can be written back to the byte; so is a
// list of one byte string, which encodeValues never meets.
func decodeValues(dst []byte, kind format.Kind, text []byte) ([]byte, error) {
	f, err := parseValues(kind, text)
	if err != nil {
		return dst, err
	}
	again, err := encodeValues(nil, f)
	if err != nil || !bytes.Equal(again, text) || kind == format.BytesList && f.Len() == 1 {
		return dst, fmt.Errorf("not a list of kind %s", kind)
	}
	return append(dst, f.Encoded()...), nil
}

func parseValues(kind format.Kind, text []byte) (tfexample.Feature, error) {
	switch kind {
	case format.Int64List:
		vs, err := parseList(text, func(raw json.RawMessage) (int64, error) { return strconv.ParseInt(string(raw), 10, 64) })
		return tfexample.Int64Of(vs...), err
	case format.FloatList:
		vs, err := parseList(text, parseFloat)
		return tfexample.FloatOf(vs...), err
	case format.BytesList:
		vs, err := parseList(text, func(raw json.RawMessage) (v []byte, err error) {
			err = json.Unmarshal(raw, &v)
			return v, err
		})
		return tfexample.BytesOf(vs...), err
	case format.FeatureList:
		vs, err := parseList(text, parseStep)
		return tfexample.ListOf(vs...), err
	}
	return tfexample.FeatureOf(format.NoKind, nil), nil
}

func parseList[T any](text []byte, one func(json.RawMessage) (T, error)) ([]T, error) {
	var raws []json.RawMessage
	if err := json.Unmarshal(text, &raws); err != nil {
		return nil, err
	}
	vs := make([]T, len(raws))
	for i, raw := range raws {
		var err error
		if vs[i], err = one(raw); err != nil {
			return nil, err
		}
	}
	return vs, nil
}

func parseStep(raw json.RawMessage) (tfexample.Feature, error) {
	var step map[string]json.RawMessage
	if err := json.Unmarshal(raw, &step); err != nil {
		return tfexample.Feature{}, err
	}
	for _, kind := range []format.Kind{format.BytesList, format.FloatList, format.Int64List} {
		if list, ok := step[kind.String()]; ok {
			return parseValues(kind, list)
		}
	}
	return tfexample.FeatureOf(format.NoKind, nil), nil
}
