package shard

import (
	"shardtool/format"
	"shardtool/reader"
)

// Reading says what of its inputs an operation left out or read over.
type Reading struct {
	Skipped  map[string]int64         // members or samples that were left out, by reason
	Warnings map[format.Warning]int64 // faults that were read over
	Losses   []format.Loss            // the first parts that were passed over
	Lost     int64                    // how many parts were
}

// gather adds what a shard that was read to its end counted.
func (r *Reading) gather(s *reader.Shard) {
	r.add(s.Skipped(), s.Warnings())
}

func (r *Reading) add(skipped map[string]int64, warnings map[format.Warning]int64) {
	if r.Skipped == nil {
		r.Skipped, r.Warnings = make(map[string]int64), make(map[format.Warning]int64)
	}
	for reason, n := range skipped {
		r.Skipped[reason] += n
	}
	for warning, n := range warnings {
		r.Warnings[warning] += n
	}
}

// lossList gathers losses in a Reading.
type lossList struct {
	told func(format.Loss) // somebody else to tell; may be nil
	to   *Reading
	last error
}

// add takes a loss. A reader that reports one and then ends with it reported
// one.
func (l *lossList) add(loss format.Loss) {
	const most = 1000
	if loss.Err != nil && l.last != nil && loss.Err.Error() == l.last.Error() {
		return
	}
	l.last = loss.Err
	l.to.Lost++
	if len(l.to.Losses) < most {
		l.to.Losses = append(l.to.Losses, loss)
	}
	if l.told != nil {
		l.told(loss)
	}
}
