package augment

import (
	"image"
	"math"

	"shardtool/tensor"
)

// MixUp mixes each picture of a batch with the one before it, and the first
// with the last, by a share drawn from Beta(Alpha, Alpha) (Zhang et al., arXiv
// 1710.09412). As in torchvision the pairs are neighbours, so samples must come
// in a shuffled order.
type MixUp struct{ Alpha float64 } // zero: 1; Never: nothing is mixed

// CutMix replaces a rectangle of each picture by that of the one before it, of
// the first by the last's; the area of what stays is Beta(Alpha, Alpha) (Yun et
// al., arXiv 1905.04899).
type CutMix struct{ Alpha float64 } // zero: 1; Never: nothing is replaced

// Mix is what was drawn for a batch.
type Mix struct {
	Lambda float64         // the share of each picture's own label
	Box    image.Rectangle // what CutMix replaces; empty for MixUp, and where nothing is
	cut    bool
}

// Draw draws for one batch. d belongs to the batch, as Draws do to samples.
// An Alpha that is neither positive nor Never is ErrUsage.
func (m MixUp) Draw(d Draws) (Mix, error) {
	lambda, err := drawLambda("MixUp", m.Alpha, d)
	return Mix{Lambda: lambda}, err
}

// Draw draws for one batch of pictures of that size: the share, then the
// center's column and row. Lambda is what the rectangle, which is cut off at
// the picture's edges, really leaves.
func (c CutMix) Draw(d Draws, width, height int) (Mix, error) {
	if width < 1 || height < 1 {
		return Mix{}, usage("CutMix: pictures of %dx%d", width, height)
	}
	lambda, err := drawLambda("CutMix", c.Alpha, d)
	if err != nil {
		return Mix{}, err
	}
	s := d.Stream(1)
	x, y := s.IntN(width), s.IntN(height)
	root := 0.5 * math.Sqrt(1-lambda)
	w, h := int(float64(root*float64(width))), int(float64(root*float64(height)))
	box := image.Rect(max(x-w, 0), max(y-h, 0), min(x+w, width), min(y+h, height))
	share := float64(box.Dx()*box.Dy()) / float64(width*height)
	return Mix{Lambda: 1 - share, Box: box, cut: true}, nil
}

func drawLambda(op string, alpha float64, d Draws) (float64, error) {
	if alpha == Never {
		return 1, nil
	}
	if alpha = orFloat(alpha, 1); !(alpha > 0) || math.IsInf(alpha, 0) {
		return 0, usage("%s: alpha %v is neither positive nor Never", op, alpha)
	}
	s := d.Stream(0)
	return s.Beta(alpha), nil
}

// Images mixes a batch in place: [N C H W], or with NHWC [N H W C], of Float32,
// Float16 or BFloat16, and for CutMix of Uint8 too. It allocates nothing. The
// copies of a batch that a loader repeats whole (echo.Batch) share one memory:
// they are to be copied before.
func (m Mix) Images(batch tensor.Dense, axes Axes) error {
	shape := batch.Shape()
	if len(shape) != 4 || shape.Elems() == 0 {
		return usage("a batch of shape %v", shape)
	}
	dt := batch.DType()
	if dt != tensor.Float32 && dt != tensor.Float16 && dt != tensor.BFloat16 && !(m.cut && dt == tensor.Uint8) {
		return usage("pictures of %v are not mixed", dt)
	}
	if !m.cut {
		m.mix(batch)
		return nil
	}
	size := image.Pt(shape[3], shape[2])
	if axes == NHWC {
		size = image.Pt(shape[2], shape[1])
	}
	if !m.Box.In(image.Rectangle{Max: size}) {
		return usage("the rectangle %v is not within pictures of %v", m.Box, size)
	}
	m.paste(batch, axes)
	return nil
}

