// Package augment turns an encoded image into a tensor for training: it reads
// the header, draws what the operations of a transform are to do, decodes the
// part of the picture that they need, and writes the result into the caller's
// memory.
//
//	encoded bytes ─ Header ─▶ 500x375 ─ Plan(draws) ─▶ crop 311x280+40+12, flip
//	      │                                               │
//	      └──────────────── Decode(crop) ─▶ Pixels ─ Apply(plan) ─▶ float32 [3 224 224]
//
// A [Transform] is a list of operations with the names, parameters and
// defaults of torchvision, compiled once and shared by all workers. A [Worker]
// is what one goroutine uses: a [Decoder] and scratch memory. The steps stand
// alone, so that decoded [Pixels] can be kept and used under another plan.
//
// What an operation draws depends on nothing but the [Draws] it is given.
//
// For now decoding is by image/jpeg and image/png, as stored: an EXIF
// orientation is not applied yet. Resizing is by imaging's linear filter, whose
// support grows with the reduction, as PIL's and torchvision's antialiased
// bilinear does.
package augment

import (
	"image"

	"shardtool/format"
	"shardtool/tensor"
)

// Transform is a compiled list of operations. It is safe for use by several
// goroutines.
type Transform struct {
	crop  RandomResizedCrop
	flip  float64 // probability
	table [3][256]float32
	open  NewDecoder
}

// ImageNetTrain is the usual training transform: RandomResizedCrop to
// size x size, a horizontal flip at one half, and normalisation with
// ImageNet's mean and standard deviation, to float32 [3 size size].
func ImageNetTrain(size int) *Transform {
	t, err := Compile(RandomResizedCrop{Size: size}, RandomHorizontalFlip{P: 0.5}, ImageNetNormalize)
	if err != nil {
		panic("augment: " + err.Error()) // size is not positive
	}
	return t
}

// Compile makes a transform of operations in the order given. Lists other than
// RandomResizedCrop, RandomHorizontalFlip (which may be absent), Normalize are
// ErrUnsupported for now; parameters that make no sense are ErrUsage.
func Compile(ops ...Op) (*Transform, error) {
	t := &Transform{open: Standard}
	next := 0 // place in the only order that is supported
	for _, op := range ops {
		if err := op.check(); err != nil {
			return nil, err
		}
		at := next
		switch op := op.(type) {
		case RandomResizedCrop:
			t.crop, at = op.withDefaults(), 0
		case RandomHorizontalFlip:
			t.flip, at = op.P, 1
		case Normalize:
			t.table, at = op.table(), 2
		}
		if at < next || next == 0 && at != 0 {
			return nil, format.Errorf(format.ErrUnsupported, format.Nowhere, "this order of operations is not supported yet")
		}
		next = at + 1
	}
	if next != 3 {
		return nil, format.Errorf(format.ErrUnsupported, format.Nowhere, "a transform without RandomResizedCrop or Normalize is not supported yet")
	}
	return t, nil
}

// WithDecoder returns a transform that decodes by what open makes instead of
// Standard.
func (t *Transform) WithDecoder(open NewDecoder) *Transform {
	c := *t
	c.open = open
	return &c
}

// DType returns the type of the elements that Apply writes.
func (t *Transform) DType() tensor.DType { return tensor.Float32 }

// Shape returns the shape that Apply writes: channels, height, width.
func (t *Transform) Shape() tensor.Shape { return tensor.Shape{3, t.crop.Size, t.crop.Size} }

// Plan is what a transform will do to one picture.
type Plan struct {
	Crop image.Rectangle // the part of the picture that is needed; never empty
	Flip bool            // mirror left and right
}

// The places of the operations among the draws of a sample.
const (
	drawCrop = iota
	drawFlip
)

// Plan draws what to do with a picture. It depends on its arguments alone.
func (t *Transform) Plan(h Header, d Draws) Plan {
	crop, flip := d.Stream(drawCrop), d.Stream(drawFlip)
	return Plan{
		Crop: t.crop.draw(&crop, h.Width, h.Height),
		Flip: flip.Float64() < t.flip,
	}
}

// Worker applies a transform. It is for one goroutine.
type Worker struct {
	Decoder
	t *Transform
}

// NewWorker returns a worker whose decoder holds to limits.
func (t *Transform) NewWorker(limits *format.Limits) *Worker {
	return &Worker{Decoder: t.open(limits), t: t}
}

// Apply does to the pixels what the plan says and writes dst, an array of the
// transform's type and shape. The pixels must cover plan.Crop. They are not
// changed.
func (w *Worker) Apply(dst tensor.Dense, px *Pixels, plan *Plan) error {
	if !plan.Crop.In(px.Rect) || plan.Crop.Empty() {
		return format.Errorf(format.ErrUsage, format.Nowhere, "the crop %v is not within the pixels %v", plan.Crop, px.Rect)
	}
	w.t.general(dst.Float32(), px, plan)
	return nil
}

// Run does all steps: header, plan, decode into px, apply.
func (w *Worker) Run(dst tensor.Dense, px *Pixels, data []byte, d Draws) error {
	h, err := w.Header(data)
	if err != nil {
		return err
	}
	plan := w.t.Plan(h, d)
	if err := w.Decode(px, data, plan.Crop); err != nil {
		return err
	}
	return w.Apply(dst, px, &plan)
}
