package loader

import (
	"math"
	"slices"
	"time"

	"shardtool/echo"
	"shardtool/format"
	"shardtool/reader/order"
)

// orderer is the order stage: it asks the machine for step after step, finds
// the samples, and makes the tasks that fill the batches.
//
// Samples come in two ways. Where the order reads shards in stretches, runs
// bring them, and each is taken when the machine takes it. Where it does not
// (a permutation of all, samples that a run has passed, those that wait in
// buffers when a run is resumed), jobs read them at their places.
type orderer struct {
	p *pipeline
	m *order.Machine

	readings   []reading
	touched    []*run // that samples were taken from in this step
	takes      []view // of this step, where samples are given as they are taken
	takesEpoch int32
	dropped    []*chunk // to be released once the step's tasks hold what they need

	kept  map[sampleKey]*kept  // samples of which emissions are to come
	pages map[batchKey]*page   // batches of which copies are to come
	items map[keptKey]keptItem // of samples of which copies are to come, where more than bytes is kept
	epoch int32

	job    *chunk // that items are being added to
	jobEnd int64  // where its last item ends
	size   int64  // of its items
	fresh  int    // of them, those that were not read before
	step   int64

	patience *time.Timer   // see receive
	measured echo.Measured // when the present segment of the echo began
}

// sampleKey names a sample of an epoch.
type sampleKey struct {
	epoch, shard int32
	index        int64
}

func keyOf(ref order.Ref) sampleKey { return sampleKey{ref.Epoch, ref.Shard, ref.Index} }

// batchKey names a batch that is repeated.
type batchKey struct {
	epoch int32
	item  int64 // of the epoch, as order.Machine.Item counts
}

// kept is a sample of which emissions are to come.
type kept struct {
	view
	again int32 // how often it was taken besides: a part of a mix may begin anew
}

// reading is a sequence of runs.
type reading struct {
	epoch int32
	next  int // run to be opened next
	done  bool
	runs  []*run // open, in their order
	last  *run   // of them, the one that was found last
}

func newOrderer(p *pipeline) *orderer {
	l := p.l
	o := &orderer{
		p: p, m: l.machine, epoch: l.machine.State().Epoch,
		patience: time.NewTimer(patience), kept: make(map[sampleKey]*kept), pages: make(map[batchKey]*page), items: make(map[keptKey]keptItem),
	}
	if !l.scatter {
		o.readings = make([]reading, l.machine.Readings())
	}
	return o
}

// run makes batch after batch.
func (o *orderer) run() error {
	p, m := o.p, &o.p.l.meters.order
	for o.step = 0; ; o.step++ {
		if !p.waitForRoom() {
			return p.cause()
		}
		begin, waited := time.Now(), m.waits()
		if err := o.tune(); err != nil {
			return err
		}
		if o.step == 0 {
			o.begin() // the factor may say which runs there are
		}
		// The trainer keeps the references as long as the batch.
		refs, ok, err := o.m.Step(make([]order.Ref, 0, p.l.perRank), o.take)
		if err != nil || !ok {
			m.busy.add(time.Since(begin) - (m.waits() - waited))
			return err
		}
		o.enter(refs)
		b, fresh := o.batch(refs)
		p.ready <- b // there is room for as many as there are tokens
		if fresh {
			o.dispatch(b.page.Load())
		}
		o.takes = o.takes[:0]
		o.pass()
		m.busy.add(time.Since(begin) - (m.waits() - waited))
		if p.ctx.Err() != nil {
			return p.cause()
		}
	}
}

// begin opens the first runs.
func (o *orderer) begin() {
	epoch := o.m.State().Epoch
	for i := range o.readings {
		r := &o.readings[i]
		r.epoch = epoch
		var open []order.OpenRun
		open, r.next = o.m.Opened(i)
		for _, s := range open {
			o.p.l.spools.hold(s.Run, lastStep)
			r.runs = append(r.runs, o.p.startRun(s.Run, s.I, s.At))
		}
		o.topUp(i)
	}
}

