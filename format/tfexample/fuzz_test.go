package tfexample_test

import (
	"bytes"
	"math"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"shardtool/format"
	"shardtool/format/tfexample"
)

// messages are the descriptors of the messages, for the reference
// implementation.
var messages = func() protoreflect.MessageDescriptors {
	type fd = descriptorpb.FieldDescriptorProto
	type md = descriptorpb.DescriptorProto
	optional, repeated := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	field := func(name string, num int32, label *descriptorpb.FieldDescriptorProto_Label, typ descriptorpb.FieldDescriptorProto_Type, of string) *fd {
		f := &fd{Name: proto.String(name), Number: proto.Int32(num), Label: label, Type: typ.Enum(), JsonName: proto.String(name)}
		if of != "" {
			f.TypeName = proto.String(".tf." + of)
		}
		return f
	}
	const message = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	oneof := func(name string, num int32) *fd {
		f := field(name, num, optional, message, name)
		f.OneofIndex = proto.Int32(0)
		return f
	}
	list := func(name string, typ descriptorpb.FieldDescriptorProto_Type) *md {
		return &md{Name: proto.String(name), Field: []*fd{field("value", 1, repeated, typ, "")}}
	}
	mapOf := func(name, entry, of string) *md {
		return &md{Name: proto.String(name), Field: []*fd{field("m", 1, repeated, message, name+"."+entry)}, NestedType: []*md{{
			Name: proto.String(entry), Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
			Field: []*fd{field("key", 1, optional, descriptorpb.FieldDescriptorProto_TYPE_STRING, ""), field("value", 2, optional, message, of)},
		}}}
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("tf.proto"), Package: proto.String("tf"), Syntax: proto.String("proto3"),
		MessageType: []*md{
			list("BytesList", descriptorpb.FieldDescriptorProto_TYPE_BYTES),
			list("FloatList", descriptorpb.FieldDescriptorProto_TYPE_FLOAT),
			list("Int64List", descriptorpb.FieldDescriptorProto_TYPE_INT64),
			{Name: proto.String("Feature"), Field: []*fd{oneof("BytesList", 1), oneof("FloatList", 2), oneof("Int64List", 3)},
				OneofDecl: []*descriptorpb.OneofDescriptorProto{{Name: proto.String("kind")}}},
			{Name: proto.String("FeatureList"), Field: []*fd{field("feature", 1, repeated, message, "Feature")}},
			mapOf("Features", "MEntry", "Feature"),
			mapOf("FeatureLists", "MEntry", "FeatureList"),
			{Name: proto.String("SequenceExample"), Field: []*fd{field("context", 1, optional, message, "Features"), field("lists", 2, optional, message, "FeatureLists")}},
		},
	}, nil)
	if err != nil {
		panic(err)
	}
	return file.Messages()
}()

// FuzzExample parses anything as a SequenceExample, which holds an Example,
// and compares with Go's protobuf. The two part only where varints are longer
// than 64 bits, which C++ cuts off, and where groups are deeper than C++ goes.
func FuzzExample(f *testing.F) {
	for _, name := range []string{
		"tf/examples.tfrecord", "tf/variants.tfrecord", "tf/sequences.tfrecord", "tf/sequence_variants.tfrecord",
		"cases/tfrecord/good_example.tfrecord", "cases/tfrecord/good_sequence.tfrecord", "cases/tfrecord/example_cut_proto.tfrecord",
	} {
		for _, payload := range records(f, name) {
			f.Add(payload)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		reference := dynamicpb.NewMessage(messages.ByName("SequenceExample"))
		refused, broken := unmarshal(b, reference)
		if broken {
			return
		}
		var s tfexample.SequenceExample
		err := s.Parse(b)
		var e tfexample.Example
		if class := tfexample.Classify(b); class != tfexample.NotExample && (err != nil || e.Parse(b) != nil) {
			t.Fatalf("classified as %s and not parsed: %v", class, err)
		}
		if (err == nil) != (refused == nil) {
			if err == nil && longVarint(b) || err != nil && bytes.Count(b, []byte{0x0b})+bytes.Count(b, []byte{0x13}) > 40 {
				return
			}
			t.Fatalf("error %v, protobuf %v", err, refused)
		}
		if err != nil {
			return
		}
		fields := reference.Descriptor().Fields()
		same(t, &s.Context, reference.Get(fields.ByNumber(1)).Message())
		same(t, &s.Lists, reference.Get(fields.ByNumber(2)).Message())
		for _, f := range s.AppendFields(nil, 0) {
			if f.Offset < 0 || f.Offset > int64(len(b)) {
				t.Fatalf("field %q at %d", f.Name, f.Offset)
			}
		}
		rebuild(t, &s)
	})
}

