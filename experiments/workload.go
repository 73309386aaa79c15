package main

import (
	"context"
	"fmt"
	"path/filepath"

	"shardtool/augment"
	"shardtool/experiments/internal/nn"
	"shardtool/format"
	"shardtool/loader"
	"shardtool/reader"
	"shardtool/reader/store"
	"shardtool/tensor"
)

// Workload is something to learn: data, a network, and how well it is learned.
type Workload struct {
	Folder string // in fixtures
	Train  int    // samples there
	Batch  int    // samples
	Shape  nn.Shape

	columns func(test bool) ([]loader.Column, error)
	// train does a step on a batch; test returns the metric's sums: loss, right, count.
	train func(n *nn.Net, b *loader.Batch, rate float32)
	test  func(n *nn.Net, b *loader.Batch) (loss float64, right, count int)
}

var workloads = map[string]*Workload{
	"digits":      digits(128),
	"wide digits": digits(512), // whose step takes several times as long as the augmentation
	"text": {
		Folder: "text", Train: 8192, Batch: 16,
		Shape:   nn.Shape{Symbols: symbols, Context: contextLength, Embed: 8, Layers: []int{contextLength * 8, 32, symbols}},
		columns: textColumns, train: trainText, test: testText,
	},
}

// digits are learned by a network with so many hidden units.
func digits(hidden int) *Workload {
	return &Workload{
		Folder: "digits", Train: 1280, Batch: 32, Shape: nn.Shape{Layers: []int{side * side, hidden, 10}},
		columns: digitColumns, train: trainDigits, test: testDigits,
	}
}

// The pictures of digits are of side x side pixels.
const side = 8

// digitColumns are the picture and the label. Training turns, moves and partly
// overwrites the picture; each copy that is augmented anew is another one.
func digitColumns(test bool) ([]loader.Column, error) {
	gray, normal := augment.Grayscale{}, augment.Normalize{Mean: [3]float64{0.305, 0.305, 0.305}, Std: [3]float64{0.376, 0.376, 0.376}}
	ops := []augment.Op{augment.CenterCrop{Size: side}, gray, normal}
	if !test {
		ops = []augment.Op{
			augment.RandomRotation{Degrees: 15, Interpolation: augment.Bilinear},
			augment.RandomCrop{Size: side, Padding: augment.AllEdges(1)},
			gray, normal,
			augment.RandomErasing{P: 0.25, Random: true},
		}
	}
	t, err := augment.Compile(ops...)
	if err != nil {
		return nil, err
	}
	return []loader.Column{loader.Image("image/encoded", t), loader.Int64("image/class/label")}, nil
}

func trainDigits(n *nn.Net, b *loader.Batch, rate float32) {
	n.Step(b.Float32(0), b.Int64(1), rate)
}

func testDigits(n *nn.Net, b *loader.Batch) (float64, int, int) {
	loss, right := n.Evaluate(b.Float32(0), b.Int64(1))
	return loss * float64(b.Len()), right, b.Len()
}

// A record of text is contextLength characters and targets that follow, each to
// be predicted from the contextLength before it.
const (
	contextLength = 8
	targets       = 8
	symbols       = 32
)

// alphabet is what text is made of, in the order of the symbols' numbers.
const alphabet = " abcdefghijklmnopqrstuvwxyz.,-()"

var symbolOf = func() (of [256]int16) {
	for i := range of {
		of[i] = -1
	}
	for i, c := range []byte(alphabet) {
		of[c] = int16(i)
	}
	return of
}()

// textColumns are the contexts, [targets contextLength], and the targets. There is no
// augmentation: the copies of a sample are equal whatever is kept.
func textColumns(bool) ([]loader.Column, error) {
	code := func(s *format.Sample) ([]byte, error) {
		f := s.Field(reader.RawField)
		if f == nil || len(f.Data) != contextLength+targets {
			return nil, fmt.Errorf("not a record of %d characters", contextLength+targets)
		}
		for _, c := range f.Data {
			if symbolOf[c] < 0 {
				return nil, fmt.Errorf("the character %q is not of the alphabet", c)
			}
		}
		return f.Data, nil
	}
	contexts := func(dst tensor.Dense, s *format.Sample, _ augment.Draws) error {
		record, err := code(s)
		if err != nil {
			return err
		}
		to := dst.Uint8()
		for t := range targets {
			for i := range contextLength {
				to[t*contextLength+i] = uint8(symbolOf[record[t+i]])
			}
		}
		return nil
	}
	next := func(dst tensor.Dense, s *format.Sample, _ augment.Draws) error {
		record, err := code(s)
		if err != nil {
			return err
		}
		for t, c := range record[contextLength:] {
			dst.Int64()[t] = int64(symbolOf[c])
		}
		return nil
	}
	return []loader.Column{
		loader.Func("contexts", tensor.Uint8, tensor.Shape{targets, contextLength}, contexts),
		loader.Func("targets", tensor.Int64, tensor.Shape{targets}, next),
	}, nil
}

func trainText(n *nn.Net, b *loader.Batch, rate float32) {
	n.StepSymbols(b.Column(0).Uint8(), b.Int64(1), rate)
}

func testText(n *nn.Net, b *loader.Batch) (float64, int, int) {
	loss, right := n.EvaluateSymbols(b.Column(0).Uint8(), b.Int64(1))
	count := b.Len() * targets
	return loss * float64(count), right, count
}

// open returns the workload's training or test data in a folder of fixtures.
func (w *Workload) open(fixtures string, st store.Store, test bool) *reader.Dataset {
	name := "train.tfrecord"
	if test {
		name = "test.tfrecord"
	}
	if st == nil {
		st = &store.Local{}
	}
	o := &reader.Options{CacheDir: "-"}
	if w.Shape.Symbols > 0 {
		o.Type = reader.Raw
	}
	return reader.New(st, []string{filepath.Join(fixtures, w.Folder, name)}, o)
}

// examples are the test data, in memory, as the loader gives them.
type examples struct {
	w       *Workload
	batches []*loader.Batch
	close   func()
}

// load reads the test data through the loader's evaluation preset.
func (w *Workload) load(ctx context.Context, fixtures string) (*examples, error) {
	columns, err := w.columns(true)
	if err != nil {
		return nil, err
	}
	ld, err := loader.New(ctx, w.open(fixtures, nil, true), (&loader.Options{
		Columns: columns, GlobalBatch: 128, World: 1, Workers: 1, Hold: 1 << 10,
	}).Evaluation())
	if err != nil {
		return nil, err
	}
	e := &examples{w: w, close: func() { ld.Close() }}
	for b, err := range ld.Batches(ctx) {
		if err != nil {
			return nil, err
		}
		e.batches = append(e.batches, b)
	}
	return e, nil
}

// metric returns the network's mean loss in nats, which decides about targets,
// and the share that it classifies rightly.
func (e *examples) metric(n *nn.Net) (loss, accuracy float64) {
	var right, count int
	for _, b := range e.batches {
		l, r, c := e.w.test(n, b)
		loss, right, count = loss+l, right+r, count+c
	}
	return loss / float64(count), float64(right) / float64(count)
}
