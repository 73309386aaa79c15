package reader_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/format/index"
	"shardtool/reader"
	"shardtool/reader/store"
	"shardtool/reader/store/faultstore"
)

// long is a time at which a file may have been changed so that nobody doubts
// that it is as it was.
var long = time.Now().Add(-time.Hour)

// put writes files that were last changed an hour ago.
func put(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, data, 0o666), os.Chtimes(path, long, long))
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestManifestSaysWhatToldIt(t *testing.T) {
	tar, records := tarOf(t, 4), examplesOf(3)
	files := fstest.MapFS{
		"a.tar": {Data: tar}, "b.tfrecord": {Data: records}, "c.tar.gz": {Data: packed(t, compress.Gzip, tar)},
		"d.tar": {Data: tar}, "d.tar.idx": {Data: indexOf(t, "d.tar", tar, index.WDS)},
		"e.tfrecord": {Data: records}, "e.idx": {Data: indexOf(t, "e.tfrecord", records, index.DALI)},
		"f.tar": {Data: tar}, "f.tar.idx": {Data: indexOf(t, "f.tar", tarOf(t, 3), index.WDS)},
		"g.tar": {Data: tar}, "g.tar.idx": {Data: indexOf(t, "g.tar", tarOf(t, 5), index.Energon)},
		"h.tar": {Data: tar}, "h.tar.idx": {Data: indexOf(t, "b.tfrecord", records, index.DALI)},
		"i.tar": {Data: tar}, "i.tar.idx": {Data: []byte("something else")},
		"empty.tar": {}, "empty.tfrecord": {},
	}
	names := []string{"a.tar", "b.tfrecord", "c.tar.gz", "d.tar", "e.tfrecord", "f.tar", "g.tar", "h.tar", "i.tar", "empty.tar", "empty.tfrecord", "a.tar"}
	for _, tt := range []struct {
		scan reader.Scan
		want string
	}{
		{reader.ScanAuto, "4 tar none true scan, 3 tfrecord none true scan, ? tar gzip false , 4 tar none true sidecar, 3 tfrecord none true sidecar, " +
			"4 tar none true scan, 4 tar none true scan, 4 tar none true scan, 4 tar none true scan, 0 tar none true scan, 0 tfrecord none true scan, 4 tar none true scan"},
		{reader.ScanNever, "? auto none false , ? auto none false , ? auto none false , 4 tar none true sidecar, 3 tfrecord none true sidecar, " +
			"? auto none false , ? auto none false , ? auto none false , ? auto none false , ? auto none false , ? auto none false , ? auto none false "},
		{reader.ScanAlways, "4 tar none true scan, 3 tfrecord none true scan, 4 tar gzip false scan, 4 tar none true sidecar, 3 tfrecord none true sidecar, " +
			"4 tar none true scan, 4 tar none true scan, 4 tar none true scan, 4 tar none true scan, 0 tar none true scan, 0 tfrecord none true scan, 4 tar none true scan"},
	} {
		var log bytes.Buffer
		steps := 0
		o := &reader.Options{Scan: tt.scan, CacheDir: "-", Log: slog.New(slog.NewTextHandler(&log, nil)), Progress: func(done, total int) {
			if steps++; done != steps || total != len(names)-1 {
				t.Errorf("%d of %d are done at step %d", done, total, steps)
			}
		}}
		m, err := reader.New(store.FS(files), names, o).Manifest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, e := range m.Shards {
			n := fmt.Sprint(e.Samples)
			if e.Samples == format.Unknown {
				n = "?"
			}
			got = append(got, fmt.Sprintf("%s %v %v %v %s", n, e.Format, e.Compression, e.Offsets, e.From))
			if e.Name != names[i] || e.Size != int64(len(files[names[i]].Data)) || e.ETag != "" {
				t.Errorf("%+v", e)
			}
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("scan %d: %s", tt.scan, cmp.Diff(strings.Split(tt.want, ", "), got))
		}
		// One that is no index at all is none of ours to speak of.
		if len(m.Warnings) != 3 || !strings.Contains(m.Warnings[0], "f.tar.idx is not used") || strings.Count(log.String(), "level=WARN") != 3 {
			t.Errorf("warnings %q, log %s", m.Warnings, &log)
		}
	}
}

