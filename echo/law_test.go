package echo_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shardtool/echo"
)

// near: the numbers of these tests are worked out by hand.
func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b))
}

func TestLaw(t *testing.T) {
	network := echo.Costs{Fetch: 6, Decode: 0.5, Augment: 0.25, Step: 1}
	cores := echo.Costs{Fetch: 1, Decode: 6, Augment: 2, Step: 1}
	for _, tt := range []struct {
		name     string
		c        echo.Costs
		u        echo.Unit
		k        echo.Level
		up, down float64
		e        float64
		perFresh float64
	}{
		{"up to R", network, echo.Sample, echo.Bytes, 6, 1, 5, 6},
		{"at R", network, echo.Sample, echo.Bytes, 6, 1, 6, 6},
		{"above R", network, echo.Sample, echo.Bytes, 6, 1, 8, 8},
		{"the level of a sample", network, echo.Sample, echo.Natural, 6, 1, 8, 8},
		{"a shard", network, echo.Shard, echo.Natural, 6, 1, 8, 8},
		{"decoded", network, echo.Sample, echo.Decoded, 6, 1, 4, 6},
		{"each copy is decoded", cores, echo.Sample, echo.Bytes, 1, 8, 3, 24},
		{"the cores decode and augment", cores, echo.Sample, echo.Decoded, 6, 2, 3, 12},
		{"equal copies", cores, echo.Sample, echo.Augmented, 8, 1, 8, 8},
		{"equal copies above R", cores, echo.Sample, echo.Augmented, 8, 1, 16, 16},
		{"batches", cores, echo.Batch, echo.Natural, 8, 1, 4, 8},
		{"without echo", cores, echo.Sample, echo.Decoded, 6, 2, 1, 8},
		{"fraction", network, echo.Sample, echo.Bytes, 6, 1, 1.5, 6},
	} {
		up, down := tt.c.Split(tt.u, tt.k)
		if up != tt.up || down != tt.down || !near(tt.c.R(tt.u, tt.k), tt.up/tt.down) {
			t.Errorf("%s: %v up, %v down, R %v; want %v, %v", tt.name, up, down, tt.c.R(tt.u, tt.k), tt.up, tt.down)
		}
		got, each := tt.c.PerFresh(tt.u, tt.k, tt.e), tt.c.PerEmission(tt.u, tt.k, tt.e)
		if !near(got, tt.perFresh) || !near(each, tt.perFresh/tt.e) {
			t.Errorf("%s: %v a fresh sample, %v an emission; want %v, %v", tt.name, got, each, tt.perFresh, tt.perFresh/tt.e)
		}
	}
	if r := (echo.Costs{Fetch: 1}).R(echo.Batch, echo.Batched); !math.IsInf(r, 1) {
		t.Errorf("R is %v with nothing behind the echo", r)
	}
}

func TestSpeedup(t *testing.T) {
	for _, tt := range []struct{ r, e, fresh, want float64 }{
		{6, 5, 3.25, 3.25}, // the paper's headline, where e is below R: all that is saved of fresh samples is time
		{6, 12, 4, 2},
		{4, 4, 4, 4},
		{0.5, 2, 2, 1}, // no gain where the accelerator is the bottleneck
		{1, 2, 1.5, 0.75},
		{3, 1, 1, 1},
	} {
		if got := echo.Speedup(tt.r, tt.e, tt.fresh); !near(got, tt.want) {
			t.Errorf("Speedup(%v, %v, %v) is %v, want %v", tt.r, tt.e, tt.fresh, got, tt.want)
		}
	}
}

