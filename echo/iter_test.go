package echo_test

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shardtool/echo"
	"shardtool/format"
	"shardtool/reader/order"
)

// count gives 0 to n-1, then err if there is one. It notes that it is left.
func count(n int, err error, left *bool) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				*left = true
				return
			}
		}
		if err != nil && yield(-1, err) {
			panic("went on after an error")
		}
	}
}

// collect returns what a sequence gives, and the error it ends with.
func collect[T any](t interface{ Fatalf(string, ...any) }, seq iter.Seq2[T, error]) (all []T, failed error) {
	for v, err := range seq {
		if failed != nil {
			t.Fatalf("%v, %v after an error", v, err)
		}
		if failed = err; err == nil {
			all = append(all, v)
		} else if got, none := fmt.Sprint(v), fmt.Sprint(*new(T)); got != none {
			t.Fatalf("%v came with an error", got)
		}
	}
	return all, failed
}

func TestRepeat(t *testing.T) {
	for _, tt := range []struct {
		factor float64
		want   string
	}{
		{1, "0 1 2 3"},
		{2, "0 0 1 1 2 2 3 3"},
		{1.5, "0 1 1 2 3 3"},
		{2.25, "0 0 1 1 2 2 3 3 3"},
		{3, "0 0 0 1 1 1 2 2 2 3 3 3"},
	} {
		got, err := collect(t, echo.Repeat(count(4, nil, nil), tt.factor))
		if s := strings.Trim(fmt.Sprint(got), "[]"); s != tt.want || err != nil {
			t.Errorf("%v: %v, %v; want %v", tt.factor, s, err, tt.want)
		}
	}
}

// TestRepeatIsTheOrder: what one lane of the order gives, without a buffer.
func TestRepeatIsTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "n")
		e := rapid.Float64Range(1, 9).Draw(t, "e")
		factor, err := order.NewFactor(e)
		if err != nil {
			t.Fatal(err)
		}
		m, err := order.New(order.Plan{
			Parts: []order.Part{{Shards: []order.Entry{{Name: "a", Bytes: 1, Samples: int64(n)}}}},
			Batch: 1, Tail: order.TailKeep, Factor: factor,
		}, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		var want []int
		for {
			refs, ok, err := m.Step(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			want = append(want, int(refs[0].Index))
		}
		if got, err := collect(t, echo.Repeat(count(n, nil, nil), e)); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v\nthe order gives\n%v", got, want)
		}
	})
}

func TestShuffle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "n")
		buffer := rapid.IntRange(0, 100).Draw(t, "buffer")
		seed := rapid.Uint64().Draw(t, "seed")
		var failed error
		if rapid.Bool().Draw(t, "fails") {
			failed = errors.New("fails")
		}
		seq := echo.Shuffle(count(n, failed, nil), buffer, seed)
		got, err := collect(t, seq)
		if again, _ := collect(t, seq); !slices.Equal(got, again) {
			t.Fatal("another order the second time")
		}
		if err != failed {
			t.Fatal(err)
		}
		for place, v := range got {
			if v > place+max(buffer, 1)-1 {
				t.Fatalf("%d at place %d, from a buffer of %d", v, place, buffer)
			}
		}
		if buffer <= 1 && !slices.IsSorted(got) {
			t.Fatal("no buffer changes nothing")
		}
		slices.Sort(got)
		for i, v := range got {
			if i != v {
				t.Fatalf("%v of %d", got, n)
			}
		}
		if len(got) != n {
			t.Fatalf("%d of %d", len(got), n)
		}
	})
}

// TestShuffleMixes: with room for all, each value is as likely at each place.
func TestShuffleMixes(t *testing.T) {
	const n, runs = 8, 8000
	var at [n][n]float64
	for seed := range uint64(runs) {
		place := 0
		for v := range echo.Shuffle(count(n, nil, nil), n, seed) {
			at[v][place]++
			place++
		}
	}
	// 49 degrees of freedom: χ² is above 85.4 once in a thousand times.
	var chi float64
	for _, places := range at {
		for _, c := range places {
			chi += (c - runs/n) * (c - runs/n) / (runs / n)
		}
	}
	if chi > 85.4 {
		t.Errorf("χ² is %.1f", chi)
	}
}

