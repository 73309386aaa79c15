package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"shardtool/echo"
	"shardtool/format"
	"shardtool/loader"
	"shardtool/reader"
	"shardtool/reader/order"
)

func planCommand() *cli.Command {
	return verb{
		Name:  "plan",
		Args:  "IN...",
		Usage: "say what a training set-up would do: samples, steps, reads, memory",
		About: `IN are shards, or one manifest (@train.json, see index --manifest). No shard is read
but to count its samples where no index does. It prints how many samples an epoch has and
loses at its tail, its steps, what each rank reads and how, the worst case of
memory (batches are made ahead, and held while the trainer uses them), the fingerprints of plan and manifest, and warns of what is probably not
wanted.

` + columnsHelp,
		Examples: []string{
			"shardtool plan --batch 1024 --world 8 --shuffle block:16 train-{000..127}.tar",
			"shardtool plan --shuffle global --columns 'image:jpg;png:224,int64:cls' --json @train.json",
			"shardtool plan --columns padded:input_ids:int64:512 s3://bucket/tokens-*.tfrecord",
		},
		Flags: [][]cli.Flag{trainingFlags(), shapeFlags()},
		Run:   runPlan,
	}.command()
}

// planRow is the whole answer. Numbers that are not known are null.
type planRow struct {
	Shards  int    `json:"shards"`
	Bytes   *int64 `json:"bytes"`
	Samples *int64 `json:"samples"` // to take in an epoch
	Emitted *int64 `json:"emitted"` // in an epoch, over all ranks
	Steps   *int64 `json:"steps"`   // of an epoch

	Batch    int     `json:"batch"`
	PerRank  int     `json:"per_rank"`
	World    int     `json:"world"`
	Lanes    int     `json:"lanes"`
	Epochs   int     `json:"epochs"` // -1: endless
	Shuffle  string  `json:"shuffle"`
	Tail     string  `json:"tail"`
	Unit     string  `json:"unit"`
	Echo     float64 `json:"echo"`
	Keep     string  `json:"keep"`
	Auto     bool    `json:"auto"` // the factor is set by measured times, and begins with echo
	Buffer   int     `json:"buffer"`
	Reading  string  `json:"reading"` // "runs": stretches of shards in order; "samples": each by itself
	Excluded int     `json:"excluded"`

	Lost    *lostRow  `json:"lost"`    // of an epoch
	Padding *int64    `json:"padding"` // slots of an epoch that count for nothing
	Ranks   []rankRow `json:"ranks"`

	Memory      []loader.MemoryTerm `json:"memory"`
	MemoryBytes int64               `json:"memory_bytes"`

	Plan     string `json:"plan"`     // fingerprint
	Manifest string `json:"manifest"` // fingerprint

	Uncounted      []string `json:"uncounted"` // the first shards whose number of samples is not known
	UncountedTotal int      `json:"uncounted_total"`
	Warnings       []string `json:"warnings"`

	from string // what tells where samples stand, for people
}

type lostRow struct {
	Samples int64 `json:"samples"`
	Bytes   int64 `json:"bytes"` // about: by the mean of each shard
}

// rankRow is what a rank does in an epoch.
type rankRow struct {
	Rank     int    `json:"rank"`
	Samples  *int64 `json:"samples"` // emitted for the first time
	Emitted  *int64 `json:"emitted"`
	Shards   int    `json:"shards"`
	Bytes    *int64 `json:"bytes"`
	Requests *int64 `json:"requests"` // over a network; null for local shards
}

func runPlan(c *call) error {
	o, err := c.training()
	if err != nil {
		return err
	}
	read, _, err := c.options()
	if err != nil {
		return err
	}
	ds, err := c.planned(read.Read)
	if err != nil {
		return err
	}
	p, err := newPlanner(c, ds, o)
	if err != nil {
		return err
	}
	row, err := p.row()
	switch {
	case err != nil:
		return err
	case c.JSON():
		return c.Row(row)
	}
	return c.Printf("%s", row.text())
}

