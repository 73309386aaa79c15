package shard_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"shardtool/format"
	"shardtool/format/tfrecord"
	"shardtool/reader"
	"shardtool/reader/store"
	"shardtool/reader/store/faultstore"
	"shardtool/shard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const fixtures = "../fixtures/"

// contents reads shards as texts, one a sample: key, and name, kind and data
// of each field.
func contents(t testing.TB, names ...string) []string {
	t.Helper()
	var all []string
	for s, err := range reader.New(&store.Local{}, names, nil).Samples(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%q", s.Key)
		for i := range s.Fields {
			fmt.Fprintf(&b, " %q %v %x", s.Fields[i].Name, s.Fields[i].Kind, s.Fields[i].Data)
		}
		all = append(all, b.String())
	}
	return all
}

// writeTar writes a tar of n samples with archive/tar, and returns its path.
// Its keys begin with the name up to the dot.
func writeTar(t testing.TB, name string, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	for i := range n {
		for k, data := range []string{strings.Repeat("j", 10*i), fmt.Sprint(i)} {
			field := []string{"jpg", "cls"}[k]
			h := &tar.Header{Name: fmt.Sprintf("%s/%04d.%s", strings.TrimSuffix(name, ".tar"), i, field), Size: int64(len(data)), Mode: 0o644, Format: tar.FormatUSTAR}
			if err := w.WriteHeader(h); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(w, data); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// files lists what is in a folder, hidden files too.
func files(t testing.TB, dir string) []string {
	t.Helper()
	all := []string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && path != dir {
			name, _ := filepath.Rel(dir, path)
			all = append(all, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func convert(t testing.TB, in []string, out string, o *shard.ConvertOptions) *shard.Conversion {
	t.Helper()
	c, err := shard.Convert(t.Context(), in, out, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRoundTripsKeepEverything converts shards of real tools to the other
// format and back.
func TestRoundTripsKeepEverything(t *testing.T) {
	for _, name := range []string{
		"photos/photos-000000.tar", "tars/webdataset-long.tar", "tars/gnutar-gnu.tar", "tars/gnutar-posix.tar", "tars/zstd.tar.zst",
		"cases/keys/a1_dots.tar", "cases/keys/a5_upper.tar", "cases/keys/a7_variable_fields.tar",
		"photos/photos-000001.tfrecord", "tf/examples.tfrecord", "tf/sequences.tfrecord", "tf/raw.tfrecord", "tf/examples.gzip.tfrecord", "tf/none.tfrecord",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			there, back := filepath.Join(dir, "there.tfrecord"), filepath.Join(dir, "back.tar")
			if reader.FormatOf(name) == reader.TFRecord {
				there, back = filepath.Join(dir, "there.tar"), filepath.Join(dir, "back.tfrecord")
			}
			c := convert(t, []string{fixtures + name}, there, nil)
			convert(t, []string{there}, back, nil)
			want := contents(t, fixtures+name)
			if got := contents(t, back); !cmp.Equal(got, want) || c.Samples != int64(len(want)) {
				t.Errorf("%s", cmp.Diff(want, got))
			}
		})
	}
}

// TestRecordsAreCopiedToTheByte converts TFRecord to TFRecord, whatever the
// records hold.
func TestRecordsAreCopiedToTheByte(t *testing.T) {
	for _, name := range []string{"tf/examples.tfrecord", "tf/variants.tfrecord", "tf/raw.tfrecord"} {
		want, err := os.ReadFile(fixtures + name)
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out.tfrecord")
		convert(t, []string{fixtures + name}, out, &shard.ConvertOptions{Options: shard.Options{Read: reader.Options{Type: reader.Raw}}})
		if got, _ := os.ReadFile(out); !bytes.Equal(got, want) {
			t.Errorf("%s: the copy differs", name)
		}
	}
	want, _ := os.ReadFile(fixtures + "tf/examples.tfrecord")
	out := filepath.Join(t.TempDir(), "out.tfrecord")
	convert(t, []string{fixtures + "tf/examples.tfrecord"}, out, nil)
	if got, _ := os.ReadFile(out); !bytes.Equal(got, want) {
		t.Error("Examples were written anew")
	}
}

func TestOutputsAreDivided(t *testing.T) {
	in := writeTar(t, "in.tar", 25)
	want := contents(t, in)
	for _, tt := range []struct {
		name  string
		o     shard.ConvertOptions
		sizes []int64
	}{
		{"count", shard.ConvertOptions{Output: shard.OutputOptions{Count: 10}}, []int64{10, 10, 5}},
		{"count of all", shard.ConvertOptions{Output: shard.OutputOptions{Count: 25}}, []int64{25}},
		{"shards", shard.ConvertOptions{Shards: 4}, []int64{7, 6, 6, 6}},
		{"more shards than samples", shard.ConvertOptions{Shards: 27}, append(slices.Repeat([]int64{1}, 25), 0, 0)},
		// A sample takes 4 blocks, two end the shard, and 60 is a multiple of 20.
		{"size", shard.ConvertOptions{Output: shard.OutputOptions{Size: 60 * 512}}, []int64{14, 11}},
		{"size below a sample", shard.ConvertOptions{Output: shard.OutputOptions{Size: 1}}, slices.Repeat([]int64{1}, 25)},
		{"neither", shard.ConvertOptions{}, []int64{25}},
	} {
		out := filepath.Join(t.TempDir(), "out-%03d.tar")
		c := convert(t, []string{in}, out, &tt.o)
		var sizes []int64
		var names []string
		for i, w := range c.Outputs {
			if want := strings.Replace(out, "%03d", fmt.Sprintf("%03d", i), 1); w.Name != want {
				t.Errorf("%s: output %d is %s, want %s", tt.name, i, w.Name, want)
			}
			sizes, names = append(sizes, w.Samples), append(names, w.Name)
			if st, err := os.Stat(w.Name); err != nil || st.Size() != w.Stored {
				t.Errorf("%s: %s has %v bytes, %v; want %d", tt.name, w.Name, st.Size(), err, w.Stored)
			}
			if tt.o.Output.Size > 1 && w.Bytes > tt.o.Output.Size {
				t.Errorf("%s: %s has %d bytes", tt.name, w.Name, w.Bytes)
			}
		}
		if !slices.Equal(sizes, tt.sizes) || !cmp.Equal(contents(t, names...), want) {
			t.Errorf("%s: shards of %v, want %v, or other samples", tt.name, sizes, tt.sizes)
		}
	}
}

func TestShuffleIsAPermutationDrawnBySeed(t *testing.T) {
	a, b := writeTar(t, "a.tar", 30), writeTar(t, "b.tar", 3)
	gz := filepath.Join(t.TempDir(), "a.tar.gz")
	convert(t, []string{a}, gz, nil)
	want := slices.Sorted(slices.Values(contents(t, a, b)))
	shuffled := func(seed uint64, in ...string) []string {
		dir := t.TempDir()
		out := filepath.Join(dir, "out.tar")
		convert(t, in, out, &shard.ConvertOptions{Shuffle: true, Seed: seed})
		if left := files(t, dir); !slices.Equal(left, []string{"out.tar"}) {
			t.Errorf("left behind: %v", left)
		}
		return contents(t, out)
	}
	one := shuffled(1, a, b)
	if !cmp.Equal(slices.Sorted(slices.Values(one)), want) {
		t.Error("the shuffle lost, added or changed samples")
	}
	if cmp.Equal(one, contents(t, a, b)) {
		t.Error("the shuffle left the order as it was")
	}
	if !cmp.Equal(one, shuffled(1, a, b)) {
		t.Error("one seed gave two orders")
	}
	if cmp.Equal(one, shuffled(2, a, b)) {
		t.Error("two seeds gave one order")
	}
	if !cmp.Equal(one, shuffled(1, gz, b)) {
		t.Error("a compressed input is shuffled otherwise")
	}
	data, _ := os.ReadFile(a)
	out := filepath.Join(t.TempDir(), "out.tar")
	st := &store.Local{Stdin: bytes.NewReader(data)}
	convert(t, []string{"-", b}, out, &shard.ConvertOptions{Options: shard.Options{Store: st}, Shuffle: true, Seed: 1})
	if !cmp.Equal(one, contents(t, out)) {
		t.Error("a pipe is shuffled otherwise")
	}
}

func TestSplitGoesByTheHashOfTheKey(t *testing.T) {
	in := writeTar(t, "in.tar", 200)
	dir := t.TempDir()
	c := convert(t, []string{in}, filepath.Join(dir, "{split}.tar"), &shard.ConvertOptions{
		Parts: []shard.Part{{Name: "train", Weight: 8}, {Name: "val", Weight: 1}, {Name: "test", Weight: 1}},
	})
	if len(c.Outputs) != 3 {
		t.Fatalf("%d outputs", len(c.Outputs))
	}
	want := map[string][]string{}
	for _, sample := range contents(t, in) {
		key := strings.Trim(strings.Fields(sample)[0], `"`)
		sum := sha256.Sum256([]byte(key))
		part := "test"
		switch at := float64(binary.BigEndian.Uint64(sum[:8])) / (1 << 63) / 2; {
		case at < 0.8:
			part = "train"
		case at < 0.9:
			part = "val"
		}
		want[part] = append(want[part], sample)
	}
	for part, samples := range want {
		if got := contents(t, filepath.Join(dir, part+".tar")); !cmp.Equal(got, samples) {
			t.Errorf("%s has %d samples, want %d", part, len(got), len(samples))
		}
	}
	if len(want["train"]) < 140 || len(want["train"]) > 180 {
		t.Errorf("train has %d of 200", len(want["train"]))
	}
}

func TestMappingAndFilter(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.tar")
	c := convert(t, []string{fixtures + "photos/photos-000001.tfrecord"}, out, &shard.ConvertOptions{
		Mapping: shard.Mapping{Preset: shard.ImageNet, Drop: []string{"image/source", "image/changes"}, Rename: map[string]string{"image/author": "author.txt"}},
	})
	if c.Samples != 18 {
		t.Errorf("%d samples", c.Samples)
	}
	for s, err := range reader.New(&store.Local{}, []string{out}, nil).Samples(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		jpg, cls := s.Field("jpg"), s.Field("cls")
		if jpg == nil || !bytes.HasPrefix(jpg.Data, []byte("\xff\xd8\xff")) || cls == nil || len(cls.Data) != 1 || cls.Data[0] < '0' || cls.Data[0] > '9' ||
			s.Field("author.txt") == nil || s.Field("image%2Fsource") != nil || s.Field("image%2Fheight.int64.json") == nil {
			t.Fatalf("the fields are %q", s.Names())
		}
	}
	back := filepath.Join(dir, "back.tfrecord")
	convert(t, []string{out}, back, &shard.ConvertOptions{Mapping: shard.Mapping{Preset: shard.ImageNet}})
	for s, err := range reader.New(&store.Local{}, []string{back}, nil).Samples(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if f := s.Field("image/class/label"); s.Field("image/encoded") == nil || f == nil || f.Kind != format.Int64List {
			t.Fatalf("the features are %q", s.Names())
		}
	}
	c = convert(t, []string{writeTar(t, "in.tar", 25)}, filepath.Join(dir, "some.tar"), &shard.ConvertOptions{Keys: []string{"in/000*", "*/0011"}})
	if c.Samples != 11 || c.Filtered != 14 {
		t.Errorf("%d samples and %d filtered, want 11 and 14", c.Samples, c.Filtered)
	}
}

// TestFailuresLeaveNothing makes each operation fail, in each way, and looks
// for what it left.
func TestFailuresLeaveNothing(t *testing.T) {
	good := writeTar(t, "good.tar", 30)
	bad := fixtures + "cases/container/b2_header_checksum.tar"
	full := func() store.Store {
		return faultstore.New(&store.Local{}, faultstore.Fault{Op: faultstore.Write, After: 2, Err: errors.New("no space left on device")})
	}
	for _, tt := range []struct {
		name string
		run  func(dir string) error
		want error
	}{
		{"a broken input", func(dir string) error {
			_, err := shard.Convert(context.Background(), []string{good, bad}, dir+"/out-%02d.tar", &shard.ConvertOptions{Output: shard.OutputOptions{Count: 7}})
			return err
		}, format.ErrCorrupt},
		{"a broken input, shuffled", func(dir string) error {
			_, err := shard.Convert(context.Background(), []string{good, bad}, dir+"/out.tar", &shard.ConvertOptions{Shuffle: true})
			return err
		}, format.ErrCorrupt},
		{"no input", func(dir string) error {
			_, err := shard.Convert(context.Background(), []string{good, dir + "/none.tar"}, dir+"/out.tar", nil)
			return err
		}, format.ErrNotFound},
		{"a full disk", func(dir string) error {
			_, err := shard.Convert(context.Background(), []string{good}, dir+"/out-%02d.tar", &shard.ConvertOptions{Options: shard.Options{Store: full()}, Output: shard.OutputOptions{Count: 7}})
			return err
		}, format.ErrIO},
		{"records of two types", func(dir string) error {
			_, err := shard.Convert(context.Background(), []string{fixtures + "tf/examples.tfrecord", fixtures + "tf/raw.tfrecord"}, dir+"/out.tar", nil)
			return err
		}, format.ErrUsage},
		{"a key twice in one shard", func(dir string) error {
			_, err := shard.Convert(context.Background(), []string{good, good}, dir+"/out.tar", nil)
			return err
		}, format.ErrDuplicate},
		{"a key twice in a row", func(dir string) error {
			a, b := writeTar(t, "a.tar", 1), writeTar(t, "a.tar", 1)
			_, err := shard.Convert(context.Background(), []string{a, b}, dir+"/out.tar", nil)
			return err
		}, format.ErrDuplicate},
		{"a part that is a path", func(dir string) error {
			_, err := shard.Convert(context.Background(), []string{good}, dir+"/e{split}.tar", &shard.ConvertOptions{Parts: []shard.Part{{Name: "../../evil", Weight: 1}, {Name: "b", Weight: 1}}})
			return err
		}, format.ErrUsage},
		{"no format", func(dir string) error {
			_, err := shard.Convert(context.Background(), []string{good}, dir+"/out", nil)
			return err
		}, format.ErrUsage},
		{"several shards under one name", func(dir string) error {
			_, err := shard.Convert(context.Background(), []string{good}, dir+"/out.tar", &shard.ConvertOptions{Shards: 2})
			return err
		}, format.ErrUsage},
		{"repair of something else", func(dir string) error {
			_, err := shard.Repair(context.Background(), fixtures+"cases/container/c2_lfs_pointer.tar", dir+"/out.tar", nil)
			return err
		}, format.ErrWrongFormat},
		{"extract of a broken shard", func(dir string) error {
			_, err := shard.Extract(context.Background(), []string{good, bad}, dir+"/out", nil)
			return err
		}, format.ErrCorrupt},
		{"pack of a missing file", func(dir string) error {
			list := filepath.Join(t.TempDir(), "list.csv")
			if err := os.WriteFile(list, []byte("path,label\nnone.jpg,3\n"), 0o666); err != nil {
				return err
			}
			_, err := shard.Pack(context.Background(), "", dir+"/out.tar", &shard.PackOptions{List: list})
			return err
		}, format.ErrNotFound},
		{"index of a broken shard", func(dir string) error {
			_, err := shard.Index(context.Background(), []string{bad}, &shard.IndexOptions{Output: dir + "/out.idx"})
			return err
		}, format.ErrCorrupt},
		{"cancelled", func(dir string) error {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, err := shard.Convert(ctx, []string{good}, dir+"/out.tar", nil)
			return err
		}, context.Canceled},
	} {
		dir := t.TempDir()
		err := tt.run(dir)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if left := files(t, dir); len(left) > 0 {
			t.Errorf("%s left %v", tt.name, left)
		}
	}
}

func TestExistingFilesAreKeptUnlessForced(t *testing.T) {
	in := writeTar(t, "in.tar", 3)
	out := filepath.Join(t.TempDir(), "out.tar")
	if err := os.WriteFile(out, []byte("precious"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := shard.Convert(t.Context(), []string{in}, out, nil); !errors.Is(err, format.ErrUsage) {
		t.Errorf("Convert onto a file: %v", err)
	}
	if data, _ := os.ReadFile(out); string(data) != "precious" {
		t.Error("the file was replaced")
	}
	convert(t, []string{in}, out, &shard.ConvertOptions{Output: shard.OutputOptions{Force: true}})
	if got := contents(t, out); len(got) != 3 {
		t.Errorf("%d samples", len(got))
	}
	// The input itself may be the output: it is replaced when all is read.
	convert(t, []string{out}, out, &shard.ConvertOptions{Output: shard.OutputOptions{Force: true}})
	if got := contents(t, out); len(got) != 3 {
		t.Errorf("%d samples", len(got))
	}
}

func TestLossesAreReported(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.tfrecord")
	c := convert(t, []string{fixtures + "cases/tfrecord/c3_flip_payload.tfrecord"}, out, &shard.ConvertOptions{
		Options: shard.Options{Read: reader.Options{OnError: format.Skip, Type: reader.Raw}},
	})
	if c.Samples != 2 || c.Lost != 1 || len(c.Losses) != 1 || c.Losses[0].Offset != 56 || !errors.Is(c.Losses[0].Err, format.ErrCorrupt) {
		t.Errorf("%d samples, %d losses: %+v", c.Samples, c.Lost, c.Losses)
	}
}

// TestLossesOfCopiesNameTheInput shuffles a compressed input that is cut: it is
// copied first, and what is said must be about the input.
func TestLossesOfCopiesNameTheInput(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.tar.gz")
	convert(t, []string{writeTar(t, "in.tar", 40)}, in, nil)
	data, err := os.ReadFile(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in, data[:len(data)/2], 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.tar")
	o := &shard.ConvertOptions{Shuffle: true, Options: shard.Options{Read: reader.Options{OnError: format.Resync}}}
	c := convert(t, []string{in}, out, o)
	if c.Samples == 0 || c.Samples == 40 || len(contents(t, out)) != int(c.Samples) || c.Lost == 0 {
		t.Errorf("%d samples, %d losses", c.Samples, c.Lost)
	}
	for _, l := range c.Losses {
		if e := format.AsError(l.Err); e.Shard != in {
			t.Errorf("a loss is of %q: %v", e.Shard, l.Err)
		}
	}
	o.Read.OnError = format.Stop
	if _, err := shard.Convert(t.Context(), []string{in}, filepath.Join(dir, "no.tar"), o); !errors.Is(err, format.ErrTruncated) || format.AsError(err).Shard != in {
		t.Errorf("stop: %v", err)
	}
	if left := files(t, dir); !slices.Equal(left, []string{"in.tar.gz", "out.tar"}) {
		t.Errorf("left: %v", left)
	}
}

// TestExtractStaysInItsFolder extracts names that point elsewhere.
func TestExtractStaysInItsFolder(t *testing.T) {
	for _, name := range []string{"../evil.jpg", "a/../../evil.jpg", "/evil.jpg", "a/./b.jpg", "a//b.jpg", "../../../../../../tmp/evil.jpg"} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := w.WriteHeader(&tar.Header{Name: name, Size: 4, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, "evil"); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		in := filepath.Join(dir, "in.tar")
		if err := os.WriteFile(in, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := shard.Extract(t.Context(), []string{in}, filepath.Join(dir, "sub", "out"), nil)
		for _, f := range files(t, dir) {
			if strings.HasSuffix(f, ".jpg") && !strings.HasPrefix(f, "sub/out/") {
				t.Errorf("%q was written to %s", name, f)
			}
		}
		if err != nil && !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("%q: %v", name, err)
		}
	}
	// A link in the folder is not followed out of it.
	dir := t.TempDir()
	out, outside := filepath.Join(dir, "out"), filepath.Join(dir, "outside")
	if err := errors.Join(os.Mkdir(out, 0o777), os.Mkdir(outside, 0o777)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(out, "in")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	if _, err := shard.Extract(t.Context(), []string{writeTar(t, "in.tar", 2)}, out, nil); err == nil {
		t.Error("a link out of the folder was followed")
	}
	if left := files(t, outside); len(left) > 0 {
		t.Errorf("outside there is %v", left)
	}
}

func TestPackAndExtractAreInverse(t *testing.T) {
	src := t.TempDir()
	want := map[string]string{
		"a/0001.jpg": "one", "a/0001.json": "{}", "a/0002.JPG": "two", "b/__x__.cls": "3", "b/img%2Ev2.txt": "dot", "top.seg.png": "png",
	}
	for name, data := range want {
		path := filepath.Join(src, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(data), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	for _, extra := range []string{"noext", ".hidden.jpg"} {
		if err := os.WriteFile(filepath.Join(src, extra), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, suffix := range []string{".tar", ".tfrecord", ".tar.gz"} {
		dir := t.TempDir()
		out, back := filepath.Join(dir, "out"+suffix), filepath.Join(dir, "back")
		p, err := shard.Pack(t.Context(), src, out, nil)
		if err != nil {
			t.Fatal(err)
		}
		if p.Samples != 5 || p.Files != 6 || p.Skipped["no-field"] != 1 || p.Skipped["hidden"] != 1 {
			t.Errorf("%s: %+v", suffix, p)
		}
		if _, err := shard.Extract(t.Context(), []string{out}, back, nil); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, name := range files(t, back) {
			if data, err := os.ReadFile(filepath.Join(back, name)); err == nil {
				got[name] = string(data)
			}
		}
		names := maps.Clone(want)
		delete(names, "b/__x__.cls") // a name that readers of tar skip is escaped
		names["b/%5F_x__.cls"] = "3"
		if !cmp.Equal(got, names) {
			t.Errorf("%s: %s", suffix, cmp.Diff(names, got))
		}
	}
}

func TestPackByFolderAndList(t *testing.T) {
	src := t.TempDir()
	for _, name := range []string{"cat/1.jpg", "dog/1.jpg", "dog/2.jpg"} {
		path := filepath.Join(src, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(name), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	texts := func(o *shard.PackOptions) ([]string, error) {
		out := filepath.Join(t.TempDir(), "out.tar")
		if _, err := shard.Pack(t.Context(), src, out, o); err != nil {
			return nil, err
		}
		var all []string
		for s, err := range reader.New(&store.Local{}, []string{out}, nil).Samples(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			text := string(s.Key)
			for i := range s.Fields {
				text += fmt.Sprintf(" %s=%s", s.Fields[i].Name, s.Fields[i].Data)
			}
			all = append(all, text)
		}
		return all, nil
	}
	list := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		name  string
		o     *shard.PackOptions
		want  []string
		class string
	}{
		{"names of folders", &shard.PackOptions{ByFolder: true}, []string{"cat/1 jpg=cat/1.jpg cls=0", "dog/1 jpg=dog/1.jpg cls=1", "dog/2 jpg=dog/2.jpg cls=1"}, ""},
		{"a list of classes", &shard.PackOptions{ByFolder: true, Classes: []string{"dog", "bird", "cat"}}, []string{"cat/1 jpg=cat/1.jpg cls=2", "dog/1 jpg=dog/1.jpg cls=0", "dog/2 jpg=dog/2.jpg cls=0"}, ""},
		{"a class that is not listed", &shard.PackOptions{ByFolder: true, Classes: []string{"dog"}}, nil, "usage"},
		{"CSV", &shard.PackOptions{List: list("l.csv", "path,label,note\ndog/2.jpg,7,\"a, b\"\ncat/1.jpg,8,c\n")}, []string{
			`dog/2 jpg=dog/2.jpg cls=7 json={"note":"a, b"}`, `cat/1 jpg=cat/1.jpg cls=8 json={"note":"c"}`}, ""},
		{"JSON Lines", &shard.PackOptions{List: list("l.jsonl", "{\"path\":[\"dog/2.jpg\"],\"key\":\"k\",\"label\":7,\"box\":[1, 2]}\n\n{\"path\":\"cat/1.jpg\"}\n")}, []string{
			`k jpg=dog/2.jpg cls=7 json={"box":[1, 2]}`, `cat/1 jpg=cat/1.jpg`}, ""},
		{"a key twice", &shard.PackOptions{List: list("l.csv", "path\ncat/1.jpg\ncat/1.jpg\n")}, nil, "duplicate"},
		{"no path", &shard.PackOptions{List: list("l.csv", "file\ncat/1.jpg\n")}, nil, "usage"},
		{"ragged CSV", &shard.PackOptions{List: list("l.csv", "path,label\ncat/1.jpg\n")}, nil, "corrupt"},
		{"no JSON", &shard.PackOptions{List: list("l.jsonl", "{\"path\":\n")}, nil, "corrupt"},
	} {
		got, err := texts(tt.o)
		if !cmp.Equal(got, tt.want) || format.Class(err) != tt.class {
			t.Errorf("%s: %q, %v; want %q, %q", tt.name, got, err, tt.want, tt.class)
		}
	}
}

// TestRepairKeepsWhatIsSound repairs every damaged case and holds the result
// against what the case says is delivered when reading goes on.
func TestRepairKeepsWhatIsSound(t *testing.T) {
	for _, tt := range []struct {
		name    string
		samples int64
		lost    int64
	}{
		{"tfrecord/c1_cut_in_data.tfrecord", 2, 1},
		{"tfrecord/c3_flip_length.tfrecord", 2, 1},
		{"tfrecord/c3_flip_payload.tfrecord", 2, 1},
		{"tfrecord/c1_cut.tfrecord.gz", 2, 1},
		{"container/b2_cut_in_data.tar", 1, 1},
		{"container/b1_no_end_marker.tar", 1, 0},
		{"container/b13_trailer_crc.tar.gz", 3, 1},
		{"keys/a2_late_member.tar", 3, 1},
		{"keys/a5_collision.tar", 1, 0},
		{"container/good_ustar.tar", 3, 0},
	} {
		out := filepath.Join(t.TempDir(), "out"+strings.TrimPrefix(filepath.Ext(strings.TrimSuffix(tt.name, ".gz")), ""))
		c, err := shard.Repair(t.Context(), fixtures+"cases/"+tt.name, out, nil)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if c.Samples != tt.samples || c.Lost != tt.lost {
			t.Errorf("%s: %d samples and %d losses %v, want %d and %d", tt.name, c.Samples, c.Lost, c.Losses, tt.samples, tt.lost)
		}
		err = shard.Verify(t.Context(), []string{out}, nil, func(v *shard.Verification) error {
			if !v.OK() || v.Samples != tt.samples {
				t.Errorf("%s: the repaired shard has %d samples and the faults %v", tt.name, v.Samples, v.Errors)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestVerifyFindsAllFaults(t *testing.T) {
	var b []byte
	var faults int64
	for i := range 50 {
		at := len(b)
		b = tfrecord.AppendFrame(b, bytes.Repeat([]byte{byte(i)}, 40))
		if i%10 == 5 {
			b[at+20] ^= 1
			faults++
		}
	}
	dir := t.TempDir()
	bad, good := filepath.Join(dir, "bad.tfrecord"), writeTar(t, "good.tar", 3)
	if err := os.WriteFile(bad, b, 0o666); err != nil {
		t.Fatal(err)
	}
	names := []string{good, bad, filepath.Join(dir, "none.tar"), good}
	var got []string
	err := shard.Verify(t.Context(), names, &shard.VerifyOptions{MaxErrors: 3}, func(v *shard.Verification) error {
		got = append(got, fmt.Sprintf("%s %d %d %d", filepath.Base(v.Shard), v.Samples, len(v.Errors), v.ErrorsTotal))
		return nil
	})
	want := []string{"good.tar 3 0 0", fmt.Sprintf("bad.tfrecord 45 3 %d", faults), "none.tar 0 1 1", "good.tar 3 0 0"}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v, %q, want %q", err, got, want)
	}
}

// TestVerifySaysThatItsCheckOfKeysStopped gives room for few keys.
func TestVerifySaysThatItsCheckOfKeysStopped(t *testing.T) {
	in := writeTar(t, "in.tar", 40)
	for room, want := range map[int64]bool{0: false, 64: true} { // 0 is the default; a key takes up to 16 bytes
		o := &shard.VerifyOptions{Options: shard.Options{Read: reader.Options{Limits: &format.Limits{Keys: room}}}}
		err := shard.Verify(t.Context(), []string{in}, o, func(v *shard.Verification) error {
			if v.KeyCheckStopped != want || !v.OK() || v.Samples != 40 {
				t.Errorf("room for %d bytes: stopped %v, want %v; %d samples, %v", room, v.KeyCheckStopped, want, v.Samples, v.Errors)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestInspectAndList(t *testing.T) {
	in := writeTar(t, "in.tar", 25)
	err := shard.Inspect(t.Context(), []string{in}, nil, func(i *shard.Inspection) error {
		names := map[string]shard.FieldStats{}
		for _, f := range i.Fields {
			names[f.Name] = f
		}
		// 0 to 24 tens of bytes of jpg; ten numbers of one digit and 15 of two.
		if jpg, cls := names["jpg"], names["cls"]; i.Samples != 25 || !i.Whole || i.ErrorsTotal != 0 || len(i.Keys) != 5 || i.Keys[4] != "in/0004" ||
			jpg.Samples != 25 || jpg.Bytes != 3000 || jpg.MinBytes != 0 || jpg.MaxBytes != 240 || cls.Bytes != 40 {
			t.Errorf("%+v", i)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	var keys []string
	err = shard.List(t.Context(), []string{in, in}, &shard.ListOptions{Skip: 23, Limit: 4, Hash: true}, func(l *shard.Listed) error {
		keys = append(keys, string(l.Key))
		for _, f := range l.Fields {
			if f.Name == "cls" && f.SHA256 != sha256.Sum256(fmt.Append(nil, l.Index)) {
				t.Errorf("sample %d: another hash", l.Index)
			}
		}
		return nil
	})
	if want := []string{"in/0023", "in/0024", "in/0000", "in/0001"}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("%v %q, want %q", err, keys, want)
	}
}

// TestNineGiB verifies and indexes members that no memory holds, of which only
// the headers are there.
func TestNineGiB(t *testing.T) {
	for _, kind := range []string{"pax", "base256"} {
		head, err := os.ReadFile(fixtures + "cases/container/b7_9gib_" + kind + ".head")
		if err != nil {
			t.Fatal(err)
		}
		tail, err := os.ReadFile(fixtures + "cases/container/b7_9gib_" + kind + ".tail")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "big.tar")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		const zeros = 9663676416
		_, e1 := f.WriteAt(head, 0)
		_, e2 := f.WriteAt(tail, int64(len(head))+zeros)
		if err := errors.Join(e1, e2, f.Close()); err != nil {
			t.Skip("no sparse file of 9 GiB here:", err)
		}
		err = shard.Verify(t.Context(), []string{path}, nil, func(v *shard.Verification) error {
			if !v.OK() || v.Samples != 2 {
				t.Errorf("%s: %d samples, %v", kind, v.Samples, v.Errors)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		done, err := shard.Index(t.Context(), []string{path}, nil)
		if err != nil || done[0].Samples != 2 {
			t.Errorf("%s: %v, %v", kind, done, err)
		}
		err = shard.List(t.Context(), []string{path}, nil, func(*shard.Listed) error { return nil })
		if e := format.AsError(err); !errors.Is(err, format.ErrLimit) || e.Key != "big" || e.Offset != 0 {
			t.Errorf("%s: reading into memory: %v, want limit for big", kind, err)
		}
	}
}
