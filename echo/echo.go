// Package echo says how data is repeated where a pipeline cannot fetch or
// decode as fast as the accelerator trains: "Faster Neural Network Training
// with Data Echoing", arXiv 1907.05550.
//
// Echo is two choices. The unit says what is repeated, and is part of the
// order (package reader/order). The level says what is kept between the
// copies, and so which work is done again for each:
//
//	fetch ─▶ bytes ─▶ decode ─▶ decoded ─▶ augment ─▶ augmented ─▶ batch
//	           │                  │                      │           │
//	           └ copies decoded   └ copies augmented     └ equal     └ equal
//	             and augmented      anew ("before          copies      batches
//	             anew               augmentation")        ("after")
//
// Allowed are: a shard with its bytes; a sample with its bytes, decoded or
// augmented; a batch with the batch. A factor of 1 changes nothing.
package echo

import (
	"shardtool/format"
	"shardtool/reader/order"
)

// Unit is what is repeated.
type Unit = order.Unit

// The units. The zero value of Options has Sample.
const (
	Sample = order.Sample
	Batch  = order.Batch
	Shard  = order.Shard
)

// Level is what is kept between the copies of a unit.
type Level uint8

const (
	Natural   Level = iota // Bytes for samples and shards, Batched for batches
	Bytes                  // what was fetched
	Decoded                // pixels, augmented anew for each copy
	Augmented              // tensors: the copies are equal
	Batched                // whole batches: the copies are equal
)

// String returns the word that commands use: natural, bytes, decoded,
// augmented or batch.
func (l Level) String() string {
	return [...]string{"natural", "bytes", "decoded", "augmented", "batch"}[l]
}

// Options says what is repeated, how often, and at which level. The zero value
// repeats nothing.
type Options struct {
	Unit   Unit
	Keep   Level
	Factor float64 // emissions of each unit, the first included; 1 or more; 0 stands for 1
	Buffer int     // units of a shuffle buffer behind the echo; 0 for none
}

// allowed are the pairs that mean something, and whether they are built.
var allowed = map[Unit]map[Level]bool{
	Shard:  {Bytes: false},
	Sample: {Bytes: true, Decoded: false, Augmented: false},
	Batch:  {Batched: true},
}

// Check returns the options with their defaults filled in, and the factor in
// fixed point. A pair of unit and level that is not allowed, and a factor or
// buffer out of range, are ErrUsage; what is not built yet is ErrUnsupported.
func (o Options) Check() (Options, order.Factor, error) {
	if o.Factor == 0 {
		o.Factor = 1
	}
	if o.Keep == Natural {
		o.Keep = Bytes
		if o.Unit == Batch {
			o.Keep = Batched
		}
	}
	f, err := order.NewFactor(o.Factor)
	if err != nil {
		return o, 0, err
	}
	built, ok := allowed[o.Unit][o.Keep]
	switch {
	case !ok:
		return o, 0, format.Errorf(format.ErrUsage, format.Nowhere,
			"echo of unit %v cannot keep %v: a shard keeps bytes, a sample bytes, decoded or augmented, a batch the batch", o.Unit, o.Keep)
	case o.Buffer < 0:
		return o, 0, format.Errorf(format.ErrUsage, format.Nowhere, "an echo buffer of %d", o.Buffer)
	case f == order.One:
		return o, f, nil
	case !built:
		return o, 0, format.Errorf(format.ErrUnsupported, format.Nowhere, "echo of unit %v that keeps %v is not supported yet", o.Unit, o.Keep)
	}
	return o, f, nil
}

// Account counts emissions.
type Account struct {
	Fresh   int64 // samples emitted for the first time in their epoch
	Emitted int64 // all emissions
}

// Add counts the emissions of a batch. Padding counts for nothing, and what
// fills the tail of an epoch from its start is not fresh.
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

// Factor returns the factor that came about, and 0 before the first emission.
func (a Account) Factor() float64 {
	if a.Fresh == 0 {
		return 0
	}
	return float64(a.Emitted) / float64(a.Fresh)
}
