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
// defaults of torchvision, compiled once and shared by all workers:
//
//	t, err := augment.Compile(
//		augment.RandomResizedCrop{Size: 224},
//		augment.RandomHorizontalFlip{},
//		augment.TrivialAugmentWide{},
//		augment.ImageNetNormalize,
//		augment.RandomErasing{P: 0.1},
//	)
//
// A [Worker] is what one goroutine uses: a [Decoder] and scratch memory. The
// steps stand alone, so that decoded [Pixels] can be kept and used under
// another plan. What an operation draws depends on nothing but the [Draws] it
// is given, and can be read back from the [Plan].
//
// # Passes
//
// The crops, the resize, the flips and the turn to gray that a list begins with
// become one pass, which reads the decoded planes where they are needed, in the
// sampling that they have, and writes the tensor: no picture is made in between.
// Operations on pixels that follow work on a picture of 8 bits of the size they
// find, and what does not fit into the first pass (a second resize, padding, a
// rotation before a crop) too. An operation that is drawn to do nothing to a
// picture is in no pass's way. [Transform.Explain] says which is which.
//
// The first pass does not round before its end, and takes chroma as the linear
// interpolation of its samples. The way over pictures of 8 bits rounds after
// each step, as Pillow does, whose results it gives bit for bit. On photographs
// the two differ by less than half a grey level in the mean, and by less than
// six at 99.9% of the values. Single ones differ by twenty and more, at the edges
// of saturated colors: those beyond RGB are cut off after the resize instead of
// before.
//
// # Other uses
//
// To decode and nothing else, use [DecodeRGB], or a Decoder. For validation
// without randomness, use a transform without random operations such as
// [ImageNetEval], or [Transform.WithoutRandom]. Batches are mixed by [MixUp]
// and [CutMix].
package augment

import (
	"fmt"
	"hash/fnv"
	"image"
	"reflect"

	"shardtool/augment/internal/resample"
	"shardtool/format"
	"shardtool/tensor"
)

// Transform is a compiled list of operations. It is safe for use by several
// goroutines.
type Transform struct {
	steps  []step
	tail   tail
	list   uint64      // which list of operations this is, for Apply to know its plans
	size   image.Point // of the result
	open   NewDecoder
	rest   bool // without randomness
	shrink bool
	other  bool // decodes by another decoder than Standard
}

// ImageNetTrain is the usual training transform: RandomResizedCrop to
// size x size, a horizontal flip at one half, and normalisation with
// ImageNet's mean and standard deviation, to float32 [3 size size]. It panics
// unless size is within 1 to 8192.
func ImageNetTrain(size int) *Transform {
	return must(RandomResizedCrop{Size: size}, RandomHorizontalFlip{}, ImageNetNormalize)
}

// ImageNetEval is the usual transform for validation: the shorter side resized
// to size*256/224, the central part of size x size, and normalisation with
// ImageNet's mean and standard deviation, to float32 [3 size size]. It panics
// unless size is within 1 to 8192.
func ImageNetEval(size int) *Transform {
	return must(Resize{Size: size * 256 / 224}, CenterCrop{Size: size}, ImageNetNormalize)
}

func must(ops ...Op) *Transform {
	t, err := Compile(ops...)
	if err != nil {
		panic("augment: " + err.Error()) // the size, as the doc comments say
	}
	return t
}

// Compile makes a transform of operations in the order given: first those on
// pictures, then Normalize, ToTensor and RandomErasing, each at most once and
// RandomErasing last of all. Some operation must fix the size of the result.
// A list in another order, which torchvision would take, is ErrUnsupported;
// lists and parameters that make no sense are ErrUsage.
func Compile(ops ...Op) (*Transform, error) {
	t := &Transform{open: Standard, list: fingerprint(ops)}
	f := form{channels: 3}
	for place, op := range ops {
		if !own(op) {
			return nil, usage("%T is no operation of this package, as a value", op)
		}
		if err := op.check(); err != nil {
			return nil, err
		}
		onTensor, err := f.add(op)
		if err != nil {
			return nil, err
		}
		s := op.step()
		s.place = place
		if onTensor && s.draw == nil {
			continue
		}
		for n := range repeats(op) {
			s.nth = n
			t.steps = append(t.steps, s)
			t.size = s.result(t.size)
		}
		if len(t.steps) > maxSteps {
			return nil, usage("a transform of more than %d operations", maxSteps)
		}
	}
	if t.size.X == 0 {
		return nil, usage("no operation fixes the size of the result: a crop, or a Resize to a height and a width, is needed; to decode alone, use DecodeRGB")
	}
	if t.size.X > maxSize || t.size.Y > maxSize {
		return nil, usage("a result of %dx%d pixels is not within %d", t.size.X, t.size.Y, maxSize)
	}
	t.tail = f.tail()
	return t, nil
}

// own tells the types of this package from pointers to them, and from types
// that embed one: both have the methods of an Op, and are not told apart as one.
func own(op Op) bool {
	t := reflect.TypeOf(op)
	return t != nil && t.PkgPath() == reflect.TypeFor[Transform]().PkgPath()
}

// fingerprint is equal for equal lists.
func fingerprint(ops []Op) uint64 {
	h := fnv.New64a()
	for _, op := range ops {
		fmt.Fprintf(h, "%T%v\n", op, op)
	}
	return h.Sum64()
}

