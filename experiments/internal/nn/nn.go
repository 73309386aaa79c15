// Package nn is a small neural network: an optional embedding of symbols, dense
// layers with ReLU between them, softmax with cross-entropy at the end, and
// stochastic gradient descent with momentum.
//
//	symbols [n][context] ─ embedding ─┐
//	                                  ├─▶ [n][in] ─ dense, ReLU ─ ... ─ dense ─▶ [n][classes] ─ softmax, cross-entropy
//	numbers [n][in] ──────────────────┘
//
// It is plain Go on one goroutine, so that a run of a seed is the same on the
// same machine, and a step of 32 pictures takes a quarter of a millisecond.
package nn

import (
	"math"
	"math/rand/v2"
)

// Shape is what a network is made of.
type Shape struct {
	Symbols, Context, Embed int   // an embedding of Context symbols below Symbols in Embed numbers each; 0: none
	Layers                  []int // widths: the first is that of the input, Context*Embed behind an embedding; the last the number of classes
}

// Momentum is the share of the last step that the next one keeps.
const Momentum = 0.9

// Net is a network. It is for one goroutine.
type Net struct {
	shape  Shape
	params []*param
	embed  *param
	dense  []dense

	in      []float32 // what the embedding made
	in0     []float32 // the gradient there
	symbols []uint8
}

type dense struct {
	in, out int
	w, b    *param
	y, dy   []float32 // of the last batch: outputs behind ReLU, and the gradients there
}

// param is a set of numbers that are learned, with gradient and velocity.
type param struct{ v, g, m []float32 }

func newParam(n int) *param {
	return &param{make([]float32, n), make([]float32, n), make([]float32, n)}
}

// New returns a network with weights drawn from the seed: normal, of variance
// 2/in behind ReLU (He et al., arXiv 1502.01852), biases of zero, and embeddings
// of standard deviation 1/2.
func New(s Shape, seed uint64) *Net {
	rng := rand.New(rand.NewPCG(seed, 0x6e6e))
	n := &Net{shape: s}
	add := func(size int, deviation float64) *param {
		p := newParam(size)
		for i := range p.v {
			p.v[i] = float32(rng.NormFloat64() * deviation)
		}
		n.params = append(n.params, p)
		return p
	}
	if s.Symbols > 0 {
		n.embed = add(s.Symbols*s.Embed, 0.5)
	}
	for i := 1; i < len(s.Layers); i++ {
		in, out := s.Layers[i-1], s.Layers[i]
		n.dense = append(n.dense, dense{in: in, out: out, w: add(in*out, math.Sqrt(2/float64(in))), b: add(out, 0)})
	}
	return n
}

// Step trains on a batch of numbers, [n][in], and returns its mean loss in nats
// before the step.
func (n *Net) Step(x []float32, labels []int64, rate float32) float64 {
	loss := n.gradients(x, labels)
	n.descend(rate)
	return loss
}

// StepSymbols is Step for a network with an embedding: symbols are [n][context].
func (n *Net) StepSymbols(symbols []uint8, labels []int64, rate float32) float64 {
	return n.Step(n.lookUp(symbols), labels, rate)
}

// Evaluate returns the mean loss in nats of a batch, and how many of it are
// classified rightly.
func (n *Net) Evaluate(x []float32, labels []int64) (loss float64, right int) {
	return n.loss(n.forward(x, len(labels)), labels, nil)
}

// EvaluateSymbols is Evaluate for a network with an embedding.
func (n *Net) EvaluateSymbols(symbols []uint8, labels []int64) (loss float64, right int) {
	return n.Evaluate(n.lookUp(symbols), labels)
}

func (n *Net) lookUp(symbols []uint8) []float32 {
	e := n.shape.Embed
	n.symbols = symbols
	n.in = grow(n.in, len(symbols)*e)
	for i, s := range symbols {
		copy(n.in[i*e:][:e], n.embed.v[int(s)*e:])
	}
	return n.in
}

// forward returns the logits of count samples.
func (n *Net) forward(x []float32, count int) []float32 {
	for i := range n.dense {
		d := &n.dense[i]
		d.y = grow(d.y, count*d.out)
		for s := range count {
			y := d.y[s*d.out:][:d.out]
			copy(y, d.b.v)
			addRows(y, x[s*d.in:][:d.in], d.w.v)
			if i < len(n.dense)-1 {
				for j, v := range y {
					y[j] = max(v, 0)
				}
			}
		}
		x = d.y
	}
	return x
}