// topUp opens runs of a reading up to the number that are read at a time,
// straight across the ends of epochs. Over a network they share connections and
// memory with those whose turn it is, so there are no more of them ahead than
// hold what is worth having.
func (o *orderer) topUp(i int) {
	r, l := &o.readings[i], o.p.l
	through := 0
	for _, s := range r.runs {
		if s.through {
			through++
		}
	}
	for len(r.runs)-through < l.runsOpen && !r.done {
		if turn := through + l.machine.Open(); len(r.runs) > turn {
			ahead := int64(0)
			for _, s := range r.runs[turn:] {
				ahead += l.farBytes(s.Run)
			}
			if ahead >= farAhead/int64(len(o.readings)) {
				return
			}
		}
		if l.plan.Unit == order.Shard && l.o.Echo.Auto != nil {
			if _, ok := o.m.Run(i, r.epoch, r.next); !ok { // how often the next epoch reads each shard is not settled
				return
			}
		}
		o.open(i)
	}
}

// farAhead is how many bytes of runs are opened before their turn where shards
// are far away: with four connections of 50 MB/s that answer after 20 ms
// (benchmarks/s3), 32 runs of 64 MB ahead reach half of what one or two do.
const farAhead = 96 << 20

// farBytes is about how many bytes of a run come over a network. Where that is
// not known, they are many.
func (l *Loader) farBytes(r order.Run) int64 {
	if !l.far[r.Shard] {
		return 0
	}
	s := &l.shards[r.Shard]
	switch {
	case s.Bytes < 0:
		return farAhead
	case s.Samples <= 0 || r.To == order.Unknown:
		return s.Bytes
	}
	return int64(float64(s.Bytes) * (float64(r.To-r.From) / float64(s.Samples)))
}

func (o *orderer) open(i int) {
	r := &o.readings[i]
	for empty := 0; empty < 2; empty++ { // an epoch of this reading may have no runs, and then they all do
		if s, ok := o.m.Run(i, r.epoch, r.next); ok {
			r.next++
			o.p.l.spools.hold(s, lastStep)
			r.runs = append(r.runs, o.p.startRun(s, r.next-1, s.From))
			return
		}
		if r.epoch+1 >= o.p.l.epochsEnd() {
			break
		}
		r.epoch, r.next = r.epoch+1, 0
	}
	r.done = true
}

// take is told by the machine of each sample that it takes.
func (o *orderer) take(readingID, epoch, shard int32, index int64) (bool, error) {
	if o.p.l.scatter {
		return true, nil
	}
	if epoch != o.takesEpoch { // what was taken of the epoch before fills no batch
		o.takes, o.takesEpoch = o.takes[:0], epoch
	}
	s := o.find(int(readingID), epoch, shard, index)
	if s == nil {
		return false, format.Errorf(format.ErrUsage, o.p.l.in(shard), "the order takes sample %d, which no run of it reads", index)
	}
	v, ok := s.find(index)
	if !ok {
		var err error
		if v, ok, err = o.receive(s, index); err != nil {
			return false, err
		}
	}
	if !s.marked {
		s.marked = true
		o.touched = append(o.touched, s)
	}
	if !ok { // what was received is passed, excluded samples at its end too
		s.low = s.got
		return false, nil
	}
	s.low = index + 1
	if !o.p.l.shared {
		s.passed = s.low // who takes it again means another run
	}
	if s.low == s.To { // a shard may have more samples than was counted
		if _, _, err := o.receive(s, s.To); err != nil {
			return false, err
		}
		s.through = true
		o.topUp(int(readingID)) // it is closed when the step is over, which may have to wait for others
	}
	if o.p.l.direct {
		o.takes = append(o.takes, v)
	} else {
		o.keep(sampleKey{epoch, shard, index}, v)
	}
	return true, nil
}

// find returns the run that a sample is of. Runs of epochs that are over end.
func (o *orderer) find(i int, epoch, shard int32, index int64) *run {
	r := &o.readings[i]
	if r.epoch < epoch { // a part of a mix that begins anew has runs without end
		r.epoch, r.next = epoch, 0
	}
	for len(r.runs) > 0 && r.runs[0].Epoch < epoch {
		o.close(i, r.runs[0])
	}
	if r.last != nil && r.last.Times == 1 && r.last.holds(epoch, shard, index) {
		return r.last
	}
	r.last = nil
	for _, s := range r.runs { // of copies side by side, the one that has come so far
		if s.holds(epoch, shard, index) && (r.last == nil || s.passed > r.last.passed) {
			r.last = s
		}
	}
	if r.last != nil {
		return r.last
	}
	for !r.done && r.epoch <= epoch {
		n := len(r.runs)
		if o.open(i); len(r.runs) > n && r.runs[n].holds(epoch, shard, index) {
			return r.runs[n]
		}
	}
	return nil
}

