package order

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"shardtool/format"
)

// Fingerprint says which plan an order follows from, in few enough bytes to go
// with every state: two plans of one Sum give the same references, for any
// world, rank and echo factor.
type Fingerprint struct {
	Sum      string            `json:"sum"`                // of all but Versions, in hex
	Settings map[string]string `json:"settings"`           // the plan without its shards
	Shards   string            `json:"shards"`             // of the shards, in hex: 4 bytes for each, or for each of 32 stretches of them
	Versions string            `json:"versions,omitempty"` // the same of their versions, where there are any; compared only with such
}

// spans is into how many stretches the shards are divided at most.
const spans = 32

// Fingerprint returns the plan's fingerprint. The world counts only where it
// decides on a default: the lanes without counts, the tail without shuffling.
// Not in it are the number of epochs, the echo factor and its segments, nor
// where shards are: names count from their common folder on, and without a
// query.
func (p Plan) Fingerprint(world int) (Fingerprint, error) {
	p, _, err := p.resolve(world)
	if err != nil {
		return Fingerprint{}, err
	}
	return *p.print(), nil
}

// ManifestFingerprint is of the shards alone, their versions and what is
// excluded. Ranks that see different ones must not train together.
func (p Plan) ManifestFingerprint() string {
	h := sha256.New()
	names := p.names()
	for i, e := range p.shards() {
		fmt.Fprintf(h, "%q %d %d %q %d\n", names[i], e.Bytes, e.Samples, e.Version, e.Exclude)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// print is Fingerprint of a plan that is resolved.
func (p *Plan) print() *Fingerprint {
	entries := p.shards()
	f := &Fingerprint{Settings: p.settings(entries)}
	names := p.names()
	sum := sha256.New()
	for _, k := range slices.Sorted(maps.Keys(f.Settings)) {
		fmt.Fprintf(sum, "%q %q\n", k, f.Settings[k])
	}
	versions := slices.ContainsFunc(entries, func(e Entry) bool { return e.Version != "" })
	for i := range spansOf(len(entries)) {
		from, to := span(i, len(entries))
		shards, tags := sha256.New(), sha256.New()
		for j := from; j < to; j++ {
			fmt.Fprintf(shards, "%q %d %d\n", names[j], entries[j].Bytes, entries[j].Samples)
			fmt.Fprintf(tags, "%q\n", entries[j].Version)
		}
		digest := shards.Sum(nil)
		sum.Write(digest)
		f.Shards += hex.EncodeToString(digest[:4])
		if versions {
			f.Versions += hex.EncodeToString(tags.Sum(nil)[:4])
		}
	}
	f.Sum = hex.EncodeToString(sum.Sum(nil)[:16])
	return f
}

func spansOf(shards int) int { return min(shards, spans) }

// span returns which shards a stretch has.
func span(i, shards int) (from, to int) {
	n := spansOf(shards)
	return i * shards / n, (i + 1) * shards / n
}

func (p *Plan) settings(entries []Entry) map[string]string {
	s := map[string]string{
		"batch":   strconv.Itoa(p.Batch),
		"buffer":  strconv.Itoa(p.Buffer),
		"columns": digest(p.Columns),
		"count":   strconv.Itoa(len(entries)),
		"exclude": excluded(entries),
		"keep":    p.Keep,
		"lanes":   strconv.Itoa(p.Lanes),
		"seed":    strconv.FormatUint(p.Seed, 10),
		"shuffle": p.Shuffle.String(),
		"steps":   strconv.FormatInt(p.Steps, 10),
		"tail":    p.Tail.String(),
		"unit":    p.Unit.String(),
	}
	if len(p.Parts) > 1 {
		mix := p.Ends.String()
		for _, part := range p.Parts {
			mix += fmt.Sprintf(" %dx%s", len(part.Shards), strconv.FormatFloat(part.Weight, 'g', -1, 64))
		}
		s["mix"] = mix
	}
	return s
}

func digest(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:8])
}

func excluded(entries []Entry) string {
	h := sha256.New()
	n := 0
	for i := range entries {
		for _, x := range entries[i].Exclude {
			n++
			binary.Write(h, binary.LittleEndian, [2]int64{int64(i), x})
		}
	}
	if n == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, %x", n, h.Sum(nil)[:4])
}

// names returns the names of the shards from the common folder of each part
// on.
func (p *Plan) names() []string {
	var all []string
	for _, part := range p.Parts {
		names := make([]string, len(part.Shards))
		for i := range part.Shards {
			names[i] = part.Shards[i].Name
			if strings.HasPrefix(names[i], "http://") || strings.HasPrefix(names[i], "https://") {
				names[i], _, _ = strings.Cut(names[i], "?")
			}
		}
		n := folder(names)
		for i := range names {
			names[i] = names[i][n:]
		}
		all = append(all, names...)
	}
	return all
}

// folder returns the length of the common folder of names.
func folder(names []string) int {
	if len(names) == 0 {
		return 0
	}
	n := strings.LastIndexAny(names[0], `/\`) + 1
	for _, name := range names[1:] {
		for n > 0 && !strings.HasPrefix(name, names[0][:n]) {
			n = strings.LastIndexAny(names[0][:n-1], `/\`) + 1
		}
	}
	return n
}

// differs says how the plan of a state is not this one, or "".
func (p *Plan) differs(theirs, ours *Fingerprint) string {
	var d []string
	keys := maps.Clone(ours.Settings)
	maps.Copy(keys, theirs.Settings)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		there, here := theirs.Settings[k], ours.Settings[k]
		switch {
		case there == here || k == "count":
		case k == "columns":
			d = append(d, k)
		default:
			d = append(d, fmt.Sprintf("%s (%s there, %s here)", k, orNone(there), orNone(here)))
		}
	}
	if there, here := theirs.Settings["count"], ours.Settings["count"]; there != here {
		d = append(d, fmt.Sprintf("shards (%s there, %s here)", orNone(there), here))
	} else if s := p.differing(theirs.Shards, ours.Shards); s != "" {
		d = append(d, "shards: "+s)
	}
	if theirs.Versions != "" && ours.Versions != "" && len(theirs.Versions) == len(ours.Versions) {
		if s := p.differing(theirs.Versions, ours.Versions); s != "" {
			d = append(d, "versions: "+s)
		}
	}
	if len(d) == 0 && theirs.Sum != ours.Sum {
		d = append(d, "fingerprint")
	}
	return strings.Join(d, ", ")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// differing says which stretches of the shards differ.
func (p *Plan) differing(there, here string) string {
	if there == here || len(there) != len(here) {
		return ""
	}
	entries := p.shards()
	first, n := -1, 0
	for i := range spansOf(len(entries)) {
		if there[8*i:8*i+8] != here[8*i:8*i+8] {
			if n++; first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return ""
	}
	from, to := span(first, len(entries))
	if len(entries) <= spans {
		return fmt.Sprintf("%d of %d differ, first %s", n, len(entries), format.Redact(entries[from].Name))
	}
	return fmt.Sprintf("differ, first among %s to %s", format.Redact(entries[from].Name), format.Redact(entries[to-1].Name))
}
