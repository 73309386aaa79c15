package loader

import (
	"errors"

	"shardtool/format"
)

// settle looks at the errors of a batch's slots in their order, which does not
// depend on the workers: it counts bad samples, fills their places from a good
// neighbour, or returns the error that ends loading.
func (p *pipeline) settle(b *Batch) error {
	pg := b.page.Load()
	if !pg.settled {
		pg.settled, pg.err = true, p.holes(pg)
	}
	if pg.err != nil {
		return pg.err
	}
	holes := 0
	for i := range b.Valid {
		if b.Valid[i] = pg.slots[i].err == nil; !b.Valid[i] {
			holes++
		}
	}
	p.l.tally.batch(b, holes)
	return nil
}

func (p *pipeline) holes(pg *page) error {
	good, first := -1, error(nil)
	for i := range pg.slots {
		s := &pg.slots[i]
		switch {
		case s.err == nil && good < 0:
			good = i
		case s.err == nil:
		case errors.Is(s.err, format.ErrUsage):
			return s.err
		default:
			if first == nil {
				first = s.err
			}
			if err := p.l.tally.bad(s, p.l.o.OnBad.Skip); err != nil {
				return err
			}
		}
	}
	switch {
	case first == nil:
		return nil
	case good < 0:
		var e *format.Error
		errors.As(first, &e)
		return format.Errorf(e.Err, e.Location, "no sample of a batch of %d is good; the first: %s", len(pg.slots), e.Detail)
	}
	// The nearest earlier good place, else the nearest later, which then is
	// the first good one of all.
	for i := range pg.slots {
		if pg.slots[i].err == nil {
			good = i
			continue
		}
		for _, c := range pg.columns {
			copy(c.At(i).Bytes(), c.At(good).Bytes())
		}
	}
	return nil
}