// planned makes the dataset and its manifest, with a bar of shards.
func (c *call) planned(o reader.Options) (*reader.Dataset, error) {
	var bar *progress
	o.Progress = func(done, total int) {
		if bar == nil {
			bar = c.Progress("counting", int64(total), false)
		}
		bar.Add(1)
	}
	ds, err := c.dataset(&o)
	if err != nil {
		return nil, err
	}
	_, err = ds.Manifest(c.Context.Context)
	bar.End()
	return ds, err
}

// planner gathers the answer.
type planner struct {
	c        *call
	o        *loader.Options
	ds       *reader.Dataset
	manifest *reader.Manifest
	plan     order.Plan
	memory   []loader.MemoryTerm
	counted  bool // samples of all shards are known
	scatter  bool // samples are read one by one
	remote   bool // a shard is behind a network
}

// newPlanner makes a loader, which reads nothing before its batches are asked
// for, and takes plan and memory from it.
func newPlanner(c *call, ds *reader.Dataset, o *loader.Options) (*planner, error) {
	ctx := c.Context.Context
	m, err := ds.Manifest(ctx)
	if err != nil {
		return nil, err
	}
	l, err := loader.New(ctx, ds, o)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	p := &planner{c: c, o: o, ds: ds, manifest: m, plan: l.Plan(), memory: l.Memory(), counted: m.Samples() >= 0}
	for i := range m.Shards {
		p.remote = p.remote || isRemote(m.Shards[i].Name)
	}
	p.scatter = o.Shuffle == order.Global || o.Shuffle == order.None && o.World > 1 && p.counted && p.placed()
	return p, nil
}

// placed reports whether it is known where all samples stand.
func (p *planner) placed() bool {
	for i := range p.manifest.Shards {
		if p.manifest.Shards[i].Samples > 0 && !p.hasPlaces(i) {
			return false
		}
	}
	return true
}

// hasPlaces is that for a shard. Of one that a manifest file lists it asks, as
// reading it will.
func (p *planner) hasPlaces(shard int) bool {
	e := &p.manifest.Shards[shard]
	if e.Offsets || e.From != "manifest" {
		return e.Offsets
	}
	_, err := p.ds.Places(p.c.Context.Context, shard)
	return err == nil
}

func (p *planner) row() (*planRow, error) {
	o := p.o
	r := &planRow{
		Shards: len(p.manifest.Shards), Batch: o.GlobalBatch, PerRank: o.GlobalBatch / o.World, World: o.World,
		Epochs: o.Epochs, Shuffle: o.Shuffle.String(), Unit: o.Echo.Unit.String(), Echo: o.Echo.Factor,
		Keep: p.plan.Keep, Auto: o.Echo.Auto != nil, Buffer: o.Echo.Buffer, Reading: "runs", Excluded: len(o.Exclude), Memory: p.memory,
		Manifest: p.plan.ManifestFingerprint(), Uncounted: []string{}, Warnings: []string{},
	}
	if p.scatter {
		r.Reading, r.from = "samples", p.placesFrom()
	}
	print, err := p.plan.Fingerprint(o.World)
	if err != nil {
		return nil, err
	}
	r.Plan, r.Tail = print.Sum, print.Settings["tail"] // with the defaults
	r.Lanes, _ = strconv.Atoi(print.Settings["lanes"])
	for _, t := range p.memory {
		r.MemoryBytes += t.Bytes
	}
	p.shards(r)
	if err := p.ranks(r); err != nil {
		return nil, err
	}
	p.warn(r)
	return r, nil
}

// placesFrom says what tells where the samples stand. The cache has what was
// counted before, from the headers.
func (p *planner) placesFrom() string {
	var index, headers bool
	for i := range p.manifest.Shards {
		switch p.manifest.Shards[i].From {
		case "sidecar":
			index = true
		case "scan", "cache":
			headers = true
		default:
			return "at their places"
		}
	}
	switch {
	case index && headers:
		return "at their places, known from indexes and headers"
	case index:
		return "at the places that the index tells"
	}
	return "at their places, known from the headers"
}

