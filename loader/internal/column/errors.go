package column

import (
	"fmt"

	"shardtool/format"
	"shardtool/format/tfexample"
)

func usage(msg string, args ...any) error {
	return format.Errorf(format.ErrUsage, format.Nowhere, msg, args...)
}

// inField adds the name of the field to an error.
func inField(err error, f *format.Field) error {
	if err == nil {
		return nil
	}
	at := format.Nowhere
	at.Field = f.Name
	return format.ReadError(err, at)
}

// noString is the error of a field that is not the one byte string that is
// wanted.
func noString(f *format.Field, want string) error {
	found := "a feature without values"
	if f.Kind != format.NoKind {
		found = fmt.Sprintf("a list of kind %s with %d values", f.Kind, tfexample.FeatureOf(f.Kind, f.Data).Len())
	}
	return inField(format.Errorf(format.ErrSchema, format.Nowhere, "found %s, want %s", found, want), f)
}
