package echo

import (
	"iter"
	"math/bits"
	"slices"

	"shardtool/reader/order"
)

// Repeat gives value n of seq, from 0, floor((n+1)e) - floor(n e) times, in
// fixed point as the order has it: a whole factor e times each, 1.5 once and
// twice in turn. A factor that is not from 1 to 65536 is ErrUsage.
//
// Repeat, Shuffle and Batches are for pipelines that are not package loader's:
//
//	seq ─▶ Repeat ─▶ Shuffle ─▶ Batches ─▶ for batch, err := range
//
// Repeat before a stage that augments is the paper's echo before augmentation,
// behind it that after it, and behind Batches its batch echo.
//
// None of them starts a goroutine, or keeps anything between two loops: a loop
// over the result is a loop over seq, from its start. One that is left leaves
// seq. An error is the last element, and what came before it is given first, as
// if seq had ended there; a value that comes with an error is dropped. Who wants
// to go on behind bad values takes them out of seq.
//
// Copies are the same value: what slices and pointers in it lead to is shared,
// must not be changed, and must stay good. Behind a reader that lends a sample
// until the next one is asked for, a stage must clone.
func Repeat[T any](seq iter.Seq2[T, error], factor float64) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		e, err := order.NewFactor(factor)
		if err != nil {
			fail(yield, err)
			return
		}
		var sum order.Factor
		for v, err := range seq {
			if err != nil {
				fail(yield, err)
				return
			}
			for sum += e; sum >= order.One; sum -= order.One {
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

// Shuffle gives the values of seq in another order: from a buffer of that many,
// which is kept full as long as seq goes on, one at random. The choices are a
// function of the seed. The buffer grows as values arrive; with 1 or 0 it
// changes nothing, and less is ErrUsage. Errors and loops are as with Repeat.
func Shuffle[T any](seq iter.Seq2[T, error], buffer int, seed uint64) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if buffer < 0 {
			fail(yield, usage("a shuffle buffer of %d", buffer))
			return
		}
		var held []T
		var given uint64
		give := func() bool {
			last := len(held) - 1
			i := pick(seed, given, len(held))
			given++
			v := held[i]
			held[i] = held[last]
			clear(held[last:]) // what was given is not kept alive
			held = held[:last]
			return yield(v, nil)
		}
		var failed error
		for v, err := range seq {
			if failed = err; failed != nil {
				break
			}
			if held = append(held, v); len(held) >= buffer && !give() {
				return
			}
		}
		for len(held) > 0 {
			if !give() {
				return
			}
		}
		if failed != nil {
			fail(yield, failed)
		}
	}
}

// pick is a number from 0 to n-1: the one for choice c.
func pick(seed, c uint64, n int) int {
	hi, _ := bits.Mul64(order.Hash(seed, order.ForEcho, c), uint64(n))
	return int(hi)
}

// Batches gathers n values at a time, into a slice of its own for each batch,
// which belongs to the loop. What is left at the end, or before an error, is a
// short batch if keepShort, else it is dropped. An n below 1 is ErrUsage. Errors
// and loops are as with Repeat.
func Batches[T any](seq iter.Seq2[T, error], n int, keepShort bool) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		if n < 1 {
			fail(yield, usage("batches of %d", n))
			return
		}
		var batch []T
		var failed error
		for v, err := range seq {
			if failed = err; failed != nil {
				break
			}
			if batch = append(batch, v); len(batch) < n {
				continue
			}
			if !yield(batch, nil) {
				return
			}
			batch = make([]T, 0, n) // as many as have arrived before, so not a claim
		}
		if len(batch) > 0 && keepShort && !yield(slices.Clip(batch), nil) {
			return
		}
		if failed != nil {
			fail(yield, failed)
		}
	}
}

// fail gives an error, as the last element.
func fail[T any](yield func(T, error) bool, err error) {
	var none T
	yield(none, err)
}
