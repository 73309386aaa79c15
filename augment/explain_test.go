package augment

import (
	"testing"

	"pgregory.net/rapid"
)

// What Explain says of each operation holds for all plans: those of the first
// pass alone are folded, those on pictures of 8 bits are not.
func TestRoutesHold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 40)
		edges := func() Edges {
			if rapid.Bool().Draw(rt, "none") {
				return Edges{}
			}
			e := rapid.IntRange(0, 5)
			return Edges{e.Draw(rt, "left"), e.Draw(rt, "top"), e.Draw(rt, "right"), e.Draw(rt, "bottom")}
		}
		one := func() Op {
			switch rapid.IntRange(0, 9).Draw(rt, "kind") {
			case 0:
				return CenterCrop{Height: n.Draw(rt, "h"), Width: n.Draw(rt, "w")}
			case 1:
				return RandomCrop{Size: n.Draw(rt, "size"), Padding: edges(), PadIfNeeded: rapid.Bool().Draw(rt, "if needed")}
			case 2:
				return Pad{Padding: edges()}
			case 3:
				return Resize{Size: n.Draw(rt, "size")}
			case 4:
				return Resize{Height: n.Draw(rt, "h"), Width: n.Draw(rt, "w")}
			case 5:
				return RandomResizedCrop{Size: n.Draw(rt, "size")}
			case 6:
				return RandomGrayscale{}
			case 7:
				return ColorJitter{Brightness: 0.1}
			default:
				return RandomHorizontalFlip{}
			}
		}
		ops := make([]Op, rapid.IntRange(0, 5).Draw(rt, "operations"))
		for i := range ops {
			ops[i] = one()
		}
		tr, err := Compile(append(ops, CenterCrop{Size: 8})...)
		if err != nil {
			rt.Fatal(err)
		}
		if rapid.Bool().Draw(rt, "rest") {
			tr = tr.WithoutRandom()
		}
		routes := tr.routes(len(tr.steps))
		size := rapid.IntRange(1, 60)
		h := Header{Width: size.Draw(rt, "width"), Height: size.Draw(rt, "height")}
		p := tr.Plan(h, Draws(rapid.Uint64().Draw(rt, "draws")))
		sure := true
		for i, d := range p.Ops() {
			if d.Op == "RandomCrop" && d.Rect.Empty() {
				return // Apply fails
			}
			r, folded := routes[i], i < p.folded
			sure = sure && r.path == inPass && (r.remark == "" || r.remark == leftOut)
			if sure && !folded || r.path == pictures && folded && d.Active {
				rt.Fatalf("%v: step %d of %v is folded: %v\n%s", ops, i, p, folded, tr.Explain())
			}
		}
	})
}
