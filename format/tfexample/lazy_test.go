package tfexample_test

import (
	"errors"
	"slices"
	"testing"

	"shardtool/format"
	"shardtool/format/tfexample"
)

// A lazy parse gives the same values, in one piece or in several, and finds
// the fault of a list when that is read.
func TestLazy(t *testing.T) {
	var b tfexample.Builder
	b.AddInt64("ids", 1, 2, 50_256)
	b.AddFloat("f", 0.5)
	b.AddBytes("key", []byte("k"))
	record := b.AppendTo(nil)
	// The same list once more: protobuf joins what comes in pieces only within
	// one feature, so the later entry takes the place of the earlier.
	eager, lazy := tfexample.Example{}, tfexample.Example{Lazy: true}
	for _, rec := range [][]byte{record, append(slices.Clone(record), record...)} {
		if err := errors.Join(eager.Parse(rec), lazy.Parse(rec)); err != nil {
			t.Fatal(err)
		}
		for i := range eager.Len() {
			name, want := eager.At(i)
			got, ok := lazy.Lookup(name)
			if !ok || got.Len() != want.Len() || got.Kind() != want.Kind() || !slices.Equal(got.Encoded(), want.Encoded()) {
				t.Errorf("%s: %v of %d, want %v of %d", name, got.Kind(), got.Len(), want.Kind(), want.Len())
			}
		}
	}

	// 0x88 is a varint that goes on behind the end of the list.
	broken := []byte("\x0a\x11\x0a\x0f\x0a\x03ids\x12\x08\x1a\x06\x0a\x04\x01\x02\x03\x88")
	if err := eager.Parse(broken); !errors.Is(err, format.ErrCorrupt) {
		t.Error(err)
	}
	if err := lazy.Parse(broken); err != nil {
		t.Error(err)
	}
	f, _ := lazy.Lookup("ids")
	if v, err := f.AppendInt64(nil); !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("%v, %v", v, err)
	}
}
