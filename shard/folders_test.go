package shard_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shardtool/format"
	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
	"shardtool/reader"
	"shardtool/reader/store"
	"shardtool/shard"
)

// tree makes files, given with their contents.
func tree(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(data), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
}

// grown reads the files of a folder with their contents.
func grown(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range files(t, dir) {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			all[name] = string(data)
		}
	}
	return all
}

func TestExtractIsAllOrNothing(t *testing.T) {
	a, b := writeTar(t, "a.tar", 3), writeTar(t, "b.tar", 3)
	for _, tt := range []struct {
		name   string
		before map[string]string
		in     []string
		o      shard.ExtractOptions
		class  string
		after  map[string]string // beside what was there before; nil: nothing
	}{
		{"limit", nil, []string{a, b}, shard.ExtractOptions{Limit: 1}, "", map[string]string{"a/0000.jpg": "", "a/0000.cls": "0"}},
		{"keys", nil, []string{a, b}, shard.ExtractOptions{Keys: []string{"b/0001"}}, "", map[string]string{"b/0001.jpg": "jjjjjjjjjj", "b/0001.cls": "1"}},
		{"keys and limit", nil, []string{a, b}, shard.ExtractOptions{Keys: []string{"*/0000"}, Limit: 2}, "", map[string]string{
			"a/0000.jpg": "", "a/0000.cls": "0", "b/0000.jpg": "", "b/0000.cls": "0"}},
		{"fields", nil, []string{a}, shard.ExtractOptions{Limit: 1, Options: shard.Options{Read: reader.Options{Fields: []string{"CLS"}}}}, "", map[string]string{"a/0000.cls": "0"}},
		{"mapping", nil, []string{a}, shard.ExtractOptions{Limit: 1, Mapping: shard.Mapping{Drop: []string{"jpg"}, Rename: map[string]string{"cls": "label.txt"}}}, "",
			map[string]string{"a/0000.label.txt": "0"}},
		{"a file is there", map[string]string{"a/0002.cls": "mine"}, []string{a, b}, shard.ExtractOptions{}, "usage", nil},
		{"a file is there, forced", map[string]string{"a/0000.cls": "mine"}, []string{a}, shard.ExtractOptions{Force: true, Limit: 1}, "", map[string]string{"a/0000.jpg": "", "a/0000.cls": "0"}},
		{"a file is there, not in the way", map[string]string{"b/0002.cls": "mine"}, []string{a}, shard.ExtractOptions{Limit: 1}, "", map[string]string{"a/0000.jpg": "", "a/0000.cls": "0"}},
		{"one name twice", nil, []string{a, a}, shard.ExtractOptions{}, "duplicate", nil},
		{"no such shard", nil, []string{a, "none.tar"}, shard.ExtractOptions{}, "not-found", nil},
		{"nothing matches", map[string]string{"x": "mine"}, []string{a}, shard.ExtractOptions{Keys: []string{"none"}}, "", map[string]string{}},
	} {
		dir := filepath.Join(t.TempDir(), "out")
		tree(t, dir, tt.before)
		x, err := shard.Extract(t.Context(), tt.in, dir, &tt.o)
		if class := format.Class(err); class != tt.class {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.class)
		}
		if err != nil && tt.before == nil {
			if _, err := os.Lstat(dir); err == nil {
				t.Errorf("%s: the folder was made and left: %v", tt.name, files(t, dir))
			}
			continue
		}
		want := map[string]string{}
		size := 0
		for name, data := range tt.before {
			want[name] = data
		}
		for name, data := range tt.after {
			want[name] = data
			size += len(data)
		}
		if got := grown(t, dir); !cmp.Equal(got, want) {
			t.Errorf("%s: %s", tt.name, cmp.Diff(want, got))
		}
		if err == nil && (int(x.Files) != len(tt.after) || int(x.Bytes) != size) {
			t.Errorf("%s: %d files of %d bytes are told of, there are %d of %d", tt.name, x.Files, x.Bytes, len(tt.after), size)
		}
	}
}

