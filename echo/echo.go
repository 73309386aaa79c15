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
	"slices"

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
	Factor float64 // emissions of each unit, the first included; 1 or more; 0 stands for 1; with Auto, that of the first segment
	Buffer int     // units of a shuffle buffer behind the echo; 0 for none
	Auto   *Auto   // proposes later factors from measured times; nil: the factor stays

	// Bytes bounds the memory of what is kept: of samples that are decoded or
	// augmented, where what is beyond is made again for each copy; of shards,
	// where it goes to a file on a local disk. 0: what package loader says.
	Bytes int64
	Dir   string // folder of those files; "": os.TempDir()
}

// allowed are the pairs that mean something.
var allowed = map[Unit][]Level{
	Shard:  {Bytes},
	Sample: {Bytes, Decoded, Augmented},
	Batch:  {Batched},
}

// Check returns the options with their defaults filled in, and the factor in
// fixed point. A pair of unit and level that is not allowed, and what is out of
// range, are ErrUsage.
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
	switch {
	case !slices.Contains(allowed[o.Unit], o.Keep):
		return o, 0, usage("echo of unit %v cannot keep %v: a shard keeps bytes, a sample bytes, decoded or augmented, a batch the batch", o.Unit, o.Keep)
	case o.Buffer < 0:
		return o, 0, usage("an echo buffer of %d", o.Buffer)
	case o.Bytes < 0:
		return o, 0, usage("%d bytes for what the echo keeps", o.Bytes)
	case o.Auto == nil:
		return o, f, nil
	case o.Unit == Shard && o.Auto.Segment > 0:
		return o, 0, usage("the copies of a shard are settled when an epoch begins: its factor cannot change every %d steps", o.Auto.Segment)
	}
	return o, f, o.Auto.Check()
}

func usage(msg string, args ...any) error {
	return format.Errorf(format.ErrUsage, format.Nowhere, msg, args...)
}
