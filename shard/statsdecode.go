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
// of a worker needs, and few sets of training data have larger ones. Many workers
// keep less each: together, no more than for one image of the most pixels.
const largeImage = 1 << 24

// newImagePool makes a pool that decodes until ctx ends; what is submitted then
// is done at once.
func newImagePool(ctx context.Context, n int, open augment.NewDecoder, limits *format.Limits) *imagePool {
	p := &imagePool{work: make(chan *imageTask), buffers: make(chan []byte, 2*n)}
	gate := newPixelGate(limits.OrDefault().Pixels)
	for range n {
		p.workers.Go(func() {
			r := newImageReader(open, limits, n)
			for t := range p.work {
				r.stats(ctx, gate, &t.stats, t.data)
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

// enter waits for room, or until ctx ends, and returns its error then. More than
// there ever is counts as all of it: the decoder refuses such an image. Who is
// within only computes, so that all come out.
func (g *pixelGate) enter(ctx context.Context, pixels int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	pixels = min(pixels, g.most)
	for g.free < pixels && ctx.Err() == nil {
		stop := context.AfterFunc(ctx, g.wake)
		g.left.Wait()
		stop()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	g.free -= pixels
	return nil
}

func (g *pixelGate) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left.Broadcast()
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
	keep   int64 // pixels up to which the memory for an image is kept for the next

	decoder augment.Decoder
	px      augment.Pixels
	strip   []byte
	warned  map[format.Warning]int64 // what was read over in the image that each decoded last
}

// newImageReader makes one of n that work side by side.
func newImageReader(open augment.NewDecoder, limits *format.Limits, n int) *imageReader {
	return &imageReader{open: open, limits: limits, keep: min(largeImage, limits.OrDefault().Pixels/int64(n))}
}

// header reads the header of an image, or as much of its start as data is.
func (r *imageReader) header(data []byte) (augment.Header, error) {
	if r.decoder == nil {
		r.decoder = r.open(r.limits)
	}
	return r.decoder.Header(data)
}

// stats fills in what the image says of itself.
func (r *imageReader) stats(ctx context.Context, gate *pixelGate, s *ImageStats, data []byte) {
	if err := r.sums(ctx, gate, s, data); err != nil {
		s.sums = pixelSums{}
		s.Err = format.ReadError(err, format.Location{Shard: s.Shard, Offset: s.Offset, Record: s.Index, Key: string(s.Key), Field: s.Field})
		return
	}
	s.Mean = s.sums.mean()
}

func (r *imageReader) sums(ctx context.Context, gate *pixelGate, s *ImageStats, data []byte) error {
	h, err := r.header(data)
	if err != nil {
		return err
	}
	s.Header = h
	if err := gate.enter(ctx, pixelsOf(h)); err != nil {
		return err
	}
	defer gate.leave(pixelsOf(h))
	defer r.trim(h)
	err = r.decode(h, data)
	s.Warnings = r.warned
	for y := 0; y < h.Height && err == nil; {
		if err = ctx.Err(); err == nil {
			rgb := r.rows(h, y)
			s.sums.add(rgb)
			y += len(rgb) / (3 * h.Width)
		}
	}
	return err
}

func pixelsOf(h augment.Header) int64 { return int64(h.Width) * int64(h.Height) }

// decode decodes an image whose header is known. trim is called when its pixels
// are not needed any more.
func (r *imageReader) decode(h augment.Header, data []byte) error {
	err := r.decoder.Decode(&r.px, data, image.Rect(0, 0, h.Width, h.Height))
	r.warned = nil
	if w, ok := r.decoder.(augment.Warner); ok {
		r.warned = w.Warnings()
	}
	return err
}

// rows lends some upright rows of the image that was decoded, from row y on:
// three bytes a pixel, row after row without gaps.
func (r *imageReader) rows(h augment.Header, y int) []byte {
	const strip = 1 << 16
	part := image.Rect(0, y, h.Width, min(y+max(strip/(3*h.Width), 1), h.Height))
	n := 3 * h.Width * part.Dy()
	if cap(r.strip) < n {
		r.strip = make([]byte, n)
	}
	r.px.WriteRGB(r.strip[:n], 3*h.Width, part)
	return r.strip[:n]
}

// trim gives the memory of a large image back.
func (r *imageReader) trim(h augment.Header) {
	if pixelsOf(h) > r.keep {
		r.decoder, r.px, r.strip = nil, augment.Pixels{}, nil
	}
}
