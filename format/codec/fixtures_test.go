package codec_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"shardtool/format"
	"shardtool/format/codec"
	"shardtool/format/tfexample"
	"shardtool/tensor"
)

// fixtureFile is fixtures/codec/expected.json; see fixtures/README.md.
type fixtureFile struct {
	Fields []struct {
		Name, Field string
		Data        hexBytes
		Want        fixtureValue
	}
	Sequence struct {
		Message hexBytes
		Ragged  []struct {
			Name, DType string
			Values      hexBytes
			Splits      []int64
		}
		Dense []struct {
			Name, DType string
			Shape       tensor.Shape
			Dense       tensor.Shape
			Values      hexBytes
			Error       bool
		}
		Raw []struct {
			Name, DType string
			Values      hexBytes
		}
	}
	Casts []struct {
		From, To     string
		Values, Cast hexBytes
	}
}

type fixtureValue struct {
	Error  string
	Kind   string
	Int64  string
	Text   string
	JSON   fixtureJSON
	Data   hexBytes
	DType  string
	Shape  tensor.Shape // nil: no such elements here
	List   []fixtureValue
	Arrays map[string]fixtureValue
}

type fixtureJSON struct {
	Object map[string]fixtureJSON
	Array  []fixtureJSON
	Int    string
	Float  string
	Word   any
}

type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

func fixtures(t testing.TB) *fixtureFile {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "codec", "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	f := new(fixtureFile)
	if err := json.Unmarshal(b, f); err != nil {
		t.Fatal(err)
	}
	return f
}

var dtypes = map[string]tensor.DType{}

func init() {
	for d := tensor.Float32; d <= tensor.Bool; d++ {
		dtypes[d.String()] = d
	}
}

// classes are those of the fields that webdataset refuses.
var classes = map[string]error{
	"npy objects":                     format.ErrUnsupported,
	"npy cut in its data":             format.ErrTruncated,
	"npy cut in its header":           format.ErrTruncated,
	"npy cut in its magic":            format.ErrTruncated,
	"npy without magic":               format.ErrWrongFormat,
	"npy negative axis":               format.ErrCorrupt,
	"npy of a shape that is no tuple": format.ErrCorrupt,
	"npy of another name":             format.ErrCorrupt,
	"npy of a call":                   format.ErrCorrupt,
	"npy version 9":                   format.ErrUnsupported,
	"npz cut":                         format.ErrTruncated,
	"npz of damaged data":             format.ErrCorrupt,
	"ten cut in its data":             format.ErrTruncated,
	"ten of another magic":            format.ErrWrongFormat,
	"ten of another type":             format.ErrUnsupported,
	"cls ''":                          format.ErrSchema,
	"cls '1.0'":                       format.ErrSchema,
	"cls '0x10'":                      format.ErrSchema,
	"cls '1__0'":                      format.ErrSchema,
	"cls '_1'":                        format.ErrSchema,
	"cls '1_'":                        format.ErrSchema,
	"cls '-'":                         format.ErrSchema,
	"cls 'seven'":                     format.ErrSchema,
	"cls '- 1'":                       format.ErrSchema,
	"cls '1 2'":                       format.ErrSchema,
	"txt latin-1":                     format.ErrSchema,
	"txt cut":                         format.ErrSchema,
	"txt surrogate":                   format.ErrSchema,
	"txt overlong":                    format.ErrSchema,
	"json empty":                      format.ErrTruncated,
	"json cut":                        format.ErrTruncated,
	"json cut string":                 format.ErrTruncated,
	"json cut word":                   format.ErrTruncated,
	"json cut number":                 format.ErrTruncated,
	"json comma":                      format.ErrCorrupt,
	"json comma in object":            format.ErrCorrupt,
	"json two":                        format.ErrCorrupt,
	"json zeros":                      format.ErrCorrupt,
	"json plus":                       format.ErrCorrupt,
	"json point":                      format.ErrCorrupt,
	"json point at the end":           format.ErrCorrupt,
	"json words":                      format.ErrCorrupt,
	"json single quotes":              format.ErrCorrupt,
	"json names":                      format.ErrCorrupt,
	"json control":                    format.ErrCorrupt,
	"json escape":                     format.ErrCorrupt,
	"json comment":                    format.ErrCorrupt,
	"json lone brace":                 format.ErrCorrupt,
	"json not UTF-8":                  format.ErrCorrupt,
	"gz cut":                          format.ErrTruncated,
}

