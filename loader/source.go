package loader

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/order"
	"shardtool/reader/store"
)

// source is the data: shards that can be read in order, and at places that are
// known.
type source interface {
	names() []string
	// parts are the data sets and their shards as the order sees them.
	parts() []order.Part
	// holds is how many bytes the stores may hold.
	holds() int64
	// limit is how many bytes a sample of that shard may have.
	limit(shard int) int64
	// far reports whether a read of that shard goes over a network.
	far(shard int) bool
	// run reads samples from to to-1 of a shard in order; to may be unknown.
	// Records of a TFRecord are not parsed.
	run(ctx context.Context, shard int, from, to int64) (samples, error)
	// places tells where the samples of a shard stand, or nil where that is not
	// known.
	places(ctx context.Context, shard int) (places, error)
	// findPlaces finds out the places of all shards before they are asked for,
	// so many at a time.
	findPlaces(ctx context.Context, together int)
	// read fills the spans from a shard.
	read(ctx context.Context, shard int, spans []store.Span) error
	// sample reads one sample, whatever that takes.
	sample(ctx context.Context, shard int, index int64) (*format.Sample, error)
	parser() parser
	close() error
}

// samples reads a stretch of a shard. Next lends a sample until the next call
// and ends with io.EOF; an error is in the place of a sample, and Resume reports
// whether Next goes on behind it.
type samples interface {
	Next() (*format.Sample, error)
	Resume() bool
	Close() error
}

// places are the first byte of each sample of a shard and the one behind it.
type places interface {
	Len() int
	At(i int) (off, end int64)
}

// parser makes samples of bytes. It is for one goroutine.
type parser interface {
	Sample(shard int, index, off int64, data []byte) (*format.Sample, error)
	FillOf(shard int, s *format.Sample) error
}

// datasetSource is a reader.Dataset.
type datasetSource struct {
	ds       *reader.Dataset
	manifest *reader.Manifest
	handles  []*store.Handles // by part: stores need not be comparable
}

// newDatasetSource makes the manifest, or has it made before.
func newDatasetSource(ctx context.Context, ds *reader.Dataset) (*datasetSource, error) {
	m, err := ds.Manifest(ctx)
	if err != nil {
		return nil, err
	}
	d := &datasetSource{ds: ds, manifest: m}
	d.open()
	return d, nil
}

// open makes the handles by which shards are read at places. Nothing is opened
// yet.
func (d *datasetSource) open() {
	d.handles = d.handles[:0]
	for _, p := range d.ds.Parts() {
		var st store.Store // a part without shards needs none
		if p.N > 0 {
			st = d.ds.Store(p.First)
		}
		d.handles = append(d.handles, store.NewHandles(st, 0))
	}
}

// handlesOf are those of a shard's part.
func (d *datasetSource) handlesOf(shard int) *store.Handles {
	for i, p := range d.ds.Parts() {
		if shard < p.First+p.N {
			return d.handles[i]
		}
	}
	panic("loader: no such shard")
}

func (d *datasetSource) names() []string { return d.ds.Shards() }

func (d *datasetSource) parts() (parts []order.Part) {
	for _, p := range d.ds.Parts() {
		part := order.Part{Weight: p.Weight}
		for i := p.First; i < p.First+p.N; i++ {
			e := &d.manifest.Shards[i]
			part.Shards = append(part.Shards, order.Entry{Name: e.Name, Bytes: e.Size, Version: e.ETag, Samples: e.Samples})
		}
		parts = append(parts, part)
	}
	return parts
}

func (d *datasetSource) holds() int64 {
	var most int64 // the parts of a mix share a store, as a rule
	for i := range d.names() {
		if d.far(i) { // what is near is not read ahead
			most = max(most, store.Memory(d.ds.Store(i)))
		}
	}
	return most
}

func (d *datasetSource) far(shard int) bool { return store.IsAddress(d.names()[shard]) }

func (d *datasetSource) limit(shard int) int64 {
	return d.ds.ReadOptions(shard).Limits.OrDefault().Sample
}

func (d *datasetSource) run(ctx context.Context, shard int, from, to int64) (samples, error) {
	s, err := d.ds.RunUnparsed(ctx, shard, from, to)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (d *datasetSource) places(ctx context.Context, shard int) (places, error) {
	if e := &d.manifest.Shards[shard]; !e.Offsets && e.From != "manifest" {
		return nil, nil
	}
	p, err := d.ds.Places(ctx, shard)
	switch {
	case errors.Is(err, format.ErrUnsupported): // a manifest file does not tell whether there are some
		return nil, nil
	case err != nil:
		return nil, err
	}
	return p, nil
}

// findPlaces has the places of all shards found out, so many at a time, until
// one has none. The dataset keeps them: whoever asks for those of one shard
// after the other need not wait for each, and hears what is wrong with one.
func (d *datasetSource) findPlaces(ctx context.Context, together int) {
	if d.manifest.Samples() < 0 {
		return
	}
	find := func(ctx context.Context, i int) error {
		p, err := d.places(ctx, i)
		if err == nil && p == nil {
			err = errNoPlaces
		}
		return err
	}
	var shards []int
	for i := range d.manifest.Shards {
		if d.manifest.Shards[i].Samples > 0 {
			shards = append(shards, i)
		}
	}
	if len(shards) < 2 || find(ctx, shards[0]) != nil { // as a rule, no shard has places then
		return
	}
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(together)
	for _, i := range shards[1:] {
		if within.Err() != nil {
			break
		}
		g.Go(func() error { return find(within, i) })
	}
	_ = g.Wait()
}

var errNoPlaces = errors.New("no places")

func (d *datasetSource) read(ctx context.Context, shard int, spans []store.Span) error {
	e := &d.manifest.Shards[shard]
	h, err := d.handlesOf(shard).Get(ctx, store.Entry{Name: e.Name, Size: e.Size, Version: e.Version})
	if err != nil {
		return err
	}
	defer h.Release()
	return store.ReadSpans(ctx, h, spans)
}

func (d *datasetSource) sample(ctx context.Context, shard int, index int64) (*format.Sample, error) {
	return d.ds.Sample(ctx, shard, index)
}

func (d *datasetSource) parser() parser { return d.ds.NewParser() }

func (d *datasetSource) close() error {
	var first error
	for _, h := range d.handles {
		if err := h.Close(); first == nil {
			first = err
		}
	}
	return first
}
