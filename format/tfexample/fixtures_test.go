package tfexample_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"shardtool/format"
	"shardtool/format/tfexample"
)

const fixtures = "../../fixtures"

// tfFile is a file that TensorFlow wrote, and what TensorFlow reads in it; see
// fixtures/README.md.
type tfFile struct {
	File        string     `json:"file"`
	Compression string     `json:"compression"`
	Holds       string     `json:"holds"`
	Records     []tfRecord `json:"records"`
}

type tfRecord struct {
	Name     string      `json:"name"`
	SHA256   string      `json:"sha256"`
	Features []tfFeature `json:"features"`
	Context  []tfFeature `json:"context"`
	Lists    []tfList    `json:"lists"`
	Error    string      `json:"error"`
}

type tfFeature struct {
	Name   string   `json:"name"`
	Kind   string   `json:"kind"`
	Values []string `json:"values"`
}

type tfList struct {
	Name  string      `json:"name"`
	Steps []tfFeature `json:"steps"`
}

func load(t testing.TB, name string, v any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(fixtures, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

// records returns the payloads of a TFRecord file. The framing is format/
// tfrecord's to check.
func records(t testing.TB, name string) (all [][]byte) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(fixtures, name))
	if err != nil {
		t.Fatal(err)
	}
	var z io.Reader = bytes.NewReader(b)
	switch {
	case strings.Contains(name, ".gzip."):
		z, err = gzip.NewReader(z)
	case strings.Contains(name, ".zlib."):
		z, err = zlib.NewReader(z)
	}
	if err == nil {
		b, err = io.ReadAll(z)
	}
	if err != nil {
		t.Fatal(err)
	}
	for len(b) > 0 {
		n := binary.LittleEndian.Uint64(b)
		all = append(all, b[12:12+n:12+n])
		b = b[16+n:]
	}
	return all
}

