package loader

import (
	"errors"

	"shardtool/reader/order"
	"shardtool/reader/store"
)

// spools keep the bytes of shards that are read several times in a row, where
// reading them costs more than reading a local disk. A nil one keeps nothing.
type spools struct {
	names []string
	of    []*store.Spool // by shard; nil where it is read as it is
	all   []*store.Spool
	held  map[heldRun]int64 // of the order stage: the step that needed it last
}

// heldRun is the copies of a run, of which one holds the shard for all.
type heldRun struct {
	epoch, shard, pass int32
	from               int64
}

// spooled has the shards of the dataset kept in so many bytes of memory, and the
// rest of them in files.
func (d *datasetSource) spooled(l *Loader, memory int64) *spools {
	slow := false
	for i, name := range d.names() {
		slow = slow || store.Slow(d.ds.Store(i), name)
	}
	if !slow {
		return nil
	}
	s := &spools{names: d.names(), held: make(map[heldRun]int64)}
	by := make(map[store.Store]*store.Spool)
	share := memory / int64(len(d.ds.Parts()))
	d.ds = d.ds.Through(func(st store.Store) store.Store {
		if st == nil { // a part without shards
			return st
		}
		sp := store.NewSpool(st, store.SpoolOptions{Memory: share, Dir: l.o.Echo.Dir, Log: l.o.Log})
		by[sp] = sp
		s.all = append(s.all, sp)
		return sp
	})
	for i, name := range s.names {
		sp := by[d.ds.Store(i)]
		if !store.Slow(sp, name) { // the system keeps what is on a local disk
			sp = nil
		}
		s.of = append(s.of, sp)
	}
	d.open()
	return s
}

// hold keeps the shard of a run with copies to come, from its first one on.
func (s *spools) hold(r order.Run, step int64) {
	if s == nil || r.Times == 1 || s.of[r.Shard] == nil {
		return
	}
	key := heldRun{r.Epoch, r.Shard, r.Pass, r.From}
	if _, there := s.held[key]; !there {
		s.of[r.Shard].Hold(s.names[r.Shard])
	}
	s.held[key] = step
}

// letGo gives up what was held for a run, after its last copy.
func (s *spools) letGo(r order.Run) {
	if s != nil && r.Copy == r.Times-1 {
		s.release(heldRun{r.Epoch, r.Shard, r.Pass, r.From})
	}
}

// letGoBefore gives up what was held for epochs before this one, whose copies do
// not come any more, and what no step from this one on has needed.
func (s *spools) letGoBefore(epoch int32, step int64) {
	if s == nil {
		return
	}
	for key, last := range s.held {
		if key.epoch < epoch || last < step {
			s.release(key)
		}
	}
}

func (s *spools) release(key heldRun) {
	if _, there := s.held[key]; there {
		s.of[key.shard].Release(s.names[key.shard])
		delete(s.held, key)
	}
}

func (s *spools) stats() (sum store.SpoolStats) {
	if s == nil {
		return sum
	}
	for _, sp := range s.all {
		st := sp.Stats()
		sum.Objects += st.Objects
		sum.Memory += st.Memory
		sum.Disk += st.Disk
		sum.Served += st.Served
		sum.Fetched += st.Fetched
	}
	return sum
}

func (s *spools) close() error {
	if s == nil {
		return nil
	}
	clear(s.held)
	var errs []error
	for _, sp := range s.all {
		errs = append(errs, sp.Close())
	}
	return errors.Join(errs...)
}
