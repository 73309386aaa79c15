package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/urfave/cli/v2"

	"shardtool/format"
)

// failing is a verb that does what a test says.
func failing(do func(c *call) error) func() *cli.Command {
	return func() *cli.Command { return verb{Name: "fail", Run: do}.command() }
}

func TestExitCodes(t *testing.T) {
	at := func(sentinel error) error { return format.Errorf(sentinel, format.Location{Shard: "s"}, "x") }
	var do func(c *call) error
	withVerbs(t, failing(func(c *call) error { return do(c) }))
	corrupt, missing := at(format.ErrCorrupt), at(format.ErrNotFound)
	for _, tt := range []struct {
		name   string
		do     func(c *call) error
		code   int
		stderr string // lines by "|"
	}{
		{"fine", func(*call) error { return nil }, 0, ""},
		{"corrupt", func(*call) error { return corrupt }, 1, "s @ 0 (sample 0): corrupt: x"},
		{"usage", func(*call) error { return usageError("no") }, 2, "no"},
		{"usage of a file", func(*call) error { return at(format.ErrUsage) }, 2, "s @ 0 (sample 0): usage: x"},
		{"not found", func(*call) error { return missing }, 3, "s @ 0 (sample 0): not-found: x"},
		{"denied", func(*call) error { return at(format.ErrDenied) }, 3, "s @ 0 (sample 0): denied: x"},
		{"unknown", func(*call) error { return errors.New("odd") }, 3, "odd"},
		{"wrapped", func(*call) error { return fmt.Errorf("more: %w", corrupt) }, 1, "more: s @ 0 (sample 0): corrupt: x"},
		{"reported and fine", func(c *call) error { c.Fault(corrupt); return nil }, 1, "s @ 0 (sample 0): corrupt: x"},
		{"marked", func(c *call) error { c.Mark(corrupt); return nil }, 1, ""},
		{"worst wins", func(c *call) error { c.Fault(corrupt); c.Fault(missing); c.Fault(corrupt); return nil }, 3,
			"s @ 0 (sample 0): corrupt: x|s @ 0 (sample 0): not-found: x|s @ 0 (sample 0): corrupt: x"},
		{"worst wins over the last", func(c *call) error { c.Mark(missing); return corrupt }, 3, "s @ 0 (sample 0): corrupt: x"},
		{"last is worst", func(c *call) error { c.Mark(corrupt); return missing }, 3, "s @ 0 (sample 0): not-found: x"},
		{"fs error", func(*call) error { return format.ReadError(fs.ErrPermission, format.Nowhere) }, 3, "denied: permission denied"},
	} {
		do = tt.do
		code, _, stderr := runCommand(t, "", "fail")
		want := ""
		for _, line := range strings.Split(tt.stderr, "|") {
			if line != "" {
				want += "shardtool: " + line + "\n"
			}
		}
		if code != tt.code || stderr != want {
			t.Errorf("%s: exit %d, %q; want %d, %q", tt.name, code, stderr, tt.code, want)
		}
	}
}

func TestInterruptedRunSaysSo(t *testing.T) {
	withVerbs(t, failing(func(c *call) error { return c.Context.Context.Err() }))
	for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		var out, err bytes.Buffer
		got := run(cancelled(t, interrupted{sig}), []string{"shardtool", "fail"}, strings.NewReader(""), &out, &err)
		if got != code || err.String() != "shardtool: ended by a signal: "+sig.String()+"\n" {
			t.Errorf("%v: exit %d, %q", sig, got, err.String())
		}
	}
}

func TestSecondSignalExits(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		signals, done := make(chan os.Signal, 2), make(chan struct{})
		ctx, cancel := context.WithCancelCause(t.Context())
		codes := make(chan int, 1)
		go heed(signals, done, cancel, func(code int) { codes <- code })
		signals <- syscall.SIGINT
		<-ctx.Done()
		if cause := context.Cause(ctx); cause != (interrupted{syscall.SIGINT}) {
			t.Errorf("cancelled by %v", cause)
		}
		signals <- sig
		if code := <-codes; code != 128+int(sig) {
			t.Errorf("%v: exit %d", sig, code)
		}
	}
}

// A verb that waits for standard input ends with its context, not with the
// next byte.
func TestInterruptedWhileReadingStandardInput(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	withVerbs(t, failing(func(c *call) error {
		o, err := c.Store.Open(ctx, "-")
		if err != nil {
			return err
		}
		r, err := o.(interface {
			Stream(context.Context, int64) (io.ReadCloser, error)
		}).Stream(ctx, 0)
		if err != nil {
			return err
		}
		b := make([]byte, 3)
		if _, err := io.ReadFull(r, b); err != nil || string(b) != "abc" {
			return fmt.Errorf("read %q, %v", b, err)
		}
		cancel(interrupted{syscall.SIGINT})
		_, err = r.Read(b)
		return err
	}))
	in, feed := io.Pipe()
	go feed.Write([]byte("abc"))
	var out, err bytes.Buffer
	if code := run(ctx, []string{"shardtool", "fail"}, in, &out, &err); code != 130 {
		t.Errorf("exit %d, %s", code, err.String())
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestFailingOutput(t *testing.T) {
	withVerbs(t, failing(func(c *call) error {
		for range 10_000 {
			if err := c.Printf("many words\n"); err != nil {
				return err
			}
		}
		return nil
	}))
	for _, tt := range []struct {
		out    io.Writer
		stderr string
	}{
		{brokenPipe{}, ""},
		{fullDisk{}, "shardtool: standard output: io: no space left on device\n"},
	} {
		for _, args := range [][]string{{"shardtool", "fail"}, {"shardtool", "--version"}, {"shardtool", "help"}} {
			var err bytes.Buffer
			if code := run(t.Context(), args, strings.NewReader(""), tt.out, &err); code != exitIO || err.String() != tt.stderr {
				t.Errorf("%T, %v: exit %d, %q", tt.out, args, code, err.String())
			}
		}
	}
}