func TestRecommend(t *testing.T) {
	const ms = 1e-3
	for _, tt := range []struct {
		name                         string
		fetch, decode, augment, step float64 // ms
		keep                         echo.Level
		factor, r                    float64
		fresh, emitted               float64 // a second
		bottleneck                   string
		reason                       string
	}{
		{"nothing measured", 0, 0, 0, 0, echo.Bytes, 1, 0, 0, 0, "", "nothing was measured"},
		{"the accelerator", 1, 0.5, 0.2, 2, echo.Bytes, 1, 0.5, 500, 500, "accelerator", "2 ms a sample, and the input keeps up"},
		{"balanced", 2, 0.5, 0.2, 2, echo.Bytes, 1, 1, 500, 500, "accelerator", "the input keeps up"},
		{"hardly more", 2.2, 0.5, 0.2, 2, echo.Bytes, 1, 1.1, 1 / 2.2e-3, 1 / 2.2e-3, "fetch", "1.1 times as long as a step: too little for copies"},
		{"a fraction", 1.3, 0.1, 0.1, 1, echo.Bytes, 1.25, 1.3, 1 / 1.3e-3, 1.25 / 1.3e-3, "fetch", "1.3 times as long as a step"},
		{"a network", 6, 0.5, 0.25, 1, echo.Bytes, 6, 6, 1 / 6e-3, 1000, "fetch",
			"fetching takes longest, 6 ms a sample; up to the echo it is 6 times as long as a step: each sample that is fetched can be decoded and augmented 6 times"},
		{"whole numbers", 2.9, 0.1, 0.1, 1, echo.Bytes, 2, 2.9, 1 / 2.9e-3, 2 / 2.9e-3, "fetch", "2.9 times"},
		{"no more than eight", 40, 0.1, 0.1, 1, echo.Bytes, 8, 40, 25, 200, "fetch", "8 times"},
		{"a network and slow cores", 6, 2, 0.5, 1, echo.Decoded, 6, 6, 1 / 6e-3, 1000, "fetch", "each sample that is decoded can be augmented anew 6 times"},
		{"decoding", 0.5, 4, 0.5, 1, echo.Decoded, 4, 4, 1 / 6e-3, 4 / 6e-3, "decode", "augmented anew 4 times; the cores' work for the copies leaves 75% of the fresh samples"},
		{"augmenting", 0.5, 1, 4, 0.5, echo.Augmented, 8, 10, 1 / 5e-3, 8 / 5e-3, "augment", "as it is"},
		{"no step time", 6, 0.5, 0.25, 0, echo.Bytes, 8, 8, 1 / 6e-3, 8 / 6e-3, "fetch", "step time is not known"},
		{"no step time, slow augmenting", 0.5, 1, 4, 0, echo.Bytes, 1, 0.1, 200, 200, "augment", "too little for copies"},
	} {
		c := echo.Costs{Fetch: tt.fetch * ms, Decode: tt.decode * ms, Augment: tt.augment * ms, Step: tt.step * ms}
		a := c.Recommend()
		if a.Unit != echo.Sample || a.Keep != tt.keep || a.Factor != tt.factor || a.Bottleneck != tt.bottleneck {
			t.Errorf("%s: %+v", tt.name, a)
		}
		if !near(a.R, tt.r) || !near(a.FreshPerS, tt.fresh) || !near(a.EmittedPerS, tt.emitted) {
			t.Errorf("%s: R %v, %v fresh and %v emitted a second; want %v, %v, %v", tt.name, a.R, a.FreshPerS, a.EmittedPerS, tt.r, tt.fresh, tt.emitted)
		}
		if !strings.Contains(a.Reason, tt.reason) {
			t.Errorf("%s: %q, want %q", tt.name, a.Reason, tt.reason)
		}
	}
}

func drawCosts(t *rapid.T) echo.Costs {
	draw := func(name string) float64 {
		if rapid.IntRange(0, 9).Draw(t, name+" is none") == 0 {
			return 0
		}
		return math.Pow(10, rapid.Float64Range(-6, 1).Draw(t, name))
	}
	return echo.Costs{Fetch: draw("fetch"), Decode: draw("decode"), Augment: draw("augment"), Step: draw("step")}
}

func TestRecommendProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCosts(t)
		a := c.Recommend()
		o, _, err := echo.Options{Unit: a.Unit, Keep: a.Keep, Factor: a.Factor}.Check()
		switch {
		case err != nil || o.Factor != a.Factor:
			t.Fatalf("%+v cannot be asked for: %v", a, err)
		case a.Factor > echo.MaxAdvised, a.Factor > 1 && a.Factor > a.R*(1+1e-6):
			t.Fatalf("a factor of %v with R %v", a.Factor, a.R)
		case a.Factor > 1 && c.Step >= max(c.Fetch, c.Decode+c.Augment):
			t.Fatalf("echo where the accelerator is the bottleneck: %+v", a)
		case a.PerEmission > c.PerEmission(echo.Sample, echo.Bytes, 1)*(1+1e-9):
			t.Fatalf("echo that makes emissions slower: %+v", a)
		case a.Reason == "":
			t.Fatal("no reason")
		}
	})
}

// TestLawProperties: a factor more never makes a fresh sample cheaper nor an
// emission dearer; and where the cores do not work on both sides of the echo,
// the law is the paper's.
func TestLawProperties(t *testing.T) {
	pairs := []struct {
		u echo.Unit
		k echo.Level
	}{{echo.Shard, echo.Bytes}, {echo.Sample, echo.Bytes}, {echo.Sample, echo.Decoded}, {echo.Sample, echo.Augmented}, {echo.Batch, echo.Batched}}
	rapid.Check(t, func(t *rapid.T) {
		c := drawCosts(t)
		p := rapid.SampledFrom(pairs).Draw(t, "unit and level")
		e := rapid.Float64Range(1, 32).Draw(t, "e")
		more := e * rapid.Float64Range(1, 4).Draw(t, "more")
		fresh := c.PerFresh(p.u, p.k, e)
		if c.PerFresh(p.u, p.k, more) < fresh || c.PerEmission(p.u, p.k, more) > c.PerEmission(p.u, p.k, e)*(1+1e-12) {
			t.Fatalf("%+v: from %v to %v", c, e, more)
		}
		up, down := c.Split(p.u, p.k)
		if law := max(up, e*down); p.k != echo.Decoded && !near(fresh, law) || fresh < law*(1-1e-12) {
			t.Fatalf("%+v: %v, the law says %v", c, fresh, law)
		}
	})
}