// TestIndexesThatHaveToFit: a wrong one is an error that names both.
func TestIndexesThatHaveToFit(t *testing.T) {
	tar, dot := tarOf(t, 4), tarOf(t, 2)
	records := examplesOf(3)
	gap := fmt.Sprintf("0 %d\n%d %d\n", len(records)/3, 2*(len(records)/3), len(records)/3)
	files := fstest.MapFS{
		"in/a.tar": {Data: tar}, "in/b.tfrecord": {Data: records}, "in/c.tar.gz": {Data: packed(t, compress.Gzip, tar)},
		"x/a.tar.idx": {Data: indexOf(t, "a.tar", tar, index.WDS)}, "x/a.idx": {Data: indexOf(t, "a.tar", dot, index.WDS)},
		"x/b.tfrecord.idx": {Data: indexOf(t, "b", records, index.DALI)}, "x/gap": {Data: []byte(gap)},
		"x/long": {Data: []byte(fmt.Sprintf("v1.2 1\njpg 512 %d k.jpg\n", len(tar)))}, "x/text": {Data: []byte("hello world, this is no index")},
		"x/huge": {Data: []byte("0 9223372036854775807\n")},
	}
	for _, tt := range []struct{ shard, index, class, says string }{
		{"in/a.tar", "x/{base}.idx", "", ""},
		{"in/a.tar", "{dir}/../x/a.tar.idx", "not-found", "in/../x"},
		{"in/a.tar", "x/{stem}.idx", "stale", "x/a.idx"},
		{"in/a.tar", "x/none", "not-found", "x/none"},
		{"in/a.tar", "x/b.tfrecord.idx", "stale", "x/b.tfrecord.idx"},
		{"in/a.tar", "x/long", "stale", "x/long"},
		{"in/a.tar", "x/text", "wrong-format", "x/text"},
		{"in/b.tfrecord", "x/{base}.idx", "", ""},
		{"in/b.tfrecord", "x/gap", "stale", "x/gap"},
		{"in/b.tfrecord", "x/huge", "stale", "x/huge"},
		{"in/b.tfrecord", "x/a.tar.idx", "stale", "x/a.tar.idx"},
		{"in/c.tar.gz", "x/a.tar.idx", "stale", "x/a.tar.idx"},
	} {
		d := reader.New(store.FS(files), []string{tt.shard}, &reader.Options{Index: tt.index, CacheDir: "-"})
		_, err := d.Manifest(t.Context())
		if format.Class(err) != tt.class || err != nil && (!strings.Contains(err.Error(), tt.says) || tt.class == "stale" && !strings.Contains(err.Error(), tt.shard)) {
			t.Errorf("%s by %s: %v, want %s naming %s", tt.shard, tt.index, err, tt.class, tt.says)
		}
		if _, e := d.Places(t.Context(), 0); format.Class(e) != tt.class {
			t.Errorf("%s by %s: places: %v", tt.shard, tt.index, e)
		}
	}
}

// TestAnOlderIndexIsReadAgainst: the whole shard, since its ends say too little.
func TestAnOlderIndexIsReadAgainst(t *testing.T) {
	dir := t.TempDir()
	tar := tarOf(t, 6)
	put(t, dir, map[string][]byte{"a.tar": tar, "a.tar.idx": indexOf(t, "a.tar", tar, index.WDS)})
	name := filepath.Join(dir, "a.tar")
	from := func() string {
		m, err := reader.New(&store.Local{}, []string{name}, &reader.Options{CacheDir: "-"}).Manifest(t.Context())
		if err != nil || m.Shards[0].Samples != 6 {
			t.Fatal(m, err)
		}
		return fmt.Sprint(m.Shards[0].From, len(m.Warnings))
	}
	if got := from(); got != "sidecar0" {
		t.Errorf("as old as the shard: %s", got)
	}
	older := long.Add(-time.Minute)
	if err := os.Chtimes(name+".idx", older, older); err != nil {
		t.Fatal(err)
	}
	if got := from(); got != "sidecar0" {
		t.Errorf("older, and right: %s", got)
	}
	// A member in the midst has another size now, which only a whole check sees.
	other := bytes.Replace(indexOf(t, "a.tar", tar, index.WDS), []byte(" 100 k0003"), []byte(" 101 k0003"), 1)
	put(t, dir, map[string][]byte{"a.tar.idx": other})
	if got := from(); got != "sidecar0" {
		t.Errorf("wrong in its midst: %s", got)
	}
	if err := os.Chtimes(name+".idx", older, older); err != nil {
		t.Fatal(err)
	}
	if got := from(); got != "scan1" {
		t.Errorf("older, and wrong in its midst: %s", got)
	}
}

// blind is a store whose objects cannot be opened.
type blind struct{ store.Store }

func (s blind) Open(context.Context, string) (store.Object, error) {
	return nil, format.Errorf(format.ErrIO, format.Nowhere, "it was opened")
}
func (s blind) Stat(ctx context.Context, name string) (store.Entry, error) {
	return store.Stat(ctx, s.Store, name)
}

