// Package order says which sample comes next. It is a pure state machine: no
// input or output, no clock, no goroutine, no number of a worker. From a
// [Plan] follows a sequence of steps, each the references of one batch:
//
//	Plan ─▶ Machine ─ Step ─▶ [ref ref ref ...]   one batch
//	           │
//	           └─ has(shard, index)?              facts of the data, asked in order
//
//	Ref: epoch | shard | index in the shard | copy | kind
//
// Where the number of samples of a shard is not known, the machine asks
// whether there is one at an index. The answers are facts of the data, so the
// sequence stays a function of plan and data alone.
//
// Echo (Choi et al., Faster Neural Network Training with Data Echoing, arXiv
// 1907.05550) is part of the order: each sample, or each batch, is given as
// many times as the factor says, the first time included.
//
// For now there is one rank, and no shuffling.
package order

import (
	"fmt"

	"shardtool/format"
)

// Ref names one emission of one sample.
type Ref struct {
	Epoch int32 // from 0
	Shard int32 // place of the shard in the manifest
	Copy  int32 // 0 the first time, then 1, 2, ... for the echoes of it
	Index int64 // place of the sample among those of its shard, from 0
	Kind  Kind
}

// Kind is why a sample is emitted.
type Kind uint8

const (
	Fresh   Kind = iota // it is the sample's turn
	Wrapped             // the tail of an epoch is filled from its start
	Padding             // the tail of an epoch is filled with a sample that counts for nothing
)

// Unit is what an echo repeats.
type Unit uint8

const (
	Sample Unit = iota // each sample
	Batch              // each batch
	Shard              // each shard
)

// String returns the word that commands use: sample, batch or shard.
func (u Unit) String() string { return [...]string{"sample", "batch", "shard"}[u] }

// Tail is what becomes of the last samples of an epoch when they do not fill
// a batch.
type Tail uint8

const (
	TailDefault Tail = iota // TailKeep without shuffling, else TailDrop
	TailDrop                // they are left out
	TailKeep                // a short batch; for one rank only
	TailPad                 // filled with samples that are marked as not valid
	TailWrap                // filled from the epoch's start
)

// String returns the word that commands use: default, drop, keep, pad or wrap.
func (t Tail) String() string { return [...]string{"default", "drop", "keep", "pad", "wrap"}[t] }

// Shuffle is how samples are mixed. The zero value is None.
type Shuffle struct{ mode shuffleMode }

type shuffleMode uint8

const (
	none shuffleMode = iota
	global
)

// The ways to mix samples.
var (
	None   = Shuffle{}             // shard after shard, in the order of the manifest
	Global = Shuffle{mode: global} // a permutation of all samples
)

// String returns the word that commands use.
func (s Shuffle) String() string { return [...]string{"none", "global"}[s.mode] }

// Endless as the number of epochs means that they do not end.
const Endless = -1

// Plan is what an order follows from, together with the data.
type Plan struct {
	Shards  int // number of shards in the manifest
	Epochs  int // passes over the fresh samples; Endless for no end; 0 stands for 1
	Batch   int // samples of a full batch
	Shuffle Shuffle
	Tail    Tail
	Unit    Unit   // what is repeated
	Factor  Factor // how often; 0 stands for One
}

// check returns the plan with its defaults filled in.
func (p Plan) check() (Plan, error) {
	if p.Epochs == 0 {
		p.Epochs = 1
	}
	if p.Factor == 0 {
		p.Factor = One
	}
	if p.Tail == TailDefault {
		p.Tail = TailKeep
	}
	switch {
	case p.Shards < 1:
		return p, usage("there are no shards")
	case p.Batch < 1:
		return p, usage("a batch of %d samples", p.Batch)
	case p.Epochs < Endless:
		return p, usage("%d epochs", p.Epochs)
	case p.Factor < One:
		return p, usage("an echo factor of %v: it counts every emission, so 1 is the least", p.Factor)
	case p.Shuffle != None:
		return p, notYet("shuffle %v", p.Shuffle)
	case p.Tail != TailDrop && p.Tail != TailKeep:
		return p, notYet("tail %v", p.Tail)
	case p.Unit != Sample && p.Unit != Batch:
		return p, notYet("echo of unit %v", p.Unit)
	}
	return p, nil
}

func usage(msg string, args ...any) error {
	return format.Errorf(format.ErrUsage, format.Nowhere, msg, args...)
}

func notYet(msg string, args ...any) error {
	return format.Errorf(format.ErrUnsupported, format.Nowhere, "%s is not supported yet", fmt.Sprintf(msg, args...))
}
