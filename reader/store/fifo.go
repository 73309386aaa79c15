package store

import (
	"context"
	"io/fs"
	"os"
	"syscall"
)

// openFile opens a file that exists. Opening a named pipe waits for its other
// end; it is given up when ctx ends.
func openFile(ctx context.Context, path string, flag int) (*os.File, error) {
	st, err := os.Stat(path)
	if err != nil || st.Mode()&fs.ModeNamedPipe == 0 {
		return os.OpenFile(path, flag, 0)
	}
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.OpenFile(path, flag, 0)
		done <- opened{f, err}
	}()
	select {
	case o := <-done:
		return o.f, o.err
	case <-ctx.Done():
	}
	// Be the other end for a moment, so that nobody is left waiting.
	if other, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0); err == nil {
		defer other.Close()
	}
	if o := <-done; o.err == nil {
		o.f.Close()
	}
	return nil, ctx.Err()
}