// receive waits for the chunk that holds a sample. It reports false where the
// shard ends before it, of a shard whose count was not known.
func (o *orderer) receive(s *run, index int64) (view, bool, error) {
	p := o.p
	defer p.l.meters.order.in.running(time.Now())()
	gate := &p.l.chunks.gate
	defer gate.starve(nil, o.step)
	o.patience.Reset(patience)
	defer o.patience.Stop()
	for !s.ended {
		gate.starve(s, o.step)
		select {
		case <-o.patience.C:
			s.awaited.Store(true)
		case c, ok := <-s.chunks:
			if !ok {
				s.ended = true
				break
			}
			s.window = append(s.window, c)
			s.got = c.first + int64(len(c.items))
			if index < s.got {
				v, ok := s.find(index)
				return v, ok, nil
			}
		case <-p.ctx.Done():
			return view{}, false, p.cause()
		}
	}
	if s.err != nil && p.ctx.Err() != nil {
		return view{}, false, p.cause()
	}
	return view{}, false, s.err
}

// keep holds a sample until its last emission.
func (o *orderer) keep(key sampleKey, v view) {
	if k := o.kept[key]; k != nil {
		k.again++
		return
	}
	if o.p.l.copies {
		v = o.p.copyOut(v)
	} else {
		v.chunk.retain()
	}
	o.kept[key] = &kept{view: v}
}

// copyOut copies a sample to memory of its own, so that one that waits in a
// large buffer does not hold the chunk that it came with.
func (p *pipeline) copyOut(v view) view {
	it := &v.chunk.items[v.i]
	if it.sample == unparsed || len(v.chunk.items) == 1 {
		v.chunk.retain()
		return v
	}
	s := &v.chunk.samples[it.sample]
	need := bytesOf(s)
	c := p.l.chunks.get()
	p.l.chunks.gate.force(int64(need))
	c.allocate(need)
	c.first, c.ready = it.index, true
	c.items = append(c.items, *it)
	c.items[0].sample = c.hold(s)
	return view{c, 0}
}

// enter begins the epoch of the references, if it is a new one.
func (o *orderer) enter(refs []order.Ref) {
	if refs[0].Epoch == o.epoch {
		return
	}
	o.epoch = refs[0].Epoch
	o.p.l.spools.letGoBefore(o.epoch, 0)
	for key, k := range o.kept {
		if key.epoch < o.epoch {
			o.dropped = append(o.dropped, k.chunk)
			delete(o.kept, key)
		}
	}
	for key, k := range o.pages {
		if key.epoch < o.epoch {
			k.release()
			delete(o.pages, key)
		}
	}
	for key, it := range o.items {
		if key.epoch < o.epoch {
			it.Release()
			delete(o.items, key)
		}
	}
}

// batch makes the batch of some references. It reports false where it is a
// copy of one that is kept and nothing is to be done for it.
func (o *orderer) batch(refs []order.Ref) (b *Batch, fresh bool) {
	l := o.p.l
	b = &Batch{Refs: refs, Valid: make([]bool, len(refs)), Step: o.step, l: l, state: o.m.State()}
	key, last := batchKey{epoch: refs[0].Epoch}, true
	var copy, times int32
	if key.item, copy, times = o.m.Item(); key.item >= 0 {
		last = copy == times-1
		if pg := o.pages[key]; pg != nil {
			b.again = true
			b.page.Store(pg)
			if last { // the batch takes the place of the order stage
				delete(o.pages, key)
			} else {
				pg.retain()
			}
			return b, false
		}
	}
	pg := l.newPage(len(refs))
	taken := 0
	for i, ref := range refs {
		s := &pg.slots[i]
		s.ref = ref
		if l.scatter && l.spools != nil {
			l.spools.hold(order.Run{Epoch: ref.Epoch, Shard: ref.Shard, Times: ref.Times}, o.step)
		}
		var v view
		switch {
		case ref.Kind == order.Padding:
		case l.direct && ref.Kind == order.Fresh:
			v = o.takes[taken]
			taken++
		default:
			v = o.emit(ref)
		}
		s.chunk, s.item, s.kept = v.chunk, v.i, o.item(ref)
	}
	o.sendJob()
	if l.scatter { // what was read for the batches before has been read by now
		l.spools.letGoBefore(o.epoch, o.step-int64(l.o.Prefetch))
	}
	if !last {
		pg.retain()
		o.pages[key] = pg
	}
	b.page.Store(pg)
	return b, true
}

