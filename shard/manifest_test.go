package shard

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"shardtool/format"
	"shardtool/format/index"
	"shardtool/reader"
	"shardtool/reader/store"
)

func TestShardsAreSeenFromTheirManifest(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are of another system")
	}
	for _, tt := range []struct{ name, out, want string }{
		{"a.tar", "m.json", "a.tar"},
		{"d/a.tar", "d/m.json", "a.tar"},
		{"d/a.tar", "m.json", "d/a.tar"},
		{"a.tar", "d/m.json", "../a.tar"},
		{"d/a.tar", "e/m.json", "../d/a.tar"},
		{"/d/a.tar", "/d/m.json", "a.tar"},
		{"/d/a.tar", "m.json", "/d/a.tar"},
		{"a.tar", "-", "a.tar"},
		{"s3://b/k/a.tar", "s3://b/k/m.json", "a.tar"},
		{"s3://b/k/a.tar", "s3://b/m.json", "k/a.tar"},
		{"s3://b/k/a.tar", "s3://b/z/m.json", "s3://b/k/a.tar"},
		{"s3://b/k/a.tar", "m.json", "s3://b/k/a.tar"},
		{"s3://b/k/a.tar", "https://h/k/m.json", "s3://b/k/a.tar"},
	} {
		if got := relative(tt.name, tt.out); got != tt.want {
			t.Errorf("%s in %s: %s, want %s", tt.name, tt.out, got, tt.want)
		}
	}
}

// TestAManifestOpensWhatItWasMadeOf: with the counts and sizes that were there.
func TestAManifestOpensWhatItWasMadeOf(t *testing.T) {
	t.Chdir(t.TempDir())
	names := []string{"in/a.tar", "in/b.tfrecord", "in/c.tfrecord"}
	for i, from := range []string{"container/good_ustar.tar", "tfrecord/good.tfrecord", "tfrecord/c4_gzip_named.tfrecord"} {
		data, err := os.ReadFile(filepath.Join(root, "fixtures", "cases", filepath.FromSlash(from)))
		if err == nil {
			err = os.MkdirAll("in", 0o777)
		}
		if err == nil {
			err = os.WriteFile(names[i], data, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	set, warnings, err := WriteManifest(t.Context(), names, "out/m.json", nil)
	if err != nil || len(warnings) > 0 || set.Samples() != 3+5+2 {
		t.Fatal(set, warnings, err)
	}
	d, err := reader.Open(t.Context(), "@out/m.json", &reader.Options{Store: &store.Local{}, CacheDir: "-"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Manifest(t.Context())
	if err != nil || m.Samples() != 10 {
		t.Fatal(m, err)
	}
	var got []int64
	for i := range d.Shards() {
		n := int64(0)
		s, err := d.Run(t.Context(), i, 0, m.Shards[i].Samples)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range s.Samples() {
			if err != nil {
				t.Error(err)
			}
			n++
		}
		s.Close()
		got = append(got, n)
	}
	if !slices.Equal(got, []int64{3, 5, 2}) {
		t.Errorf("%d samples", got)
	}
	// A faulty shard has no manifest.
	if err := os.WriteFile("in/d.tfrecord", []byte("no record at all"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, _, err = WriteManifest(t.Context(), append(names, "in/d.tfrecord"), "out/n.json", nil)
	if e := format.AsError(err); e == nil || e.Shard != "in/d.tfrecord" {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat("out/n.json"); err == nil {
		t.Error("a manifest of a faulty shard")
	}
	f, err := os.Open("out/m.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if back, err := index.ReadDataset(f, nil); err != nil || back.Shards[2].Compression != "gzip" || back.Shards[0].Format != "tar" || back.Shards[0].URL != "../in/a.tar" {
		t.Errorf("%+v, %v", back, err)
	}
}

// root is the folder of the module.
var root = func() string {
	dir, _ := os.Getwd()
	return filepath.Dir(dir)
}()