// TestExtractedFeaturesHaveNamesOfTheirOwn extracts Examples whose keys and
// features have hostile names.
func TestExtractedFeaturesHaveNamesOfTheirOwn(t *testing.T) {
	var data []byte
	for _, key := range []string{"../../up", "/abs", "a/./b", "a//b", "..", "", "plain.v2"} {
		var e tfexample.Builder
		e.AddBytes(reader.KeyFeature, []byte(key))
		e.AddBytes("../x", []byte("evil"))
		e.AddInt64("n", 7)
		data = tfrecord.AppendFrame(data, e.AppendTo(nil))
	}
	dir := t.TempDir()
	tree(t, dir, map[string]string{"in.tfrecord": string(data)})
	x, err := shard.Extract(t.Context(), []string{filepath.Join(dir, "in.tfrecord")}, filepath.Join(dir, "a", "b", "out"), nil)
	if err != nil || x.Samples != 7 || x.Files != 14 {
		t.Fatalf("%+v, %v", x, err)
	}
	out := grown(t, dir)
	delete(out, "in.tfrecord")
	for name := range out {
		if !strings.HasPrefix(name, "a/b/out/") {
			t.Errorf("outside of the folder: %s", name)
		}
	}
	if len(out) != 14 {
		t.Errorf("there are %v", out)
	}
	// What was extracted can be packed to the same records.
	back := filepath.Join(dir, "back.tfrecord")
	if _, err := shard.Pack(t.Context(), filepath.Join(dir, "a", "b", "out"), back, nil); err != nil {
		t.Fatal(err)
	}
	want, got := contents(t, filepath.Join(dir, "in.tfrecord")), contents(t, back)
	slices.Sort(want)
	slices.Sort(got)
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

// TestExtractDoesNotFollowLinks: links in a shard are files, never links.
func TestExtractDoesNotFollowLinks(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []*tar.Header{
		{Name: "in", Typeflag: tar.TypeSymlink, Linkname: "../outside"},
		{Name: "in/1.jpg", Size: 4, Mode: 0o644},
		{Name: "l.jpg", Typeflag: tar.TypeSymlink, Linkname: "/etc/hostname"},
		{Name: "m.jpg", Typeflag: tar.TypeLink, Linkname: "../../../etc/hostname"},
		{Name: "n.jpg", Typeflag: tar.TypeLink, Linkname: "in/1.jpg"},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte("data")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tree(t, dir, map[string]string{"in.tar": b.String(), "outside/x": ""})
	x, err := shard.Extract(t.Context(), []string{filepath.Join(dir, "in.tar")}, filepath.Join(dir, "out"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := grown(t, filepath.Join(dir, "out")), map[string]string{"in/1.jpg": "data", "n.jpg": "data"}; !cmp.Equal(got, want) || x.Skipped["symlink"] != 1 || x.Skipped["hardlink"] != 1 {
		t.Errorf("%v, skipped %v", got, x.Skipped)
	}
	if got := grown(t, filepath.Join(dir, "outside")); len(got) != 1 {
		t.Errorf("outside there is %v", got)
	}
}

func TestPackRefusesWhatWouldBeLost(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		o     shard.PackOptions
		class string
		says  string
	}{
		{"two spellings of a field", map[string]string{"1.jpg": "a", "1.JPG": "b"}, shard.PackOptions{}, "duplicate", `"1"`},
		{"a class without folder", map[string]string{"1.jpg": "a", "cat/2.jpg": "b"}, shard.PackOptions{ByFolder: true}, "usage", "1.jpg"},
		{"a class named twice", map[string]string{"cat/2.jpg": "b"}, shard.PackOptions{ByFolder: true, Classes: []string{"cat", "cat"}}, "usage", "cat"},
		{"a label that is there", map[string]string{"cat/2.jpg": "b", "cat/2.cls": "1"}, shard.PackOptions{ByFolder: true}, "duplicate", "cls"},
		{"a file over the limit", map[string]string{"1.jpg": "1234567890"}, shard.PackOptions{Options: shard.Options{Read: reader.Options{Limits: &format.Limits{Record: 9}}}}, "limit", "1.jpg"},
		{"a file at the limit", map[string]string{"1.jpg": "123456789"}, shard.PackOptions{Options: shard.Options{Read: reader.Options{Limits: &format.Limits{Record: 9}}}}, "", ""},
		{"an empty folder", map[string]string{"noext": ""}, shard.PackOptions{}, "", ""},
		{"no list", nil, shard.PackOptions{List: "none.csv"}, "not-found", "none.csv"},
		{"a number too many", map[string]string{"1.jpg": "a"}, shard.PackOptions{Output: shard.OutputOptions{Count: 1}}, "usage", "out.tar"},
	} {
		src, dir := t.TempDir(), t.TempDir()
		tree(t, src, tt.files)
		if len(tt.files) > len(grown(t, src)) {
			continue // a file system without case
		}
		_, err := shard.Pack(t.Context(), src, dir+"/out.tar", &tt.o)
		if format.Class(err) != tt.class || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %s with %s", tt.name, err, tt.class, tt.says)
		}
		if left := files(t, dir); (err == nil) != (len(left) == 1) {
			t.Errorf("%s: there is %v after %v", tt.name, left, err)
		}
	}
	if _, err := shard.Pack(t.Context(), "none", filepath.Join(t.TempDir(), "out.tar"), nil); !errors.Is(err, format.ErrNotFound) {
		t.Errorf("no folder: %v", err)
	}
}

// TestPackDividesInOrder packs in the order of keys, into shards.
func TestPackDividesInOrder(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	tree(t, src, map[string]string{"b/1.jpg": "1", "a.x/2.jpg": "2", "a/3.jpg": "3", "a.jpg": "4", "a/1.json": "5", "a/1.jpg": "6"})
	p, err := shard.Pack(t.Context(), src, dir+"/out-%02d.tfrecord", &shard.PackOptions{Output: shard.OutputOptions{Count: 2}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range p.Outputs {
		for s, err := range reader.New(&store.Local{}, []string{w.Name}, nil).Samples(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, filepath.Base(w.Name)+" "+string(s.Key)+" "+strings.Join(s.Names(), " "))
		}
	}
	want := []string{
		"out-00.tfrecord a __key__ jpg", "out-00.tfrecord a.x/2 __key__ jpg", "out-01.tfrecord a/1 __key__ jpg json",
		"out-01.tfrecord a/3 __key__ jpg", "out-02.tfrecord b/1 __key__ jpg",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSplitIsCompleteWhateverTheInputs(t *testing.T) {
	a, b := writeTar(t, "a.tar", 60), writeTar(t, "b.tar", 40)
	parts := []shard.Part{{Name: "x", Weight: 3}, {Name: "y", Weight: 1}}
	split := func(o shard.ConvertOptions, in ...string) map[string][]string {
		dir := t.TempDir()
		o.Parts = parts
		c := convert(t, in, dir+"/{split}-%d.tar", &o)
		got := map[string][]string{}
		for _, w := range c.Outputs {
			part := filepath.Base(w.Name)[:1]
			got[part] = append(got[part], contents(t, w.Name)...)
		}
		for _, list := range got {
			slices.Sort(list)
		}
		return got
	}
	one := split(shard.ConvertOptions{}, a, b)
	all := slices.Sorted(slices.Values(contents(t, a, b)))
	if both := slices.Sorted(slices.Values(slices.Concat(one["x"], one["y"]))); !cmp.Equal(both, all) || len(one["x"]) == 0 || len(one["y"]) == 0 {
		t.Errorf("the parts have %d and %d samples", len(one["x"]), len(one["y"]))
	}
	for name, got := range map[string]map[string][]string{
		"another order": split(shard.ConvertOptions{}, b, a),
		"shuffled":      split(shard.ConvertOptions{Shuffle: true, Seed: 9}, a, b),
		"in shards":     split(shard.ConvertOptions{Shards: 3}, a, b),
		"by count":      split(shard.ConvertOptions{Output: shard.OutputOptions{Count: 7}}, a, b),
	} {
		if !cmp.Equal(got, one) {
			t.Errorf("%s: the parts differ", name)
		}
	}
	for _, bad := range [][]shard.Part{{{Name: "x"}}, {{Name: "x", Weight: -1}, {Name: "y", Weight: 2}}, {{Name: "x", Weight: 1}, {Name: "x", Weight: 1}}} {
		dir := t.TempDir()
		_, err := shard.Convert(t.Context(), []string{a}, dir+"/{split}.tar", &shard.ConvertOptions{Parts: bad})
		if !errors.Is(err, format.ErrUsage) || len(files(t, dir)) > 0 {
			t.Errorf("parts %v: %v", bad, err)
		}
	}
	dir := t.TempDir()
	if _, err := shard.Convert(t.Context(), []string{a}, dir+"/out.tar", &shard.ConvertOptions{Parts: parts}); !errors.Is(err, format.ErrUsage) {
		t.Errorf("no place for the name of the part: %v", err)
	}
}

// TestOperationsEndWithTheirContext cancels each operation while it reads.
func TestOperationsEndWithTheirContext(t *testing.T) {
	in := writeTar(t, "in.tar", 400)
	names := []string{in, in, in, in}
	for name, run := range map[string]func(ctx context.Context, o shard.Options, dir string) error{
		"convert": func(ctx context.Context, o shard.Options, dir string) error {
			_, err := shard.Convert(ctx, names, dir+"/out-%d.tfrecord", &shard.ConvertOptions{Options: o, Output: shard.OutputOptions{Count: 10}})
			return err
		},
		"shuffle": func(ctx context.Context, o shard.Options, dir string) error {
			_, err := shard.Convert(ctx, names, dir+"/out.tfrecord", &shard.ConvertOptions{Options: o, Shuffle: true})
			return err
		},
		"repair": func(ctx context.Context, o shard.Options, dir string) error {
			_, err := shard.Repair(ctx, in, dir+"/out.tar", &shard.RepairOptions{Options: o})
			return err
		},
		"extract": func(ctx context.Context, o shard.Options, dir string) error {
			_, err := shard.Extract(ctx, names, dir+"/out", &shard.ExtractOptions{Options: o})
			return err
		},
		"verify": func(ctx context.Context, o shard.Options, dir string) error {
			return shard.Verify(ctx, names, &shard.VerifyOptions{Options: o}, func(*shard.Verification) error { return nil })
		},
		"inspect": func(ctx context.Context, o shard.Options, dir string) error {
			return shard.Inspect(ctx, names, &shard.InspectOptions{Options: o}, func(*shard.Inspection) error { return nil })
		},
		"list": func(ctx context.Context, o shard.Options, dir string) error {
			return shard.List(ctx, names, &shard.ListOptions{Options: o}, func(*shard.Listed) error { return nil })
		},
		"index": func(ctx context.Context, o shard.Options, dir string) error {
			_, err := shard.Index(ctx, []string{in}, &shard.IndexOptions{Options: o, Output: dir + "/out.idx"})
			return err
		},
	} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		st := store.Meter(&store.Local{}, func(int) { cancel() })
		err := run(ctx, shard.Options{Store: st}, dir)
		if !errors.Is(err, context.Canceled) || format.AsError(err) != nil {
			t.Errorf("%s: %v", name, err)
		}
		if left := files(t, dir); len(left) > 0 {
			t.Errorf("%s left %v", name, left)
		}
		cancel()
	}
}
