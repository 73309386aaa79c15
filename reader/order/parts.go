package order

// part is a data set of the plan, as the machine looks at it.
type part struct {
	number  int
	filled  []int32 // shards with something to take, in the order of the manifest
	left    []int64 // how much; where counts are known
	samples int64   // their sum
	exclude bool    // something of them

	// Where lanes take places in turn:
	ladder ladder // the places that each of filled has: its samples, once for each copy of Shard echo
	factor Factor // which it was made for
	keyed  [2]keyed
}

// keyed is a permutation with what it is of.
type keyed struct {
	permutation
	epoch, pass int32
	made        bool
}

func newParts(p *Plan, counted bool) []part {
	parts := make([]part, len(p.Parts))
	first := int32(0)
	for i, src := range p.Parts {
		t := &parts[i]
		t.number = i
		for j := range src.Shards {
			e := &src.Shards[j]
			if e.Samples != Unknown && e.left() == 0 {
				continue
			}
			t.exclude = t.exclude || len(e.Exclude) > 0
			t.filled = append(t.filled, first+int32(j))
			if counted {
				t.left = append(t.left, e.left())
				t.samples += e.left()
			}
		}
		first += int32(len(src.Shards))
	}
	return parts
}

// newBlendOf is newBlend, where there is something to mix.
func newBlendOf(parts []Part) (blend, error) {
	if len(parts) == 1 {
		return nil, nil
	}
	return newBlend(parts)
}

// lay makes the ladder for a factor.
func (t *part) lay(unit Unit, f Factor) {
	if unit != Shard {
		f = One
	}
	if t.factor == f {
		return
	}
	t.factor = f
	sizes := make([]int64, len(t.left))
	for e, n := range t.left {
		sizes[e] = n * int64(t.times(e))
	}
	t.ladder = newLadder(sizes)
}

// times is how often entry e of filled is listed in a row.
func (t *part) times(e int) int32 {
	return int32(t.factor.total(int64(e)+1, 0, 1) - t.factor.total(int64(e), 0, 1))
}

// permuted returns the place that stands at place q of a pass.
func (t *part) permuted(seed uint64, epoch, pass int32, q int64) int64 {
	// A batch may reach from one pass into the next.
	k := &t.keyed[pass&1]
	if !k.made || k.epoch != epoch || k.pass != pass {
		key := Hash(seed, ForPermute, uint64(epoch), uint64(t.number), uint64(pass))
		*k = keyed{newPermutation(t.ladder.total(), key), epoch, pass, true}
	}
	return int64(k.at(uint64(q)))
}