func (p *planner) shards(r *planRow) {
	const most = 10
	var bytes int64
	for i := range p.manifest.Shards {
		e := &p.manifest.Shards[i]
		if e.Size < 0 {
			bytes = format.Unknown
		} else if bytes >= 0 {
			bytes += e.Size
		}
		if e.Samples < 0 {
			if r.UncountedTotal++; len(r.Uncounted) < most {
				r.Uncounted = append(r.Uncounted, format.Redact(e.Name))
			}
		}
	}
	r.Bytes = known(bytes)
}

// mostWalked bounds how many samples are walked through, which takes some 50 ns
// each.
const mostWalked = 50_000_000

// ranks goes through an epoch of each rank.
func (p *planner) ranks(r *planRow) error {
	var firsts, padding int64
	var lostBytes float64
	walk := false
	for rank := range p.o.World {
		m, err := order.New(p.plan, rank, p.o.World)
		if err != nil {
			return err
		}
		if rank == 0 {
			steps, stepsKnown := m.Steps()
			fresh, emitted, lengths := m.Lengths()
			if stepsKnown {
				r.Steps = &steps
			}
			if lengths {
				r.Samples, r.Emitted = &fresh, &emitted
			}
			walk = stepsKnown && p.counted && steps*int64(p.o.GlobalBatch) <= mostWalked
		}
		row := rankRow{Rank: rank}
		w := walked{shards: make([]int64, len(p.manifest.Shards))}
		if walk {
			if err := w.epoch(m, *r.Steps); err != nil {
				return err
			}
			row.Samples, row.Emitted = &w.firsts, &w.emitted
			firsts += w.firsts
			padding += w.padding
		}
		switch {
		case !p.scatter:
			p.runs(&row, m)
		case walk:
			p.samples(&row, &w)
		default: // an equal part of every shard
			row.Shards = len(p.manifest.Shards)
		}
		for i, n := range w.shards {
			lostBytes -= p.bytesOf(i, n)
		}
		r.Ranks = append(r.Ranks, row)
		if err := p.c.Context.Context.Err(); err != nil {
			return err
		}
	}
	if walk && r.Samples != nil {
		for i := range p.manifest.Shards {
			lostBytes += p.bytesOf(i, p.left(i))
		}
		r.Lost = &lostRow{Samples: max(0, *r.Samples-firsts)}
		if r.Lost.Samples > 0 {
			r.Lost.Bytes = max(0, whole(lostBytes))
		}
		r.Padding = &padding
	}
	return nil
}

// left is how many samples of a shard there are to take.
func (p *planner) left(shard int) int64 {
	for _, part := range p.plan.Parts {
		if shard < len(part.Shards) {
			return part.Shards[shard].Samples - int64(len(part.Shards[shard].Exclude))
		}
		shard -= len(part.Shards)
	}
	return 0
}

// bytesOf is about how many bytes n samples of a shard have.
func (p *planner) bytesOf(shard int, n int64) float64 {
	e := &p.manifest.Shards[shard]
	if n == 0 || e.Samples <= 0 || e.Size < 0 {
		return 0
	}
	return float64(e.Size) * float64(n) / float64(e.Samples)
}

func whole(x float64) int64 { return int64(math.Round(x)) }

// walked counts what a rank emits in an epoch.
type walked struct {
	firsts, emitted, padding int64
	shards                   []int64 // samples of each that are emitted, the first time
}

func (w *walked) epoch(m *order.Machine, steps int64) error {
	var refs []order.Ref
	var err error
	for range steps {
		more := false
		if refs, more, err = m.Step(refs, nil); err != nil || !more {
			return err
		}
		for i := range refs {
			switch r := &refs[i]; {
			case r.Kind == order.Padding:
				w.padding++
				continue
			case r.Kind == order.Fresh && r.Copy == 0 && r.Pass == 0:
				w.firsts++
				w.shards[r.Shard]++
			}
			w.emitted++
		}
	}
	return nil
}

