package tfexample

import "shardtool/format"

// Builder writes a tf.train.Example. The same calls give the same bytes: the
// features are in the order in which they were added, or by name if Sorted is
// set, and lists of numbers are packed. A name that is added again replaces
// the feature it had. The zero value is ready; one that is used again
// allocates nothing.
type Builder struct {
	Sorted bool // by the bytes of the names

	entries entries
}

// Reset forgets what was added.
func (b *Builder) Reset() { b.entries.reset() }

// Len returns how many features were added.
func (b *Builder) Len() int { return len(b.entries.spans) }

// AddBytes adds a feature of byte strings.
func (b *Builder) AddBytes(name string, values ...[]byte) {
	e := &b.entries
	e.begin(name, format.BytesList, stringsSize(values))
	e.buf = appendStrings(e.buf, values)
	e.end()
}

// AddFloat adds a feature of floats.
func (b *Builder) AddFloat(name string, values ...float32) {
	e := &b.entries
	e.begin(name, format.FloatList, packedSize(4*len(values)))
	e.buf = appendFloatList(e.buf, values)
	e.end()
}

// AddInt64 adds a feature of integers.
func (b *Builder) AddInt64(name string, values ...int64) {
	e := &b.entries
	e.begin(name, format.Int64List, packedSize(varintsSize(values)))
	e.buf = appendInt64List(e.buf, values)
	e.end()
}

// AddFeature adds a feature. It panics for a FeatureList, which only a
// SequenceExample can have.
func (b *Builder) AddFeature(name string, f Feature) {
	if f.kind == format.FeatureList {
		panic("tfexample: an Example has no lists of features")
	}
	e := &b.entries
	e.begin(name, f.Kind(), f.listSize())
	e.buf = f.appendList(e.buf)
	e.end()
}

// AddField adds a field of a sample under its name, as AddFeature does.
func (b *Builder) AddField(f format.Field) { b.AddFeature(f.Name, FeatureOf(f.Kind, f.Data)) }

// AppendTo appends the encoded Example to dst. What was added stays.
func (b *Builder) AppendTo(dst []byte) []byte { return b.entries.appendTo(dst, 1, b.Sorted) }

// SequenceBuilder writes a tf.train.SequenceExample, as Builder does an
// Example.
type SequenceBuilder struct {
	Context Builder // its Sorted goes for the lists as well

	lists entries
}

// Reset forgets what was added, to the context too.
func (b *SequenceBuilder) Reset() {
	b.Context.Reset()
	b.lists.reset()
}

// AddList adds a list of features, one for each step, to the lists.
func (b *SequenceBuilder) AddList(name string, steps ...Feature) {
	b.lists.entry(name, stepsSize(steps))
	b.lists.buf = appendSteps(b.lists.buf, steps)
	b.lists.end()
}

// AddField adds a field of a sample: of kind FeatureList to the lists, of
// another to the context.
func (b *SequenceBuilder) AddField(f format.Field) {
	if f.Kind != format.FeatureList {
		b.Context.AddField(f)
		return
	}
	b.lists.entry(f.Name, len(f.Data))
	b.lists.buf = append(b.lists.buf, f.Data...)
	b.lists.end()
}

// AppendTo appends the encoded SequenceExample to dst. What was added stays.
func (b *SequenceBuilder) AppendTo(dst []byte) []byte {
	return b.lists.appendTo(b.Context.AppendTo(dst), 2, b.Context.Sorted)
}

// BytesOf returns a new feature of byte strings, for AddFeature and AddList.
func BytesOf(values ...[]byte) Feature {
	return Feature{format.BytesList, len(values), appendStrings(nil, values)}
}

// FloatOf returns a new feature of floats.
func FloatOf(values ...float32) Feature {
	return Feature{format.FloatList, len(values), appendFloatList(nil, values)}
}

// Int64Of returns a new feature of integers.
func Int64Of(values ...int64) Feature {
	return Feature{format.Int64List, len(values), appendInt64List(nil, values)}
}
