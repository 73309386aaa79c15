package shard

import (
	"context"
	"io"

	"shardtool/augment"
	"shardtool/format"
	"shardtool/reader"
)

// StatsOptions says which images are looked at. Read.Fields names the fields
// that hold images, each of which is taken for one whatever it holds; without
// any, images are the fields whose content begins as an image and those whose
// name promises one (jpg, jpeg, png, webp, gif, and image/encoded of Examples).
type StatsOptions struct {
	Options
	Limit     int64              // look at no more than the first samples of each shard; 0: all
	MaxErrors int                // how many unreadable images are kept in ImageSummary.Errors; 0: 100
	Decoder   augment.NewDecoder // nil: augment.Standard
}

// ImageStats is one image.
type ImageStats struct {
	Shard  string
	Index  int64  // of its sample in the shard
	Offset int64  // of the sample in the decompressed stream
	Key    []byte // of the sample; nil where it has none
	Field  string
	Bytes  int64          // of the encoded image
	Header augment.Header // zero where it could not be read
	Mean   [3]float64     // of red, green and blue of the picture as 8-bit RGB, 0 to 255; zero where Err is not nil
	Err    error          // why the image is unreadable, or nil

	// Warnings are faults of the image that were read over; they count in
	// Reading.Warnings as well.
	Warnings map[format.Warning]int64

	sums pixelSums
}

// ImageSummary sums up images.
type ImageSummary struct {
	Reading
	ImageCounts
	Shards  int              // read as far as was asked
	Failed  []error          // of each shard that was not
	Samples int64            // read
	Without int64            // samples that have no image
	Fields  map[string]int64 // images by field
	Errors  []error          // the first of the unreadable ones
	Bytes   int64            // of all encoded images

	// Of readable images.
	FileBytes Distribution // of one encoded image
	Aspect    Distribution // width over height, in thousandths
	totals    totals
}

// Normal returns mean and standard deviation of red, green and blue over all
// pixels of all readable images, as 8-bit RGB scaled to 0 to 1: what
// augment.Normalize takes. The deviation is that of the population. Both are
// exact but for the last rounding, and do not depend on Jobs. They are NaN where
// no image was readable.
func (s *ImageSummary) Normal() (mean, std [3]float64) { return s.totals.normal() }

// ImageCounts is what the headers of images say. All but Images and Unreadable
// are of readable images.
type ImageCounts struct {
	Images       int64            // unreadable ones included
	Unreadable   map[string]int64 // by class
	Encodings    map[string]int64 // jpeg, png, ...
	Channels     map[int]int64    // as stored
	Samplings    map[string]int64 // of the chroma of JPEGs: 4:2:0, ...
	Orientations map[int]int64    // EXIF's, 1 to 8: how images are stored
	Width        Distribution     // upright
	Height       Distribution     // upright
	Pixels       Distribution

	// NotLookedAt are images of Inspect of which nothing is known, because more
	// than 16 MiB stand before the frame.
	NotLookedAt int64
}

func (c *ImageCounts) add(h augment.Header, err error) {
	c.another()
	if err != nil {
		c.Unreadable[format.Class(err)]++
		return
	}
	c.Encodings[h.Encoding]++
	c.Channels[h.Channels]++
	c.Orientations[h.Orientation]++
	if h.Sampling != "" {
		c.Samplings[h.Sampling]++
	}
	c.Width.add(int64(h.Width))
	c.Height.add(int64(h.Height))
	c.Pixels.add(int64(h.Width) * int64(h.Height))
}

// another counts an image.
func (c *ImageCounts) another() {
	if c.Unreadable == nil {
		c.Unreadable, c.Encodings, c.Samplings = make(map[string]int64), make(map[string]int64), make(map[string]int64)
		c.Channels, c.Orientations = make(map[int]int64), make(map[int]int64)
	}
	c.Images++
}

// Stats decodes all images of shards, passes an ImageStats of each to each, in
// order, unless that is nil, and returns the sum of them. Jobs is how many
// shards are read, and how many images decoded, at a time.
//
// An unreadable image is counted and does not stop anything. At a fault of a
// shard Read.OnError decides: Stop ends the run, and what was read before it is
// summed up; otherwise other shards are read on. Either way the fault is in
// ImageSummary.Failed. Stats returns an error only if ctx ended or each failed.
func Stats(ctx context.Context, names []string, o *StatsOptions, each func(*ImageStats) error) (*ImageSummary, error) {
	var d StatsOptions
	if o != nil {
		d = *o
	}
	d.Options = d.Options.orDefault()
	if d.MaxErrors == 0 {
		d.MaxErrors = 100
	}
	if d.Decoder == nil {
		d.Decoder = augment.Standard
	}
	r := &statsRun{o: d, each: each, fields: d.Read.Limits.OrDefault().Fields}
	r.sum.Reading.add(nil, nil)
	r.sum.Fields = make(map[string]int64)
	r.losses = lossList{told: d.Read.OnLoss, to: &r.sum.Reading}
	ctx, cancel := context.WithCancel(ctx)
	r.pool = newImagePool(ctx, min(d.Jobs, queueLength*min(d.Jobs, len(names))), d.Decoder, d.Read.Limits)
	defer r.pool.close()
	defer cancel() // what was submitted and is not wanted any more is not decoded
	err := inOrder(ctx, len(names), d.Jobs, func(ctx context.Context, i int, emit func(statsItem) bool) {
		r.shard(ctx, names[i], emit)
	}, func(it statsItem) error { return r.take(ctx, it) })
	if err == errEnough {
		err = nil
	}
	return &r.sum, err
}