func TestDecodeIsWebdatasets(t *testing.T) {
	all := fixtures(t).Fields
	if len(all) < 150 {
		t.Fatalf("%d fields", len(all))
	}
	for _, f := range all {
		if f.Field == "jpg" {
			f.Want.Kind = "image" // webdataset leaves bytes to other handlers
		}
		v, err := codec.Decode(f.Field, f.Data, nil)
		class := classes[f.Name]
		switch {
		case f.Want.Kind == "array" && f.Want.Shape == nil:
			class = format.ErrUnsupported
		case (class != nil) != (f.Want.Error != ""):
			t.Fatalf("%s: the test has class %v, webdataset %q", f.Name, class, f.Want.Error)
		}
		if format.Sentinel(err) != class {
			t.Errorf("%s: error %v, want %v", f.Name, err, class)
			continue
		}
		if class != nil {
			if e := format.AsError(err); e == nil || e.Field != f.Field {
				t.Errorf("%s: %v does not name the field %s", f.Name, err, f.Field)
			}
			continue
		}
		if err := sameValue(v, f.Want); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}

func sameValue(v codec.Value, want fixtureValue) error {
	if v.Kind().String() != want.Kind {
		return fmt.Errorf("kind %v, want %s", v.Kind(), want.Kind)
	}
	switch v.Kind() {
	case codec.Int64:
		if strconv.FormatInt(v.Int64(), 10) != want.Int64 {
			return fmt.Errorf("%d, want %s", v.Int64(), want.Int64)
		}
	case codec.Text:
		if v.Text() != want.Text || string(v.Bytes()) != want.Text {
			return fmt.Errorf("%q, want %q", v.Text(), want.Text)
		}
	case codec.Bytes, codec.Image:
		if !bytes.Equal(v.Bytes(), want.Data) {
			return fmt.Errorf("% x, want % x", v.Bytes(), want.Data)
		}
	case codec.JSON:
		return sameJSON(v.JSON(), want.JSON)
	case codec.Array:
		return sameArray(v.Dense(), want)
	case codec.List:
		if len(v.Denses()) != len(want.List) {
			return fmt.Errorf("%d arrays, want %d", len(v.Denses()), len(want.List))
		}
		for i, d := range v.Denses() {
			if err := sameArray(d, want.List[i]); err != nil {
				return fmt.Errorf("array %d: %w", i, err)
			}
		}
	case codec.Arrays:
		if len(v.Named()) != len(want.Arrays) {
			return fmt.Errorf("%d arrays, want %d", len(v.Named()), len(want.Arrays))
		}
		for name, w := range want.Arrays {
			if err := sameArray(v.Named()[name], w); err != nil {
				return fmt.Errorf("array %s: %w", name, err)
			}
		}
	}
	return nil
}

func sameArray(d tensor.Dense, want fixtureValue) error {
	if d.DType().String() != want.DType || !slices.Equal(d.Shape(), want.Shape) || !bytes.Equal(d.Bytes(), ofNative(want.Data, d.DType())) {
		return fmt.Errorf("%v %v % x, want %s %v % x", d.DType(), d.Shape(), d.Bytes(), want.DType, want.Shape, want.Data)
	}
	return nil
}

// ofNative turns elements, lowest byte first, into those of the machine.
func ofNative(b []byte, d tensor.DType) []byte {
	b = bytes.Clone(b)
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		for i := 0; i < len(b); i += d.Size() {
			slices.Reverse(b[i : i+d.Size()])
		}
	}
	return b
}

func sameJSON(v any, want fixtureJSON) error {
	switch v := v.(type) {
	case map[string]any:
		if want.Object == nil || len(v) != len(want.Object) {
			return fmt.Errorf("%v, want %v", v, want)
		}
		for name, w := range want.Object {
			if err := sameJSON(v[name], w); err != nil {
				return err
			}
		}
		return nil
	case []any:
		if want.Array == nil || len(v) != len(want.Array) {
			return fmt.Errorf("%v, want %v", v, want)
		}
		for i, w := range want.Array {
			if err := sameJSON(v[i], w); err != nil {
				return err
			}
		}
		return nil
	case json.Number:
		if want.Int != "" && (v.String() == want.Int || v == "-0" && want.Int == "0") {
			return nil
		}
		bits, err := strconv.ParseUint(want.Float, 16, 64)
		got, _ := v.Float64() // of a number beyond the range, an infinity
		if err == nil && (math.Float64bits(got) == bits || got != got && math.Float64frombits(bits) != math.Float64frombits(bits)) {
			return nil
		}
	default:
		if v == want.Word && want.Int+want.Float == "" {
			return nil
		}
	}
	return fmt.Errorf("%v, want %v", v, want)
}

// TestFillIsWebdatasets fills arrays of every field that is one of numbers.
func TestFillIsWebdatasets(t *testing.T) {
	filled := 0
	for _, f := range fixtures(t).Fields {
		want := f.Want
		if want.Kind == "list" && len(want.List) == 1 {
			want = want.List[0]
		}
		if want.Kind != "array" || want.Shape == nil {
			continue
		}
		slot := newDense(dtypes[want.DType], want.Shape)
		if err := codec.Fill(slot, field(f.Field, f.Data)); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		} else if err := sameArray(slot, want); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		filled++
	}
	if filled < 60 {
		t.Errorf("only %d arrays", filled)
	}
}

