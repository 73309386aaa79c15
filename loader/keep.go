package loader

import (
	"sync"
	"unsafe"

	"shardtool/augment"
	"shardtool/echo"
	"shardtool/format"
	"shardtool/loader/internal/column"
	"shardtool/reader/order"
	"shardtool/tensor"
)

// made is what was made of a sample and is kept for its other copies: pictures
// that are decoded, or the values of all columns.
type made struct {
	buf     *tensor.Buffer
	decoded []column.Decoded // by column
	values  []value          // by column, in buf

	key           []byte
	offset, bytes int64
}

// value is where the value of a column lies; of echo.Decoded, whether there is
// one.
type value struct {
	off, n int
	length int64 // column.Slot's
	kept   bool
}

// keeper keeps what was made of samples between their copies. A nil one keeps
// nothing.
type keeper struct {
	level  echo.Level
	cache  *echo.Cache[*made]
	memory tensor.Pool
	mu     sync.Mutex
	free   []*made
}

// newKeeper returns what keeps so many bytes, or nil where the level has nothing
// to keep besides bytes.
func newKeeper(level echo.Level, columns []Column, bytes int64) *keeper {
	switch level {
	case echo.Augmented:
	case echo.Decoded:
		if !decodes(columns) {
			return nil
		}
	default:
		return nil
	}
	k := &keeper{level: level}
	k.memory.MaxIdle = max(1, bytes/idleShare)
	k.cache = echo.NewCache(bytes, k.put)
	return k
}

// idleShare of the bytes is what memory that is free for others may come to: it
// is not counted by the cache, and as pictures differ in size, what was freed of
// one may not do for the next.
const idleShare = 8

// decodes reports whether a column has a stage of decoding.
func decodes(columns []Column) bool {
	for i := range columns {
		if _, ok := columns[i].Kind.NewFiller(nil).(column.Stager); ok {
			return true
		}
	}
	return false
}

// get returns room for what is made of a sample, of n bytes.
func (k *keeper) get(columns, n int) *made {
	k.mu.Lock()
	var m *made
	if last := len(k.free) - 1; last >= 0 {
		m, k.free = k.free[last], k.free[:last]
	}
	k.mu.Unlock()
	if m == nil {
		m = &made{decoded: make([]column.Decoded, columns), values: make([]value, columns)}
	}
	clear(m.values)
	m.buf = k.memory.Get(n)
	return m
}

func (k *keeper) put(m *made) {
	m.buf.Release()
	m.buf = nil
	clear(m.decoded) // which is in it
	k.mu.Lock()
	defer k.mu.Unlock()
	k.free = append(k.free, m)
}

// size is how many bytes what is kept takes, about: of small samples, most is not
// in the buffer.
func (m *made) size() int64 {
	const each = int64(unsafe.Sizeof(made{}) + unsafe.Sizeof(echo.Item[*made]{}))
	const column = int64(unsafe.Sizeof(column.Decoded{}) + unsafe.Sizeof(value{}))
	return int64(m.buf.Size()) + each + column*int64(len(m.values)) + int64(cap(m.key))
}

// keptItem is the item of a sample with copies to come.
type keptItem struct {
	*echo.Item[*made]
	first int32 // the copy that it began with
}

// keptKey names a sample each time it is taken.
type keptKey struct {
	sampleKey
	pass int32
}

// item returns what keeps the sample of a reference, held for its slot, or nil.
func (o *orderer) item(ref order.Ref) keptItem {
	k := o.p.l.keeper
	if k == nil || ref.Times == 1 || ref.Kind != order.Fresh {
		return keptItem{}
	}
	key := keptKey{keyOf(ref), ref.Pass}
	it, there := o.items[key]
	if !there { // also of a last copy, where a run is resumed: it is to be made as the others were
		it = keptItem{k.cache.NewItem(int(ref.Times - ref.Copy)), ref.Copy}
		o.items[key] = it
	}
	if ref.Copy == ref.Times-1 { // the slot takes the place of the order stage
		delete(o.items, key)
	} else {
		it.Retain()
	}
	return it
}

// Again implements echo.Waiter: the task goes on.
func (t *task) Again() { t.page.l.pipe.again <- t } // there is room for all tasks of the batches under way

// fillKept makes the tensors of a slot from what is kept of its sample, or makes
// that. It reports false where another worker is at it: then the task goes on
// when that is through, perhaps by another worker, and this one must not touch
// it any more.
func (w *worker) fillKept(t *task, i int) bool {
	s := &t.page.slots[i]
	m, taken := s.kept.Take(nil)
	if taken == echo.Wait {
		w.leave(t.page)
		t.at = i
		if m, taken = s.kept.Take(t); taken == echo.Wait {
			return false
		}
	}
	it := s.kept
	s.kept = keptItem{}
	switch {
	case taken == echo.Hit:
		s.err = w.again(t.page, i, m)
		it.Done()
	case w.build(t.page, i, it):
		it.Done()
	default:
		it.Fail()
	}
	return true
}

