// Package column holds the kinds of columns that a batch is made of: what a
// column asks of a sample, and how its values come into the batch.
//
//	sample ─ Field ─▶ Filler.Fill ─┬▶ Slot.Dense   image, numbers of one shape, padded lists
//	                               └▶ Slot.Arena   lists of any length, byte strings
//
// What a column makes, by its [Form]:
//
//	FormDense    [B ...]      every sample fills its slot
//	FormPadded   [B T ...]    and a length for each sample; what is beyond it is padding
//	FormRagged   [sum ...]    the samples' rows one after the other, and where each begins
//	FormBinary   bytes        the same of byte strings
//	FormPlaces   nothing      the loader knows where each sample stands
//
// A [Column] and its [Kind] are values that may be shared; a [Filler] is for one
// goroutine. Fillers allocate nothing once their scratch memory has grown, and
// what they write depends on the sample and its draws alone: all of a slot is
// written, whatever was left in its memory.
//
// Package loader names the constructors again, for trainers.
package column

import (
	"strings"
	"time"

	"shardtool/augment"
	"shardtool/format"
	"shardtool/tensor"
)

// Form is what the samples of a column become in a batch.
type Form uint8

const (
	FormDense  Form = iota // a tensor.Dense
	FormPadded             // a tensor.Padded
	FormRagged             // a tensor.Ragged
	FormBinary             // a tensor.Binary
	FormPlaces             // a format.Location of each sample, of which Fill does nothing
)

// String returns dense, padded, ragged, binary or places.
func (f Form) String() string { return [...]string{"dense", "padded", "ragged", "binary", "places"}[f] }

// Column is one part of a batch, made of one field of each sample.
type Column struct {
	// Field names the field, or alternatives by semicolons, of which the first
	// that is present is taken. It is "" for kinds that Read something else.
	Field   string
	Kind    Kind
	Missing Missing // what becomes of samples without the field
}

// Kind is what the columns of a kind have in common. It is safe for use by
// several goroutines.
type Kind interface {
	Form() Form
	Reads() Reads
	// DType is the type of an element; Uint8 for FormBinary and FormPlaces.
	DType() tensor.DType
	// Shape is that of one sample: of FormPadded [T ...] with the largest T, of
	// FormRagged the axes behind the first, of FormBinary and FormPlaces empty.
	Shape() tensor.Shape
	// Describe is a line that enters the fingerprint of a plan: where it and
	// the field are equal, so are the tensors.
	Describe() string
	// Check says why the kind cannot be made as it was put: ErrUsage.
	Check() error
	NewFiller(l *format.Limits) Filler
}

// Reads is what of a sample a kind reads.
type Reads uint8

const (
	ReadsField  Reads = iota // the column's field
	ReadsPlace               // key and place, no field: Fill is given nil
	ReadsSample              // anything, so every field must be at hand: Fill is given nil
)

// Filler puts one sample's value into a slot. It is for one goroutine. Its
// errors are *format.Error and name the field; the place of the sample is for
// the caller to add. After an error the slot holds nothing of use, and the
// arena is as long as before.
type Filler interface {
	Fill(out *Slot, s *format.Sample, f *format.Field, draws augment.Draws, m *Meter) error
}

// Slot is where the value of one sample goes.
type Slot struct {
	// Dense is the slot's memory, of the kind's type and shape: written whole,
	// with the padding.
	Dense tensor.Dense
	// Length is set by kinds of FormPadded, to the values along the first axis
	// before the padding, and of FormRagged, to the rows.
	Length int64
	// Arena is appended to by kinds of FormRagged and FormBinary: the new bytes
	// are the sample's. Of FormRagged its memory must begin, and what it holds
	// must end, where an element may: an arena is of one column.
	Arena []byte
}

// Meter counts what fillers have done.
type Meter struct {
	Augment        time.Duration // of the time spent, in augmentation
	Images, Pixels int64         // decoded
}

// Reads returns what of a sample the column reads.
func (c *Column) Reads() Reads { return c.Kind.Reads() }

// Find returns the field of s that the column is made of, or nil.
func (c *Column) Find(s *format.Sample) *format.Field { return s.Field(c.Field) }

// Check says why the column cannot be made as it was put: ErrUsage.
func (c *Column) Check() error {
	switch {
	case c.Kind == nil:
		return usage("a column of no kind")
	case c.Kind.Reads() == ReadsField && strings.Trim(c.Field, ";") == "":
		return usage("a column without a field")
	}
	if err := c.Kind.Check(); err != nil {
		return err
	}
	return c.Missing.err
}

// Describe returns the field, the kind and the missing policy in one line,
// which is equal only where the tensors made of the same samples are.
func (c *Column) Describe() string {
	var b strings.Builder
	if c.Field != "" {
		b.WriteString(strings.ToLower(c.Field)) // the case of names does not matter
		b.WriteString(": ")
	}
	b.WriteString(c.Kind.Describe())
	b.WriteString(c.Missing.describe())
	return b.String()
}

// kind is what most kinds have in common.
type kind struct {
	form  Form
	dtype tensor.DType
	shape tensor.Shape
}

func (k *kind) Form() Form          { return k.form }
func (k *kind) Reads() Reads        { return ReadsField }
func (k *kind) DType() tensor.DType { return k.dtype }
func (k *kind) Shape() tensor.Shape { return k.shape }

// Check refuses shapes that memory cannot hold.
func (k *kind) Check() error {
	if k.dtype > tensor.Bool {
		return usage("there is no element type %d", uint8(k.dtype))
	}
	if _, err := tensor.Bytes(k.dtype, k.shape); err != nil {
		return usage("a %v column: %v", k.form, err)
	}
	if k.shape.Elems() == 0 {
		return usage("a %v column of shape %v, which has no elements", k.form, k.shape)
	}
	return nil
}

// Stager is a Filler whose work has two stages, of which the first can be kept
// and made use of for several copies of a sample, each with draws of its own:
//
//	field ─ Decode ─▶ Keep ─▶ Decoded ─┬─ FillDecoded(draws 0) ─▶ slot
//	                                   └─ FillDecoded(draws 1) ─▶ slot
//
// What FillDecoded writes is what Fill writes, whatever was kept. Only where
// the transform reduces pictures (augment.Transform.WithShrink) are they reduced
// for all copies alike.
type Stager interface {
	Filler
	// Decode does the first stage, for the copies from the place first on of
	// those that the sample has in all; nil for a sample of very many. It
	// returns how many bytes Keep needs.
	Decode(f *format.Field, copies []augment.Draws, first int, m *Meter) (bytes int, err error)
	// Keep copies what was decoded last to mem, which must stay as it is.
	Keep(mem []byte) Decoded
	// FillDecoded does the second stage.
	FillDecoded(out *Slot, f *format.Field, d *Decoded, draws augment.Draws, m *Meter) error
}

// Decoded is what a Stager has kept: a picture.
type Decoded struct {
	header augment.Header
	shrink int
	pixels augment.Compact
}