func newDense(dtype tensor.DType, shape tensor.Shape) tensor.Dense {
	d, _ := tensor.New(new(tensor.Pool), dtype, shape)
	return d
}

func field(name string, data []byte) *format.Field {
	return &format.Field{Name: name, Data: data, Offset: format.Unknown}
}

func TestSequenceIsTensorFlows(t *testing.T) {
	seq := fixtures(t).Sequence
	var parsed tfexample.SequenceExample
	if err := parsed.Parse(seq.Message); err != nil {
		t.Fatal(err)
	}
	sample := format.Sample{Fields: parsed.AppendFields(nil, 0)}
	for _, tt := range seq.Ragged {
		got, splits, err := ragged(sample.Field(tt.Name), dtypes[tt.DType])
		if err != nil || !bytes.Equal(got, ofNative(tt.Values, dtypes[tt.DType])) || !slices.Equal(splits, tt.Splits) {
			t.Errorf("%s: % x %v, %v; want % x %v", tt.Name, got, splits, err, tt.Values, tt.Splits)
		}
	}
	for _, tt := range seq.Dense {
		dtype, shape := dtypes[tt.DType], tt.Dense
		if tt.Error {
			shape = append(tensor.Shape{3}, tt.Shape...)
		}
		slot := newDense(dtype, shape)
		err := codec.Fill(slot, sample.Field(tt.Name))
		rows, n, rowsErr := codec.AppendRows(nil, dtype, tt.Shape, sample.Field(tt.Name))
		if (err != nil) != tt.Error || (rowsErr != nil) != tt.Error {
			t.Errorf("%s %v: %v, %v; want an error: %v", tt.Name, shape, err, rowsErr, tt.Error)
		} else if want := ofNative(tt.Values, dtype); !tt.Error && (!bytes.Equal(slot.Bytes(), want) || !bytes.Equal(rows, want) || n != shape[0]) {
			t.Errorf("%s: % x, % x in %d rows, want % x", tt.Name, slot.Bytes(), rows, n, tt.Values)
		}
	}
	for _, tt := range seq.Raw {
		dtype := dtypes[tt.DType]
		slot := newDense(dtype, tensor.Shape{2, 4 / dtype.Size()})
		if err := codec.Fill(slot, sample.Field(tt.Name)); err != nil || !bytes.Equal(slot.Bytes(), ofNative(tt.Values, dtype)) {
			t.Errorf("%s as %v: % x, %v; want % x", tt.Name, dtype, slot.Bytes(), err, tt.Values)
		}
	}
}

func ragged(f *format.Field, dtype tensor.DType) ([]byte, []int64, error) {
	if dtype == tensor.Int64 {
		v, splits, err := codec.AppendRagged([]int64(nil), nil, f)
		b, _ := binary.Append(nil, binary.NativeEndian, v)
		return b, splits, err
	}
	v, splits, err := codec.AppendRagged([]float32(nil), nil, f)
	b, _ := binary.Append(nil, binary.NativeEndian, v)
	return b, splits, err
}

// TestCastsAreNumPys compares conversions of floats, element by element: where
// NumPy makes an infinity of a finite number, there is an error.
func TestCastsAreNumPys(t *testing.T) {
	codes := map[string]tensor.DType{"f2": tensor.Float16, "f4": tensor.Float32, "f8": tensor.Float64}
	for _, tt := range fixtures(t).Casts {
		from, to := codes[tt.From], codes[tt.To]
		n, overflows := len(tt.Values)/from.Size(), 0
		for i := range n {
			value, cast := tt.Values[i*from.Size():][:from.Size()], tt.Cast[i*to.Size():][:to.Size()]
			slot := newDense(to, nil)
			npy := new(bytes.Buffer)
			if err := tensor.WriteNPY(npy, tensor.View(from, nil, append(make([]byte, 0, 8), ofNative(value, from)...))); err != nil {
				t.Fatal(err)
			}
			err := codec.Fill(slot, field("npy", npy.Bytes()))
			if isInf(cast) && !isInf(value) {
				overflows++
				if format.Sentinel(err) != format.ErrSchema {
					t.Errorf("%s to %s, %d: error %v", tt.From, tt.To, i, err)
				}
			} else if err != nil || !bytes.Equal(slot.Bytes(), ofNative(cast, to)) {
				t.Errorf("%s to %s, %d: % x is % x, %v; want % x", tt.From, tt.To, i, value, slot.Bytes(), err, cast)
			}
		}
		if n < 300 || overflows == n {
			t.Errorf("%s to %s: %d values, %d overflows", tt.From, tt.To, n, overflows)
		}
	}
}

func isInf(b []byte) bool {
	switch len(b) {
	case 2:
		return binary.LittleEndian.Uint16(b)&0x7fff == 0x7c00
	case 4:
		return binary.LittleEndian.Uint32(b)&^(1<<31) == 0x7f800000
	}
	return binary.LittleEndian.Uint64(b)&^(1<<63) == 0x7ff<<52
}
