package order

import (
	"fmt"
	"slices"
	"strings"

	"shardtool/format"
)

// Bounds that keep all sums within 63 bits.
const (
	maxSamples = 1 << 45 // of an epoch
	maxBatch   = 1 << 30
	maxLanes   = 1 << 16
	maxFactor  = 1 << 16 * One
	maxPlaces  = 1 << 61 // of an epoch: steps times batch
)

// defaultLanes is the most that are chosen unasked: worlds up to it that
// divide it can take a run over, and a lane's share of a batch stays worth a
// loop.
const defaultLanes = 64

// resolve returns the plan with its defaults filled in, or ErrUsage. counted
// says that the samples of all shards are known.
func (p Plan) resolve(world int) (_ Plan, counted bool, err error) {
	if world < 1 || world > maxLanes {
		return p, false, usage("a world of %d ranks", world)
	}
	unknown, err := p.entries()
	if err != nil {
		return p, false, err
	}
	if p.Epochs == 0 {
		p.Epochs = 1
	}
	if p.Factor == 0 {
		p.Factor = One
	}
	switch {
	case p.Epochs < Endless:
		return p, false, usage("%d epochs", p.Epochs)
	case p.Batch < 1 || p.Batch > maxBatch:
		return p, false, usage("a batch of %d samples", p.Batch)
	case p.Steps < 0 || p.Steps > maxPlaces/int64(p.Batch):
		return p, false, usage("epochs of %d steps", p.Steps)
	case p.Factor < One || p.Factor > maxFactor:
		return p, false, badFactor(p.Factor.Float64())
	case p.Lanes < 0 || p.Lanes > maxLanes:
		return p, false, usage("%d lanes", p.Lanes)
	case p.Buffer < 0:
		return p, false, usage("an echo buffer of %d", p.Buffer)
	case p.Segment < 0:
		return p, false, usage("segments of %d steps", p.Segment)
	case p.Segment > 0 && p.Unit == Shard:
		return p, false, usage("echo of shards with segments of %d steps: how often a shard is read is set before an epoch, so its factor holds for all of one", p.Segment)
	case p.Unit > Shard || p.Tail > TailWrap || p.Ends > Stop:
		return p, false, usage("echo unit %d, tail %d, ends %d: one of them does not exist", p.Unit, p.Tail, p.Ends)
	case p.Shuffle.open < 1 && p.Shuffle.mode >= block || p.Shuffle.buffer < 0:
		return p, false, usage("shuffle %v: at least one shard is open", p.Shuffle)
	case p.Shuffle.mode == global && p.Unit == Shard:
		return p, false, usage("echo of shards with shuffle global, which reads no shard as a whole: echo samples, or shuffle by block or stream")
	case unknown != "" && (p.Shuffle.mode == global || p.Shuffle.mode == block):
		return p, false, usage("shuffle %v needs the number of samples of each shard, which is not known of %s: make an index (shardtool index), or shuffle by stream", p.Shuffle, unknown)
	case unknown != "" && world > 1 && p.Steps == 0:
		return p, false, usage("the number of samples is not known of %s, so the steps that %d ranks can all take are not: make an index (shardtool index), or give the steps of an epoch", unknown, world)
	}
	if err := p.chooseTail(world); err != nil {
		return p, false, err
	}
	return p, unknown == "", p.chooseLanes(world, unknown == "")
}

// entries checks the shards and says which have no count, or "".
func (p Plan) entries() (unknown string, err error) {
	var samples int64
	var without, shards int
	first := ""
	if len(p.Parts) == 0 {
		return "", usage("there are no shards")
	}
	for i, part := range p.Parts {
		if len(part.Shards) == 0 && len(p.Parts) > 1 {
			return "", usage("there are no shards in data set %d of the mix", i)
		}
		for j := range part.Shards {
			e := &part.Shards[j]
			switch {
			case e.Samples == Unknown:
				if without++; without == 1 {
					first = format.Redact(e.Name)
				}
			case e.Samples < 0 || e.Samples > maxSamples-samples:
				return "", format.Errorf(format.ErrLimit, format.In(e.Name), "%d samples, which with those before it is out of range", e.Samples)
			default:
				samples += e.Samples
			}
			if err := e.checkExclude(); err != nil {
				return "", err
			}
		}
		shards += len(part.Shards)
	}
	switch {
	case shards == 0:
		return "", usage("there are no shards")
	case shards > 1<<31-1:
		return "", usage("%d shards", shards)
	case without > 0:
		return fmt.Sprintf("%d of %s, first %s", without, plural(shards, "shard"), first), nil
	}
	return "", nil
}

