package column

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"shardtool/augment"
	"shardtool/format"
	"shardtool/tensor"
)

// PadOptions says how lists come to one length. The zero value pads with zeros
// and refuses lists that are too long.
type PadOptions struct {
	Value    float64 // of the padding; a whole number where the element type is one
	Truncate bool    // lists that are too long lose their end; else they are ErrSchema
	// Buckets are lengths, each larger than the one before. A batch is cut to
	// the smallest that holds its longest list, or to the column's length if
	// none does.
	Buckets []int
	Inner   []int // the axes of a value, such as the 4 of a box; none: a number
}

// Padded is a column of lists that are padded to a length: [B length ...], and
// how many values each had. o may be nil. The field may have any number of
// values up to that length, or more with Truncate.
func Padded(field string, dtype tensor.DType, length int, o *PadOptions) Column {
	k := &paddedKind{kind: kind{FormPadded, dtype, append(tensor.Shape{length}, inner(o)...)}}
	if o != nil {
		k.o = *o
		k.o.Buckets = slices.Clone(o.Buckets)
	}
	if dtype <= tensor.Bool {
		var one []byte
		one, k.err = element(dtype, reflect.ValueOf(k.o.Value))
		k.pad = make([]byte, padBytes)
		repeat(k.pad, one)
	}
	return Column{Field: field, Kind: k}
}

func inner(o *PadOptions) []int {
	if o == nil {
		return nil
	}
	return o.Inner
}

type paddedKind struct {
	kind
	o   PadOptions
	pad []byte // of padBytes
	err error  // why there is no padding
}

// padBytes of padding are copied at a time.
const padBytes = 512

func (k *paddedKind) Check() error {
	if err := k.kind.Check(); err != nil {
		return err
	}
	for i, n := range k.o.Buckets {
		if n < 1 || n > k.shape[0] || i > 0 && n <= k.o.Buckets[i-1] {
			return usage("buckets %v of a column padded to %d: each must be larger than the one before, and none than the length", k.o.Buckets, k.shape[0])
		}
	}
	return k.err
}

func (k *paddedKind) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "padded %v %v with %v", k.dtype, k.shape, k.o.Value)
	if k.o.Truncate {
		b.WriteString(", truncated")
	}
	if len(k.o.Buckets) > 0 {
		fmt.Fprintf(&b, ", buckets %v", k.o.Buckets)
	}
	return b.String()
}

// Bucket returns the length to which a batch is cut whose longest list has that
// many values: the column's own where there are no buckets, or none that holds
// it. Of a kind that is not padded it returns 0.
func Bucket(k Kind, longest int64) int {
	p, ok := k.(*paddedKind)
	if !ok {
		return 0
	}
	for _, n := range p.o.Buckets {
		if int64(n) >= longest {
			return n
		}
	}
	return p.shape[0]
}

func (k *paddedKind) NewFiller(*format.Limits) Filler {
	return &paddedFiller{k, numbers{dtype: k.dtype, shape: k.shape[1:]}}
}

type paddedFiller struct {
	k *paddedKind
	n numbers
}

func (c *paddedFiller) Fill(out *Slot, _ *format.Sample, f *format.Field, _ augment.Draws, _ *Meter) error {
	rows, err := c.n.fillRows(out.Dense, f, c.k.o.Truncate)
	if err != nil {
		return err
	}
	out.Length = int64(rows)
	room := out.Dense.Bytes()
	repeat(room[rows*(len(room)/c.k.shape[0]):], c.k.pad)
	return nil
}

// repeat fills dst with copies of some elements, or of none.
func repeat(dst, elements []byte) {
	for n := 1; n > 0; dst = dst[n:] {
		n = copy(dst, elements)
	}
}
