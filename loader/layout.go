package loader

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"shardtool/loader/internal/column"
	"shardtool/reader/order"
	"shardtool/tensor"
)

// placement is where a column's values lie in a batch's memory.
type placement struct {
	form    column.Form
	dtype   tensor.DType
	shape   tensor.Shape // of a full batch; of a ragged column that of a row
	size    int          // bytes of an element of a ragged column: of a row
	values  int          // offset; unless the column is of any length
	lengths int          // offset of the int64 lengths, or of the splits
}

// layOut places the columns in a batch's memory, each at an aligned offset,
// and sees that what is fixed fits the bound.
func (l *Loader) layOut() error {
	var total int64
	for i := range l.o.Columns {
		c := &l.o.Columns[i]
		p := placement{form: c.Kind.Form(), dtype: c.Kind.DType(), shape: c.Kind.Shape()}
		n, err := int64(0), error(nil)
		switch p.form {
		case column.FormDense, column.FormPadded:
			p.shape = append(tensor.Shape{l.perRank}, p.shape...)
			n, err = tensor.Bytes(p.dtype, p.shape)
		case column.FormRagged, column.FormBinary:
			p.size = p.dtype.Size() * p.shape.Elems()
			l.anyLength = l.anyLength || c.Reads() == column.ReadsField
		}
		if err != nil || total+n > mostBytes {
			return usage("a batch of %d: column %q is too large: %v", l.perRank, c.Field, p.shape)
		}
		p.values = int(total)
		total += roundUp(n)
		p.lengths = int(total)
		if p.form != column.FormDense && p.form != column.FormPlaces {
			total += roundUp(8 * int64(l.perRank+1))
		}
		l.columns = append(l.columns, p)
		l.allFields = l.allFields || c.Reads() == column.ReadsSample
	}
	l.pageBytes = int(total)
	return l.divide(total)
}

func roundUp(n int64) int64 { return (n + tensor.Alignment - 1) &^ (tensor.Alignment - 1) }

// MemoryTerm is a part of the memory that a loader may use.
type MemoryTerm struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Memory returns what the loader's memory is for, at the worst: batches, what
// stores hold, and samples under way. The scratch memory of workers, which
// depends on the size of the pictures, is not among it.
func (l *Loader) Memory() []MemoryTerm { return slices.Clone(l.terms) }

// divide sees how much memory is left for samples under way.
func (l *Loader) divide(batch int64) error {
	const forSamples = 256 << 20
	n := int64(l.o.Prefetch + l.o.Hold)
	// Every run that is read fills a chunk.
	reads := int64(l.runsOpen * l.machine.Readings())
	if l.scatter {
		reads = int64(l.o.Fetchers)
	}
	l.terms = []MemoryTerm{
		{fmt.Sprintf("%d batches (%d made ahead, %d held by the trainer)", n, l.o.Prefetch, l.o.Hold), n * batch},
		{"stores", l.src.holds()},
		{"samples under way", reads * leastChunk},
		{"their places in batches", n * int64(l.perRank) * placeBytes},
	}
	mean, waiting := l.meanBytes(), l.waiting()
	buffered := product(waiting, mean)
	if waiting > 0 {
		l.terms = append(l.terms, MemoryTerm{fmt.Sprintf("%d samples in shuffle buffers", waiting), buffered})
	}
	if k := int64(max(1, l.plan.Buffer)); l.plan.Unit == order.Batch && l.echoed {
		l.terms = append(l.terms, MemoryTerm{fmt.Sprintf("%d batches of the echo", k), product(k, batch)})
	}
	ofAnyLength := int64(0)
	if l.anyLength {
		ofAnyLength = product(n*int64(l.perRank), mean)
		l.terms = append(l.terms, MemoryTerm{"their values of any length", ofAnyLength})
	}
	var fixed int64
	for _, t := range l.terms {
		fixed += t.Bytes
	}
	fixed += l.divideForEcho(fixed)
	under := &l.terms[2].Bytes
	switch bound := l.o.MemoryBytes; {
	case bound == 0 && fixed > mostBytes:
		return usage("that takes too much memory: %s", l.termsText())
	case bound == 0:
		*under = max(*under, forSamples)
	case fixed > bound:
		return usage("memory of %d bytes is too little: %s", bound, l.termsText())
	default:
		*under += bound - fixed
	}
	l.chunkBytes = int(min(chunkBytes, max(leastChunk, *under/(4*max(1, reads)))))
	l.chunks.gate.limit = *under + buffered + ofAnyLength
	l.chunks.gate.urgent = -1
	l.chunks.memory.MaxIdle = *under
	return nil
}

