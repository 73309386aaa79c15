package loader

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"shardtool/format"
	"shardtool/reader/order"
)

// Exclusion names a sample by its shard and its place in it.
type Exclusion struct {
	Shard string `json:"shard"` // as the dataset names it
	Index int64  `json:"index"`
}

// Quarantine returns the errors of the bad samples so far, in the order of
// delivery, at most 10,000 of them. They are *format.Error and say where.
func (l *Loader) Quarantine() []error {
	l.tally.mu.Lock()
	defer l.tally.mu.Unlock()
	return slices.Clone(l.tally.errs)
}

const maxQuarantine = 10_000

// quarantined is a line of a quarantine list.
type quarantined struct {
	Exclusion
	Offset  int64  `json:"offset"`
	Key     string `json:"key,omitempty"`
	Class   string `json:"class"`
	Message string `json:"message"`
}

// WriteQuarantine writes the bad samples so far as JSON Lines, which
// ReadQuarantine reads:
//
//	{"shard":"train-3.tar","index":412,"offset":1049088,"key":"n01_7","class":"corrupt","message":"..."}
//
// A sample that was met in several epochs is there once.
func (l *Loader) WriteQuarantine(w io.Writer) error {
	out := json.NewEncoder(w)
	seen := make(map[Exclusion]bool)
	for _, err := range l.Quarantine() {
		e := format.AsError(err)
		if e == nil || e.Record < 0 {
			continue
		}
		x := Exclusion{format.Redact(e.Shard), e.Record}
		if seen[x] {
			continue
		}
		seen[x] = true
		if err := out.Encode(quarantined{x, e.Offset, e.Key, format.Class(err), err.Error()}); err != nil {
			return err
		}
	}
	return nil
}

// ReadQuarantine reads what WriteQuarantine wrote, or any JSON Lines with the
// members shard and index, for Options.Exclude.
func ReadQuarantine(r io.Reader) ([]Exclusion, error) {
	var list []Exclusion
	in := json.NewDecoder(bufio.NewReader(r))
	for line := int64(0); ; line++ {
		x := Exclusion{Index: -1}
		err := in.Decode(&x)
		switch {
		case errors.Is(err, io.EOF):
			return list, nil
		case err == nil && (x.Shard == "" || x.Index < 0):
			err = errors.New("no shard and index")
		}
		if err != nil {
			at := format.Nowhere
			at.Record = line
			return nil, format.Errorf(format.ErrCorrupt, at, "%w", err)
		}
		list = append(list, x)
	}
}

// exclude gives each shard the samples that are left out.
func exclude(parts []order.Part, list []Exclusion) error {
	// Addresses are compared without their secrets, which no list has.
	byShard := make(map[string][]int64)
	for _, x := range list {
		name := format.Redact(x.Shard)
		if x.Index < 0 {
			return usage("sample %d of %s is to be left out", x.Index, name)
		}
		byShard[name] = append(byShard[name], x.Index)
	}
	met := make(map[string]bool)
	for _, part := range parts {
		for i := range part.Shards {
			s := &part.Shards[i]
			name := format.Redact(s.Name)
			indices := byShard[name]
			if indices == nil {
				continue
			}
			met[name] = true
			indices = slices.Clone(indices)
			slices.Sort(indices)
			s.Exclude = slices.Compact(indices)
			if last := s.Exclude[len(s.Exclude)-1]; s.Samples >= 0 && last >= s.Samples {
				return usage("sample %d of %s is to be left out, and it has %d", last, name, s.Samples)
			}
		}
	}
	for name := range byShard {
		if !met[name] {
			return usage("samples of %s are to be left out, which is no shard of the data set", name)
		}
	}
	return nil
}