// gradients fills the gradients of all parameters with those of the batch's mean
// loss.
func (n *Net) gradients(x []float32, labels []int64) float64 {
	count := len(labels)
	logits := n.forward(x, count)
	last := len(n.dense) - 1
	n.dense[last].dy = grow(n.dense[last].dy, len(logits))
	loss, _ := n.loss(logits, labels, n.dense[last].dy)
	for i := last; i >= 0; i-- {
		d := &n.dense[i]
		in, into := x, []float32(nil)
		switch {
		case i > 0:
			below := &n.dense[i-1]
			below.dy = grow(below.dy, len(below.y))
			in, into = below.y, below.dy
		case n.embed != nil:
			n.in0 = grow(n.in0, len(n.in))
			into = n.in0
		}
		d.backward(in, into, count, i > 0)
	}
	if n.embed != nil {
		e := n.shape.Embed
		clear(n.embed.g)
		for i, s := range n.symbols {
			g, from := n.embed.g[int(s)*e:][:e], n.in0[i*e:][:e]
			for j, v := range from {
				g[j] += v
			}
		}
	}
	return loss
}

// loss returns the mean loss and, where dy is not nil, its gradient at the
// logits.
func (n *Net) loss(logits []float32, labels []int64, dy []float32) (loss float64, right int) {
	classes := n.shape.Layers[len(n.shape.Layers)-1]
	share := 1 / float32(len(labels))
	for s, label := range labels {
		z := logits[s*classes:][:classes]
		best := 0
		for j, v := range z {
			if v > z[best] {
				best = j
			}
		}
		if int64(best) == label {
			right++
		}
		var sum float64
		for _, v := range z {
			sum += math.Exp(float64(v - z[best]))
		}
		loss += math.Log(sum) - float64(z[label]-z[best])
		if dy != nil {
			d := dy[s*classes:][:classes]
			for j, v := range z {
				d[j] = share * float32(math.Exp(float64(v-z[best]))/sum)
			}
			d[label] -= share
		}
	}
	return loss / float64(len(labels)), right
}

// backward takes the gradients at the outputs to those of the weights, and to
// those at the inputs where into is not nil; behind ReLU they are zero where the
// input is.
func (d *dense) backward(x, into []float32, count int, relu bool) {
	clear(d.w.g)
	clear(d.b.g)
	for s := range count {
		dy := d.dy[s*d.out:][:d.out]
		for j, v := range dy {
			d.b.g[j] += v
		}
	}
	for s := 0; s < count; s += 4 {
		addOuter(d.w.g, x, d.dy, s, min(4, count-s), d.in, d.out)
	}
	if into == nil {
		return
	}
	for s := range count {
		dy, row, dx := d.dy[s*d.out:][:d.out], x[s*d.in:][:d.in], into[s*d.in:][:d.in]
		for k := range dx {
			if dx[k] = 0; !relu || row[k] > 0 {
				dx[k] = dot(dy, d.w.v[k*d.out:])
			}
		}
	}
}

func (n *Net) descend(rate float32) {
	for _, p := range n.params {
		v, m := p.v[:len(p.g)], p.m[:len(p.g)]
		for i, g := range p.g {
			m[i] = Momentum*m[i] + g
			v[i] -= rate * m[i]
		}
	}
}

// addRows adds to y the rows of w, [len(x)][len(y)], each times its x.
func addRows(y, x, w []float32) {
	n, k := len(y), 0
	for ; k+4 <= len(x); k += 4 {
		a, b, c, d := x[k], x[k+1], x[k+2], x[k+3]
		w0, w1, w2, w3 := w[k*n:][:n], w[k*n+n:][:n], w[k*n+2*n:][:n], w[k*n+3*n:][:n]
		for j := range y {
			y[j] += a*w0[j] + b*w1[j] + c*w2[j] + d*w3[j]
		}
	}
	for ; k < len(x); k++ {
		a, row := x[k], w[k*n:][:n]
		for j := range y {
			y[j] += a * row[j]
		}
	}
}

// addOuter adds the outer products of up to four samples' inputs and gradients
// from sample s on to g, [in][out].
func addOuter(g, x, dy []float32, s, count, in, out int) {
	if count < 4 {
		for ; count > 0; count-- {
			d := dy[s*out:][:out]
			for k, a := range x[s*in:][:in] {
				row := g[k*out:][:out]
				for j := range row {
					row[j] += a * d[j]
				}
			}
			s++
		}
		return
	}
	x0, x1, x2, x3 := x[s*in:][:in], x[s*in+in:][:in], x[s*in+2*in:][:in], x[s*in+3*in:][:in]
	d0, d1, d2, d3 := dy[s*out:][:out], dy[s*out+out:][:out], dy[s*out+2*out:][:out], dy[s*out+3*out:][:out]
	for k := range x0 {
		a, b, c, d := x0[k], x1[k], x2[k], x3[k]
		row := g[k*out:][:out]
		for j := range row {
			row[j] += a*d0[j] + b*d1[j] + c*d2[j] + d*d3[j]
		}
	}
}

func dot(x, y []float32) float32 {
	y = y[:len(x)]
	var a, b, c, d float32
	j := 0
	for ; j+4 <= len(x); j += 4 {
		a += x[j] * y[j]
		b += x[j+1] * y[j+1]
		c += x[j+2] * y[j+2]
		d += x[j+3] * y[j+3]
	}
	for ; j < len(x); j++ {
		a += x[j] * y[j]
	}
	return (a + b) + (c + d)
}

// grow returns a slice of n elements, of s where that is large enough.
func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}
