package nn

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestGradients compares every gradient with the difference of the loss when its
// parameter moves.
func TestGradients(t *testing.T) {
	for _, tt := range []struct {
		name  string
		shape Shape
		count int
	}{
		{"dense", Shape{Layers: []int{6, 5, 7, 3}}, 5},
		{"one layer", Shape{Layers: []int{3, 4}}, 8},
		{"symbols", Shape{Symbols: 5, Context: 3, Embed: 2, Layers: []int{6, 4, 5}}, 9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			n := New(tt.shape, 3)
			for _, p := range n.params { // away from the kink of ReLU, and with biases
				for i := range p.v {
					p.v[i] += float32(rng.Float64()) * 0.2
				}
			}
			in, classes := tt.shape.Layers[0], tt.shape.Layers[len(tt.shape.Layers)-1]
			x, symbols, labels := make([]float32, tt.count*in), make([]uint8, tt.count*tt.shape.Context), make([]int64, tt.count)
			for i := range x {
				x[i] = float32(rng.NormFloat64())
			}
			for i := range symbols {
				symbols[i] = uint8(rng.IntN(tt.shape.Symbols))
			}
			for i := range labels {
				labels[i] = rng.Int64N(int64(classes))
			}
			input := func() []float32 {
				if tt.shape.Symbols > 0 {
					return n.lookUp(symbols)
				}
				return x
			}
			loss := n.gradients(input(), labels)
			if e, _ := n.Evaluate(input(), labels); e != loss {
				t.Errorf("the loss is %v in training and %v in evaluation", loss, e)
			}
			const h = 2e-3
			for k, p := range n.params {
				for i := range p.v {
					was := p.v[i]
					p.v[i] = was + h
					above, _ := n.Evaluate(input(), labels)
					p.v[i] = was - h
					below, _ := n.Evaluate(input(), labels)
					p.v[i] = was
					if want := (above - below) / (2 * h); math.Abs(want-float64(p.g[i])) > 2e-3+0.02*math.Abs(want) {
						t.Errorf("parameter %d of set %d: gradient %v, difference %v", i, k, p.g[i], want)
					}
				}
			}
		})
	}
}

// TestLoss is by hand: equal logits of four classes give log 4, and a first step
// from zero weights moves the biases alone.
func TestLoss(t *testing.T) {
	n := New(Shape{Layers: []int{2, 4}}, 1)
	clear(n.dense[0].w.v)
	loss, right := n.Evaluate([]float32{0, 0, 0, 0}, []int64{0, 3})
	if math.Abs(loss-math.Log(4)) > 1e-7 || right != 1 {
		t.Errorf("loss %v, %d right", loss, right)
	}
	n.Step([]float32{0, 0, 0, 0}, []int64{0, 3}, 0.5)
	for i, want := range []float32{0.125, -0.125, -0.125, 0.125} { // -0.5 (1/4 - 1/2), -0.5 (1/4)
		if n.dense[0].b.v[i] != want {
			t.Errorf("bias %d is %v, want %v", i, n.dense[0].b.v[i], want)
		}
	}
	n.Step([]float32{0, 0, 0, 0}, []int64{0, 3}, 0)
	if n.dense[0].b.v[0] != 0.125 {
		t.Error("a step at rate 0 moved something")
	}
}

// TestLearns: what can be learned is, and the same way for the same seed.
func TestLearns(t *testing.T) {
	var last [2]float64
	for i := range last {
		n := New(Shape{Layers: []int{2, 16, 2}}, 7)
		rng := rand.New(rand.NewPCG(1, 1))
		x, labels := make([]float32, 64), make([]int64, 32)
		for range 400 {
			for s := range labels {
				a, b := rng.NormFloat64(), rng.NormFloat64()
				x[2*s], x[2*s+1], labels[s] = float32(a), float32(b), 0
				if a*b > 0 { // not a linear matter
					labels[s] = 1
				}
			}
			last[i] = n.Step(x, labels, 0.05)
		}
	}
	if last[0] > 0.25 || last[0] != last[1] {
		t.Errorf("losses %v, want two equal ones below 0.25", last)
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	n := New(Shape{Symbols: 4, Context: 2, Embed: 4, Layers: []int{8, 8, 4}}, 1)
	symbols, labels := []uint8{0, 1, 2, 3, 1, 1}, []int64{0, 1, 2}
	if a := testing.AllocsPerRun(10, func() { n.StepSymbols(symbols, labels, 0.1) }); a != 0 {
		t.Errorf("%v allocations a step", a)
	}
}

func BenchmarkStep(b *testing.B) {
	for _, tt := range []struct {
		name  string
		shape Shape
		count int
	}{
		{"digits", Shape{Layers: []int{64, 128, 10}}, 32},
		{"text", Shape{Symbols: 32, Context: 8, Embed: 8, Layers: []int{64, 64, 32}}, 128},
	} {
		b.Run(tt.name, func(b *testing.B) {
			n := New(tt.shape, 1)
			x, symbols, labels := make([]float32, tt.count*64), make([]uint8, tt.count*8), make([]int64, tt.count)
			for i := range x {
				x[i] = float32(i%7) - 3
			}
			for b.Loop() {
				if tt.shape.Symbols > 0 {
					n.StepSymbols(symbols, labels, 0)
				} else {
					n.Step(x, labels, 0)
				}
			}
		})
	}
}
