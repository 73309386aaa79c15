package store_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"shardtool/format"
	"shardtool/reader/store"
)

func TestFinishGivesTheFileBackAndKeepsItHidden(t *testing.T) {
	for _, commit := range []bool{true, false} {
		t.Chdir(t.TempDir())
		k, err := (&store.Local{Sync: true}).Create(t.Context(), "d/a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Write([]byte("text")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := k.(store.Finisher).Finish(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := k.Write([]byte("more")); !errors.Is(err, format.ErrIO) {
			t.Errorf("a write after Finish: %v", err)
		}
		if _, err := os.Stat("d/a"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("visible before Commit: %v", err)
		}
		end, want := k.Abort, 0
		if commit {
			end, want = k.Commit, 1
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := k.Abort(); err != nil {
			t.Errorf("Abort after the end: %v", err)
		}
		entries, err := os.ReadDir("d")
		if err != nil || len(entries) != want {
			t.Errorf("commit %v: %v, %v", commit, entries, err)
		}
	}
}

func TestStat(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a", []byte("12345"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, st := range []store.Store{&store.Local{}, store.FS(os.DirFS("."))} {
		e, err := store.Stat(t.Context(), st, "a")
		if err != nil || e.Name != "a" || e.Size != 5 || e.Version == "" {
			t.Errorf("%T: %+v, %v", st, e, err)
		}
		if _, err := store.Stat(t.Context(), st, "b"); !errors.Is(err, format.ErrNotFound) {
			t.Errorf("%T: %v", st, err)
		}
	}
	if e, err := store.Stat(t.Context(), &store.Local{}, "-"); err != nil || e.Size != format.Unknown {
		t.Errorf("standard input: %+v, %v", e, err)
	}
}
