package order

import (
	"fmt"
	"strings"
)

// Warnings says what of a plan is allowed but probably not wanted, for a world
// of that many ranks. A plan that New refuses has none.
func Warnings(p Plan, world int) []string {
	m, err := New(p, 0, world)
	if err != nil {
		return nil
	}
	var w []string
	add := func(msg string, args ...any) { w = append(w, fmt.Sprintf(msg, args...)) }
	m.warnEcho(add)
	m.warnStreams(add)
	m.warnTail(add)
	return w
}

// warnEcho looks for copies that stand side by side.
func (m *Machine) warnEcho(add func(string, ...any)) {
	p := &m.plan
	if p.Unit != Sample || !m.echoing || m.room() > 1 {
		return
	}
	switch twice := p.Factor >= 2*One; {
	case p.Buffer > 0:
		add("an echo buffer of %d among %s is none: give %d or more", p.Buffer, plural(p.Lanes, "lane"), 2*p.Lanes)
	case twice && m.each == 1:
		add("echo without a buffer, and lanes that give one sample of a batch: %d batches in a row hold the same samples; give the echo a buffer of %d or more, or set fewer lanes", p.Factor>>32, 2*p.Lanes)
	case twice:
		add("echo without a buffer: the copies of a sample stand side by side in a batch; give the echo a buffer of a few batches, such as %d", 4*p.Batch)
	}
}

// warnStreams looks at what Block and Stream read side by side.
func (m *Machine) warnStreams(add func(string, ...any)) {
	s := m.plan.Shuffle
	if s.mode < block {
		return
	}
	lanes := m.plan.Lanes
	if few := m.fewShards(); few != "" {
		add("%s for %s: several lanes read stretches of the same shard", few, plural(lanes, "lane"))
	}
	if s.open < lanes {
		add("shuffle %v opens one shard for each lane, which makes %d", s, lanes)
	}
	if s.mode == stream && s.buffer > 0 && s.buffer < 2*lanes {
		add("shuffle %v: a buffer of %d among %s mixes nothing", s, s.buffer, plural(lanes, "lane"))
	}
	if !m.counted {
		add("samples are not counted: a run can only go on with the same number of ranks; an index (shardtool index) would change that")
	}
}

// fewShards says how many shards there are where they are fewer than the lanes,
// of a mix by its first parts of which that is so.
func (m *Machine) fewShards() string {
	const most = 4
	var few []string
	more := 0
	for k := range m.parts {
		n := len(m.parts[k].filled)
		switch {
		case n == 0 || n >= m.plan.Lanes:
		case len(m.parts) == 1:
			return plural(n, "shard")
		case len(few) == most:
			more++
		default:
			few = append(few, fmt.Sprintf("%s in data set %d of the mix", plural(n, "shard"), k))
		}
	}
	if more > 0 {
		few = append(few, fmt.Sprintf("and few in %d more", more))
	}
	return strings.Join(few, ", ")
}

// warnTail looks at what an epoch leaves out.
func (m *Machine) warnTail(add func(string, ...any)) {
	x := m.extent
	given := x.steps * int64(m.plan.Batch)
	things := "samples"
	if m.plan.Factor > One {
		things = "emissions"
	}
	switch {
	case !m.counted || x.fresh == 0:
	case x.steps == 0:
		add("the %d samples of an epoch do not fill a batch of %d", x.fresh, m.plan.Batch)
	case given < x.whole && m.plan.Steps > 0:
		add("epochs of %d steps leave out %d of %d %s", x.steps, x.whole-given, x.whole, things)
	case given < x.whole:
		add("the tail leaves out %d of the %d %s of an epoch", x.whole-given, x.whole, things)
	}
}
