package tfexample_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"shardtool/format"
	"shardtool/format/tfexample"
)

type testCase struct {
	Name   string   `json:"name"`
	Kind   string   `json:"kind"`
	Files  []string `json:"files"`
	Expect struct {
		Examples  []map[string]any `json:"examples"`
		Sequences []struct {
			Context map[string]any   `json:"context"`
			Lists   map[string][]any `json:"lists"`
		} `json:"sequences"`
		Requests []request `json:"requests"`
	} `json:"expect"`
}

type request struct {
	Op     string `json:"op"`
	Record int    `json:"record"`
	Policy string `json:"policy"`
	Spec   map[string]struct {
		Dtype   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Default any    `json:"default"`
		VarLen  bool   `json:"varlen"`
	} `json:"spec"`
	Values json.RawMessage `json:"values"`
	Error  *struct {
		Class  string   `json:"class"`
		AlsoOK []string `json:"also_ok"`
		Record *int64   `json:"record"`
		Offset *int64   `json:"offset"`
		Field  string   `json:"field"`
	} `json:"error"`
}

// plain gives a feature as cases.json has it.
func plain(t *testing.T, f tfexample.Feature) any {
	s := show(t, "", f)
	values := []any{}
	for _, v := range s.Values {
		values = append(values, v)
	}
	switch s.Kind {
	case "":
		return nil
	case "int64":
		vs, _ := f.AppendInt64(nil)
		for i, v := range vs {
			values[i] = float64(v)
		}
	case "float":
		vs, _ := f.AppendFloat(nil)
		for i, v := range vs {
			values[i] = float64(v)
		}
	}
	return map[string]any{s.Kind: values}
}

func plainAll(t *testing.T, f *tfexample.Features) map[string]any {
	all := make(map[string]any)
	for i := range f.Len() {
		name, feature := f.At(i)
		all[name] = plain(t, feature)
	}
	return all
}

func TestCases(t *testing.T) {
	var all []testCase
	load(t, "cases/cases.json", &all)
	ran := 0
	for _, c := range all {
		if c.Kind != "tfrecord" {
			continue
		}
		for i, want := range c.Expect.Examples {
			ran++
			var e tfexample.Example
			payload := records(t, "cases/"+c.Files[0])[i]
			if err := e.Parse(payload); err != nil {
				t.Errorf("%s, record %d: %v", c.Name, i, err)
			}
			if got := plainAll(t, &e.Features); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, record %d: %v, want %v", c.Name, i, got, want)
			}
			if got := tfexample.Classify(payload); got != tfexample.ExampleType || tfexample.IsSequence(payload) {
				t.Errorf("%s, record %d: classified as %s", c.Name, i, got)
			}
		}
		for i, want := range c.Expect.Sequences {
			ran++
			var s tfexample.SequenceExample
			payload := records(t, "cases/"+c.Files[0])[i]
			if err := s.Parse(payload); err != nil {
				t.Errorf("%s, record %d: %v", c.Name, i, err)
			}
			lists := make(map[string][]any)
			for k := range s.Lists.Len() {
				name, list := s.Lists.At(k)
				for _, step := range list.Steps() {
					lists[name] = append(lists[name], plain(t, step))
				}
			}
			if got := plainAll(t, &s.Context); !reflect.DeepEqual(got, want.Context) || !reflect.DeepEqual(lists, want.Lists) {
				t.Errorf("%s, record %d: %v and %v, want %v and %v", c.Name, i, got, lists, want.Context, want.Lists)
			}
			if got := tfexample.Classify(payload); got != tfexample.SequenceType || !tfexample.IsSequence(payload) {
				t.Errorf("%s, record %d: classified as %s", c.Name, i, got)
			}
		}
		for i, q := range c.Expect.Requests {
			if q.Op != "parse" {
				continue
			}
			ran++
			t.Run(fmt.Sprintf("%s/%d", c.Name, i), func(t *testing.T) {
				q.run(t, records(t, "cases/"+c.Files[0])[q.Record])
			})
		}
	}
	if ran < 22 {
		t.Errorf("only %d cases ran", ran)
	}
}

func (q *request) run(t *testing.T, payload []byte) {
	var e tfexample.Example
	var values []tfexample.Value
	var specs []tfexample.Spec
	for name, s := range q.Spec {
		spec := tfexample.Spec{Name: name, Shape: s.Shape, VarLen: s.VarLen}
		spec.Type = map[string]format.Kind{"int64": format.Int64List, "float": format.FloatList, "bytes": format.BytesList}[s.Dtype]
		if s.Default != nil {
			spec.Default = &tfexample.Value{Kind: spec.Type, Int64: []int64{int64(s.Default.(float64))}}
		}
		if q.Policy == "empty-list=default" {
			spec.Empty = tfexample.EmptyIsDefault
		}
		specs = append(specs, spec)
	}
	err := e.Parse(payload)
	if err == nil {
		values, err = e.Values(specs, nil)
	}
	if q.Error != nil {
		err = format.ReadError(err, format.Location{Shard: "s", Record: int64(q.Record)})
		var fault *format.Error
		if !errors.As(err, &fault) {
			t.Fatalf("error %v, want %s", err, q.Error.Class)
		}
		if class := format.Class(err); class != q.Error.Class && !slices.Contains(q.Error.AlsoOK, class) || fault.Field != q.Error.Field ||
			fault.Record != *q.Error.Record || q.Error.Offset != nil && fault.Offset != *q.Error.Offset || fault.Shard != "s" {
			t.Errorf("error %v, want %+v", err, *q.Error)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var expected map[string]any
	if err := json.Unmarshal(q.Values, &expected); err != nil {
		t.Fatal(err)
	}
	for i, s := range specs {
		got, _ := json.Marshal(append([]int64{}, values[i].Int64...))
		want, _ := json.Marshal(expected[s.Name])
		if !s.VarLen {
			want = []byte("[" + string(want) + "]")
		}
		if string(got) != string(want) {
			t.Errorf("%s is %s, want %s", s.Name, got, want)
		}
	}
}

// TestReference reads an encoding that was put together by hand after the
// definition of the messages.
func TestReference(t *testing.T) {
	b, err := hex.DecodeString("0a0c" + "0a0a" + "0a0179" + "1205" + "1a03" + "0a0103")
	if err != nil {
		t.Fatal(err)
	}
	var e tfexample.Example
	if err := e.Parse(b); err != nil {
		t.Fatal(err)
	}
	f, ok := e.Lookup("y")
	vs, err := f.AppendInt64(nil)
	if !ok || err != nil || !slices.Equal(vs, []int64{3}) {
		t.Errorf("y is %v, %v, %v, want 3", vs, ok, err)
	}
	var w tfexample.Builder
	w.AddInt64("y", 3)
	if got := w.AppendTo(nil); string(got) != string(b) {
		t.Errorf("built %x, want %x", got, b)
	}
}
