package order_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"shardtool/format"
	"shardtool/reader/order"
)

// expected reads what a case expects.
func expected(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile("../../fixtures/cases/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name   string
		Expect json.RawMessage
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.Name == name {
			if err := json.Unmarshal(c.Expect, into); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no case %s", name)
}

func TestCaseUneven(t *testing.T) {
	var want struct {
		Ranks, Batch     int
		BatchesPerRank   []int `json:"batches_per_rank"`
		BatchSizes       []int `json:"batch_sizes"`
		SamplesTotal     int   `json:"samples_total"`
		Repeats          int
		KeysSharedByRank int `json:"keys_shared_by_ranks"`
		Alternatives     []struct {
			Policy         string
			BatchesPerRank []int `json:"batches_per_rank"`
		}
	}
	expected(t, "f1_uneven", &want)
	for _, shuffle := range []order.Shuffle{order.None, order.Global, order.Block(2), order.Stream(2, 8)} {
		p := order.Plan{Batch: want.Ranks * want.Batch, Shuffle: shuffle, Tail: order.TailDrop, Seed: 5}
		ranks := run(t, counted(p, 10, 10, 7), want.Ranks)
		seen := map[order.Ref]bool{}
		for n, steps := range ranks {
			if len(steps) != want.BatchesPerRank[n] {
				t.Errorf("%v: rank %d has %d batches", shuffle, n, len(steps))
			}
			for i, refs := range steps {
				if len(refs) != want.BatchSizes[i] {
					t.Errorf("%v: a batch of %d", shuffle, len(refs))
				}
				for _, r := range refs {
					if seen[r] {
						t.Errorf("%v: %+v twice", shuffle, r)
					}
					seen[r] = true
				}
			}
		}
		p.Tail = order.TailPad
		fresh := map[order.Ref]bool{}
		for n, steps := range run(t, counted(p, 10, 10, 7), want.Ranks) {
			if len(steps) != want.Alternatives[0].BatchesPerRank[n] {
				t.Errorf("%v, pad: rank %d has %d batches", shuffle, n, len(steps))
			}
			for _, refs := range steps {
				for _, r := range refs {
					if r.Kind == order.Fresh {
						fresh[r] = true
					}
				}
			}
		}
		if len(fresh) != want.SamplesTotal {
			t.Errorf("%v, pad: %d samples", shuffle, len(fresh))
		}
	}
}

func TestCaseOneShard(t *testing.T) {
	var want struct {
		Ranks    int
		Outcomes []struct {
			Samples []int `json:"samples_per_rank"`
		} `json:"outcomes_allowed"`
	}
	expected(t, "f2_one_shard", &want)
	for _, shuffle := range []order.Shuffle{order.None, order.Global, order.Block(4), order.Stream(4, 16)} {
		all := map[int64]bool{}
		for n, steps := range run(t, counted(order.Plan{Batch: 4, Shuffle: shuffle}, 16), want.Ranks) {
			got := 0
			for _, refs := range steps {
				for _, r := range refs {
					all[r.Index] = true
					got++
				}
			}
			if got != want.Outcomes[0].Samples[n] {
				t.Errorf("%v: rank %d has %d samples", shuffle, n, got)
			}
		}
		if len(all) != 16 {
			t.Errorf("%v: %d of 16 samples", shuffle, len(all))
		}
	}
	_, err := order.New(uncounted(order.Plan{Batch: 4, Steps: 4}, 16).Plan, 0, want.Ranks)
	if !errors.Is(err, format.ErrUsage) || !strings.Contains(err.Error(), "1 shard ") || !strings.Contains(err.Error(), "4 ranks") {
		t.Errorf("uncounted: %v", err)
	}
}

func TestCaseEpochOrder(t *testing.T) {
	var want struct {
		Seed   uint64
		Epochs []int32
		Keys   int `json:"each_epoch_has_all_keys_once"`
	}
	expected(t, "f4_epoch_order", &want)
	for _, shuffle := range []order.Shuffle{order.Global, order.Block(2), order.Stream(3, 10)} {
		var orders []string
		for _, epoch := range want.Epochs {
			tr := counted(order.Plan{Batch: 1, Shuffle: shuffle, Seed: want.Seed, Epochs: 2}, 10, 10, 7)
			r, err := newRank(&tr, 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			at := r.State()
			at.Epoch = epoch
			if err := r.Restore(at); err != nil {
				t.Fatal(err)
			}
			seen := map[[2]int64]bool{}
			var steps [][]order.Ref
			for range want.Keys {
				steps = append(steps, r.step())
				ref := &steps[len(steps)-1][0]
				if ref.Epoch != epoch {
					t.Errorf("%v: epoch %d", shuffle, ref.Epoch)
				}
				ref.Epoch = 0
				seen[[2]int64{int64(ref.Shard), ref.Index}] = true
			}
			if len(seen) != want.Keys {
				t.Errorf("%v: %d samples", shuffle, len(seen))
			}
			orders = append(orders, text(steps))
		}
		if orders[0] != orders[2] || orders[0] == orders[1] {
			t.Errorf("%v: orders\n%s", shuffle, strings.Join(orders, "\n"))
		}
	}
}

func TestCaseCheckpoint(t *testing.T) {
	var want struct {
		Shards, Echo, Deliveries int
		Buffer                   int   `json:"shuffle_buffer"`
		After                    []int `json:"checkpoint_after"`
		Exactly                  int   `json:"each_sample_exactly"`
	}
	expected(t, "f5_checkpoint", &want)
	p := order.Plan{Batch: 1, Shuffle: order.Stream(want.Shards, want.Buffer), Factor: order.Factor(want.Echo) * order.One, Seed: 3}
	for _, tr := range []trial{counted(p, 16, 16, 16, 16), uncounted(p, 16, 16, 16, 16)} {
		steps := run(t, tr, 1)[0]
		if len(steps) != want.Deliveries {
			t.Fatalf("%d deliveries", len(steps))
		}
		copies := map[[2]int64]int{}
		for _, refs := range steps {
			copies[[2]int64{int64(refs[0].Shard), refs[0].Index}]++
		}
		for id, n := range copies {
			if n != want.Exactly {
				t.Errorf("%v %d times", id, n)
			}
		}
		for _, after := range want.After {
			r, _ := newRank(&tr, 0, 1)
			for range after {
				r.step()
			}
			again, _ := newRank(&tr, 0, 1)
			if err := again.Restore(r.State()); err != nil {
				t.Fatal(err)
			}
			if got := again.all(); text(got) != text(steps[after:]) {
				t.Errorf("after %d: %s", after, text(got))
			}
		}
	}
}

func TestCaseLastBatch(t *testing.T) {
	var want struct {
		Batch    int
		Requests []struct {
			Policy string
			Sizes  []int `json:"batch_sizes"`
		}
	}
	expected(t, "f8_last_batch", &want)
	for _, req := range want.Requests {
		tail := map[string]order.Tail{"last=keep": order.TailKeep, "last=drop": order.TailDrop}[req.Policy]
		for _, tr := range []trial{counted(order.Plan{Batch: want.Batch, Tail: tail}, 10), uncounted(order.Plan{Batch: want.Batch, Tail: tail}, 10)} {
			steps := run(t, tr, 1)[0]
			if len(steps) != len(req.Sizes) {
				t.Fatalf("%s: %d batches", req.Policy, len(steps))
			}
			for i, n := range req.Sizes {
				if len(steps[i]) != n {
					t.Errorf("%s: batch %d has %d", req.Policy, i, len(steps[i]))
				}
			}
		}
	}
}

func TestCaseRepeatEmpty(t *testing.T) {
	for _, p := range []order.Plan{
		{}, {Tail: order.TailDrop}, {Tail: order.TailPad}, {Tail: order.TailWrap}, {Tail: order.TailWrap, Steps: 9}, {Tail: order.TailPad, Steps: 9},
		{Shuffle: order.Stream(2, 5)}, {Unit: order.Batch, Factor: 2 * order.One}, {Unit: order.Batch, Factor: 2 * order.One, Tail: order.TailPad, Steps: 9, Buffer: 4},
		{Unit: order.Shard, Factor: 2 * order.One},
	} {
		p.Epochs, p.Batch = order.Endless, 3
		for _, tr := range []trial{counted(p, 0, 0, 0), uncounted(p, 0, 0, 0)} {
			r, err := newRank(&tr, 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			if steps := r.all(); len(steps) != 0 || !errors.Is(r.err, format.ErrMissing) {
				t.Errorf("%+v: %d steps, %v", p, len(steps), r.err)
			}
		}
	}
}
