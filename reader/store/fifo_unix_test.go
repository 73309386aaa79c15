//go:build unix

package store_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"shardtool/reader/store"
)

// TestNamedPipesEndWithTheirContext opens named pipes that have no other end.
func TestNamedPipesEndWithTheirContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Skip("no named pipes here:", err)
	}
	st := &store.Local{}
	for name, open := range map[string]func(context.Context) error{
		"Open": func(ctx context.Context) error {
			_, err := st.Open(ctx, path)
			return err
		},
		"Create": func(ctx context.Context) error {
			_, err := st.Create(ctx, path)
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() { failed <- open(ctx) }()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// And with another end they work.
	go func() {
		w, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_, _ = io.WriteString(w, "through")
			w.Close()
		}
	}()
	o, err := st.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := store.Stream(t.Context(), o, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); string(got) != "through" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if err := errors.Join(r.Close(), o.Close()); err != nil {
		t.Error(err)
	}
}