// Labels mixes soft labels, Float32 [N classes], in place by the same share.
func (m Mix) Labels(labels tensor.Dense) error {
	if labels.DType() != tensor.Float32 || len(labels.Shape()) != 2 || labels.Shape().Elems() == 0 {
		return usage("labels of %v %v, want float32 [N classes]", labels.DType(), labels.Shape())
	}
	m.mix(labels)
	return nil
}

// OneHot writes labels as rows of zeros with a one at the label: dst is Float32
// [N classes]. A label that is no class is ErrUsage.
func OneHot(dst tensor.Dense, labels []int64) error {
	if dst.DType() != tensor.Float32 || len(dst.Shape()) != 2 || dst.Shape()[0] != len(labels) {
		return usage("%d labels as %v %v, want float32 [N classes]", len(labels), dst.DType(), dst.Shape())
	}
	classes := dst.Shape()[1]
	for i, l := range labels {
		if l < 0 || l >= int64(classes) {
			return usage("label %d of sample %d is not one of %d classes", l, i, classes)
		}
	}
	rows := dst.Float32()
	clear(rows)
	for i, l := range labels {
		rows[i*classes+int(l)] = 1
	}
	return nil
}

// block is how many elements of all samples are mixed before the next: what
// the first sample needs of the last must be kept until then.
const block = 1024

// mix replaces sample i by its own share and the rest of sample i-1, from the
// last to the first.
func (m Mix) mix(batch tensor.Dense) {
	n := batch.Shape()[0]
	each := batch.Shape().Elems() / n
	own, other := float32(m.Lambda), float32(1-m.Lambda)
	var last, here, before [block]float32
	for at := 0; at < each; at += block {
		k := min(block, each-at)
		load(last[:k], batch, (n-1)*each+at)
		copy(here[:k], last[:k])
		for i := n - 1; i >= 0; i-- {
			if i > 0 {
				load(before[:k], batch, (i-1)*each+at)
			} else {
				before = last
			}
			for j := range k {
				here[j] = float32(before[j]*other) + float32(here[j]*own)
			}
			store(batch, i*each+at, here[:k])
			here = before
		}
	}
}

func load(dst []float32, src tensor.Dense, at int) {
	switch src.DType() {
	case tensor.Float32:
		copy(dst, src.Float32()[at:])
	case tensor.Float16:
		tensor.FromFloat16(dst, src.Half()[at:at+len(dst)])
	case tensor.BFloat16:
		tensor.FromBFloat16(dst, src.Half()[at:at+len(dst)])
	}
}

func store(dst tensor.Dense, at int, src []float32) {
	switch dst.DType() {
	case tensor.Float32:
		copy(dst.Float32()[at:], src)
	case tensor.Float16:
		tensor.ToFloat16(dst.Half()[at:at+len(src)], src)
	case tensor.BFloat16:
		tensor.ToBFloat16(dst.Half()[at:at+len(src)], src)
	}
}

// paste copies the rectangle of each sample to the next, by pieces of rows,
// from the last sample to the first.
func (m Mix) paste(batch tensor.Dense, axes Axes) {
	shape, bytes := batch.Shape(), batch.Bytes()
	n := shape[0]
	each := len(bytes) / n
	planes, height, width, size := shape[1], shape[2], shape[3], batch.DType().Size()
	if axes == NHWC {
		planes, height, width, size = 1, shape[1], shape[2], size*shape[3]
	}
	var kept [4096]byte
	for p := range planes {
		for y := m.Box.Min.Y; y < m.Box.Max.Y; y++ {
			row := ((p*height + y) * width) * size
			from, to := row+m.Box.Min.X*size, row+m.Box.Max.X*size
			for at := from; at < to; at += len(kept) {
				end := min(at+len(kept), to)
				copy(kept[:], bytes[(n-1)*each+at:(n-1)*each+end])
				for i := n - 1; i > 0; i-- {
					copy(bytes[i*each+at:i*each+end], bytes[(i-1)*each+at:])
				}
				copy(bytes[at:end], kept[:])
			}
		}
	}
}
