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
// Where the path depends on the picture or on what is drawn, both are told:
//
//	on pictures of 8 bits where RandomCrop reaches beyond the picture, else in one pass from the decoded planes of the part that is needed:
//	  RandomCrop (32x32, padding constant {4 4 4 4})
//	  RandomHorizontalFlip (p 0.5)
//
// An operation that is drawn to do nothing to a picture does not end the first
// pass. Pictures smaller than a crop are padded, and then the first pass ends
// before that operation; Explain says where this can happen.
func (t *Transform) Explain() string {
	var b strings.Builder
	n := t.tail.first(len(t.steps))
	routes := t.routes(n)
	for i, s := range t.steps[:n] {
		b.WriteString(title(routes, i))
		if s.nth == 0 {
			fmt.Fprintf(&b, "  %s (%s)%s\n", s.name, s.note, routes[i].remark)
		}
	}
	fmt.Fprintf(&b, "at the end:\n  %s to %v %v\n", t.values(), t.DType(), t.Shape())
	if t.tail.erase {
		s, remark := &t.steps[n], ""
		if t.leftOut(s) {
			remark = leftOut
		}
		fmt.Fprintf(&b, "  %s (%s)%s\n", s.name, s.note, remark)
	}
	if t.shrink {
		b.WriteString("the decoder may reduce the picture by 2, 4 or 8 before a resize\n")
	}
	return b.String()
}

const leftOut = ": left out, without randomness"

// path is how a step is done.
type path uint8

const (
	inPass   path = iota // as a part of the first pass
	either               // that, or on pictures of 8 bits
	pictures             // on pictures of 8 bits
)

// route is the path of a step, and why it is not the one of the step before.
type route struct {
	path
	why    string
	remark string // what else depends on the picture
}

// routes tells the paths of the first n steps by what is known before there is
// a picture or a draw: of sizes, those that the list fixes.
func (t *Transform) routes(n int) []route {
	all := make([]route, n)
	var size image.Point // of the picture at the step, or zero
	resized, now := false, inPass
	for i := range all {
		s, r := &t.steps[i], &all[i]
		to := s.result(size)
		again := s.resizes && (s.draw != nil || size.X == 0 || to != size)
		if t.leftOut(s) {
			r.remark = leftOut
		} else if now != pictures {
			*r = t.route(s, size, resized && again)
		}
		resized, size = resized || again, to
		now = max(now, r.path)
		r.path = now
	}
	return all
}

// route tells how a step is done that could be a part of the first pass, where
// again says that it may change the size once more.
func (t *Transform) route(s *step, size image.Point, again bool) route {
	if s.fold == nil {
		return route{path: pictures, why: s.name + " changes pixels"}
	}
	switch t.reach(s, size) {
	case beyond:
		return route{path: pictures, why: s.name + " reaches beyond the picture"}
	case perhaps:
		return route{path: either, why: s.name + " reaches beyond the picture"}
	case ifSmaller:
		return route{remark: "; a smaller picture is padded, on pictures of 8 bits"}
	}
	if again {
		return route{path: either, why: s.name + " changes the size again"}
	}
	return route{}
}

// reach is the step's. Without randomness, a size that is known says all.
func (t *Transform) reach(s *step, size image.Point) reach {
	switch {
	case s.reach == nil:
		return within
	case t.rest && s.rest != nil && size.X > 0:
		if s.rest(size).Rect.In(image.Rectangle{Max: size}) {
			return within
		}
		return beyond
	}
	return s.reach(size)
}

// leftOut tells whether the step does nothing, for want of randomness.
func (t *Transform) leftOut(s *step) bool {
	return t.rest && s.rest != nil && s.draw != nil && !s.rest(image.Pt(1<<14, 1<<14)).Active
}

// title stands above step i where a path begins.
func title(routes []route, i int) string {
	const pass = "one pass from the decoded planes of the part that is needed"
	r := routes[i]
	switch {
	case i == 0 && r.path == inPass:
		to := [...]string{inPass: "the tensor", either: "the tensor or a picture of 8 bits", pictures: "a picture of 8 bits"}
		return pass + " to " + to[routes[len(routes)-1].path] + ":\n"
	case r.why == "":
		return ""
	case r.path == pictures:
		return "on pictures of 8 bits, because " + r.why + ":\n"
	case i == 0:
		return "on pictures of 8 bits where " + r.why + ", else in " + pass + ":\n"
	}
	return "on pictures of 8 bits where " + r.why + ", else as before:\n"
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