// build makes what is kept of a sample, and the tensors of the slot. It reports
// whether there is something to keep.
func (w *worker) build(pg *page, i int, it keptItem) bool {
	s := &pg.slots[i]
	sample, err := w.find(s)
	if err != nil {
		s.err = err
		return false
	}
	s.place(sample)
	if w.l.keeper.level == echo.Augmented {
		if s.err = w.columns(pg, i, sample, nil); s.err != nil {
			return false
		}
		m := w.copyValues(pg, i)
		it.Put(m, m.size())
		return true
	}
	m, err := w.decode(s, sample, int(it.first))
	if err != nil { // what it is for this copy, columns before it included, is as without anything kept
		s.err = w.columns(pg, i, sample, nil)
		return false
	}
	it.Put(m, m.size())
	s.err = w.columns(pg, i, sample, m)
	return true
}

// again makes the tensors of a slot from what is kept.
func (w *worker) again(pg *page, i int, m *made) error {
	s := &pg.slots[i]
	if w.l.keeper.level == echo.Augmented {
		w.pasteValues(pg, i, m)
		return nil
	}
	sample, err := w.find(s)
	if err != nil {
		return err
	}
	s.place(sample)
	return w.columns(pg, i, sample, m)
}

// decode does the first stage of the columns that have one.
func (w *worker) decode(s *slot, sample *format.Sample, first int) (*made, error) {
	copies := w.copiesOf(s)
	size := 0
	w.sizes = w.sizes[:0]
	for c := range w.fillers {
		n := 0
		col := &w.l.o.Columns[c]
		if f, ok := w.fillers[c].(column.Stager); ok {
			if field := col.Find(sample); field != nil {
				var err error
				if n, err = f.Decode(field, copies, first, &w.meter); err != nil {
					return nil, w.located(err, sample, field)
				}
			}
		}
		w.sizes = append(w.sizes, n)
		size += int(roundUp(int64(n)))
	}
	m := w.l.keeper.get(len(w.fillers), size)
	at := 0
	for c, n := range w.sizes {
		if n > 0 {
			m.decoded[c] = w.fillers[c].(column.Stager).Keep(m.buf.Bytes()[at : at+n : at+n])
			m.values[c].kept = true
			at += int(roundUp(int64(n)))
		}
	}
	return m, nil
}

// mostCopies is up to how many copies of a sample what they draw is known before
// its picture is decoded. Of more, nearly all of it is needed.
const mostCopies = 64

// copiesOf returns what all copies of the slot's sample draw from.
func (w *worker) copiesOf(s *slot) []augment.Draws {
	ref := s.ref
	if ref.Times > mostCopies {
		return nil
	}
	w.draws = w.draws[:0]
	for c := range ref.Times {
		ref.Copy = c
		w.draws = append(w.draws, augment.Draws(ref.Draws(w.l.o.Seed)))
	}
	return w.draws
}

// copyValues copies the values of a slot's columns.
func (w *worker) copyValues(pg *page, i int) *made {
	size := 0
	for c := range w.l.columns {
		n, _ := w.valueOf(pg, i, c)
		size += int(roundUp(int64(len(n))))
	}
	m := w.l.keeper.get(len(w.fillers), size)
	at := 0
	for c := range w.l.columns {
		mem, length := w.valueOf(pg, i, c)
		m.values[c] = value{off: at, n: copy(m.buf.Bytes()[at:], mem), length: length}
		at += int(roundUp(int64(len(mem))))
	}
	s := &pg.slots[i]
	m.key = append(m.key[:0], s.key...)
	m.offset, m.bytes = s.offset, s.bytes
	return m
}

// valueOf returns the bytes of a slot in a column.
func (w *worker) valueOf(pg *page, i, c int) (mem []byte, length int64) {
	switch w.l.columns[c].form {
	case column.FormDense:
		return pg.values[c].At(i).Bytes(), 0
	case column.FormPadded:
		return pg.values[c].At(i).Bytes(), pg.lengths[c][i]
	case column.FormRagged, column.FormBinary:
		v := &pg.cells[c][i]
		return v.buf.Bytes()[v.off : v.off+v.n], 0
	}
	return nil, 0
}

// pasteValues writes kept values to a slot.
func (w *worker) pasteValues(pg *page, i int, m *made) {
	s := &pg.slots[i]
	s.key = append(s.key[:0], m.key...)
	s.offset, s.bytes = m.offset, m.bytes
	for c := range w.l.columns {
		v := &m.values[c]
		mem := m.buf.Bytes()[v.off : v.off+v.n]
		w.begin(pg, i, c)
		if dst := w.out.Dense.Bytes(); dst != nil {
			copy(dst, mem)
		} else {
			w.out.Arena = append(w.out.Arena, mem...)
		}
		w.out.Length = v.length
		w.finish(pg, i, c)
	}
}
