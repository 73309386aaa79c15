package store_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/faultstore"
	"shardtool/reader/store/storetest"
)

// localFixture is a folder. Each object that is put there has a time of its
// own, however coarse the clock of the file system.
func localFixture(t *testing.T, st store.Store) storetest.Fixture {
	dir := t.TempDir()
	age := 0
	return storetest.Fixture{
		Store:  st,
		Prefix: dir + string(filepath.Separator),
		Put: func(t testing.TB, key string, data []byte) {
			path := filepath.Join(dir, filepath.FromSlash(key))
			write(t, path, data)
			age++
			then := time.Now().Add(-time.Duration(age) * time.Second)
			if err := os.Chtimes(path, then, then); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// write replaces a file.
func write(t testing.TB, path string, data []byte) {
	t.Helper()
	k, err := (&store.Local{}).Create(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := k.Commit(); err != nil {
		t.Fatal(err)
	}
}

func fsFixture(t *testing.T, wrap func(store.Store) store.Store) storetest.Fixture {
	files := fstest.MapFS{}
	var mu sync.Mutex
	age := 0
	return storetest.Fixture{
		Store:   wrap(store.FS(files)),
		Prefix:  "d/",
		Without: storetest.Create,
		Put: func(t testing.TB, key string, data []byte) {
			mu.Lock()
			defer mu.Unlock()
			age++
			files["d/"+key] = &fstest.MapFile{Data: data, ModTime: time.Unix(int64(age), 0)}
		},
	}
}

func newCache(t testing.TB, st store.Store, o store.CacheOptions) *store.Cache {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	c, err := store.NewCache(st, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func same(st store.Store) store.Store { return st }

// TestConformance runs the suite over every store of this package and every
// decorator.
func TestConformance(t *testing.T) {
	local := func(wrap func(*testing.T, store.Store) store.Store) func(*testing.T) storetest.Fixture {
		return func(t *testing.T) storetest.Fixture {
			f := localFixture(t, wrap(t, &store.Local{}))
			f.Large = 5<<20 + 4567
			return f
		}
	}
	for name, open := range map[string]func(t *testing.T) storetest.Fixture{
		"Local": func(t *testing.T) storetest.Fixture { return localFixture(t, &store.Local{}) },
		"Random": func(t *testing.T) storetest.Fixture {
			return localFixture(t, &store.Local{Random: true})
		},
		"File": func(t *testing.T) storetest.Fixture {
			f := localFixture(t, &store.Local{})
			f.Prefix = "file://" + f.Prefix
			return f
		},
		"FS":    func(t *testing.T) storetest.Fixture { return fsFixture(t, same) },
		"Meter": local(func(_ *testing.T, st store.Store) store.Store { return store.Meter(st, func(int) {}) }),
		"CountFS": func(t *testing.T) storetest.Fixture {
			return fsFixture(t, func(st store.Store) store.Store { return store.Count(st, new(store.Counters)) })
		},
		"Limit": local(func(_ *testing.T, st store.Store) store.Store {
			return store.Limit(st, store.LimitOptions{BytesPerSecond: 100e9, Latency: time.Nanosecond})
		}),
		"Unlimited": local(func(_ *testing.T, st store.Store) store.Store { return store.Limit(st, store.LimitOptions{}) }),
		"Faultless": local(func(_ *testing.T, st store.Store) store.Store { return faultstore.New(st) }),
		"Cache": local(func(t *testing.T, st store.Store) store.Store {
			return newCache(t, st, store.CacheOptions{Block: 300_000})
		}),
		"SmallCache": local(func(t *testing.T, st store.Store) store.Store { // evicts all the time
			return newCache(t, st, store.CacheOptions{Block: 1 << 20, Size: 3 << 20})
		}),
		"TinyBlocks": func(t *testing.T) storetest.Fixture {
			f := fsFixture(t, func(st store.Store) store.Store {
				return newCache(t, st, store.CacheOptions{Block: 5000, Size: 250_000})
			})
			f.Large = 500_000
			return f
		},
		"All": local(func(t *testing.T, st store.Store) store.Store {
			st = store.Count(store.Limit(st, store.LimitOptions{BytesPerSecond: 100e9}), new(store.Counters))
			return store.Meter(newCache(t, st, store.CacheOptions{Block: 2 << 20}), func(int) {})
		}),
	} {
		t.Run(name, func(t *testing.T) { storetest.Run(t, open) })
	}
}

// TestDecoratorsPassFaultsOn injects faults below each decorator: they come up
// as they are, and a sink that failed leaves what was there.
func TestDecoratorsPassFaultsOn(t *testing.T) {
	full := errors.New("the disk is full")
	for name, wrap := range map[string]func(store.Store) store.Store{
		"Meter": func(st store.Store) store.Store { return store.Meter(st, func(int) {}) },
		"Limit": func(st store.Store) store.Store { return store.Limit(st, store.LimitOptions{BytesPerSecond: 1e12}) },
		"Cache": func(st store.Store) store.Store { return newCache(t, st, store.CacheOptions{}) },
	} {
		for _, tt := range []struct {
			op   faultstore.Op
			call func(st store.Store, path string) error
		}{
			{faultstore.Open, func(st store.Store, path string) error { _, err := st.Open(t.Context(), path); return err }},
			{faultstore.Read, func(st store.Store, path string) error {
				rc, err := store.OpenStream(t.Context(), st, path)
				if err != nil {
					return err
				}
				defer rc.Close()
				_, err = io.ReadAll(rc)
				return err
			}},
			{faultstore.List, func(st store.Store, path string) (err error) {
				for _, err = range st.List(t.Context(), path) {
				}
				return err
			}},
			{faultstore.Create, func(st store.Store, path string) error { return create(t, st, path, "new") }},
			{faultstore.Write, func(st store.Store, path string) error { return create(t, st, path, "new") }},
			{faultstore.Commit, func(st store.Store, path string) error { return create(t, st, path, "new") }},
		} {
			path := filepath.Join(t.TempDir(), "x.tar")
			write(t, path, []byte("old"))
			st := wrap(faultstore.New(&store.Local{}, faultstore.Fault{Op: tt.op, Err: full}))
			if err := tt.call(st, path); !errors.Is(err, full) || !errors.Is(err, format.ErrIO) {
				t.Errorf("%s, op %d: %v", name, tt.op, err)
			}
			if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
				t.Errorf("%s, op %d: %v, %v are left", name, tt.op, left, err)
			}
			if got, err := os.ReadFile(path); string(got) != "old" {
				t.Errorf("%s, op %d: %q, %v", name, tt.op, got, err)
			}
		}
	}
}

// create writes an object and ends it as callers do.
func create(t *testing.T, st store.Store, name, data string) error {
	k, err := st.Create(t.Context(), name)
	if err != nil {
		return err
	}
	defer func() { _ = k.Abort() }()
	if _, err := io.WriteString(k, data); err != nil {
		return err
	}
	return k.Commit()
}