func TestBatches(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		of, n int
		err   error
		keep  bool
		want  string
	}{
		{4, 2, nil, false, "[[0 1] [2 3]]"},
		{5, 2, nil, false, "[[0 1] [2 3]]"},
		{5, 2, nil, true, "[[0 1] [2 3] [4]]"},
		{5, 2, broken, true, "[[0 1] [2 3] [4]]"},
		{5, 2, broken, false, "[[0 1] [2 3]]"},
		{1, 1 << 60, nil, true, "[[0]]"},
		{0, 3, nil, true, "[]"},
	} {
		got, err := collect(t, echo.Batches(count(tt.of, tt.err, nil), tt.n, tt.keep))
		if fmt.Sprint(got) != tt.want || err != tt.err {
			t.Errorf("%+v: %v, %v", tt, got, err)
		}
		for _, b := range got {
			if _ = append(b, 99); tt.n < 100 && cap(b) != len(b) && len(b) < tt.n {
				t.Errorf("%+v: a short batch with room behind it", tt)
			}
		}
	}
}

// TestWrappers: what all of them do with bad settings, errors and loops that
// are left.
func TestWrappers(t *testing.T) {
	broken := errors.New("broken")
	flat := func(seq iter.Seq2[[]int, error]) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for b, err := range seq {
				if len(b) == 0 {
					b = []int{0}
				}
				if !yield(b[0], err) {
					return
				}
			}
		}
	}
	for _, tt := range []struct {
		name string
		wrap func(iter.Seq2[int, error]) iter.Seq2[int, error]
		want error
	}{
		{"repeat by 0.5", func(s iter.Seq2[int, error]) iter.Seq2[int, error] { return echo.Repeat(s, 0.5) }, format.ErrUsage},
		{"repeat by NaN", func(s iter.Seq2[int, error]) iter.Seq2[int, error] { return echo.Repeat(s, math.NaN()) }, format.ErrUsage},
		{"repeat by too much", func(s iter.Seq2[int, error]) iter.Seq2[int, error] { return echo.Repeat(s, 1e9) }, format.ErrUsage},
		{"shuffle with -1", func(s iter.Seq2[int, error]) iter.Seq2[int, error] { return echo.Shuffle(s, -1, 0) }, format.ErrUsage},
		{"batches of 0", func(s iter.Seq2[int, error]) iter.Seq2[int, error] { return flat(echo.Batches(s, 0, true)) }, format.ErrUsage},
		{"repeat", func(s iter.Seq2[int, error]) iter.Seq2[int, error] { return echo.Repeat(s, 2) }, nil},
		{"shuffle", func(s iter.Seq2[int, error]) iter.Seq2[int, error] { return echo.Shuffle(s, 4, 0) }, nil},
		{"batches", func(s iter.Seq2[int, error]) iter.Seq2[int, error] { return flat(echo.Batches(s, 3, true)) }, nil},
	} {
		if tt.want != nil {
			ranged := false
			seq := func(func(int, error) bool) { ranged = true }
			if got, err := collect(t, tt.wrap(seq)); format.Sentinel(err) != tt.want || len(got) > 0 || ranged {
				t.Errorf("%s: %v, %v", tt.name, got, err)
			}
			continue
		}
		if _, err := collect(t, tt.wrap(count(10, broken, nil))); err != broken {
			t.Errorf("%s: %v, want the error of the source", tt.name, err)
		}
		// Left at its first value, in the middle, among what is left at the end.
		for _, n := range []int{1, 3, 20} {
			left, seen := false, 0
			for range tt.wrap(count(10, nil, &left)) {
				if seen++; seen == n {
					break
				}
			}
			if n == 1 && !left {
				t.Errorf("%s: left, and the source went on", tt.name)
			}
		}
	}
}