// repeats is how many steps an operation is.
func repeats(op Op) int {
	if a, ok := op.(RandAugment); ok {
		return a.withDefaults().NumOps
	}
	return 1
}

// WithDecoder returns a transform that decodes by what open makes instead of
// Standard.
func (t *Transform) WithDecoder(open NewDecoder) *Transform {
	c := *t
	c.open, c.other = open, true
	return &c
}

// WithoutRandom returns a transform that does nothing at random: random crops
// are central ones, as each doc comment says, and other operations that draw
// are left out. Draws have no influence on it.
func (t *Transform) WithoutRandom() *Transform {
	c := *t
	c.rest = true
	return &c
}

// Random reports whether what is done to a picture depends on Draws.
func (t *Transform) Random() bool {
	for i := range t.steps {
		if s := &t.steps[i]; s.draw != nil && s.rest != nil && !t.rest {
			return true
		}
	}
	return false
}

// WithShrink returns a transform whose plans allow the decoder to reduce the
// picture by 2, 4 or 8 first, where what is left of the part to be resized is
// no smaller than the result: faster, and not the same pixels. It changes
// nothing where the decoder cannot. Worker.DecodePlan makes use of it.
func (t *Transform) WithShrink() *Transform {
	c := *t
	c.shrink = true
	return &c
}

// Fingerprint is a line that is equal for transforms that do the same. Of a
// decoder given by WithDecoder it tells only that there is one.
func (t *Transform) Fingerprint() string {
	return fmt.Sprintf("%v %v of %016x, random %t, shrink %t, own decoder %t", t.DType(), t.Shape(), t.list, !t.rest, t.shrink, t.other)
}

// DType returns the type of the elements that Apply writes.
func (t *Transform) DType() tensor.DType { return t.tail.dtype }

// Shape returns the shape that Apply writes: channels, height, width, or
// height, width, channels.
func (t *Transform) Shape() tensor.Shape {
	if t.tail.axes == NHWC {
		return tensor.Shape{t.size.Y, t.size.X, t.tail.channels}
	}
	return tensor.Shape{t.tail.channels, t.size.Y, t.size.X}
}

// Worker applies a transform. It is for one goroutine.
type Worker struct {
	Decoder
	t      *Transform
	canvas canvas
	fused  resample.Resampler
	pic    resample.Picture
	out    resample.Output
}

// NewWorker returns a worker whose decoder and pictures hold to limits. nil
// limits are the defaults.
func (t *Transform) NewWorker(limits *format.Limits) *Worker {
	w := &Worker{Decoder: t.open(limits), t: t}
	w.canvas.pixels = limits.OrDefault().Pixels
	return w
}

// Apply does to the pixels what the plan says and writes dst, an array of the
// transform's type and shape. The pixels must cover plan.Crop. They are not
// changed. The plan must be one of a transform of the same list: of this one,
// of what its With methods return, or of what Compile returns for an equal
// list. Another is ErrUsage, as is a picture that an operation cannot be done
// to; one that would become larger than Limits.Pixels on its way is ErrLimit.
// dst is undefined then.
func (w *Worker) Apply(dst tensor.Dense, px *Pixels, plan *Plan) error {
	t := w.t
	if dst.DType() != t.tail.dtype || len(dst.Bytes()) != t.size.X*t.size.Y*t.tail.channels*t.tail.dtype.Size() {
		return usage("an array of %v %v for a result of %v %v", dst.DType(), dst.Shape(), t.tail.dtype, t.Shape())
	}
	if plan.list != t.list {
		return usage("the plan is of another list of operations than the worker's")
	}
	if err := covers(px, plan); err != nil {
		return err
	}
	if plan.folded == t.tail.first(len(t.steps)) {
		if err := w.fuse(px, plan, t.tail.output(dst)); err != nil {
			return err
		}
	} else if err := w.general(dst, px, plan); err != nil {
		return err
	}
	if t.tail.erase {
		t.tail.erased(dst, t.size, plan.drawn[plan.steps-1])
	}
	return nil
}

// Run does all steps: header, plan, decode into px, apply.
func (w *Worker) Run(dst tensor.Dense, px *Pixels, data []byte, d Draws) error {
	h, err := w.Header(data)
	if err != nil {
		return err
	}
	plan := w.t.Plan(h, d)
	if err := w.DecodePlan(px, data, &plan); err != nil {
		return err
	}
	return w.Apply(dst, px, &plan)
}

// DecodePlan decodes what the plan needs into px.
func (w *Worker) DecodePlan(px *Pixels, data []byte, plan *Plan) error {
	return w.DecodeUnion(px, data, Union{plan.Crop, plan.Shrink})
}

// DecodeRGB decodes a whole picture and appends it to dst, upright, as red,
// green and blue of 8 bits, three bytes a pixel, rows without gaps. px is
// scratch that is reused.
func DecodeRGB(dst []byte, d Decoder, px *Pixels, data []byte) (pix []byte, width, height int, err error) {
	h, err := d.Header(data)
	if err != nil {
		return dst, 0, 0, err
	}
	r := image.Rect(0, 0, h.Width, h.Height)
	if err := d.Decode(px, data, r); err != nil {
		return dst, 0, 0, err
	}
	n := len(dst)
	dst = append(dst, make([]byte, 3*h.Width*h.Height)...)
	px.WriteRGB(dst[n:], 3*h.Width, r)
	return dst, h.Width, h.Height, nil
}