// unmarshal parses with the reference, which panics at some entries of maps.
func unmarshal(b []byte, m proto.Message) (err error, broken bool) {
	defer func() { broken = recover() != nil }()
	return proto.Unmarshal(b, m), false
}

// longVarint reports whether b may hold a varint of ten bytes.
func longVarint(b []byte) bool {
	run := 0
	for _, c := range b {
		if c < 0x80 {
			run = 0
		} else if run++; run == 9 {
			return true
		}
	}
	return false
}

// same fails unless the features are those of the map of a message.
func same(t *testing.T, got *tfexample.Features, message protoreflect.Message) {
	want := message.Get(message.Descriptor().Fields().ByNumber(1)).Map()
	if got.Len() != want.Len() {
		t.Fatalf("%d features, want %d", got.Len(), want.Len())
	}
	want.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		f, ok := got.Lookup(key.String())
		if !ok {
			t.Fatalf("no feature %q", key.String())
		}
		m := value.Message()
		if f.Kind() != format.FeatureList {
			sameFeature(t, f, m)
			return true
		}
		steps := m.Get(m.Descriptor().Fields().ByNumber(1)).List()
		if f.Len() != steps.Len() {
			t.Fatalf("%q has %d steps, want %d", key.String(), f.Len(), steps.Len())
		}
		for i, step := range f.Steps() {
			sameFeature(t, step, steps.Get(i).Message())
		}
		return true
	})
}

func sameFeature(t *testing.T, f tfexample.Feature, m protoreflect.Message) {
	which := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
	if which == nil {
		if f.Kind() != format.NoKind {
			t.Fatalf("a feature is of kind %s, want none", f.Kind())
		}
		return
	}
	list := m.Get(which).Message()
	values := list.Get(list.Descriptor().Fields().ByNumber(1)).List()
	if f.Len() != values.Len() {
		t.Fatalf("a feature has %d values, want %d", f.Len(), values.Len())
	}
	var err error
	ok := true
	switch which.Number() {
	case 1:
		var vs [][]byte
		vs, err = f.AppendBytes(nil)
		for i, v := range vs {
			ok = ok && bytes.Equal(v, values.Get(i).Bytes())
		}
	case 2:
		var vs []float32
		vs, err = f.AppendFloat(nil)
		for i, v := range vs {
			w := float32(values.Get(i).Float())
			ok = ok && (math.Float32bits(v) == math.Float32bits(w) || v != v && w != w) // by way of a float64, a NaN may change
		}
	default:
		var vs []int64
		vs, err = f.AppendInt64(nil)
		for i, v := range vs {
			ok = ok && v == values.Get(i).Int()
		}
	}
	if err != nil || !ok {
		t.Fatalf("a feature differs: %v", err)
	}
}

// rebuild writes what was parsed and parses it again.
func rebuild(t *testing.T, s *tfexample.SequenceExample) {
	var w tfexample.SequenceBuilder
	for _, f := range s.AppendFields(nil, 0) {
		w.AddField(f)
	}
	var again tfexample.SequenceExample
	if err := again.Parse(w.AppendTo(nil)); err != nil || again.Context.Len() != s.Context.Len() || again.Lists.Len() != s.Lists.Len() {
		t.Fatalf("what was written again: %v", err)
	}
	for i := range s.Context.Len() {
		name, f := s.Context.At(i)
		g, _ := again.Context.Lookup(name)
		if f.Kind() != g.Kind() || f.Len() != g.Len() {
			t.Fatalf("%q has changed", name)
		}
	}
}
