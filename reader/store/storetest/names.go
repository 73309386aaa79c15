package storetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"shardtool/format"
	"shardtool/reader/store"
)

var listed = map[string]int{"a.tar": 5, "a/b.tar": 4, "a/c/d.tar": 1, "a0.tar": 9, "b": 2, "ba.tar": 3, "c.tar": 0, "é.tar": 7}

func testList(t *testing.T, f *Fixture) {
	for key, n := range listed {
		f.put(t, key, Content(1, n))
	}
	for _, tt := range []struct{ prefix, want string }{
		{"", "a.tar a/b.tar a/c/d.tar a0.tar b ba.tar c.tar é.tar"},
		{"a", "a.tar a/b.tar a/c/d.tar a0.tar"}, // a prefix is no folder
		{"a/", "a/b.tar a/c/d.tar"},
		{"a/c", "a/c/d.tar"},
		{"a/b.tar", "a/b.tar"},
		{"b", "b ba.tar"},
		{"ba", "ba.tar"},
		{"é", "é.tar"},
		{"zz", ""},
		{"none/zz", ""},
		{"c.tar/zz", ""},
	} {
		var got []string
		for e, err := range f.Store.List(t.Context(), f.name(tt.prefix)) {
			if err != nil {
				t.Errorf("List(%q): %v", tt.prefix, err)
				break
			}
			key, ok := strings.CutPrefix(strings.ReplaceAll(e.Name, `\`, "/"), strings.ReplaceAll(f.Prefix, `\`, "/"))
			if !ok {
				t.Errorf("List(%q) yields %q", tt.prefix, e.Name)
			}
			got = append(got, key)
			if f.can(Sizes) && e.Size != int64(listed[key]) {
				t.Errorf("List(%q): %+v; want a size of %d", tt.prefix, e, listed[key])
			}
			asked, err := store.Stat(t.Context(), f.Store, e.Name)
			if err != nil || asked.Size != e.Size || asked.Version != e.Version {
				t.Errorf("List gives %+v, Stat %+v, %v", e, asked, err)
			}
		}
		if want := strings.Fields(tt.want); !slices.Equal(got, want) {
			t.Errorf("List(%q) yields %q, want %q", tt.prefix, got, want)
		}
	}
}

// testListStops leaves a listing early, by breaking off and by its context.
func testListStops(t *testing.T, f *Fixture) {
	for key, n := range listed {
		f.put(t, key, Content(1, n))
	}
	n := 0
	for _, err := range f.Store.List(t.Context(), f.Prefix) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 2 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errs []error
	n = 0
	for e, err := range f.Store.List(ctx, f.Prefix) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if len(errs) > 0 {
			t.Errorf("%s comes after an error", e.Name)
		}
		n++
		cancel()
	}
	if n != 1 || len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
		t.Errorf("a listing cancelled after its first element goes on for %d and ends with %v; want the context's error next", n, errs)
	}
}

func testMissing(t *testing.T, f *Fixture) {
	f.put(t, "a/b.tar", []byte("beta"))
	check := func(call string, err error) {
		t.Helper()
		var e *format.Error
		if !errors.Is(err, format.ErrNotFound) || !errors.As(err, &e) || e.Shard == "" {
			t.Errorf("%s of what is not there: %v; want not-found with its name", call, err)
		}
	}
	for _, key := range []string{"none.tar", "none/none.tar", "a/b", "a/b.tarr"} {
		_, err := f.Store.Open(t.Context(), f.name(key))
		check("Open", err)
		_, err = store.Stat(t.Context(), f.Store, f.name(key))
		check("Stat", err)
		check("OpenEntry", readEntry(t, f, store.Entry{Name: f.name(key), Size: format.Unknown}, new([]byte)))
	}
	// Some stores have folders, others only names with slashes.
	if _, err := f.Store.Open(t.Context(), f.name("a")); !errors.Is(err, format.ErrNotFound) && !errors.Is(err, format.ErrIO) {
		t.Errorf("opening a folder: %v", err)
	}
}

// readEntry opens and reads what an entry describes.
func readEntry(t *testing.T, f *Fixture, e store.Entry, data *[]byte) error {
	t.Helper()
	o, err := store.OpenEntry(t.Context(), f.Store, e)
	if err != nil {
		return err
	}
	defer closeAll(t, o)
	r, err := store.Stream(t.Context(), o, 0)
	if err != nil {
		return err
	}
	defer closeAll(t, r)
	*data, err = io.ReadAll(r)
	return err
}

func testOddNames(t *testing.T, f *Fixture) {
	keys := f.Odd
	if keys == nil {
		keys = OddKeys()
	}
	names := map[string]bool{}
	for i, key := range keys {
		f.put(t, key, Content(uint64(i), 100))
		names[f.name(key)] = true
	}
	for i, key := range keys {
		got, err := f.read(t.Context(), key)
		if err != nil || !bytes.Equal(got, Content(uint64(i), 100)) {
			t.Errorf("%q: %d bytes, %v", key, len(got), err)
			continue
		}
		if e, err := store.Stat(t.Context(), f.Store, f.name(key)); err != nil || e.Name != f.name(key) {
			t.Errorf("%q: Stat gives %+v, %v", key, e, err)
		}
	}
	if !f.can(List) {
		return
	}
	last := ""
	for e, err := range f.Store.List(t.Context(), f.Prefix) {
		if err != nil {
			t.Fatal(err)
		}
		if !names[e.Name] && !names[strings.ReplaceAll(e.Name, `\`, "/")] || e.Name <= last {
			t.Errorf("List yields %q after %q", e.Name, last)
		}
		delete(names, e.Name)
		last = e.Name
	}
	if len(names) > 0 {
		t.Errorf("List leaves out %q", slices.Sorted(maps.Keys(names)))
	}
}

func testOpenEntry(t *testing.T, f *Fixture) {
	want := Content(1, 70_000)
	f.put(t, "a.tar", want)
	stat, err := store.Stat(t.Context(), f.Store, f.name("a.tar"))
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]store.Entry{
		"Stat":     stat,
		"the name": {Name: stat.Name, Size: format.Unknown},
		"nothing":  {Name: stat.Name},
		"the size": {Name: stat.Name, Size: stat.Size},
	}
	if f.can(List) {
		for e, err := range f.Store.List(t.Context(), f.name("a.tar")) {
			if err != nil {
				t.Fatal(err)
			}
			entries["List"] = e
		}
	}
	for from, e := range entries {
		var got []byte
		if err := readEntry(t, f, e, &got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("opened with %s: %d bytes, %v", from, len(got), err)
		}
	}
	if f.can(Sizes) {
		e := store.Entry{Name: stat.Name, Size: stat.Size - 1}
		if err := readEntry(t, f, e, new([]byte)); !errors.Is(err, format.ErrStale) {
			t.Errorf("opened with another size: %v; want stale", err)
		}
	}
}

// testReplaced replaces objects, by others of the same size and of other ones,
// between asking about them and opening them.
func testReplaced(t *testing.T, f *Fixture) {
	for i, size := range []int{70_000, 69_999, 70_001} {
		key := string(rune('a'+i)) + ".tar"
		old := Content(1, 70_000)
		f.put(t, key, old)
		e, err := store.Stat(t.Context(), f.Store, f.name(key))
		if err != nil {
			t.Fatal(err)
		}
		f.put(t, key, Content(2, size))
		var got []byte
		err = readEntry(t, f, e, &got)
		// A cache may still have the old one, which is what was asked for.
		if !errors.Is(err, format.ErrStale) && !(err == nil && bytes.Equal(got, old)) {
			t.Errorf("replaced by %d bytes: %d bytes, %v; want stale", size, len(got), err)
		}
		now, err := store.Stat(t.Context(), f.Store, f.name(key))
		if err != nil || now.Version == e.Version || now.Size != int64(size) {
			t.Errorf("replaced by %d bytes: it was %+v and is %+v, %v", size, e, now, err)
		}
		if got, err := f.read(t.Context(), key); err != nil || !bytes.Equal(got, Content(2, size)) {
			t.Errorf("opened anew: %d bytes, %v", len(got), err)
		}
		f.put(t, key, nil) // smaller
	}
}

// testReplacedWhileOpen replaces an object under its reader, which must go on
// with the old bytes or end, and never get a mixture.
func testReplacedWhileOpen(t *testing.T, f *Fixture) {
	old := Content(1, f.large())
	f.put(t, "a.tar", old)
	o := f.open(t, "a.tar")
	defer closeAll(t, o)
	r, err := store.Stream(t.Context(), o, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, r)
	head := make([]byte, 1000)
	if _, err := io.ReadFull(r, head); err != nil {
		t.Fatal(err)
	}
	f.put(t, "a.tar", Content(2, len(old)))
	rest, err := io.ReadAll(r)
	if !bytes.Equal(append(head, rest...), old[:len(head)+len(rest)]) {
		t.Error("the stream gives a mixture")
	}
	if err == nil && len(head)+len(rest) != len(old) || err != nil && !errors.Is(err, format.ErrStale) {
		t.Errorf("the stream ends after %d bytes with %v; want stale or all of it", len(head)+len(rest), err)
	}
	p := make([]byte, 1000)
	off := len(old) - 1000
	n, err := o.ReadAt(t.Context(), p, int64(off))
	if whole := n == len(p) && bytes.Equal(p, old[off:]); !errors.Is(err, format.ErrStale) && !whole {
		t.Errorf("ReadAt: %d, %v; want stale or the old bytes", n, err)
	}
}
