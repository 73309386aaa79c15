package tfexample

import "unicode/utf8"

// names keeps the strings of names from record to record, so that records of
// the same features allocate nothing, and knows the place of each name in the
// record at hand.
type names struct {
	ids   map[string]int
	all   []knownName
	bytes int // of all names
	round uint64
	guess int // the id that would come next, if this record is like the last
}

type knownName struct {
	name  string
	round uint64 // of the record that place belongs to
	place int
	valid bool // UTF-8
}

// What is kept between records. A record may have more.
const (
	keptNames = 4096
	keptBytes = 1 << 20
)

// reset begins a record.
func (n *names) reset() {
	if len(n.all) > keptNames || n.bytes > keptBytes || n.ids == nil {
		*n = names{ids: make(map[string]int), round: n.round}
	}
	n.round++
	n.guess = 0
}

// place gives a name the place at, unless it has one in this record. It
// returns the id of the name, and the place it had, or -1.
func (n *names) place(name []byte, at int) (id, had int) {
	id = n.id(name)
	k := &n.all[id]
	if k.round == n.round {
		return id, k.place
	}
	k.round, k.place = n.round, at
	return id, -1
}

// id returns the id of a name. Features mostly come in the order of the record
// before, which is tried first: it saves hashing the name.
func (n *names) id(name []byte) int {
	if n.guess < len(n.all) && n.all[n.guess].name == string(name) {
		n.guess++
		return n.guess - 1
	}
	id, ok := n.ids[string(name)]
	if !ok {
		id = len(n.all)
		s := string(name)
		n.ids[s] = id
		n.all = append(n.all, knownName{name: s, valid: utf8.ValidString(s)})
		n.bytes += len(s)
	}
	n.guess = id + 1
	return id
}

// lookup returns the place of a name in the record at hand, or -1.
func (n *names) lookup(name string) int {
	id, ok := n.ids[name]
	if !ok || n.all[id].round != n.round {
		return -1
	}
	return n.all[id].place
}
