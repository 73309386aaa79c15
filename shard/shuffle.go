package shard

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/store"
)

// ref is a sample that was found in the first of two passes.
type ref struct {
	input  int32
	part   int32
	offset int64
	end    int64
	number int64 // among all that were kept; the key of a sample without one
}

// pass is an input of two passes.
type pass struct {
	input
	store  store.Store
	file   string                   // its name in store: that of the input, or of its spool
	linked map[int64]*format.Sample // those with fields that stand elsewhere, without data, by offset

	// Of a spool: the fault that ended it early, and whether bytes follow the
	// compressed data.
	cut      error
	trailing bool
}

// twice finds all samples, then reads and writes them in the order and
// division that were asked for. It keeps 32 bytes for each sample, and the
// places of the fields of those with links.
func (c *conversion) twice() error {
	inputs := make([]pass, len(c.names))
	var refs []ref
	for i, name := range c.names {
		found, err := c.find(name, int32(i), &inputs[i])
		if inputs[i].file != "" && inputs[i].file != name {
			defer os.Remove(inputs[i].file)
		}
		if err != nil {
			return err
		}
		refs = append(refs, found...)
	}
	for _, r := range refs {
		c.parts[r.part].total++
	}
	if c.o.Shuffle {
		rng := rand.New(rand.NewPCG(c.o.Seed, shuffleStream))
		rng.Shuffle(len(refs), func(i, j int) { refs[i], refs[j] = refs[j], refs[i] })
	}
	random := reader.NewRandom(c.ctx, &c.o.Read)
	defer random.Close()
	for _, r := range refs {
		in := &inputs[r.input]
		sample, err := in.sample(random, r)
		if err != nil {
			return in.renamed(err)
		}
		sample.Shard = in.name
		c.number = r.number
		c.keyed(sample)
		if err := c.put(&in.input, sample, c.parts[r.part]); err != nil {
			return err
		}
	}
	return nil
}

// sample reads a sample again.
func (p *pass) sample(random *reader.Random, r ref) (*format.Sample, error) {
	at := reader.Place{Store: p.store, Name: p.file, Format: p.format, Type: p.typ, Offset: r.offset, End: r.end}
	if s := p.linked[r.offset]; s != nil {
		again := *s // whose data is lent, and not kept with it
		again.Fields = slices.Clone(s.Fields)
		return &again, random.Fill(at, &again)
	}
	return random.Sample(at)
}

// links keeps a sample that a link of a tar shard leads out of, for that cannot
// be followed from the sample alone.
func (p *pass) links(s *reader.Shard, sample *format.Sample) {
	elsewhere := func(f format.Field) bool {
		return f.Offset >= 0 && (f.Offset < sample.Offset || f.Offset >= s.End())
	}
	if s.Format() != reader.Tar || !slices.ContainsFunc(sample.Fields, elsewhere) {
		return
	}
	kept := &format.Sample{Index: sample.Index, Offset: sample.Offset, Key: bytes.Clone(sample.Key)}
	for _, f := range sample.Fields {
		kept.Fields = append(kept.Fields, format.Field{Name: f.Name, Kind: f.Kind, Length: f.Size(), Offset: f.Offset})
	}
	if p.linked == nil {
		p.linked = make(map[int64]*format.Sample)
	}
	p.linked[sample.Offset] = kept
}

// shuffleStream sets the shuffle's random numbers apart from others of the
// same seed.
const shuffleStream = 0x73687566666c6500

// find makes the first pass over an input. One that cannot be read at offsets
// is copied, decompressed, to a temporary file first.
func (c *conversion) find(name string, number int32, in *pass) ([]ref, error) {
	in.store, in.file, in.name = c.o.Store, name, name
	if err := c.spool(in); err != nil {
		return nil, err
	}
	size, err := sizeOf(c.ctx, in.store, in.file)
	if err != nil {
		return nil, err
	}
	var refs []ref
	told := false // of what is missing at the end
	lost := func(l format.Loss) {
		l.Err = in.renamed(l.Err)
		told = l.Offset+l.Bytes >= size
		c.losses.add(l)
	}
	err = c.shard(in.store, in.file, lost, func(this *input, s *reader.Shard, sample *format.Sample) error {
		if len(refs) > 0 {
			refs[len(refs)-1].end = sample.Offset
		}
		if len(refs) == 0 {
			in.input = *this
			in.name = name
		}
		in.links(s, sample)
		at := c.number
		p := c.partOf(c.keyed(sample))
		refs = append(refs, ref{input: number, part: int32(p), offset: sample.Offset, end: size, number: at})
		return nil
	})
	if err != nil {
		return refs, in.renamed(err)
	}
	if in.cut != nil && !told {
		c.losses.add(format.Loss{Offset: size, Err: in.cut})
		c.result.Skipped[format.Class(in.cut)]++
	}
	if in.trailing {
		c.result.Warnings[format.TrailingGarbage]++
	}
	return refs, nil
}

func sizeOf(ctx context.Context, st store.Store, name string) (int64, error) {
	e, err := store.Stat(ctx, st, name)
	return e.Size, err
}

// spool copies an input that is compressed, a pipe, or behind a network, where
// each sample would be a request, to a temporary file beside the outputs.
func (c *conversion) spool(in *pass) error {
	s, err := reader.OpenStream(c.ctx, in.store, in.file, &c.o.Read)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, _, ok := s.ReaderAt(c.ctx); ok && !isFar(in.file) {
		return nil
	}
	f, err := os.CreateTemp(c.spoolDir(), ".shardtool-spool-*"+suffixOf(s.Format))
	if err != nil {
		return outputError(format.ErrIO, in.file, "a temporary copy: %w", err)
	}
	in.store, in.file = &store.Local{}, f.Name()
	_, err = io.Copy(f, s)
	if e := f.Close(); err == nil {
		err = e
	}
	in.trailing = s.Trailing()
	if damaged(err) && c.o.Read.OnError == format.Resync {
		in.cut, err = err, nil
	}
	return format.ReadError(err, format.In(s.Name))
}

// damaged reports whether an error is a fault of the data itself, which ends
// it early.
func damaged(err error) bool {
	return errors.Is(err, format.ErrTruncated) || errors.Is(err, format.ErrCorrupt)
}

// spoolDir is the folder of the outputs, which has room for as much, where it
// exists already.
func (c *conversion) spoolDir() string {
	dir := filepath.Dir(c.parts[0].w.part(0))
	if st, err := os.Stat(dir); err != nil || !st.IsDir() || c.parts[0].w.part(0) == "-" {
		return os.TempDir()
	}
	return dir
}

func suffixOf(f reader.Format) string {
	if f == reader.Tar {
		return ".tar"
	}
	return ".tfrecord"
}

// renamed makes an error about a spool one about the input it was made of.
func (p *pass) renamed(err error) error {
	var e *format.Error
	if !errors.As(err, &e) || e.Shard != p.file {
		return err
	}
	c := *e
	c.Shard = p.name
	return &c
}