// show gives a feature in the terms of the fixtures.
func show(t testing.TB, name string, f tfexample.Feature) tfFeature {
	t.Helper()
	s := tfFeature{Name: name, Values: []string{}}
	var err error
	switch f.Kind() {
	case format.BytesList:
		var vs [][]byte
		vs, err = f.AppendBytes(nil)
		i := 0
		for v := range f.Bytes() {
			if !bytes.Equal(v, vs[i]) || !bytes.Equal(f.At(i), v) {
				t.Errorf("%s: Bytes, At and AppendBytes differ at %d", name, i)
			}
			s.Values = append(s.Values, hex.EncodeToString(v))
			i++
		}
		s.Kind = "bytes"
	case format.FloatList:
		var vs []float32
		vs, err = f.AppendFloat(nil)
		for _, v := range vs {
			s.Values = append(s.Values, fmt.Sprintf("%08x", math.Float32bits(v)))
		}
		s.Kind = "float"
	case format.Int64List:
		var vs []int64
		vs, err = f.AppendInt64(nil)
		for _, v := range vs {
			s.Values = append(s.Values, strconv.FormatInt(v, 10))
		}
		s.Kind = "int64"
	case format.NoKind:
	default:
		t.Errorf("%s is of kind %s", name, f.Kind())
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if f.Len() != len(s.Values) {
		t.Errorf("%s: Len is %d, there are %d values", name, f.Len(), len(s.Values))
	}
	return s
}

// showAll gives features in the order of their names.
func showAll(t testing.TB, f *tfexample.Features) []tfFeature {
	t.Helper()
	all := []tfFeature{}
	for i := range f.Len() {
		name, feature := f.At(i)
		all = append(all, show(t, name, feature))
		if again, ok := f.Lookup(name); !ok || again.Kind() != feature.Kind() || again.Len() != feature.Len() {
			t.Errorf("Lookup(%q) is not what At(%d) is", name, i)
		}
		if again := tfexample.FeatureOf(feature.Kind(), feature.Encoded()); again.Len() != feature.Len() {
			t.Errorf("%q: %d values, FeatureOf has %d", name, feature.Len(), again.Len())
		}
	}
	slices.SortFunc(all, func(a, b tfFeature) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func showLists(t testing.TB, f *tfexample.Features) []tfList {
	t.Helper()
	all := []tfList{}
	for i := range f.Len() {
		name, list := f.At(i)
		if list.Kind() != format.FeatureList {
			t.Errorf("list %q is of kind %s", name, list.Kind())
		}
		l := tfList{Name: name, Steps: []tfFeature{}}
		for k, step := range list.Steps() {
			l.Steps = append(l.Steps, show(t, "", step))
			if again := list.Step(k); again.Len() != step.Len() {
				t.Errorf("list %q: Step(%d) differs", name, k)
			}
		}
		if list.Len() != len(l.Steps) {
			t.Errorf("list %q: Len is %d, there are %d steps", name, list.Len(), len(l.Steps))
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b tfList) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func asJSON(v any) string { b, _ := json.Marshal(v); return string(b) }

// TestTensorFlow holds what is parsed against what TensorFlow parses.
func TestTensorFlow(t *testing.T) {
	var files []tfFile
	load(t, "tf/expected.json", &files)
	var example tfexample.Example
	var sequence tfexample.SequenceExample
	ran := 0
	for _, f := range files {
		payloads := records(t, "tf/"+f.File)
		if len(payloads) != len(f.Records) {
			t.Fatalf("%s has %d records, expected.json %d", f.File, len(payloads), len(f.Records))
		}
		for i, want := range f.Records {
			t.Run(f.File+"/"+want.Name, func(t *testing.T) {
				payload := payloads[i]
				if sum := sha256.Sum256(payload); hex.EncodeToString(sum[:]) != want.SHA256 {
					t.Fatal("the payload is not the expected one")
				}
				var err error
				var got, expected string
				class := tfexample.Classify(payload)
				switch f.Holds {
				case "example":
					err = example.Parse(payload)
					got, expected = asJSON(showAll(t, &example.Features)), asJSON(want.Features)
				case "sequence":
					err = sequence.Parse(payload)
					got = asJSON(showAll(t, &sequence.Context)) + asJSON(showLists(t, &sequence.Lists))
					expected = asJSON(want.Context) + asJSON(want.Lists)
				default:
					if class != tfexample.NotExample && len(payload) > 0 {
						t.Errorf("classified as %s", class)
					}
					return
				}
				ran++
				if want.Error != "" {
					if !errors.Is(err, format.ErrCorrupt) || class != tfexample.NotExample {
						t.Errorf("error %v, class %s, where TensorFlow has a %s", err, class, want.Error)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if got != expected {
					t.Errorf("parsed   %s\nexpected %s", got, expected)
				}
				if !strings.Contains(f.File, "variants") && class.String() != f.Holds && len(want.Lists) > 0 {
					t.Errorf("classified as %s", class)
				}
			})
		}
	}
	if ran < 80 {
		t.Errorf("only %d records were parsed", ran)
	}
}

// TestBuildersWriteAsTensorFlow builds what TensorFlow wrote, feature by
// feature in the order of the wire, and compares the bytes.
func TestBuildersWriteAsTensorFlow(t *testing.T) {
	var example tfexample.Example
	var sequence tfexample.SequenceExample
	var b tfexample.Builder
	var sb tfexample.SequenceBuilder
	for _, payload := range records(t, "tf/examples.tfrecord") {
		if err := example.Parse(payload); err != nil {
			t.Fatal(err)
		}
		for name, add := range map[string]func(){
			"values": func() {
				for i := range example.Len() {
					addValues(t, &b, &example.Features, i)
				}
			},
			"fields": func() {
				for _, f := range example.AppendFields(nil, 0) {
					b.AddField(f)
				}
			},
		} {
			b.Reset()
			add()
			if got := b.AppendTo([]byte("x"))[1:]; !bytes.Equal(got, payload) {
				t.Errorf("by %s:\nbuilt %x\nwas   %x", name, got, payload)
			}
		}
	}
	for _, payload := range records(t, "tf/sequences.tfrecord") {
		if err := sequence.Parse(payload); err != nil {
			t.Fatal(err)
		}
		sb.Reset()
		for _, f := range sequence.AppendFields(nil, 0) {
			sb.AddField(f)
		}
		if got := sb.AppendTo(nil); !bytes.Equal(got, payload) {
			t.Errorf("built %x\nwas   %x", got, payload)
		}
		sb.Reset()
		for i := range sequence.Context.Len() {
			addValues(t, &sb.Context, &sequence.Context, i)
		}
		for i := range sequence.Lists.Len() {
			name, list := sequence.Lists.At(i)
			var steps []tfexample.Feature
			for _, s := range list.Steps() {
				steps = append(steps, s)
			}
			sb.AddList(name, steps...)
		}
		if got := sb.AppendTo(nil); !bytes.Equal(got, payload) {
			t.Errorf("by values:\nbuilt %x\nwas   %x", got, payload)
		}
	}
}

func addValues(t testing.TB, b *tfexample.Builder, from *tfexample.Features, i int) {
	t.Helper()
	name, f := from.At(i)
	switch f.Kind() {
	case format.BytesList:
		vs, _ := f.AppendBytes(nil)
		b.AddBytes(name, vs...)
	case format.FloatList:
		vs, _ := f.AppendFloat(nil)
		b.AddFloat(name, vs...)
	case format.Int64List:
		vs, _ := f.AppendInt64(nil)
		b.AddInt64(name, vs...)
	default:
		b.AddFeature(name, f)
	}
}
