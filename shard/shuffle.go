package shard

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

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
	store store.Store
	file  string // its name in store: that of the input, or of its spool
}

// twice finds all samples, then reads and writes them in the order and
// division that were asked for. It keeps 32 bytes for each sample.
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
	read := c.o.Read
	random := reader.NewRandom(c.ctx, &read)
	defer random.Close()
	for _, r := range refs {
		in := &inputs[r.input]
		sample, err := random.Sample(reader.Place{
			Store: in.store, Name: in.file, Format: in.format, Type: in.typ, Offset: r.offset, End: r.end,
		})
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
	lost := func(l format.Loss) {
		l.Err = in.renamed(l.Err)
		c.losses.add(l)
	}
	err = c.shard(in.store, in.file, lost, func(s *reader.Shard, sample *format.Sample) error {
		if len(refs) > 0 {
			refs[len(refs)-1].end = sample.Offset
		}
		at := c.number
		if len(refs) == 0 {
			in.input = *inputOf(s)
			in.name = name
		}
		p := c.partOf(c.keyed(sample))
		for i := range c.parts {
			if c.parts[i] == p {
				refs = append(refs, ref{input: number, part: int32(i), offset: sample.Offset, end: size, number: at})
			}
		}
		return nil
	})
	return refs, in.renamed(err)
}

func sizeOf(ctx context.Context, st store.Store, name string) (int64, error) {
	e, err := store.Stat(ctx, st, name)
	return e.Size, err
}

// spool copies an input that is compressed, or a pipe, to a temporary file
// beside the outputs.
func (c *conversion) spool(in *pass) error {
	s, err := reader.OpenStream(c.ctx, in.store, in.file, &c.o.Read)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, _, ok := s.ReaderAt(c.ctx); ok {
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
	if damaged(err) && c.o.Read.OnError != format.Stop {
		c.losses.add(format.Loss{Offset: format.Unknown, Records: format.Unknown, Err: err})
		err = nil
	}
	return format.ReadError(err, format.Location{Shard: s.Name, Offset: format.Unknown, Record: format.Unknown})
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