func (e *Entry) checkExclude() error {
	last := int64(-1)
	for _, x := range e.Exclude {
		if x <= last {
			return format.Errorf(format.ErrUsage, format.In(e.Name), "excluded samples are not ascending from 0: %d after %d", x, last)
		}
		last = x
	}
	if e.Samples != Unknown && last >= e.Samples {
		return format.Errorf(format.ErrUsage, format.In(e.Name), "sample %d is excluded, but there are %d", last, e.Samples)
	}
	return nil
}

// left returns how many samples are taken of a shard whose count is known.
func (e *Entry) left() int64 { return e.Samples - int64(len(e.Exclude)) }

func (p *Plan) chooseTail(world int) error {
	if p.Tail == TailDefault {
		switch {
		case p.Shuffle != None:
			p.Tail = TailDrop
		case world > 1 || p.Lanes > 1:
			p.Tail = TailPad
		default:
			p.Tail = TailKeep
		}
	}
	if p.Tail != TailKeep {
		return nil
	}
	switch {
	case world > 1:
		return usage("a short last batch is kept by one rank only, not by %d: pad, wrap or drop the tail", world)
	case p.Lanes > 1:
		return usage("a short last batch is kept by one lane only, not by %d: pad, wrap or drop the tail", p.Lanes)
	}
	p.Lanes = 1
	return nil
}

func (p *Plan) chooseLanes(world int, counted bool) error {
	switch {
	case p.Lanes == 0 && !counted:
		p.Lanes = world
	case p.Lanes == 0:
		for p.Lanes = min(defaultLanes, p.Batch); p.Batch%p.Lanes != 0; {
			p.Lanes--
		}
	}
	switch {
	case p.Batch%p.Lanes != 0:
		return usage("a batch of %d samples does not divide among %s", p.Batch, plural(p.Lanes, "lane"))
	case p.Lanes%world != 0:
		return usage("%d ranks do not divide the %s of a batch of %d samples among them: %s do",
			world, plural(p.Lanes, "lane"), p.Batch, divisors(p.Lanes))
	}
	return p.enough(world, counted)
}

// enough refuses lanes, and parts of a mix, that would have nothing to read.
func (p *Plan) enough(world int, counted bool) error {
	for i, part := range p.Parts {
		of := ""
		if len(p.Parts) > 1 {
			of = fmt.Sprintf(" of data set %d of the mix", i)
		}
		if !counted {
			if n := len(part.Shards); n < p.Lanes {
				return usage("%s%s for %s of %s: where samples are not counted, shards are dealt out whole, and some would get none: make an index (shardtool index)",
					plural(n, "shard"), of, plural(p.Lanes, "lane"), plural(world, "rank"))
			}
			continue
		}
		var n int64
		for j := range part.Shards {
			n += part.Shards[j].left()
		}
		switch {
		case len(p.Parts) == 1:
		case n == 0:
			return format.Errorf(format.ErrMissing, format.Nowhere, "no samples in the %s%s", plural(len(part.Shards), "shard"), of)
		case n < int64(p.Lanes) && p.Shuffle.mode >= block:
			return usage("%s%s for %s: each lane reads a part of it, so set fewer lanes", plural(int(n), "sample"), of, plural(p.Lanes, "lane"))
		}
	}
	return nil
}

func divisors(n int) string {
	var d []string
	for i := 1; i <= n; i++ {
		if n%i == 0 {
			d = append(d, fmt.Sprint(i))
		}
	}
	return strings.Join(d, ", ")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func usage(msg string, args ...any) error {
	return format.Errorf(format.ErrUsage, format.Nowhere, msg, args...)
}

// shards returns the entries of all parts in order.
func (p *Plan) shards() []Entry {
	if len(p.Parts) == 1 {
		return p.Parts[0].Shards
	}
	var all [][]Entry
	for _, part := range p.Parts {
		all = append(all, part.Shards)
	}
	return slices.Concat(all...)
}
