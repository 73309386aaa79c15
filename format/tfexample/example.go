package tfexample

import "shardtool/format"

// Example is a parsed tf.train.Example. The zero value is ready to Parse, and
// is best used again for the next record.
type Example struct {
	Features
	Limits *format.Limits // Fields is used; nil is the defaults

	// Lazy lets Parse pass over the values of int64 lists, for who reads them
	// once: a fault in one is found by the methods that read it.
	Lazy bool
}

// Parse reads an Example, whose features are then views of b until the next
// Parse. It checks all of b down to the values, and that names are UTF-8. The
// error is ErrCorrupt, or ErrLimit for too many features.
func (e *Example) Parse(b []byte) error {
	e.reset(e.Limits.OrDefault().Fields, false, false)
	e.lazy = e.Lazy
	return parse(b, &e.Features, nil)
}

// SequenceExample is a parsed tf.train.SequenceExample. The zero value is
// ready to Parse, and is best used again for the next record.
type SequenceExample struct {
	Context Features       // as of an Example
	Lists   Features       // each of kind FeatureList
	Limits  *format.Limits // Fields is used, for Context and Lists each; nil is the defaults
}

// Parse reads a SequenceExample, as Example.Parse does an Example. An Example
// is a SequenceExample without lists.
func (s *SequenceExample) Parse(b []byte) error {
	return s.parse(b, false)
}

func (s *SequenceExample) parse(b []byte, strict bool) error {
	most := s.Limits.OrDefault().Fields
	s.Context.reset(most, false, strict)
	s.Lists.reset(most, true, strict)
	return parse(b, &s.Context, &s.Lists)
}

// AppendFields appends the features of the context, then the lists, to dst, as
// Features.AppendFields does.
func (s *SequenceExample) AppendFields(dst []format.Field, base int64) []format.Field {
	return s.Lists.AppendFields(s.Context.AppendFields(dst, base), base)
}

// parse reads the outermost message. lists may be nil: field 2 is not known to
// an Example.
func parse(b []byte, features, lists *Features) error {
	for c := (cursor{b, 0, len(b)}); c.more(); {
		at := c.i
		num, typ, ok := c.tag()
		if !ok {
			return corrupt(at, "no field begins here")
		}
		into := features
		if num == 2 {
			into = lists
		}
		if num > 2 || typ != wireBytes || into == nil {
			if features.strict && num <= 2 || !c.skip(num, typ) {
				return corrupt(at, "a field does not end")
			}
			continue
		}
		lo, hi, ok := c.bytes()
		if !ok {
			return corrupt(at, "a message ends after the record does")
		}
		if err := into.merge(cursor{b, lo, hi}); err != nil {
			return err
		}
	}
	return nil
}