// rangeSize is what a request of a sequential read over a network asks for.
const rangeSize = 8 << 20

// runs counts what a rank reads where it reads stretches of shards.
func (p *planner) runs(row *rankRow, m *order.Machine) {
	var bytes float64
	var requests int64
	sized := true
	shards := make(map[int32]bool)
	for reading := range m.Readings() {
		for i := 0; ; i++ {
			r, ok := m.Run(reading, 0, i)
			if !ok {
				break
			}
			if r.Copy > 0 || r.From == r.To { // kept from the first time
				continue
			}
			shards[r.Shard] = true
			e := &p.manifest.Shards[r.Shard]
			n := float64(e.Size)
			if r.To >= 0 && e.Samples > 0 && n >= 0 {
				from := r.From
				if from > 0 && !p.hasPlaces(int(r.Shard)) {
					from = 0 // it is read from its start
				}
				n = p.bytesOf(int(r.Shard), r.To-from)
			}
			if n < 0 {
				sized = false
				continue
			}
			bytes += n
			requests += max(1, whole(math.Ceil(n/rangeSize)))
		}
	}
	row.Shards = len(shards)
	if sized {
		n := whole(bytes)
		row.Bytes = &n
		if p.remote {
			row.Requests = &requests
		}
	}
}

// samples counts what a rank reads where it reads samples one by one.
func (p *planner) samples(row *rankRow, w *walked) {
	var bytes float64
	for i, n := range w.shards {
		if n > 0 {
			row.Shards++
			bytes += p.bytesOf(i, n)
		}
	}
	n := whole(bytes)
	row.Bytes = &n
	if p.remote {
		row.Requests = &w.firsts
	}
}

// warn says what is probably not wanted.
func (p *planner) warn(r *planRow) {
	add := func(msg string, args ...any) { r.Warnings = append(r.Warnings, fmt.Sprintf(msg, args...)) }
	if n := r.UncountedTotal; n > 0 {
		add("%d of %s without index and count, first %s: steps and shares are not known before they are read; shardtool index makes indexes, --scan always counts",
			n, counted(r.Shards, "shard"), r.Uncounted[0])
	}
	r.Warnings = append(r.Warnings, p.manifest.Warnings...)
	r.Warnings = append(r.Warnings, order.Warnings(p.plan, p.o.World)...)
	r.Warnings = append(r.Warnings, echo.Warnings(p.o.Echo, 0)...)
	if w := p.c.echoOfEvaluation(p.o.Echo); w != "" {
		r.Warnings = append(r.Warnings, w)
	}
	if p.o.Shuffle == order.None && p.o.World > 1 && !p.scatter {
		add("each rank reads every shard, because it is not known where their samples stand: shardtool index tells, or shuffle by block")
	}
	if !p.remote {
		return
	}
	sizes := make([]int64, 0, len(p.manifest.Shards))
	for i := range p.manifest.Shards {
		sizes = append(sizes, p.manifest.Shards[i].Size)
	}
	slices.Sort(sizes)
	if median := sizes[len(sizes)/2]; len(sizes) > 1 && median >= 0 && median < smallShard {
		add("small shards (%s in the middle) over a network cost requests more than bytes: shardtool convert --size 256MB makes larger ones", sizeText(median))
	}
	if p.scatter {
		connections := 64
		if n := p.c.Int("connections"); n > 0 {
			connections = n
		}
		what := "shuffle global"
		if p.o.Shuffle == order.None {
			what = "shuffle none with several ranks"
		}
		add("%s over a network is a request for each sample%s: at 20 ms each, %d connections bring no more than %d samples/s; shuffle block:K or stream:K,B reads in order, --cache keeps what was read",
			what, epochOf(r), connections, connections*50)
	}
}

