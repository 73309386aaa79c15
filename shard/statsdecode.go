package shard

import (
	"context"
	"image"
	"sync"

	"shardtool/augment"
	"shardtool/format"
)

// imageTask is one image on its way through an imagePool.
type imageTask struct {
	stats ImageStats
	data  []byte        // of the pool, until done
	done  chan struct{} // closed when stats is complete
}

// imagePool decodes images on a fixed number of goroutines. What waits is
// bounded by the number of those who submit: submit returns when a worker has
// taken the image.
type imagePool struct {
	work    chan *imageTask
	buffers chan []byte
	workers sync.WaitGroup
}

// largeImage is the pixels from which the memory that decoding took is given
// back at once: 16 million pixels of three or four bytes are more than the rest
// of a worker needs, and few sets of training data have larger ones.
const largeImage = 1 << 24

func newImagePool(n int, open augment.NewDecoder, limits *format.Limits) *imagePool {
	p := &imagePool{work: make(chan *imageTask), buffers: make(chan []byte, 2*n)}
	gate := newPixelGate(limits.OrDefault().Pixels)
	for range n {
		p.workers.Go(func() {
			r := &imageReader{open: open, limits: limits, gate: gate}
			for t := range p.work {
				r.stats(&t.stats, t.data)
				select {
				case p.buffers <- t.data[:0]:
				default:
				}
				t.data = nil
				close(t.done)
			}
		})
	}
	return p
}

// submit copies an image and hands it to a worker; it returns nil if ctx ends
// before one takes it.
func (p *imagePool) submit(ctx context.Context, s ImageStats, data []byte) *imageTask {
	var buf []byte
	select {
	case buf = <-p.buffers:
	default:
	}
	t := &imageTask{stats: s, data: append(buf, data...), done: make(chan struct{})}
	select {
	case p.work <- t:
		return t
	case <-ctx.Done():
		return nil
	}
}

// close waits for the workers. Nobody may submit any more.
func (p *imagePool) close() {
	close(p.work)
	p.workers.Wait()
}

// pixelGate keeps images that are decoded at the same time to as many pixels
// together as one alone may have.
type pixelGate struct {
	mu   sync.Mutex
	left sync.Cond
	most int64
	free int64
}

func newPixelGate(most int64) *pixelGate {
	g := &pixelGate{most: most, free: most}
	g.left.L = &g.mu
	return g
}

// enter waits for room. More than there ever is counts as all of it: the decoder
// refuses such an image. Who is within only computes, so that all come out.
func (g *pixelGate) enter(pixels int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for pixels = min(pixels, g.most); g.free < pixels; {
		g.left.Wait()
	}
	g.free -= pixels
}

func (g *pixelGate) leave(pixels int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free += min(pixels, g.most)
	g.left.Broadcast()
}

// imageReader decodes whole images for one goroutine.
type imageReader struct {
	open   augment.NewDecoder
	limits *format.Limits
	gate   *pixelGate // nil for a reader that works alone

	decoder augment.Decoder
	px      augment.Pixels
	strip   []byte
	warned  map[format.Warning]int64 // what was read over in the image that each decoded last
}

// header reads the header of an image, or as much of its start as data is.
func (r *imageReader) header(data []byte) (augment.Header, error) {
	if r.decoder == nil {
		r.decoder = r.open(r.limits)
	}
	return r.decoder.Header(data)
}

// stats fills in what the image says of itself.
func (r *imageReader) stats(s *ImageStats, data []byte) {
	h, err := r.header(data)
	if err == nil {
		s.Header = h
		err = r.each(h, data, func(rgb []byte, _ int) error {
			s.sums.add(rgb)
			return nil
		})
		s.Warnings = r.warned
	}
	if err != nil {
		s.sums = pixelSums{}
		s.Err = format.ReadError(err, format.Location{Shard: s.Shard, Offset: s.Offset, Record: s.Index, Key: string(s.Key), Field: s.Field})
		return
	}
	s.Mean = s.sums.mean()
}

// each decodes an image whose header is known and passes its upright rows to
// yield in strips: three bytes a pixel, row after row without gaps, from row y.
func (r *imageReader) each(h augment.Header, data []byte, yield func(rgb []byte, y int) error) error {
	const strip = 1 << 16
	pixels := int64(h.Width) * int64(h.Height)
	if r.gate != nil {
		r.gate.enter(pixels)
		defer r.gate.leave(pixels)
	}
	if pixels > largeImage {
		defer func() { r.decoder, r.px, r.strip = nil, augment.Pixels{}, nil }()
	}
	whole := image.Rect(0, 0, h.Width, h.Height)
	err := r.decoder.Decode(&r.px, data, whole)
	r.warned = nil
	if w, ok := r.decoder.(augment.Warner); ok {
		r.warned = w.Warnings()
	}
	if err != nil {
		return err
	}
	rows := min(max(strip/(3*h.Width), 1), h.Height)
	if n := 3 * h.Width * rows; cap(r.strip) < n {
		r.strip = make([]byte, n)
	}
	for y := 0; y < h.Height && err == nil; y += rows {
		part := image.Rect(0, y, h.Width, min(y+rows, h.Height))
		rgb := r.strip[:3*h.Width*part.Dy()]
		r.px.WriteRGB(rgb, 3*h.Width, part)
		err = yield(rgb, y)
	}
	return err
}
