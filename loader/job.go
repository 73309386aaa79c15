package loader

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"shardtool/format"
	"shardtool/reader/order"
	"shardtool/reader/store"
)

// job is a chunk whose items are to be read at their places.
type job struct {
	chunk *chunk
	step  int64 // whose batch waits for it
	fresh int   // items that were not read before, by an earlier copy of their shard
}

// How much is read at once: samples that stand side by side, up to as much as
// makes a request worth its wait; and where a request costs little, samples
// that stand anywhere.
const (
	nearTogether = 1 << 20
	farTogether  = 8 << 20
	nearApart    = 64 << 10
	jobItems     = 256
)

// fetch has the sample of a reference read, and returns where it will be.
func (o *orderer) fetch(ref order.Ref) view {
	it := item{sample: unparsed, shard: ref.Shard, index: ref.Index, off: format.Unknown}
	pl, err := o.p.placesOf(ref.Shard)
	switch {
	case err != nil:
		it.err = err
	case pl != nil && ref.Index >= int64(pl.Len()):
		it.err = format.Errorf(format.ErrStale, o.p.l.in(ref.Shard), "sample %d is asked for, and there are %d", ref.Index, pl.Len())
	case pl != nil:
		var end int64
		it.off, end = pl.At(int(ref.Index))
		it.bytes = end - it.off
		if most := o.p.l.src.limit(int(ref.Shard)); it.bytes > most+most/8 { // with its headers
			at := o.p.l.in(ref.Shard)
			at.Offset, at.Record = it.off, ref.Index
			it.err = format.Errorf(format.ErrLimit, at, "the sample has %d bytes, over the limit of %d", it.bytes, most)
			it.off, it.bytes = format.Unknown, 0
		}
	}
	if !o.joins(&it) {
		o.sendJob()
	}
	if o.job == nil {
		o.job, o.size, o.fresh = o.p.l.chunks.get(), 0, 0
	}
	if ref.Copy == 0 || o.p.l.plan.Unit != order.Shard {
		o.fresh++
	}
	o.job.items = append(o.job.items, it)
	o.size += it.bytes
	o.jobEnd = it.off + it.bytes
	return view{o.job, int32(len(o.job.items) - 1)}
}

// joins reports whether an item is read together with those of the job.
func (o *orderer) joins(it *item) bool {
	if o.job == nil || it.off < 0 || it.err != nil || len(o.job.items) == jobItems {
		return o.job == nil
	}
	last := &o.job.items[len(o.job.items)-1]
	far, beside := o.p.l.far[it.shard], last.shard == it.shard && o.jobEnd == it.off && last.off >= 0
	most := int64(nearApart)
	switch {
	case far && beside:
		most = farTogether
	case far:
		return false
	case beside:
		most = nearTogether
	}
	return o.size+it.bytes <= most && last.off >= 0 && last.err == nil
}

// sendJob passes the job on to be read. It stays held until the tasks of the
// step hold it.
func (o *orderer) sendJob() {
	if o.job == nil {
		return
	}
	o.job.retain()
	o.dropped = append(o.dropped, o.job)
	o.p.reading.Add(1)
	o.p.jobs <- job{o.job, o.step, o.fresh} // there is room for the items of all batches under way
	o.job = nil
}

// fetchJobs reads jobs until there are no more.
func (p *pipeline) fetchJobs() {
	m := &p.l.meters.fetch
	r := jobReader{p: p}
	for {
		begin := time.Now()
		j, ok := <-p.jobs
		if p.l.scatter { // else these goroutines are there for what runs do not bring
			m.out.since(begin)
		}
		if !ok {
			return
		}
		begin, r.waited = time.Now(), 0
		r.fetching(j, true)
		r.do(j)
		r.fetching(j, false)
		p.l.meters.fetched.Add(int64(j.fresh))
		m.busy.add(time.Since(begin) - r.waited)
		m.out.add(r.waited)
		p.reading.Add(-1)
		j.chunk.complete(func(t *task) { p.tasks <- t })
		j.chunk.release()
	}
}

