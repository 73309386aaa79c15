package tfexample

import "sync"

// Type is what a record may be.
type Type uint8

const (
	NotExample   Type = iota // something else
	ExampleType              // a tf.train.Example
	SequenceType             // a tf.train.SequenceExample
)

// String returns raw, example or sequence.
func (t Type) String() string { return [...]string{"raw", "example", "sequence"}[t] }

var parsers = sync.Pool{New: func() any { return new(SequenceExample) }}

// Classify returns what a record holds. It is stricter than Parse: each field
// that the messages know has to have its wire type, and of a record that is
// not empty the outermost message has to have one of them. An empty record is
// an Example without features. A SequenceExample is told by its lists.
func Classify(b []byte) Type {
	s := parsers.Get().(*SequenceExample)
	defer parsers.Put(s)
	if s.parse(b, true) != nil {
		return NotExample
	}
	context, lists := topLevel(b)
	switch {
	case lists:
		return SequenceType
	case context || len(b) == 0:
		return ExampleType
	default:
		return NotExample
	}
}

// IsSequence reports whether the outermost message has a field 2, as only a
// SequenceExample has.
func IsSequence(b []byte) bool {
	_, lists := topLevel(b)
	return lists
}

// topLevel reports which of the fields 1 and 2 the outermost message has.
func topLevel(b []byte) (context, lists bool) {
	for c := (cursor{b, 0, len(b)}); c.more(); {
		num, typ, ok := c.tag()
		if !ok || !c.skip(num, typ) {
			break
		}
		context = context || num == 1 && typ == wireBytes
		lists = lists || num == 2 && typ == wireBytes
	}
	return context, lists
}
