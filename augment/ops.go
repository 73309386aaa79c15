package augment

import (
	"image"
	"math"

	"shardtool/format"
)

// Op is an operation of a transform. The operations are the types of this
// package that have it.
type Op interface{ check() error }

// RandomResizedCrop cuts out a part of random area and aspect ratio and
// resizes it to Size x Size, as torchvision's of that name: ten tries, then
// the largest central part of an allowed ratio.
type RandomResizedCrop struct {
	Size  int        // of the result, in pixels
	Scale [2]float64 // bounds of the part's area, as a share of the picture's; zero: 0.08 to 1
	Ratio [2]float64 // bounds of width by height; zero: 3/4 to 4/3
}

func (c RandomResizedCrop) withDefaults() RandomResizedCrop {
	if c.Scale == [2]float64{} {
		c.Scale = [2]float64{0.08, 1}
	}
	if c.Ratio == [2]float64{} {
		c.Ratio = [2]float64{3.0 / 4, 4.0 / 3}
	}
	return c
}

// maxSize keeps three planes of float32 addressable on any machine.
const maxSize = 1 << 13

func (c RandomResizedCrop) check() error {
	d := c.withDefaults()
	switch {
	case c.Size < 1 || c.Size > maxSize:
		return usage("RandomResizedCrop: size %d is not within 1 to %d", c.Size, maxSize)
	case !(0 < d.Scale[0] && d.Scale[0] <= d.Scale[1] && d.Scale[1] <= 1):
		return usage("RandomResizedCrop: scale %v is not within 0 to 1, the smaller bound first", d.Scale)
	case !(0 < d.Ratio[0] && d.Ratio[0] <= d.Ratio[1]) || math.IsInf(d.Ratio[1], 0):
		return usage("RandomResizedCrop: ratio %v is not positive, the smaller bound first", d.Ratio)
	}
	return nil
}

// draw chooses the part, in the order of draws of torchvision's get_params:
// area, ratio, top, left. Products are rounded one by one, so that a fused
// multiply-add cannot move a crop.
func (c RandomResizedCrop) draw(r *Stream, width, height int) image.Rectangle {
	area := float64(width) * float64(height)
	low, high := math.Log(c.Ratio[0]), math.Log(c.Ratio[1])
	for range 10 {
		part := float64(area * r.Between(c.Scale[0], c.Scale[1]))
		aspect := math.Exp(r.Between(low, high))
		w := int(math.RoundToEven(math.Sqrt(float64(part * aspect))))
		h := int(math.RoundToEven(math.Sqrt(float64(part / aspect))))
		if 0 < w && w <= width && 0 < h && h <= height {
			top := r.IntN(height - h + 1)
			left := r.IntN(width - w + 1)
			return image.Rect(left, top, left+w, top+h)
		}
	}
	return c.central(width, height)
}

func (c RandomResizedCrop) central(width, height int) image.Rectangle {
	w, h := width, height
	switch in := float64(width) / float64(height); {
	case in < c.Ratio[0]:
		h = min(height, int(math.RoundToEven(float64(width)/c.Ratio[0])))
	case in > c.Ratio[1]:
		w = min(width, int(math.RoundToEven(float64(height)*c.Ratio[1])))
	}
	// A picture one pixel wide may leave nothing to round to.
	w, h = max(w, 1), max(h, 1)
	top, left := (height-h)/2, (width-w)/2
	return image.Rect(left, top, left+w, top+h)
}

// RandomHorizontalFlip mirrors left and right with probability P.
type RandomHorizontalFlip struct{ P float64 }

func (f RandomHorizontalFlip) check() error {
	if !(0 <= f.P && f.P <= 1) {
		return usage("RandomHorizontalFlip: %v is no probability", f.P)
	}
	return nil
}

// Normalize maps a channel's value v, 0 to 255, to (v/255 - Mean) / Std, for
// red, green and blue.
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

// table gives the result for each of the 256 values: v*scale + offset in
// float32, the product rounded before the sum. A kernel that computes instead
// of looking up must do the same.
func (n Normalize) table() (t [3][256]float32) {
	for c := range t {
		scale := float32(1 / (255 * n.Std[c]))
		offset := float32(-n.Mean[c] / n.Std[c])
		for v := range t[c] {
			t[c][v] = float32(float32(v)*scale) + offset
		}
	}
	return t
}

func usage(msg string, args ...any) error {
	return format.Errorf(format.ErrUsage, format.Nowhere, msg, args...)
}
