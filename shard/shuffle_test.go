package shard_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/store"
	"shardtool/shard"
)

// inputs names shards of all kinds: those of other tools, and damaged ones.
func inputs(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"tars/*.tar*", "tf/*.tfrecord", "cases/keys/*.tar", "cases/container/*.tar*", "cases/tfrecord/*.tfrecord*"} {
		names, err := filepath.Glob(fixtures + pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, names...)
	}
	all = slices.DeleteFunc(all, func(name string) bool { return strings.HasSuffix(name, ".idx") })
	if len(all) < 120 {
		t.Fatalf("only %d inputs", len(all))
	}
	return all
}

// TestTwoPassesGiveWhatOneGives converts every input, to its own format and to
// the other, in one pass and in two, which read the samples again one by one:
// under every policy the same samples come out, or the same error does.
func TestTwoPassesGiveWhatOneGives(t *testing.T) {
	dir := t.TempDir()
	samples := 0
	run := func(name, suffix string, o shard.ConvertOptions) (got []string, told int, outcome string) {
		o.Read.OnLoss = func(format.Loss) { told++ }
		o.Output.Force = true
		c, err := shard.Convert(t.Context(), []string{name}, filepath.Join(dir, "out-%d"+suffix), &o)
		if err != nil {
			return nil, told, format.Class(err)
		}
		for _, w := range c.Outputs {
			list, _ := hashes(t, w.Name, true)
			got = append(got, list...)
		}
		slices.Sort(got)
		return got, told, fmt.Sprint(c.Skipped, c.Warnings)
	}
	for _, name := range inputs(t) {
		for _, suffix := range []string{".tar", ".tfrecord"} {
			for _, policy := range []format.OnError{format.Stop, format.Skip, format.Resync} {
				if policy != format.Stop && !strings.Contains(name, "/cases/") && !strings.Contains(name, "-sparse") {
					continue // nothing is wrong with it
				}
				o := shard.ConvertOptions{Options: shard.Options{Read: reader.Options{OnError: policy}}}
				want, told, outcome := run(name, suffix, o)
				samples += len(want)
				for _, shards := range []int{0, 2} {
					o.Shards, o.Shuffle = shards, shards == 0
					got, again, two := run(name, suffix, o)
					if !slices.Equal(got, want) || two != outcome {
						t.Errorf("%s to %s, %v: in two passes %d samples, %s; in one %d, %s", name, suffix, policy, len(got), two, len(want), outcome)
					}
					if failed := got == nil && want == nil; again != told && !failed {
						t.Errorf("%s to %s, %v: %d losses were told in one pass, %d in two", name, suffix, policy, told, again)
					}
				}
			}
		}
	}
	if samples < 1000 {
		t.Errorf("only %d samples", samples)
	}
	if left := slices.DeleteFunc(files(t, dir), func(f string) bool { return strings.HasPrefix(f, "out-") }); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestShuffleFollowsLinks: links that lead back, ahead, and to another field of
// the sample are what they lead to, in two passes as in one.
func TestShuffleFollowsLinks(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(h tar.Header, data string) {
		h.Size, h.Mode, h.Format = int64(len(data)), 0o644, tar.FormatUSTAR
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, data); err != nil {
			t.Fatal(err)
		}
	}
	add(tar.Header{Name: "shared"}, "no sample's")
	add(tar.Header{Name: "1.jpg"}, "one")
	add(tar.Header{Name: "1.png", Typeflag: tar.TypeLink, Linkname: "1.jpg"}, "")
	add(tar.Header{Name: "2.cls"}, "2")
	add(tar.Header{Name: "2.jpg", Typeflag: tar.TypeLink, Linkname: "1.jpg"}, "")
	add(tar.Header{Name: "2.txt", Typeflag: tar.TypeSymlink, Linkname: "shared"}, "")
	add(tar.Header{Name: "3.jpg", Typeflag: tar.TypeSymlink, Linkname: "4.jpg"}, "")
	add(tar.Header{Name: "3.cls"}, "")
	add(tar.Header{Name: "4.jpg"}, "four")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tree(t, dir, map[string]string{"in.tar": b.String()})
	for _, tt := range []struct {
		fields []string
		want   []string
	}{
		{nil, []string{"1 jpg=one png=one", "2 cls=2 jpg=one txt=no sample's", "3 jpg=four cls=", "4 jpg=four"}},
		{[]string{"jpg"}, []string{"1 jpg=one", "2 jpg=one", "3 jpg=four", "4 jpg=four"}},
		{[]string{"png;jpg"}, []string{"1 png=one", "2 jpg=one", "3 jpg=four", "4 jpg=four"}},
		{[]string{"cls", "jpg"}, []string{"2 cls=2 jpg=one", "3 cls= jpg=four"}},
		{[]string{"png"}, []string{"1 png=one"}},
	} {
		o := &shard.ConvertOptions{Options: shard.Options{Read: reader.Options{Fields: tt.fields, OnMissing: format.MissingSkip}}, Shuffle: true, Output: shard.OutputOptions{Force: true}}
		out := filepath.Join(dir, "out.tar")
		convert(t, []string{filepath.Join(dir, "in.tar")}, out, o)
		var got []string
		for s, err := range reader.New(&store.Local{}, []string{out}, nil).Samples(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			text := string(s.Key)
			for _, f := range s.Fields {
				text += fmt.Sprintf(" %s=%s", f.Name, f.Data)
			}
			got = append(got, text)
		}
		slices.Sort(got)
		if !slices.Equal(got, tt.want) {
			t.Errorf("fields %q: %q, want %q", tt.fields, got, tt.want)
		}
	}
}
