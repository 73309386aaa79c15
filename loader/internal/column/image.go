package column

import (
	"time"

	"shardtool/augment"
	"shardtool/format"
)

// Image is a column of pictures: the field, one encoded image, decoded and
// transformed by t into an array of t's type and shape.
func Image(field string, t *augment.Transform) Column {
	if t == nil {
		return Column{Field: field, Kind: faulty{kind{form: FormDense}, usage("an image column without a transform")}}
	}
	return Column{Field: field, Kind: &imageKind{kind{FormDense, t.DType(), t.Shape()}, t}}
}

type imageKind struct {
	kind
	t *augment.Transform
}

func (k *imageKind) Describe() string { return "image " + k.t.Fingerprint() }

func (k *imageKind) NewFiller(limits *format.Limits) Filler {
	return &imageFiller{w: k.t.NewWorker(limits), t: k.t}
}

type imageFiller struct {
	w  *augment.Worker
	t  *augment.Transform
	px augment.Pixels
}

func (c *imageFiller) Fill(out *Slot, _ *format.Sample, f *format.Field, draws augment.Draws, m *Meter) error {
	if f.Kind != format.Bytes {
		return noString(f, "one encoded image")
	}
	h, err := c.w.Header(f.Data)
	if err != nil {
		return inField(err, f)
	}
	plan := c.t.Plan(h, draws)
	if err := c.w.DecodePlan(&c.px, f.Data, &plan); err != nil {
		return inField(err, f)
	}
	m.Images++
	m.Pixels += int64(c.px.Rect.Dx()) * int64(c.px.Rect.Dy())
	begin := time.Now()
	err = c.w.Apply(out.Dense, &c.px, &plan)
	m.Augment += time.Since(begin)
	return inField(err, f)
}
