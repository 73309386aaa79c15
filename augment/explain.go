package augment

import (
	"fmt"
	"image"
	"strings"

	"shardtool/tensor"
)

// Explain says, an operation a line, by which path each is done and why:
//
//	one pass from the decoded planes of the part that is needed to a picture of 8 bits:
//	  RandomResizedCrop (224x224, bilinear antialiased)
//	  RandomHorizontalFlip (p 0.5)
//	on pictures of 8 bits, because ColorJitter changes pixels:
//	  ColorJitter (brightness 0.6 to 1.4)
//	at the end:
//	  Normalize to float32 [3 224 224]
//
// An operation that is drawn to do nothing to a picture does not end the first
// pass. Pictures smaller than a crop are padded, and then the first pass ends
// before that operation; Explain says where this can happen.
func (t *Transform) Explain() string {
	var b strings.Builder
	n := t.tail.first(len(t.steps))
	folded, why := t.fold(n)
	if folded == n && n > 0 {
		b.WriteString("one pass from the decoded planes of the part that is needed to the tensor:\n")
	} else if folded > 0 {
		b.WriteString("one pass from the decoded planes of the part that is needed to a picture of 8 bits:\n")
	}
	for i, s := range t.steps[:n] {
		if i == folded {
			fmt.Fprintf(&b, "on pictures of 8 bits, because %s:\n", why)
		}
		if s.nth > 0 {
			continue
		}
		fmt.Fprintf(&b, "  %s (%s)%s\n", s.name, s.note, t.remark(&s, i < folded))
	}
	fmt.Fprintf(&b, "at the end:\n  %s to %v %v\n", t.values(), t.DType(), t.Shape())
	if t.tail.erase {
		s := t.steps[n]
		fmt.Fprintf(&b, "  %s (%s)%s\n", s.name, s.note, t.remark(&s, false))
	}
	if t.shrink {
		b.WriteString("the decoder may reduce the picture by 2, 4 or 8 before a resize\n")
	}
	return b.String()
}

// fold tells how many of the first n steps are one pass for a picture that is
// larger than every crop, and why the next is not.
func (t *Transform) fold(n int) (folded int, why string) {
	size := image.Pt(1<<14, 1<<14)
	g := whole(size)
	for i := range n {
		s := &t.steps[i]
		d := Drawn{Active: true}
		if s.draw != nil && (s.fold != nil || t.rest) {
			d = t.choose(s, 0, size)
		}
		if d.Active && s.fold == nil {
			return i, s.name + " changes pixels"
		}
		next, ok := s.folds(g, d)
		if !ok && g.resized && d.Rect.In(image.Rectangle{Max: size}) {
			return i, s.name + " is a second change of size"
		}
		if !ok {
			return i, s.name + " reaches beyond the picture"
		}
		g, size = next, s.result(size)
	}
	return n, ""
}

// remark tells what depends on the picture.
func (t *Transform) remark(s *step, folded bool) string {
	switch {
	case t.rest && s.rest != nil && s.draw != nil && !s.rest(image.Pt(1<<14, 1<<14)).Active:
		return ": left out, without randomness"
	case folded && s.name == "CenterCrop":
		return "; a smaller picture is padded, on pictures of 8 bits"
	}
	return ""
}

// values names what is done to the values at the end.
func (t *Transform) values() string {
	switch {
	case t.tail.normalized:
		return "Normalize"
	case t.DType() == tensor.Uint8:
		return "values as they are"
	}
	return "values divided by 255"
}
