package echo

import "shardtool/reader/order"

// Account counts emissions, of a batch or of a run, on one rank. Add counts the
// first two; the others are a Ledger's, which follows a run.
type Account struct {
	Fresh   int64 // samples emitted for the first time in their epoch
	Emitted int64 // all emissions

	Echoes     int64 // emissions that echo added: copies but the first
	Duplicates int64 // emissions of a sample that the same batch already holds a copy of
	Spaced     int64 // emissions of a sample after another one of it that is known
	Distance   int64 // summed over these: emissions since that one, 1 for the next
	Nearest    int64 // the least of these; 0 without
}

// Add counts the emissions of a batch, as fresh ones and all. Padding counts
// for nothing, and what fills the tail of an epoch from its start is not fresh.
func (a *Account) Add(refs []order.Ref) {
	for i := range refs {
		switch r := &refs[i]; {
		case r.Kind == order.Padding:
		case r.Kind == order.Fresh && r.Copy == 0:
			a.Fresh++
			a.Emitted++
		default:
			a.Emitted++
		}
	}
}

// Merge adds what another account counted, of a later batch or another rank.
func (a *Account) Merge(b Account) {
	a.Fresh += b.Fresh
	a.Emitted += b.Emitted
	a.Echoes += b.Echoes
	a.Duplicates += b.Duplicates
	a.Spaced += b.Spaced
	a.Distance += b.Distance
	if a.Nearest == 0 || b.Nearest > 0 && b.Nearest < a.Nearest {
		a.Nearest = b.Nearest
	}
}

// Factor returns the factor that came about, and 0 before the first emission.
func (a Account) Factor() float64 {
	if a.Fresh == 0 {
		return 0
	}
	return float64(a.Emitted) / float64(a.Fresh)
}

// MeanDistance returns the mean distance between an echo and the emission
// before it of the same sample; 0 where none is known.
func (a Account) MeanDistance() float64 {
	if a.Spaced == 0 {
		return 0
	}
	return float64(a.Distance) / float64(a.Spaced)
}