func TestCountsAreKept(t *testing.T) {
	dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "deep", "cache")
	tar, records := tarOf(t, 4), examplesOf(30)
	put(t, dir, map[string][]byte{"a.tar": tar, "b.tfrecord": records, "c.tar.gz": packed(t, compress.Gzip, tar), "d.tar": faultyTar(t)})
	t.Chdir(dir)
	o := func() *reader.Options {
		return &reader.Options{CacheDir: cache, Scan: reader.ScanAlways, Fields: []string{"cls;label"}, OnMissing: format.MissingSkip, OnDuplicate: format.KeepFirst, Type: reader.Example}
	}
	names := []string{"a.tar", filepath.Join(dir, "b.tfrecord"), "c.tar.gz", "d.tar"}
	var want [][2]int64
	read := func(st store.Store, from string) {
		t.Helper()
		d := reader.New(st, names, o())
		m, err := d.Manifest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range []int64{4, 30, 4, 3} {
			if e := m.Shards[i]; e.Samples != n || e.From != from || len(m.Warnings) > 0 {
				t.Errorf("%+v, want %d from %s; %q", e, n, from, m.Warnings)
			}
		}
		p, err := d.Places(t.Context(), 3) // a sample is left out, so that ends are kept
		if err != nil || p.Len() != 3 {
			t.Fatal(p, err)
		}
		var got [][2]int64
		for i := range p.Len() {
			off, end := p.At(i)
			got = append(got, [2]int64{off, end})
		}
		if want == nil {
			want = got
		}
		if !cmp.Equal(got, want) {
			t.Errorf("places: %s", cmp.Diff(want, got))
		}
	}
	read(&store.Local{}, "scan")
	read(blind{&store.Local{}}, "cache")

	// Whatever bit of it is wrong, what is kept is made again.
	kept := cacheFiles(t, cache)
	if len(kept) != 4 {
		t.Fatal(kept)
	}
	for _, path := range kept {
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(good); i++ {
			if i > 72 {
				i += 23
			}
			if i >= len(good) {
				break
			}
			bad := bytes.Clone(good)
			bad[i] ^= 0x41
			check(t, path, bad, o(), names)
		}
		for n := 0; n < len(good); n += 13 {
			check(t, path, good[:n], o(), names)
		}
		check(t, path, append(bytes.Clone(good), 0), o(), names)
		if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, good) {
			t.Errorf("%s was not made again as it was: %v", path, err)
		}
	}
	read(blind{&store.Local{}}, "cache")

	// A file that a killed process left there is in nobody's way.
	if err := os.WriteFile(filepath.Join(filepath.Dir(kept[0]), ".x.ABCDEFGHIJKL.shardtool-part"), []byte("shpl"), 0o666); err != nil {
		t.Fatal(err)
	}
	read(blind{&store.Local{}}, "cache")

	// Another content at another time, or of another size, is another shard.
	put(t, dir, map[string][]byte{"a.tar": tarOf(t, 5)})
	m, err := reader.New(&store.Local{}, []string{"a.tar"}, o()).Manifest(t.Context())
	if err != nil || m.Shards[0].Samples != 5 || m.Shards[0].From != "scan" {
		t.Errorf("%+v, %v", m, err)
	}
	// Other options, another count.
	all := o()
	all.OnMissing = format.MissingFill
	m, err = reader.New(&store.Local{}, []string{"d.tar"}, all).Manifest(t.Context())
	if err != nil || m.Shards[0].Samples != 5 || m.Shards[0].From != "scan" {
		t.Errorf("%+v, %v", m, err)
	}
}