// last reports whether a sample that was taken is not needed any more. The
// copies of a shard are taken each for itself, those of a batch kept as that.
func (o *orderer) last(ref order.Ref) bool {
	return ref.Copy == ref.Times-1 || o.p.l.plan.Unit != order.Sample
}

// emit finds the sample of a reference.
func (o *orderer) emit(ref order.Ref) view {
	key := keyOf(ref)
	k := o.kept[key]
	switch {
	case ref.Kind != order.Fresh:
		return o.fetch(ref)
	case k == nil:
		v := o.fetch(ref)
		if !o.last(ref) {
			v.chunk.retain()
			o.kept[key] = &kept{view: v}
		}
		return v
	case !o.last(ref):
		return k.view
	case k.again > 0:
		k.again--
		return k.view
	}
	o.dropped = append(o.dropped, k.chunk)
	delete(o.kept, key)
	return k.view
}

// dispatch cuts the slots of a page into tasks.
func (o *orderer) dispatch(pg *page) {
	first, size := 0, int64(0)
	for i := range pg.slots {
		s := &pg.slots[i]
		if s.chunk != nil {
			if it := &s.chunk.items[s.item]; it.off >= 0 {
				size += it.bytes
			} else {
				size += taskBytes // how large it is, whoever reads it finds out
			}
		}
		if size < taskBytes && i < len(pg.slots)-1 {
			continue
		}
		o.task(pg, first, i+1)
		first, size = i+1, 0
	}
}

// taskBytes is about how much a task is worth: large enough that small samples
// do not pay for a hand-over each, small enough that images spread over the
// workers.
const taskBytes = 64 << 10

// task lets the slots from first to last-1 be filled as soon as their samples
// are there.
func (o *orderer) task(pg *page, first, last int) {
	t := pg.newTask(first, last)
	t.wait.Store(1)
	var before *chunk
	for i := first; i < last; i++ {
		c := pg.slots[i].chunk
		if c == nil || c == before {
			continue
		}
		before = c
		c.retain()
		t.held = append(t.held, c)
		t.wait.Add(1)
		if c.await(t) {
			t.wait.Add(-1)
		}
	}
	if t.wait.Add(-1) == 0 {
		o.p.tasks <- t // there is room for all tasks of the batches under way
	}
}

// pass lets go of what the step has used up, and opens runs in place of those
// that are through.
func (o *orderer) pass() {
	for i, c := range o.dropped {
		c.release()
		o.dropped[i] = nil
	}
	o.dropped = o.dropped[:0]
	for _, s := range o.touched {
		s.marked = false
		if !o.p.l.shared {
			s.pass(s.low)
		}
	}
	clear(o.touched)
	o.touched = o.touched[:0]
	for i := range o.readings {
		o.closeFinished(i)
	}
}

// closeFinished ends the runs of a reading of which nothing more is taken.
func (o *orderer) closeFinished(i int) {
	r := &o.readings[i]
	if o.p.l.shared {
		low, index := o.m.Low(i)
		for len(r.runs) > 0 && r.runs[0].Epoch == o.epoch && r.runs[0].i < low {
			o.close(i, r.runs[0])
		}
		if len(r.runs) > 0 && r.runs[0].Epoch == o.epoch && r.runs[0].i == low {
			r.runs[0].pass(index)
		}
		return
	}
	for n := 0; n < len(r.runs); {
		if s := r.runs[n]; s.ended && len(s.window) == 0 || s.To != order.Unknown && s.low >= s.To {
			o.close(i, s)
			continue
		}
		n++
	}
}

// lastStep as the step that needs a run means that its end is known.
const lastStep = math.MaxInt64

func (o *orderer) close(i int, s *run) {
	r := &o.readings[i]
	for n := range r.runs {
		if r.runs[n] == s {
			r.runs = slices.Delete(r.runs, n, n+1)
			break
		}
	}
	if r.last == s {
		r.last = nil
	}
	s.stop()
	o.p.l.spools.letGo(s.Run)
	o.topUp(i)
}

// discard lets go of everything. Nothing runs any more.
func (o *orderer) discard() {
	for i := range o.readings {
		for _, s := range o.readings[i].runs {
			s.stop()
		}
	}
	for _, k := range o.kept {
		k.chunk.release()
	}
	for _, pg := range o.pages {
		pg.release()
	}
	for _, it := range o.items {
		it.Release()
	}
	for _, c := range o.dropped {
		c.release()
	}
	if o.job != nil {
		o.job.release()
	}
}