// divideForEcho sees how much memory there is for what the echo keeps, where
// so much is needed for the rest, and returns it.
func (l *Loader) divideForEcho(rest int64) int64 {
	const forEcho = 512 << 20
	e := &l.o.Echo
	if !l.echoed {
		return 0
	}
	bytes := e.Bytes
	switch {
	case bytes > 0:
		bytes = product(bytes, 1) // no more than can be added up
	case l.o.MemoryBytes == 0:
		bytes = forEcho
	default:
		bytes = max(0, l.o.MemoryBytes-rest) / 2
	}
	what := "shards that are kept"
	if e.Unit == order.Shard {
		d, ok := l.src.(*datasetSource)
		if !ok {
			return 0
		}
		if l.spools = d.spooled(l, bytes); l.spools == nil {
			return 0
		}
	} else {
		what = "samples that are kept " + e.Keep.String()
		if l.keeper = newKeeper(e.Keep, l.o.Columns, bytes); l.keeper == nil {
			return 0
		}
	}
	l.terms = append(l.terms, MemoryTerm{what, bytes})
	return bytes
}

const (
	mostBytes  = 1 << 40 // of batches, where no bound is given
	placeBytes = 288     // what a batch notes of a sample: its reference, slot, task and job, each at most one
)

// waiting is how many samples the order's buffers hold on this rank.
func (l *Loader) waiting() int64 {
	const most = 1 << 32 // more would not be samples, and not overflow what follows
	n := min(most, int64(max(0, l.o.Shuffle.Buffer()-1)))
	if b := min(most, int64(l.plan.Buffer)); b > 1 && l.echoed {
		if l.plan.Unit == order.Batch { // samples until it is made, see divide for what is kept then
			b = product(b, int64(l.o.GlobalBatch))
		}
		n += b
	}
	return (n + int64(l.o.World) - 1) / int64(l.o.World)
}

// product is a times b, or a very large number.
func product(a, b int64) int64 {
	const most = 1 << 58
	if hi, lo := bits.Mul64(uint64(a), uint64(b)); hi == 0 && lo < most {
		return int64(lo)
	}
	return most
}

// meanBytes is how large a sample is on average, as far as that is known.
func (l *Loader) meanBytes() int64 {
	var bytes, samples int64
	for i := range l.shards {
		if s := &l.shards[i]; s.Bytes > 0 && s.Samples > 0 {
			bytes, samples = bytes+s.Bytes, samples+s.Samples
		}
	}
	if samples == 0 {
		return 0
	}
	return bytes / samples
}

func (l *Loader) termsText() string {
	var parts []string
	for _, t := range l.terms {
		parts = append(parts, fmt.Sprintf("%s need %d", t.Name, t.Bytes))
	}
	return strings.Join(parts, ", ")
}

// leastChunk is the smallest chunk, where very many runs are read at a time.
const leastChunk = 64 << 10

// tensor is memory for the values of n samples.
func (p *placement) tensor(mem []byte, n int) tensor.Dense {
	shape := p.shape
	if n < shape[0] {
		shape = append(tensor.Shape{n}, shape[1:]...)
	}
	return tensor.View(p.dtype, shape, mem[p.values:][:p.dtype.Size()*shape.Elems()])
}

// numbers is memory for n lengths or splits.
func (p *placement) numbers(mem []byte, n int) tensor.Dense {
	return tensor.View(tensor.Int64, tensor.Shape{n}, mem[p.lengths:][:8*n])
}