func epochOf(r *planRow) string {
	if r.Samples == nil {
		return ""
	}
	return fmt.Sprintf(", %d an epoch", *r.Samples)
}

// text is the answer for people.
func (r *planRow) text() string {
	var b strings.Builder
	line := func(name, msg string, args ...any) { fmt.Fprintf(&b, "%-9s %s\n", name, fmt.Sprintf(msg, args...)) }
	given := "in its batches"
	if r.Echo != 1 {
		given = "with the echo"
	}
	line("samples", "%s of %s%s in an epoch, %s %s", numberText(r.Samples, "?"), counted(r.Shards, "shard"), bytesText(r.Bytes, " of "), numberText(r.Emitted, "?"), given)
	epochs := counted(r.Epochs, "epoch")
	if r.Epochs == order.Endless {
		epochs = "epochs without end"
	}
	batch := counted(r.Batch, "sample")
	if r.World > 1 {
		batch += fmt.Sprintf(", %d on each rank", r.PerRank)
	}
	line("steps", "%s an epoch; a batch is %s; %s", numberText(r.Steps, "?"), batch, epochs)
	switch {
	case r.Lost != nil && r.Lost.Samples > 0:
		line("tail", "%s: leaves out %s of an epoch, about %s", r.Tail, counted(r.Lost.Samples, "sample"), sizeText(r.Lost.Bytes))
	case r.Padding != nil && *r.Padding > 0:
		line("tail", "%s: fills up an epoch with %s for nothing", r.Tail, counted(*r.Padding, "place"))
	default:
		line("tail", "%s", r.Tail)
	}
	line("order", "shuffle %s, %s", r.Shuffle, counted(r.Lanes, "lane"))
	if r.Echo != 1 || r.Auto {
		line("echo", "%s", r.echoText())
	}
	if r.Reading == "samples" {
		line("reading", "samples one by one, %s", r.from)
	} else {
		line("reading", "stretches of shards, in order")
	}
	r.rankText(line)
	var terms []string
	for _, t := range r.Memory {
		if t.Bytes > 0 {
			terms = append(terms, sizeText(t.Bytes)+" for "+t.Name)
		}
	}
	line("memory", "at most %s: %s", sizeText(r.MemoryBytes), strings.Join(terms, ", "))
	line("plan", "%s", r.Plan)
	line("manifest", "%s", r.Manifest)
	for _, w := range r.Warnings {
		line("warning", "%s", visible(w))
	}
	return b.String()
}

func (r *planRow) echoText() string {
	text := fmt.Sprintf("each %s %v times", r.Unit, r.Echo)
	if r.Auto {
		text = fmt.Sprintf("each %s at first with a factor of %v, for which the counts are, then as often as measured times allow", r.Unit, r.Echo)
	}
	if r.Keep == "decoded" || r.Keep == "augmented" {
		text += ", kept " + r.Keep
	}
	if r.Buffer > 0 {
		return text + fmt.Sprintf(", from a buffer of %d", r.Buffer)
	}
	return text + ", without a buffer"
}

// rankText names the first ranks; what they read differs little.
func (r *planRow) rankText(line func(name, msg string, args ...any)) {
	const most = 8
	for i, k := range r.Ranks {
		if i == most {
			line("", "and %s more", counted(len(r.Ranks)-most, "rank"))
			return
		}
		text := fmt.Sprintf("%s of %s%s an epoch", samplesText(k.Samples), counted(k.Shards, "shard"), bytesText(k.Bytes, ", "))
		if k.Requests != nil {
			text += ", " + counted(*k.Requests, "request")
		}
		line(fmt.Sprintf("rank %d", k.Rank), "%s", text)
	}
}

func samplesText(n *int64) string {
	if n == nil {
		return "? samples"
	}
	return counted(*n, "sample")
}

func numberText(n *int64, none string) string {
	if n == nil {
		return none
	}
	return fmt.Sprint(*n)
}

func bytesText(n *int64, before string) string {
	if n == nil {
		return ""
	}
	return before + sizeText(*n)
}
