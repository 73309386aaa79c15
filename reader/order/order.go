// Package order says which sample comes next. It is a pure state machine: no
// input or output, no clock, no goroutine, no number of a worker. From a
// [Plan], a rank and a world follows a sequence of steps, each the references
// of this rank's part of one batch:
//
//	            lanes of an epoch, dealt to the ranks
//	Plan ─▶ fresh samples ─▶ buffer ─▶ echo ─▶ buffer ─┐
//	        fresh samples ─▶ buffer ─▶ echo ─▶ buffer ─┼ tail ─▶ [ref ref ref ...]  one step
//	        fresh samples ─▶ buffer ─▶ echo ─▶ buffer ─┘
//	             │
//	             └─ take(reading, epoch, shard, index)
//
//	Ref: epoch | shard | index in the shard | pass | copy of times | kind
//
// An epoch is dealt to lanes, and lanes to ranks: what a lane gives does not
// depend on the world, so the batch of all ranks together is the same for
// every world that divides the lanes, what fills up a tail aside.
//
// All randomness is [Hash], a function of the seed, of what the number is for
// and of counters. The only thing that the machine asks is [Take]: whether a
// shard, whose number of samples nobody knows, has one more. The answers are
// facts of the data, so the sequence stays a function of plan and data alone,
// and a position in it is a few numbers ([State]): [Machine.Restore] runs the
// machine up to there, without asking.
//
// Echo (Choi et al., Faster Neural Network Training with Data Echoing, arXiv
// 1907.05550) is part of the order: each sample, batch or shard is given as
// many times as the factor says, the first time included.
package order

import (
	"fmt"

	"shardtool/format"
)

// Ref names one emission of one sample.
type Ref struct {
	Epoch int32 // from 0
	Shard int32 // place of the shard in the manifest, counted over all parts; -1 for Padding
	Copy  int32 // 0 the first time it is emitted, then 1, 2, ... for the echoes of it
	Times int32 // how many copies there are in all, 1 or more
	Index int64 // place of the sample among those of its shard, from 0; -1 for Padding
	Pass  int32 // which reading of the sample in this epoch it is, from 0: a part of a mix begins anew, and so does what wraps
	Kind  Kind
}

// Kind is why a sample is emitted.
type Kind uint8

const (
	Fresh   Kind = iota // it is the sample's turn
	Wrapped             // the tail of an epoch is filled from its start
	Padding             // the tail of an epoch is filled with something that counts for nothing
)

// String returns fresh, wrapped or padding.
func (k Kind) String() string { return [...]string{"fresh", "wrapped", "padding"}[k] }

// Unit is what an echo repeats.
type Unit uint8

const (
	Sample Unit = iota // each sample
	Batch              // each batch
	Shard              // each shard, or the stretch of it that a lane reads
)

// String returns the word that commands use: sample, batch or shard.
func (u Unit) String() string { return [...]string{"sample", "batch", "shard"}[u] }

// Tail is what becomes of the last samples of an epoch when they do not fill
// a batch.
type Tail uint8

const (
	TailDefault Tail = iota // TailDrop when shuffling; else TailKeep for one rank and TailPad for several
	TailDrop                // they are left out
	TailKeep                // a short batch; for one rank only
	TailPad                 // filled with references that are Padding
	TailWrap                // filled from the epoch's start, by references that are Wrapped
)

// String returns the word that commands use: default, drop, keep, pad or wrap.
func (t Tail) String() string { return [...]string{"default", "drop", "keep", "pad", "wrap"}[t] }

// Ends is what becomes of a mix when one of its parts ends. Restart: the part
// begins anew, and the epoch ends when every part was read once, so that parts
// which are short for their weight come several times. Stop: the epoch ends
// before the first sample that a part no longer has, and what is left of the
// others is left out. Either is counted in each lane by itself.
type Ends uint8

const (
	Restart Ends = iota // the part begins anew; the epoch ends when every part was read once
	Stop                // the epoch ends before the first sample that a part no longer has
)

