package echo_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"shardtool/echo"
)

// waiter counts how often it is told to try again.
type waiter int

func (w *waiter) Again() { *w++ }

// TestCache plays the uses of two samples by hand. The cache has room for one
// value of 10 bytes.
func TestCache(t *testing.T) {
	var freed []string
	c := echo.NewCache(10, func(v string) { freed = append(freed, v) })
	expect := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
	}
	take := func(it *echo.Item[string], w echo.Waiter) string {
		v, taken := it.Take(w)
		return fmt.Sprint([]string{"hit", "build", "wait"}[taken], " ", v)
	}

	a := c.NewItem(3)
	a.Retain()
	a.Retain() // three copies, the caller's and two
	expect("first", take(a, nil), "build ")
	var w waiter
	expect("meanwhile", take(a, &w), "wait ")
	expect("nobody to tell", take(a, nil), "wait ")
	a.Put("A", 10)
	expect("told", w, 1)
	expect("again", take(a, nil), "hit A")
	a.Done()
	a.Done()

	b := c.NewItem(3)
	b.Retain()
	b.Retain()
	expect("another", take(b, nil), "build ")
	b.Put("B", 10) // two uses to come besides this, of A one: A makes room
	expect("freed", freed, "[A]")
	b.Done()
	expect("of A", take(a, nil), "build ")
	a.Put("A", 10) // no more uses to come: there is no need of room
	a.Done()
	expect("freed", freed, "[A A]")
	d := c.NewItem(3)
	d.Retain()
	d.Retain()
	expect("a third", take(d, nil), "build ")
	d.Put("D", 10) // two uses to come, as of B: no room
	expect("kept", take(b, nil), "hit B")
	d.Done()
	b.Done()
	expect("the last of B", take(b, nil), "hit B")
	b.Done()
	expect("freed", freed, "[A A D B]")
	expect("stats", c.Stats(), echo.CacheStats{Hits: 3, Builds: 3, Rebuilds: 1, Evicted: 1, Refused: 1, Peak: 20})
}

// A value of whose uses the last is under way is let go of after it, so that
// nothing makes room for it, however small it is.
func TestCacheKeepsNoPlaceForLastUses(t *testing.T) {
	c := echo.NewCache(10, func(string) {})
	large := c.NewItem(2)
	large.Retain()
	large.Take(nil)
	large.Put("large", 10)
	large.Done()
	last := c.NewItem(1)
	last.Take(nil)
	last.Put("last", 1)
	last.Done()
	if v, taken := large.Take(nil); taken != echo.Hit || v != "large" {
		t.Errorf("%v %q", taken, v)
	}
	if s := c.Stats(); s.Evicted != 0 || s.Refused != 0 || s.Bytes != 10 {
		t.Errorf("%+v", s)
	}
}

func TestCacheFail(t *testing.T) {
	c := echo.NewCache(10, func(int) {})
	it := c.NewItem(2)
	it.Retain()
	it.Take(nil)
	var w waiter
	it.Take(&w)
	it.Fail()
	if w != 1 {
		t.Fatal("who waits is not told of a failure")
	}
	if _, taken := it.Take(nil); taken != echo.Build {
		t.Fatalf("after a failure: %v", taken)
	}
	it.Fail()
	if s := c.Stats(); s.Bytes != 0 || s.Builds != 1 || s.Rebuilds != 1 {
		t.Errorf("%+v", s)
	}
}

