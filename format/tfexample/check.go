package tfexample

import "shardtool/format"

// Check returns the faults of what FeatureOf was given, as ErrCorrupt. What was
// parsed as a part of a record has none.
func (f Feature) Check() error {
	if f.kind == format.Bytes {
		return nil
	}
	if _, at, ok := checkList(cursor{f.data, 0, len(f.data)}, f.kind, false); !ok {
		return corrupt(at, "a list of "+f.kind.String()+" values is not sound")
	}
	return nil
}
