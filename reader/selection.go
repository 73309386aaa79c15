package reader

import (
	"strings"

	"shardtool/format"
)

// selection picks the fields that were asked for, in the order asked.
type selection struct {
	names     []string
	onMissing format.OnMissing
	picked    []format.Field
}

// newSelection returns nil where all fields are wanted.
func newSelection(o *Options) *selection {
	if o.Fields == nil {
		return nil
	}
	return &selection{names: o.Fields, onMissing: o.OnMissing}
}

// apply replaces the fields of a sample by those that were asked for. It
// reports false where the sample lacks one and is to be left out.
func (s *selection) apply(sample *format.Sample) (bool, error) {
	if s == nil {
		return true, nil
	}
	s.picked = s.picked[:0]
	for _, name := range s.names {
		field := sample.Field(name)
		switch {
		case field != nil:
			s.picked = append(s.picked, *field)
		case s.onMissing == format.MissingFill:
			s.picked = append(s.picked, format.Field{Name: name, Offset: format.Unknown})
		case s.onMissing == format.MissingSkip:
			return false, nil
		default:
			at := sample.Location()
			at.Field = name
			return false, format.Errorf(format.ErrMissing, at, "the sample has %s", strings.Join(sample.Names(), ", "))
		}
	}
	sample.Fields = append(sample.Fields[:0], s.picked...)
	return true, nil
}
