package augment

import (
	"fmt"
	"image"
	"math"

	"shardtool/tensor"
)

// Normalize maps a channel's value v, 0 to 255, to (v/255 - Mean) / Std, for
// red, green and blue. A result of one channel takes those of red.
type Normalize struct{ Mean, Std [3]float64 }

// ImageNetNormalize has the mean and standard deviation of ImageNet that
// torchvision's models are trained with.
var ImageNetNormalize = Normalize{
	Mean: [3]float64{0.485, 0.456, 0.406},
	Std:  [3]float64{0.229, 0.224, 0.225},
}

func (n Normalize) check() error {
	for c := range 3 {
		if !(n.Std[c] > 0) || math.IsInf(n.Std[c], 0) || math.IsNaN(n.Mean[c]) || math.IsInf(n.Mean[c], 0) {
			return usage("Normalize: mean %v and standard deviation %v of channel %d", n.Mean[c], n.Std[c], c)
		}
	}
	return nil
}

func (n Normalize) step() step {
	return step{name: "Normalize", note: fmt.Sprintf("mean %v, std %v", n.Mean, n.Std)}
}

// Axes is the order of a picture's axes in a tensor.
type Axes uint8

const (
	NCHW Axes = iota // channel, row, column
	NHWC             // row, column, channel
)

// String returns the name with the batch's axis, such as "NCHW".
func (a Axes) String() string {
	if a == NHWC {
		return "NHWC"
	}
	return "NCHW"
}

// ToTensor gives the type and the order of axes of the result; without it they
// are Float32 and NCHW. It stands after the operations on pictures, on either
// side of Normalize. Without Normalize the values are v/255 for the types
// Float32, Float16 and BFloat16, and v, 0 to 255, for Uint8, which cannot be
// normalised.
type ToTensor struct {
	DType tensor.DType
	Axes  Axes
}

func (t ToTensor) check() error {
	switch t.DType {
	case tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Uint8:
	default:
		return usage("ToTensor: pictures do not become %v", t.DType)
	}
	if t.Axes > NHWC {
		return usage("ToTensor: axes %d are unknown", t.Axes)
	}
	return nil
}

func (t ToTensor) step() step {
	return step{name: "ToTensor", note: fmt.Sprintf("%v %v", t.DType, t.Axes)}
}

// RandomErasing overwrites, with probability P, a rectangle of the tensor, as
// the last operation: with Value, one for each channel, as normalised, or with
// Random, by normal deviates. Draws: whether; then ten tries of area and
// aspect ratio, and if the rectangle is smaller than the picture, top, left;
// the deviates come from a stream of their own.
type RandomErasing struct {
	P      float64    // zero: 1/2; Never: 0
	Scale  [2]float64 // bounds of the rectangle's area, as a share of the picture's; zero: 0.02 to 0.33
	Ratio  [2]float64 // bounds of height by width; zero: 0.3 to 3.3
	Value  [3]float64
	Random bool // not for Uint8
}

func (e RandomErasing) withDefaults() RandomErasing {
	e.P = orFloat(e.P, 0.5)
	e.Scale = orRange(e.Scale, [2]float64{0.02, 0.33})
	e.Ratio = orRange(e.Ratio, [2]float64{0.3, 3.3})
	return e
}

func (e RandomErasing) check() error {
	d := e.withDefaults()
	if err := checkProbability("RandomErasing", e.P); err != nil {
		return err
	}
	if err := checkRange("RandomErasing", "scale", d.Scale, 0, 1); err != nil {
		return err
	}
	if err := checkRange("RandomErasing", "ratio", d.Ratio, math.SmallestNonzeroFloat64, math.MaxFloat64); err != nil {
		return err
	}
	for _, v := range e.Value {
		if math.IsNaN(v) || math.IsInf(v, 0) || e.Random && v != 0 {
			return usage("RandomErasing: value %v, random %v", e.Value, e.Random)
		}
	}
	return nil
}

func (e RandomErasing) step() step {
	e = e.withDefaults()
	note := fmt.Sprintf("p %v, value %v", e.P, e.Value)
	if e.Random {
		note = fmt.Sprintf("p %v, normal deviates", e.P)
	}
	return step{name: "RandomErasing", note: note, draw: e.draw, rest: never}
}

func (e RandomErasing) draw(s Stream, in image.Point) Drawn {
	if !(s.Float64() < e.P) {
		return Drawn{}
	}
	area := float64(in.X) * float64(in.Y)
	low, high := math.Log(e.Ratio[0]), math.Log(e.Ratio[1])
	for range 10 {
		part := float64(area * s.Between(e.Scale[0], e.Scale[1]))
		aspect := math.Exp(s.Between(low, high))
		h := math.RoundToEven(math.Sqrt(float64(part * aspect)))
		w := math.RoundToEven(math.Sqrt(float64(part / aspect)))
		if h < float64(in.Y) && w < float64(in.X) {
			top := s.IntN(in.Y - int(h) + 1)
			left := s.IntN(in.X - int(w) + 1)
			return Drawn{
				Active: w > 0 && h > 0,
				Rect:   image.Rect(left, top, left+int(w), top+int(h)),
				noise:  s.Uint64(),
			}
		}
	}
	return Drawn{}
}
