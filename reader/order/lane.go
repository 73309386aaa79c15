package order

// source gives a lane its fresh samples of the epoch, once each. References
// are written where they belong: to return them costs more than to make them.
type source interface {
	begin()                  // at the start of the machine's epoch
	next(*Ref) (bool, error) // false at the end
	wrap(*Ref) error         // after the end, what fills a tail
}

// lane is a share of the epoch: a source, the buffer of Stream behind it, and
// the copies of Sample echo with their buffer.
type lane struct {
	number int
	src    source
	stream shuffleBuffer
	echo   repeats[Ref]
	room   int  // of echo
	plain  bool // there is no echo, or the source makes its copies
	ahead  Ref  // a sample that was looked at
	peeked bool
}

func newLane(m *Machine, local, number int) lane {
	l := lane{number: number}
	if m.sequential() {
		l.src = &positions{m: m, lane: number, global: m.plan.Shuffle == Global, hint: make([]int, len(m.parts))}
	} else {
		l.src = newDealt(m, local, number)
	}
	l.stream.room = m.plan.Shuffle.buffer / m.plan.Lanes
	return l
}

func (l *lane) begin(m *Machine) {
	l.src.begin()
	epoch, number := uint64(m.epoch), uint64(l.number)
	l.stream.begin(Hash(m.plan.Seed, ForStream, epoch, number))
	l.echo.begin(Hash(m.plan.Seed, ForEcho, epoch, number), l.number, m.plan.Lanes)
	l.peeked = false
	l.room, l.plain = 1, true
	if m.echoing && m.plan.Unit != Batch {
		l.room = int(m.room())
		l.plain = l.room == 1 && m.plan.Unit == Shard
	}
}

// fresh takes the next sample, through the buffer of Stream.
func (l *lane) fresh(r *Ref) (bool, error) {
	if l.stream.room > 1 {
		return l.stream.next(r, l.src)
	}
	return l.src.next(r)
}

// next gives the next emission; it reports false at the lane's end.
func (l *lane) next(m *Machine, r *Ref) (bool, error) {
	if l.plain {
		return l.fresh(r)
	}
	return l.copies(m, r)
}

// emit appends up to n references, fewer at the lane's end.
func (l *lane) emit(m *Machine, dst []Ref, n int) ([]Ref, error) {
	if l.peeked && n > 0 {
		dst = append(dst, l.ahead)
		l.peeked = false
		n--
	}
	if l.plain && l.stream.room <= 1 {
		return straight(l.src, dst, n)
	}
	for ; n > 0; n-- {
		dst = append(dst, Ref{})
		last := len(dst) - 1
		if ok, err := l.next(m, &dst[last]); err != nil || !ok {
			return dst[:last], err
		}
	}
	return dst, nil
}

// copies gives the next emission of Sample echo, or of Shard echo with a
// buffer, whose copies the source makes.
func (l *lane) copies(m *Machine, r *Ref) (bool, error) {
	for len(l.echo.buf) < l.room {
		ok, err := l.fresh(&l.echo.slot().item)
		if err != nil {
			return false, err
		}
		if !ok {
			l.echo.drop()
			break
		}
		if m.plan.Unit == Sample {
			l.echo.add(m.factor)
		} else {
			l.echo.add(One)
		}
	}
	s, copy := l.echo.next()
	if s == nil {
		return false, nil
	}
	*r = s.item
	if m.plan.Unit == Sample {
		r.Copy, r.Times = copy, s.times
	}
	return true, nil
}

// straight is emit without anything behind the source.
func straight(src source, dst []Ref, n int) ([]Ref, error) {
	for ; n > 0; n-- {
		last := len(dst)
		dst = append(dst, Ref{})
		if ok, err := src.next(&dst[last]); err != nil || !ok {
			return dst[:last], err
		}
	}
	return dst, nil
}

// more reports whether the lane has anything left, by taking it.
func (l *lane) more(m *Machine) (bool, error) {
	var err error
	if !l.peeked {
		l.peeked, err = l.next(m, &l.ahead)
	}
	return l.peeked, err
}

// shuffleBuffer is filled from a source and gives back at random.
type shuffleBuffer struct {
	room int
	refs []Ref
	seed uint64
	out  uint64
}

func (b *shuffleBuffer) begin(seed uint64) {
	b.refs, b.seed, b.out = b.refs[:0], seed, 0
}

func (b *shuffleBuffer) next(r *Ref, src source) (bool, error) {
	for len(b.refs) < b.room {
		n := len(b.refs)
		b.refs = append(b.refs, Ref{})
		if ok, err := src.next(&b.refs[n]); err != nil || !ok {
			b.refs = b.refs[:n]
			if err != nil {
				return false, err
			}
			break
		}
	}
	last := len(b.refs) - 1
	if last < 0 {
		return false, nil
	}
	i := below(extend(b.seed, b.out), last+1)
	b.out++
	*r = b.refs[i]
	b.refs[i] = b.refs[last]
	b.refs = b.refs[:last]
	return true, nil
}