func cacheFiles(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.HasPrefix(d.Name(), ".") {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// check puts a file into the cache that does not hold.
func check(t *testing.T, path string, data []byte, o *reader.Options, names []string) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	d := reader.New(&store.Local{}, names, o)
	m, err := d.Manifest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range []int64{4, 30, 4, 3} {
		if m.Shards[i].Samples != n {
			t.Errorf("%d bytes of a cache that does not hold: %+v", len(data), m.Shards[i])
		}
		if p, err := d.Places(t.Context(), i); i != 2 && (err != nil || int64(p.Len()) != n) {
			t.Errorf("%d bytes of a cache that does not hold: places %v", len(data), err)
		}
	}
}

// TestWhatIsNotKept: a shard that was written just now, and what is of no file
// system; a folder that cannot be written is a warning.
func TestWhatIsNotKept(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	name := filepath.Join(dir, "a.tar")
	manifest := func(st store.Store, name, cache string) *reader.Manifest {
		m, err := reader.New(st, []string{name}, &reader.Options{CacheDir: cache}).Manifest(t.Context())
		if err != nil || m.Shards[0].From != "scan" {
			t.Fatal(m, err)
		}
		return m
	}
	later := time.Now().Add(time.Hour) // as young as can be, however slow this is
	if err := errors.Join(os.WriteFile(name, tarOf(t, 2), 0o666), os.Chtimes(name, later, later)); err != nil {
		t.Fatal(err)
	}
	manifest(&store.Local{}, name, cache)
	manifest(store.FS(fstest.MapFS{"a.tar": {Data: tarOf(t, 3)}}), "a.tar", cache)
	if got := cacheFiles(t, cache); len(got) != 0 {
		t.Errorf("kept: %q", got)
	}
	put(t, dir, map[string][]byte{"a.tar": tarOf(t, 2), "file": nil})
	if m := manifest(&store.Local{}, name, filepath.Join(dir, "file")); len(m.Warnings) != 1 || !strings.Contains(m.Warnings[0], "not kept") {
		t.Errorf("%q", m.Warnings)
	}
}

func TestMissingShards(t *testing.T) {
	pattern := cases + "epoch/f11_{000..003}.tar"
	d, err := reader.Open(t.Context(), pattern, &reader.Options{CacheDir: "-", Store: &store.Local{}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Manifest(t.Context())
	var read error
	var keys []string
	for s, e := range d.Samples(t.Context()) {
		if e != nil {
			read = e
			continue
		}
		keys = append(keys, string(s.Key))
	}
	for _, err := range []error{err, read} {
		if e := format.AsError(err); !errors.Is(err, format.ErrNotFound) || e.Shard != cases+"epoch/f11_002.tar" {
			t.Errorf("%v", err)
		}
	}
	want := strings.Fields("0000 0001 0002 0003 0004 0005 0009 0010 0011")
	if !slices.Equal(keys, want) {
		t.Errorf("%q, want %q", keys, want)
	}

	d, err = reader.Open(t.Context(), pattern, &reader.Options{CacheDir: "-", Store: &store.Local{}, OnMissingShard: format.MissingSkip})
	if err != nil {
		t.Fatal(err)
	}
	keys = nil
	for s, err := range d.Samples(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, string(s.Key))
	}
	m, err := d.Manifest(t.Context())
	if err != nil || m.Skipped != 1 || m.Samples() != 9 || !m.Shards[2].Missing || m.Shards[2].Samples != 0 || !slices.Equal(keys, want) {
		t.Errorf("%+v, %v, %q", m, err, keys)
	}
	if s, err := d.Run(t.Context(), 2, 0, 0); err != nil {
		t.Error(err)
	} else {
		for range s.Samples() {
			t.Error("a sample of a shard that is not there")
		}
		s.Close()
	}
	if _, err := d.Run(t.Context(), 2, 0, 1); err == nil {
		if s, _ := d.Run(t.Context(), 2, 0, 1); s != nil {
			if _, err := s.Next(); !errors.Is(err, format.ErrStale) {
				t.Errorf("a run of a shard that is not there: %v", err)
			}
			s.Close()
		}
	}
	if p, err := d.Places(t.Context(), 2); err != nil || p.Len() != 0 {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := d.Sample(t.Context(), 2, 0); !errors.Is(err, format.ErrUsage) {
		t.Errorf("a sample of a shard that is not there: %v", err)
	}
	if _, err := reader.Open(t.Context(), cases+"epoch/nothing-*.tar", &reader.Options{Store: &store.Local{}}); !errors.Is(err, format.ErrNotFound) {
		t.Errorf("a glob that fits nothing: %v", err)
	}
}

// TestEmptyShardsHaveNoSamples: so that reading them endlessly can be refused.
func TestEmptyShardsHaveNoSamples(t *testing.T) {
	var names []string
	for _, n := range []string{"b4_empty", "b4_zeros", "b4_only_dirs"} {
		names = append(names, cases+"container/"+n+".tar")
	}
	m, err := reader.New(&store.Local{}, names, &reader.Options{CacheDir: "-"}).Manifest(t.Context())
	if err != nil || m.Samples() != 0 || len(m.Shards) != 3 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestPipesAreNotCounted(t *testing.T) {
	for _, scan := range []reader.Scan{reader.ScanAuto, reader.ScanAlways} {
		d := reader.New(&store.Local{Stdin: bytes.NewReader(tarOf(t, 3))}, []string{"-"}, &reader.Options{CacheDir: "-", Scan: scan})
		m, err := d.Manifest(t.Context())
		if err != nil || m.Shards[0].Samples != format.Unknown || m.Shards[0].Size != format.Unknown || m.Samples() != format.Unknown {
			t.Fatal(m, err)
		}
		if _, err := d.Places(t.Context(), 0); !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("places of a pipe: %v", err)
		}
		if got, err := runOf(t, d, 1, format.Unknown); err != nil || len(got) != 2 {
			t.Errorf("a run of a pipe: %q, %v", got, err)
		}
	}
}

// counted counts what is asked of a store.
type counted struct {
	store.Store
	opens, stats, lists atomic.Int64
}

func (s *counted) Open(ctx context.Context, name string) (store.Object, error) {
	s.opens.Add(1)
	return s.Store.Open(ctx, name)
}

func (s *counted) Stat(ctx context.Context, name string) (store.Entry, error) {
	s.stats.Add(1)
	return store.Stat(ctx, s.Store, name)
}

func (s *counted) List(ctx context.Context, prefix string) iter.Seq2[store.Entry, error] {
	s.lists.Add(1)
	return s.Store.List(ctx, prefix)
}

// TestManifestIsMadeOnce: by many at a time, some of whom give up.
func TestManifestIsMadeOnce(t *testing.T) {
	files := fstest.MapFS{}
	var names []string
	for i := range 40 {
		n := fmt.Sprintf("%02d.tar", i)
		files[n] = &fstest.MapFile{Data: tarOf(t, i%5)}
		names = append(names, n)
	}
	st := &counted{Store: store.FS(files)}
	d := reader.New(st, names, &reader.Options{CacheDir: "-", Index: "-"})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Manifest(gone); err != context.Canceled {
		t.Errorf("%v", err)
	}
	if _, err := d.Places(gone, 3); err != context.Canceled {
		t.Errorf("%v", err)
	}
	st.opens.Store(0)
	st.stats.Store(0)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			if m, err := d.Manifest(t.Context()); err != nil || m.Samples() != 80 {
				t.Errorf("%+v, %v", m, err)
			}
			for i := range names {
				p, err := d.Places(t.Context(), (i+g*7)%len(names))
				if err != nil || p.Len() != (i+g*7)%len(names)%5 {
					t.Errorf("%v, %v", p, err)
				}
				if n := p.Len(); n > 0 {
					if s, err := d.Sample(t.Context(), (i+g*7)%len(names), int64(n-1)); err != nil || string(s.Key) != fmt.Sprintf("k%04d", n-1) {
						t.Errorf("%v, %v", s, err)
					}
				}
			}
		})
	}
	all.Wait()
	// 40 to scan, and one for each of 8 times 32 single samples.
	if st.opens.Load() != 40+8*32 || st.stats.Load() != 40 {
		t.Errorf("%d opened, %d described", st.opens.Load(), st.stats.Load())
	}
}

