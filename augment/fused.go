package augment

import (
	"image"
	"math"

	"shardtool/augment/internal/resample"
	"shardtool/tensor"
)

// Covers reports whether px holds what the plan needs.
func (px *Pixels) Covers(plan *Plan) bool { return covers(px, plan) == nil }

// covers tells by an error that px lacks what the plan needs.
func covers(px *Pixels, plan *Plan) error {
	by := max(px.Shrink, 1)
	if px.Full != plan.Size || by > plan.Shrink {
		return usage("the pixels are of a picture of %v, reduced by %d, the plan is for %v, reduced by %d at most", px.Full, by, plan.Size, plan.Shrink)
	}
	need := px.source(plan.Crop)
	reduced := image.Rect(int(need[0]), int(need[1]), int(math.Ceil(need[2])), int(math.Ceil(need[3])))
	if plan.Crop.Empty() || !plan.Crop.In(image.Rectangle{Max: plan.Size}) || !reduced.In(px.stored(px.Rect)) {
		return usage("the crop %v is not within the pixels %v", plan.Crop, px.Rect)
	}
	return nil
}

var resampleFilters = [...]resample.Filter{
	Nearest:  resample.Nearest,
	Bilinear: resample.Bilinear,
	Bicubic:  resample.Bicubic,
	Lanczos:  resample.Lanczos,
}

// fuse does all of the plan's geometry in one pass over the planes. The planes
// may lie mirrored; then what is said of the upright picture is mirrored too,
// and so is the result, once more.
func (w *Worker) fuse(px *Pixels, plan *Plan, out resample.Output) error {
	g, window := &plan.geometry, plan.geometry.window
	if px.FlipX {
		window.Min.X, window.Max.X = g.size.X-window.Max.X, g.size.X-window.Min.X
	}
	if px.FlipY {
		window.Min.Y, window.Max.Y = g.size.Y-window.Max.Y, g.size.Y-window.Min.Y
	}
	w.pic, w.out = px.picture(), out
	w.out.Gray = g.gray
	return w.fused.Run(&w.pic, &resample.Geometry{
		Src:   px.source(g.src),
		Width: g.size.X, Height: g.size.Y,
		Window: window,
		FlipX:  g.flipX != px.FlipX, FlipY: g.flipY != px.FlipY,
		Filter: resampleFilters[g.filter], Antialias: g.antialias,
	}, &w.out)
}

// output is where the one pass writes, and as what.
func (t *tail) output(dst tensor.Dense) resample.Output {
	return resample.Output{
		DType: t.dtype, NHWC: t.axes == NHWC, Channels: t.channels,
		Scale: t.scale, Bias: t.bias, Dst: dst.Bytes(),
	}
}

// general does the steps that the first pass does not on pictures of 8 bits.
// Where nothing is resized before, the picture is taken as libjpeg would give
// it.
func (w *Worker) general(dst tensor.Dense, px *Pixels, plan *Plan) error {
	c, g := &w.canvas, &plan.geometry
	size := g.result()
	if err := c.make(size.X, size.Y); err != nil {
		return err
	}
	c.swap()
	if g.resized {
		out := resample.Output{DType: tensor.Uint8, NHWC: true, Channels: 3, Dst: c.now.pix}
		if err := w.fuse(px, plan, out); err != nil {
			return err
		}
	} else {
		px.WriteRGB(c.now.pix, 3*size.X, g.src)
		if g.flipX {
			c.now.mirrorX()
		}
		if g.flipY {
			c.now.mirrorY()
		}
		if g.gray {
			c.now.gray()
		}
	}
	steps := w.t.steps
	for i := plan.folded; i < w.t.tail.first(len(steps)); i++ {
		if d := plan.drawn[i]; d.Active {
			if err := steps[i].apply(c, d); err != nil {
				return err
			}
		}
	}
	w.t.tail.write(dst, &c.now)
	return nil
}
