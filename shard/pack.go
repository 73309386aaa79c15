package shard

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"shardtool/format"
	"shardtool/reader"
)

// PackOptions says how files are packed into shards.
type PackOptions struct {
	Options
	Output   OutputOptions
	Mapping  Mapping
	List     string                  // a CSV or JSON Lines file that names the samples; "": every file of the folder
	ByFolder bool                    // the folders right below are classes: each sample gets the field cls, the number of its class
	Classes  []string                // with ByFolder, the names of the classes in the order of their numbers; nil: the names of the folders, in byte order
	Progress func(done, total int64) // told of samples; may be nil
}

// Packing says what was packed.
type Packing struct {
	Samples int64
	Files   int64
	Bytes   int64 // of the files
	Skipped map[string]int64
	Classes []string // with ByFolder
	Outputs []Written
}

// Reasons for which Pack leaves a file out.
const (
	packHidden  = "hidden"   // its name, or that of a folder above it, begins with a dot
	packNoKey   = "no-field" // its name has no dot, or nothing after it
	packSpecial = "special"  // no regular file
)

// packed is a sample to be.
type packed struct {
	key   string
	files []packedFile
	made  []format.Field // fields that are no files
	line  int            // of the list; 0 without one
}

type packedFile struct{ field, path string }

// Pack writes the files of a folder as shards of the name out.
//
// Without a list, a file's path in the folder is read as the name of a tar
// member is: up to the first dot of the last element it is the sample's key,
// the rest is the field. With one, see the doc comment of readList. The
// outputs appear together when all are complete, or not at all.
func Pack(ctx context.Context, folder, out string, o *PackOptions) (*Packing, error) {
	var d PackOptions
	if o != nil {
		d = *o
	}
	d.Options = d.Options.orDefault()
	result := &Packing{Skipped: make(map[string]int64)}
	var samples []packed
	var err error
	if d.List != "" {
		samples, err = readList(ctx, folder, &d)
	} else {
		samples, err = walkFolder(ctx, folder, result)
	}
	if err != nil {
		return nil, err
	}
	if d.ByFolder {
		if result.Classes, err = classify(samples, d.Classes); err != nil {
			return nil, err
		}
	}
	sink := NewSink(ctx, &SinkOptions{Store: d.Store, Force: d.Output.Force, Level: d.Output.Level})
	defer sink.Abort()
	w, err := NewWriter(sink, out, &d.Output)
	if err != nil {
		return nil, err
	}
	p := &packer{w: w, mapper: mapper{Mapping: d.Mapping}, limits: d.Read.Limits.OrDefault(), result: result}
	for i := range samples {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := p.put(&samples[i]); err != nil {
			return nil, err
		}
		if d.Progress != nil {
			d.Progress(int64(i+1), int64(len(samples)))
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	result.Outputs = w.Written()
	return result, sink.Commit()
}

// walkFolder gathers the samples of a folder in the order of their keys.
func walkFolder(ctx context.Context, folder string, result *Packing) ([]packed, error) {
	var samples []packed
	at := make(map[string]int)
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case path != folder && strings.HasPrefix(d.Name(), "."):
			result.Skipped[packHidden]++
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		if st, err := os.Stat(path); err != nil {
			return err
		} else if !st.Mode().IsRegular() {
			result.Skipped[packSpecial]++
			return nil
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		key, field, ok := splitName(filepath.ToSlash(name))
		if !ok {
			result.Skipped[packNoKey]++
			return nil
		}
		i, ok := at[key]
		if !ok {
			i = len(samples)
			at[key] = i
			samples = append(samples, packed{key: key})
		}
		samples[i].files = append(samples[i].files, packedFile{field, path})
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) || err != nil {
		return nil, format.ReadError(err, format.In(folder))
	}
	slices.SortFunc(samples, func(a, b packed) int { return strings.Compare(a.key, b.key) })
	return samples, nil
}

// splitName reads a path with slashes as the name of a tar member.
func splitName(name string) (key, field string, ok bool) {
	base := strings.LastIndexByte(name, '/') + 1
	dot := strings.IndexByte(name[base:], '.')
	if dot <= 0 || base+dot == len(name)-1 {
		return "", "", false
	}
	return name[:base+dot], name[base+dot+1:], true
}

// classify gives each sample the field cls and returns the names of the
// classes.
func classify(samples []packed, classes []string) ([]string, error) {
	if classes == nil {
		seen := make(map[string]bool)
		for i := range samples {
			if class, _, ok := strings.Cut(samples[i].key, "/"); ok && !seen[class] {
				seen[class] = true
				classes = append(classes, class)
			}
		}
		slices.Sort(classes)
	}
	number := make(map[string]int, len(classes))
	for i, class := range classes {
		if _, twice := number[class]; twice {
			return nil, format.Errorf(format.ErrUsage, format.Nowhere, "the class %q is listed twice", class)
		}
		number[class] = i
	}
	for i := range samples {
		s := &samples[i]
		class, _, ok := strings.Cut(s.key, "/")
		if !ok {
			return nil, format.Errorf(format.ErrUsage, format.In(s.files[0].path), "it is in no folder that could be its class")
		}
		n, ok := number[class]
		if !ok {
			return nil, format.Errorf(format.ErrUsage, format.In(s.files[0].path), "the class %q is not in the list", class)
		}
		s.made = append(s.made, format.Field{Name: labelField, Data: strconv.AppendInt(nil, int64(n), 10), Offset: format.Unknown})
	}
	return classes, nil
}

// packer writes samples.
type packer struct {
	w      *Writer
	mapper mapper
	limits format.Limits
	sample format.Sample
	result *Packing
}

func (p *packer) put(from *packed) error {
	s := &p.sample
	s.Index, s.Offset, s.Key, s.Fields = p.result.Samples, format.Unknown, []byte(from.key), s.Fields[:0]
	for _, f := range from.files {
		s.Shard = f.path
		data, err := p.read(f.path)
		if err != nil {
			return err
		}
		if err := p.add(format.Field{Name: f.field, Data: data, Offset: format.Unknown}); err != nil {
			return err
		}
		p.result.Files++
		p.result.Bytes += int64(len(data))
	}
	for _, f := range from.made {
		if err := p.add(f); err != nil {
			return err
		}
	}
	mapped := p.mapper.toRecord
	if p.w.Format() == reader.Tar {
		// A path that was written by Extract is a name in a tar already.
		s.Key = []byte(encodeKey(decodeKey(from.key)))
		mapped = p.mapper.same
	}
	out, err := mapped(s)
	if err != nil {
		return err
	}
	p.result.Samples++
	return p.w.Write(out)
}

func (p *packer) add(f format.Field) error {
	if fieldNamed(p.sample.Fields, f.Name) != nil {
		at := p.sample.Location()
		at.Field = f.Name
		return format.Errorf(format.ErrDuplicate, at, "the sample has the field twice")
	}
	p.sample.Fields = append(p.sample.Fields, f)
	return nil
}

// read reads a whole file, up to Limits.Record.
func (p *packer) read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, format.ReadError(err, format.In(path))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, p.limits.Record+1))
	if err == nil && int64(len(data)) > p.limits.Record {
		return nil, format.Errorf(format.ErrLimit, format.In(path), "the file is larger than %d bytes", p.limits.Record)
	}
	return data, format.ReadError(err, format.In(path))
}