// TestManifestFailsWithTheFirstShardThatFails: whoever is looked at first.
func TestManifestFailsWithTheFirstShardThatFails(t *testing.T) {
	files := fstest.MapFS{}
	var names []string
	for i := range 20 {
		n := fmt.Sprintf("%02d.tar", i)
		files[n] = &fstest.MapFile{Data: tarOf(t, 2)}
		names = append(names, n)
	}
	fail := format.Errorf(format.ErrIO, format.Nowhere, "a bad sector")
	st := faultstore.New(store.FS(files), faultstore.Fault{Op: faultstore.Read, Name: "07.tar", Err: fail})
	d := reader.New(st, names, &reader.Options{CacheDir: "-", Index: "-"})
	for range 2 { // a failure is not kept
		_, err := d.Manifest(t.Context())
		if e := format.AsError(err); !errors.Is(err, format.ErrIO) || e.Shard != "07.tar" {
			t.Errorf("%v", err)
		}
	}
	if _, err := d.Places(t.Context(), 7); !errors.Is(err, format.ErrIO) {
		t.Errorf("%v", err)
	}
}

// bucket serves a store under the names of another.
type bucket struct {
	counted
	prefix string
}

func (b *bucket) Open(ctx context.Context, name string) (store.Object, error) {
	o, err := b.counted.Open(ctx, strings.TrimPrefix(name, b.prefix))
	if err != nil {
		return nil, err
	}
	return named{o, name}, nil
}

func (b *bucket) Stat(ctx context.Context, name string) (store.Entry, error) {
	e, err := b.counted.Stat(ctx, strings.TrimPrefix(name, b.prefix))
	e.Name = name
	return e, err
}

func (b *bucket) List(ctx context.Context, prefix string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for e, err := range b.counted.List(ctx, strings.TrimPrefix(prefix, b.prefix)) {
			e.Name = b.prefix + e.Name
			if !yield(e, err) {
				return
			}
		}
	}
}

type named struct {
	store.Object
	name string
}

