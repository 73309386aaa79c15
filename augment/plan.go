package augment

import (
	"fmt"
	"image"
	"strings"
)

// maxSteps is the most steps of a transform. It keeps a Plan a plain value.
const maxSteps = 16

// Plan is what a transform will do to one picture. It is a value: plans of one
// transform, or of two that Compile made of equal lists, are equal where they do
// the same to pictures of one size.
type Plan struct {
	Crop   image.Rectangle // the part of the upright picture that Apply needs; never empty
	Size   image.Point     // of the upright picture that the plan is for
	Shrink int             // 1, or 2, 4, 8: Decode may reduce the picture by that (see WithShrink)

	geometry geometry // what the first steps come to
	folded   int      // how many those are
	steps    int
	list     uint64 // the transform's
	drawn    [maxSteps]Drawn
}

// Drawn is what one operation was drawn to do. Which fields have a meaning
// depends on the operation.
type Drawn struct {
	Op     string // the operation, such as "RandomCrop"
	Place  int    // of it in the list given to Compile
	Active bool   // false: it leaves the picture as it is

	// Rect is the part of the operation's input that a crop keeps, beyond its
	// edges where it pads; empty where there is none. Of RandomErasing it is
	// what is erased.
	Rect image.Rectangle
	// Factor holds the factors of brightness, contrast and saturation and the
	// shift of hue of ColorJitter, the angle of RandomRotation, the standard
	// deviation of GaussianBlur, or the magnitude of Choice.
	Factor [4]float64
	Order  [4]uint8 // of the factors of ColorJitter
	Choice Choice   // of RandAugment and TrivialAugmentWide
	noise  uint64   // where the deviates of RandomErasing come from
}

// Plan draws what to do with a picture. It depends on its arguments alone: the
// operation at place i of the list draws from d.Stream(i), in the order that
// its doc comment gives. It allocates nothing.
func (t *Transform) Plan(h Header, d Draws) (p Plan) {
	size := image.Pt(h.Width, h.Height)
	p.Size, p.Shrink, p.geometry, p.steps, p.list = size, 1, whole(size), len(t.steps), t.list
	pictures := t.tail.first(len(t.steps))
	for i := range t.steps {
		s := &t.steps[i]
		drawn := t.choose(s, d, size)
		drawn.Op, drawn.Place = s.name, s.place
		p.drawn[i] = drawn
		if p.folded == i && i < pictures {
			if g, ok := s.folds(p.geometry, drawn); ok {
				p.geometry = g
				p.folded++
			}
		}
		size = s.result(size)
	}
	p.Crop = p.geometry.need()
	if t.shrink {
		p.Shrink = p.geometry.shrink()
	}
	return p
}

// choose draws for one step. The steps of one operation share its stream, each
// with as many draws.
func (t *Transform) choose(s *step, d Draws, in image.Point) Drawn {
	switch {
	case s.draw == nil:
		return Drawn{Active: true}
	case t.rest && s.rest != nil:
		return s.rest(in)
	}
	stream := d.Stream(s.place)
	stream.skip(s.nth * drawsOfStep)
	return s.draw(stream, in)
}

// drawsOfStep is how many numbers a step of RandAugment draws.
const drawsOfStep = 2

// Ops returns what each operation was drawn to do, in their order; RandAugment
// has as many entries as operations. The slice is the plan's own memory.
func (p *Plan) Ops() []Drawn { return p.drawn[:p.steps] }

// String describes what is done, for logs.
func (p Plan) String() string {
	words := []string{fmt.Sprintf("%dx%d", p.Size.X, p.Size.Y)}
	for _, d := range p.Ops() {
		if d.Active {
			words = append(words, d.String())
		}
	}
	return strings.Join(words, ", ")
}

// String describes what is done, for logs.
func (d Drawn) String() string {
	switch {
	case !d.Active:
		return d.Op + " not"
	case d.Op == "ColorJitter":
		var b strings.Builder
		b.WriteString(d.Op)
		for _, i := range d.Order {
			if f := d.Factor[i]; f != 0 {
				fmt.Fprintf(&b, " %s %.4g", jitterNames[i], f)
			}
		}
		return b.String()
	case d.Op == "RandAugment" || d.Op == "TrivialAugmentWide":
		return fmt.Sprintf("%s %v %.4g", d.Op, d.Choice, d.Factor[0])
	case d.Rect != image.Rectangle{}:
		return fmt.Sprintf("%s %v", d.Op, d.Rect)
	case d.Factor[0] != 0:
		return fmt.Sprintf("%s %.4g", d.Op, d.Factor[0])
	}
	return d.Op
}
