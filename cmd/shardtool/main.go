// Command shardtool inspects, verifies, repairs, indexes, converts and
// benchmarks shards of training data: TFRecord files and WebDataset tars.
//
// The command is thin: each verb is a file of this folder that turns flags into
// one call of the library, and prints what comes back. What all verbs share is
// here: flags may stand before or after paths (args.go), exit codes say who is
// at fault (exit.go), output is text or JSON Lines (jsonl.go), and progress goes
// to a terminal's standard error only (progress.go).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"shardtool/format"
)

func main() {
	ctx, stop := interruptible(context.Background())
	code := run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// interrupted is the cause of a context that a signal cancelled.
type interrupted struct{ sig syscall.Signal }

func (i interrupted) Error() string { return "ended by a signal: " + i.sig.String() }

// interruptible returns a context that the first SIGINT or SIGTERM cancels, so
// that outputs are taken back; a second one ends the process at once, even where
// it was started with that signal ignored, as shells do behind an "&".
//
// A broken pipe is an error of a write like any other, not a signal: else the
// process would die with its unfinished files still there.
func interruptible(parent context.Context) (context.Context, func()) {
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2) // both may come at the same time
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go heed(signals, done, cancel, os.Exit)
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

// heed cancels at the first signal, and exits at the second.
func heed(signals <-chan os.Signal, done <-chan struct{}, cancel context.CancelCauseFunc, exit func(code int)) {
	for n := 1; ; n++ {
		select {
		case s := <-signals:
			sig, _ := s.(syscall.Signal)
			if n > 1 {
				exit(signalled(sig))
				return
			}
			cancel(interrupted{sig})
		case <-done:
			return
		}
	}
}

// signalled is the exit code of a run that a signal ended, as shells have it.
func signalled(sig syscall.Signal) int { return 128 + int(sig) }

// run is the command: arguments and streams in, exit code out. args[0] is the
// name it was called by.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	log.SetOutput(io.Discard) // net/http prints there what servers send unasked
	out := newOutput(stdout)
	app := newApp()
	app.Reader = &promptReader{ctx: ctx, r: stdin}
	app.Writer = out
	app.ErrWriter = stderr

	var err error
	if words, asked := completionRequest(args); asked {
		complete(out, app, words)
	} else if args, err = normalise(app, args); err == nil {
		err = app.RunContext(ctx, args)
	}
	if e := out.Flush(); err == nil {
		err = e
	}
	code := exitCode(err)
	if sig, ok := context.Cause(ctx).(interrupted); ok && err != nil {
		code, err = signalled(sig.sig), sig
	}
	if say := message(err); say != "" {
		fmt.Fprintln(stderr, "shardtool: "+visible(say))
	}
	return code
}

// message is what is still to be said about an error: nothing where a verb has
// said it, and nothing where whoever read the output went away.
func message(err error) string {
	var said *saidError
	switch {
	case err == nil, errors.As(err, &said), errors.Is(err, syscall.EPIPE):
		return ""
	}
	var e *format.Error
	if errors.As(err, &e) && e.Err == format.ErrUsage && e.Location == format.Nowhere {
		return e.Detail // "usage: " would say nothing
	}
	return err.Error()
}