// TestCacheHolds plays random uses of random samples: a value that is there is
// the sample's, no more is held than allowed but for what is in use, and every
// value is freed once.
func TestCacheHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type value struct{ of, bytes int }
		limit := rapid.IntRange(0, 50).Draw(t, "limit")
		held := map[*value]bool{}
		c := echo.NewCache(int64(limit), func(v *value) {
			if !held[v] {
				t.Fatal("freed twice")
			}
			delete(held, v)
		})
		type use struct {
			it *echo.Item[*value]
			of int
			v  *value
		}
		var coming, under []use
		building := map[int]bool{}
		for of := range rapid.IntRange(1, 12).Draw(t, "samples") {
			n := rapid.IntRange(1, 5).Draw(t, "copies")
			it := c.NewItem(n)
			for i := range n {
				if i > 0 {
					it.Retain()
				}
				coming = append(coming, use{it: it, of: of})
			}
		}
		for len(coming)+len(under) > 0 {
			if i := rapid.IntRange(0, len(coming)+len(under)-1).Draw(t, "which"); i < len(coming) {
				u := coming[i]
				if rapid.IntRange(0, 9).Draw(t, "dropped") == 0 && !building[u.of] {
					u.it.Release()
					coming = slices.Delete(coming, i, i+1)
					continue
				}
				v, taken := u.it.Take(nil)
				switch taken {
				case echo.Wait:
					if !building[u.of] {
						t.Fatal("waits for nobody")
					}
					continue
				case echo.Build:
					building[u.of] = true
				case echo.Hit:
					if v.of != u.of || !held[v] {
						t.Fatalf("a value of %d for %d", v.of, u.of)
					}
					u.v = v
				}
				coming = slices.Delete(coming, i, i+1)
				under = append(under, u)
			} else {
				u := &under[i-len(coming)]
				switch {
				case u.v == nil && rapid.IntRange(0, 4).Draw(t, "fails") == 0:
					delete(building, u.of)
					u.it.Fail()
					under = slices.Delete(under, i-len(coming), i-len(coming)+1)
				case u.v == nil:
					u.v = &value{u.of, rapid.IntRange(0, 20).Draw(t, "bytes")}
					held[u.v] = true
					delete(building, u.of)
					u.it.Put(u.v, int64(u.v.bytes))
				default:
					u.it.Done()
					under = slices.Delete(under, i-len(coming), i-len(coming)+1)
				}
			}
			sum, used := 0, 0
			inUse := map[*value]bool{}
			for _, u := range under {
				if u.v != nil && !inUse[u.v] {
					inUse[u.v] = true
					used += u.v.bytes
				}
			}
			for v := range held {
				sum += v.bytes
			}
			if s := c.Stats(); s.Bytes != int64(sum) || sum > limit+used {
				t.Fatalf("%d bytes are held, %d in use, of %d: %+v", sum, used, limit, s)
			}
		}
		if len(held) > 0 {
			t.Fatalf("%d values are left", len(held))
		}
	})
}

func TestCacheTogether(t *testing.T) {
	var freed sync.Map
	c := echo.NewCache(100, func(v *int) {
		if _, twice := freed.LoadOrStore(v, true); twice {
			t.Error("freed twice")
		}
	})
	var all sync.WaitGroup
	for of := range 50 {
		it := c.NewItem(8)
		for range 7 {
			it.Retain()
		}
		for range 8 {
			all.Go(func() {
				again := make(signal, 1)
				for {
					v, taken := it.Take(again)
					switch taken {
					case echo.Wait:
						<-again
						continue
					case echo.Build:
						v = new(int)
						*v = of
						it.Put(v, int64(of))
					}
					if *v != of {
						t.Errorf("a value of %d for %d", *v, of)
					}
					it.Done()
					return
				}
			})
		}
	}
	all.Wait()
	if s := c.Stats(); s.Bytes != 0 || s.Hits+s.Builds+s.Rebuilds != 400 {
		t.Errorf("%+v", s)
	}
}

type signal chan struct{}

func (s signal) Again() { s <- struct{}{} }

func TestCacheAllocatesNothing(t *testing.T) {
	c := echo.NewCache(100, func(int) {})
	if n := testing.AllocsPerRun(100, func() {
		it := c.NewItem(2)
		it.Retain()
		it.Take(nil)
		it.Put(1, 10)
		it.Done()
		it.Take(nil)
		it.Done()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
