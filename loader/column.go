package loader

import (
	"bytes"
	"image"
	"strconv"
	"strings"
	"time"

	"shardtool/augment"
	"shardtool/format"
	"shardtool/format/tfexample"
	"shardtool/tensor"
)

// Column is one tensor of a batch, made of one field of each sample.
type Column struct {
	field string // alternatives by semicolons
	kind  columnKind
}

// columnKind is what the columns of a kind have in common. It is safe for use
// by several goroutines.
type columnKind interface {
	dtype() tensor.DType
	shape() tensor.Shape // of one sample
	newFiller(limits *format.Limits) filler
}

// filler turns a field into a slot of a batch. It is for one goroutine. Its
// errors lack the place of the sample.
type filler interface {
	fill(slot tensor.Dense, f *format.Field, draws augment.Draws, t *taskMeter) error
}

// Image is a column of pictures: the field, or the first that is present of
// alternatives such as "jpg;jpeg;png", decoded and transformed by t.
func Image(field string, t *augment.Transform) Column {
	return Column{field, imageKind{t}}
}

type imageKind struct{ t *augment.Transform }

func (k imageKind) dtype() tensor.DType { return k.t.DType() }
func (k imageKind) shape() tensor.Shape { return k.t.Shape() }
func (k imageKind) newFiller(limits *format.Limits) filler {
	return &imageFiller{w: k.t.NewWorker(limits), t: k.t}
}

type imageFiller struct {
	w  *augment.Worker
	t  *augment.Transform
	px augment.Pixels
}

func (c *imageFiller) fill(slot tensor.Dense, f *format.Field, draws augment.Draws, t *taskMeter) error {
	if f.Kind != format.Bytes {
		return format.Errorf(format.ErrSchema, format.Nowhere, "an image is one byte string, not %v", f.Kind)
	}
	h, err := c.w.Header(f.Data)
	if err != nil {
		return err
	}
	plan := c.t.Plan(h, draws)
	if err := c.w.DecodePlan(&c.px, f.Data, &plan); err != nil {
		return err
	}
	t.images++
	t.pixels += rectPixels(c.px.Rect)
	begin := time.Now()
	err = c.w.Apply(slot, &c.px, &plan)
	t.augment += time.Since(begin)
	return err
}

func rectPixels(r image.Rectangle) int64 { return int64(r.Dx()) * int64(r.Dy()) }

// Int64 is a column of whole numbers, such as labels: the field as decimal
// text, white space around it allowed, or an int64 feature of one value.
func Int64(field string) Column { return Column{field, int64Kind{}} }

type int64Kind struct{}

func (int64Kind) dtype() tensor.DType             { return tensor.Int64 }
func (int64Kind) shape() tensor.Shape             { return nil }
func (int64Kind) newFiller(*format.Limits) filler { return &int64Filler{} }

type int64Filler struct{ values []int64 }

func (c *int64Filler) fill(slot tensor.Dense, f *format.Field, _ augment.Draws, _ *taskMeter) error {
	var err error
	switch f.Kind {
	case format.Bytes:
		slot.Int64()[0], err = parseInt64(f.Data)
	default:
		c.values, err = tfexample.FeatureOf(f.Kind, f.Data).AppendInt64(c.values[:0])
		if err == nil && len(c.values) != 1 {
			err = format.Errorf(format.ErrSchema, format.Nowhere, "%d values, want one int64", len(c.values))
		}
		if err == nil {
			slot.Int64()[0] = c.values[0]
		}
	}
	return err
}

func parseInt64(text []byte) (int64, error) {
	const most = 64 // bytes of text worth showing
	word := bytes.TrimSpace(text)
	v, err := strconv.ParseInt(string(word[:min(len(word), most)]), 10, 64)
	if err != nil {
		return 0, format.Errorf(format.ErrSchema, format.Nowhere, "%.64q is no int64 in decimal", word)
	}
	return v, nil
}

func missing(s *format.Sample, field string) error {
	at := s.Location()
	at.Field = field
	return format.Errorf(format.ErrMissing, at, "the sample has %s", strings.Join(s.Names(), ", "))
}
