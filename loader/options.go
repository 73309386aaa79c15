package loader

import (
	"log/slog"
	"math"
	"os"
	"runtime"

	"shardtool/echo"
	"shardtool/format"
	"shardtool/reader/order"
)

// Options says what is loaded and how. Columns must be given; the zero value
// of the rest is good.
//
// The options of the first group say which batches there are. Together with
// the data they are the plan, of which the fingerprint is part of a State:
// rank, world and the echo's factor are not, so that a run may be resumed with
// others.
type Options struct {
	Columns     []Column
	GlobalBatch int           // samples of a batch, of all ranks together; 0 stands for 64
	Seed        uint64        // of all random choices
	Epoch       int           // the first epoch, from 0
	Epochs      int           // passes over the fresh samples, from Epoch on; order.Endless for no end; 0 stands for 1
	Steps       int64         // of each epoch: it is cut, or filled from its start; 0: as many as the samples make
	Shuffle     order.Shuffle // order.None (the zero value), Global, Block(k) or Stream(k, buffer)
	Tail        order.Tail    // what becomes of samples that fill no batch; see order.TailDefault
	Ends        order.Ends    // what becomes of a mix (reader.Mix) when one of its data sets ends: order.Restart (the zero value) or Stop
	Lanes       int           // shares of an epoch that are dealt to ranks; 0: see order.Plan
	Echo        echo.Options  // which unit is repeated how often
	Exclude     []Exclusion   // samples that are left out for all ranks, such as an earlier quarantine

	// Rank is this process's place among World processes, which load a part of
	// each batch each. World 0 asks the environment: torchrun's, SLURM's,
	// Open MPI's and Kubernetes' variables; without any there is one rank.
	Rank, World int

	Resume *State // the State of the last batch that was used; nil: from the start

	OnBad       OnBad
	Workers     int   // that decode; 0 stands for GOMAXPROCS
	Fetchers    int   // reads of shards under way at a time, as far as the order has several; 0 stands for 4, or 32 where a store is far away
	Prefetch    int   // batches made ahead of the trainer; 0 stands for 3
	Hold        int   // batches that the trainer may hold at a time; 0 stands for 4
	MemoryBytes int64 // bound of the memory for batches, samples under way and what the echo keeps (Echo.Bytes, or half of what the rest leaves); 0: what batches need, 256 MiB, and 512 MiB where an echo keeps more than bytes and Echo.Bytes does not say
	Limits      *format.Limits

	// Log is told of rank and world where the environment gives them, of the
	// warnings of manifest and plan, of the plan in numbers, of each bad sample
	// when it is met first, of the begin of each epoch and of the end of the
	// last, these with the totals so far: batches, fresh samples, samples
	// emitted, holes, bytes, seconds. nil: nobody is.
	Log *slog.Logger
}

// OnBad says what happens to a sample that cannot be read, decoded or lacks a
// field.
type OnBad struct {
	// Skip is how many of them, each counted once over all epochs, may become
	// holes of their batches; with one more, or with 0, loading stops with the
	// error. Negative: any number. A batch without any good sample is an error
	// all the same. A run that is resumed begins to count anew.
	Skip int64
}

// Evaluation returns the options for one pass over every sample, in order and
// once: no shuffling, no echo, one epoch from its start. The last batch is
// short for one rank; for several it is padded, and Batch.Valid marks what
// counts.
func (o Options) Evaluation() *Options {
	o.Shuffle, o.Echo, o.Tail = order.None, echo.Options{}, order.TailDefault
	o.Epoch, o.Epochs, o.Steps, o.Resume = 0, 1, 0, nil
	return &o
}

func (o *Options) setDefaults(far bool) {
	fetchers := 4
	if far {
		fetchers = 32
	}
	for _, d := range []struct {
		v *int
		d int
	}{
		{&o.GlobalBatch, 64}, {&o.Epochs, 1}, {&o.Workers, runtime.GOMAXPROCS(0)},
		{&o.Fetchers, fetchers}, {&o.Prefetch, 3}, {&o.Hold, 4},
	} {
		if *d.v == 0 {
			*d.v = d.d
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// place settles rank and world.
func (o *Options) place() error {
	switch {
	case o.World == 0 && o.Rank == 0:
		rank, world, from, err := order.Detect(os.Getenv)
		if err != nil {
			return err
		}
		o.Rank, o.World = rank, world
		if from != "" {
			o.Log.Info("rank and world are the environment's", "rank", rank, "world", world, "from", from)
		}
	case o.World < 1 || o.Rank < 0 || o.Rank >= o.World:
		return usage("rank %d of a world of %d", o.Rank, o.World)
	}
	return nil
}

func (o *Options) check() error {
	const most = 1 << 16
	for _, n := range []struct {
		name string
		v    int
	}{{"workers", o.Workers}, {"fetchers", o.Fetchers}, {"prefetch", o.Prefetch}, {"hold", o.Hold}} {
		if n.v < 1 || n.v > most {
			return usage("%d %s: not within 1 to %d", n.v, n.name, most)
		}
	}
	if len(o.Columns) == 0 {
		return usage("no columns")
	}
	for i := range o.Columns {
		if err := o.Columns[i].Check(); err != nil {
			return usage("column %d: %w", i, err)
		}
	}
	if o.Epoch < 0 || o.Epoch > math.MaxInt32 {
		return usage("epoch %d", o.Epoch)
	}
	return nil
}
