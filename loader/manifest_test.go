package loader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"shardtool/format"
	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
	"shardtool/reader"
	"shardtool/reader/order"
	"shardtool/reader/store"
	"shardtool/shard"
)

// away is a folder seen as a bucket. It notes what is opened, and what is read
// from the start.
type away struct {
	store.Store
	dir string

	mu             sync.Mutex
	opened, stated []string
}

const bucketName = "s3://bucket/"

func (a *away) path(name string) string {
	return filepath.Join(a.dir, strings.TrimPrefix(name, bucketName))
}

func (a *away) Open(ctx context.Context, name string) (store.Object, error) {
	a.mu.Lock()
	a.opened = append(a.opened, name)
	a.mu.Unlock()
	o, err := a.Store.Open(ctx, a.path(name))
	if err != nil {
		return nil, format.ReadError(err, format.In(name))
	}
	return awayObject{o, name}, nil
}

func (a *away) Stat(ctx context.Context, name string) (store.Entry, error) {
	a.mu.Lock()
	a.stated = append(a.stated, name)
	a.mu.Unlock()
	e, err := store.Stat(ctx, a.Store, a.path(name))
	e.Name = name
	return e, err
}

type awayObject struct {
	store.Object
	name string
}

func (o awayObject) Stat() store.Entry {
	e := o.Object.Stat()
	e.Name = o.name
	return e
}

// manifestOf writes a manifest of a dataset's shards beside them.
func manifestOf(t *testing.T, ds *reader.Dataset) (path string) {
	t.Helper()
	path = filepath.Join(filepath.Dir(ds.Shards()[0]), "m.json")
	if _, _, err := shard.WriteManifest(t.Context(), ds.Shards(), path, nil); err != nil {
		t.Fatal(err)
	}
	return path
}

// A manifest file tells no places. They are found out where samples are read at
// them, and give the same batches as without it.
func TestPlacesOfShardsThatAManifestLists(t *testing.T) {
	counts := []int{5, 4, 0, 6}
	total := 15
	for _, far := range []bool{false, true} {
		dir := t.TempDir()
		plain := labelled(t, dir, counts...)
		path := manifestOf(t, plain)
		var st store.Store = &store.Local{}
		if far {
			if _, err := shard.Index(t.Context(), plain.Shards(), nil); err != nil {
				t.Fatal(err)
			}
			st, path = &away{Store: st, dir: dir}, bucketName+"m.json"
		}
		for _, tt := range []struct {
			shuffle order.Shuffle
			world   int
		}{{order.Global, 1}, {order.Global, 2}, {order.None, 2}} {
			var labels []int64
			for rank := range tt.world {
				ds, err := reader.Open(t.Context(), path, &reader.Options{Store: st, CacheDir: "-"})
				if err != nil {
					t.Fatal(err)
				}
				o := Options{GlobalBatch: 4, Seed: 3, Shuffle: tt.shuffle, Tail: order.TailPad, Rank: rank, World: tt.world, Columns: labelledColumns}
				l, err := New(t.Context(), ds, &o)
				if err != nil {
					t.Fatalf("far %t, %v, world %d: %v", far, tt.shuffle, tt.world, err)
				}
				if checkEnd(t, l); !l.scatter {
					t.Errorf("far %t, %v, world %d: places are not known", far, tt.shuffle, tt.world)
				}
				got := steps(t, ds, o, -1)
				for i, want := range steps(t, plain, o, -1) {
					got[i].check(t)
					if !slices.Equal(got[i].Labels, want.Labels) {
						t.Errorf("far %t, %v, world %d, step %d: %v, want %v", far, tt.shuffle, tt.world, i, got[i].Labels, want.Labels)
					}
					for k, ok := range got[i].Valid {
						if ok {
							labels = append(labels, got[i].Labels[k])
						}
					}
				}
			}
			slices.Sort(labels)
			if labels = slices.Compact(labels); len(labels) != total {
				t.Errorf("far %t, %v, world %d: %d samples, want %d", far, tt.shuffle, tt.world, len(labels), total)
			}
		}
	}
}