func (o named) Stat() store.Entry {
	e := o.Object.Stat()
	e.Name = o.name
	return e
}

// TestRemoteShardsAreListed: one listing instead of a request for each, and none
// of them is read but by an index.
func TestRemoteShardsAreListed(t *testing.T) {
	files := fstest.MapFS{"p/README": {Data: []byte("x")}}
	var names []string
	for i := range 50 {
		n := fmt.Sprintf("p/%02d.tar", i)
		data := tarOf(t, 3)
		files[n] = &fstest.MapFile{Data: data}
		if i%10 == 0 {
			files[n+".idx"] = &fstest.MapFile{Data: indexOf(t, n, data, index.WDS)}
		}
		names = append(names, n)
	}
	for _, scheme := range []string{"s3://b/", "https://h/"} {
		b := &bucket{counted: counted{Store: store.FS(files)}, prefix: scheme}
		var all []string
		for _, n := range names {
			all = append(all, scheme+n)
		}
		cache := t.TempDir()
		d := reader.New(b, all, &reader.Options{CacheDir: cache})
		m, err := d.Manifest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range m.Shards {
			want, from := int64(format.Unknown), ""
			if i%10 == 0 {
				want, from = 3, "sidecar"
			}
			if e.Samples != want || e.From != from || e.Size != int64(len(files[names[i]].Data)) || e.ETag == "" || e.ETag != e.Version {
				t.Errorf("%+v", e)
			}
		}
		// An index, and its shard to hold it against.
		if lists, stats, opens := b.lists.Load(), b.stats.Load(), b.opens.Load(); opens != 10 || scheme == "s3://b/" && (lists != 1 || stats != 5) || scheme != "s3://b/" && lists != 0 {
			t.Errorf("%s: %d listings, %d described, %d opened", scheme, lists, stats, opens)
		}
		if _, err := d.Places(t.Context(), 1); !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), "shardtool index "+all[1]) {
			t.Errorf("%v", err)
		}
		// Whoever asks for it has them read, and the counts kept.
		for _, from := range []string{"scan", "cache"} {
			m, err := reader.New(b, all[1:2], &reader.Options{CacheDir: cache, Scan: reader.ScanAlways}).Manifest(t.Context())
			if err != nil || m.Shards[0].Samples != 3 || m.Shards[0].From != from || !m.Shards[0].Offsets {
				t.Errorf("%+v, %v", m, err)
			}
		}
	}

	// Where a few of them have no index, none is asked for.
	for n := range files {
		if strings.HasSuffix(n, ".idx") {
			delete(files, n)
		}
	}
	b := &bucket{counted: counted{Store: store.FS(files)}, prefix: "https://h/"}
	var all []string
	for _, n := range names {
		all = append(all, "https://h/"+n)
	}
	if _, err := reader.New(b, all, &reader.Options{CacheDir: "-"}).Manifest(t.Context()); err != nil || b.stats.Load() != 50+3*2 || b.opens.Load() != 0 {
		t.Errorf("%d described, %d opened, %v", b.stats.Load(), b.opens.Load(), err)
	}
	// One that is not in a listing is asked for, and is not there.
	b = &bucket{counted: counted{Store: store.FS(files)}, prefix: "s3://b/"}
	for i := range all {
		all[i] = "s3://b/" + names[i]
	}
	_, err := reader.New(b, append(all, "s3://b/p/99.tar"), &reader.Options{CacheDir: "-"}).Manifest(t.Context())
	if e := format.AsError(err); !errors.Is(err, format.ErrNotFound) || b.stats.Load() != 1 || e == nil {
		t.Errorf("%d described, %v", b.stats.Load(), err)
	}
}