type statsRun struct {
	o      StatsOptions
	each   func(*ImageStats) error
	fields int // how many names of fields are counted at most
	pool   *imagePool
	losses lossList
	sum    ImageSummary
}

// statsItem is what comes of a shard, in order: images, losses, and its end.
type statsItem struct {
	image *imageTask
	loss  *format.Loss
	end   *shardEnd
}

// shardEnd is what is known when no more of a shard is read.
type shardEnd struct {
	samples, without int64
	skipped          map[string]int64
	warnings         map[format.Warning]int64
	err              error // what ended reading too early
}

// shard reads one shard and hands its images to the pool.
func (r *statsRun) shard(ctx context.Context, name string, emit func(statsItem) bool) {
	end := new(shardEnd)
	defer func() {
		if ctx.Err() == nil { // an end that the context made says nothing of the shard
			emit(statsItem{end: end})
		}
	}()
	read := r.o.Read
	read.OnLoss = func(l format.Loss) { emit(statsItem{loss: &l}) }
	s, err := reader.OpenShard(ctx, r.o.Store, name, &read)
	if err != nil {
		end.err = err
		return
	}
	defer s.Close()
	for r.o.Limit == 0 || end.samples < r.o.Limit {
		sample, err := s.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			end.err = err
			break
		}
		end.samples++
		n, ok := r.sample(ctx, sample, emit)
		if !ok {
			return
		}
		if n == 0 {
			end.without++
		}
	}
	end.skipped, end.warnings = s.Skipped(), s.Warnings()
}

// sample hands the images of a sample to the pool. It returns how many there
// are, and false if the run has ended.
func (r *statsRun) sample(ctx context.Context, s *format.Sample, emit func(statsItem) bool) (n int, ok bool) {
	var key []byte
	if s.Key != nil {
		key = append([]byte{}, s.Key...)
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		ok := eachImage(f, len(r.o.Read.Fields) > 0, func(data []byte) bool {
			n++
			t := r.pool.submit(ctx, ImageStats{
				Shard: s.Shard, Index: s.Index, Offset: s.Offset, Key: key, Field: f.Name, Bytes: int64(len(data)),
			}, data)
			return t != nil && emit(statsItem{image: t})
		})
		if !ok {
			return n, false
		}
	}
	return n, true
}

// take adds what comes, in order, to the sum.
func (r *statsRun) take(ctx context.Context, it statsItem) error {
	switch {
	case it.loss != nil:
		r.losses.add(*it.loss)
	case it.image != nil:
		<-it.image.done // a worker has it
		if err := ctx.Err(); err != nil {
			return err // the image may not have been decoded because of it
		}
		s := &it.image.stats
		r.image(s)
		if r.each != nil {
			return r.each(s)
		}
	default:
		return r.end(it.end)
	}
	return nil
}

func (r *statsRun) image(s *ImageStats) {
	sum := &r.sum
	sum.ImageCounts.add(s.Header, s.Err)
	sum.Bytes += s.Bytes
	if _, ok := sum.Fields[s.Field]; ok || len(sum.Fields) < r.fields {
		sum.Fields[s.Field]++
	}
	sum.Reading.add(nil, s.Warnings)
	if s.Err != nil {
		if len(sum.Errors) < r.o.MaxErrors {
			sum.Errors = append(sum.Errors, s.Err)
		}
		return
	}
	sum.FileBytes.add(s.Bytes)
	sum.Aspect.add((1000*int64(s.Header.Width) + int64(s.Header.Height)/2) / int64(s.Header.Height))
	sum.totals.add(&s.sums)
}

func (r *statsRun) end(e *shardEnd) error {
	sum := &r.sum
	sum.Samples += e.samples
	sum.Without += e.without
	sum.Reading.add(e.skipped, e.warnings)
	if e.err == nil {
		sum.Shards++
		return nil
	}
	sum.Failed = append(sum.Failed, e.err)
	if r.o.Read.OnError == format.Stop {
		return errEnough
	}
	return nil
}