// Shards far away are not read for the places of their samples: one without an
// index answers for all, and one that is compressed is not even asked about.
func TestShardsFarAwayAreNotReadForPlaces(t *testing.T) {
	columns := []Column{Int64("cls")}
	for _, tt := range []struct {
		zipped bool
		stated int // two names that an index may have
	}{{false, 2}, {true, 0}} {
		ds := labelled(t, t.TempDir(), 5, 4, 6)
		if tt.zipped {
			ds = zipped(t, ds)
		}
		st := &away{Store: &store.Local{}, dir: filepath.Dir(manifestOf(t, ds))}
		open := func() *reader.Dataset {
			ds, err := reader.Open(t.Context(), bucketName+"m.json", &reader.Options{Store: st, CacheDir: "-"})
			if err != nil {
				t.Fatal(err)
			}
			st.opened, st.stated = nil, nil
			return ds
		}
		_, err := New(t.Context(), open(), &Options{Columns: columns, GlobalBatch: 2, World: 1, Shuffle: order.Global})
		if !errors.Is(err, format.ErrUsage) || !strings.Contains(err.Error(), "shardtool index") {
			t.Errorf("zipped %t: %v", tt.zipped, err)
		}
		if asked := st.about(".idx"); len(st.opened) > 0 || asked != tt.stated {
			t.Errorf("zipped %t, global: opened %q, asked about %q", tt.zipped, st.opened, st.stated)
		}
		l, err := New(t.Context(), open(), &Options{Columns: columns, GlobalBatch: 2, World: 2, Rank: 1})
		if err != nil || l.scatter {
			t.Fatalf("zipped %t: %v", tt.zipped, err)
		}
		if asked := st.about(".idx"); len(st.opened) > 0 || asked != tt.stated {
			t.Errorf("zipped %t, none: opened %q, asked about %q", tt.zipped, st.opened, st.stated)
		}
		// What needs no places asks nothing.
		if _, err := New(t.Context(), open(), &Options{Columns: columns, GlobalBatch: 2, World: 2, Shuffle: order.Block(2)}); err != nil || len(st.opened)+len(st.stated) > 0 {
			t.Errorf("zipped %t, block: opened %q, asked about %q; %v", tt.zipped, st.opened, st.stated, err)
		}
	}
}

// about is how many names with that suffix were asked about.
func (a *away) about(suffix string) (n int) {
	for _, name := range a.stated {
		if strings.HasSuffix(name, suffix) {
			n++
		}
	}
	return n
}

// A shard that was read as a whole to be counted is not read again for places
// that it does not have, because it is compressed or samples are left out.
func TestShardsAreCountedOnce(t *testing.T) {
	for _, o := range []reader.Options{{}, {OnError: format.Skip}} {
		ds := labelled(t, t.TempDir(), 5, 4)
		if o.OnError == format.Stop {
			ds = zipped(t, ds)
		}
		st := &away{Store: &store.Local{}, dir: filepath.Dir(ds.Shards()[0])}
		var names []string
		for _, n := range ds.Shards() {
			names = append(names, bucketName+filepath.Base(n))
		}
		o.Scan, o.CacheDir = reader.ScanAlways, "-"
		l, err := New(t.Context(), reader.New(st, names, &o), &Options{Columns: []Column{Int64("cls")}, GlobalBatch: 2, World: 2})
		if err != nil || l.scatter || len(st.opened) != 2 {
			t.Errorf("on error %v: opened %q, %v", o.OnError, st.opened, err)
		}
	}
}

// What of a faulty shard is not read is said.
func TestLogTellsOfFaultyShards(t *testing.T) {
	var frame, data []byte
	for i := range 4 {
		var b tfexample.Builder
		b.AddInt64("cls", int64(i))
		frame = tfrecord.AppendFrame(nil, b.AppendTo(nil))
		data = append(data, frame...)
	}
	dir := t.TempDir()
	cut := filepath.Join(dir, "cut.tfrecord")
	if err := os.WriteFile(cut, data[:len(data)-1], 0o666); err != nil {
		t.Fatal(err)
	}
	ds := func(keep bool) *reader.Dataset {
		return reader.New(&store.Local{}, []string{cut}, &reader.Options{CacheDir: "-", KeepFaulty: keep})
	}
	var log bytes.Buffer
	o := &Options{Columns: []Column{Int64("cls")}, GlobalBatch: 1, World: 1, Log: slog.New(slog.NewTextHandler(&log, nil))}
	if _, err := New(t.Context(), ds(false), o); !errors.Is(err, format.ErrTruncated) || !strings.Contains(fmt.Sprint(err), "KeepFaulty") {
		t.Errorf("%v", err)
	}
	if _, err := New(t.Context(), ds(true), o); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "cut.tfrecord") || !strings.Contains(got, "only the 3 samples before it are read") {
		t.Errorf("log %s", got)
	}
}