func TestMix(t *testing.T) {
	a := reader.New(store.FS(fstest.MapFS{"a.tar": {Data: tarOf(t, 2)}, "b.tar": {Data: tarOf(t, 3)}}), []string{"a.tar", "b.tar"}, &reader.Options{CacheDir: "-"})
	b := reader.New(store.FS(fstest.MapFS{"a.tar": {Data: examplesOf(1)}}), []string{"a.tar"}, &reader.Options{CacheDir: "-", Format: reader.TFRecord})
	inner, err := reader.Mix(reader.Weighted{Dataset: b, Weight: 3}, reader.Weighted{Dataset: a, Weight: 1})
	if err != nil {
		t.Fatal(err)
	}
	d, err := reader.Mix(reader.Weighted{Dataset: a, Weight: 0.5}, reader.Weighted{Dataset: inner, Weight: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	wantParts := []reader.Part{{First: 0, N: 2, Weight: 0.5}, {First: 2, N: 1, Weight: 0.375}, {First: 3, N: 2, Weight: 0.125}}
	if got := d.Parts(); !cmp.Equal(got, wantParts) || !slices.Equal(d.Shards(), strings.Fields("a.tar b.tar a.tar a.tar b.tar")) {
		t.Errorf("%+v of %q", got, d.Shards())
	}
	m, err := d.Manifest(t.Context())
	if err != nil || m.Samples() != 2+3+1+2+3 || m.Shards[2].Format != reader.TFRecord {
		t.Errorf("%+v, %v", m, err)
	}
	if d.Store(2) == nil || d.ReadOptions(2).Format != reader.TFRecord || d.ReadOptions(3).Format != reader.AutoFormat || len(a.Parts()) != 1 {
		t.Error("a part lost its store or its options")
	}
	for shard, n := range []int64{2, 3, 1, 2, 3} {
		if s, err := d.Sample(t.Context(), shard, n-1); err != nil || string(s.Key) != fmt.Sprintf("k%04d", n-1) {
			t.Errorf("shard %d: %v, %v", shard, s, err)
		}
	}
	if _, err := d.Sample(t.Context(), 5, 0); !errors.Is(err, format.ErrUsage) {
		t.Errorf("%v", err)
	}
	for _, w := range []float64{0, -1} {
		if _, err := reader.Mix(reader.Weighted{Dataset: a, Weight: w}); !errors.Is(err, format.ErrUsage) {
			t.Errorf("weight %v: %v", w, err)
		}
	}
	if _, err := reader.Mix(); !errors.Is(err, format.ErrUsage) {
		t.Error(err)
	}
	if _, err := reader.Mix(reader.Weighted{Weight: 1}); !errors.Is(err, format.ErrUsage) {
		t.Error(err)
	}
}

func TestManifestFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	tar := tarOf(t, 4)
	gz := packed(t, compress.Gzip, examplesOf(3))
	put(t, dir, map[string][]byte{"data/a.tar": tar, "data/b.tfrecord.gz": gz, "meta/x.json": []byte(fmt.Sprintf(`{
		"__kind__": "wids-shard-index-v1", "wids_version": 1, "shardlist": [
		{"url": "../data/a.tar", "nsamples": 4, "filesize": %d, "format": "tar", "compression": "none", "etag": "\"abc\""},
		{"url": "%s", "nsamples": 3, "format": "tfrecord", "compression": "gzip"}]}`, len(tar), filepath.ToSlash(filepath.Join(dir, "data", "b.tfrecord.gz"))))})
	for _, pattern := range []string{"meta/x.json", "@meta/x.json", filepath.Join(dir, "meta", "x.json")} {
		d, err := reader.Open(t.Context(), pattern, &reader.Options{CacheDir: "-", Store: &store.Local{}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := d.Manifest(t.Context())
		if err != nil || m.Samples() != 7 || m.Shards[0].Size != int64(len(tar)) || m.Shards[1].Size != format.Unknown ||
			m.Shards[0].From != "manifest" || m.Shards[0].ETag != `"abc"` || m.Shards[1].Compression != compress.Gzip || m.Shards[1].Format != reader.TFRecord {
			t.Fatalf("%+v, %v", m, err)
		}
		n := 0
		for _, err := range d.Samples(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			n++
		}
		if n != 7 {
			t.Errorf("%d samples", n)
		}
		if s, err := d.Sample(t.Context(), 0, 3); err != nil || string(s.Key) != "k0003" {
			t.Errorf("%v, %v", s, err)
		}
		if got, err := runOf(t, d, 0, 4); err != nil || len(got) != 4 {
			t.Errorf("%q, %v", got, err)
		}
	}
	// Nothing is asked about shards until one is read.
	d, err := reader.Open(t.Context(), "meta/x.json", &reader.Options{CacheDir: "-", Store: openOnly{&store.Local{}, "meta/x.json"}})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := d.Manifest(t.Context()); err != nil || m.Samples() != 7 {
		t.Errorf("%v, %v", m, err)
	}
	for pattern, class := range map[string]string{"@none.json": "not-found", "none.json": "not-found", "@data/a.tar": "wrong-format"} {
		if _, err := reader.Open(t.Context(), pattern, &reader.Options{Store: &store.Local{}}); format.Class(err) != class {
			t.Errorf("%s: %v, want %s", pattern, err, class)
		}
	}
	// Places are found out when they are asked for; of what is compressed there
	// are none, which takes no look at it. An index that is not used is said once.
	put(t, dir, map[string][]byte{"data/a.tar.idx": indexOf(t, "a.tar", tarOf(t, 3), index.WDS)})
	var log bytes.Buffer
	for _, scan := range []reader.Scan{reader.ScanAuto, reader.ScanAlways} {
		log.Reset()
		st := &counted{Store: &store.Local{}}
		d, err := reader.Open(t.Context(), "meta/x.json", &reader.Options{CacheDir: "-", Store: st, Scan: scan, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		st.opens.Store(0)
		if _, err := d.Places(t.Context(), 1); !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), "gzip") || st.opens.Load() != 0 {
			t.Errorf("%v, %d opened", err, st.opens.Load())
		}
		if p, err := d.Places(t.Context(), 0); err != nil || p.Len() != 4 || strings.Count(log.String(), "level=WARN") != 1 {
			t.Errorf("%v, %v, log %s", p, err, &log)
		}
	}
	// A count is of all samples.
	d, err = reader.Open(t.Context(), "meta/x.json", &reader.Options{CacheDir: "-", Store: &store.Local{}, OnError: format.Skip})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := d.Manifest(t.Context()); err != nil || m.Samples() != format.Unknown {
		t.Errorf("%+v, %v", m, err)
	}
}

// openOnly opens one name and asks about none.
type openOnly struct {
	store.Store
	name string
}

func (s openOnly) Open(ctx context.Context, name string) (store.Object, error) {
	if name != s.name {
		return nil, format.Errorf(format.ErrIO, format.In(name), "it was opened")
	}
	return s.Store.Open(ctx, name)
}

func (s openOnly) Stat(_ context.Context, name string) (store.Entry, error) {
	return store.Entry{}, format.Errorf(format.ErrIO, format.In(name), "it was asked about")
}

// TestNamesAreSeenFromTheManifest: as wids joins them.
func TestNamesAreSeenFromTheManifest(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are of another system")
	}
	for _, tt := range []struct{ manifest, base, url, want string }{
		{"m.json", "", "a.tar", "a.tar"},
		{"d/m.json", "", "a.tar", "d/a.tar"},
		{"d/m.json", "", "../e/a.tar", "e/a.tar"},
		{"d/m.json", "", "/e/a.tar", "/e/a.tar"},
		{"d/m.json", "", "s3://b/a.tar", "s3://b/a.tar"},
		{"d/m.json", "s3://b/k", "a.tar", "s3://b/k/a.tar"},
		{"d/m.json", "/data", "x/a.tar", "/data/x/a.tar"},
		{"s3://b/k/m.json", "", "a b.tar", "s3://b/k/a b.tar"},
		{"s3://b/m.json", "", "x/a.tar", "s3://b/x/a.tar"},
		{"https://h/k/m.json?X-Sig=a/b", "", "a.tar", "https://h/k/a.tar"},
		{"s3://b/k/m.json", "https://h/z/", "a.tar", "https://h/z/a.tar"},
	} {
		doc, err := json.Marshal(map[string]any{"__kind__": "wids-shard-index-v1", "wids_version": 1, "base": tt.base, "shardlist": []any{map[string]any{"url": tt.url, "nsamples": 1}}})
		if err != nil {
			t.Fatal(err)
		}
		d, err := reader.Open(t.Context(), "@"+tt.manifest, &reader.Options{Store: anyName{store.FS(fstest.MapFS{"m": {Data: doc}})}})
		if err != nil || d.Shards()[0] != tt.want {
			t.Errorf("%s of %q in %s: %v, %v; want %s", tt.url, tt.base, tt.manifest, d, err, tt.want)
		}
	}
}

// anyName has the object m under every name.
type anyName struct{ store.Store }

func (s anyName) Open(ctx context.Context, _ string) (store.Object, error) {
	return s.Store.Open(ctx, "m")
}

// BenchmarkManifest counts the samples of 100 shards of a file system: by their
// headers, and from what was kept.
func BenchmarkManifest(b *testing.B) {
	dir := b.TempDir()
	var names []string
	tar, records := tarOf(b, 1000), examplesOf(1000)
	for i := range 50 {
		put(b, dir, map[string][]byte{fmt.Sprintf("%02d.tar", i): tar, fmt.Sprintf("%02d.tfrecord", i): records})
		names = append(names, filepath.Join(dir, fmt.Sprintf("%02d.tar", i)), filepath.Join(dir, fmt.Sprintf("%02d.tfrecord", i)))
	}
	for _, cache := range []string{"-", b.TempDir()} {
		b.Run(map[bool]string{true: "scan", false: "kept"}[cache == "-"], func(b *testing.B) {
			for b.Loop() {
				m, err := reader.New(&store.Local{}, names, &reader.Options{CacheDir: cache}).Manifest(b.Context())
				if err != nil || m.Samples() != 100_000 {
					b.Fatal(m, err)
				}
			}
		})
	}
}
