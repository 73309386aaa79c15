package column

import (
	"image"
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

// Random reports whether what is made of a picture depends on its draws.
func (k *imageKind) Random() bool { return k.t.Random() }

func (k *imageKind) Describe() string { return "image " + k.t.Fingerprint() }

func (k *imageKind) NewFiller(limits *format.Limits) Filler {
	return &imageFiller{w: k.t.NewWorker(limits), t: k.t}
}

type imageFiller struct {
	w      *augment.Worker
	t      *augment.Transform
	px     augment.Pixels
	kept   augment.Pixels // a view of what was kept
	header augment.Header // of what Decode has decoded
	shrink int
}

var _ Stager = (*imageFiller)(nil)

func (c *imageFiller) Fill(out *Slot, _ *format.Sample, f *format.Field, draws augment.Draws, m *Meter) error {
	h, err := c.read(f)
	if err != nil {
		return err
	}
	plan := c.t.Plan(h, draws)
	if err := c.decode(f, &plan, m); err != nil {
		return err
	}
	return c.apply(out, f, &c.px, &plan, m)
}

// Decode decodes the part of the picture that the copies need.
func (c *imageFiller) Decode(f *format.Field, copies []augment.Draws, first int, m *Meter) (int, error) {
	h, err := c.read(f)
	if err != nil {
		return 0, err
	}
	u := c.union(h, copies, first)
	if err := c.w.DecodeUnion(&c.px, f.Data, u); err != nil {
		return 0, inField(err, f)
	}
	c.count(m)
	c.header, c.shrink = h, u.Shrink
	return c.px.CompactBytes(), nil
}

// union is what serves the copies from the place first on, reduced as all of them
// allow, whichever are still to come.
func (c *imageFiller) union(h augment.Header, copies []augment.Draws, first int) augment.Union {
	if copies == nil {
		return augment.Union{Crop: image.Rect(0, 0, h.Width, h.Height), Shrink: 1}
	}
	var all, rest augment.Union
	for i, draws := range copies {
		plan := c.t.Plan(h, draws)
		all.Add(&plan)
		if i >= first {
			rest.Add(&plan)
		}
	}
	rest.Shrink = all.Shrink
	return rest
}

func (c *imageFiller) Keep(mem []byte) Decoded {
	return Decoded{header: c.header, shrink: c.shrink, pixels: c.px.Compact(mem)}
}

func (c *imageFiller) FillDecoded(out *Slot, f *format.Field, d *Decoded, draws augment.Draws, m *Meter) error {
	plan := c.t.Plan(d.header, draws)
	plan.Shrink = d.shrink
	d.pixels.View(&c.kept)
	if c.kept.Covers(&plan) {
		return c.apply(out, f, &c.kept, &plan, m)
	}
	if err := c.decode(f, &plan, m); err != nil { // a copy that was not expected
		return err
	}
	return c.apply(out, f, &c.px, &plan, m)
}

// read reads the header of the picture.
func (c *imageFiller) read(f *format.Field) (augment.Header, error) {
	if f.Kind != format.Bytes {
		return augment.Header{}, noString(f, "one encoded image")
	}
	h, err := c.w.Header(f.Data)
	return h, inField(err, f)
}

func (c *imageFiller) decode(f *format.Field, plan *augment.Plan, m *Meter) error {
	if err := c.w.DecodePlan(&c.px, f.Data, plan); err != nil {
		return inField(err, f)
	}
	c.count(m)
	return nil
}

func (c *imageFiller) count(m *Meter) {
	m.Images++
	m.Pixels += int64(c.px.Rect.Dx()) * int64(c.px.Rect.Dy())
}

func (c *imageFiller) apply(out *Slot, f *format.Field, px *augment.Pixels, plan *augment.Plan, m *Meter) error {
	begin := time.Now()
	err := c.w.Apply(out.Dense, px, plan)
	m.Augment += time.Since(begin)
	return inField(err, f)
}
