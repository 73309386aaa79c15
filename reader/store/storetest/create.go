package storetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"shardtool/format"
	"shardtool/reader/store"
)

// content tells what stands under a key.
func (f *Fixture) content(t *testing.T, key string) string {
	t.Helper()
	data, err := f.read(t.Context(), key)
	switch {
	case errors.Is(err, format.ErrNotFound):
		return "none"
	case err != nil:
		t.Error(err)
	}
	return string(data)
}

// names lists all keys of the fixture.
func (f *Fixture) names(t *testing.T) (names []string) {
	t.Helper()
	if !f.can(List) {
		return nil
	}
	for e, err := range f.Store.List(t.Context(), f.Prefix) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Name)
	}
	return names
}

func testCreate(t *testing.T, f *Fixture) {
	const key = "sub/dir/out.tar"
	before := "none"
	for _, tt := range []struct {
		data   string
		commit bool
		want   string
	}{
		{"one", false, "none"},
		{"two", true, "two"},
		{"three", false, "two"},
		{"", true, ""},
		{"five", true, "five"},
	} {
		k, err := f.Store.Create(t.Context(), f.name(key))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []byte(tt.data) {
			if n, err := k.Write([]byte{b}); n != 1 || err != nil {
				t.Fatalf("Write: %d, %v", n, err)
			}
		}
		if n, err := k.Write(nil); n != 0 || err != nil {
			t.Errorf("writing nothing: %d, %v", n, err)
		}
		if got := f.content(t, key); got != before {
			t.Errorf("while %q is written there is %q, want %q", tt.data, got, before)
		}
		if fin, ok := k.(store.Finisher); ok {
			if err := errors.Join(fin.Finish(), fin.Finish()); err != nil {
				t.Errorf("Finish: %v", err)
			}
			if got := f.content(t, key); got != before {
				t.Errorf("after Finish of %q there is %q, want %q", tt.data, got, before)
			}
		}
		if names := f.names(t); before == "none" && len(names) > 0 {
			t.Errorf("while %q is written there are %q", tt.data, names)
		}
		end := k.Abort
		if tt.commit {
			end = k.Commit
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := errors.Join(k.Abort(), k.Commit()); err != nil {
				t.Errorf("ended again: %v", err)
			}
		}
		if got := f.content(t, key); got != tt.want {
			t.Errorf("after %q there is %q, want %q", tt.data, got, tt.want)
		}
		before = tt.want
	}
	if names := f.names(t); f.can(List) && len(names) != 1 {
		t.Errorf("at the end there are %q", names)
	}
}

func testCreateLarge(t *testing.T, f *Fixture) {
	want := Content(1, f.large())
	for _, piece := range []int{len(want), 1 << 20, 10_007} {
		k, err := f.Store.Create(t.Context(), f.name("large.tar"))
		if err != nil {
			t.Fatal(err)
		}
		for rest := want; len(rest) > 0; {
			n := min(piece, len(rest))
			if m, err := k.Write(rest[:n]); m != n || err != nil {
				t.Fatalf("Write: %d, %v", m, err)
			}
			rest = rest[n:]
		}
		if err := k.Commit(); err != nil {
			t.Fatal(err)
		}
		if got, err := f.read(t.Context(), "large.tar"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("written by %d: read %d bytes, %v", piece, len(got), err)
		}
	}
	k, err := f.Store.Create(t.Context(), f.name("large.tar"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Write(want[:len(want)/2]); err != nil {
		t.Fatal(err)
	}
	if err := k.Abort(); err != nil {
		t.Error(err)
	}
	if got, err := f.read(t.Context(), "large.tar"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("after Abort: read %d bytes, %v", len(got), err)
	}
}

func testCreateCancelled(t *testing.T, f *Fixture) {
	f.write(t, "a.tar", []byte("old"))
	for name, end := range map[string]func(store.Sink) error{"Commit": store.Sink.Commit, "Abort": store.Sink.Abort} {
		for _, size := range []int{10, f.large()} {
			ctx, cancel := context.WithCancel(t.Context())
			k, err := f.Store.Create(ctx, f.name("a.tar"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := k.Write(Content(1, size)); err != nil {
				t.Fatal(err)
			}
			cancel()
			if _, err := io.WriteString(k, "more"); !errors.Is(err, context.Canceled) {
				t.Errorf("Write: %v; want the context's error", err)
			}
			if err := end(k); name == "Commit" && !errors.Is(err, context.Canceled) || name == "Abort" && err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := errors.Join(k.Abort(), k.Commit()); err != nil {
				t.Errorf("%s, then another end: %v", name, err)
			}
			if got := f.content(t, "a.tar"); got != "old" {
				t.Errorf("after %s of %d bytes there is %.20q", name, size, got)
			}
			if names := f.names(t); f.can(List) && len(names) != 1 {
				t.Errorf("after %s there are %q", name, names)
			}
		}
	}
}

// testCreateTogether lets several write the same name: one of them wins, whole.
func testCreateTogether(t *testing.T, f *Fixture) {
	const writers, size = 4, 200_000
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			k, err := f.Store.Create(t.Context(), f.name("a.tar"))
			if err != nil {
				t.Error(err)
				return
			}
			for rest := Content(uint64(w), size); len(rest) > 0; {
				n := min(10_000, len(rest))
				if _, err := k.Write(rest[:n]); err != nil {
					t.Error(err)
				}
				rest = rest[n:]
			}
			if err := k.Commit(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := f.read(t.Context(), "a.tar")
	if err != nil {
		t.Fatal(err)
	}
	for w := range writers {
		if bytes.Equal(got, Content(uint64(w), size)) {
			return
		}
	}
	t.Errorf("%d bytes, of no one writer", len(got))
}
