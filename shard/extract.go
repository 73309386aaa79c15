package shard

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"shardtool/format"
	"shardtool/reader"
)

// ExtractOptions says what is extracted.
type ExtractOptions struct {
	Options
	Keys    []string // samples whose key matches one of these patterns; nil: all
	Limit   int64    // no more than the first samples; 0: all
	Mapping Mapping
	Images  ImageForm // how images are written
	Force   bool      // replace existing files
}

// Extraction says what was extracted.
type Extraction struct {
	Reading
	Samples int64
	Files   int64
	Bytes   int64
}

// Extract writes the fields of samples as files into a folder of this machine, each under the
// name that it has, or would have, in a tar shard. No file is written outside
// the folder, whatever the names in the shards say. The files are written
// aside first and moved to their places when all are complete; an existing
// file, whatever else is in the way, or one name twice, is an error before any is
// moved. If moving one fails all the same, the others are taken back.
//
// With PNGImages a field whose name promises an image (see StatsOptions), or
// whose content begins as one, becomes a PNG under its name with the suffix png.
// One that cannot be decoded is an error, or, under Skip and Resync, a loss, and
// its sample is left out. Lists of images in records are JSON all the same. Two
// images of a sample that would be one file are an error whatever Read.OnError
// says; one that Read.OnMissing fills in makes none. Jobs is how many samples are made PNGs of at a time.
func Extract(ctx context.Context, names []string, folder string, o *ExtractOptions) (*Extraction, error) {
	var d ExtractOptions
	if o != nil {
		d = *o
	}
	d.Options = d.Options.orDefault()
	match, err := keyMatcher(d.Keys)
	if err != nil {
		return nil, err
	}
	x := &extraction{o: d, folder: folder}
	x.result.Reading.add(nil, nil)
	x.losses = lossList{told: d.Read.OnLoss, to: &x.result.Reading}
	x.convert = conversion{ctx: ctx, match: match}
	x.convert.o.Options = d.Options
	x.convert.mapper.Mapping = d.Mapping
	defer x.clean()
	if err := x.stage(); err != nil {
		return nil, err
	}
	if d.Images == PNGImages {
		err = x.pictures(ctx, names)
	} else {
		err = x.stored(names)
	}
	if err != nil && err != errEnough {
		return nil, err
	}
	return &x.result, x.publish(ctx)
}

type extraction struct {
	o       ExtractOptions
	folder  string
	convert conversion // reads the inputs, gives keys and maps fields
	losses  lossList
	made    []string // the folder and those around it that were not there before, the inner ones first
	stageAt string   // a folder in the folder, for placement
	root    *os.Root // of the files that wait in stageAt
	files   []string // written, with slashes, in order
	result  Extraction
}

// stored extracts fields as they are.
func (x *extraction) stored(names []string) error {
	for _, name := range names {
		read, err := x.shard(name, x.losses.add, x.write)
		x.result.Reading.add(read.Skipped, read.Warnings)
		if err != nil {
			return err
		}
	}
	return nil
}

// shard passes the samples of one input, with the keys and fields of a tar, to
// each, and its losses to lost. It returns what else the shard counted.
func (x *extraction) shard(name string, lost func(format.Loss), each func(*format.Sample) error) (Reading, error) {
	x.convert.result.Reading = Reading{}
	err := x.convert.shard(x.o.Store, name, lost, func(in *input, _ *reader.Shard, s *format.Sample) error {
		x.convert.keyed(s)
		_, mapped := x.convert.route(in, s, reader.Tar)
		s, err := mapped(s)
		if err != nil {
			return err
		}
		return each(s)
	})
	return x.convert.result.Reading, err
}

// stage makes the folder in which files wait: in the folder itself, so that
// moving them needs no copy.
func (x *extraction) stage() error {
	for dir := filepath.Clean(x.folder); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			break
		}
		x.made = append(x.made, dir)
	}
	err := os.MkdirAll(x.folder, 0o777)
	if err == nil {
		x.stageAt, err = os.MkdirTemp(x.folder, ".shardtool-part-")
	}
	for _, dir := range []string{"new", "old"} {
		if err == nil {
			err = os.Mkdir(filepath.Join(x.stageAt, dir), 0o777)
		}
	}
	if err == nil {
		x.root, err = os.OpenRoot(filepath.Join(x.stageAt, "new"))
	}
	return x.fail(err)
}

func (x *extraction) fail(err error) error {
	return format.ReadError(err, format.In(x.folder))
}

func (x *extraction) clean() {
	if x.root != nil {
		x.root.Close()
	}
	if x.stageAt != "" {
		os.RemoveAll(x.stageAt)
	}
	for _, dir := range x.made {
		os.Remove(dir) // only if nothing came into it
	}
}

// write makes files of the fields of a sample.
func (x *extraction) write(s *format.Sample) error {
	for _, f := range s.Fields {
		if err := x.file(string(s.Key)+"."+f.Name, f.Data); err != nil {
			at := s.Location()
			at.Field = f.Name
			return format.ReadError(err, at)
		}
	}
	if x.result.Samples++; x.result.Samples == x.o.Limit {
		return errEnough
	}
	return nil
}

func (x *extraction) file(name string, data []byte) error {
	name = strings.TrimLeft(name, "/")
	if !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name {
		return format.Errorf(format.ErrUnsupported, format.Nowhere, "the name %q does not stay in the folder", name)
	}
	if dir := path.Dir(name); dir != "." {
		if err := x.root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	f, err := x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return format.Errorf(format.ErrDuplicate, format.Nowhere, "the file %s was extracted before", name)
	} else if err != nil {
		return err
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	x.files = append(x.files, name)
	x.result.Files++
	x.result.Bytes += int64(len(data))
	return nil
}

// publish moves the files to their places.
func (x *extraction) publish(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	to, err := os.OpenRoot(x.folder)
	if err != nil {
		return x.fail(err)
	}
	defer to.Close()
	p := &placement{ctx: ctx, folder: x.folder, to: to, stage: filepath.Base(x.stageAt), force: x.o.Force}
	return p.place(x.files)
}