// jobReader reads jobs, one at a time.
type jobReader struct {
	p      *pipeline
	spans  []store.Span
	sorted []*item
	waited time.Duration // for room, of this job
}

// fetching says when a job begins to be read, and when it has to wait for room.
func (r *jobReader) fetching(j job, on bool) {
	switch m := &r.p.l.meters.fetching; {
	case j.fresh == 0:
	case on:
		m.begin()
	default:
		m.end()
	}
}

// room waits until there is room for n bytes.
func (r *jobReader) room(j job, n int64) error {
	begin := time.Now()
	r.fetching(j, false)
	r.p.held.Add(1)
	err := r.p.l.chunks.gate.take(r.p.ctx, n, nil, j.step)
	r.p.held.Add(-1)
	r.fetching(j, true)
	r.waited += time.Since(begin)
	return err
}

func (r *jobReader) do(j job) {
	c := j.chunk
	if c.items[0].off < 0 {
		r.slowly(j)
		return
	}
	var size int64
	r.sorted = r.sorted[:0]
	for i := range c.items {
		size += c.items[i].bytes
		r.sorted = append(r.sorted, &c.items[i])
	}
	if err := r.room(j, size); err != nil {
		c.fail(err)
		return
	}
	c.allocate(int(size))
	used := int64(0)
	for i := range c.items {
		it := &c.items[i]
		it.data = c.buf.Bytes()[used : used+it.bytes] // with the rest as capacity: neighbours are read at once
		used += it.bytes
	}
	slices.SortFunc(r.sorted, func(a, b *item) int {
		return cmp.Or(cmp.Compare(a.shard, b.shard), cmp.Compare(a.off, b.off))
	})
	for from := 0; from < len(r.sorted); {
		to := from + 1
		for to < len(r.sorted) && r.sorted[to].shard == r.sorted[from].shard {
			to++
		}
		r.shard(r.sorted[from:to])
		from = to
	}
}

// shard reads items of one shard. A fault of the data that is met by several
// is looked for in each.
func (r *jobReader) shard(items []*item) {
	err := r.read(items)
	if err == nil {
		return
	}
	for _, it := range items {
		if len(items) > 1 && isData(err) {
			it.err = r.read([]*item{it})
		} else {
			it.err = err
		}
	}
}

func (r *jobReader) read(items []*item) error {
	r.spans = r.spans[:0]
	for _, it := range items {
		r.spans = append(r.spans, store.Span{Off: it.off, P: it.data})
	}
	return r.p.l.src.read(r.p.ctx, int(items[0].shard), r.spans)
}

// slowly reads a sample of a shard of which no places are known.
func (r *jobReader) slowly(j job) {
	c, it := j.chunk, &j.chunk.items[0]
	if it.err != nil {
		return
	}
	s, err := r.p.l.src.sample(r.p.ctx, int(it.shard), it.index)
	if errors.Is(err, format.ErrUsage) { // the state that loading went on from has it, and the shard has not
		err = format.Errorf(format.ErrStale, r.p.l.in(it.shard), "sample %d is asked for, and there are fewer", it.index)
	}
	if err == nil {
		err = r.room(j, int64(bytesOf(s)))
	}
	if err != nil {
		it.err = err
		return
	}
	c.allocate(bytesOf(s))
	it.bytes = s.Bytes()
	it.sample = c.hold(s)
}

// fail gives every item the same error.
func (c *chunk) fail(err error) {
	for i := range c.items {
		c.items[i].err = err
	}
}

// placesOf returns the places of a shard, nil where they are not known. It is
// for the order stage.
func (p *pipeline) placesOf(shard int32) (places, error) {
	if pl, ok := p.known[shard]; ok {
		return pl, nil
	}
	pl, err := p.l.src.places(p.ctx, int(shard))
	if err != nil {
		return nil, err
	}
	p.known[shard] = pl
	return pl, nil
}