// String returns the word that commands use: restart or stop.
func (e Ends) String() string { return [...]string{"restart", "stop"}[e] }

// Shuffle is how samples are mixed. The zero value is None.
type Shuffle struct {
	mode   shuffleMode
	open   int // shards that are read side by side
	buffer int // samples of the buffer behind them
}

type shuffleMode uint8

const (
	none shuffleMode = iota
	global
	block
	stream
)

// The ways to mix samples that have no settings.
var (
	None   = Shuffle{}             // shard after shard, in the order of the manifest
	Global = Shuffle{mode: global} // a permutation of all samples; their counts must be known
)

// Block takes the shards in random order and mixes open of them, counted over
// all lanes: samples are taken from those in turn at random, each shard in its
// own order, and one that ends makes room for the next. Each lane has at least
// one shard open, so that Block(16) opens 64 of a plan with 64 lanes (see
// Plan.Lanes). Counts must be known.
func Block(open int) Shuffle { return Shuffle{mode: block, open: open} }

// Stream is Block, with at least one shard open for each lane too, and a buffer
// of samples behind it, also counted over all lanes, from which they come out
// at random. Counts may be unknown.
func Stream(open, buffer int) Shuffle { return Shuffle{mode: stream, open: open, buffer: buffer} }

// Buffer returns how many samples Stream keeps in its buffer, over all lanes.
func (s Shuffle) Buffer() int { return s.buffer }

// String returns none, global, block(open) or stream(open, buffer).
func (s Shuffle) String() string {
	switch s.mode {
	case block:
		return fmt.Sprintf("block(%d)", s.open)
	case stream:
		return fmt.Sprintf("stream(%d, %d)", s.open, s.buffer)
	}
	return [...]string{"none", "global"}[s.mode]
}

// Endless as the number of epochs means that they do not end.
const Endless = -1

// Unknown as the number of samples of a shard, or as the end of a run, means
// that only reading it will tell.
const Unknown = format.Unknown

// Entry is a shard as the manifest has it.
type Entry struct {
	Name    string
	Bytes   int64
	Version string  // of its content, as an entity tag; "" if there is none; never a time
	Samples int64   // Unknown if not known
	Exclude []int64 // samples that are never taken, ascending
}

// Part is a data set: all of the plan's, or one of several that are mixed.
type Part struct {
	Shards []Entry
	Weight float64 // its share of the samples, relative to the other parts'; of no matter for a single part
}

// Plan is what an order follows from, together with the data. It lends the
// machine its slices: they must not change while that is used.
type Plan struct {
	Parts   []Part
	Ends    Ends    // of a mix
	Epochs  int     // passes over the fresh samples; Endless for no end; 0 stands for 1
	Batch   int     // samples of a full batch, of all ranks together
	Lanes   int     // shares of an epoch, which the ranks divide among them; 0 for the default, see Machine
	Shuffle Shuffle // how samples are mixed
	Seed    uint64
	Tail    Tail   // what becomes of a short last batch
	Steps   int64  // of each epoch, which is cut or filled to it; 0: as the counts and the tail say
	Unit    Unit   // what is repeated
	Factor  Factor // how often; 0 stands for One
	Buffer  int    // samples, or batches for Batch, of a shuffle buffer behind the echo, over all lanes

	// Segment is after how many steps of an epoch SetFactor may act; 0: at the
	// start of an epoch only; not for Shard. With segments the copies go through
	// the buffer behind the echo at the factor 1 too, which then gives each sample
	// once, as without, but mixed by the buffer: so the factor can rise and fall
	// without one being filled or drained. Like the factor it does not belong to
	// the fingerprint: a state says itself how its epoch went so far.
	Segment int64

	// What follows changes no reference, but what becomes of it, and so
	// belongs to the fingerprint.
	Keep    string // level that echo keeps
	Columns string // what is made of a sample
}
