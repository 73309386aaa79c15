package column

import (
	"shardtool/augment"
	"shardtool/format"
	"shardtool/tensor"
)

// Bytes is a column of byte strings: the field as it is stored, one string.
func Bytes(field string) Column {
	return Column{Field: field, Kind: &bytesKind{kind{form: FormBinary, dtype: tensor.Uint8}}}
}

type bytesKind struct{ kind }

func (k *bytesKind) Describe() string                { return "bytes" }
func (k *bytesKind) NewFiller(*format.Limits) Filler { return bytesFiller{} }

type bytesFiller struct{}

func (bytesFiller) Fill(out *Slot, _ *format.Sample, f *format.Field, _ augment.Draws, _ *Meter) error {
	if f.Kind != format.Bytes {
		return noString(f, "one byte string")
	}
	out.Arena = append(out.Arena, f.Data...)
	return nil
}

// Key is a column of the samples' keys: empty where a sample has none.
func Key() Column { return Column{Kind: &keyKind{kind{form: FormBinary, dtype: tensor.Uint8}}} }

type keyKind struct{ kind }

func (k *keyKind) Reads() Reads                    { return ReadsPlace }
func (k *keyKind) Describe() string                { return "key" }
func (k *keyKind) NewFiller(*format.Limits) Filler { return keyFiller{} }

type keyFiller struct{}

func (keyFiller) Fill(out *Slot, s *format.Sample, _ *format.Field, _ augment.Draws, _ *Meter) error {
	out.Arena = append(out.Arena, s.Key...)
	return nil
}

// Location is a column of where the samples stand.
func Location() Column {
	return Column{Kind: &locationKind{kind{form: FormPlaces, dtype: tensor.Uint8}}}
}

type locationKind struct{ kind }

func (k *locationKind) Reads() Reads                    { return ReadsPlace }
func (k *locationKind) Describe() string                { return "location" }
func (k *locationKind) NewFiller(*format.Limits) Filler { return locationFiller{} }

type locationFiller struct{}

func (locationFiller) Fill(*Slot, *format.Sample, *format.Field, augment.Draws, *Meter) error {
	return nil
}
